"""Running databases whose memory was not reported apart: how much of the node's ordinary memory is theirs.

An import or an old agent knows a server's settings and not its mappings. What its settings come to, less what can lie
in the huge pages in use, is on base pages among everything else; it is taken out as a stated estimate. Where the
settings do not say how large it is, or nobody read which databases run, a fit that rests on it is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hugeplan.planner.demand import ENGINES, DemandContext, demand_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    EVERYTHING_IN_USE,
    Demand,
    InstancePlan,
    Ledger,
    LedgerKind,
    LedgerPart,
    Meminfo,
    ObservedDatabase,
    ObservedSegment,
    PlanRequest,
)
from hugeplan.planner.observation.databases import Match, as_instance, canonical_engine, pages_as_set, pages_of
from hugeplan.planner.observation.pools import PoolKey, PoolState


def with_estimates(
    matched: Sequence[Match], memory: Meminfo, pools: Mapping[PoolKey, PoolState], context: DemandContext
) -> tuple[Match, ...]:
    """The matches, with an estimated segment on base pages for each server whose mappings were not reported."""
    in_use: dict[int, int] = {}
    for (_, size), state in pools.items():
        in_use[size] = in_use.get(size, 0) + state.kept
    return tuple(replace(match, database=_estimated(match.database, memory, in_use, context)) for match in matched)


def _estimated(
    database: ObservedDatabase, memory: Meminfo, in_use: dict[int, int], context: DemandContext
) -> ObservedDatabase:
    if database.shared_bytes is not None:
        return database
    if database.segments:
        return replace(database, segments=tuple(_touched(part, database, memory) for part in database.segments))
    demand = _demand_as_set(database, context)
    if demand is None:
        return database
    size = demand.segment_bytes
    pages = pages_of(database, context.default_huge_page_bytes)
    if pages is None:
        pages = pages_as_set(database, context)
    for page, count in pages.items():
        held = min(count, in_use.get(page, 0))
        in_use[page] = in_use.get(page, 0) - held
        size -= held * page
    return replace(
        database, segments=(_touched(ObservedSegment(bytes=max(0, size), backing="base_pages"), database, memory),)
    )


def _touched(segment: ObservedSegment, database: ObservedDatabase, memory: Meminfo) -> ObservedSegment:
    """A mapping on base pages holds no more than the node has of its kind: shared memory, or anonymous."""
    rule = ENGINES.get(canonical_engine(database.engine))
    if segment.backing == "hugetlb" or rule is None:
        return segment
    most = memory.shmem_bytes if rule.process_per_connection else memory.anon_pages_bytes
    return segment if most is None else replace(segment, bytes=min(segment.bytes, most))


def _demand_as_set(database: ObservedDatabase, context: DemandContext) -> Demand | None:
    """What a running server's settings come to; None where they do not give the size of its pool."""
    instance = as_instance(database, database.key, context)
    rule = ENGINES.get(instance.engine)
    if rule is None or rule.pool_setting is None or rule.pool_setting not in instance.settings:
        return None
    try:
        return demand_of(instance, context.base_page_bytes, context)
    except PlannerError:
        return None


def page_tables_of(
    databases: Sequence[ObservedDatabase], memory: Meminfo, ordinary_bytes: int, context: DemandContext
) -> dict[str, int | None]:
    """Page tables of each server that runs on base pages, by key: as read, else a share of the node's.

    The share is what a server's connections can have built. Together such servers have at most what the node has
    beyond one entry for each page of its ``ordinary_bytes``. None where nobody read the node's either.
    """
    most = {d.key: _most_tables_bytes(d, context) for d in databases if d.page_tables_bytes is None}
    others = sum(d.page_tables_bytes or 0 for d in databases) + _entries_bytes(ordinary_bytes, context)
    rest, total = max(0, (memory.page_tables_bytes or 0) - others), sum(most.values())
    shares = {key: size if total <= rest else rest * size // total for key, size in most.items()}
    guess: Mapping[str, int] = {} if memory.page_tables_bytes is None else shares
    return {d.key: guess.get(d.key, d.page_tables_bytes) for d in databases}


def _most_tables_bytes(database: ObservedDatabase, context: DemandContext) -> int:
    """The entries of all connections, each of which has touched the whole segment; 0 where its size is not known."""
    demand = _demand_as_set(database, context)
    if demand is None:
        return 0
    processes = (database.clients or demand.connections or 1) if demand.process_per_connection else 1
    return processes * _entries_bytes(demand.segment_bytes, context)


def _entries_bytes(size: int, context: DemandContext) -> int:
    """Page-table entries, of 8 bytes, that map so much memory once."""
    return size // context.base_page_bytes * 8


def perhaps_twice(request: PlanRequest, instances: Sequence[InstancePlan], ledger: Ledger) -> dict[str, int]:
    """Bytes by database that the ledger may hold twice: with the database, and among the workloads that were seen."""
    sample = request.sample
    if sample is None or sample.memory is None or not request.observed.include:
        whole = sum(part.bytes for part in ledger.parts if _is_everything(part))
        return {planned.name: min(whole, planned.demand.without_connections_bytes) for planned in instances if whole}
    context = DemandContext.of_node(request.node)
    seen = sum(part.bytes for part in ledger.parts if part.kind is LedgerKind.TENANTS)
    found: dict[str, int] = {}
    for planned in instances:
        server = request.server(planned.runs_as)
        if sample.databases is not None and (server is None or _is_apart(server, context)):
            continue
        found[planned.name] = min(seen, planned.demand.without_connections_bytes)
    return found


def _is_everything(part: LedgerPart) -> bool:
    """All memory in use, of an import that could not read whose it is: what databases hold is part of it."""
    return part.kind is LedgerKind.TENANTS and part.name == EVERYTHING_IN_USE


def _is_apart(server: ObservedDatabase, context: DemandContext) -> bool:
    known = server.shared_bytes is not None or bool(server.segments)
    return known or _demand_as_set(server, context) is not None
