"""Now -> planned: the ledger of the node as observed, and what the plan changes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hugeplan.planner.memory.claims import observed_claims
from hugeplan.planner.memory.ledger import Claim, build_ledger
from hugeplan.planner.model import (
    DatabaseMatch,
    Difference,
    Explanation,
    InstancePlan,
    Ledger,
    LedgerKind,
    MemoryChange,
    NodeFacts,
    ObservedDatabase,
    PoolChange,
    PoolPlan,
    Source,
    StartingPoint,
    named,
)
from hugeplan.planner.observation.pools import PoolKey, PoolState
from hugeplan.planner.observation.start import Start
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

_WORKLOAD = Explanation("anonymous + shared memory", (), "the sample")
_RECLAIMABLE = Explanation("Buffers + Cached - Shmem + SReclaimable", (), "the sample")


def starting_point(node: NodeFacts, start: Start, pools: Mapping[PoolKey, PoolState]) -> StartingPoint:
    """The node as it is: the same parts as a plan's ledger, at the bytes that the sample saw."""
    memory = start.sample.memory
    return StartingPoint(
        taken_at_seconds=start.sample.taken_at_seconds,
        available_bytes=None if memory is None else memory.mem_available_bytes,
        ledger=_ledger_now(node, start, pools),
        tenants=start.observed,
        matches=tuple(
            DatabaseMatch(instance=m.instance, key=m.database.key, why=m.why, in_pool_bytes=in_pool_bytes(m.database))
            for m in start.matched
        ),
        notes=start.notes,
    )


def _ledger_now(node: NodeFacts, start: Start, pools: Mapping[PoolKey, PoolState]) -> Ledger:
    claims = observed_claims(node, start, page_tables_bytes=start.parts.page_tables_bytes)
    claims += [_claim(LedgerKind.TENANTS, item.name, item.now_bytes, start, _WORKLOAD) for item in start.observed]
    reclaimable = "page cache and reclaimable slab"
    claims.append(_claim(LedgerKind.RECLAIMABLE, reclaimable, start.parts.reclaimable_bytes, start, _RECLAIMABLE))
    present = [
        PoolPlan(
            numa_node=numa_id,
            page_bytes=page_bytes,
            demand_pages=state.kept,
            slack_pages=state.pages - state.kept,
            pages=state.pages,
            present_pages=state.pages,
        )
        for (numa_id, page_bytes), state in sorted(pools.items())
    ]
    return build_ledger(node, claims, present)


def _claim(kind: LedgerKind, name: str, size: int, start: Start, explanation: Explanation) -> Claim:
    return Claim(kind, name, size, None, Source.MEASURED, explanation, start.numa_weights)


def difference(
    now: StartingPoint,
    ledger: Ledger,
    pools: Sequence[PoolPlan],
    *,
    states: Mapping[PoolKey, PoolState],
    moves: Sequence[str],
) -> Difference:
    """What changes between the node as observed and the plan; ``moves`` are :func:`segment_moves`."""
    before, after = _by_kind(now.ledger), _by_kind(ledger)
    return Difference(
        pools=tuple(_pool_change(pool, states) for pool in pools),
        memory=tuple(
            MemoryChange(kind=kind, now_bytes=before.get(kind, 0), planned_bytes=after.get(kind, 0))
            for kind in LedgerKind
            if kind in before or kind in after
        ),
        moves=(*_pool_moves(pools, states), *moves),
    )


def _by_kind(ledger: Ledger) -> dict[LedgerKind, int]:
    """Bytes of each kind that the ledger has, over all NUMA nodes."""
    found: dict[LedgerKind, int] = {}
    for part in ledger.parts:
        found[part.kind] = found.get(part.kind, 0) + part.bytes
    return found


def _pool_change(pool: PoolPlan, states: Mapping[PoolKey, PoolState]) -> PoolChange:
    state = states.get((pool.numa_node, pool.page_bytes))
    return PoolChange(
        numa_node=pool.numa_node,
        page_bytes=pool.page_bytes,
        now_pages=pool.present_pages,
        in_use_pages=None if pool.present_pages is None else (0 if state is None else state.in_use),
        held_pages=pool.held_pages,
        held_by=pool.held_by,
        planned_pages=pool.pages,
    )


def _pool_moves(pools: Sequence[PoolPlan], states: Mapping[PoolKey, PoolState]) -> list[str]:
    found = []
    for pool in pools:
        if pool.present_pages is None:
            continue
        label = f"{page_label(pool.page_bytes)} pool on NUMA node {pool.numa_node}"
        counts = f"{pool.present_pages:,} -> {pool.pages:,} pages"
        moved = format_bytes(abs(pool.pages - pool.present_pages) * pool.page_bytes)
        if pool.pages > pool.present_pages:
            found.append(f"{label}: {counts}, {moved} are taken from ordinary memory")
        elif pool.pages < pool.present_pages:
            found.append(f"{label}: {counts}, {moved} of free pages return to ordinary memory")
        if pool.held_pages:
            state = states.get((pool.numa_node, pool.page_bytes))
            why = "whether they are in use is not known" if state is not None and state.in_use is None else "in use"
            who = f" by {named(pool.held_by)}" if pool.held_by else " by what the scenario does not describe"
            found.append(f"{label}: {pool.held_pages:,} pages stay, {why}{who if why == 'in use' else ''}")
    return found


def in_pool_bytes(database: ObservedDatabase) -> int:
    """What of an observed database's segments lies in huge page pools."""
    return sum(s.bytes for s in database.segments if s.backing == "hugetlb") or (database.hugetlb_bytes or 0)


def segment_moves(instances: Sequence[InstancePlan], start: Start) -> list[str]:
    """Where the segments of databases that run now will lie."""
    planned = {item.name: item for item in instances}
    found = []
    for match in start.matched:
        item = planned[match.instance]
        in_pool = in_pool_bytes(match.database)
        size = format_bytes(item.demand.segment_bytes)
        if item.page_bytes is not None and not in_pool:
            found.append(f"{item.name}: its segment ({size}) moves from ordinary memory to the pool")
        elif item.page_bytes is None and in_pool:
            found.append(f"{item.name}: its segment ({size}) moves from the pool to ordinary memory")
        elif item.page_bytes is not None:
            found.append(
                f"{item.name}: its segment is in the pool now ({format_bytes(in_pool)}) and stays there ({size})"
            )
    return found
