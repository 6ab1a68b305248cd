"""All processes of the node, read once per observation and shared by the collectors that need them.

Cheap facts come from /proc/PID/stat for every process and from /proc/PID/status for those that matter. The expensive
one, smaps_rollup, makes the kernel walk the process's page tables under its lock: it is read within a time budget,
and a process that was not read keeps the value of an earlier observation, with its age.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Optional, TypeVar

from hugeplan_agent.collectors import walks
from hugeplan_agent.collectors.cgroup_owners import share_in
from hugeplan_agent.collectors.cpu import base_page_bytes
from hugeplan_agent.collectors.foreign import FIRST_USER, TooMuchError
from hugeplan_agent.collectors.keyvalue import KIB, parse_amounts
from hugeplan_agent.collectors.pools import sizes_in_use
from hugeplan_agent.errors import CollectError, NoData
from hugeplan_agent.host import RECORD_BYTES, Host

T = TypeVar("T")

MIN_INTERESTING_BYTES = 16 * 1024 * 1024

STATUS_BYTES = 64 * 1024
"""Of /proc/PID/status, which lists a process's groups, up to 65,536, before its memory."""
DEAR_SECONDS = 0.001
"""Of processor time: what no status takes but one of many groups. With 65,000, which a user with subordinate ids may
have, it takes 13 ms, however little of it is read."""
DEAR_SHARE_SECONDS = 0.02
"""Of an account's dear ones per observation. After that none of its is read."""
ALL_DEAR_SECONDS = 0.1
"""Of all accounts together. After that an account has one."""

MAX_PROCESSES = 128
"""A database with a thousand backends is summed up in its own entry; the note counts what is left out."""

MAX_KEPT = 16384
"""Of an observation: a process takes a kilobyte and more, and a service may have 96 MiB."""
CUT_EVERY = 8192
"""Processes above MAX_KEPT that are held at most, so that they need not be put in order for each one."""
FIRST_SUBORDINATE = 65536
"""User ids from here on may be one account's."""
UNREAD_USER = 2**32 - 2
"""Of whoever made a status dear: any user of the node. The largest number, which nobody has."""

ROLLUP_SHARE = 0.0002
"""Of the time since the observation before: with the rest this stays below 0.1 % of a core."""

ProcessKey = tuple[int, Optional[int]]
"""pid and start time: a pid alone may be used again."""


@dataclass
class Process:
    """One process, in bytes. None is unknown."""

    pid: int
    parent_pid: int | None
    start_time_ticks: int | None
    name: str
    rss_bytes: int
    virtual_bytes: int | None = None
    rss_anon_bytes: int | None = None
    rss_file_bytes: int | None = None
    rss_shmem_bytes: int | None = None
    hugetlb_bytes: int | None = None
    vm_pte_bytes: int | None = None
    swap_bytes: int | None = None
    numa_nodes: str | None = None
    """Those that its cpuset lets it allocate from, as the kernel lists them."""
    has_status: bool = False
    rollup: dict[str, int] | None = None
    rollup_age_seconds: float | None = None
    may_be_read: bool | None = None
    """Whether the kernel lets this user look into it; None: not tried."""
    user: int | None = None
    """Its real user id, where the status was read; UNREAD_USER where it was dear and a user may have started it."""
    effective_user: int | None = None
    account: Any = None
    """Of a server: whom it counts for where something is shared. Before that: whose it is where there are too many."""
    is_below: bool = False
    """Whether its PID namespace is one below ours, as a container's."""

    @property
    def key(self) -> ProcessKey:
        return self.pid, self.start_time_ticks

    @property
    def owner(self) -> int | None:
        """The user whose rights it has. Anybody may start a set-uid program of root's under any name: such a one is
        whose that user is."""
        return self.user if self.effective_user == 0 else self.effective_user

    @property
    def weight_bytes(self) -> int:
        return self.rss_bytes + (self.hugetlb_bytes or 0) + (self.vm_pte_bytes or 0)


@dataclass
class ProcessTable:
    """The processes of one observation by pid, and what could not be read."""

    by_pid: dict[int, Process]
    children: dict[int, list[Process]] = field(default_factory=dict)
    late: int = 0
    left_out: int = 0
    """Beyond MAX_KEPT."""
    unreadable: int = 0

    def trees(self, roots: list[Process]) -> list[list[Process]]:
        """Of each process itself and all below it, up to the next of these processes: nobody counts twice."""
        seen = {root.pid for root in roots}
        found = []
        for root in roots:
            tree = [root]
            for one in tree:
                below = [child for child in self.children.get(one.pid, ()) if child.pid not in seen]
                seen.update(child.pid for child in below)
                tree.extend(below)
            found.append(tree)
        return found


