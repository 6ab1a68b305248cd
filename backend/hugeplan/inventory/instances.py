"""From a recognised database to an instance that the planner takes: what it does not take is named, never dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from itertools import chain, count
from typing import Final

from hugeplan.inventory.model import FoundDatabase, FoundNode
from hugeplan.planner.demand import DemandContext, as_found, demand_of, engine_named, is_sized
from hugeplan.planner.errors import PlannerError, UnknownVersionError
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, NodeFacts, Tenant, named
from hugeplan.planner.printable import printable
from hugeplan.recognition import Recognised

Settings = tuple[tuple[str, str], ...]
_MAX_NAME: Final = 200
_PROBED: Final = DemandContext(mem_total_bytes=16 * GIB)  # of any memory: some engines take a share of it
MAX_DATABASES: Final = 256
"""Of a node in one plan: as many as a scenario has."""
TIMES_ITS_LIMITS: Final = 4
"""A database that may need more than so many times its limits counts with these alone."""


def free_name(used: set[str], *names: str) -> str:
    """The first of the names that is not used yet, else the last one with a number; it is used from now on.

    A scenario takes names of 1 to 200 characters, each once. A longer one is cut, and its digest tells it apart.
    """
    names = tuple(printable(name, len(name)) or "without a name" for name in names)
    short = [
        name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 13]} {sha256(name.encode()).hexdigest()[:12]}"
        for name in names
    ]
    numbered = (f"{short[-1][: _MAX_NAME - 10]} ({number})" for number in count(2))
    found = next(name for name in chain(short, numbered) if name not in used)
    used.add(found)
    return found


def within_most(node: FoundNode) -> tuple[FoundNode, tuple[FoundDatabase, ...]]:
    """The node with the databases that a plan takes, namespaces in turn and pods whole, and those that are left out.

    Huge pages of a pod that is left out stay its own. What no plan takes, and what is larger than the node or than its
    limits, is left out where there are databases of other namespaces.
    """
    several = len({found.namespace for found in node.databases}) > 1
    odd = {id(found) for found in node.databases if several and _is_odd(found, node.facts)}
    turns: Counter[str] = Counter()
    pods: dict[str, list[FoundDatabase]] = {}
    turn_of: dict[str, int] = {}
    for found in node.databases:
        if id(found) not in odd:
            turns[found.namespace] += 1
            turn_of[found.subject] = turns[found.namespace]
            pods.setdefault(found.subject, []).append(found)
    others = sum(len(user.limit_bytes) for user in node.huge_page_users)
    # Beside too many other users, each page size has one instance for those that are put together.
    are_too_many = node.huge_page_users and others + len(node.databases) > MAX_DATABASES
    room = MAX_DATABASES - (len(node.facts.huge_page_sizes_bytes) if are_too_many else 0)
    kept: set[int] = set()
    for subject in sorted(pods, key=lambda one: turn_of[one]):
        if len(kept) + len(pods[subject]) <= room:
            kept |= {id(found) for found in pods[subject]}
    left = tuple(found for found in node.databases if id(found) not in kept)
    context = DemandContext.of_node(node.facts)
    whys = ((found.subject, as_found(found.instance, context)[1]) for found in node.databases if id(found) in kept)
    unknown = (*node.unknown, *(f"database {subject}: {why}" for subject, why in whys if why is not None))
    if not left:
        return replace(node, unknown=unknown), ()
    notes = [
        f"databases {named(dict.fromkeys(found.subject for found in ones))}: {why}, so they count as workloads"
        for ones, why in (
            ([found for found in left if id(found) in odd], "beyond node or limits, or set as no plan takes it"),
            ([found for found in left if id(found) not in odd], f"more than the {MAX_DATABASES} that a plan takes"),
        )
        if ones
    ]
    gone = {found.subject for found in left} - {found.subject for found in node.databases if id(found) in kept}
    bounded = replace(
        node,
        databases=tuple(found for found in node.databases if id(found) in kept),
        huge_page_users=tuple(
            replace(user, is_database=False, hugetlbfs_mounts=tuple(user.limit_bytes)) if user.subject in gone else user
            for user in node.huge_page_users
        ),
        unknown=(*unknown, *notes),
    )
    return bounded, left


def _is_odd(found: FoundDatabase, facts: NodeFacts) -> bool:
    """Whether no plan takes a database, or it may need more than the node has, or many times what its pod may have.

    With all of its connections at work. That comes to more than the limits of many a real server, but not far.
    """
    room, limit = facts.mem_total_bytes, found.memory_limit_bytes
    if limit is not None:
        room = min(room, TIMES_ITS_LIMITS * (limit + sum((found.huge_pages_limit_bytes or {}).values())))
    try:
        need = demand_of(found.instance, facts.base_page_bytes, DemandContext.of_node(facts))
    except PlannerError:
        return True
    return need.without_connections_bytes + (need.connections or 0) * (need.private_bytes_per_connection or 0) > room


def database_instance(
    name: str,
    recognised: Recognised,
    huge_pages_limit_bytes: Mapping[int, int] | None,
    memory_limit_bytes: int | None,
) -> tuple[DatabaseInstance, tuple[str, ...]]:
    """The instance, and a sentence for each value that the planner could not take.

    ``huge_pages_limit_bytes`` is by page size: empty is known to be none, None is not known.
    """
    version, settings, refused = usable(recognised.engine, recognised.version, tuple(recognised.settings.items()))
    limit: int | None = None
    if huge_pages_limit_bytes is not None:
        # More than one size: which of them the plan's page size will meet is only known after planning.
        limit = 0 if not huge_pages_limit_bytes else None
        if len(huge_pages_limit_bytes) == 1:
            (limit,) = huge_pages_limit_bytes.values()
    if recognised.engine in {"redis", "mongodb", "sqlserver"} and not settings and memory_limit_bytes is not None:
        refused = (*refused, "memory of the engine: not in the input; the container's limit bounds it")
    instance = DatabaseInstance(
        name=name,
        engine=recognised.engine,
        version=version,
        settings=dict(settings),
        pod_hugepages_limit_bytes=limit,
        pod_memory_limit_bytes=memory_limit_bytes,
    )
    return replace(instance, unread_settings=_unread(instance, (*recognised.unknown, *refused))), refused


def _unread(instance: DatabaseInstance, unknown: Iterable[str]) -> tuple[str, ...]:
    """The setting of its size, where none is known and the source does not exclude that there is one.

    Whatever is unknown of a server may be the place that sets it, but for its version.
    """
    engine = engine_named(instance.engine)
    if not engine.sized_by or is_sized(engine, instance):
        return ()
    if not engine.has_default_size:
        return engine.sized_by[:1]
    return () if all(text.startswith("version") for text in unknown) else engine.sized_by[:1]


def tenant_of_unread(name: str, database: DatabaseInstance, use: Tenant, context: DemandContext) -> Tenant | None:
    """What a database whose size was not read uses, or asks for, beyond what its engine's default comes to.

    The plan counts the default by the engine's rule; what is left is counted like any other workload's memory.
    """
    if not database.unread_settings:
        return None
    try:
        counted = demand_of(database, context.base_page_bytes, context).without_connections_bytes
    except PlannerError:
        counted = 0  # the node is not planned then, and says why

    def beyond(size: int | None) -> int | None:
        return None if size is None else max(0, size - counted)

    history = use.history
    if history is not None:
        history = replace(history, used_bytes=tuple(max(0, used - counted) for used in history.used_bytes))
    if history is None and use.request_bytes is None and use.limit_bytes is None:
        return None  # nothing is known of it, and the plan says that
    return replace(
        use,
        name=f"{name} (beyond its engine's default; settings not read)",
        request_bytes=beyond(use.request_bytes),
        limit_bytes=beyond(use.limit_bytes),
        history=history,
    )


@lru_cache(maxsize=4096)
def usable(engine: str, version: str | None, settings: Settings) -> tuple[str | None, Settings, tuple[str, ...]]:
    """The version and the settings that the engine's rule takes, and a sentence for each that it does not.

    Settings without a meaning for memory are left out in silence: a server has hundreds of them.
    """
    found = engine_named(engine)
    known = {spec.name.lower().replace("-", "_"): spec.name for spec in found.settings}
    kept = {}
    for name, value in settings:
        own = known.get(name.lower().replace("-", "_").lstrip("_"))
        if own is not None:
            kept[own] = value
    refused: list[str] = []
    probe = DatabaseInstance(name="probe", engine=engine, unread_settings=found.sized_by[:1])
    for _ in range(len(kept) + 2):
        try:
            demand_of(replace(probe, version=version, settings=kept), 2 * MIB, _PROBED)
        except UnknownVersionError:
            refused.append(f"version {version}: no rule of its own; the rule of the newest known release is taken")
            version = None
        except PlannerError as error:
            name = error.field.removeprefix("settings.")
            if name not in kept:
                refused.append(f"settings: {error}")
                kept = {}
                continue
            instead = "the default is taken" if found.has_default_size else "it is left out"
            refused.append(f"{name} = {kept.pop(name)}: {error.expected} is expected; {instead}")
        else:
            break
    return version, tuple(kept.items()), tuple(refused)
