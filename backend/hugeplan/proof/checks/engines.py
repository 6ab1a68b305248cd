"""On which page size does each engine really run, and will its limits let it go on?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from typing import Any, Final

from hugeplan.planner.demand import (
    ENGINES,
    DemandContext,
    SettingKind,
    context_with_page_size,
    demand_of,
    differs,
    engine_named,
    is_sized,
)
from hugeplan.planner.demand.engines.postgresql_inputs import LOADED, libraries_without_rule
from hugeplan.planner.demand.registry import FIXED
from hugeplan.planner.demand.settings import underscored
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.findings import findings_by, pod_limit
from hugeplan.planner.findings.base import Claim, Facts, attention, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding, InstancePlan, ObservedDatabase, Plan, State, Term
from hugeplan.planner.observation.databases import as_instance
from hugeplan.planner.observation.server_owners import port_of_key
from hugeplan.planner.pages import counted_pages, kubernetes_resource_name, page_label
from hugeplan.planner.printable import printable
from hugeplan.planner.units import format_bytes
from hugeplan.proof.causes import Cause, because
from hugeplan.proof.checks.judging import NAMES_SAID, Group, Judge, demand_key, first_of, grows, judged
from hugeplan.proof.holders import called, holders
from hugeplan.proof.matching import Server, match_servers, owner_of
from hugeplan.proof.observation import Observation

BACKING = "verify_engine"
"""On which pages does the server really run: the planned ones, pages of another size, or base pages?
Where it maps less than nine tenths of the planned ones, that is unknown: it is another server, or its settings are."""
LIMIT = "verify_limit"
"""Is a huge page limit of a cgroup below the segment? A usage limit ends in SIGBUS, a reservation limit in a fallback;
what is wrong is worded as in pod_limit_below_segment."""
MEMLOCK = "verify_memlock"
"""May a server that locks its segment lock all of it?"""
SETTINGS = "verify_settings"
"""Does a server ask for the pages that the plan counts when it is started next? By the rule that counted them, with
its configuration; asked where all of it could be read, and where its size is no share of memory."""
MAPPED = "pages mapped"
_LIBRARIES: Final = "shared_preload_libraries"
_GROWS: Final = "and takes more as it grows"
_SWITCHES: Final = ("huge_pages", "large_pages")
MOST_LIMITS = 4
"""Limits of a server that are judged, the shortest of more. The agent sends one for each counter and page size."""


Limit = Mapping[str, Any]


def check(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """Each instance that the plan gives huge pages, with its server or those that it may be."""
    servers = match_servers(plan, observed)
    found = [(instance, servers[instance.name]) for instance in plan.instances if instance.page_bytes is not None]
    by_name = {instance.name: instance for instance in plan.instances}
    groups: dict[int, Group] = {}
    for _, matched in found:
        if id(matched) not in groups:  # instances that may be the same servers share one answer of the matching
            groups[id(matched)] = Group(matched, [by_name[name] for name in matched.rivals])
    pairs = [(instance, groups[id(matched)]) for instance, matched in found]
    limits = _Limits()
    yield from _backings(pairs, observed, limits)
    yield from _all_limits(pairs, limits)
    yield from _memlocks(pairs)
    for instance in plan.instances:
        yield from _settings(observed, instance, servers[instance.name].server or {})


def _backings(pairs: Iterable[tuple[InstancePlan, Group]], observed: Observation, limits: _Limits) -> Iterable[Finding]:
    found: list[tuple[InstancePlan, Finding, int | None]] = []
    said: Counter[int] = Counter()
    planned: Counter[int] = Counter()
    judge = Judge.by(BACKING, partial(_backing, observed, limits))
    for instance, group in pairs:
        if not group.matched.possible:
            one = _absent(instance, observed, group.matched.of_users)
        else:
            one = judged(judge, instance, group)
        mapped = next((int(str(term.value)) for term in one.evidence if term.name == MAPPED), None)
        found.append((instance, one, mapped))
        if mapped is not None:
            planned[instance.page_bytes or 0] += instance.demand.pages
            said[instance.page_bytes or 0] += mapped or instance.demand.pages
    for instance, one, mapped in found:
        size = instance.page_bytes or 0
        pool = observed.global_pool(size) or {}
        total, free, reserved = (pool.get(name) for name in ("nr_hugepages", "free_hugepages", "resv_hugepages"))
        idle = int(free or 0) - int(reserved or 0)
        if mapped is None:
            yield one
        elif one.state is State.ATTENTION and _is_short(mapped, instance.demand.pages - instance.demand.error_pages):
            yield replace(one, state=State.UNKNOWN)  # another server, or other settings: neither is the plan
        elif one.title.endswith(_GROWS) and None in (free, reserved):
            yield replace(one, state=State.UNKNOWN)
        elif None not in (total, free, reserved) and _is_short(
            int(total or 0) - idle, min(said[size], int(total or 0))
        ):  # a mapping without a reservation (MAP_NORESERVE) has no pages
            title = f"It is said to run on pages of {page_label(size)}, and {idle:,} of them are idle"
            fix = "Check huge_pages_status or its log, restart it, then verify again."
            yield unknown(BACKING, instance.name, title, one.reason, fix, evidence=one.evidence)
        elif one.title.endswith(_GROWS) and idle < planned[size] - said[size]:
            title = f"{planned[size] - said[size]:,} more pages may be taken as heaps grow, and {idle:,} are idle"
            fix = "Stop the holders or plan for them too (hugeplan plan --node this), then restart it."
            yield wrong(BACKING, instance.name, title, one.reason, fix, evidence=(*one.evidence, because(Cause.HELD)))
        else:
            yield one


def _is_short(pages: int, planned: int) -> bool:
    """Whether so few pages contradict the plan: versions and rounding are a matter of less than a tenth."""
    return pages * 10 < planned * 9


def _absent(instance: InstancePlan, observed: Observation, of_users: Sequence[Server]) -> Finding:
    """No server was seen that may be the instance, besides those ``of_users``."""
    if not observed.knows("databases"):
        title, why = "It is not known on which pages it runs", "Servers were not observed."
        return unknown(BACKING, instance.name, title, why, "Run hugeplan verify as root on the node.")
    engine = ENGINES[instance.engine].title if instance.engine in ENGINES else instance.engine
    tail = port_of_key(instance.runs_as or "")
    which = engine if tail is None else f"{engine} on port {tail}"
    reason = f"No server of {engine} was found that may be it."
    fix = "Install the plan's file for it and start it, then verify again."
    if of_users:
        planned = instance.owner_uid
        first = of_users[:NAMES_SAID]
        others = [None if planned in (None, uid) else uid for uid in map(owner_of, first)]
        of_uids = ["" if uid is None else f" of uid {uid}" for uid in others]
        names = [called(one) + of_uid for one, of_uid in zip(first, of_uids, strict=True)]
        reason += f" {first_of(names, len(of_users))}: a user of the node may have made it look so,"
        reason += " or it runs in another unit than was planned for."
        is_another = planned is not None and any(owner_of(one) not in (None, planned) for one in of_users)
        reason += f" The planned server ran as uid {planned}." if is_another else ""
        fix += " If it is that one, plan again with its key as runs_as."
    evidence = (because(Cause.NOT_RUNNING),)
    return unknown(BACKING, instance.name, f"{which} is not running", reason, fix, evidence=evidence)


def _off_by(server: Server) -> str | None:
    """The setting that keeps a server off huge pages, and where it was read; None where none was."""
    settings = server.get("settings") or {}
    for name, said in ((name, settings.get(name) or {}) for name in _SWITCHES):
        if str(said.get("value")).lower() in {"off", "false", "no", "0"}:
            return f"{name} = {said['value']} ({printable(str(said.get('source')))})"
    return None


def _on_base_pages(observed: Observation, limits: _Limits, instance: InstancePlan, server: Server) -> Finding:
    """A server on base pages: to be restarted, or others hold the pages, or it fell back for another cause."""
    size, planned = instance.page_bytes or 0, page_label(instance.page_bytes or 0)
    pool = observed.global_pool(size) or {}
    counts = [pool.get(name) for name in ("nr_hugepages", "free_hugepages", "resv_hugepages")]
    room = None if None in counts[1:] else int(counts[1] or 0) - int(counts[2] or 0)
    pid = measured("pid", server.get("main_pid"))
    lies = f"The shared memory of {called(server)} lies on base pages"
    is_short = int(counts[0] or 0) < instance.demand.pages  # then the pool has its own finding
    if room is None or is_short or limits.limit_state(instance, server) is State.WRONG:
        title = f"It runs on base pages, not on {planned}"
        fix = "Set huge_pages = on (large_pages for MySQL), check the limit and the pool, and restart it."
        return wrong(BACKING, instance.name, title, f"{lies}: it fell back, or never asked.", fix, evidence=(pid,))
    if room >= instance.demand.pages:
        title = f"It still runs on base pages, not on {planned}"
        off = _off_by(server)
        why = "It started before they were, or did not ask." if off is None else f"Its configuration says {off}."
        reason = f"{lies}; {counted_pages(room, size)} are free. {why}"
        evidence = (pid, measured("free pages", room), because(Cause.NOT_RESTARTED))
        fix = "Install the plan's file for it and restart it"
        fix += "." if off is None else "; where that was done, that setting is stronger: change it there first."
        return attention(BACKING, instance.name, title, reason, fix, evidence=evidence)
    everyone = holders(observed, size)
    own = everyone.of_server.get(server.get("key"), ())
    rest = int(counts[0] or 0) - room - everyone.pages + sum(one.pages or 0 for one in own)
    who = everyone.said(besides=own)
    if rest > 0 and everyone.all_known:
        more = f"{counted_pages(rest, size)} that no process read here has touched"
        who = f"{who}, and {more}" if who else more
    title = f"It runs on base pages: {max(room, 0):,} of {instance.demand.pages:,} pages of {planned} are left for it"
    fix = "Stop the holders or plan for them too (hugeplan plan --node this), then restart it."
    evidence = (pid, measured("free pages", room), because(Cause.HELD))
    return wrong(BACKING, instance.name, title, f"{lies}. The pool's pages are held by {who}.", fix, evidence=evidence)


def _backing(observed: Observation, limits: _Limits, instance: InstancePlan, server: Server) -> Finding:
    name, planned = instance.name, page_label(instance.page_bytes or 0)
    segments = [s for s in server.get("segments") or () if s.get("backing") == "hugetlb" and s.get("page_bytes")]
    status = server.get("huge_pages_status")
    pid = measured("pid", server.get("main_pid"))
    if status is None:
        reason = "Its mappings could not be read: only root and the server's own user may."
        return unknown(BACKING, name, "It is not known on which pages it runs", reason, "Run hugeplan verify as root.")
    if not segments and status != "on":
        return _on_base_pages(observed, limits, instance, server)
    sizes = sorted({int(s["page_bytes"]) for s in segments})
    others = [page_label(size) for size in sizes if size != instance.page_bytes]
    also = {size for size, _ in instance.demand.also_pages}
    pages = sum(-(-int(s["bytes"]) // int(s["page_bytes"])) for s in segments if s["page_bytes"] == instance.page_bytes)
    if sizes and instance.page_bytes not in sizes:
        title = f"It runs on pages of {', '.join(others)}, not of {planned}"
        reason = f"The plan reserves pages of {planned} for it; it took them from another pool."
        fix = "Name the page size in its settings, or set default_hugepagesz= as planned."
        return wrong(BACKING, name, title, reason, fix, evidence=(pid, because(Cause.OTHER_SIZE)))
    if status == "partial" or any(size not in also for size in sizes if size != instance.page_bytes):
        title = "Only a part of its memory lies on the planned pages"
        reason = f"{counted_pages(pages, instance.page_bytes or 0)} are mapped; another part lies elsewhere."
        fix = "Check that the pool was complete when it started, then restart it."
        return attention(BACKING, name, title, reason, fix, evidence=(pid, measured(MAPPED, pages)))
    if pages and abs(pages - instance.demand.pages) > instance.demand.error_pages:
        return _other_pages(instance, server, pages, (pid, measured(MAPPED, pages)))
    mapped = f"It maps {counted_pages(pages, instance.page_bytes or 0)}." if pages else "Its mappings are huge."
    return ok(BACKING, name, f"It runs on pages of {planned}", mapped, evidence=(pid, measured(MAPPED, pages)))


def _other_pages(instance: InstancePlan, server: Server, pages: int, evidence: tuple[Term, ...]) -> Finding:
    """A server that maps another number of pages: it still grows, or its version differs, or its settings."""
    size, demand, real = page_label(instance.page_bytes or 0), instance.demand, server.get("version")
    more, planned = demand.pages - pages, demand.version
    if more > 0 and grows(server):
        title, reason = f"It runs on pages of {size}, {_GROWS}", f"It maps {pages:,} of {demand.pages:,} planned pages."
        return ok(BACKING, instance.name, title, reason, evidence=evidence)
    if planned is not None and real is not None and not _is_version(planned, str(real)):
        reason = f"The plan is for version {planned}, the server is version {real}. Versions divide their shared "
        reason += "memory differently, so this says nothing about its settings."
        again = f"Give the instance version {real} in the scenario, and plan again."
    else:
        reason = f"The difference is beyond the rule's error of {demand.error_pages}: its settings are not the plan's"
        reason += "." if planned is None or real else f", or its version is not {planned}, which was planned for."
        again = "Write the plan's settings, or plan again with the server's."
    if more < 0:  # the planned pool does not hold it at its next start
        evidence = (*evidence, because(Cause.OTHER))
    title = f"It maps {pages:,} pages of {size}, {demand.pages:,} are planned"
    return attention(BACKING, instance.name, title, reason, again, evidence=evidence)


def _is_version(planned: str, real: str) -> bool:
    """Whether a version is the planned one, as far as both are given: 18.1 is 18."""
    return all(one == other for one, other in zip(planned.split("."), real.split("."), strict=False))


def _all_limits(pairs: Iterable[tuple[InstancePlan, Group]], limits: _Limits) -> Iterable[Finding]:
    """One finding per server with a pool: does a cgroup's limit hold its segment? More where several are short."""
    judge = Judge(LIMIT, limits.worst_limit, limits.limit_state)
    for instance, group in pairs:
        if group.matched.server is not None:
            yield from limits.limits(instance, group.matched.server)
        elif group.matched.possible:
            yield judged(judge, instance, group)


