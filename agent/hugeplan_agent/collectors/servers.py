"""Database servers among the processes of the node: which engine, which processes, which key."""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hugeplan_agent.collectors import cgroup_units, mappings
from hugeplan_agent.collectors.cgroup_units import owner_of
from hugeplan_agent.collectors.cpu import base_page_bytes
from hugeplan_agent.collectors.engines import ENGINES
from hugeplan_agent.collectors.engines.base import (
    MAX_RECORD_BYTES,
    Engine,
    Facts,
    Server,
    Settings,
    roots_of,
    words_of,
)
from hugeplan_agent.collectors.foreign import Account, Foreign, TooMuchError, foreign
from hugeplan_agent.collectors.pools import sizes_in_use
from hugeplan_agent.collectors.process_table import Process, ProcessTable, in_turn, need_status, table_of
from hugeplan_agent.collectors.walks import MAX_TABLES_BYTES
from hugeplan_agent.host import Host

REREAD_SECONDS = 600.0
"""Settings and mappings of a server that goes on running are read again after this time."""

NEVER = float("-inf")

NEXT_SECONDS = 20.0
"""Those of which something was left are read again after this time: observations are a minute apart."""

MAX_SERVERS = 256
MAX_PROGRAMS = 4096
MAX_PROGRAM_CHARACTERS = 1024
"""Of its path; an engine with a longer one is known by its command name."""


Answer = TypeVar("Answer")

_COMMANDS = frozenset(command for engine in ENGINES for command in engine.commands)


@dataclass
class Found:
    """A server of this observation with the engine it belongs to."""

    engine: Engine
    server: Server
    source: str
    members: list[Process] = field(default_factory=list)


def arguments_of(host: Host, pid: int) -> list[str]:
    """The command line, split as the process was given it. It never leaves this module but through a whitelist."""
    return words_of(host.read_optional(f"proc/{pid}/cmdline", MAX_RECORD_BYTES) or "")


def executable_of(host: Host, process: Process) -> str | None:
    """The path of its program as it sees it; None when this user may not look. Read once in its life."""
    kept = host.kept("executables")
    if process.key not in kept:
        if len(kept) > MAX_PROGRAMS:
            kept.clear()
        target = host.read_link(f"proc/{process.pid}/exe")
        if process.pid in host.left_alone:
            return None  # for now
        # Processes of one program share its name.
        is_name = target is not None and len(target) <= MAX_PROGRAM_CHARACTERS
        kept[process.key] = sys.intern(str(target).removesuffix(" (deleted)")) if is_name else None
    found: str | None = kept[process.key]
    return found


def unforeseen(settings: Settings, read: Callable[[], Answer], otherwise: Answer) -> Answer:
    """What ``read`` answers. Any user starts servers: one that a reader fails at costs what is known of it alone."""
    try:
        return read()
    except Exception as error:
        settings.missing(f"it could not be read: {type(error).__name__}")
        return otherwise


def find_servers(host: Host, table: ProcessTable, failed: Settings) -> list[Found]:
    """All servers. A process is recognised by its command name or, when that was changed, by its program.

    ``failed`` takes the engines whose processes could not be grouped, and how many servers are left out.
    """
    found: list[Found] = []
    # Few processes are servers: one look at each, and the engines share what is left.
    possible = [process for process in table.by_pid.values() if not _COMMANDS.isdisjoint(_called(host, process))]
    for engine in ENGINES:
        if engine.group is not None:
            pairs = _grouped(engine, host, table, failed)
        else:
            matching = [process for process in possible if _is_one(host, process, engine)]
            roots = matching if engine.starts_others else roots_of(matching)
            trees = table.trees(roots) if engine.has_child_processes else [[root] for root in roots]
            pairs = list(zip(roots, trees))
        for main, members in pairs:
            program = executable_of(host, main)
            main.account = owner_of(host)(need_status(host, main))
            server = Server(host, main, members, program)
            source = "executable" if _base(program) in engine.commands else "command_name"
            found.append(Found(engine, server, source, members))
    return _at_most(_without_doubles(found), MAX_SERVERS, failed)


def _grouped(engine: Engine, host: Host, table: ProcessTable, failed: Settings) -> list[tuple[Process, list[Process]]]:
    assert engine.group is not None
    try:
        return engine.group(host, table, list(table.by_pid.values()))
    except Exception as error:
        failed.missing(f"servers of {engine.name} could not be found: {type(error).__name__}")
        return []


