"""Which one unknown of a database's workload would make the likely gain surest, and by how much.

Each unknown in turn is taken as known at the value that the plan assumes, and the gain is computed again. What narrows
the range of the speed-up most is worth asking for first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

from hugeplan.planner.gain.cases import active_processes
from hugeplan.planner.gain.page_size_gain import gains_of_all
from hugeplan.planner.model import DatabaseInstance, Gain, InstancePlan, NodeFacts, Plan, PlanRequest
from hugeplan.planner.units import format_bytes, format_change

#: A range that gets narrower by less than this share is not worth a question.
_LEAST_SHARE: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """``field`` of the instance's workload that is not known, and what the plan takes for it.

    ``low`` and ``high`` are the ends of the speed-up (x) if it were known to be ``assumed``; ``effect`` in words.
    """

    instance: str
    field: str
    assumed: str
    low: float
    high: float
    effect: str


def biggest_question(plan: Plan, request: PlanRequest, *, without: Set[str] = frozenset()) -> Question | None:
    """The question about the database with the widest range; None where nothing asked for would narrow it.

    ``without``: instances of which nothing is asked, as the plan buys them no speed. A trial answers its own.
    """
    chosen = {
        gain.instance: gain
        for gain in plan.gains
        if gain.is_chosen
        and gain.backing_kind == "hugetlb"
        and gain.instance not in without
        and gain.measured_here is None
    }
    by_name = {instance.name: instance for instance in request.databases}
    planned = {instance.name: instance for instance in plan.instances}
    widest = max(chosen.values(), key=_width, default=None)
    if widest is None or widest.speedup is None or widest.instance not in by_name:
        return None
    variants = list(_variants(by_name[widest.instance], planned[widest.instance], widest))
    if not variants:
        return None
    found = _recomputed(request.node, widest, planned[widest.instance], [variant for *_, variant in variants])
    best = min(range(len(variants)), key=lambda index: _width(found[index]))
    narrowed = found[best].speedup
    if narrowed is None or _width(found[best]) > _width(widest) * (1 - _LEAST_SHARE):
        return None
    field, assumed, _ = variants[best]
    return Question(
        instance=widest.instance,
        field=field,
        assumed=assumed,
        low=narrowed.low,
        high=narrowed.high,
        effect=(
            f"If it is {assumed}, the gain is {_percent(narrowed.low)} to {_percent(narrowed.high)} % instead of"
            f" {_percent(widest.speedup.low)} to {_percent(widest.speedup.high)} %."
        ),
    )


def _percent(ratio: float) -> str:
    return format_change(ratio - 1, "")


def _width(gain: Gain) -> float:
    return 0.0 if gain.speedup is None else gain.speedup.high - gain.speedup.low


def _recomputed(node: NodeFacts, gain: Gain, planned: InstancePlan, variants: list[DatabaseInstance]) -> list[Gain]:
    demands: Mapping[int, object] = {gain.page_bytes: planned.demand}
    solved = gains_of_all(node, [(variant, demands) for variant in variants])  # type: ignore[misc]
    return [next(one for one in of.shown if one.backing_kind == "hugetlb") for of in solved]


def _variants(
    instance: DatabaseInstance, planned: InstancePlan, gain: Gain
) -> Iterator[tuple[str, str, DatabaseInstance]]:
    """Field, what is assumed for it in words, and the instance with it given."""
    work, demand = instance.workload, planned.demand
    values = {term.name: term.value for term in gain.inputs}
    saving, speedup = gain.saving_ns_per_operation.likely, gain.speedup
    if work.operations_per_second_per_busy_core is None and speedup is not None and saving > 0 and speedup.likely > 1:
        rate = round(1e9 / (saving / (1 - 1 / speedup.likely)))
        yield (
            "operations_per_second_per_busy_core",
            f"{rate:,} per second",
            replace(instance, workload=replace(work, operations_per_second_per_busy_core=float(rate))),
        )
    if work.active_connections is None and demand.process_per_connection:
        active, _ = active_processes(instance, demand)
        yield "active_connections", f"{active}", replace(instance, workload=replace(work, active_connections=active))
    if work.working_set_bytes is None and demand.pool_bytes:
        size = demand.pool_bytes
        yield "working_set", format_bytes(size), replace(instance, workload=replace(work, working_set_bytes=size))
    if work.row_bytes is None and values.get("row_bytes", "").isdigit():
        row = int(values["row_bytes"])
        yield "row_bytes", f"{row} bytes", replace(instance, workload=replace(work, row_bytes=row))
