"""Databases that run on the node: which of them the scenario describes, and all of them as instances to start from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hugeplan.planner.demand import ENGINES, DemandContext, as_found, demand_of, engine_named, is_sized, lacks_size
from hugeplan.planner.demand.engines.postgresql_inputs import CHANGED, LOADED, libraries_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import MIB, DatabaseInstance, NodeFacts, NodeSample, ObservedDatabase, Workload, named
from hugeplan.planner.observation.server_owners import ServerOwners
from hugeplan.planner.pages import ceil_pages
from hugeplan.planner.units import format_bytes

_TELLING_PAGE_BYTES: Final = 2 * MIB

# What runs may be so much larger than its settings come to: pages rounded up, memory that a rule counts by the way.
EXPLAINED_FACTOR: Final = 1.25
_EXPLAINED_BYTES: Final = 256 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An instance of the scenario and the observed database that it describes."""

    instance: str
    database: ObservedDatabase
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Matched databases, and what could not be decided."""

    matched: tuple[Match, ...]
    notes: tuple[str, ...]


def canonical_engine(name: str) -> str:
    """The registry's name of an engine; an engine that it does not know keeps its own."""
    try:
        return engine_named(name).name
    except PlannerError:
        return name


def match_databases(instances: Sequence[DatabaseInstance], sample: NodeSample, context: DemandContext) -> Matches:
    """By ``runs_as`` or by name, then the only one of its engine, then the only one with the same buffer pool.

    One that a user of the node, or another pod, may have made look so is matched where it is named.
    A database whose size is not known is matched with none: nothing is planned for it, so what its server holds stays
    among what others hold.
    """
    databases, owners = sample.databases or (), ServerOwners.of(sample)
    unsized = {i.name for i in instances if lacks_size(engine_named(i.engine), i)}
    found: dict[str, Match] = {}
    left = {database.key: database for database in databases}
    for index, instance in enumerate(instances):
        wanted = instance.runs_as or (instance.name if instance.name in left else None)
        if wanted is None:
            continue
        database = left.pop(wanted, None)
        if database is None:
            known = named(d.key for d in databases) or "none was recognised"
            raise PlannerError(f"databases[{index}].runs_as", wanted, f"a database of the sample, each once: {known}")
        if instance.name not in unsized:
            found[instance.name] = Match(instance=instance.name, database=database, why="named in the scenario")
    notes: list[str] = []
    open_instances = [i for i in instances if i.name not in found and i.name not in unsized]
    for engine in dict.fromkeys(canonical_engine(i.engine) for i in open_instances):
        described = [i for i in open_instances if canonical_engine(i.engine) == engine]
        running = [d for d in left.values() if canonical_engine(d.engine) == engine]
        if not running:
            continue
        for match in _pairs(described, running, context, owners):
            found[match.instance] = match
            del left[match.database.key]
        unclear = [i.name for i in described if i.name not in found]
        if unclear and any(d.key in left for d in running):
            beside = [f"{d.key}: {server_name(d, owners.pod_of(d.key, d.unit))}" for d in running if d.key in left]
            notes.append(
                f"{named(unclear)}: counted beside the {engine} that runs; if one of them is it, say so with runs_as"
                f" ({named(beside)})"
            )
    for database in databases if all(i.runs_as for i in instances) else ():
        rule = ENGINES.get(canonical_engine(database.engine))
        if rule is None or (database.key not in left and rule.size_setting not in database.settings):
            continue  # planned as it is set
        name = server_name(database, owners.pod_of(database.key, database.unit))
        why = _as_planned(database, name, context)[1]
        notes += [] if why is None else [f"{name}: {why}"]
    return Matches(
        matched=tuple(found[i.name] for i in instances if i.name in found),
        notes=tuple(notes),
    )


def _pairs(
    described: Sequence[DatabaseInstance],
    running: Sequence[ObservedDatabase],
    context: DemandContext,
    owners: ServerOwners,
) -> Iterator[Match]:
    running = [d for d in running if any(owners.may_be(instance, d) for instance in described)]
    if len(described) == len(running) == 1:
        why = f"the only {canonical_engine(running[0].engine)} that it may be"
        yield Match(instance=described[0].name, database=running[0], why=why)
        return
    pools = {d.key: pool_bytes_of(as_instance(d, d.key, context), context) for d in running}
    sizes = [pool_bytes_of(instance, context) for instance in described]
    same = [
        [d for d in running if size is not None and pools[d.key] == size and owners.may_be(instance, d)]
        for instance, size in zip(described, sizes, strict=True)
    ]
    rivals = Counter(d.key for fitting in same for d in fitting)
    for instance, fitting in zip(described, same, strict=True):
        if len(fitting) == 1 == rivals[fitting[0].key]:
            yield Match(instance=instance.name, database=fitting[0], why="the only one with this buffer pool")