def parse_stat(text: str, page_bytes: int) -> Process | None:
    """A process from /proc/PID/stat; None for a kernel thread, a zombie or a line that makes no sense.

    The name in field 2 may hold spaces and parentheses. Source: proc_pid_stat(5).
    """
    before, _, after = text.rpartition(")")
    pid, _, name = before.partition(" (")
    fields = after.split(None, 23)  # of 50: the rest stays one piece
    if len(fields) < 20 or not pid.isdecimal() or not all(word.isdecimal() for word in (fields[1], *fields[19:22])):
        return None
    # Captured trees may end early; the kernel prints 52 fields.
    virtual_bytes = int(fields[20]) if len(fields) > 20 else None
    rss_bytes = int(fields[21]) * page_bytes if len(fields) > 21 else 0
    if virtual_bytes == 0 and rss_bytes == 0 and len(fields) > 22:
        return None
    return Process(int(pid), int(fields[1]), int(fields[19]), name or f"pid {pid}", rss_bytes, virtual_bytes or None)


_STATUS_USER = re.compile(r"^Uid:[ \t]*([0-9]{1,20})(?:[ \t]+([0-9]{1,20}))?", re.MULTILINE)
_STATUS_BELOW = re.compile(r"^NSpid:[ \t]*[0-9]+[ \t]+[0-9]", re.MULTILINE)
_STATUS_AMOUNT = re.compile(
    r"^(VmRSS|RssAnon|RssFile|RssShmem|HugetlbPages|VmPTE|VmSwap):[ \t]*([0-9]{1,20}) kB$", re.MULTILINE
)


def add_status(process: Process, text: str) -> None:
    """Fill in what /proc/PID/status says. A kernel thread has no memory lines."""
    amounts = {name: int(value) * KIB for name, value in _STATUS_AMOUNT.findall(text)}
    if text.startswith("Name:"):
        process.name = text[5:].partition("\n")[0].strip() or process.name
    user = _STATUS_USER.search(text)
    process.user = int(user[1]) if user else None
    process.effective_user = int(user[2]) if user and user[2] else None
    # Whoever has so many groups that what follows them is cut off hides nothing by it.
    _, has_groups, after = text.partition("\nGroups:")
    is_cut = bool(has_groups) and "\n" not in after
    process.is_below = is_cut or _STATUS_BELOW.search(text) is not None
    process.has_status = True
    process.rss_bytes = amounts.get("VmRSS", process.rss_bytes)
    process.rss_anon_bytes = amounts.get("RssAnon")
    process.rss_file_bytes = amounts.get("RssFile")
    process.rss_shmem_bytes = amounts.get("RssShmem")
    process.hugetlb_bytes = amounts.get("HugetlbPages")
    process.vm_pte_bytes = amounts.get("VmPTE")
    process.swap_bytes = amounts.get("VmSwap")
    process.numa_nodes = text.partition("\nMems_allowed_list:")[2].partition("\n")[0].strip() or None


HIDDEN = (
    "the kernel hides other users' processes from this user, so nobody's are told: /proc is mounted with hidepid. Put"
    " the user into the group of its option gid=, or give CAP_SYS_PTRACE (docs/agent.md)"
)


def scan(host: Host) -> ProcessTable:
    """All processes with memory of their own. NoData when /proc shows none, CollectError when it hides some: what is
    not listed would be taken for what does not run."""
    if host.path("proc").is_mount() and host.read_record("proc/1/stat") is None:
        raise CollectError(HIDDEN)
    page_bytes = base_page_bytes(host)
    pids = sorted(int(name) for name in host.names("proc") if name.isdecimal())
    if not pids:
        raise NoData(f"{host.path('proc')} holds no process")
    table, least = ProcessTable({}), MIN_INTERESTING_BYTES if sizes_in_use(host) else 16 * MIN_INTERESTING_BYTES
    for pid in pids:
        text = host.read_record(f"proc/{pid}/stat")
        process = parse_stat(text, page_bytes) if text else None
        if process is not None:
            table.by_pid[process.pid] = process
            if len(pids) > MAX_KEPT:
                process.account = _whose(host, pid)
                if len(table.by_pid) == MAX_KEPT + CUT_EVERY:
                    _cut(table, least)
    _cut(table, least)
    for process in table.by_pid.values():
        table.children.setdefault(process.parent_pid or 0, []).append(process)
    for process in table.by_pid.values():
        if process.rss_bytes >= MIN_INTERESTING_BYTES or (len(table.by_pid) < 4096 and _matters(process, least)):
            need_status(host, process)
    return table


