"""An engine's settings beside its container or the pools: what it asks for, and whether limit or pools hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hugeplan.lint.kinds.postgresql_conf import mode_of
from hugeplan.lint.model import Context, Edit, EngineFact, LimitFact, Notes, Problem, Rule, Severity, attention, wrong
from hugeplan.planner.demand import DemandContext, demand_of, engine_named
from hugeplan.planner.demand.engines.mysql import CPUS_UNKNOWN
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.findings import findings_by, pod_limit, what_is_wrong
from hugeplan.planner.findings.base import Claim, Facts
from hugeplan.planner.model import DatabaseInstance, Demand, Finding, State
from hugeplan.planner.pages import counted_pages, kubernetes_resource_name, page_label
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes, parse_jvm_bytes, parse_postgresql_bytes

CGROUP: Final = "hugetlb cgroup controller: Documentation/admin-guide/cgroup-v2.rst HugeTLB; opencontainers/runc#4073"

BELOW: Final = wrong(
    "limit-below-segment",
    "A huge page limit below the engine's mapping is a silent fallback where the runtime limits reservations, "
    "and a crash once the cache is warm where it limits use only.",
    CGROUP,
    "Set the engine's whole mapping, in whole pages, as request and limit of the container.",
)

MISSING: Final = wrong(
    "limit-missing",
    "A container without a huge page limit may use none: the limit of its cgroup is 0.",
    CGROUP,
)

UNUSED: Final = wrong(
    "limit-unused",
    "Pages that a pod is given are kept from everybody else, whether its engine asks for them or not.",
    "kubernetes docs, Manage HugePages",
)

OTHER_SIZE: Final = wrong(
    "limit-of-another-size", "The limit must be of the page size that the engine asks for.", CGROUP
)

POOL_BELOW: Final = wrong(
    "pool-below-segment",
    "A pool holds every mapping that is asked of it: the memory beside the buffers counts too, and each mapping is "
    "rounded up to whole pages.",
    "mm/hugetlb.c hugetlb_reserve_pages(); the engines' own rules (docs/engines.md)",
)

MAY_BE_SHORT: Final = attention(
    "pages-may-be-short",
    "From 8.4 on the processors say how many instances round MySQL's pool up: where they are not known, neither is it.",
    "MySQL 8.4 Reference Manual, innodb_buffer_pool_instances",
)


#: No container.
BARE: Final = LimitFact(name="", hugepages=(), memory_bytes=None, position=0)


def check_engine(file: int, fact: EngineFact, limits: Limits, found: list[Notes], context: Context) -> None:
    """The engine of a file against the container that runs it."""
    beside = limits.container_of(fact)
    if beside is None:
        return
    where, limit = beside
    wants = wanted(fact, limit, context)
    if wants is None:
        _unwanted(file, fact, beside, found)
        return
    size, demand = wants
    granted = {size: count for size, count in limit.hugepages if count} or limits.of_whole_pod(limit)
    if size in granted:
        found[where].problems += _below(fact, limit, size, demand, granted[size])
        return
    name = kubernetes_resource_name(size)
    need = (demand.pages + demand.error_pages) * size
    title = engine_named(fact.engine).title
    if granted:
        sizes = ", ".join(kubernetes_resource_name(s) for s in granted)
        said = f"{limit.name} has {sizes}, but its {title} asks for pages of {page_label(size)}."
        fix = f"Write {name}: {format_kubernetes_bytes(need)}, or name the size in the engine's settings."
        found[where].problem(OTHER_SIZE, limit.position, limit.name, said, fix)
        return
    asked = next((count for own, count, _ in limit.only_requested if own == size), 0)
    if asks_for_pages(fact) is False or asked >= need:
        return  # of a request that is enough its missing limit is said
    refuses = asks_for_pages(fact) == "on"
    what_then = " and does not start without them." if refuses else ": it falls back or dies with a Bus error."
    said = f"{limit.name} has no huge page limit, but its {title} asks for {_counted([demand], size)}{what_then}"
    where_to = "under requests and limits" if asked else "under limits, beside cpu or memory"
    fix = f"Write {name}: {format_kubernetes_bytes(need)} {where_to}."
    found[where].problem(MISSING, limit.position, limit.name, said, fix)


def _unwanted(file: int, fact: EngineFact, beside: tuple[int, LimitFact], found: list[Notes]) -> None:
    """An engine that wants no pages, or whose demand cannot be computed, beside its container's limit."""
    where, limit = beside
    granted = {size: count for size, count in limit.hugepages if count}
    if fact.engine == "jvm" and not granted and asks_for_pages(fact) is True:
        said = f"{limit.name} has no huge page limit, but its JVM asks for huge pages for the whole heap."
        fix = "Write hugepages-2Mi under limits, with room for heap and code cache, beside cpu or memory."
        found[where].problem(MISSING, limit.position, limit.name, said, fix)
    if granted and is_off(fact):
        sizes = ", ".join(f"{format_bytes(count)} of {page_label(size)}" for size, count in granted.items())
        position = dict(fact.positions).get(_SWITCHES.get(fact.engine, "large_pages"))
        at, target = (position, file) if position is not None else (limit.position, where)
        said = f"{limit.name} is given {sizes}, but its {engine_named(fact.engine).title} does not ask for huge pages."
        fix = "Switch huge pages on in the engine, or take the limit away."
        found[target].problem(UNUSED, at, limit.name, said, fix)


