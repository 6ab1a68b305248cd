"""Sizing: buffer pools between their bounds, where memory buys the most.

Memory is handed out in equal steps of whole pages. What an instance's pool grows by in a step follows from what a
larger pool costs in all (segment, slack, page tables), so that a step costs every instance the same; the next step
goes where it is worth most
(:func:`hugeplan.planner.choice.optimiser.allocate`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from hugeplan.planner.choice.candidates import demand_at
from hugeplan.planner.choice.optimiser import Allocation, Ask, Budgets, allocate
from hugeplan.planner.demand import DemandContext, Engine, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.pools import most_slack_pages
from hugeplan.planner.model import MIB, DatabaseInstance, Policy
from hugeplan.planner.pages import ceil_pages, ceil_to_multiple
from hugeplan.planner.pool_benefit.benefit_of_size import pool_benefit
from hugeplan.planner.units import format_bytes

#: Steps that the widest range is cut into at most: 256 steps of a 12 GiB range are 48 MiB each.
MAX_STEPS = 256

#: Where the cost of a pool is sampled to tell an even rise from steps, as shares of its range.
_PROBES: Final = (0.13, 0.38, 0.71)
#: Sizes at which the cost of a pool that rises in steps is worked out.
_STAIRS_SEEN: Final = 64

#: (instance, page size) -> bytes that the instance takes in all.
Cost = Callable[[DatabaseInstance, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranged:
    """An instance whose pool may be sized, at the page size chosen for it (the base page size: no pool)."""

    instance: DatabaseInstance
    page_bytes: int
    numa_node: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedPool:
    """The answer for one instance: its pool and a sentence that says why."""

    buffer_pool_bytes: int
    why: str
    basis: str


def is_ranged(instance: DatabaseInstance) -> bool:
    """Whether the planner may size this instance's pool."""
    return instance.pool_min_bytes is not None and instance.pool_max_bytes is not None


def with_pool(instance: DatabaseInstance, buffer_pool_bytes: int) -> DatabaseInstance:
    """The instance with its pool setting at ``buffer_pool_bytes``, written as the engine writes sizes."""
    engine = engine_named(instance.engine)
    if engine.pool_setting is None:
        raise PlannerError("pool_range", instance.engine, "an engine whose pool has a size setting")
    text = setting_text(engine, buffer_pool_bytes)
    own = _plain(engine.pool_setting)
    if engine.pool_maximum is not None:
        top = _plain(engine.pool_maximum)
        capped = {name: text if _plain(name) == top else value for name, value in instance.settings.items()}
        instance = replace(instance, settings=capped)
    others = {name: value for name, value in instance.settings.items() if _plain(name) != own}
    return replace(instance, settings={**others, engine.pool_setting: text})


def _plain(name: str) -> str:
    """A setting's name without its spelling: ``-Xmx`` and ``Xmx``, ``DATABASE_MEMORY`` and ``database_memory``."""
    return name.lstrip("-").lower()


def setting_text(engine: Engine, buffer_pool_bytes: int) -> str:
    """A pool size as the engine's pool setting takes it."""
    return engine.format_size(buffer_pool_bytes)


def at_minimum(instance: DatabaseInstance) -> DatabaseInstance:
    """A ranged instance with its pool at the lower bound; others unchanged."""
    low = instance.pool_min_bytes
    return instance if low is None or not is_ranged(instance) else with_pool(instance, low)


