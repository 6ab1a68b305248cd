"""Files beside each other: a segment against its pod's limit, limits against pools, pools against kubelets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hugeplan.lint.kinds.postgresql_conf import mode_of
from hugeplan.lint.model import (
    Context,
    Edit,
    EngineFact,
    KubeletFact,
    LimitFact,
    MemlockFact,
    PoolFact,
    Problem,
    Reading,
    attention,
    wrong,
)
from hugeplan.planner.demand import DemandContext, demand_of, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import DatabaseInstance, Demand
from hugeplan.planner.pages import counted_pages, kubernetes_resource_name, page_label
from hugeplan.planner.units import (
    format_bytes,
    format_kubernetes_bytes,
    parse_jvm_bytes,
    parse_mysql_bytes,
    parse_postgresql_bytes,
)

_RSVD: Final = "hugetlb cgroup controller: Documentation/admin-guide/cgroup-v2.rst HugeTLB; opencontainers/runc#4073"

BELOW: Final = wrong(
    "limit-below-segment",
    "A huge page limit below the engine's mapping is a silent fallback where the runtime limits reservations, "
    "and a crash once the cache is warm where it limits use only.",
    _RSVD,
)
MISSING: Final = wrong(
    "limit-missing", "A container without a huge page limit may use none: the limit of its cgroup is 0.", _RSVD
)
UNUSED: Final = wrong(
    "limit-unused",
    "Pages that a pod is given are kept from everybody else, whether its engine asks for them or not.",
    "kubernetes docs, Manage HugePages",
)
OTHER_SIZE: Final = wrong(
    "limit-of-another-size", "The limit must be of the page size that the engine asks for.", _RSVD
)
ABOVE_POOL: Final = wrong(
    "limits-above-pool",
    "A pod whose limit is above the node's pool is never scheduled.",
    "kubernetes docs, Manage HugePages: huge pages are allocatable resources",
)
SUM_ABOVE_POOL: Final = attention(
    "limits-sum-above-pool",
    "All pods of these files together need more pages than one node reserves.",
    "kubernetes docs, Manage HugePages",
)
PHANTOM: Final = attention(
    "kubelet-phantom-eviction",
    "The kubelet's memory.available counts idle and used huge pages as free, so "
    "eviction starts late by the whole pool.",
    "kubernetes#137984; feature gate HugepageAwareEviction (#138127)",
)
TWICE: Final = attention(
    "kubelet-eviction-takes-the-pool-twice",
    "evictionHard is subtracted from allocatable memory, which lacks the pools already; evictionSoft is not.",
    "kubernetes pkg/kubelet/nodestatus/setters.go; pkg/kubelet/cm/node_container_manager_linux.go",
)


MEMLOCK: Final = attention(
    "memlock-below-buffer-pool",
    "MySQL before 8.0.26 maps the buffer pool with shmget(SHM_HUGETLB), and every release the MyISAM key buffer: "
    "without a limit of locked memory above them it falls back to base pages.",
    "MySQL Reference Manual, Large Page Support: memlock; mm/hugetlb.c hugetlb_file_setup()",
)


def together(files: Sequence[Sequence[Reading]], context: Context) -> list[list[Problem]]:
    """Problems that only several parts show, one list per file."""
    found: list[list[Problem]] = [[] for _ in files]
    limits = [
        (i, fact)
        for i, readings in enumerate(files)
        for r in readings
        for fact in r.facts
        if isinstance(fact, LimitFact)
    ]
    pools = _pool_bytes(files, context)
    if limits:
        for i, readings in enumerate(files):
            for reading in readings:
                for fact in reading.facts:
                    if isinstance(fact, EngineFact):
                        _engine(i, fact, limits, found, context)
        _against_pools(limits, pools, found)
    engines = [f for readings in files for r in readings for f in r.facts if isinstance(f, EngineFact)]
    for i, readings in enumerate(files):
        for reading in readings:
            for fact in reading.facts:
                if isinstance(fact, MemlockFact):
                    _memlock(i, fact, engines, found)
                if isinstance(fact, KubeletFact):
                    _kubelet(i, fact, sum(pools.values()), found)
    return found


def _pool_bytes(files: Sequence[Sequence[Reading]], context: Context) -> dict[int, int]:
    """Bytes that the files reserve on one node, by page size.

    Files that reserve the same pool are ways to the same count, such as a command line and a unit for run time: the
    largest counts, not their sum. Counts of different NUMA nodes add up, in one file or in several.
    """
    default = context.default_page_bytes or context.pmd_bytes
    largest: dict[tuple[int, int | None], int] = {}
    for readings in files:
        own: dict[tuple[int, int | None], int] = {}
        for fact in (fact for reading in readings for fact in reading.facts if isinstance(fact, PoolFact)):
            pool = (fact.page_bytes or default, fact.numa_node)
            own[pool] = own.get(pool, 0) + fact.pages * pool[0]
        for pool, count in own.items():
            largest[pool] = max(largest.get(pool, 0), count)
    per_node: dict[int, int] = {}
    for (size, node), count in largest.items():
        per_node[size] = per_node.get(size, 0) + (0 if node is None else count)
    return {size: max(count, largest.get((size, None), 0)) for size, count in per_node.items()}


def _engine(
    file: int, fact: EngineFact, limits: Sequence[tuple[int, LimitFact]], found: list[list[Problem]], context: Context
) -> None:
    beside = _beside(fact, limits)
    if beside is None:
        return
    where, limit = beside
    wants = _wants(fact, limit, context)
    granted = {size: count for size, count in limit.hugepages if count}
    position = dict(fact.positions).get(_switch(fact.engine))
    if wants is None:
        if fact.engine == "jvm" and not granted and _asks(fact) is True:
            found[where].append(
                Problem(
                    rule=MISSING,
                    position=limit.position,
                    subject=limit.name,
                    message=f"{limit.name} has no huge page limit, but its JVM asks for huge pages for the whole heap.",
                    fix="Write hugepages-2Mi under limits, with room for heap and code cache, beside cpu or memory.",
                )
            )
        if granted and _is_off(fact):
            sizes = ", ".join(f"{format_bytes(count)} of {page_label(size)}" for size, count in granted.items())
            at, target = (position, file) if position is not None else (limit.position, where)
            found[target].append(
                Problem(
                    rule=UNUSED,
                    position=at,
                    subject=limit.name,
                    message=f"{limit.name} is given {sizes}, but its {engine_named(fact.engine).title} "
                    "does not ask for huge pages.",
                    fix="Switch huge pages on in the engine, or take the limit away.",
                )
            )
        return
    size, demand = wants
    have = granted.get(size, 0)
    name = kubernetes_resource_name(size)
    need = (demand.pages + demand.error_pages) * size
    title = engine_named(fact.engine).title
    if not granted:
        if _asks(fact) is False:
            return
        found[where].append(
            Problem(
                rule=MISSING,
                position=limit.position,
                subject=limit.name,
                message=f"{limit.name} has no huge page limit, but its {title} asks for "
                f"{counted_pages(demand.pages, size)}"
                + (
                    " and does not start without them."
                    if _asks(fact) == "on"
                    else ": it falls back or dies with a Bus error."
                ),
                fix=f"Write {name}: {format_kubernetes_bytes(need)} under limits, beside cpu or memory.",
            )
        )
    elif not have:
        sizes = ", ".join(kubernetes_resource_name(s) for s in granted)
        found[where].append(
            Problem(
                rule=OTHER_SIZE,
                position=limit.position,
                subject=limit.name,
                message=f"{limit.name} has {sizes}, but its {title} asks for pages of {page_label(size)}.",
                fix=f"Write {name}: {format_kubernetes_bytes(need)}, or name the size in the engine's settings.",
            )
        )
    elif have < demand.pages * size:
        edits = tuple(
            Edit(edit.start, edit.end, format_kubernetes_bytes(need))
            for quantity, places in limit.quantities
            if quantity == size
            for edit in places
        )
        found[where].append(
            Problem(
                rule=BELOW,
                position=edits[0].start if edits else limit.position,
                subject=f"{name}: {format_kubernetes_bytes(have)}",
                message=f"{limit.name}: the limit holds {counted_pages(have // size, size)}, "
                f"the mapping of {title} needs "
                f"{counted_pages(demand.pages, size)} ({format_bytes(demand.segment_bytes)} and rounding).",
                fix=f"Write {name}: {format_kubernetes_bytes(need)}.",
                edits=edits,
            )
        )


def _beside(fact: EngineFact, limits: Sequence[tuple[int, LimitFact]]) -> tuple[int, LimitFact] | None:
    """The container that runs the engine: its own object's, else the only one of that engine, else the only one."""
    if fact.owner is not None:
        own = [item for item in limits if item[1].name == fact.owner or item[1].name.startswith(fact.owner + ",")]
        return min(own, key=lambda item: sum(count for _, count in item[1].hugepages), default=None)
    same = [item for item in limits if item[1].engine == fact.engine]
    if len(same) == 1:
        return same[0]
    unknown = [item for item in limits if item[1].engine is None and item[1].replicas != 0]
    if not same and len(limits) == 1 and unknown:
        return unknown[0]
    with_pages = [item for item in same or unknown if item[1].hugepages]
    return with_pages[0] if len(with_pages) == 1 else None


