"""Oracle Database: processes of one SID without a common parent; the SGA is System V or POSIX shared memory."""

from __future__ import annotations

import re

from hugeplan_agent.collectors import cgroup_units
from hugeplan_agent.collectors.cgroup_units import owner_of
from hugeplan_agent.collectors.engines.base import Engine, Facts, Server, Settings, plain_lines
from hugeplan_agent.collectors.process_table import Process, ProcessTable, need_status
from hugeplan_agent.host import Host

SETTINGS = frozenset(
    [
        "db_cache_size",
        "inmemory_size",
        "java_pool_size",
        "large_pool_size",
        "lock_sga",
        "log_buffer",
        "memory_max_target",
        "memory_target",
        "pga_aggregate_limit",
        "pga_aggregate_target",
        "pre_page_sga",
        "processes",
        "sessions",
        "sga_max_size",
        "sga_target",
        "shared_pool_size",
        "streams_pool_size",
        "use_large_pages",
    ]
)
BACKGROUND = re.compile(r"(?:ora|mdb|xe)_[a-z0-9]+_(\w{1,64})")
FOREGROUND = re.compile(r"oracle(\w{1,64})")


def sid_of(title: str) -> str | None:
    """The SID in a process's title: ``ora_pmon_ORCL`` or ``oracleORCL (LOCAL=NO)``."""
    word = title.split(" ", maxsplit=1)[0].split("\0", maxsplit=1)[0]
    match = BACKGROUND.fullmatch(word) or FOREGROUND.fullmatch(word)
    return match[1] if match else None


def group(host: Host, table: ProcessTable, _found: list[Process]) -> list[tuple[Process, list[Process]]]:
    """The process monitor of each SID, and all processes with that SID, by user and container: anybody may take a
    title, and whoever is root in a container any user id.

    A title is read once, and none after a look was given up: those that do not answer would come before all servers.
    """
    kept = host.kept("oracle titles")
    host.keep_only("oracle titles", (process.key for process in table.by_pid.values()))
    by_sid: dict[tuple[str, int | None, str], list[Process]] = {}
    units = cgroup_units.placement(host).unit_of_pid
    for process in table.by_pid.values():
        if process.name.startswith(("ora_", "oracle")):
            title = None
            if process.key not in kept and host.checkpoint is None:
                title = host.read_record(f"proc/{process.pid}/cmdline")
            sid = kept.get(process.key) or sid_of(title or process.name)
            if sid is not None:
                kept.update({process.key: sid} if title else {})
                unit, user = units.get(process.pid, ""), need_status(host, process).user
                account = owner_of(host)(process) if process.is_below else None
                place = unit if unit.startswith(("container:", "pod:")) else account.cgroup if account else ""
                by_sid.setdefault((place, user, sid), []).append(process)
    servers = []
    for members in by_sid.values():
        main = next((process for process in members if process.name.startswith("ora_pmon")), None)
        if main is not None:
            servers.append((main, members))
    return servers


def parse_parameters(text: str, settings: Settings) -> list[tuple[str, str]]:
    """``*.sga_target=8G`` of a text parameter file; a line for one instance counts like one for all."""
    pairs = []
    for line in plain_lines(text, settings, "#"):
        name, equals, value = line.partition("=")
        if equals:
            pairs.append((name.strip().rpartition(".")[2].lower(), value.strip().strip("'\"")))
    return pairs


def describe(server: Server) -> Facts:
    settings = Settings(SETTINGS)
    sid = sid_of("\0".join(server.arguments)) or ""
    home = (server.executable or "").rpartition("/bin/")[0]
    text = server.try_read(f"{home}/dbs/init{sid}.ora", settings) if home and sid else None
    for name, value in parse_parameters(text or "", settings):
        settings.put(name, value, f"init{sid}.ora"[:64])
    settings.missing("a server parameter file (spfile) is binary and overrules text files")
    version = re.search(r"/product/(\d+(?:\.\d+)*)", server.executable or "")
    return Facts(
        settings,
        version=version[1] if version else None,
        version_source="executable path" if version else None,
        instance=sid or None,
    )


ENGINE = Engine("oracle", frozenset(), describe, shares_segment=True, group=group)
