"""When a plan does not fit: what is missing, which constraint binds, and what would fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hugeplan.planner.choice.candidates import candidates_of_all, demand_at
from hugeplan.planner.choice.pool_sizes import with_pool
from hugeplan.planner.connection_options import connection_options
from hugeplan.planner.demand import DemandContext, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.claims import GROWTH
from hugeplan.planner.memory.kubernetes import huge_page_cap_bytes
from hugeplan.planner.memory.ledger import free_bytes_by_node
from hugeplan.planner.memory.page_tables import instance_tables
from hugeplan.planner.memory.pools import most_slack_pages
from hugeplan.planner.model import (
    MIB,
    DatabaseInstance,
    FitOption,
    InstancePlan,
    Ledger,
    LedgerKind,
    PlanRequest,
    PoolPlan,
    Shortfall,
)
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import exact_bytes, format_bytes

#: Bytes that a plan of the request misses, 0 where it fits. Raises PlannerError for what cannot be planned.
Missing = Callable[[PlanRequest], int]

#: Instances of which a change is tried, the largest first: each is a plan or two.
_MOST_CHANGED = 4


def missing_bytes(free: Mapping[int, int], pools: Sequence[PoolPlan], request: PlanRequest) -> int:
    """What the plan lacks where it lacks most: in all, on one NUMA node (``free``), or against a provider's cap."""
    return max(0, -sum(free.values()), *(-size for size in free.values()), _over_cap(pools, request))


def _over_cap(pools: Sequence[PoolPlan], request: PlanRequest) -> int:
    cap = huge_page_cap_bytes(request)
    return 0 if cap is None else max(0, sum(pool.pages * pool.page_bytes for pool in pools) - cap)


def shortfall_of(
    request: PlanRequest, ledger: Ledger, pools: Sequence[PoolPlan], instances: Sequence[InstancePlan], missing: Missing
) -> Shortfall | None:
    """None for a plan that fits. ``missing`` plans a changed request; it is asked a bounded number of times."""
    free = free_bytes_by_node(ledger)
    short = missing_bytes(free, pools, request)
    if not short:
        return None
    total = sum(free.values())
    node = request.node
    others = sum(part.bytes for part in ledger.parts if part.kind not in _OF_DATABASES)
    others += sum(pool.held_pages * pool.page_bytes for pool in pools)
    numa_node: int | None = None
    if total < 0 and others > node.mem_total_bytes:
        constraint = "workloads"
        reason = (
            f"Everything but the databases needs {format_bytes(others)} of {format_bytes(node.mem_total_bytes)}:"
            " no pool fits before that shrinks."
        )
    elif short == -total:
        constraint = "memory"
        databases = _of_databases(request, ledger, pools)
        others = node.mem_total_bytes - total - databases
        reason = (
            f"The databases need {format_bytes(databases)} and everything else {format_bytes(others)};"
            f" the node has {format_bytes(node.mem_total_bytes)}."
        )
    elif short == -min(free.values()):
        constraint = "numa_node"
        numa_node = min(free, key=lambda i: free[i])
        elsewhere = sum(max(0, size) for size in free.values())
        reason = (
            f"NUMA node {numa_node} lacks {format_bytes(short)} for what is bound to it;"
            f" {format_bytes(elsewhere)} are free on the others."
        )
    else:
        constraint = "provider_cap"
        cap = huge_page_cap_bytes(request) or 0
        reason = f"The provider allows {format_bytes(cap)} of huge pages on this node."
    return Shortfall(
        constraint=constraint,
        shortfall_bytes=short,
        numa_node=numa_node,
        reason=reason + _growth_words(ledger, free, pools, request),
        options=tuple(_options(request, instances, short, numa_node, missing)),
    )


def _growth_words(ledger: Ledger, free: Mapping[int, int], pools: Sequence[PoolPlan], request: PlanRequest) -> str:
    """What of the memory is a forecast, and whether the plan fits as long as it does not come."""
    growth = dict.fromkeys(free, 0)
    for part in ledger.parts:
        growth[part.numa_node] += part.bytes if part.name.endswith(GROWTH) else 0
    if not any(growth.values()):
        return ""
    fits = not missing_bytes({i: size + growth[i] for i, size in free.items()}, pools, request)
    text = f" {format_bytes(sum(growth.values()))} are set aside for {GROWTH.removeprefix(': ')}, a forecast"
    return f"{text}; without it the plan fits." if fits else f"{text}."


def _of_databases(request: PlanRequest, ledger: Ledger, pools: Sequence[PoolPlan]) -> int:
    """What the ledger holds for the databases of the request, and for nothing else."""
    kinds = (LedgerKind.POOL, LedgerKind.POOL_SLACK, LedgerKind.ENGINE_PRIVATE)
    names = {f"{d.name}: {part}" for d in request.databases for part in ("page tables", "page cache")}
    own = sum(part.bytes for part in ledger.parts if part.kind in kinds or part.name in names)
    return own - sum(pool.held_pages * pool.page_bytes for pool in pools)


