"""Many nodes at once: nodes of one shape that lie between two equal plans have that plan.

Nodes are of one shape when they differ only in how much memory their NUMA nodes and their kernel have. More memory
never takes an option away, and the difference of two candidates' scores moves one way with memory (it is a + b / m).
So when the least and the most memory of a group lead to the same pools and the same verdict on risk (choices are
made within the risk where any choice allows it), every node between has these pools too;
else the group is halved. Each group keeps the whole plan of its smallest node; each node its own free memory.

An observed node starts from its own workloads. Observed nodes share a plan where all that a plan reads of them is
equal, whatever their names and the time of their samples; what differs in one byte is planned by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter

from hugeplan.planner.choice.decide import margin_bytes
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.kubernetes import resolve_reservations
from hugeplan.planner.memory.ledger import free_bytes_by_node, kernel_bytes, sum_bytes
from hugeplan.planner.model import LedgerKind, NodeFacts, NodeSample, Plan, PlanRequest
from hugeplan.planner.observation.pools import pool_states
from hugeplan.planner.plan import plan
from hugeplan.planner.risk.probability import tenant_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetGroup:
    """Nodes with the same pools. ``plan`` is the whole plan of the one with the least memory."""

    plan: Plan
    nodes: int
    shape: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetNode:
    """One node's line: its group, free memory under the plan, and pages that are not there yet (None: unknown)."""

    name: str
    group: int
    mem_total_bytes: int
    locked_bytes: int
    free_bytes: int
    fits: bool
    missing_pages: int | None
    idle_pages: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """Plans of a fleet: nodes in the order given, groups in the order found, and how many plans were computed."""

    groups: tuple[FleetGroup, ...]
    nodes: tuple[FleetNode, ...]
    plans_computed: int

    @property
    def locked_bytes(self) -> int:
        """Memory that the plans lock on the whole fleet."""
        return sum(node.locked_bytes for node in self.nodes)


Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Work:
    requests: Sequence[PlanRequest]
    groups: list[FleetGroup]
    group_of: list[int]
    progress: Progress
    plans: int = 0
    done: int = 0

    def plan(self, request: PlanRequest, index: int) -> Plan:
        self.progress(self.done, self.plans)
        self.plans += 1
        try:
            return plan(request)
        except PlannerError as error:
            raise error.within(f"nodes[{index}]") from error


def _silent(_done: int, _plans: int) -> None:
    pass


def plan_fleet(requests: Sequence[PlanRequest], progress: Progress = _silent) -> FleetPlan:
    """A plan for every node. PlannerErrors name the node by its place in ``requests``.

    ``progress`` is called before each plan with the nodes done and the plans computed; what it raises ends the work.
    """
    work = _Work(requests=requests, groups=[], group_of=[-1] * len(requests), progress=progress)
    shapes: dict[Hashable, list[int]] = {}
    frozen: dict[int, Hashable] = {}
    alike = _Alike()
    for index, request in enumerate(requests):
        shapes.setdefault((_shape(request, frozen), alike.number(request)), []).append(index)
    for number, members in enumerate(shapes.values()):
        members.sort(key=lambda i: (requests[i].node.mem_total_bytes, i))
        _solve(work, members, number)
    shared = [_Shared.of(group) for group in work.groups]
    nodes = tuple(_line(request, shared[g], g) for request, g in zip(requests, work.group_of, strict=True))
    return FleetPlan(groups=tuple(work.groups), nodes=nodes, plans_computed=work.plans)


def _solve(work: _Work, members: list[int], shape: int) -> None:
    """One group when the least and the most memory agree, else two halves."""
    first = members[0]
    smallest = work.plan(work.requests[first], first)
    if len(members) > 1 and not _agree(work, members):
        middle = len(members) // 2
        _solve(work, members[:middle], shape)
        _solve(work, members[middle:], shape)
        return
    work.groups.append(FleetGroup(plan=smallest, nodes=len(members), shape=shape))
    work.done += len(members)
    for index in members:
        work.group_of[index] = len(work.groups) - 1