def _cut(table: ProcessTable, least_virtual_bytes: int) -> None:
    """Keep MAX_KEPT processes: in turn of shares and, in each, of users; of one user those that matter, and the oldest,
    so that a server stays before its sessions. What is cut off would be so too once more have come."""
    if len(table.by_pid) <= MAX_KEPT:
        return

    def order(one: Process) -> tuple[bool, int, int]:
        return not _matters(one, least_virtual_bytes), one.start_time_ticks or 0, one.pid

    of_users = in_turn(table.by_pid.values(), lambda one: one.account, order)
    kept = in_turn(of_users, lambda one: one.account[0], lambda _: 0)[:MAX_KEPT]
    table.left_out += len(table.by_pid) - len(kept)
    table.by_pid = {one.pid: one for one in sorted(kept, key=lambda one: one.pid)}


def _whose(host: Host, pid: int) -> tuple[str, int | None]:
    """The share of its cgroups, whatever user ids a container or a user's namespace has in it; and the user where that
    share, or a machine without cgroups, has several."""
    share, is_of_many = _share_of(host, pid)
    user = _STATUS_USER.search(read_status(host, pid) or "") if is_of_many else None
    return share, min(int(user[1]), FIRST_SUBORDINATE) if user else None


def read_status(host: Host, pid: int, most_bytes: int = RECORD_BYTES) -> str | None:
    """/proc/PID/status; None where the process has ended, or those of its account were dear in this observation."""
    if _is_dear(host, pid):
        return None
    spent = _spent(host)
    begun = time.thread_time()
    text = host.read_record(f"proc/{pid}/status", most_bytes)
    took = time.thread_time() - begun
    # 900 groups: seven times a plain one's time. Bytes, less the line's end: a name's characters may have three each.
    if took >= DEAR_SECONDS or len((text or "").encode()) >= RECORD_BYTES - 1:
        for one in (None, _payer(host, pid)):
            spent[one] = spent.get(one, 0.0) + took
    return text


def _spent(host: Host) -> dict[Hashable, float]:
    found: dict[Hashable, float] = host.shared("spent on dear status", lambda _: {})
    return found


def _is_dear(host: Host, pid: int) -> bool:
    """Whether its account has no room left for a status in this observation."""
    spent = _spent(host)
    room = DEAR_SHARE_SECONDS if spent.get(None, 0.0) < ALL_DEAR_SECONDS else 0.0
    return bool(spent) and spent.get(_payer(host, pid), 0.0) > room


def _payer(host: Host, pid: int) -> tuple[str, int]:
    """``_whose`` without its status: the owner of its folder is its effective user, even where its files are root's."""
    share, is_of_many = _share_of(host, pid)
    with suppress(OSError):
        return share, min(host.state(f"proc/{pid}").st_uid, FIRST_SUBORDINATE) if is_of_many else 0
    return share, 0


def _share_of(host: Host, pid: int) -> tuple[str, bool]:
    member = host.read_record(f"proc/{pid}/cgroup") or ""
    known = host.shared("shares of processes", lambda _: {})
    if member not in known:
        known[member] = _share(host, member)
        if len(known) > 256:
            del known[next(iter(known))]
    found: tuple[str, bool] = known[member]
    return found


def _share(host: Host, member: str) -> tuple[str, bool]:
    """Of /proc/PID/cgroup, and whether it is the process's own cgroup: those in one below are all of one account."""
    paths = (":".join(line.split(":")[2:]).strip("/.") for line in member.split("\n"))
    return next(((share, share == path) for path in paths if (share := share_in(host, path))), ("", True))


def _matters(process: Process, least_virtual_bytes: int) -> bool:
    """Large ones, and those that may map much without touching it as ordinary memory.

    Huge pages are no part of what stat calls resident, so where a pool has pages even a small program may hold them.
    """
    if process.rss_bytes >= MIN_INTERESTING_BYTES or process.virtual_bytes is None:
        return True
    return process.virtual_bytes >= least_virtual_bytes


