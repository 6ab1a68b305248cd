"""Does the start order matter: can one engine take the pages planned for another?

Where every engine takes pages of one size only, the pools hold everybody's demand and no order loses. An engine that
tries several sizes (MariaDB, the largest first) may take another's: then every start order is played through.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.choice.candidates import demand_at
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.demand.start_order import Contention, losing_orders
from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok, wrong
from hugeplan.planner.findings.count_uncertain import pages_short
from hugeplan.planner.model import Finding, named

CODE = "start_order"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each way to lose pages, where an instance gets huge pages and two servers have some."""
    sharing = [instance for instance in inputs.as_planned if instance.page_bytes]
    name = inputs.node.name
    takers = takers_of_bound(inputs) if sharing else {}
    if takers:
        others = named(sorted({who for of in takers.values() for who in of}), " and ")
        yield attention(
            CODE,
            name,
            f"Pages for {named(sorted(takers), ' and ')} may be taken on their NUMA nodes",
            f"No page is kept for one server: {others} may fault in pages there, and who starts later then finds too"
            " few.",
            "Bind each of them, give them another page size, or start the bound ones first with their pages touched.",
        )
    if len(sharing) < 2:
        return
    may_lack = pages_short(inputs)
    if may_lack and not takers:
        yield attention(
            CODE,
            name,
            "An engine whose count is off may take another's pages",
            f"The counts of {named(may_lack, ' and ')} may be off by more than the slack: whoever starts last may find"
            " too few pages.",
            "Raise policy.slack_min_pages, or compare with the running servers' own counts.",
        )
    lost = lost_orders(inputs)
    if not lost and (takers or may_lack):
        return
    if lost is None:
        title = "No engine can take another's pages"
        yield ok(CODE, name, title, "Each engine can take pages of one size only, and the pools hold every demand.")
        return
    if not lost:
        yield ok(CODE, name, "The start order does not matter", "In every start order each engine gets its pages.")
        return
    first = lost[0]
    victims = " ".join(o.text for o in first.outcomes if o.fell_back_bytes or not o.starts)
    evidence = (computed("order", ", ".join(first.order)), computed("orders that lose", len(lost)))
    reason = f"Started as {', '.join(first.order)}: {victims}"
    if _all_lose(lost, len(sharing)):
        fix = "Plan one page size for all engines, or reserve what the greedy engine takes."
        title = "No start order gives every engine its pages"
        yield wrong(CODE, name, title, f"No start order serves everybody. {reason}", fix, evidence=evidence)
    else:
        fix = "Start the engine that takes the largest size first last, or plan one page size for all."
        yield attention(CODE, name, "In some start orders an engine loses its pages", reason, fix, evidence=evidence)


def lost_orders(inputs: FindingInputs) -> tuple[Contention, ...] | None:
    """The start orders in which an instance loses pages to one that takes several sizes; None where none does."""
    sharing = [instance for instance in inputs.as_planned if instance.page_bytes]
    pages: dict[int, int] = {}
    for pool in inputs.pools:
        if pool.pages:
            pages[pool.page_bytes] = pages.get(pool.page_bytes, 0) + pool.pages
    if all(len(pages.keys() & set(inputs.pool_uses[instance.name].page_sizes_bytes)) <= 1 for instance in sharing):
        return None
    return losing_orders(sharing, pages, DemandContext.of_node(inputs.node), demand_at)


def takers_of_bound(inputs: FindingInputs) -> dict[str, list[str]]:
    """Servers that may allocate on some NUMA nodes only, described or not, with those that may take their pages there.

    Those may also allocate elsewhere, where the plan counts their pages, and no spare page is left for them.
    """
    every = {numa.id for numa in inputs.node.numa if numa.mem_total_bytes}
    servers = [
        (d.name, its.page_bytes, its.pages + its.error_pages, {*d.within, *d.allowed_numa_nodes} or every)
        for d, its in ((d, planned.demand) for d, planned in inputs.with_pool)
    ]
    others = (server for server in inputs.in_use.servers if not server.is_own)
    servers += [(one.server, one.page_bytes, one.pages, set(one.numa_nodes) or every) for one in others]
    found = {}
    for name, size, _, nodes in servers:
        near = [each for each in servers if each[1] == size and each[3] & nodes]
        there = sum(pool.pages for pool in inputs.pools if pool.page_bytes == size and pool.numa_node in nodes)
        takers = [each[0] for each in near if not each[3] <= nodes]
        if takers and sum(each[2] for each in near) > there:
            found[name] = takers
    return found


def _all_lose(lost: tuple[Contention, ...], instances: int) -> bool:
    orders = 1
    for factor in range(2, instances + 1):
        orders *= factor
    return len(lost) >= min(orders, 120)