def _agree(work: _Work, members: list[int]) -> bool:
    """Whether a node with the least of everything and one with the most get the same pools, and both fit."""
    nodes = [work.requests[i].node for i in members]
    if all(_memory(node) == _memory(nodes[0]) for node in nodes):
        return True
    template = work.requests[members[0]]
    low = work.plan(replace(template, node=_extreme(nodes, least=True), sample=None), members[0])
    if any(free < 0 for free in free_bytes_by_node(low.ledger).values()):
        return False
    high = work.plan(replace(template, node=_extreme(nodes, least=False), sample=None), members[0])
    # Page sizes are chosen within the risk where any choice allows it: between a node where none does and one where
    # one does lie nodes that give pages up for it, though both ends have the same pools.
    return _decision(low) == _decision(high) and low.risk.meets_policy == high.risk.meets_policy


def _memory(node: NodeFacts) -> tuple[object, ...]:
    return (node.kernel_used_bytes, tuple(numa.mem_total_bytes for numa in node.numa))


def _extreme(nodes: Sequence[NodeFacts], *, least: bool) -> NodeFacts:
    """A node with the least (or most) memory on each NUMA node and the most (or least) kernel memory of a group."""
    pick, opposite = (min, max) if least else (max, min)
    numa = tuple(
        replace(numa, mem_total_bytes=pick(node.numa[k].mem_total_bytes for node in nodes))
        for k, numa in enumerate(nodes[0].numa)
    )
    kernels = [node.kernel_used_bytes for node in nodes if node.kernel_used_bytes is not None]
    return replace(nodes[0], numa=numa, kernel_used_bytes=opposite(kernels) if kernels else None)


def _decision(found: Plan) -> tuple[object, ...]:
    """What must agree: page sizes, pools with their counts, and the settings of sized buffer pools."""
    pools = tuple((p.numa_node, p.page_bytes, p.demand_pages, p.pages) for p in found.pools if p.pages)
    instances = tuple((i.page_bytes, i.demand.pool_bytes, i.demand.pages) for i in found.instances)
    return (pools, instances)


def _shape(request: PlanRequest, frozen: dict[int, Hashable]) -> Hashable:
    """Everything that a plan's pools depend on besides memory; two nodes of one shape may share a plan."""
    node = request.node
    standing = tuple(numa.pools for numa in node.numa) if request.policy.reserve_at == "runtime" else None
    in_use = tuple((key, state.kept) for key, state in sorted(pool_states(node, request.sample).items()) if state.kept)
    return (
        node.arch,
        node.base_page_bytes,
        node.huge_page_sizes_bytes,
        node.default_huge_page_bytes,
        tuple(numa.id for numa in node.numa),
        node.cpus,
        node.hvo_enabled,
        node.hugetlb_cma_bytes,
        node.kernel_used_bytes is None,
        standing,
        in_use,
        _frozen(node.hardware, frozen),
        _frozen(request.reservations, frozen),
        _frozen(request.tenants, frozen),
        _frozen(request.databases, frozen),
        _frozen(request.policy, frozen),
    )


def _is_observed(request: PlanRequest) -> bool:
    return request.sample is not None and request.sample.memory is not None


class _Alike:
    """Observed requests by what a plan reads of them, so that equal ones have the same number.

    Samples hold mappings and long histories: they are sorted into bins by their meminfo, and compared only there.
    """

    def __init__(self) -> None:
        self._bins: dict[Hashable, list[tuple[int, tuple[object, ...]]]] = {}
        self._count = 0

    def number(self, request: PlanRequest) -> int | None:
        """The number of the first request like this one; None for a node that was not observed."""
        if not _is_observed(request):
            return None
        assert request.sample is not None
        found = self._bins.setdefault((request.sample.memory, request.node.numa), [])
        bare = (*_NODE_PARTS(request.node), *_SAMPLE_PARTS(request.sample), *_REQUEST_PARTS(request))
        for number, other in found:
            if other == bare:
                return number
        self._count += 1
        found.append((self._count, bare))
        return self._count


