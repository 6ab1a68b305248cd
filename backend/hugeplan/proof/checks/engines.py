"""On which page size does each engine really run, and will its limits let it go on?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hugeplan.planner.findings.base import attention, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding, InstancePlan, Plan
from hugeplan.planner.pages import counted_pages, page_label
from hugeplan.planner.units import format_bytes
from hugeplan.proof.observation import Observation

BACKING = "verify_engine"
LIMIT = "verify_limit"
MEMLOCK = "verify_memlock"
#: Engines whose segments count against RLIMIT_MEMLOCK: System V segments and mlock.
_LOCKING = frozenset({"oracle", "db2"})


def servers_of(plan: Plan, observed: Observation) -> dict[str, Mapping[str, Any] | None]:
    """Each instance with the server that runs it: by its name in the server's key, else the only one of its engine.

    Of several servers of one engine the one whose segment comes nearest to the planned one is taken once.
    """
    left = list(observed.listed("databases"))
    found: dict[str, Mapping[str, Any] | None] = {}
    for instance in sorted(plan.instances, key=lambda i: -i.demand.segment_bytes):
        same = [server for server in left if server.get("engine") == instance.engine]
        named = [server for server in same if instance.name.lower() in str(server.get("key", "")).lower()]
        choice = min(named or same, key=lambda s: abs(_largest(s) - instance.demand.segment_bytes), default=None)
        if choice is not None:
            left.remove(choice)
        found[instance.name] = choice
    return found


def _largest(server: Mapping[str, Any]) -> int:
    return max((int(s.get("bytes") or 0) for s in server.get("segments") or ()), default=0)


def check_backing(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding per instance that the plan gives huge pages."""
    servers = servers_of(plan, observed)
    for instance in plan.instances:
        if instance.page_bytes is None:
            continue
        server = servers[instance.name]
        if server is None:
            why = (
                f"No {instance.engine} server was found."
                if observed.knows("databases")
                else "Servers were not observed."
            )
            yield unknown(
                BACKING, instance.name, "It is not known on which pages it runs", why, "Start it, then verify again."
            )
        else:
            yield _backing(instance, server)


