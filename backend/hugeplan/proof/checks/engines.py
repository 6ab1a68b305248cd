"""On which page size does each engine really run, and will its limits let it go on?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from hugeplan.planner.demand import ENGINES, engine_named
from hugeplan.planner.findings import findings_by, pod_limit
from hugeplan.planner.findings.base import Claim, Facts, attention, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding, InstancePlan, Plan, State
from hugeplan.planner.observation.server_owners import port_of_key
from hugeplan.planner.pages import counted_pages, kubernetes_resource_name, page_label
from hugeplan.planner.units import format_bytes
from hugeplan.proof.causes import Cause, because
from hugeplan.proof.holders import called, holders
from hugeplan.proof.matching import Matched, Server, match_servers, owner_of
from hugeplan.proof.observation import Observation

BACKING = "verify_engine"
"""On which pages does the server really run: the planned ones, pages of another size, or base pages?
Where it maps less than nine tenths of the planned ones, that is unknown: it is another server, or its settings are."""
LIMIT = "verify_limit"
"""Is a huge page limit of a cgroup below the segment? A usage limit ends in SIGBUS, a reservation limit in a fallback;
what is wrong is worded as in pod_limit_below_segment."""
MEMLOCK = "verify_memlock"
"""May a server that locks its segment lock all of it?"""
MAPPED = "pages mapped"
MAX_DIFFERENT_PAIRS = 256
"""Different demands times different servers that are judged where it cannot be told which is which."""
_JUDGED_BY = ("huge_pages_status", "segments", "version", "memlock_limit_bytes", "memlock_limited")


Judge = Callable[[InstancePlan, Server], Finding]


def check(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """Each instance that the plan gives huge pages, with its server or those that it may be."""
    servers = match_servers(plan, observed)
    found = [(instance, servers[instance.name]) for instance in plan.instances if instance.page_bytes is not None]
    by_name = {instance.name: instance for instance in plan.instances}
    groups: dict[int, _Group] = {}
    for _, matched in found:
        if id(matched) not in groups:  # instances that may be the same servers share one answer of the matching
            groups[id(matched)] = _Group(matched, [by_name[name] for name in matched.rivals])
    pairs = [(instance, groups[id(matched)]) for instance, matched in found]
    yield from _backings(pairs, observed)
    yield from _all_limits(pairs)
    yield from _memlocks(pairs)


class _Group:
    """The instances that share candidates, and what is the same for all of them, worked out once.

    A state depends on what an instance demands and on what a server has, not on their names: thirty equal pods are
    judged once. ``is_clear`` is False where so many different ones meet that judging each with each takes too long.
    """

    def __init__(self, matched: Matched, rivals: Sequence[InstancePlan]) -> None:
        self.matched, self.rivals = matched, rivals
        self._classes = {id(server): _class_of(server) for server in matched.candidates}
        kinds = len({_demand_of(one) for one in rivals}) * len(set(self._classes.values()))
        self.is_clear = kinds <= MAX_DIFFERENT_PAIRS
        self._states: dict[tuple[Any, ...], State] = {}
        self._bad: dict[str, Server | None] = {}

    @cached_property
    def names_of_candidates(self) -> str:
        """The servers, the first of many."""
        return _first_of(sorted(called(server) for server in self.matched.candidates))

    @cached_property
    def names_of_rivals(self) -> str:
        """The instances, the first of many."""
        return _first_of([rival.name for rival in self.rivals])

    def state(self, code: str, judge: Judge, instance: InstancePlan, server: Server) -> State:
        """What ``judge`` says of the instance if it is this server."""
        key = (code, _demand_of(instance), self._classes[id(server)])
        if key not in self._states:
            self._states[key] = judge(instance, server).state
        return self._states[key]

    def bad_server(self, code: str, judge: Judge) -> Server | None:
        """A server that is wrong whichever of the instances it is."""
        if code not in self._bad:
            self._bad[code] = next(
                (
                    server
                    for server in self.matched.candidates
                    if all(
                        rival.page_bytes is not None and self.state(code, judge, rival, server) is State.WRONG
                        for rival in self.rivals
                    )
                ),
                None,
            )
        return self._bad[code]


def _demand_of(instance: InstancePlan) -> tuple[Any, ...]:
    """All of an instance that a judgement's state depends on."""
    demand = instance.demand
    pages = (demand.pages, demand.error_pages, demand.segment_bytes, demand.also_pages)
    return (instance.engine, instance.page_bytes, demand.version, *pages)


def _class_of(server: Server) -> str:
    """All of a server that a judgement's state depends on: not who it is, nor where."""
    limits = server.get("hugetlb_limits")
    if limits is not None:
        limits = [{**limit, "cgroup_path": "kubepods" in str(limit.get("cgroup_path"))} for limit in limits]
    return repr((limits, *(server.get(name) for name in _JUDGED_BY)))