def _called(host: Host, process: Process) -> tuple[str | None, ...]:
    """The command name and, where it may be looked at, the program's."""
    return (process.name, _base(executable_of(host, process))) if process.has_status else (process.name,)


def _is_one(host: Host, process: Process, engine: Engine) -> bool:
    if process.name in engine.commands:
        # MariaDB still installs a link mysqld: the program tells which of the two it is.
        program = _base(executable_of(host, process)) if process.name == "mysqld" else None
        return program not in {"mariadbd"} or engine.name == "mariadb"
    return process.has_status and _base(executable_of(host, process)) in engine.commands


def _base(path: str | None) -> str | None:
    return path.rpartition("/")[2] if path else None


def _at_most(found: list[Found], most: int, failed: Settings) -> list[Found]:
    """As many servers of each account, so that nobody's processes leave no room for those of others. Of one account
    the largest: where users cannot be told apart, processes that hold nothing hide none that does."""
    if len(found) <= most:
        return found
    failed.missing(f"{len(found) - most} of {len(found)} servers are left out: a report has room for {most}")

    def order(one: Found) -> tuple[int, int]:
        return -max(member.weight_bytes for member in one.members).bit_length(), one.server.main.pid

    kept = in_turn(found, lambda one: one.server.main.account, order)[:most]
    return sorted(kept, key=lambda one: one.server.main.pid)


def _without_doubles(found: list[Found]) -> list[Found]:
    seen: set[int] = set()
    kept = []
    for one in found:
        if one.server.main.pid not in seen:
            seen.add(one.server.main.pid)
            kept.append(one)
    return sorted(kept, key=lambda one: one.server.main.pid)


@dataclass
class _Kept:
    """What was read of a server last."""

    facts: Facts
    read_at: float
    """Never: as far as there was room once others of its account were read."""
    is_unfinished: bool


def _read_in_turn(host: Host, found: list[Found]) -> None:
    """Settings and mappings of the servers: accounts that had no turn for longest come first, and of each the server
    that was not read for longest. Whoever is first has the whole room, so nobody's are unread for good."""
    turns, kept, room, now = host.kept("database turns"), host.kept("database facts"), foreign(host), time.monotonic()
    of_account: dict[Account, list[Found]] = {}
    for one in found:
        of_account.setdefault(one.server.main.account, []).append(one)
    host.keep_only("database turns", of_account)
    for account in of_account:
        turns.setdefault(account, now)  # a new one comes after those that wait
    for account in sorted(of_account, key=lambda account: turns[account]):
        used = room.used.get(account)
        for one in sorted(of_account[account], key=lambda one: _read_at(kept.get(one.server.main.key))):
            _read_one(host, one)
        if account not in room.missed:
            turns[account] = now
        if host.checkpoint is not None and room.used.get(account) != used:
            host.checkpoint()


def _read_at(known: _Kept | None) -> float:
    return NEVER if known is None else known.read_at


def _read_one(host: Host, one: Found) -> None:
    _read_facts(host.kept("database facts"), foreign(host), one)
    unforeseen(facts_of(host, one).settings, lambda: _read_mappings(host, foreign(host), one), None)


def _read_facts(kept: dict[Hashable, Any], room: Foreign, one: Found) -> None:
    """What the engine's reader says; kept for ten minutes while the server runs, and while there is no room for it or
    it is left alone."""
    main, now, known = one.server.main, time.monotonic(), kept.get(one.server.main.key)
    if known is not None and now - known.read_at <= (NEXT_SECONDS if known.is_unfinished else REREAD_SECONDS):
        return
    used, nothing = room.used.get(main.account, 0), Facts(Settings(frozenset()))
    facts = unforeseen(nothing.settings, lambda: one.engine.describe(one.server), nothing)
    # With the whole share to itself there will be no more of it another time.
    is_less = one.server.is_cut and (used > 0 or main.account in room.missed)
    is_less |= main.pid in one.server.host.left_alone
    if known is None or not is_less:
        kept[main.key] = _Kept(facts, NEVER if is_less else now, one.server.is_unfinished)


