"""Does the plan fit the node's memory?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hugeplan.planner.demand import DemandContext, PossibleMemory, engine_named
from hugeplan.planner.findings import provider_cap
from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok, unknown, wrong
from hugeplan.planner.memory.connections import connection_memory
from hugeplan.planner.memory.ledger import available_bytes, free_bytes_by_node
from hugeplan.planner.model import MOST_NAMES, Finding, State, named
from hugeplan.planner.observation.sizes_unread import Unread, not_read, settings_of
from hugeplan.planner.observation.told_apart import perhaps_twice
from hugeplan.planner.risk.probability import tenant_bytes
from hugeplan.planner.units import format_bytes

CODE = "memory_fit"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding per NUMA node that is short, else one for the node."""
    found = False
    twice = perhaps_twice(inputs.request, inputs.instances, inputs.ledger)
    unread = inputs.unread
    defaults = {p.name: p.demand.without_connections_bytes for p in inputs.instances if p.name in unread}
    # What may not be there at all: a default that stands in for a size, and what was perhaps counted twice.
    doubt = sum((twice | defaults).values())
    if unread and _short_bytes(inputs) <= doubt:
        yield _rests_on_defaults(inputs, unread)
        return
    for numa_id, free in free_bytes_by_node(inputs.ledger).items():
        if free < 0:
            found = True
            if -free <= doubt:
                yield unknown(
                    CODE,
                    f"NUMA node {numa_id}",
                    "Whether the plan fits is not known: memory may be counted twice",
                    f"{format_bytes(-free)} are missing if {named(twice, ' and ')} come beside what runs there; it was"
                    f" not read whether up to {format_bytes(sum(twice.values()))} of the observed memory are theirs.",
                    "Report the node with the agent, or set runs_as and the settings that the server runs with.",
                )
                continue
            yield wrong(
                CODE,
                f"NUMA node {numa_id}",
                f"The plan does not fit: {format_bytes(-free)} are missing",
                f"The plan needs {format_bytes(-free)} more than NUMA node {numa_id} has.",
                "Shrink a pool, move a workload, or bind the database to another NUMA node.",
                evidence=(computed("free", format_bytes(free)),),
            )
    total = available_bytes(inputs.ledger)
    if found:
        return
    if total < inputs.margin_bytes:
        yield attention(
            CODE,
            inputs.node.name,
            f"The plan fits, but only {format_bytes(total)} stay free",
            f"{format_bytes(total)} stay free, less than the margin of {format_bytes(inputs.margin_bytes)}.",
            "Shrink a pool or a workload, or lower policy.free_margin.",
            evidence=(computed("free", format_bytes(total)),),
        )
    elif untold := [t.name for t in inputs.request.tenants if t.count and tenant_bytes(t, inputs.risk.policy) is None]:
        names = named(untold, " and ")
        yield attention(
            CODE,
            inputs.node.name,
            f"The plan fits while what was not told takes no more than {format_bytes(total)}",
            f"{format_bytes(total)} stay free, and what {names} takes is not known: neither history nor request nor"
            " limit is given.",
            "Give them a request, a limit or a history, or let the agent measure them.",
            evidence=(computed("free", format_bytes(total)),),
        )
    elif (more := _if_all_work(inputs)) > total:
        who = named(d.name for d in inputs.request.databases if d.workload.active_connections is not None)
        yield attention(
            CODE,
            inputs.node.name,
            "The plan fits while no more connections work than stated",
            f"{format_bytes(total)} stay free; if all connections of {who} worked at once, they would take"
            f" {format_bytes(more)} more.",
            "Lower max_connections or the memory of one, or put a connection pool in front.",
            evidence=(computed("free", format_bytes(total)), computed("possible", format_bytes(more))),
        )
    elif more + (allowed := sum(item.bytes for _, item in _allowed(inputs))) > total:
        yield attention(
            CODE,
            inputs.node.name,
            "The plan fits while no database takes all that its settings allow",
            f"{format_bytes(total)} stay free; {_in_words(inputs)}.",
            "Lower the setting, or leave that much of the node free.",
            evidence=(computed("free", format_bytes(total)), computed("possible", format_bytes(more + allowed))),
        )
    else:
        room = f"; {_in_words(inputs)}, which fits" if allowed else ""
        yield ok(
            CODE,
            inputs.node.name,
            "The plan fits the node's memory",
            f"{format_bytes(total)} stay free under the plan{room}.",
        )


def fits(findings: Iterable[Finding], *, feasible: bool) -> bool | None:
    """The one answer of a plan whose ledger was found ``feasible`` or not; None where it is not known."""
    states = {found.state for found in findings if found.code == CODE}
    if State.WRONG in states or any(f.code == provider_cap.CODE and f.state is State.WRONG for f in findings):
        return False
    return None if State.UNKNOWN in states else feasible


def _short_bytes(inputs: FindingInputs) -> int:
    """What is missing where most is missing; 0 where nothing is."""
    free = free_bytes_by_node(inputs.ledger)
    return max(0, -sum(free.values()), *(-size for size in free.values()))


def _rests_on_defaults(inputs: FindingInputs, unread: Mapping[str, Unread]) -> Finding:
    """Sizes that nobody read: the servers may hold any amount more, or less, than their engines' defaults."""
    sizes = {planned.name: planned.demand.pool_bytes for planned in inputs.instances if planned.name in unread}
    stand_ins = "".join(
        f"; {name} is counted at the default of {format_bytes(size)}"
        for name, size in list(sizes.items())[:MOST_NAMES]
        if size is not None
    )
    return unknown(
        CODE,
        inputs.node.name,
        f"Whether the plan fits is not known: the size of {named(unread, ' and ')} is unknown",
        f"{not_read(unread)}{stand_ins}. What was seen in use, or else is requested, is in the ledger.",
        f"Set {settings_of(unread)} to the size that the server is to have, or report the node with the agent.",
    )


def _allowed(inputs: FindingInputs) -> list[tuple[str, PossibleMemory]]:
    """By database what its settings allow beyond the ledger."""
    context = DemandContext.of_node(inputs.request.node)
    found = ((d.name, engine_named(d.engine).possible(d, context)) for d in inputs.as_planned)
    return [(name, item) for name, item in found if item is not None]


def _in_words(inputs: FindingInputs) -> str:
    found = _allowed(inputs)
    words = (f"{name} may take {format_bytes(one.bytes)} more, up to its {one.setting}" for name, one in found)
    return named(words, " and ")


def _if_all_work(inputs: FindingInputs) -> int:
    """Bytes beyond the ledger if every connection of every database worked at once."""
    pairs = zip(inputs.request.databases, inputs.instances, strict=True)
    found = [connection_memory(planned.demand, instance.workload) for instance, planned in pairs]
    return sum(memory.possible_bytes - memory.certain_bytes for memory in found if memory is not None)
