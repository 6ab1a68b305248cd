"""Page walks of the recognised databases, counted by the processor: seldom, one server at a time.

Its figures go with every report of that server until they are counted anew. Where the processor has no counters, this
user may not read them, or counting costs too much, it is not tried again for a day. ``docs/counters.md`` says what is
counted; not yet seen on hardware.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

from hugeplan_agent import tlbbench
from hugeplan_agent.collectors.cgroup_owners import FOLDER, Hierarchy, hierarchy
from hugeplan_agent.collectors.cgroup_tree import PathIndex, parse_membership, path_in, paths
from hugeplan_agent.collectors.cgroup_units import account_in
from hugeplan_agent.collectors.foreign import Account
from hugeplan_agent.collectors.process_table import Process, need_status
from hugeplan_agent.collectors.unit_names import name_of
from hugeplan_agent.errors import MeasureError, NoData
from hugeplan_agent.host import Host
from hugeplan_agent.report import timestamp

SECONDS = 2.0
TRIAL_SECONDS = 0.1
GRACE_SECONDS = 30.0
RETRY_SECONDS = 86400.0

COPIED = ("status", "reason", "event_set", "walk_cycles_are", "seconds", "running_fraction", "overhead_fraction")
#: Control groups that hold one thing that somebody started, and its helpers.
COUNTED_KINDS = ("container", "systemd_service")
NO_GROUP = "from a container a server is counted by its control group, and this one has none of its own"

Server = tuple[int, Optional[int]]
"""A process and when it started: the same number later is another server."""


@dataclass
class WalkCounters:
    """What was counted of each server, and when it is due again."""

    program: str | None
    every_seconds: float
    should_stop: Callable[[], bool]
    host: Host = field(default_factory=Host)
    found: dict[Server, dict[str, Any]] = field(default_factory=dict)
    due_at: dict[Server, float] = field(default_factory=dict)
    accounts: dict[Server, Account] = field(default_factory=dict)
    turns: dict[Account, float] = field(default_factory=dict)
    """When a server of an account was counted last."""
    silent_until: float = 0.0

    def add(self, databases: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Put ``counters`` into the entries of the report, counting the server that has waited longest of the account
        whose last turn is longest ago, if one is due: nobody's servers, started anew all the time, make others wait.

        What that count gave; None where none was due.
        """
        servers = {(entry["main_pid"], entry.get("start_time_ticks")): entry for entry in databases}
        self.found = {server: counts for server, counts in self.found.items() if server in servers}
        now = time.monotonic()  # whoever is new comes after those that wait
        self.due_at = {server: self.due_at.get(server, now) for server in servers}
        self.accounts = {server: self.accounts.get(server) or self._account(server) for server in servers}
        self.turns = {account: self.turns.get(account, now) for account in self.accounts.values()}
        due = [one for one, at in self.due_at.items() if at <= now and self.silent_until <= now]
        server = min(due, key=lambda one: (self.turns[self.accounts[one]], self.due_at[one]), default=None)
        if server is not None:
            self.turns[self.accounts[server]] = now
            self._count(server, now)
        for one, entry in servers.items():
            if one in self.found:
                entry["counters"] = self.found[one]
        return None if server is None else self.found.get(server)

    def _account(self, server: Server) -> Account:
        """Who a server runs for, by files that no process can make anybody wait at."""
        member = parse_membership(self.host.read_optional(f"proc/{server[0]}/cgroup") or "")
        return account_in(self.host, need_status(self.host, Process(server[0], None, server[1], "", 0)), member)

    def trial(self) -> dict[str, Any]:
        """Whether this user may count what others run: a tenth of a second of all control groups, none kept."""
        tree = counted_tree(self.host)
        everything = ("--pid", str(os.getpid())) if tree is None else ("--cgroup", str(self.host.path(tree.root)))
        return self._run(everything, TRIAL_SECONDS)

    def _count(self, server: Server, now: float) -> None:
        target = self._target(server[0])
        counts = _failed(NO_GROUP) if target is None else self._run(target, SECONDS)
        self.found[server] = counts
        is_dear = counts["status"] == "stopped" and not self.should_stop()
        self.due_at[server] = now + (max(self.every_seconds, RETRY_SECONDS) if is_dear else self.every_seconds)
        if counts["status"] in ("unsupported", "not_permitted"):
            self.silent_until = now + RETRY_SECONDS

    def _target(self, pid: int) -> tuple[str, str] | None:
        """How tlbbench finds a server: numbers of processes that are read below another root are not this user's."""
        if self.host.root == Path("/"):
            return "--pid", str(pid)
        others = [one for one, _ in self.due_at if one != pid]
        folder = own_group(self.host, pid, others)
        return None if folder is None else ("--cgroup", folder)

    def _run(self, target: tuple[str, str], seconds: float) -> dict[str, Any]:
        arguments = ("counters", *target, "--seconds", f"{seconds:g}", "--json")
        try:
            program = tlbbench.find(self.program)
            document = tlbbench.run(program, arguments, seconds + GRACE_SECONDS, self.should_stop).document
            return compact(document.get("counters"), datetime.now(timezone.utc))
        except MeasureError as error:
            return _failed(str(error)[:200])


def _failed(reason: str) -> dict[str, Any]:
    return {"counted_at": timestamp(datetime.now(timezone.utc)), "status": "failed", "reason": reason}


def counted_tree(host: Host) -> Hierarchy | None:
    """The control groups that the kernel counts by: those of version 1's perf_event, else every one of version 2."""
    found = hierarchy(host, "perf_event")
    if found is not None:
        return found
    folders = (FOLDER, f"{FOLDER}/unified")
    return next((Hierarchy(2, one) for one in folders if host.path(f"{one}/cgroup.controllers").exists()), None)


def own_group(host: Host, pid: int, others: Iterable[int]) -> str | None:
    """The folder of the container or service that a server runs in; None where it is unknown or another runs there."""
    tree = counted_tree(host)
    if tree is None:
        return None
    try:
        index = PathIndex(host, tree, list(paths(host, tree)))
    except NoData:
        return None

    def path_of(one: int) -> str | None:
        return path_in(parse_membership(host.read_optional(f"proc/{one}/cgroup") or ""), tree, "perf_event", index)

    group = path_of(pid) or ""
    while group.strip("/"):
        name = name_of(group)
        if name is not None:
            is_shared = any(f"{path_of(other)}/".startswith(f"{group}/") for other in others)
            is_counted = name.kind in COUNTED_KINDS and not is_shared
            return str(host.path(f"{tree.root}{group}")) if is_counted else None
        group = group.rpartition("/")[0]
    return None


def compact(counters: object, now: datetime) -> dict[str, Any]:
    """The report's part of a ``counters`` document. Raises MeasureError when it is none."""
    if not isinstance(counters, Mapping) or not isinstance(counters.get("total"), Mapping):
        raise MeasureError("tlbbench counters: the document has no counters")
    parts = {f"{mode}_walk_fraction": counters[mode].get("walk_fraction") for mode in ("user", "kernel")}
    return {
        "counted_at": timestamp(now),
        **{name: counters.get(name) for name in COPIED},
        **parts,
        **counters["total"],
    }