def pool_bytes_of(instance: DatabaseInstance, context: DemandContext) -> int | None:
    """Bytes of its buffer pool by its engine's rule; None where the rule cannot tell."""
    try:
        return demand_of(instance, context.base_page_bytes, context).pool_bytes
    except PlannerError:
        return None


def pages_of(database: ObservedDatabase, default_page_bytes: int) -> Mapping[int, int] | None:
    """Huge pages that a database maps or has reserved, by page size. None when its mappings could not be read."""
    pools = [s for s in database.segments if s.backing == "hugetlb"]
    if pools:
        pages: dict[int, int] = {}
        for segment in pools:
            size = segment.page_bytes or default_page_bytes
            pages[size] = pages.get(size, 0) + ceil_pages(segment.bytes, size)
        return pages
    if database.hugetlb_bytes is None:
        return None
    mapped = ceil_pages(database.hugetlb_bytes, default_page_bytes)
    return {default_page_bytes: mapped} if mapped else {}


def require_size_known(instances: Sequence[DatabaseInstance], matches: Sequence[Match], context: DemandContext) -> None:
    """A default is no size where the running server shows another one: a plan for it would take the server's pages.

    Raises PlannerError that names the setting of an instance that does not give its buffer pool's size, although the
    server that it describes maps more than the engine's default comes to.
    """
    running = {match.instance: match.database for match in matches}
    for index, instance in enumerate(instances):
        database = running.get(instance.name)
        setting = None if database is None else engine_named(instance.engine).pool_setting
        if database is None or setting is None or _is_given(setting, instance):
            continue
        try:
            by_rule = demand_of(instance, context.base_page_bytes, context).segment_bytes
        except PlannerError:
            continue
        mapped = mapped_bytes(database, context.default_huge_page_bytes)
        if mapped > by_rule * EXPLAINED_FACTOR + _EXPLAINED_BYTES:
            raise PlannerError(
                f"databases[{index}].settings.{setting}",
                "not known",
                f"the size that {instance.name} runs with: it maps {format_bytes(mapped)}, and with the settings that"
                f" were read it would map {format_bytes(by_rule)}",
            )


def _is_given(setting: str, instance: DatabaseInstance) -> bool:
    return setting.lower() in {name.lower().replace("-", "_") for name in instance.settings}


def mapped_bytes(database: ObservedDatabase, default_page_bytes: int) -> int:
    """Huge pages of a pool that a database maps; on base pages its largest segment. 0 where nothing was read."""
    pages = pages_of(database, default_page_bytes)
    if pages:
        return sum(size * count for size, count in pages.items())
    return max((segment.bytes for segment in database.segments), default=0)


def runs_on_base_pages(database: ObservedDatabase, default_page_bytes: int) -> bool:
    """Whether it is known that no huge page of a pool backs the running server."""
    return database.huge_pages_status == "off" or pages_of(database, default_page_bytes) == {}


def pages_as_set(database: ObservedDatabase, context: DemandContext) -> Mapping[int, int]:
    """Huge pages that a running server's settings come to, where its mappings could not be read; none where it says no.

    A server whose status is not known may have fallen back to base pages: whoever uses this says that it is a guess.
    """
    if database.huge_pages_status == "off":
        return {}
    instance = as_instance(database, database.key, context)
    size = instance.page_bytes or context.default_huge_page_bytes
    rule = ENGINES.get(instance.engine)
    if rule is None or rule.ruled_out(instance) is not None:
        return {}
    try:
        demand = demand_of(instance, size, context)
    except PlannerError:
        return {}
    return {size: demand.pages} if demand.wants_pool and demand.pages else {}


def server_name(database: ObservedDatabase, pod: str | None = None) -> str:
    """A running server as a person calls it: ``PostgreSQL on port 5432 (PID 812, data directory /srv/pg)``."""
    engine = canonical_engine(database.engine)
    title = ENGINES[engine].title if engine in ENGINES else database.engine
    on_port = "" if database.port is None else f" on port {database.port}"
    known = [
        "" if database.pid is None else f"PID {database.pid}",
        "" if database.place is None else f"data directory {database.place.data_directory}",
    ]
    rest = ", ".join(part for part in known if part)
    return f"{title}{on_port}{f' ({rest})' if rest else ''}{f' in {pod}' if pod else ''}"


def as_it_runs(sample: NodeSample, context: DemandContext) -> tuple[DatabaseInstance, ...]:
    """The recognised databases of a sample as instances, ready to plan; engines without rules are left out.

    So is one that no plan takes, beside others: what it holds stays among what others hold, and a plan's notes say why.
    """
    names = instance_names([d for d in sample.databases or () if canonical_engine(d.engine) in ENGINES])
    running = [d for d in sample.databases or () if d.key in names]
    found = [_as_planned(d, names[d.key], context)[0] for d in running]
    if not any(found):
        found = [as_instance(d, names[d.key], context) for d in running]
    return tuple(one for one in found if one is not None)