def _first_of(names: Sequence[str], most: int = 8) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _backings(pairs: Iterable[tuple[InstancePlan, _Group]], observed: Observation) -> Iterable[Finding]:
    found: list[tuple[InstancePlan, Finding, int | None]] = []
    said: Counter[int] = Counter()
    for instance, group in pairs:
        if not group.matched.possible:
            one = _absent(instance, observed, group.matched.of_users)
        else:
            one = _judged(BACKING, instance, group, partial(_backing, observed))
        mapped = next((int(str(term.value)) for term in one.evidence if term.name == MAPPED), None)
        found.append((instance, one, mapped))
        said[instance.page_bytes or 0] += instance.demand.pages if mapped is not None else 0
    for instance, one, mapped in found:
        size = instance.page_bytes or 0
        pool = observed.global_pool(size) or {}
        total, free, reserved = (pool.get(name) for name in ("nr_hugepages", "free_hugepages", "resv_hugepages"))
        idle = int(free or 0) - int(reserved or 0)
        if mapped is None:
            yield one
        elif one.state is State.ATTENTION and _is_short(mapped, instance.demand.pages - instance.demand.error_pages):
            yield replace(one, state=State.UNKNOWN)  # another server, or other settings: neither is the plan
        elif None not in (total, free, reserved) and _is_short(
            int(total or 0) - idle, min(said[size], int(total or 0))
        ):  # a mapping without a reservation (MAP_NORESERVE) has no pages
            title = f"It is said to run on pages of {page_label(size)}, and {idle:,} of them are idle"
            fix = "Check huge_pages_status or its log, restart it, then verify again."
            yield unknown(BACKING, instance.name, title, one.reason, fix, evidence=one.evidence)
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
        uids = [None if planned in (None, uid) else uid for uid in map(owner_of, of_users)]
        of_uids = ["" if uid is None else f" of uid {uid}" for uid in uids]
        names = _first_of([called(one) + of_uid for one, of_uid in zip(of_users, of_uids, strict=True)])
        reason += f" {names}: a user of the node may have made it look so,"
        reason += " or it runs in another unit than was planned for."
        reason += f" The planned server ran as uid {planned}." if any(of_uids) else ""
        fix += " If it is that one, plan again with its key as runs_as."
    evidence = (because(Cause.NOT_RUNNING),)
    return unknown(BACKING, instance.name, f"{which} is not running", reason, fix, evidence=evidence)


def _judged(code: str, instance: InstancePlan, group: _Group, judge: Judge) -> Finding:
    """The verdict on its server; where several may be it, what holds for each of them, else unknown."""
    matched, rivals = group.matched, group.rivals
    if matched.server is not None:
        return judge(instance, matched.server)
    candidates = matched.candidates
    apart = f"Port, data directory, unit, name and segment size do not tell which of {group.names_of_candidates} it is."
    if group.is_clear:
        # As many instances as servers, or more: each server is one of them, so what is wrong for all of them is wrong.
        bad = group.bad_server(code, judge) if len(candidates) <= len(rivals) else None
        if bad is not None:
            worst = judge(instance, bad)
            return replace(worst, reason=f"This is one of {group.names_of_rivals}. {worst.reason} {apart}")
        # With more servers than instances, all of them may be somebody else's: then only what is right for each is
        # said.
        states = {group.state(code, judge, instance, server) for server in candidates}
        sure = len(candidates) == len(rivals) or (states == {State.OK} and len(candidates) > len(rivals))
        if sure and len(states) == 1:
            found = judge(instance, candidates[0])
            return replace(found, reason=f"{found.reason} The same holds for each server that it may be. {apart}")
    return unknown(
        code, instance.name, "Which server runs it cannot be told", apart,
        "Plan again with its port=, pid= or data_directory= (hugeplan plan --node this), or with runs_as.",
    )  # fmt: skip


def _on_base_pages(observed: Observation, instance: InstancePlan, server: Server) -> Finding:
    """A server on base pages: to be restarted, or others hold the pages, or it fell back for another cause."""
    size, planned = instance.page_bytes or 0, page_label(instance.page_bytes or 0)
    pool = observed.global_pool(size) or {}
    counts = [pool.get(name) for name in ("nr_hugepages", "free_hugepages", "resv_hugepages")]
    room = None if None in counts[1:] else int(counts[1] or 0) - int(counts[2] or 0)
    pid = measured("pid", server.get("main_pid"))
    lies = f"The shared memory of {called(server)} lies on base pages"
    is_short = int(counts[0] or 0) < instance.demand.pages  # then the pool has its own finding
    if room is None or is_short or _limits(instance, server)[0].state is State.WRONG:
        title = f"It runs on base pages, not on {planned}"
        fix = "Set huge_pages = on (large_pages for MySQL), check the limit and the pool, and restart it."
        return wrong(BACKING, instance.name, title, f"{lies}: it fell back, or never asked.", fix, evidence=(pid,))
    if room >= instance.demand.pages:
        title = f"It still runs on base pages, not on {planned}"
        reason = f"{lies}; {counted_pages(room, size)} are free. It started before they were, or did not ask."
        evidence = (pid, measured("free pages", room), because(Cause.NOT_RESTARTED))
        return attention(
            BACKING, instance.name, title, reason, "Install the plan's file for it and restart it.", evidence=evidence
        )
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