def _switch(engine: str) -> str:
    return {"postgresql": "huge_pages", "jvm": "uselargepages"}.get(engine, "large_pages")


def _asks(fact: EngineFact) -> str | bool:
    """``on`` where the engine refuses to start without huge pages, True where it asks, False where it does not."""
    settings = {name.lower(): value for name, value in fact.settings}
    if fact.engine == "postgresql":
        mode = mode_of(settings)
        return "on" if mode == "on" else mode == "try" and "huge_pages" in settings
    if fact.engine == "jvm":
        return settings.get("uselargepages") == "true" and settings.get("usetransparenthugepages") != "true"
    return settings.get("large_pages", "off").lower() in {"on", "1", "true", "yes"}


def _is_off(fact: EngineFact) -> bool:
    settings = {name.lower(): value for name, value in fact.settings}
    if fact.engine == "postgresql":
        return mode_of(settings) == "off"
    return _asks(fact) is False


def _wants(fact: EngineFact, limit: LimitFact, context: Context) -> tuple[int, Demand] | None:
    """The page size the engine draws from and its demand; None where it wants none or that cannot be computed."""
    if _is_off(fact):
        return None
    size = _page_bytes(fact, limit, context)
    if size is None or fact.engine not in {"postgresql", "mysql", "mariadb", "jvm"}:
        return None
    demand_context = DemandContext(
        arch=context.arch,
        base_page_bytes=context.base_page_bytes,
        huge_page_sizes_bytes=context.sizes,
        default_huge_page_bytes=context.default_page_bytes or context.pmd_bytes,
    )
    known = {spec.name.lower() for spec in engine_named(fact.engine).settings}
    settings = {name: value for name, value in fact.settings if name.lower() in known}
    if fact.engine == "jvm" and "Xmx" not in settings:
        return None
    instance = DatabaseInstance(name="engine", engine=fact.engine, version=fact.version, settings=settings)
    demand = _smallest(instance, size, demand_context)
    return None if demand is None else (size, demand)