def _below(fact: EngineFact, limit: LimitFact, size: int, demand: Demand, have: int) -> list[Problem]:
    """What plans, imports and ``verify`` say of the same limit."""
    name = kubernetes_resource_name(size)
    need = (demand.pages + demand.error_pages) * size
    text = format_kubernetes_bytes(need)
    places = next((places for quantity, places in limit.quantities if quantity == size), ())
    edits = tuple(Edit(place.start, place.end, text) for place in places)
    needs = f" It needs {_counted([demand], size)}." if demand.error_pages else ""
    if demand.pages * size <= have < need and CPUS_UNKNOWN in needs:
        said, fix = f"{limit.name}:{needs}", f"Write {name}: {text}."
        return [Problem(rule=MAY_BE_SHORT, position=limit.position, subject=name, message=said, fix=fix)]
    claim = Claim(
        subject=f"{name}: {format_kubernetes_bytes(have)}",
        engine=fact.engine,
        page_bytes=size,
        pages=demand.pages,
        grant={name: need},
        limit_bytes=have // size * size,  # a part of a page is said of the file alone
        holder=f"of {limit.name}",
        refuses_start=_ends_when_short(fact),
    )
    return [
        Problem(
            rule=_rule_of(finding),
            position=edits[0].start if edits else limit.position,
            subject=finding.subject,
            message=f"{limit.name}: {finding.title[0].lower()}{finding.title[1:]}. {finding.reason}{needs}",
            fix=finding.fix or "",
            edits=edits if finding.code == pod_limit.CODE else (),
        )
        for finding in what_is_wrong(findings_by(Facts(claims=(claim,))))
    ]


def _counted(demands: Sequence[Demand], size: int) -> str:
    """The pages that are needed; where their count is not sure, also up to how many, and why."""
    need, more = sum(demand.pages for demand in demands), sum(demand.error_pages for demand in demands)
    is_open = any(CPUS_UNKNOWN in note for demand in demands for note in demand.notes)
    why = f"the {CPUS_UNKNOWN} and innodb_buffer_pool_instances is not set" if is_open else "its rule is not exact"
    return counted_pages(need, size) + (f", up to {need + more:,}, since {why}" if more else "")


def _rule_of(finding: Finding) -> Rule:
    """The linter's rule for one that plans, imports and verify share."""
    if finding.code == pod_limit.CODE:
        return BELOW
    severity = Severity.WRONG if finding.state is State.WRONG else Severity.ATTENTION
    return Rule(finding.code.replace("_", "-"), severity, f"{finding.title}.", "hugeplan's checks of a plan")


