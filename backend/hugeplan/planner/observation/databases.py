"""Databases that run on the node: which of them the scenario describes, and all of them as instances to start from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hugeplan.planner.demand import ENGINES, DemandContext, demand_of, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import DatabaseInstance, NodeSample, ObservedDatabase, Workload
from hugeplan.planner.pages import ceil_pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An instance of the scenario and the observed database that it describes."""

    instance: str
    database: ObservedDatabase
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Matched databases, observed ones that the scenario does not describe, and what could not be decided."""

    matched: tuple[Match, ...]
    unmatched: tuple[ObservedDatabase, ...]
    notes: tuple[str, ...]


def canonical_engine(name: str) -> str:
    """The registry's name of an engine; an engine that it does not know keeps its own."""
    try:
        return engine_named(name).name
    except PlannerError:
        return name


def match_databases(
    instances: Sequence[DatabaseInstance], databases: Sequence[ObservedDatabase], context: DemandContext
) -> Matches:
    """By ``runs_as`` or by name, then the only one of its engine, then the only one with the same buffer pool."""
    found: dict[str, Match] = {}
    left = {database.key: database for database in databases}
    for index, instance in enumerate(instances):
        wanted = instance.runs_as or (instance.name if instance.name in left else None)
        if wanted is None:
            continue
        database = left.pop(wanted, None)
        if database is None:
            known = ", ".join(d.key for d in databases) or "none was recognised"
            raise PlannerError(f"databases[{index}].runs_as", wanted, f"a database of the sample, each once: {known}")
        found[instance.name] = Match(instance=instance.name, database=database, why="named in the scenario")
    notes: list[str] = []
    open_instances = [i for i in instances if i.name not in found]
    for engine in dict.fromkeys(canonical_engine(i.engine) for i in open_instances):
        described = [i for i in open_instances if canonical_engine(i.engine) == engine]
        running = [d for d in left.values() if canonical_engine(d.engine) == engine]
        if not running:
            continue
        for match in _pairs(described, running, context):
            found[match.instance] = match
            del left[match.database.key]
        unclear = [i.name for i in described if i.name not in found]
        if unclear and any(d.key in left for d in running):
            names = ", ".join(unclear)
            notes.append(
                f"{names}: counted beside the {engine} that runs; if one of them is it, say so with runs_as"
                f" ({', '.join(d.key for d in running if d.key in left)})"
            )
    return Matches(
        matched=tuple(found[i.name] for i in instances if i.name in found),
        unmatched=tuple(left.values()),
        notes=tuple(notes),
    )


def _pairs(
    described: Sequence[DatabaseInstance], running: Sequence[ObservedDatabase], context: DemandContext
) -> Iterator[Match]:
    if len(described) == len(running) == 1:
        why = f"the only {canonical_engine(running[0].engine)} that runs"
        yield Match(instance=described[0].name, database=running[0], why=why)
        return
    pools = {d.key: _pool_bytes(as_instance(d, d.key, context), context) for d in running}
    for instance in described:
        size = _pool_bytes(instance, context)
        same = [d for d in running if size is not None and pools[d.key] == size]
        rivals = [i for i in described if _pool_bytes(i, context) == size]
        if len(same) == len(rivals) == 1:
            yield Match(instance=instance.name, database=same[0], why="the only one with this buffer pool")


def _pool_bytes(instance: DatabaseInstance, context: DemandContext) -> int | None:
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


def as_it_runs(sample: NodeSample, context: DemandContext) -> tuple[DatabaseInstance, ...]:
    """The recognised databases of a sample as instances, ready to plan; engines without rules are left out."""
    found: list[DatabaseInstance] = []
    for database in sample.databases or ():
        engine = canonical_engine(database.engine)
        if engine not in ENGINES:
            continue
        count = sum(i.engine == engine for i in found)
        found.append(as_instance(database, engine if count == 0 else f"{engine}-{count + 1}", context))
    return tuple(found)


def as_instance(database: ObservedDatabase, name: str, context: DemandContext) -> DatabaseInstance:
    """One observed database as an instance, with the settings that its engine's rule knows and accepts."""
    engine = canonical_engine(database.engine)
    rule = ENGINES.get(engine)
    known = set() if rule is None else {spec.name for spec in rule.settings}
    instance = DatabaseInstance(
        name=name,
        engine=engine,
        version=database.version,
        settings={key: value for key, value in database.settings.items() if key in known},
        workload=Workload(active_connections=database.clients),
        runs_as=database.key,
    )
    return _accepted(instance, context)


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
