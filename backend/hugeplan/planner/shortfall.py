"""When a plan does not fit: what is missing, which constraint binds, and what would fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hugeplan.planner.choice.candidates import demand_at
from hugeplan.planner.choice.pool_sizes import with_pool
from hugeplan.planner.connection_options import connection_options
from hugeplan.planner.demand import DemandContext, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.kubernetes import huge_page_cap_bytes
from hugeplan.planner.memory.ledger import free_bytes_by_node
from hugeplan.planner.memory.page_tables import instance_tables
from hugeplan.planner.memory.pools import most_slack_pages
from hugeplan.planner.model import (
    GIB,
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

#: Steps in which a pool that fits is looked for; it is named in its engine's own.
_FINE_BYTES, _COARSE_BYTES = 64 * MIB, GIB // 2
#: Instances of which a change is tried, the largest first: each is a plan or two.
_MOST_CHANGED = 4


def missing_bytes(ledger: Ledger, pools: Sequence[PoolPlan], request: PlanRequest) -> int:
    """What the plan lacks where it lacks most: in all, on one NUMA node, or against a provider's cap."""
    free = free_bytes_by_node(ledger)
    return max(0, -sum(free.values()), *(-size for size in free.values()), _over_cap(pools, request))


def _over_cap(pools: Sequence[PoolPlan], request: PlanRequest) -> int:
    cap = huge_page_cap_bytes(request)
    return 0 if cap is None else max(0, sum(pool.pages * pool.page_bytes for pool in pools) - cap)


def shortfall_of(
    request: PlanRequest, ledger: Ledger, pools: Sequence[PoolPlan], instances: Sequence[InstancePlan], missing: Missing
) -> Shortfall | None:
    """None for a plan that fits. ``missing`` plans a changed request; it is asked a bounded number of times."""
    short = missing_bytes(ledger, pools, request)
    if not short:
        return None
    free = free_bytes_by_node(ledger)
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
        reason=reason,
        options=tuple(_options(request, instances, short, numa_node, missing)),
    )


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
        yield from _on_huge_pages(request, instance, planned, missing)
        if instance.page_bytes and _fits(request, replace(instance, page_bytes=None), missing):
            text = f"{instance.name} fits with another page size than {page_label(instance.page_bytes)}: leave it open."
            yield FitOption(kind="page_size", text=text, instance=instance.name)
        if instance.numa_node is not None and _fits(request, replace(instance, numa_node=None), missing):
            text = f"{instance.name} fits when it is not bound to NUMA node {instance.numa_node}."
            yield FitOption(kind="numa_node", text=text, instance=instance.name)
    for instance, planned in largest_first[:_MOST_CHANGED]:
        yield from connection_options(instance, planned.demand, short, lambda d: _fits(request, d, missing))
    chosen = _as_chosen(request, instances)
    for instance, planned in largest_first[:1]:
        as_chosen = next(d for d in chosen.databases if d.name == instance.name)
        option = _largest_pool(chosen, as_chosen, planned, short, missing)
        option = option or _largest_pool(request, instance, planned, short, missing)
        if option is not None:
            yield option


def _on_huge_pages(
    request: PlanRequest, instance: DatabaseInstance, planned: InstancePlan, missing: Missing
) -> Iterator[FitOption]:
    """Huge pages for an instance whose settings or whose scenario exclude them, where that is what fits."""
    engine = engine_named(instance.engine)
    if planned.page_bytes or not planned.demand.wants_pool:
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


def _as_chosen(request: PlanRequest, instances: Sequence[InstancePlan]) -> PlanRequest:
    """The request with every page size as the plan chose it, so that only the pool's size changes."""
    pairs = zip(request.databases, instances, strict=True)
    return replace(request, databases=tuple(replace(d, page_bytes=p.page_bytes or 0) for d, p in pairs))