_OF_DATABASES = (
    LedgerKind.POOL,
    LedgerKind.POOL_SLACK,
    LedgerKind.ENGINE_PRIVATE,
    LedgerKind.PAGE_TABLES,
    LedgerKind.PAGE_CACHE,
    LedgerKind.RECLAIMABLE,
    LedgerKind.FREE,
)


def _options(
    request: PlanRequest, instances: Sequence[InstancePlan], short: int, numa_node: int | None, missing: Missing
) -> Iterator[FitOption]:
    """Changes of one instance that make the plan fit."""
    pairs = list(zip(request.databases, instances, strict=True))
    bound = [pair for pair in pairs if numa_node is None or pair[0].numa_node == numa_node] or pairs
    largest_first = sorted(bound, key=lambda pair: -pair[1].demand.segment_bytes)
    for instance, planned in largest_first[:_MOST_CHANGED]:
        yield from _on_huge_pages(request, instance, planned, short, missing)
        if instance.page_bytes and _fits(request, replace(instance, page_bytes=None), missing):
            text = f"{instance.name} fits with another page size than {page_label(instance.page_bytes)}: leave it open."
            yield FitOption(kind="page_size", text=text, instance=instance.name)
        if instance.numa_node is not None and _fits(request, replace(instance, numa_node=None), missing):
            text = f"{instance.name} fits when it is not bound to NUMA node {instance.numa_node}."
            yield FitOption(kind="numa_node", text=text, instance=instance.name)
    for instance, planned in largest_first[:_MOST_CHANGED]:
        yield from connection_options(instance, planned.demand, short, lambda d: _fits(request, d, missing))
    for instance, planned in largest_first[:1]:
        option = _largest_pool(request, instance, planned, short, missing)
        if option is not None:
            yield option


def _on_huge_pages(
    request: PlanRequest, instance: DatabaseInstance, planned: InstancePlan, short: int, missing: Missing
) -> Iterator[FitOption]:
    """Huge pages for an instance whose settings or whose scenario exclude them, where that is what fits.

    They give back page tables and nothing else: where more is missing than those take, no plan is asked.
    """
    engine = engine_named(instance.engine)
    if planned.page_bytes or not planned.demand.wants_pool or short > planned.page_tables_huge_bytes:
        return
    context = DemandContext.of_node(request.node)
    size = request.node.default_huge_page_bytes
    if size not in context.huge_page_sizes_bytes:
        return
    known = {spec.name for spec in engine.settings}
    advice = [item for item in demand_at(instance, size, context).settings if item.name in known]
    settings = {**instance.settings, **{item.name: item.value for item in advice}}
    changed = replace(instance, settings=settings, page_bytes=None)
    if not advice or engine.ruled_out(changed) is not None or not _fits(request, changed, missing):
        return
    tables = instance_tables(request.node, demand_at(changed, size, context), instance.workload).bytes
    first = advice[0]
    yield FitOption(
        kind="page_size",
        text=(
            f"{instance.name} fits with {first.name}{f' = {first.value}' if first.value else ''}: its page tables then"
            f" take {format_bytes(tables)}, not {format_bytes(planned.page_tables_base_bytes)}."
        ),
        instance=instance.name,
        setting=first.name,
        value=first.value,
        page_bytes=size,
    )


def _largest_pool(
    request: PlanRequest, instance: DatabaseInstance, planned: InstancePlan, short: int, missing: Missing
) -> FitOption | None:
    """The largest buffer pool of one instance with which the plan fits, in its engine's step; None where none does.

    What a pool takes beside its plan is known without planning it, so the size is worked out first, on each page size
    that is open to it; two plans show that it fits and one step above does not. Else sizes on the way are planned, but
    not where the least does not fit.
    """
    setting, asked = engine_named(instance.engine).pool_setting, planned.demand.pool_bytes
    if setting is None or not asked:
        return None
    fixed = replace(instance, pool_min_bytes=None, pool_max_bytes=None)
    most = min(asked, request.node.mem_total_bytes)
    room = _Pools(request, fixed, planned.demand.page_bytes).cost(asked) - short
    found = above = 0
    grids = [_Pools(request, fixed, page_bytes) for page_bytes in _open_sizes(request, instance)]
    best = grids
    for grid in grids:
        if grid.cost(grid.above(found)) <= room:  # more than on another page size
            found = largest_that_fits(partial(grid.left, room), grid, most, room)  # it takes at least its size
            above, best = grid.above(found), [grid]

    def spare(buffer_pool_bytes: int) -> int:
        is_planned = grids[0].cost(buffer_pool_bytes) > 0  # not below its engine's least: larger ones are looked at
        return -_lacks(request, with_pool(fixed, buffer_pool_bytes), missing) if is_planned else 0

    fits = found > 0 and grids[0].cost(found) > 0 and spare(found) >= 0
    if not fits:
        below = bisect_left(range(most), 1, key=grids[0].cost) - 1
        if all(spare(least) < 0 for least in {grid.above(below) for grid in best}):  # not even its engine's least
            return None
    if not fits or (above <= most and spare(above) >= 0):
        found = max(largest_that_fits(spare, grid, most, above if fits else found or most) for grid in best)
        if not found or not grids[0].cost(found):
            return None
        above = min(grid.above(found) for grid in best)
    return FitOption(
        kind="pool",
        text=(
            f"The largest {setting} of {instance.name} that fits is {exact_bytes(found)}"
            f" (in steps of {exact_bytes(above - found)})."
        ),
        instance=instance.name,
        setting=setting,
        value=with_pool(fixed, found).settings[setting],
        pool_bytes=found,
    )


