"""Page walks of the recognised databases, counted by the processor: seldom, one server at a time.

Its figures go with every report of that server until they are counted anew. Where the processor has no counters, this
user may not read them, or counting costs too much, it is not tried again for a day. ``docs/counters.md`` says what is
counted; not yet seen on hardware.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from hugeplan_agent import tlbbench
from hugeplan_agent.errors import MeasureError
from hugeplan_agent.report import timestamp

SECONDS = 2.0
GRACE_SECONDS = 30.0
RETRY_SECONDS = 86400.0

COPIED = ("status", "reason", "event_set", "walk_cycles_are", "seconds", "running_fraction", "overhead_fraction")

Server = tuple[int, object]
"""A process and when it started: the same number later is another server."""


@dataclass
class WalkCounters:
    """What was counted of each server, and when it is due again."""

    program: str | None
    every_seconds: float
    should_stop: Callable[[], bool]
    found: dict[Server, dict[str, Any]] = field(default_factory=dict)
    due_at: dict[Server, float] = field(default_factory=dict)
    silent_until: float = 0.0

    def add(self, databases: list[dict[str, Any]]) -> None:
        """Put ``counters`` into the entries of the report, counting the server that has waited longest if it is due."""
        servers = {(entry["main_pid"], entry.get("start_time_ticks")): entry for entry in databases}
        self.found = {server: counts for server, counts in self.found.items() if server in servers}
        self.due_at = {server: self.due_at.get(server, 0.0) for server in servers}
        now = time.monotonic()
        server = min(self.due_at, key=lambda one: self.due_at[one], default=None)
        if server is not None and self.due_at[server] <= now and self.silent_until <= now:
            self._count(server, now)
        for server, entry in servers.items():
            if server in self.found:
                entry["counters"] = self.found[server]

    def _count(self, server: Server, now: float) -> None:
        arguments = ("counters", "--pid", str(server[0]), "--seconds", f"{SECONDS:g}", "--json")
        try:
            program = tlbbench.find(self.program)
            document = tlbbench.run(program, arguments, SECONDS + GRACE_SECONDS, self.should_stop).document
            counts = compact(document.get("counters"), datetime.now(timezone.utc))
        except MeasureError as error:
            counts = {
                "counted_at": timestamp(datetime.now(timezone.utc)),
                "status": "failed",
                "reason": str(error)[:200],
            }
        self.found[server] = counts
        is_dear = counts["status"] == "stopped" and not self.should_stop()
        self.due_at[server] = now + (max(self.every_seconds, RETRY_SECONDS) if is_dear else self.every_seconds)
        if counts["status"] in ("unsupported", "not_permitted"):
            self.silent_until = now + RETRY_SECONDS


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
