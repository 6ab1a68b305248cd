"""How much of the pages stays empty, and would another pool size fill them?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes

CODE = "rounding_waste"
#: Waste below this share of the pages is not worth a change.
NOTABLE_PERCENT = 3


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool."""
    for instance, planned in inputs.with_pool:
        demand = planned.demand
        total = demand.pages * demand.page_bytes
        evidence = (computed("empty", format_bytes(demand.waste_bytes)), computed("pages", format_bytes(total)))
        if demand.waste_bytes * 100 < total * NOTABLE_PERCENT:
            yield ok(
                CODE,
                instance.name,
                "The pages are filled",
                f"{format_bytes(demand.waste_bytes)} stay empty.",
                evidence=evidence,
            )
            continue
        share = 100 * demand.waste_bytes / total
        if demand.fits:
            fit = min(demand.fits, key=lambda f: f.waste_after_bytes)
            fix = (
                f"Set {fit.setting} = {fit.value} ({fit.direction}): {format_bytes(fit.waste_after_bytes)} stay empty."
            )
        else:
            fix = "Take a smaller page size."
        reason = f"{format_bytes(demand.waste_bytes)} ({share:.0f} %) of its pages stay empty."
        yield attention(CODE, instance.name, f"{share:.0f} % of the pages stay empty", reason, fix, evidence=evidence)
