"""The starting point of a plan: an observed node as parts, workloads, matched databases and huge pages in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import (
    DatabaseInstance,
    NodeFacts,
    NodeSample,
    ObservedDatabase,
    ObservedTenant,
    PlanRequest,
)
from hugeplan.planner.observation.databases import (
    Match,
    Matches,
    as_instance,
    limit_of,
    match_databases,
    may_allocate_on,
    pages_as_set,
    pages_of,
    pool_bytes_of,
    require_size_known,
    runs_on_base_pages,
)
from hugeplan.planner.observation.parts import NodeParts, node_parts
from hugeplan.planner.observation.pools import PoolKey, PoolState, pool_states
from hugeplan.planner.observation.told_apart import page_tables_of, with_estimates
from hugeplan.planner.observation.workloads import workloads_of
from hugeplan.planner.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a plan knows of the node as it is.

    ``page_tables_bytes`` are those that stay whatever is planned: of all but the described servers on base pages.
    ``numa_weights``: in which proportion the node's memory outside pools is used on each NUMA node. ``own_pages``: huge
    pages of the matched databases by page size, None where their mappings could not be read.
    """

    sample: NodeSample
    parts: NodeParts
    page_tables_bytes: int
    numa_weights: tuple[int, ...]
    observed: tuple[ObservedTenant, ...]
    matched: tuple[Match, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerPages:
    """Huge pages of one size of a running server. ``numa_nodes``: where it may allocate; empty: all, or not known."""

    server: str
    page_bytes: int
    pages: int
    numa_nodes: tuple[int, ...]
    is_own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesInUse:
    """Huge pages that must stay: all pools, what each running server has of them, and who holds those of others.

    Pages in use that are not known to be a matched database's are somebody else's: a plan keeps them beside its own.
    ``guessed``: matched databases whose mappings could not be read; their own pages are what their settings come to.
    """

    pools: Mapping[PoolKey, PoolState]
    servers: tuple[ServerPages, ...]
    holders: Mapping[int, tuple[str, ...]]
    guessed: tuple[str, ...] = ()


def started(request: PlanRequest) -> tuple[PlanRequest, Start | None]:
    """The request with the observed workloads among its own, and the starting point; None without an observation."""
    sample, node = request.sample, request.node
    if sample is None or (sample.memory is None and sample.databases is None):
        return request, None
    request, matches = _matches(request, sample)
    if sample.memory is None:
        return request, None
    pools = pool_states(node, sample)
    parts = node_parts(node, sample.memory, {key: state.pages for key, state in pools.items()})
    if parts is None:
        return request, None
    context = DemandContext.of_node(node)
    estimated = with_estimates(matches.matched, sample.memory, pools, context)
    found = workloads_of(request, sample, parts.ordinary_bytes, estimated)
    # A server that is on huge pages keeps the tables it has: none of them come back.
    on_base = [m.database for m in matches.matched if runs_on_base_pages(m.database, node.default_huge_page_bytes)]
    own_tables = page_tables_of(on_base, sample.memory, parts.ordinary_bytes, context)
    guessed = tuple(
        f"{m.instance}: its page tables were not reported apart; {format_bytes(size)}, an estimate, are its own"
        for m in matches.matched
        if m.database.page_tables_bytes is None and (size := own_tables.get(m.database.key))
    )
    start = Start(
        sample=sample,
        parts=parts,
        page_tables_bytes=max(0, parts.page_tables_bytes - sum(size or 0 for size in own_tables.values())),
        numa_weights=_numa_weights(node, pools),
        observed=found.observed,
        matched=matches.matched,
        notes=(*parts.notes, *found.notes, *guessed, *matches.notes),
    )
    request = replace(request, databases=_as_measured(request.databases, matches.matched, node, own_tables))
    if request.observed.include:
        request = replace(request, tenants=(*found.tenants, *request.tenants))
    return replace(request, sample=_with_instances(sample, matches.matched)), start


def _as_measured(
    databases: Sequence[DatabaseInstance],
    matched: Sequence[Match],
    node: NodeFacts,
    own_tables: Mapping[str, int | None],
) -> tuple[DatabaseInstance, ...]:
    """Databases with what the running servers tell: how many clients work, what libraries take, page tables, walks."""
    running = {match.instance: match.database for match in matched}
    context = DemandContext.of_node(node)

    def told(database: DatabaseInstance) -> DatabaseInstance:
        server = running.get(database.name)
        if server is None:
            return database
        if server.clients and database.workload.active_connections is None:
            database = replace(database, workload=replace(database.workload, active_connections=server.clients))
        runs = as_instance(server, server.key, context)
        # It belongs to the libraries that run; other ones leave it unknown.
        if database.extension_bytes is None and _libraries(database) == _libraries(runs):
            database = replace(database, extension_bytes=runs.extension_bytes)
        if server.key not in own_tables:
            return database
        walks = server.walks if server.walks and _is_as_large(database, server, context) else None
        return replace(database, page_tables_now_bytes=own_tables[server.key], walks_now=walks)

    return tuple(told(database) for database in databases)


def _libraries(database: DatabaseInstance) -> str | None:
    return database.settings.get("shared_preload_libraries")


def _is_as_large(database: DatabaseInstance, server: ObservedDatabase, context: DemandContext) -> bool:
    """Whether what was counted while a server ran is true of the planned one: a larger pool walks more."""
    planned, runs = (pool_bytes_of(each, context) for each in (database, as_instance(server, server.key, context)))
    return planned is not None and runs is not None and planned <= runs


def _with_instances(sample: NodeSample, matched: Sequence[Match]) -> NodeSample:
    """The sample with each process of a matched database under its name in the scenario."""
    if sample.processes is None:
        return sample
    names = {match.database.key: match.instance for match in matched}
    return replace(
        sample,
        processes=tuple(
            process if process.database not in names else replace(process, instance=names[process.database])
            for process in sample.processes
        ),
    )


def _matches(request: PlanRequest, sample: NodeSample) -> tuple[PlanRequest, Matches]:
    """Whom the databases are, and the request with the limits of memory that those see and where they are bound."""
    context = DemandContext.of_node(request.node)
    matches = match_databases(request.databases, sample, context)
    limits = {match.instance: limit_of(match.database) for match in matches.matched}
    own = {match.instance: may_allocate_on(match.database, request.node) for match in matches.matched}
    unbound = [one.name for one in request.databases if one.numa_node is None and own.get(one.name)]
    bound = {name: own[name][0] for name in unbound if len(own[name]) == 1}
    seen = tuple(
        replace(
            one,
            memory_limit_bytes=limits.get(one.name),
            numa_node=bound.get(one.name, one.numa_node),
            allowed_numa_nodes=own.get(one.name, ()),
        )
        for one in request.databases
    )
    require_size_known(seen, matches.matched, context)
    notes = tuple(
        f"{name}: on NUMA node {' and '.join(map(str, own[name]))} alone, as its server is bound there"
        " (/proc/PID: Mems_allowed_list, numa_maps)"
        for name in unbound
    )
    return replace(request, databases=seen), replace(matches, notes=(*matches.notes, *notes))


def _numa_weights(node: NodeFacts, pools: Mapping[PoolKey, PoolState]) -> tuple[int, ...]:
    """Memory in use outside pools on each NUMA node; where free memory is not known, all memory outside pools."""
    outside = {numa.id: numa.mem_total_bytes for numa in node.numa}
    for (numa_id, page_bytes), state in pools.items():
        outside[numa_id] -= state.pages * page_bytes
    known = all(numa.mem_free_bytes is not None for numa in node.numa)
    used = {n.id: max(0, outside[n.id] - (n.mem_free_bytes or 0 if known else 0)) for n in node.numa}
    return tuple(used[numa.id] for numa in node.numa)


def pages_in_use(request: PlanRequest, start: Start | None) -> PagesInUse:
    """Whose the huge pages in use are. Without processes of the node nobody is known, and no page is anybody's own."""
    pools = pool_states(request.node, request.sample)
    sample = request.sample
    if sample is None or sample.databases is None:
        return PagesInUse(pools=pools, servers=(), holders={})
    matched = start.matched if start is not None else _matches(request, sample)[1].matched
    default = request.node.default_huge_page_bytes
    servers = []
    numa_of = {database.name: database.numa_node for database in request.databases}
    guessed = []
    for match in matched:
        # Where it runs now, which a plan may change.
        bound = numa_of.get(match.instance)
        within = may_allocate_on(match.database, request.node) or (() if bound is None else (bound,))
        pages = pages_of(match.database, default)
        if pages is None:
            pages = pages_as_set(match.database, DemandContext.of_node(request.node))
            guessed += [match.instance] if pages else []
        servers += [ServerPages(match.instance, size, count, within, is_own=True) for size, count in pages.items()]
    ours = {match.database.key for match in matched}
    holders: dict[int, list[str]] = {}
    for database in sample.databases:
        within = may_allocate_on(database, request.node)
        for size, count in (pages_of(database, default) or {}).items():
            if count and database.key not in ours:
                holders.setdefault(size, []).append(database.key)
                servers.append(ServerPages(database.key, size, count, within, is_own=False))
    for process in sample.processes or ():
        held = (process.shared_hugetlb_bytes or 0) + (process.private_hugetlb_bytes or 0)
        if held and process.database is None and process.name not in holders.get(default, ()):
            holders.setdefault(default, []).append(process.name)
    return PagesInUse(
        pools=pools,
        servers=tuple(servers),
        holders={size: tuple(names) for size, names in holders.items()},
        guessed=tuple(guessed),
    )