def size_pools(
    ranged: Sequence[Ranged], cost: Cost, room: Mapping[int, int], total_room: int
) -> tuple[tuple[SizedPool, ...], Allocation]:
    """Pools for all ranged instances.

    ``cost`` says what an instance takes in all at a page size; ``room`` is the bytes left on each NUMA node with
    every pool at its minimum.
    """
    step = _step_bytes(ranged, cost)
    asks, pools, bases = [], [], []
    for item in ranged:
        grid = _pool_grid(item, cost, step)
        benefits, basis = pool_benefit(item.instance.workload, grid)
        asks.append(Ask(tuple(item.instance.weight * b for b in benefits), item.numa_node))
        pools.append(grid)
        bases.append(basis)
    # A page of each instance is held back: rounding may take one more than the steps say.
    held = sum(item.page_bytes for item in ranged)
    steps = {i: max(0, size - held) // step for i, size in room.items()}
    budgets = Budgets(steps, min(sum(steps.values()), max(0, total_room - held) // step))
    found = allocate(asks, budgets)
    answers = [
        SizedPool(buffer_pool_bytes=grid[k], why=_why(grid, k, ask, step, found), basis=basis)
        for grid, k, ask, basis in zip(pools, found.steps, asks, bases, strict=True)
    ]
    return tuple(answers), found


def _step_bytes(ranged: Sequence[Ranged], cost: Cost) -> int:
    widest = max(_cost_range(item, cost) for item in ranged)
    largest_page = max(item.page_bytes for item in ranged)
    return max(largest_page, ceil_to_multiple(max(1, ceil_pages(widest, MAX_STEPS)), largest_page))


def _pool_grid(item: Ranged, cost: Cost, step: int) -> tuple[int, ...]:
    """Pool sizes that cost at most 0, 1, 2 ... steps above the minimum, whole MiB, the last one the maximum."""
    low, high = item.instance.pool_min_bytes or 0, item.instance.pool_max_bytes or 0
    if high <= low:
        return (low,)
    steps = max(1, ceil_pages(_cost_range(item, cost), step))
    if _rises_evenly(item, cost):
        whole = [low + (high - low) * k // steps // MIB * MIB for k in range(1, steps)]
        return (low, *(max(low, size) for size in whole), high)
    parts = min(steps, _STAIRS_SEEN)
    sizes = [low, *(max(low, low + (high - low) * k // parts // MIB * MIB) for k in range(1, parts)), high]
    costs = list(accumulate((cost(with_pool(item.instance, size), item.page_bytes) for size in sizes), max))
    return tuple(sizes[bisect_right(costs, costs[0] + k * step) - 1] for k in range(steps + 1))


def _rises_evenly(item: Ranged, cost: Cost) -> bool:
    """Whether the cost rises in proportion to the pool, to a page. Pools in chunks or granules rise in steps."""
    low, high = item.instance.pool_min_bytes or 0, item.instance.pool_max_bytes or 0
    first, whole = cost(with_pool(item.instance, low), item.page_bytes), _cost_range(item, cost)
    for part in _PROBES:
        size = min(high, low + int((high - low) * part) // MIB * MIB + MIB)
        even = first + whole * (size - low) // (high - low)
        if abs(cost(with_pool(item.instance, size), item.page_bytes) - even) > max(item.page_bytes, whole // 1000):
            return False
    return True


def _cost_range(item: Ranged, cost: Cost) -> int:
    """What the largest pool costs more than the smallest."""
    low, high = item.instance.pool_min_bytes or 0, item.instance.pool_max_bytes or 0
    return cost(with_pool(item.instance, high), item.page_bytes) - cost(with_pool(item.instance, low), item.page_bytes)


def at_size(
    instance: DatabaseInstance, sized: SizedPool, page_bytes: int, context: DemandContext, policy: Policy
) -> tuple[DatabaseInstance, SizedPool]:
    """The instance with its sized pool, grown into the rest of its last page where its engine knows how.

    Not where a fuller page would cost a page of slack: on gigantic pages the rest of the last one is the slack.
    """
    instance = with_pool(instance, sized.buffer_pool_bytes)
    demand = demand_at(instance, page_bytes, context)
    setting = engine_named(instance.engine).pool_setting
    for fit in demand.fits:
        if fit.direction != "grow" or fit.setting != setting:
            continue
        grown = replace(instance, settings={**instance.settings, fit.setting: fit.value})
        larger = demand_at(grown, page_bytes, context)
        limit = instance.pool_max_bytes
        fits = larger.pool_bytes is not None and (limit is None or larger.pool_bytes <= limit)
        pages = [d.pages + most_slack_pages(d, 1, policy) for d in (demand, larger)]
        if fits and pages[1] <= pages[0]:
            why = f"{sized.why} {setting} = {fit.value} fills its last page."
            return grown, replace(sized, buffer_pool_bytes=larger.pool_bytes or sized.buffer_pool_bytes, why=why)
    return instance, sized


def _why(grid: Sequence[int], steps: int, ask: Ask, step: int, found: Allocation) -> str:
    size = format_bytes(grid[steps])
    if len(grid) == 1:
        return f"The pool is fixed at {size}."
    if steps == len(grid) - 1:
        return f"The pool is at its maximum of {size}; memory was left for it."
    here = ask.benefits[steps + 1] - ask.benefits[steps]
    if found.next_marginal is not None:
        return (
            f"The pool is {size}: the next {format_bytes(step)} would add {here:.3g} to the score here,"
            f" but what is left is kept for the margin and the other workloads' risk."
        )
    return (
        f"The pool is {size}: the next {format_bytes(step)} would add {here:.3g} to the score, no more than it costs."
    )