class _Pools:
    """Pools of one instance on pages of one size: what they would take, and between which sizes the engine rounds."""

    def __init__(self, request: PlanRequest, instance: DatabaseInstance, page_bytes: int) -> None:
        self._node, self._policy, self._instance = request.node, request.policy, instance
        self._page_bytes, self._engine = page_bytes, engine_named(instance.engine)
        self._context = DemandContext.of_node(request.node)
        self._numa_nodes = 1 if instance.numa_node is not None else len(request.node.numa)
        self._steps: dict[int, int] = {}

    def left(self, room: int, buffer_pool_bytes: int) -> int:
        """What such a pool leaves of a room."""
        return room - self.cost(buffer_pool_bytes)

    def cost(self, buffer_pool_bytes: int) -> int:
        """Bytes that the instance takes with such a pool; 0 below its engine's least, of which plans say so."""
        try:
            demand = demand_at(with_pool(self._instance, buffer_pool_bytes), self._page_bytes, self._context)
        except PlannerError:
            return 0
        own = demand.segment_bytes
        if self._page_bytes != self._node.base_page_bytes:
            own = (demand.pages + most_slack_pages(demand, self._numa_nodes, self._policy)) * self._page_bytes
        own += demand.on_base_bytes + sum(size * pages for size, pages in demand.also_pages)
        return own + instance_tables(self._node, demand, self._instance.workload).bytes

    def whole(self, buffer_pool_bytes: int) -> int:
        """The largest pool not above a size that the engine does not round up; 0 where there is none."""
        size = buffer_pool_bytes
        while size > 0 and size % (step := self._step(size)):
            size = size // step * step
        return size

    def above(self, buffer_pool_bytes: int) -> int:
        """The smallest pool above a size that the engine does not round up."""
        more = self._step(buffer_pool_bytes)
        while (found := self.whole(buffer_pool_bytes + more)) <= buffer_pool_bytes:
            more *= 2
        while (smaller := self.whole(found - 1)) > buffer_pool_bytes:
            found = smaller
        return found

    def _step(self, buffer_pool_bytes: int) -> int:
        """The engine's step at a size; a MiB below its least pool."""
        found = self._steps.get(buffer_pool_bytes)
        if found is None:
            try:
                sized = with_pool(self._instance, buffer_pool_bytes)
                found = self._engine.pool_step(sized, self._page_bytes, self._context)
            except PlannerError:
                found = MIB
            self._steps[buffer_pool_bytes] = found
        return found


def _open_sizes(request: PlanRequest, instance: DatabaseInstance) -> list[int]:
    """Page sizes that are open to an instance, the kernel's default huge page size first: it is most often the one."""
    node, context = request.node, DemandContext.of_node(request.node)
    weighed = candidates_of_all(node, [instance], request.policy, context, weigh_gains=False)[0].candidates
    sizes = [c.page_bytes for c in weighed if c.obstacle is None] or [c.page_bytes for c in weighed]
    return sorted(sizes, key=lambda size: (size != node.default_huge_page_bytes, size))


def largest_that_fits(spare: Callable[[int], int], pools: _Pools, most: int, guess: int) -> int:
    """The largest size, at most ``most``, that fits; 0 where none does. ``guess``: a size that may be near it.

    ``spare``: what is left with a size, below 0 where it does not fit; it falls as the size rises, by no less. Only
    sizes that the engine does not round up are tried: in steps that double while all fit; then where what is left would
    be used up, or what lacks is given up, and each third time in the middle.
    """
    low, left_low = 0, 0
    high, left_high = most + 1, 0
    stride = tries = 0
    at = pools.whole(min(guess, most))
    while low < at < high:
        left = spare(at)
        if left >= 0:
            low, left_low = at, left
        else:
            high, left_high = at, left
        last = pools.whole(high - 1)
        if last <= low:
            break
        tries += 1
        if not left_high:
            stride = max(2 * stride, pools.above(low) - low)
            at = pools.whole(min(low + stride, last))
            continue
        middle = (low + high) // 2
        near = low + (high - low) * left_low // (left_low - left_high) if left_low else high + left_high
        at = pools.whole(min(middle if tries % 3 == 0 or near <= low else near, last))
        if at <= low:
            at = pools.above(low)
    return low


def _fits(request: PlanRequest, changed: DatabaseInstance, missing: Missing) -> bool:
    return _lacks(request, changed, missing) == 0


def _lacks(request: PlanRequest, changed: DatabaseInstance, missing: Missing) -> int:
    """Bytes that a plan with this instance instead misses; as much as the node has for what cannot be planned."""
    databases = tuple(changed if d.name == changed.name else d for d in request.databases)
    try:
        return missing(replace(request, databases=databases))
    except PlannerError:
        return request.node.mem_total_bytes
