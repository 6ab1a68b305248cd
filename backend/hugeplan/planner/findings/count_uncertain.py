"""Does the slack cover the error bound of the engine's rule? An error bound is not slack: it is named, not reserved."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok
from hugeplan.planner.model import Finding, InstancePlan
from hugeplan.planner.pages import counted_pages

CODE = "count_uncertain"
COMPARE = "Compare with the running server's own count, or raise policy.slack_min_pages."


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool."""
    short_of = pages_short(inputs)
    for instance, planned in inputs.with_pool:
        demand = planned.demand
        together, spare = _error_and_slack(inputs, planned)
        evidence = (computed("error bound", demand.error_pages), computed("slack", spare))
        shared = "" if together == demand.error_pages else f", those that share its pools by {together:,} together"
        if instance.name not in short_of:
            reason = f"The count may be off by {demand.error_pages:,}{shared}; the slack is {spare:,}."
            yield ok(CODE, instance.name, "The slack covers what the count may be off by", reason, evidence=evidence)
            continue
        short = counted_pages(short_of[instance.name], demand.page_bytes)
        reason = f"The rule's count may be off by {demand.error_pages:,} pages{shared}; the slack is {spare:,}."
        title = f"It may need up to {short} more"
        yield attention(CODE, instance.name, title, reason, COMPARE, evidence=evidence)


def pages_short(inputs: FindingInputs) -> dict[str, int]:
    """By instance the pages that it may lack when all who share its pools need what their counts may be off by."""
    found = {}
    for instance, planned in inputs.with_pool:
        if not planned.demand.error_pages:
            continue
        together, spare = _error_and_slack(inputs, planned)
        if together > spare:
            found[instance.name] = min(planned.demand.error_pages, together - spare)
    return found


def _error_and_slack(inputs: FindingInputs, planned: InstancePlan) -> tuple[int, int]:
    """What the counts on an instance's NUMA nodes and page size may be off by together, and the slack there."""
    size, where = planned.demand.page_bytes, set(planned.numa_nodes)
    beside = (p for _, p in inputs.with_pool if p.demand.page_bytes == size and not where.isdisjoint(p.numa_nodes))
    slack = sum(pool.slack_pages for pool in inputs.pools if pool.page_bytes == size and pool.numa_node in where)
    return sum(p.demand.error_pages for p in beside), slack