def _backing(instance: InstancePlan, server: Mapping[str, Any]) -> Finding:
    name, planned = instance.name, page_label(instance.page_bytes or 0)
    segments = [s for s in server.get("segments") or () if s.get("backing") == "hugetlb" and s.get("page_bytes")]
    status = server.get("huge_pages_status")
    pid = measured("pid", server.get("main_pid"))
    if status is None:
        return unknown(
            BACKING,
            name,
            "It is not known on which pages it runs",
            "Its mappings could not be read: only root and the server's own user may.",
            "Run hugeplan verify as root.",
        )
    if not segments and status != "on":
        return wrong(
            BACKING,
            name,
            f"It runs on base pages, not on {planned}",
            f"The shared memory of process {server.get('main_pid')} lies on base pages: it fell back, or never asked.",
            "Set huge_pages = on (large_pages for MySQL), check the limit and the pool, and restart it.",
            evidence=(pid,),
        )
    sizes = sorted({int(s["page_bytes"]) for s in segments})
    others = [page_label(size) for size in sizes if size != instance.page_bytes]
    also = {size for size, _ in instance.demand.also_pages}
    pages = sum(-(-int(s["bytes"]) // int(s["page_bytes"])) for s in segments if s["page_bytes"] == instance.page_bytes)
    if sizes and instance.page_bytes not in sizes:
        return wrong(
            BACKING,
            name,
            f"It runs on pages of {', '.join(others)}, not of {planned}",
            f"The plan reserves pages of {planned} for it; it took them from another pool.",
            "Name the page size in its settings, or set default_hugepagesz= as planned.",
            evidence=(pid,),
        )
    if status == "partial" or any(size not in also for size in sizes if size != instance.page_bytes):
        return attention(
            BACKING,
            name,
            "Only a part of its memory lies on the planned pages",
            f"{counted_pages(pages, instance.page_bytes or 0)} are mapped; another part lies elsewhere.",
            "Check that the pool was complete when it started, then restart it.",
            evidence=(pid,),
        )
    planned_pages, error = instance.demand.pages, instance.demand.error_pages
    if pages and abs(pages - planned_pages) > error:
        return attention(
            BACKING,
            name,
            f"It maps {pages} pages of {planned}, {planned_pages} are planned",
            f"The difference is beyond the rule's error of {error}: its settings are not the plan's.",
            "Write the plan's settings, or plan again with the server's.",
            evidence=(pid, measured("pages mapped", pages)),
        )
    mapped = f"It maps {counted_pages(pages, instance.page_bytes or 0)}." if pages else "Its mappings are huge."
    return ok(BACKING, name, f"It runs on pages of {planned}", mapped, evidence=(pid, measured("pages mapped", pages)))


def check_limits(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding per server with a pool: does a cgroup's limit hold its segment?"""
    servers = servers_of(plan, observed)
    for instance in plan.instances:
        server = servers[instance.name]
        if instance.page_bytes is None or server is None:
            continue
        limits = server.get("hugetlb_limits")
        if limits is None:
            yield unknown(
                LIMIT, instance.name, "Whether a limit acts is not known", "The hugetlb controller was not read."
            )
            continue
        need = max(
            (
                int(s.get("bytes") or 0)
                for s in server.get("segments") or ()
                if s.get("page_bytes") == instance.page_bytes
            ),
            default=instance.demand.segment_bytes,
        )
        short = [
            limit
            for limit in limits
            if limit.get("page_bytes") == instance.page_bytes
            and limit.get("limit_bytes") is not None
            and limit["limit_bytes"] < max(need, instance.demand.segment_bytes)
        ]
        if not short:
            yield ok(LIMIT, instance.name, "No limit is below its segment", "Usage and reservation limits hold it.")
        for limit in short:
            yield _short(instance, limit, max(need, instance.demand.segment_bytes))


def _short(instance: InstancePlan, limit: Mapping[str, Any], need: int) -> Finding:
    size = format_bytes(int(limit["limit_bytes"]))
    if limit.get("counter") == "usage":
        title = "A time bomb: queries fail once its cache is warm"
        reason = f"The usage limit of {limit.get('cgroup_path')} is {size}, its segment is {format_bytes(need)}."
    else:
        title = "A silent fallback at its next start"
        reason = f"The reservation limit of {limit.get('cgroup_path')} is {size}, its segment is {format_bytes(need)}."
    pages = instance.demand.pages + instance.demand.error_pages
    fix = f"Raise the limit to {format_bytes(pages * (instance.page_bytes or 0))}: {pages} pages."
    return wrong(LIMIT, instance.name, title, reason, fix, evidence=(measured("limit", size),))


def check_memlock(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding per server that locks its segments."""
    servers = servers_of(plan, observed)
    for instance in plan.instances:
        server = servers[instance.name]
        if instance.engine not in _LOCKING or instance.page_bytes is None or server is None:
            continue
        limit, limited = server.get("memlock_limit_bytes"), server.get("memlock_limited")
        if limited is None:
            yield unknown(MEMLOCK, instance.name, "How much it may lock is not known", "Its limits could not be read.")
        elif limited and (limit or 0) < instance.demand.segment_bytes:
            yield wrong(
                MEMLOCK,
                instance.name,
                "It may not lock its segment",
                f"RLIMIT_MEMLOCK is {format_bytes(limit or 0)}, the segment "
                f"{format_bytes(instance.demand.segment_bytes)}.",
                "Install limits.d or the LimitMEMLOCK drop-in, then restart it.",
            )
        else:
            yield ok(MEMLOCK, instance.name, "It may lock its segment", "RLIMIT_MEMLOCK is large enough.")
