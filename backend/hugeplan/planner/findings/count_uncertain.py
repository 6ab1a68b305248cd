"""Does the slack cover the error bound of the engine's rule? An error bound is not slack: it is named, not reserved."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import counted_pages

CODE = "count_uncertain"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool."""
    slack: dict[int, int] = {}
    for pool in inputs.pools:
        slack[pool.page_bytes] = slack.get(pool.page_bytes, 0) + pool.slack_pages
    for instance, planned in inputs.with_pool:
        demand = planned.demand
        spare = slack.get(demand.page_bytes, 0)
        evidence = (computed("error bound", demand.error_pages), computed("slack", spare))
        if demand.error_pages <= spare:
            reason = f"The count may be off by {demand.error_pages:,}, the slack is {spare:,}."
            yield ok(CODE, instance.name, "The slack covers what the count may be off by", reason, evidence=evidence)
            continue
        short = counted_pages(demand.error_pages - spare, demand.page_bytes)
        reason = f"The rule's count may be off by {demand.error_pages:,} pages, the slack is {spare:,}."
        fix = "Compare with the running server's own count, or raise policy.slack_min_pages."
        yield attention(CODE, instance.name, f"It may need up to {short} more", reason, fix, evidence=evidence)