def _largest_pool(
    request: PlanRequest, instance: DatabaseInstance, planned: InstancePlan, short: int, missing: Missing
) -> FitOption | None:
    """The largest buffer pool of one instance with which the plan fits, in its engine's step; None where none does.

    What a pool takes beside its plan is known without planning it, so the size is worked out first; two plans show that
    it fits and one step above does not. Only where they do not is every size on the way planned.
    """
    engine = engine_named(instance.engine)
    setting, asked = engine.pool_setting, planned.demand.pool_bytes
    if setting is None or not asked:
        return None
    fixed = replace(instance, pool_min_bytes=None, pool_max_bytes=None)

    def lacks(buffer_pool_bytes: int) -> int:
        return _lacks(request, with_pool(fixed, buffer_pool_bytes), missing)

    def cost(buffer_pool_bytes: int) -> int:
        try:
            demand = demand_at(with_pool(fixed, buffer_pool_bytes), planned.demand.page_bytes, context)
        except PlannerError:
            return request.node.mem_total_bytes
        pages = demand.pages + (most_slack_pages(demand, numa_nodes, request.policy) if planned.page_bytes else 0)
        own = pages * demand.page_bytes if planned.page_bytes else demand.segment_bytes
        own += sum(size * pages for size, pages in demand.also_pages)
        return own + instance_tables(request.node, demand, fixed.workload).bytes

    def would_lack(buffer_pool_bytes: int) -> int:
        return max(0, cost(buffer_pool_bytes) - room)

    context = DemandContext.of_node(request.node)
    numa_nodes = 1 if instance.numa_node is not None else len(request.node.numa)
    least, step = min(asked, request.node.mem_total_bytes), engine.pool_step_bytes
    room = cost(asked) - short
    found = largest_that_fits(would_lack, least, step) if step < _FINE_BYTES else 0
    if not found or lacks(found) or (found + step <= least and not lacks(found + step)):
        found = _in_steps(lacks, cost, least, _COARSE_BYTES)
        found = _in_steps(lacks, cost, min(least, found + _COARSE_BYTES), _FINE_BYTES)
        if step < _FINE_BYTES:
            found = largest_that_fits(lacks, min(least, found + _FINE_BYTES), step)
    if not found:
        return None
    value = with_pool(fixed, found).settings[setting]
    return FitOption(
        kind="pool",
        text=(
            f"The largest {setting} of {instance.name} that fits is {exact_bytes(found)}"
            f" (in steps of {exact_bytes(step)})."
        ),
        instance=instance.name,
        setting=setting,
        value=value,
        pool_bytes=found,
    )


def _in_steps(lacks: Callable[[int], int], cost: Callable[[int], int], asked: int, unit: int) -> int:
    """The largest multiple of ``unit`` that fits, also where a larger pool takes less memory than a smaller one.

    Pools in chunks rise in steps and now and then fall: whatever takes less than the first size that does not fit is
    tried, the largest first.
    """
    found = largest_that_fits(lacks, asked, unit)
    if found + unit > asked:
        return found
    # With nothing found, the smallest size that does not fit is the first.
    limit = cost(found + unit)
    for size in range(asked // unit * unit, found + unit, -unit):
        if cost(size) < limit and not lacks(size):
            return size
    return found


def largest_that_fits(lacks: Callable[[int], int], asked: int, unit: int) -> int:
    """The largest multiple of ``unit``, at most ``asked``, for which ``lacks`` is 0; 0 where there is none.

    What lacks falls by about a byte per byte of pool: the size is taken down by what lacks until it fits, then up in
    steps that double, and what is between the last two is halved. A handful of plans instead of one per halving.
    """
    high = asked // unit + 1  # in units; does not fit, or is more than was asked
    low = 0
    at = high - 1
    down = 1
    while at > low:
        short = lacks(at * unit)
        if not short:
            low = at
            break
        high = at
        # Pools in larger units do not shrink by a byte per byte: steps double, and at least one unit stays to be tried.
        at = min(max(at - down, int(at > 1)), max(1, at - short // unit))
        down *= 2
    step = 1
    while low and high - low > 1:
        at = min(low + step, (low + high) // 2) if low + step >= high else low + step
        if lacks(at * unit):
            high = at
        else:
            low, step = at, 2 * step
    return low * unit


def _fits(request: PlanRequest, changed: DatabaseInstance, missing: Missing) -> bool:
    return _lacks(request, changed, missing) == 0


def _lacks(request: PlanRequest, changed: DatabaseInstance, missing: Missing) -> int:
    """Bytes that a plan with this instance instead misses; as much as the node has for what cannot be planned."""
    databases = tuple(changed if d.name == changed.name else d for d in request.databases)
    try:
        return missing(replace(request, databases=databases))
    except PlannerError:
        return request.node.mem_total_bytes