def _as_planned(
    database: ObservedDatabase, name: str, context: DemandContext
) -> tuple[DatabaseInstance | None, str | None]:
    """A running server as a plan of its node takes it, and why it is not planned as it is set. None where none does."""
    instance = as_instance(database, name, context)
    if instance.engine not in ENGINES:
        return None, None
    try:
        demand_of(instance, context.base_page_bytes, context)
        if not lacks_size(ENGINES[instance.engine], instance):
            require_size_known((instance,), (Match(instance=name, database=database, why=""),), context)
    except PlannerError as error:
        setting = error.field.rpartition(".")[2]
        return None, f"not planned, it counts as a workload: {setting} is {error.value}; expected {error.expected}"
    return as_found(instance, context)


def instance_names(databases: Sequence[ObservedDatabase]) -> dict[str, str]:
    """Names by key: the engine where one of it runs, else with its port, else with its PID, else with its place."""
    names: dict[str, str] = {}
    for engine in dict.fromkeys(canonical_engine(d.engine) for d in databases):
        own = [d for d in databases if canonical_engine(d.engine) == engine]
        if len(own) == 1:
            names[own[0].key] = engine
            continue
        for place, database in enumerate(own, 1):
            alone = database.port is not None and [d.port for d in own].count(database.port) == 1
            tail = f"{database.port}" if alone else f"pid-{database.pid}" if database.pid is not None else f"{place}"
            names[database.key] = f"{engine}-{tail}"
    return names


def as_instance(database: ObservedDatabase, name: str, context: DemandContext) -> DatabaseInstance:
    """One observed database as an instance, with the settings that its engine's rule knows and accepts."""
    engine = canonical_engine(database.engine)
    rule = ENGINES.get(engine)
    known = set() if rule is None else {spec.name for spec in rule.settings}
    instance = DatabaseInstance(
        name=name,
        engine=engine,
        version=database.version,
        # A name with a dot is an extension's: the rule knows some of them, and refuses the others below.
        settings={key: value for key, value in database.settings.items() if key in known or "." in key},
        workload=Workload(active_connections=database.clients),
        runs_as=database.key,
        memory_limit_bytes=limit_of(database),
    )
    accepted = _accepted(instance, context)
    if rule is not None and not is_sized(rule, accepted):
        refused = instance.settings.keys() - accepted.settings.keys()
        if not rule.has_default_size or not refused.isdisjoint((*rule.sized_by, rule.shared_by)):
            accepted = replace(accepted, unread_settings=rule.sized_by[:1])
    return replace(accepted, extension_bytes=_extension_bytes(database, accepted, context))


def may_allocate_on(database: ObservedDatabase | None, node: NodeFacts) -> tuple[int, ...]:
    """The NUMA nodes with memory that a running server may allocate from; empty: all of them, or unknown."""
    with_memory = [numa.id for numa in node.numa if numa.mem_total_bytes]
    found = () if database is None else tuple(sorted({*with_memory}.intersection(database.allowed_numa_nodes)))
    return found if len(found) < len(with_memory) else ()


def limit_of(database: ObservedDatabase) -> int | None:
    """The limit in bytes of the memory that a running server sees; None where it has none, or none is known."""
    limit = database.memory_limit_bytes
    return None if limit is None or limit < 0 else limit


def _extension_bytes(database: ObservedDatabase, instance: DatabaseInstance, context: DemandContext) -> int | None:
    """What the running segment holds beyond the rule: libraries of others. None where it was not read, or is less, or
    where it is not known that the server runs with all that its files name for the next start.

    The kernel rounds a mapping up to its page size, so one on gigantic pages says nothing of a few MiB.
    """
    known = [s.bytes for s in database.segments if (s.page_bytes or 0) <= _TELLING_PAGE_BYTES]
    names = libraries_of(instance.settings.get("shared_preload_libraries", ""))
    if not known or not names or database.settings.get(CHANGED) != "no":
        return None
    if not {*names} <= {*libraries_of(database.settings.get(LOADED, ""))}:
        return None
    try:
        beyond = max(known) - demand_of(instance, context.base_page_bytes, context).segment_bytes
    except PlannerError:
        return None
    return beyond if beyond > 0 else None


def _accepted(instance: DatabaseInstance, context: DemandContext) -> DatabaseInstance:
    """The instance without what its rule refuses: a version it does not know, a value it cannot read."""
    for _ in range(len(instance.settings) + 2):
        try:
            demand_of(instance, context.base_page_bytes, context)
        except PlannerError as error:
            setting = error.field.removeprefix("settings.")
            if setting in instance.settings:
                kept = {key: value for key, value in instance.settings.items() if key != setting}
                instance = replace(instance, settings=kept)
            elif error.field == "version" and instance.version is not None:
                instance = replace(instance, version=None)
            else:
                return instance
        else:
            return instance
    return instance