class Limits:
    """All limits, each with its file: what an engine or a container looks for is found without a look at each."""

    def __init__(self, items: Sequence[tuple[int, LimitFact]]) -> None:
        self.items = items
        self._of_owner: dict[str, tuple[int, LimitFact]] = {}
        self._shared: dict[str, dict[int, int]] = {}
        for item in sorted(items, key=lambda item: sum(count for _, count in item[1].hugepages)):
            for owner in (item[1].name, item[1].name.partition(",")[0]):
                self._of_owner.setdefault(owner, item)
        for _, limit in items:
            if limit.is_whole_pod:
                held = self._shared.setdefault(limit.name.partition(",")[0], {})
                held |= {size: count for size, count in limit.hugepages if count}
        self._of_engine: dict[str, tuple[int, LimitFact] | None] = {}

    def of_whole_pod(self, limit: LimitFact) -> dict[int, int]:
        """What a container without huge pages of its own shares: the limit of its pod (Kubernetes 1.34)."""
        return self._shared.get(limit.name.partition(",")[0], {})

    def container_of(self, fact: EngineFact) -> tuple[int, LimitFact] | None:
        """The container that runs the engine: its own object's, else the only one of that engine, else the only one."""
        if fact.owner is not None:
            return self._of_owner.get(fact.owner)
        if fact.engine not in self._of_engine:
            self._of_engine[fact.engine] = self._only_one(fact.engine)
        return self._of_engine[fact.engine]

    def _only_one(self, engine: str) -> tuple[int, LimitFact] | None:
        same = [item for item in self.items if item[1].engine == engine]
        if len(same) == 1:
            return same[0]
        unknown = [item for item in self.items if item[1].engine is None and not item[1].is_whole_pod]
        if not same and len(self.items) == 1 and unknown:
            return unknown[0]
        with_pages = [item for item in same or unknown if item[1].hugepages]
        return with_pages[0] if len(with_pages) == 1 else None


_SWITCHES: Final = {"postgresql": "huge_pages", "jvm": "uselargepages"}


def asks_for_pages(fact: EngineFact) -> str | bool:
    """``on`` where the engine refuses to start without huge pages, True where it asks, False where it does not."""
    settings = {name.lower(): value for name, value in fact.settings}
    if fact.engine == "postgresql":
        mode = mode_of(settings)
        return "on" if mode == "on" else mode == "try" and "huge_pages" in settings
    if fact.engine == "jvm":
        return settings.get("uselargepages") == "true" and settings.get("usetransparenthugepages") != "true"
    return settings.get("large_pages", "off").lower() in {"on", "1", "true", "yes"}


def _ends_when_short(fact: EngineFact) -> bool:
    """Whether the engine ends where it gets a part of its pages, as ZGC does although it starts without any."""
    return asks_for_pages(fact) == "on" or ("UseZGC", "true") in fact.settings


def is_off(fact: EngineFact) -> bool:
    settings = {name.lower(): value for name, value in fact.settings}
    if fact.engine == "postgresql":
        return mode_of(settings) == "off"
    return asks_for_pages(fact) is False


def wanted(fact: EngineFact, limit: LimitFact, context: Context) -> tuple[int, Demand] | None:
    """The page size the engine draws from and its demand; None where it wants none or that cannot be computed."""
    if is_off(fact):
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


def engines_against_pools(
    facts: Sequence[tuple[int, object]], pools: Mapping[int, int], found: list[Notes], context: Context
) -> None:
    """Engines outside of pods that ask for huge pages, against the pool that the files reserve for all of them."""
    if not pools:
        return
    asked: dict[int, list[tuple[int, EngineFact, Demand]]] = {}
    for i, fact in facts:
        if isinstance(fact, EngineFact) and fact.owner is None and asks_for_pages(fact):
            wants = wanted(fact, BARE, context)
            if wants is not None:
                asked.setdefault(wants[0], []).append((i, fact, wants[1]))
    for size, engines in asked.items():
        demands = [demand for _, _, demand in engines]
        have, need, needs = pools.get(size, 0) // size, sum(demand.pages for demand in demands), _counted(demands, size)
        room = need + sum(demand.error_pages for demand in demands)
        if have >= (room if CPUS_UNKNOWN in needs else need):
            continue
        file, fact, _ = max(engines, key=lambda one: one[2].pages)
        titles = ", ".join(dict.fromkeys(engine_named(one.engine).title for _, one, _ in engines))
        verb = "needs" if len(engines) == 1 else "need together"
        said = f"{titles} {verb} {needs}; the pool of these files has {have:,}: with too few {_without_pages(fact)}."
        fix = f"Reserve {room:,} or more pages of {page_label(size)}."
        rule = POOL_BELOW if need > have else MAY_BE_SHORT
        found[file].problem(rule, min((place for _, place in fact.positions), default=0), titles, said, fix)


def _without_pages(fact: EngineFact) -> str:
    """What an engine does that does not get its pages."""
    if _ends_when_short(fact):
        return "it does not start"
    if fact.engine == "postgresql":
        return "it runs on base pages and nothing says so"
    return "it runs on base pages after a warning in its log"
