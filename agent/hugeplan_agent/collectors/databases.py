"""Database servers that run on the node: engine, version, settings, what backs their memory, what limits them.

No login is needed. What this user may not look into stays unknown, with a note.
"""

from __future__ import annotations

from typing import Any

from hugeplan_agent.collectors import hugetlb_cgroups, mappings, units
from hugeplan_agent.collectors.database_schema import DATABASE
from hugeplan_agent.collectors.keyvalue import largest, total
from hugeplan_agent.collectors.limits import memlock
from hugeplan_agent.collectors.process_table import Process
from hugeplan_agent.collectors.servers import Found, Servers, facts_of, servers_of, unforeseen
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import array, ref

MAX_VERSION_CHARACTERS = 64
"""It may stand in a name that a user gave to a folder or a file."""
MIN_TOUCHED_BYTES = 16 * 1024 * 1024
ALL_USERS = ["0", "0", str(2**32 - 1)]
"""/proc/PID/uid_map of whoever is in no user namespace but the node's."""


def segments_of(host: Host, one: Found) -> tuple[list[dict[str, Any]], str | None, str | None]:
    """Its large segments, whether they lie on huge pages, and what tells so."""
    _, found, _ = host.kept("database segments").get(one.server.main.key, (None, None, None))
    if found is None:
        return [], *_status_of_counters(one)
    has_thp = bool((one.server.main.rollup or {}).get("anon_huge_bytes"))
    segments = mappings.segments(found, has_thp)
    status = mappings.status(segments, one.engine.shares_segment)
    return (segments, status, "maps") if status or not segments else (segments, *_status_of_counters(one))


def _status_of_counters(one: Found) -> tuple[str | None, str | None]:
    """Without reading its mappings: huge pages that it has touched, by /proc/PID/status."""
    counts = [process.hugetlb_bytes for process in one.members]
    if any(counts):
        return "on", "status"
    # A pool of which not even a part was touched as ordinary memory may still be mapped and empty.
    touched = [
        process.rss_shmem_bytes if one.engine.shares_segment else process.rss_anon_bytes for process in one.members
    ]
    if all(count == 0 for count in counts) and any((size or 0) >= MIN_TOUCHED_BYTES for size in touched):
        return "off", "status"
    return None, None


def memory_of(one: Found) -> dict[str, Any]:
    """The memory of all its processes: by proportional shares where every one was read, else by resident sets."""
    # One that has ended meanwhile holds nothing; a kernel without RssAnon says it of none.
    members = [process for process in one.members if process.rss_anon_bytes is not None] or one.members
    rollups = [process.rollup for process in members]
    has_shares = all(rollup is not None and "pss_anon_bytes" in rollup for rollup in rollups)
    if has_shares:
        private: int | None = sum(rollup["pss_anon_bytes"] for rollup in rollups if rollup)
        shared: int | None = sum(rollup["pss_shmem_bytes"] for rollup in rollups if rollup)
        file: int | None = sum(rollup["pss_file_bytes"] for rollup in rollups if rollup)
    else:
        private = total(process.rss_anon_bytes for process in members)
        # What each has touched overlaps; the largest is what one of them is sure to have touched.
        shared = largest(process.rss_shmem_bytes for process in members)
        file = largest(process.rss_file_bytes for process in members)
    return {
        "source": "pss" if has_shares else "rss",
        "private_bytes": private,
        "shared_bytes": shared,
        "file_bytes": file,
        "hugetlb_bytes": largest(process.hugetlb_bytes for process in members),
        "page_tables_bytes": total(process.vm_pte_bytes for process in members),
        "swap_bytes": total(process.swap_bytes for process in members),
    }


def owner_uid(host: Host, main: Process) -> int | None:
    """The user whose rights it has; unknown in a user namespace, where most users of the node have one number."""
    mapped = host.shared("uid_map", lambda host: host.read_optional("proc/self/uid_map"))
    is_known = mapped is None or mapped.split() == ALL_USERS
    return main.owner if is_known else None


def allowed_numa_nodes(host: Host, one: Found) -> list[int] | None:
    """Those that it may allocate from: its cpuset's, and of them those that its largest mapping is bound to."""
    *_, bound = host.kept("database segments").get(one.server.main.key, (None,))
    allowed = _ids(one.server.main.numa_nodes or "")
    return sorted(allowed & _ids(bound) if bound else allowed) or None


def _ids(listed: str) -> set[int]:
    ends = (part.split("-") for part in listed.split(",") if part)
    return {number for two in ends for number in range(int(two[0]), int(two[-1]) + 1)}


def entry(host: Host, one: Found, key: str, instance_id: str | None) -> dict[str, Any]:
    """One server as the report has it."""
    facts = facts_of(host, one)
    has_version = len(facts.version or "") <= MAX_VERSION_CHARACTERS
    main, count = one.server.main, one.engine.count_clients
    nothing: tuple[list[dict[str, Any]], str | None, str | None] = ([], None, None)
    segments, status, status_source = unforeseen(facts.settings, lambda: segments_of(host, one), nothing)
    clients = unforeseen(facts.settings, lambda: count(one.server), None) if count else None
    return {
        "key": key,
        "instance_id": instance_id,
        "engine": one.engine.name,
        "engine_source": one.source,
        "product": facts.product,
        "version": facts.version if has_version else None,
        "version_source": facts.version_source if has_version else None,
        "main_pid": main.pid,
        "start_time_ticks": main.start_time_ticks,
        "owner_uid": owner_uid(host, main),
        "process_count": len(one.members),
        "client_count": clients,
        "unit": units.placement(host).unit_of_pid.get(main.pid),
        "port": facts.port if facts.listens_on is None else facts.listens_on,
        "settings": facts.settings.found,
        "settings_complete": facts.settings.complete,
        "settings_note": facts.settings.note,
        "segments": segments,
        "huge_pages_status": status,
        "huge_pages_status_source": status_source if status else None,
        "memory": memory_of(one),
        **memlock(host, main),
        "hugetlb_limits": _limits(host, main),
        "allowed_numa_nodes": unforeseen(facts.settings, lambda: allowed_numa_nodes(host, one), None),
    }


def _limits(host: Host, main: Process) -> list[dict[str, Any]] | None:
    tree = hugetlb_cgroups.tree_of(host)
    if tree is None:
        return []
    path = tree.path_of(host, main)
    return None if path is None else tree.acting_limits(path)


def _unread(host: Host, known: Servers) -> str:
    read = host.kept("database segments").keys() | {(pid, None) for pid in host.left_alone}
    late = sum(read.isdisjoint((one.server.main.key, (one.server.main.pid, None))) for one in known.found)
    return f"the mappings of {late} servers were not read: the time or room for it is used up" if late else ""


def collect(host: Host) -> Fragment:
    known = servers_of(host)
    entries = [entry(host, *one) for one in zip(known.found, known.keys, known.instance_ids)]
    incomplete = sum(one["settings_complete"] is False for one in entries)
    settings = f"the settings of {incomplete} of {len(entries)} servers are incomplete" if incomplete else ""
    settings = "; ".join(filter(None, (settings, _unread(host, known))))
    notes = (known.failed, settings, host.left_alone_note)
    owners = {"databases": [one.server.main.account for one in known.found]}
    return Fragment(sample={"databases": entries}, note="; ".join(filter(None, notes)) or None, owners=owners)


COLLECTOR = Collector(collect, sample={"databases": array(ref("database"), 256)}, definitions={"database": DATABASE})