class _Limits:
    """Servers with what limits are judged by, read once: many instances may be one server."""

    def __init__(self) -> None:
        self._read: dict[int, _Sizes] = {}
        self._states: dict[Hashable, State] = {}

    def limits(self, instance: InstancePlan, server: Server) -> list[Finding]:
        """The limits of a server that are short, the worst first; else one finding."""
        if server.get("hugetlb_limits") is None:
            title, why = "Whether a limit acts is not known", "The hugetlb controller was not read."
            return [unknown(LIMIT, instance.name, title, why)]
        claims = _Claims(instance, self._sizes(server))
        judged = claims.limits
        if len(judged) > MOST_LIMITS:
            shortest = {id(limit) for limit in nsmallest(MOST_LIMITS, judged, key=_bytes_of)}
            judged = [limit for limit in judged if id(limit) in shortest]
        cause = {State.WRONG: (because(Cause.LIMIT),)}
        return [
            replace(found, code=LIMIT, evidence=(*found.evidence, *cause.get(found.state, ())))
            if found.code == pod_limit.CODE
            else found
            for found in findings_by(Facts(claims=tuple(map(claims.of, judged))))
            if found.state is not State.OK
        ] or [ok(LIMIT, instance.name, "No limit is below its segment", "Usage and reservation limits hold it.")]

    def worst_limit(self, instance: InstancePlan, server: Server) -> Finding:
        """The first of the limits."""
        return self.limits(instance, server)[0]

    def limit_state(self, instance: InstancePlan, server: Server) -> State:
        """The state of the worst limit: none is worse than the smallest."""
        key = (demand_key(instance), id(server))
        if key not in self._states:
            self._states[key] = self._limit_state(instance, server)
        return self._states[key]

    def _limit_state(self, instance: InstancePlan, server: Server) -> State:
        if server.get("hugetlb_limits") is None:
            return State.UNKNOWN
        claims = _Claims(instance, self._sizes(server))
        smallest = () if claims.smallest is None else (claims.of(claims.smallest),)
        return next((found.state for found in findings_by(Facts(claims=smallest))), State.OK)

    def _sizes(self, server: Server) -> _Sizes:
        if id(server) not in self._read:
            self._read[id(server)] = _Sizes(server)
        return self._read[id(server)]


