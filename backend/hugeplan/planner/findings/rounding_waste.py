"""How much of the pages stays empty, and would another size of pool, chunk or page fill them?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import DemandContext, PageChoice, demand_of, engine_named
from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok
from hugeplan.planner.model import DatabaseInstance, Demand, Finding, Term
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "rounding_waste"
#: Waste below this share of the pages is not worth a change.
NOTABLE_PERCENT = 3


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool, and for each that waste alone keeps from having one."""
    for instance, planned in zip(inputs.request.databases, inputs.instances, strict=True):
        if planned.page_bytes is not None:
            yield _of_pool(instance, planned.demand)
        elif planned.demand.wants_pool and instance.page_bytes is None:
            yield from _without_pool(inputs, instance)


def _of_pool(instance: DatabaseInstance, demand: Demand) -> Finding:
    total = demand.pages * demand.page_bytes
    if demand.waste_bytes * 100 < total * NOTABLE_PERCENT:
        empty = f"{format_bytes(demand.waste_bytes)} stay empty."
        return ok(CODE, instance.name, "The pages are filled", empty, evidence=_evidence(demand))
    share = 100 * demand.waste_bytes / total
    if demand.fits:
        fit = min(demand.fits, key=lambda f: f.waste_after_bytes)
        fix = f"Set {fit.setting} = {fit.value} ({fit.direction}): {format_bytes(fit.waste_after_bytes)} stay empty."
    else:
        fix = "Take a smaller page size."
    reason = f"{format_bytes(demand.waste_bytes)} ({share:.0f} %) of its pages stay empty."
    title = f"{share:.0f} % of the pages stay empty"
    return attention(CODE, instance.name, title, reason, fix, evidence=_evidence(demand))


def _without_pool(inputs: FindingInputs, instance: DatabaseInstance) -> Iterable[Finding]:
    """An engine that can use only the default size, whose mappings would leave most of each such page empty."""
    node, engine = inputs.node, engine_named(instance.engine)
    if engine.page_choice is not PageChoice.DEFAULT or engine.ruled_out(instance) is not None:
        return
    demand = demand_of(instance, node.default_huge_page_bytes, DemandContext.of_node(node))
    total = demand.pages * demand.page_bytes
    if 2 * demand.waste_bytes <= total:
        return
    smaller = [size for size in node.huge_page_sizes_bytes if size < node.default_huge_page_bytes]
    fixes = [f"set {fit.setting} = {fit.value}" for fit in demand.fits[:1]]
    fixes += [f"boot with default_hugepagesz={page_label(max(smaller))}"] if smaller else []
    text = ", or ".join(fixes) or "take a larger buffer pool"
    label = page_label(demand.page_bytes)
    title = f"It gets no pool: its mappings do not fill {label} pages"
    reason = (
        f"{engine.title} can use only the default size, {label}: {format_bytes(demand.waste_bytes)} of"
        f" {format_bytes(total)} would stay empty."
    )
    yield attention(CODE, instance.name, title, reason, f"{text[0].upper()}{text[1:]}.", evidence=_evidence(demand))


def _evidence(demand: Demand) -> tuple[Term, ...]:
    total = demand.pages * demand.page_bytes
    return (computed("empty", format_bytes(demand.waste_bytes)), computed("pages", format_bytes(total)))
