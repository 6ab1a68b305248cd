"""The cases that a gain is worked out for: by page size, what an entry may cover and the machine that it leads to.

Where it was not measured what an entry covers, a guest has two scenarios, and its saving reaches over both. All cases
of all instances are solved together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hugeplan.planner.demand import access_profile
from hugeplan.planner.demand.accesses import AccessProfile, accessed_bytes
from hugeplan.planner.demand.model_error import calibrated
from hugeplan.planner.gain.translation_saving import Machine, Saving, SavingProblem, l1_miss_ns, savings
from hugeplan.planner.gain.walk_cost import Reach, WalkCost, granule_of, table_line_bytes, walk_cost
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Demand,
    HardwareFacts,
    NodeFacts,
    Range,
    Source,
    TrialDifference,
)

SHARED_TABLE_PAGE_BYTES, SHARED_TABLE_ARCHS = 2 * MIB, frozenset({"x86_64", "aarch64", "riscv64"})
"""Huge pages whose tables the kernel shares between processes, one level above base pages of 4K."""

ENTRY_BYTES = 8
"""Bytes of one page-table entry on every architecture that is planned for."""


def address_spaces(instance: DatabaseInstance, demand: Demand) -> int:
    """Private page tables that map the segment: connections of a process-per-connection engine, else one."""
    if not demand.process_per_connection:
        return 1
    return max(1, demand.connections or instance.connections or instance.workload.active_connections or 1)


def active_processes(instance: DatabaseInstance, demand: Demand) -> tuple[int, Source]:
    """Processes that run operations at the same time; one where the engine serves all from one address space."""
    if not demand.process_per_connection:
        return 1, Source.COMPUTED
    active = instance.workload.active_connections
    if active is not None:
        return max(1, active), Source.GIVEN
    return min(address_spaces(instance, demand), 64), Source.ASSUMED


@dataclass(frozen=True, slots=True)
class Scenario:
    """One assumption about what a TLB entry covers, with the hardware it leads to."""

    granule_bytes: int
    base: Reach
    large: Reach
    walk_cost: WalkCost


def scenarios_of(
    hardware: HardwareFacts | None, base_page_bytes: int, page_bytes: int, arch: str
) -> tuple[Scenario, ...]:
    """One scenario when the granule is known; two, whole page and base page, when a guest was not probed."""
    granule = granule_of(hardware, page_bytes)
    candidates = (granule,) if granule is not None else (base_page_bytes, page_bytes)
    return tuple(
        Scenario(covered, *walk_cost(hardware, base_page_bytes, page_bytes, covered, arch))
        for covered in (max(g, base_page_bytes) for g in candidates)
    )


def busy_cores(node: NodeFacts, instance: DatabaseInstance) -> float:
    """Cores that run the instance's operations at the same time; one where nothing says how many are active."""
    active = max(1, instance.workload.active_connections or 1)
    return float(min(active, node.cpus or active))


def shared_table_copies(processes: int, segment_bytes: int, page_bytes: int, arch: str) -> float:
    """Copies of a hugetlb mapping's page tables among processes: the kernel shares the tables of whole, aligned GiB.

    Source: Linux mm/hugetlb.c (huge_pmd_share), on x86-64, AArch64 and RISC-V. A segment lies at no multiple of a GiB,
    so one GiB of it has private tables.
    """
    if page_bytes != SHARED_TABLE_PAGE_BYTES or arch not in SHARED_TABLE_ARCHS or segment_bytes <= GIB:
        return float(processes)
    private = GIB / segment_bytes
    return 1.0 + (processes - 1) * private


