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
from hugeplan.planner.pages import page_label

CODE = "start_order"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a node on which two or more instances get huge pages."""
    sharing = [instance for instance in inputs.as_planned if instance.page_bytes]
    if len(sharing) < 2:
        return
    name = inputs.node.name
    takers = _takers_of_bound(inputs)
    if takers:
        bound, others, label = takers
        yield attention(
            CODE,
            name,
            f"Pages for {bound} may be taken on its NUMA node",
            f"{label} pages are reserved for the whole node, not for a NUMA node: {others} may fault in pages where"
            f" {bound} is bound, and {bound} then finds too few there.",
            "Bind each of them, give them another page size, or start the bound one first with its pages touched.",
        )
    pages: dict[int, int] = {}
    for pool in inputs.pools:
        if pool.pages:
            pages[pool.page_bytes] = pages.get(pool.page_bytes, 0) + pool.pages
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
    if all(len(pages.keys() & set(inputs.pool_uses[instance.name].page_sizes_bytes)) <= 1 for instance in sharing):
        if not takers and not may_lack:
            title = "No engine can take another's pages"
            yield ok(CODE, name, title, "Each engine can take pages of one size only, and the pools hold every demand.")
        return
    lost = losing_orders(sharing, pages, DemandContext.of_node(inputs.node), demand_at)
    if not lost and (takers or may_lack):
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


def _takers_of_bound(inputs: FindingInputs) -> tuple[str, str, str] | None:
    """An instance bound to a NUMA node, those that may take its pages there, and the size; None where nobody may."""
    if len(inputs.node.numa) < 2:
        return None
    for instance, planned in inputs.with_pool:
        free = [
            other.name
            for other, its in inputs.with_pool
            if other.numa_node is None and its.page_bytes == planned.page_bytes
        ]
        if instance.numa_node is not None and free:
            return instance.name, ", ".join(sorted(free)), page_label(planned.demand.page_bytes)
    return None


def _all_lose(lost: tuple[Contention, ...], instances: int) -> bool:
    orders = 1
    for factor in range(2, instances + 1):
        orders *= factor
    return len(lost) >= min(orders, 120)
