"""Who gets which page when several engines start on one node.

The kernel sets the pages of a mapping aside when it is made, and refuses the mapping when too few are free. So the
engine that starts first gets its pages, and what the later ones do depends on the engine: try another size, start on
base pages silently, or not start. Engines differ in which pools they try; each says so in its ``pool_use``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Final

from hugeplan.planner.demand import DemandContext, OnShortage, PoolUse, demand_of, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import DatabaseInstance, Demand, Segment
from hugeplan.planner.pages import ceil_pages, counted_pages, page_label

#: Orders tried at most: all of five instances, a sample of more.
_ORDERS_MAX: Final = 120

DemandAt = Callable[[DatabaseInstance, int, DemandContext], Demand]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What became of ``count`` mappings: ``page_bytes`` they are on (None for base pages) and pages taken."""

    mapping: str
    mapping_bytes: int
    count: int
    page_bytes: int | None
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one instance started. ``fell_back_bytes`` wanted huge pages and are on base pages."""

    instance: str
    starts: bool
    grants: tuple[Grant, ...]
    huge_bytes: int
    fell_back_bytes: int
    silent: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """One start order played through: outcomes in that order, and pages left by size."""

    order: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    free_pages: tuple[tuple[int, int], ...]

    @property
    def all_served(self) -> bool:
        """Whether every instance starts with all that it wanted on huge pages."""
        return all(outcome.starts and outcome.fell_back_bytes == 0 for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class _Starter:
    """What a start needs to know of an instance, read once for all orders."""

    name: str
    use: PoolUse
    segments: tuple[Segment, ...]


def simulate_orders(
    databases: Sequence[DatabaseInstance],
    free_pages: Mapping[int, int],
    context: DemandContext,
    demand_at: DemandAt = demand_of,
) -> tuple[Contention, ...]:
    """Every start order of up to five instances (a part of the orders of more), the given order first.

    ``free_pages``: pages free before the first start, by page size in bytes. An instance's ``page_bytes`` is the size
    planned for it, 0 for none. ``demand_at`` may be a remembering :func:`demand_of`.
    Errors: PlannerError for a negative count, and what the engines' rules raise.
    """
    _require_pages(free_pages)
    starters = [_starter(database, context, demand_at) for database in databases]
    return tuple(_play(order, free_pages) for order in islice(permutations(starters), _ORDERS_MAX))


def losing_orders(
    databases: Sequence[DatabaseInstance],
    free_pages: Mapping[int, int],
    context: DemandContext,
    demand_at: DemandAt = demand_of,
) -> tuple[Contention, ...]:
    """The orders in which somebody does not get all its huge pages. Empty: the order does not matter."""
    return tuple(run for run in simulate_orders(databases, free_pages, context, demand_at) if not run.all_served)


def _require_pages(free_pages: Mapping[int, int]) -> None:
    for page_bytes, pages in free_pages.items():
        if pages < 0:
            raise PlannerError(f"free_pages.{page_label(page_bytes)}", pages, "0 or more pages")


def _starter(database: DatabaseInstance, context: DemandContext, demand_at: DemandAt) -> _Starter:
    use = engine_named(database.engine).pool_use(database, context)
    segments = demand_at(database, context.base_page_bytes, context).segments if use.page_sizes_bytes else ()
    return _Starter(database.name, use, segments)


def _play(starters: Sequence[_Starter], free_pages: Mapping[int, int]) -> Contention:
    free = dict(free_pages)
    outcomes = tuple(_start(starter, free) for starter in starters)
    return Contention(
        order=tuple(starter.name for starter in starters),
        outcomes=outcomes,
        free_pages=tuple(sorted(free.items())),
    )


def _start(starter: _Starter, free: dict[int, int]) -> Outcome:
    use, before = starter.use, dict(free)
    grants: list[Grant] = []
    for segment in starter.segments:
        grants += _map_segment(segment.name, segment.segment_bytes, segment.count, use, free)
    fell_back = sum(grant.mapping_bytes * grant.count for grant in grants if grant.page_bytes is None)
    huge = sum(grant.mapping_bytes * grant.count for grant in grants if grant.page_bytes is not None)
    any_free = any(before.get(size) for size in use.page_sizes_bytes)
    refused = fell_back > 0 and use.on_shortage is OnShortage.REFUSE and (any_free or use.all_or_none is None)
    if refused:
        free.clear()
        free.update(before)  # a server that does not start gives back what it took
    return Outcome(
        instance=starter.name,
        starts=not refused,
        grants=() if refused else tuple(grants),
        huge_bytes=0 if refused else huge,
        fell_back_bytes=fell_back,
        silent=fell_back > 0 and not refused,
        text=_sentence(starter.name, grants, use, refused=refused),
    )


def _map_segment(name: str, size_bytes: int, count: int, use: PoolUse, free: dict[int, int]) -> list[Grant]:
    """Grants of ``count`` equal mappings made one after another; equal results are counted together."""
    grants: list[Grant] = []
    left = count
    for page_bytes in use.page_sizes_bytes:
        if not left or (use.within_mapping and page_bytes > size_bytes):
            continue
        pages = ceil_pages(size_bytes, page_bytes)
        served = min(left, free.get(page_bytes, 0) // pages)
        if served:
            free[page_bytes] -= served * pages
            left -= served
            grants.append(_grant(name, size_bytes, served, page_bytes, served * pages))
    if left and use.on_shortage is OnShortage.PARTIAL:
        return [*grants, *_map_partly(name, size_bytes, left, use.page_sizes_bytes[0], free)]
    if left and _wanted(size_bytes, use):
        grants.append(_grant(name, size_bytes, left, None, 0))
    return grants


def _wanted(size_bytes: int, use: PoolUse) -> bool:
    """Whether the mapping asks for huge pages at all: a mapping below every size it may use does not."""
    return not use.within_mapping or any(page_bytes <= size_bytes for page_bytes in use.page_sizes_bytes)


def _map_partly(name: str, size_bytes: int, count: int, page_bytes: int, free: dict[int, int]) -> list[Grant]:
    """Mappings that take the pages there are and base pages for the rest."""
    pages = min(free.get(page_bytes, 0), count * ceil_pages(size_bytes, page_bytes))
    free[page_bytes] = free.get(page_bytes, 0) - pages
    huge_bytes = min(pages * page_bytes, size_bytes * count)
    grants = [_grant(name, huge_bytes, 1, page_bytes, pages)] if pages else []
    if huge_bytes < size_bytes * count:
        grants.append(_grant(name, size_bytes * count - huge_bytes, 1, None, 0))
    return grants


def _grant(name: str, size_bytes: int, count: int, page_bytes: int | None, pages: int) -> Grant:
    return Grant(mapping=name, mapping_bytes=size_bytes, count=count, page_bytes=page_bytes, pages=pages)


def _sentence(name: str, grants: Sequence[Grant], use: PoolUse, *, refused: bool) -> str:
    if not use.page_sizes_bytes:
        return f"{name} uses no huge pages."
    taken: dict[int, int] = {}
    for grant in grants:
        if grant.page_bytes is not None:
            taken[grant.page_bytes] = taken.get(grant.page_bytes, 0) + grant.pages
    pools = " and ".join(counted_pages(pages, size) for size, pages in sorted(taken.items(), reverse=True))
    lost = [grant for grant in grants if grant.page_bytes is None]
    if refused:
        return f"{name} does not start: too few pages of {page_label(use.page_sizes_bytes[0])} are free."
    if not lost:
        return f"{name} takes {pools}."
    count = sum(grant.count for grant in lost)
    rest = f"{count} of its mappings fall{'s' if count == 1 else ''} back to base pages without stopping it"
    return f"{name} takes {pools}, and {rest}." if pools else f"{name} gets no huge page: {rest}."