def machine_of(
    node: NodeFacts, scenario: Scenario, page_bytes: int, processes: int, *, busy: float, segment_bytes: int = 0
) -> Machine:
    """What the saving needs to know of a node under one scenario."""
    cores = node.cpus or processes
    measured = node.hardware.l2_hit_penalty_ns if node.hardware else None
    base_line = table_line_bytes(node.base_page_bytes, node.base_page_bytes, node.arch)
    per_core = max(1.0, processes / max(1, cores))
    return Machine(
        base=scenario.base,
        large=scenario.large,
        walk_cost=scenario.walk_cost,
        table_line_bytes=(base_line, table_line_bytes(page_bytes, node.base_page_bytes, node.arch)),
        upper_line_bytes=base_line * (node.base_page_bytes // ENTRY_BYTES),
        l1_miss_ns=l1_miss_ns(measured),
        processes=float(processes),
        large_tables=shared_table_copies(processes, segment_bytes, page_bytes, node.arch),
        processes_per_core=per_core,
        busy_cores=busy,
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One large page size for one instance: what an operation touches, and what an entry may cover."""

    page_bytes: int
    demand: Demand
    profile: AccessProfile
    processes: int
    processes_source: Source
    scenarios: tuple[Scenario, ...]


def savings_of(
    node: NodeFacts, wanted: Sequence[tuple[DatabaseInstance, Mapping[int, Demand]]]
) -> list[dict[int, tuple[Case, Saving]]]:
    """By instance and large page size, the saving over all its scenarios; all of them are solved together."""
    owners: list[int] = []
    groups: list[list[Case]] = []
    machines: list[list[tuple[Machine, ...]]] = []
    problems: list[SavingProblem] = []
    for owner, (instance, demands) in enumerate(wanted):
        busy = busy_cores(node, instance)
        for cases in _cases(node, instance, demands):
            owners.append(owner)
            groups.append(cases)
            machines.append([_machines(node, case, busy) for case in cases])
            flat = tuple(machine for of in machines[-1] for machine in of)
            problems.append(SavingProblem(cases[0].profile, flat, is_described(instance)))
    found: list[dict[int, tuple[Case, Saving]]] = [{} for _ in wanted]
    for owner, cases, of_cases, solved in zip(owners, groups, machines, savings(problems), strict=True):
        each = iter(solved)
        for case, of in zip(cases, of_cases, strict=True):
            of_machines = [next(each) for _ in of]
            bounded = of_machines
            if not of[-1].fractured:  # a machine whose pages are whole: none that is fractured gains more
                bounded = [not_above(saving, of_machines[-1]) for saving in of_machines]
            found[owner][case.page_bytes] = (case, over_scenarios(bounded[: len(case.scenarios)]))
    return found


def _machines(node: NodeFacts, case: Case, busy: float) -> tuple[Machine, ...]:
    """A machine for each scenario; after them, for a guest that is known to be fractured, the one that is not."""
    segment = case.demand.segment_bytes
    scenarios = case.scenarios
    known = len(scenarios) == 1 and scenarios[0].granule_bytes < case.page_bytes
    if known and not scenarios[0].walk_cost.measured:  # what was measured on the guest is what it gains
        whole = walk_cost(node.hardware, node.base_page_bytes, case.page_bytes, case.page_bytes, node.arch)
        scenarios = (*scenarios, Scenario(case.page_bytes, *whole))
    return tuple(
        machine_of(node, scenario, case.page_bytes, case.processes, busy=busy, segment_bytes=segment)
        for scenario in scenarios
    )


def _cases(node: NodeFacts, instance: DatabaseInstance, demands: Mapping[int, Demand]) -> Iterable[list[Case]]:
    """The large page sizes of an instance; those with the same accesses stand together."""
    profiles: dict[int, AccessProfile] = {}
    trials = _alike(node)
    cases_of: dict[int, list[Case]] = {}
    for page_bytes, demand in demands.items():
        if page_bytes > node.base_page_bytes:
            size = accessed_bytes(demand)
            if size not in profiles:
                made = access_profile(instance, demand)
                error = made.model_error and calibrated(made.model_error, trials, engine=demand.engine)
                profiles[size] = replace(made, model_error=error)
            scenarios = scenarios_of(node.hardware, node.base_page_bytes, page_bytes, node.arch)
            alike = cases_of.setdefault(size, [])
            alike.append(Case(page_bytes, demand, profiles[size], *active_processes(instance, demand), scenarios))
    return cases_of.values()


def _alike(node: NodeFacts) -> tuple[TrialDifference, ...]:
    """The trials of the node's machine type where an entry covered less than the tried page, or all of it, as here."""
    found = []
    for trial in node.type_trials:
        granule = granule_of(node.hardware, trial.page_bytes)
        if granule is not None and trial.fractured == (max(granule, node.base_page_bytes) < trial.page_bytes):
            found.append(trial)
    return tuple(found)


def not_above(saving: Saving, most: Saving) -> Saving:
    """A fractured guest's saving, never above that of one whose pages the host leaves whole."""
    likely = min(saving.ns.likely, most.ns.likely)
    high = max(likely, min(saving.ns.high, most.ns.high))
    ns = Range(min(saving.ns.low, most.ns.low, likely), likely, high)
    return replace(saving, ns=ns, own_ns=min(saving.own_ns, most.own_ns))


def over_scenarios(found: Sequence[Saving]) -> Saving:
    """From the least to the most that any scenario allows; likely: their mean."""
    ranges = [saving.ns for saving in found]
    likely = sum(r.likely for r in ranges) / len(ranges)
    ns = Range(min(r.low for r in ranges), likely, max(r.high for r in ranges))
    own_ns = sum(saving.own_ns for saving in found) / len(found)
    return Saving(ns, any(saving.extrapolated for saving in found), any(saving.may_lose for saving in found), own_ns)


def is_described(instance: DatabaseInstance) -> bool:
    """Whether the user supplied a working set or a skew."""
    return instance.workload.working_set_bytes is not None or instance.workload.zipf_s is not None