class _Sizes:
    """By page size: the limits on a server, the smallest of them, and its largest segment in bytes."""

    def __init__(self, server: Server) -> None:
        self.limits: dict[object, list[Limit]] = {}
        for limit in server.get("hugetlb_limits") or ():
            if limit.get("limit_bytes") is not None:
                self.limits.setdefault(limit.get("page_bytes"), []).append(limit)
        self.smallest = {size: min(limits, key=_bytes_of) for size, limits in self.limits.items()}
        self.mapped: dict[object, int] = {}
        for segment in server.get("segments") or ():
            size, mapped = segment.get("page_bytes"), int(segment.get("bytes") or 0)
            self.mapped[size] = max(mapped, self.mapped.get(size, 0))


def _bytes_of(limit: Limit) -> int:
    return int(limit["limit_bytes"])


class _Claims:
    """What a server maps, or the plan's instance where that is more, beside each of its cgroup's limits."""

    def __init__(self, instance: InstancePlan, sizes: _Sizes) -> None:
        size, demand = instance.page_bytes or 1, instance.demand
        self.limits, self.smallest = sizes.limits.get(instance.page_bytes, ()), sizes.smallest.get(instance.page_bytes)
        self._pages = max(demand.pages, -(-max(demand.segment_bytes, sizes.mapped.get(size, 0)) // size))
        self._error_pages = 0 if size in sizes.mapped else demand.error_pages
        self._instance, self._size = instance, size
        self._grant = {kubernetes_resource_name(size): (self._pages + demand.error_pages) * size}

    def of(self, limit: Limit) -> Claim:
        """The claim beside one limit."""
        counter, cgroup = limit.get("counter"), str(limit.get("cgroup_path") or "")
        return Claim(
            subject=self._instance.name,
            engine=self._instance.engine,
            page_bytes=self._size,
            pages=self._pages,
            error_pages=self._error_pages,
            grant=self._grant,
            limit_bytes=_bytes_of(limit) // self._size * self._size,
            counter=counter,
            holder=f"of its container: the {counter} limit of {cgroup} is short",
            cgroup=None if "kubepods" in cgroup else cgroup,
        )


def _settings(observed: Observation, instance: InstancePlan, server: Server) -> Iterable[Finding]:
    """One finding where its configuration asks for other pages than are counted, or for other memory on base pages."""
    if not server.get("settings_complete"):
        return
    read, rule = (server.get("settings") or {}).items(), engine_named(instance.engine)
    said = {underscored(name): (str(one.get("value")), one.get("source")) for name, one in read}
    aside = {*FIXED, _LIBRARIES}  # what it loads is counted in bytes
    counted = {name: value for name, value in (instance.counted_settings or {}).items() if name not in aside}
    own = {item.name: item.value for item in instance.demand.settings if item.name in counted}
    sized = (one for one in rule.settings if one.matters and one.kind is not SettingKind.TEXT)
    by_default = {one.name: one.default for one in sized} | dict.fromkeys(rule.also_read)
    planned = {name: value or "its default" for name, value in by_default.items() if name in said} | counted | own
    others = {
        name: f"{name} = {value}, its server has {'{} ({})'.format(*said[name]) if name in said else 'its default'}"
        for name, value in planned.items()
        if name not in _SWITCHES and differs(instance.engine, name, value, said.get(name, (None,))[0])
    }
    asked, demand = _asked(observed, instance, server), instance.demand
    if asked is None or instance.page_bytes is None:
        is_other, title = not others.keys().isdisjoint(counted), "Its settings are not the plan's"
    else:
        is_other, size = abs(asked - demand.pages) > demand.error_pages, page_label(instance.page_bytes)
        title = f"At its next start it asks for {asked:,} pages of {size}, {demand.pages:,} are planned"
    if is_other:
        off = None if asked else _off_by(server)
        reasons = [f"Its configuration says {off}."] if off else []
        reasons += [f"The plan counts with {printable('; '.join(others.values()))}."] if others else []
        fix = (
            "Take it back or install the plan's file before it is restarted, or plan again with the server's settings."
        )
        # The plan's file says otherwise. Where more is asked for, it may not start without that file's line.
        is_of_file = others.keys() <= counted.keys() and (asked or 0) <= demand.pages
        if is_of_file:
            fix = "Install the plan's file for it and restart it, or plan again with the server's settings."
        cause = (because(Cause.NOT_RESTARTED if is_of_file else Cause.OTHER),)
        yield attention(SETTINGS, instance.name, title, " ".join(reasons) or f"{title}.", fix, evidence=cause)
    elif asked is None and instance.page_bytes is not None and (new := _new_libraries(instance, server)):
        title = "It is not known what it asks for at its next start"
        reason = f"Its {_LIBRARIES} names {printable(first_of(new))}, which the plan does not count and no rule knows."
        fix = "Take it out, or restart it with huge_pages = try and plan again then (hugeplan plan --node this)."
        yield unknown(SETTINGS, instance.name, title, reason, fix)


def _asked(observed: Observation, instance: InstancePlan, server: Server) -> int | None:
    """Pages of the planned size that it asks for at its next start, by the rule that planned it.

    None where its settings do not tell: they are refused, or its size is a share of memory whose limit is not read.
    """
    inventory, rule, size = observed.inventory, engine_named(instance.engine), instance.demand.page_bytes
    cpu, memory = inventory.get("cpu") or {}, observed.sample.get("memory") or {}
    names = ("base_page_bytes", "huge_page_sizes_bytes", "default_huge_page_bytes")
    known = {name: inventory[name] for name in names if inventory.get(name)}
    known |= {"cpus": cpu.get("online"), "mem_total_bytes": memory.get("mem_total_bytes")}
    context = replace(context_with_page_size(size), **known)
    said = {name: str(one.get("value")) for name, one in (server.get("settings") or {}).items()}
    fixed = {name: value for name, value in (instance.counted_settings or {}).items() if name in FIXED}
    switches = {one.name: one.default or "" for one in rule.settings if one.name in _SWITCHES}
    version, settings = server.get("version") or instance.demand.version, {**switches, **fixed, **said}
    database = ObservedDatabase(key=instance.name, engine=instance.engine, version=version, settings=settings)
    try:
        now = as_instance(database, instance.name, context)
        if _LIBRARIES in now.settings:
            if instance.counted_settings is None:
                return None
            now = replace(now, extension_bytes=_library_bytes(instance, database, context))
        if now.unread_settings or rule.shares_memory(now) or (rule.shared_by and not is_sized(rule, now)):
            return None
        is_asked = size in rule.pool_use(now, context).page_sizes_bytes and rule.named_size(now) in {None, size}
        if is_asked and _new_libraries(instance, server):
            return None
        return demand_of(now, size, context).pages if is_asked else 0
    except PlannerError:
        return None


def _new_libraries(instance: InstancePlan, server: Server) -> list[str]:
    """Libraries of a server that no rule knows and the plan does not name; none where it did not keep the names.

    What a server does not run with yet was not measured when it was planned.
    """
    planned, settings = (instance.counted_settings or {}).get(_LIBRARIES), server.get("settings") or {}
    now, loaded = (settings.get(name) for name in (_LIBRARIES, LOADED))
    if planned is None or now is None:
        return []
    known = set(libraries_without_rule(planned))
    if loaded is not None:
        known.intersection_update(libraries_without_rule(str(loaded.get("value"))))
    return [name for name in libraries_without_rule(str(now.get("value"))) if name not in known]


def _library_bytes(instance: InstancePlan, server: ObservedDatabase, context: DemandContext) -> int:
    """Bytes that the plan counts beyond the rule, for libraries that it does not know: measured when it was made.

    What the server maps now tells nothing of them: that is of its settings at its start, which nobody reads.
    """
    demand, counted = instance.demand, dict(instance.counted_settings or {})
    counted |= {item.name: item.value for item in demand.settings if item.name in counted}
    counted.setdefault(_LIBRARIES, server.settings[_LIBRARIES])
    planned = as_instance(replace(server, version=demand.version, settings=counted), instance.name, context)
    return max(0, demand.segment_bytes - demand_of(planned, demand.page_bytes, context).segment_bytes)


def _memlocks(pairs: Iterable[tuple[InstancePlan, Group]]) -> Iterable[Finding]:
    """One finding per server that locks its segments."""
    for instance, group in pairs:
        locks = engine_named(instance.engine).locks_segment(instance.demand.version or "")
        if locks and group.matched.possible:
            yield judged(_MEMLOCK, instance, group)


def _memlock(instance: InstancePlan, server: Server) -> Finding:
    limit, limited = server.get("memlock_limit_bytes"), server.get("memlock_limited")
    if limited is None:
        return unknown(MEMLOCK, instance.name, "How much it may lock is not known", "Its limits could not be read.")
    if limited and (limit or 0) < instance.demand.segment_bytes:
        reason = (
            f"RLIMIT_MEMLOCK is {format_bytes(limit or 0)}, the segment {format_bytes(instance.demand.segment_bytes)}."
        )
        fix = "Install limits.d or the LimitMEMLOCK drop-in, then restart it."
        return wrong(MEMLOCK, instance.name, "It may not lock its segment", reason, fix)
    return ok(MEMLOCK, instance.name, "It may lock its segment", "RLIMIT_MEMLOCK is large enough.")


_MEMLOCK: Final = Judge.by(MEMLOCK, _memlock)
