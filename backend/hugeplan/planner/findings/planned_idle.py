"""Does the slack lock more memory than it is worth? One slack page of 16 GiB outweighs most gains."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok
from hugeplan.planner.model import Finding, PoolPlan
from hugeplan.planner.pages import counted_pages, page_label
from hugeplan.planner.units import format_bytes

CODE = "planned_idle"
#: Idle memory below these shares of the demand and of the node is what slack is for.
NOTABLE_DEMAND_PERCENT = 5
NOTABLE_NODE_PERCENT = 0.5


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each page size with a demand. A page per pool for the rules' error bounds does not count."""
    sizes: dict[int, list[PoolPlan]] = {}
    for pool in inputs.pools:
        if pool.slack_pages:
            sizes.setdefault(pool.page_bytes, []).append(pool)
    for page_bytes, pools in sorted(sizes.items()):
        if not any(pool.demand_pages for pool in pools):
            continue  # pages that no planned database asked for: the finding on idle pools speaks of them
        bound = any(p.demand.error_pages for _, p in inputs.with_pool if p.demand.page_bytes == page_bytes)
        pages = sum(max(0, pool.slack_pages - bound) for pool in pools)
        idle, demand = pages * page_bytes, sum(pool.demand_pages for pool in pools) * page_bytes
        label = page_label(page_bytes)
        evidence = (computed("slack", counted_pages(pages, page_bytes)), computed("demand", format_bytes(demand)))
        notable = 100 * idle > NOTABLE_DEMAND_PERCENT * demand
        if notable and 100 * idle > NOTABLE_NODE_PERCENT * inputs.node.mem_total_bytes:
            title = f"{format_bytes(idle)} of slack will be idle"
            reason = f"The slack is {counted_pages(pages, page_bytes)}, {100 * idle / demand:.0f} % of the demand."
            fix = "Lower policy.slack or policy.slack_min_pages, or plan a smaller page size."
            yield attention(CODE, f"{label} pool", title, reason, fix, evidence=evidence)
        else:
            reason = f"{format_bytes(idle)} of slack for {format_bytes(demand)} of demand."
            yield ok(CODE, f"{label} pool", "The slack is small", reason, evidence=evidence)