def _backing(observed: Observation, instance: InstancePlan, server: Server) -> Finding:
    name, planned = instance.name, page_label(instance.page_bytes or 0)
    segments = [s for s in server.get("segments") or () if s.get("backing") == "hugetlb" and s.get("page_bytes")]
    status = server.get("huge_pages_status")
    pid = measured("pid", server.get("main_pid"))
    if status is None:
        reason = "Its mappings could not be read: only root and the server's own user may."
        return unknown(BACKING, name, "It is not known on which pages it runs", reason, "Run hugeplan verify as root.")
    if not segments and status != "on":
        return _on_base_pages(observed, instance, server)
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
    planned_pages, error = instance.demand.pages, instance.demand.error_pages
    if pages and abs(pages - planned_pages) > error:
        title = f"It maps {pages:,} pages of {planned}, {planned_pages:,} are planned"
        evidence = (pid, measured(MAPPED, pages))
        return attention(BACKING, name, title, *_why_other_pages(instance, server), evidence=evidence)
    mapped = f"It maps {counted_pages(pages, instance.page_bytes or 0)}." if pages else "Its mappings are huge."
    return ok(BACKING, name, f"It runs on pages of {planned}", mapped, evidence=(pid, measured(MAPPED, pages)))


def _why_other_pages(instance: InstancePlan, server: Server) -> tuple[str, str]:
    """Reason and fix where a server maps another number of pages: its version first, then its settings."""
    beyond = f"The difference is beyond the rule's error of {instance.demand.error_pages}"
    planned, real = instance.demand.version, server.get("version")
    again = "Write the plan's settings, or plan again with the server's."
    if planned is None:
        return f"{beyond}: its settings are not the plan's.", again
    if real is None:
        return (
            f"{beyond}: its settings are not the plan's, or its version is not {planned}, which was planned for.",
            again,
        )
    if _is_version(planned, str(real)):
        return f"{beyond}: its settings are not the plan's.", again
    return (
        f"The plan is for version {planned}, the server is version {real}. Versions divide their shared memory "
        "differently, so this says nothing about its settings.",
        f"Give the instance version {real} in the scenario, and plan again.",
    )


def _is_version(planned: str, real: str) -> bool:
    """Whether a version is the planned one, as far as both are given: 18.1 is 18."""
    return all(one == other for one, other in zip(planned.split("."), real.split("."), strict=False))


def _all_limits(pairs: Iterable[tuple[InstancePlan, _Group]]) -> Iterable[Finding]:
    """One finding per server with a pool: does a cgroup's limit hold its segment? More where several are short."""
    for instance, group in pairs:
        if group.matched.server is not None:
            yield from _limits(instance, group.matched.server)
        elif group.matched.possible:
            yield _judged(LIMIT, instance, group, lambda i, s: _limits(i, s)[0])


def _limits(instance: InstancePlan, server: Server) -> list[Finding]:
    limits = server.get("hugetlb_limits")
    if limits is None:
        title, why = "Whether a limit acts is not known", "The hugetlb controller was not read."
        return [unknown(LIMIT, instance.name, title, why)]
    own = [one for one in limits if one.get("page_bytes") == instance.page_bytes and one.get("limit_bytes") is not None]
    claims = tuple(_claim(instance, server, limit) for limit in own)
    cause = {State.WRONG: (because(Cause.LIMIT),)}
    return [
        replace(found, code=LIMIT, evidence=(*found.evidence, *cause.get(found.state, ())))
        if found.code == pod_limit.CODE
        else found
        for found in findings_by(Facts(claims=claims))
        if found.state is not State.OK
    ] or [ok(LIMIT, instance.name, "No limit is below its segment", "Usage and reservation limits hold it.")]


def _claim(instance: InstancePlan, server: Server, limit: Mapping[str, Any]) -> Claim:
    """What the server maps, or the plan's instance where that is more, beside one of its cgroup's limits."""
    size = instance.page_bytes or 1
    mapped = [int(s.get("bytes") or 0) for s in server.get("segments") or () if s.get("page_bytes") == size]
    pages = max(instance.demand.pages, *(-(-need // size) for need in (*mapped, instance.demand.segment_bytes)))
    counter, cgroup = limit.get("counter"), str(limit.get("cgroup_path") or "")
    return Claim(
        subject=instance.name,
        engine=instance.engine,
        page_bytes=size,
        pages=pages,
        error_pages=0 if mapped else instance.demand.error_pages,
        grant={kubernetes_resource_name(size): (pages + instance.demand.error_pages) * size},
        limit_bytes=int(limit["limit_bytes"]) // size * size,
        counter=counter,
        holder=f"of its container: the {counter} limit of {cgroup} is short",
        cgroup=None if "kubepods" in cgroup else cgroup,
    )


def _memlocks(pairs: Iterable[tuple[InstancePlan, _Group]]) -> Iterable[Finding]:
    """One finding per server that locks its segments."""
    for instance, group in pairs:
        locks = engine_named(instance.engine).locks_segment(instance.demand.version or "")
        if locks and group.matched.possible:
            yield _judged(MEMLOCK, instance, group, _memlock)


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