def need_status(host: Host, process: Process) -> Process:
    """The process, with its status read; where it is not, what stat said is kept. Whoever made his too dear is no less
    a user for it: its folder says the effective user, and a set-uid program may be anybody's."""
    if not process.has_status:
        text = read_status(host, process.pid, STATUS_BYTES)
        if text is not None:
            add_status(process, text)
        elif _is_dear(host, process.pid):
            with suppress(OSError):  # it has ended
                user = process.effective_user = host.state(f"proc/{process.pid}").st_uid
                process.user = user if user >= FIRST_USER else UNREAD_USER
    return process


ROLLUP_FIELDS = {
    "pss_bytes": "Pss",
    "pss_anon_bytes": "Pss_Anon",
    "pss_file_bytes": "Pss_File",
    "pss_shmem_bytes": "Pss_Shmem",
    "anon_huge_bytes": "AnonHugePages",
    "shmem_pmd_mapped_bytes": "ShmemPmdMapped",
    "private_hugetlb_bytes": "Private_Hugetlb",
    "shared_hugetlb_bytes": "Shared_Hugetlb",
}


def parse_rollup(text: str) -> dict[str, int]:
    """Proportional and huge memory of one process, from smaps_rollup. What the text does not say is absent."""
    amounts = parse_amounts(text)
    return {name: amounts[word] for name, word in ROLLUP_FIELDS.items() if word in amounts}


def read_rollups(host: Host, table: ProcessTable, wanted: list[Process], owner: Callable[[Process], Hashable]) -> None:
    """smaps_rollup of the wanted processes within the budget: in turn of their owners, those never read first, then
    the oldest values."""
    kept = host.kept("rollups")
    for key in [key for key in kept if not _lives(key, table)]:
        del kept[key]
    now, room = time.monotonic(), walks.begin(host, "rollups", ROLLUP_SHARE, shares=1)
    for process in in_turn(wanted, owner, lambda one: (kept.get(one.key, (0.0,))[0], -one.weight_bytes)):
        if (process.vm_pte_bytes or 0) > walks.MAX_TABLES_BYTES:
            continue
        with suppress(TooMuchError), room.walk(owner(process)):
            text = _read_rollup(host, process)
            if text:
                kept[process.key] = (now, parse_rollup(text))
            elif process.pid not in host.left_alone:
                kept.pop(process.key, None)
    for process in wanted:
        if process.key in kept:
            taken_at, process.rollup = kept[process.key]
            process.rollup_age_seconds = round(now - taken_at, 1)
            process.may_be_read = True
    table.unreadable = sum(process.may_be_read is False for process in wanted)
    table.late = sum(process.may_be_read is None for process in wanted)


def _lives(key: object, table: ProcessTable) -> bool:
    assert isinstance(key, tuple)
    process = table.by_pid.get(key[0])
    return process is not None and process.key == key


def _read_rollup(host: Host, process: Process) -> str | None:
    try:
        return host.read(f"proc/{process.pid}/smaps_rollup")
    except NoData:
        # Gone, or a captured tree without the file: neither is a question of permission.
        process.may_be_read = False
    except OSError:
        process.may_be_read = False
    return None


def in_turn(items: Iterable[T], owner: Callable[[T], Hashable], order: Callable[[T], Any]) -> list[T]:
    """The items in an order in which each owner's next one comes after one of everybody else."""
    counts: Counter[Hashable] = Counter()
    ranked = []
    for item in sorted(items, key=order):
        counts[owner(item)] += 1
        ranked.append((counts[owner(item)], item))
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]


def chosen(table: ProcessTable, owner: Callable[[Process], Hashable]) -> tuple[list[Process], int]:
    """The largest processes, as many of each owner, and how many are left out of those that matter."""
    found = [
        process
        for process in table.by_pid.values()
        if process.weight_bytes >= MIN_INTERESTING_BYTES or process.hugetlb_bytes
    ]
    kept = in_turn(found, owner, _largest_first)[:MAX_PROCESSES]
    return sorted(kept, key=_largest_first), len(found) - len(kept)


def _largest_first(process: Process) -> tuple[int, int]:
    return -process.weight_bytes, process.pid


def table_of(host: Host) -> ProcessTable:
    """The table of this observation."""
    return host.shared("process table", scan)


def clock_ticks_per_second() -> int:
    """USER_HZ: 100 on every architecture Linux still runs on, but asked for all the same."""
    return os.sysconf("SC_CLK_TCK")
