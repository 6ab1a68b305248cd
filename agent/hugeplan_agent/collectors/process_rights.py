"""Whose rights a process has to files: what it names is read with no more than these."""

from __future__ import annotations

import re
import stat

from hugeplan_agent.collectors.process_table import STATUS_BYTES, Process, read_status
from hugeplan_agent.host import Host
from hugeplan_agent.rights import NOBODY, Rights

READS_ALL = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: either reads what a mode closes."""


def rights_of(host: Host, process: Process) -> Rights:
    """Its user, its groups without that of a set-gid program, and where it is root and has a capability for it, all
    files of its user namespace.

    sudo waits for a password as root through and through: who runs a set-uid program is not known from outside.
    """
    text, folder = read_status(host, process.pid, STATUS_BYTES) or "", f"proc/{process.pid}/cwd"
    uid, gids = process.owner, _groups(text)
    if uid is None or (process.effective_user == 0 == uid and _is_set_uid(host, process.pid)):
        return Rights(NOBODY, folder=folder)
    capable = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", text, re.MULTILINE)
    is_capable = capable is not None and int(capable[1], 16) & READS_ALL and process.effective_user == process.user
    users = _ids(host, process.pid, "uid_map") if is_capable else {}
    if users.get(0, range(0))[:1] != range(uid, uid + 1):
        return Rights(uid, gids, folder=folder)
    groups = _ids(host, process.pid, "gid_map")
    return Rights(uid, gids, (tuple(users.values()), tuple(groups.values())), folder)


def _groups(text: str) -> frozenset[int]:
    """The real group and the others of /proc/PID/status. Where it is cut off, the last number may be a part."""
    real = re.search(r"^Gid:\s*([0-9]{1,10})\s", text, re.MULTILINE)
    line, end, _ = text.partition("\nGroups:")[2].partition("\n")
    others = line if end else line.rpartition(" ")[0]
    return frozenset(map(int, ([real[1]] if real else []) + others.split()))


def _is_set_uid(host: Host, pid: int) -> bool:
    try:
        return bool(host.state(f"proc/{pid}/exe").st_mode & stat.S_ISUID)
    except OSError:
        return True


def _ids(host: Host, pid: int, name: str) -> dict[int, range]:
    """The ids of its user namespace, by the first in it, as ours. Of our own the kernel says the ids outside."""
    text = host.read_optional(f"proc/{pid}/{name}") or ""
    is_ours = text == host.read_optional(f"proc/self/{name}")
    lines = (tuple(map(int, line.split())) for line in text.splitlines())
    return {first: range(start := first if is_ours else outside, start + count) for first, outside, count in lines}