def _parts_but(kind: type, *left_out: str) -> Callable[[object], tuple[object, ...]]:
    """A reader of all fields of a dataclass but some. Nodes of a fleet share parts, and the same object is equal."""
    return attrgetter(*(field.name for field in fields(kind) if field.name not in left_out))


_NODE_PARTS = _parts_but(NodeFacts, "name")
_SAMPLE_PARTS = _parts_but(NodeSample, "taken_at_seconds")
_REQUEST_PARTS = _parts_but(PlanRequest, "node", "sample")


def _frozen(part: object, known: dict[int, Hashable]) -> Hashable:
    """A part's content as something hashable, worked out once an object: nodes of a fleet share theirs."""
    key = id(part)
    if key not in known:
        known[key] = repr(part)
    return known[key]


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the lines of a group's nodes read of its plan, worked out once."""

    plan: Plan
    free_bytes: int
    no_node_short: bool
    planned: dict[tuple[int, int], int]

    @classmethod
    def of(cls, group: FleetGroup) -> _Shared:
        by_node = free_bytes_by_node(group.plan.ledger)
        return cls(
            plan=group.plan,
            free_bytes=sum(by_node.values()),
            no_node_short=all(part >= 0 for part in by_node.values()),
            planned={(p.numa_node, p.page_bytes): p.pages for p in group.plan.pools if p.pages},
        )


def _line(request: PlanRequest, shared: _Shared, number: int) -> FleetNode:
    node, found = request.node, shared.plan
    own = node.name == found.node or _is_observed(request)
    free = shared.free_bytes if own else _free(request, found)
    missing, idle = _drift(node, shared.planned)
    return FleetNode(
        name=node.name,
        group=number,
        mem_total_bytes=node.mem_total_bytes,
        locked_bytes=found.net_memory.locked_bytes,
        free_bytes=free,
        fits=free >= 0 and shared.no_node_short,
        missing_pages=missing,
        idle_pages=idle,
    )


def _free(request: PlanRequest, found: Plan) -> int:
    """Free memory of a node from its group's ledger: what grows with memory is worked out anew, the rest is shared."""
    node, ledger = request.node, found.ledger
    shared = sum_bytes(
        ledger,
        LedgerKind.TENANTS,
        LedgerKind.ENGINE_PRIVATE,
        LedgerKind.PAGE_TABLES,
        LedgerKind.POOL,
        LedgerKind.POOL_SLACK,
    )
    caches = sum(
        tenant_bytes(tenant, request.policy.risk) or 0 for tenant in request.tenants if tenant.kind == "page_cache"
    )
    kernel, _ = kernel_bytes(node)
    reserved = resolve_reservations(request.reservations, node.mem_total_bytes)
    covered = min(reserved.system.bytes, kernel) if request.reservations.kubernetes else 0
    free = node.mem_total_bytes - shared - caches - kernel - reserved.total_bytes + covered
    wanted = sum(instance.demand.page_cache_bytes or 0 for instance in found.instances)
    return free - min(wanted, max(0, free - margin_bytes(request)))


def _drift(node: NodeFacts, planned: dict[tuple[int, int], int]) -> tuple[int | None, int | None]:
    """Pages of the plan that do not stand, and standing pages beyond it; None where a NUMA node's pools are unknown."""
    if any(numa.pools is None for numa in node.numa):
        return None, None
    present = {(numa.id, pool.page_bytes): pool.nr_hugepages for numa in node.numa for pool in numa.pools or ()}
    keys = planned.keys() | present.keys()
    missing = sum(max(0, planned.get(key, 0) - present.get(key, 0)) for key in keys)
    idle = sum(max(0, present.get(key, 0) - planned.get(key, 0)) for key in keys)
    return missing, idle