def _read_mappings(host: Host, room: Foreign, one: Found) -> None:
    kept, main, now = host.kept("database segments"), one.server.main, time.monotonic()
    if main.key in kept and now - kept[main.key][0] <= REREAD_SECONDS:
        return
    walks = mappings.rooms(host)[main.account.is_system]
    with suppress(TooMuchError):  # in a later observation; what was found before is not wrong for that
        room.require(main.account)
        with walks.walk(main.account):
            may_walk = (main.vm_pte_bytes or 0) <= MAX_TABLES_BYTES
            base, sizes = base_page_bytes(host), sizes_in_use(host)
            mapped, count = mappings.read(host, main.pid, base, sizes, may_walk=may_walk)
            mapped, bound = mapped and mappings.largest(mapped, one.engine.shares_segment), None
            if mapped and may_walk and not (main.numa_nodes or "0").isdecimal():  # else there is one NUMA node to be on
                bound, more = mappings.bound_to(host, main.pid, mapped[0].start)
                count += more
        room.spend(main.account, count)
        if main.pid not in host.left_alone:
            kept[main.key] = now, mapped, bound
    if main.account in walks.missed:
        room.missed.add(main.account)


def facts_of(host: Host, one: Found) -> Facts:
    """What was read of a server of this observation."""
    known: _Kept = host.kept("database facts")[one.server.main.key]
    return known.facts


@dataclass
class Servers:
    """The servers of one observation, with the key of each and the checksum of its data folder where that is known."""

    found: list[Found]
    keys: list[str]
    instance_ids: list[str | None]
    of_pid: dict[int, str]
    failed: str | None
    """Engines whose servers could not be found, and how many are left out."""


def read_servers(host: Host) -> Servers:
    table = table_of(host)
    host.keep_only("executables", (process.key for process in table.by_pid.values()))
    failed = Settings(frozenset())
    found = find_servers(host, table, failed)
    for one in found:
        for process in one.members:
            need_status(host, process)
    keys_of_mains = [one.server.main.key for one in found]
    for name in ("database facts", "database segments"):
        host.keep_only(name, keys_of_mains)
    _read_in_turn(host, found)
    placed = cgroup_units.placement(host).unit_of_pid
    # Paths stay on the node: a checksum of the data folder tells servers of one unit apart.
    ids = [_checksum(facts_of(host, one).instance) for one in found]
    wanted = []
    for one, instance_id in zip(found, ids):
        port = facts_of(host, one).port
        tail = instance_id if port is None else port
        place = f"{one.engine.name}@{placed.get(one.server.main.pid) or 'node'}"
        wanted.append(f"{place[:470]}{'' if tail is None else f':{tail}'}")
    keys = _each_once(wanted, ids, [one.server.main for one in found])
    of_pid = {process.pid: key for one, key in zip(found, keys) for process in one.members}
    return Servers(found, keys, ids, of_pid, failed.note)


def _checksum(folder: str | None) -> str | None:
    return hashlib.sha256(folder.encode("utf-8", "surrogatepass")).hexdigest()[:12] if folder else None


def _each_once(wanted: list[str], ids: list[str | None], mains: list[Process]) -> list[str]:
    """Servers of one unit and port, each on a socket of its own: all of them get their data folder's checksum.

    A key by order or PID would name another server as soon as one of them restarts. Where two users say the same
    folder, neither has the key of one; of one user's the largest keeps it.
    """
    alike = Counter(wanted)
    keys = [
        key if alike[key] == 1 or instance_id is None else f"{key}#{instance_id}"
        for key, instance_id in zip(wanted, ids)
    ]
    users: dict[str, set[int | None]] = {}
    for key, main in zip(keys, mains):
        users.setdefault(key, set()).add(main.user)
    keys = [key if len(users[key]) == 1 else f"{key}#{main.user}" for key, main in zip(keys, mains)]
    taken: set[str] = set()
    for at in sorted(range(len(keys)), key=lambda at: (-mains[at].weight_bytes.bit_length(), mains[at].pid)):
        if keys[at] in taken:
            keys[at] += f"#{mains[at].pid}"
        taken.add(keys[at])
    return keys


def servers_of(host: Host) -> Servers:
    """The servers of this observation."""
    return host.shared("servers", read_servers)


def server_of_pid(host: Host) -> dict[int, str]:
    """pid -> key of the database that the process belongs to."""
    return servers_of(host).of_pid