def _smallest(instance: DatabaseInstance, size: int, context: DemandContext) -> Demand | None:
    """The demand of the version given; the smallest of all versions where none is, so that a doubt raises nothing."""
    given = [] if instance.version is None else [instance]
    versions = [replace(instance, version=version) for version in engine_named(instance.engine).versions]
    for candidates in (given, versions):
        found = []
        for candidate in candidates:
            with suppress(PlannerError):
                found.append(demand_of(candidate, size, context))
        if found:
            return min(found, key=lambda demand: demand.pages)
    return None


def _page_bytes(fact: EngineFact, limit: LimitFact, context: Context) -> int | None:
    settings = {name.lower(): value for name, value in fact.settings}
    default = context.default_page_bytes or context.pmd_bytes
    granted = [size for size, count in limit.hugepages if count]
    try:
        if fact.engine == "postgresql":
            named = parse_postgresql_bytes(settings.get("huge_page_size", "0"), 1024, "huge_page_size")
        elif fact.engine == "jvm":
            named = parse_jvm_bytes(settings.get("largepagesizeinbytes", "0"), "LargePageSizeInBytes")
        else:
            named = 0
    except PlannerError:
        return None
    if named:
        return named if named in context.sizes else None
    if fact.engine == "mariadb" and granted:
        return max(granted)
    # Nothing names a size: the default one. Where it is not known, the one the pod has is taken for it.
    return granted[0] if context.default_page_bytes is None and len(granted) == 1 else default


