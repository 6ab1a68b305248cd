"""Does a database hold more huge pages today than the plan gives it, only because its size was not read?

Without its size a rule takes the engine's default, which says nothing of a server that runs: pages in use are no waste.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hugeplan.planner.demand import DemandContext, demand_of, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.findings.base import FindingInputs, attention, measured, ok
from hugeplan.planner.model import DatabaseInstance, Finding, InstancePlan, ObservedDatabase, Term
from hugeplan.planner.observation.databases import match_databases
from hugeplan.planner.units import format_bytes

CODE = "size_not_known"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding per running database whose planned size is a default and smaller than what it holds."""
    context, sample = DemandContext.of_node(inputs.node), inputs.sample
    if sample is None or sample.databases is None:
        return
    matched = match_databases(inputs.request.databases, sample.databases, context).matched
    held_by = {match.instance: _held_bytes(match.database) for match in matched}
    for instance, planned in zip(inputs.request.databases, inputs.instances, strict=True):
        held = held_by.get(instance.name, 0)
        if held == 0:
            continue
        given = planned.demand.pages * (planned.page_bytes or 0)
        evidence = (measured("held today", format_bytes(held)),)
        if held > given and _is_default_size(instance, planned, context):
            yield _guessed(instance, planned, held, given, evidence)
        else:
            why = f"It holds {format_bytes(held)} of huge pages today; the plan gives it {format_bytes(given)}."
            yield ok(CODE, planned.name, "The plan of its pages rests on no guess", why, evidence=evidence)


def _guessed(
    instance: DatabaseInstance, planned: InstancePlan, held: int, given: int, evidence: tuple[Term, ...]
) -> Finding:
    setting = engine_named(instance.engine).pool_setting
    return attention(
        CODE,
        planned.name,
        f"Its {setting} is not known, and it holds more than the default",
        f"It holds {format_bytes(held)} of huge pages today; the plan took the default of {setting} and gives it"
        f" {format_bytes(given)}.",
        f"Set {setting} of {planned.name} to the server's value before any page is given back.",
        evidence=evidence,
    )


def _held_bytes(database: ObservedDatabase) -> int:
    return sum(s.bytes for s in database.segments if s.backing == "hugetlb") or (database.hugetlb_bytes or 0)


def _is_default_size(instance: DatabaseInstance, planned: InstancePlan, context: DemandContext) -> bool:
    """Whether nothing that was given sizes the buffer pool: without the settings it would be the same."""
    setting = engine_named(instance.engine).pool_setting
    if setting is None or setting in instance.settings:
        return False
    bare = replace(instance, settings={})
    try:
        default = demand_of(bare, planned.page_bytes or context.base_page_bytes, context).pool_bytes
    except PlannerError:
        return False
    return default == planned.demand.pool_bytes