def _against_pools(
    limits: Sequence[tuple[int, LimitFact]], by_size: Mapping[int, int], found: list[list[Problem]]
) -> None:
    if not by_size:
        return
    for file, limit in limits:
        for size, count in limit.hugepages:
            if count > by_size.get(size, 0):
                found[file].append(
                    Problem(
                        rule=ABOVE_POOL,
                        position=limit.position,
                        subject=limit.name,
                        message=f"{limit.name} asks for {format_bytes(count)} of {page_label(size)}; the pool holds "
                        f"{format_bytes(by_size.get(size, 0))}.",
                        fix=f"Reserve {counted_pages(-(-count // size), size)} or more on the node.",
                    )
                )
    for size, total in _asked_bytes([limit for _, limit in limits]).items():
        if by_size.get(size, 0) < total and not any(p.rule is ABOVE_POOL for problems in found for p in problems):
            file, limit = next((f, item) for f, item in limits if any(s == size for s, _ in item.hugepages))
            found[file].append(
                Problem(
                    rule=SUM_ABOVE_POOL,
                    position=limit.position,
                    subject=limit.name,
                    message=f"All pods together ask for {format_bytes(total)} of {page_label(size)}; one node reserves "
                    f"{format_bytes(by_size.get(size, 0))}.",
                    fix="Reserve more, or spread the pods over nodes.",
                )
            )


def _asked_bytes(limits: Sequence[LimitFact]) -> dict[int, int]:
    """Bytes that all pods ask for, by page size.

    Objects of one name and several kinds are ways to run the same database, such as a StatefulSet and an operator's
    custom resource: the largest, not their sum. A fragment ("the patch") is of some object, so it adds nothing.
    """
    by_object: dict[tuple[int, str], dict[str, int]] = {}
    for limit in limits:
        kind, _, name = limit.name.partition(",")[0].rpartition(" ")
        for size, count in limit.hugepages:
            kinds = by_object.setdefault((size, name), {})
            kinds[kind] = kinds.get(kind, 0) + count * (limit.replicas if limit.replicas is not None else 1)
    named: dict[int, int] = {}
    fragments: dict[int, int] = {}
    for (size, _), kinds in by_object.items():
        largest = max(kinds.values())
        if "the" in kinds:
            fragments[size] = max(fragments.get(size, 0), largest)
        else:
            named[size] = named.get(size, 0) + largest
    return {size: max(named.get(size, 0), fragments.get(size, 0)) for size in {**named, **fragments}}


def _memlock(file: int, fact: MemlockFact, engines: Sequence[EngineFact], found: list[list[Problem]]) -> None:
    """A limit of locked memory beside a my.cnf with large pages; of another user it says nothing."""
    if fact.owner not in {"the service", "*", "mysql", "@mysql"}:
        return
    for engine in engines:
        if engine.engine != "mysql" or _asks(engine) is not True:
            continue
        pool = dict(engine.settings).get("innodb_buffer_pool_size", "128M")
        try:
            pool_bytes = parse_mysql_bytes(pool, "innodb_buffer_pool_size")
        except PlannerError:
            continue  # the unit is a problem already
        if fact.limit_bytes < pool_bytes:
            found[file].append(
                Problem(
                    rule=MEMLOCK,
                    position=fact.position,
                    subject=fact.owner,
                    message=f"{fact.owner} may lock {format_bytes(fact.limit_bytes)}, below the buffer pool of "
                    f"{format_bytes(pool_bytes)}.",
                    fix="Write LimitMEMLOCK=infinity, or memlock unlimited.",
                )
            )


def _kubelet(file: int, fact: KubeletFact, pool_bytes: int, found: list[list[Problem]]) -> None:
    hard = fact.eviction_hard_bytes
    if not pool_bytes or hard is None:
        return
    position = fact.position if fact.eviction_edit is None else fact.eviction_edit[0]
    if hard >= pool_bytes:
        found[file].append(
            Problem(
                rule=TWICE,
                position=position,
                subject="evictionHard",
                message=f"evictionHard is {format_bytes(hard)}, not below the pools of {format_bytes(pool_bytes)}: "
                "allocatable memory lacks the pools already, and loses this as well.",
                fix="Write this threshold as evictionSoft with a grace period, and a small evictionHard.",
            )
        )
    elif (fact.eviction_soft_bytes or 0) < pool_bytes:
        found[file].append(
            Problem(
                rule=PHANTOM,
                position=position,
                subject="evictionHard",
                message=f"memory.available is {format_bytes(pool_bytes)} too high beside these pools, and "
                f"evictionHard is {format_bytes(hard)}.",
                fix="Add evictionSoft with memory.available: "
                f"{format_kubernetes_bytes(hard + pool_bytes)} and a grace period.",
            )
        )
