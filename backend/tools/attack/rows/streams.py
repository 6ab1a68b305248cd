"""Streams of events and of a job's progress: many at a time, old ones, and those that nobody reads."""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import TIMEOUT_SECONDS, Attack, Target, WrongAnswerError, expect
from tools.attack.rows.plans import PREVIEWS

STREAMS = 100
LISTEN_SECONDS = 2.0
EVENTS = 50_000
REPLAYS = 30
NEWS_SECONDS = 3.0
STATUS = "UPDATE fleet_plans SET status = %(status)s WHERE id = %(id)s"
EVENT = (
    "INSERT INTO events (at, kind, node_name, text) SELECT now() - interval '1 day', 'run_added', 'n', repeat('x', 200)"
    " FROM generate_series(1, %(events)s)"
)


def _open(running: Target, path: str, role: Role = Role.VIEWER, receive_bytes: int | None = None) -> socket.socket:
    opened = running.connect(receive_bytes)
    opened.sendall(
        f"GET /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.tokens[role]}\r\n\r\n".encode()
    )
    return opened


def _many(path: str, running: Target) -> str:
    """So many are refused past a number, and those that are taken cost little while they last."""
    path = path.format(job=running.memory.get("job"))
    held = [_open(running, path) for _ in range(STREAMS)]
    try:
        taken = [one.recv(16)[9:12] for one in held]
        time.sleep(LISTEN_SECONDS)
    finally:
        for each in held:
            each.close()
    if not set(taken) <= {b"200", b"429"} or b"429" not in taken:
        raise WrongAnswerError(f"{STREAMS} streams were answered {sorted(set(taken))}")
    return f"{taken.count(b'200')} of {STREAMS} taken"


def _job(running: Target) -> None:
    """A fleet plan with as large a scenario as one may have, which waits for its turn."""
    scenario: dict[str, Any] = {"databases": PREVIEWS["64 databases"]["databases"]}
    made = running.ask(Role.PLANNER, "POST", "/fleet/plan", json={"name": "n", "scenario": scenario})
    expect(made, 202)
    running.memory["job"] = made.json()["id"]
    until = time.monotonic() + TIMEOUT_SECONDS
    while running.ask(Role.VIEWER, "GET", f"/fleet/plans/{running.memory['job']}").json()["status"] in {
        "queued",
        "running",
    }:
        if time.monotonic() > until:
            raise WrongAnswerError("the fleet plan does not end")
        time.sleep(0.1)
    running.execute(STATUS, status="queued", id=running.memory["job"])


def _end_job(running: Target) -> None:
    running.execute(STATUS, status="done", id=running.memory["job"])


def _old_events(running: Target) -> None:
    if not running.memory.get("events"):
        running.execute(EVENT, events=EVENTS)
        running.memory["events"] = True


def _replay(running: Target) -> str:
    """Every event again, from the first: what comes in a while, and what that costs."""
    until, size = time.monotonic() + LISTEN_SECONDS, 0
    with _open(running, "/events?after=0") as opened:
        while time.monotonic() < until:
            size += len(opened.recv(65536))
    return f"{size // 1024} KiB"


def _unread(running: Target) -> str:
    held = [_open(running, "/events?after=0", receive_bytes=2048) for _ in range(20)]
    try:
        time.sleep(LISTEN_SECONDS)
        expect(running.ask(Role.VIEWER, "GET", "/nodes"), 200)
    finally:
        for each in held:
            each.close()
    return "20 unread"


def _from_now_on(running: Target) -> str:
    """Who listens from now on hears what happens, however many have the past told."""
    with selectors.DefaultSelector() as streams, ExitStack() as opened:

        def read(seconds: float) -> bytes:
            until, heard = time.monotonic() + seconds, b""
            while (left := until - time.monotonic()) > 0:
                for key, _ in streams.select(left):
                    got = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    heard += got if key.data == "now" else b""
            return heard

        for _ in range(REPLAYS):
            past = opened.enter_context(_open(running, "/events?after=0"))
            if past.recv(16)[9:12] != b"200":
                raise WrongAnswerError(f"fewer than {REPLAYS} streams are taken")
            streams.register(past, selectors.EVENT_READ, "past")
        read(LISTEN_SECONDS)  # each has had its first batch, and they take turns
        streams.register(opened.enter_context(_open(running, "/events")), selectors.EVENT_READ, "now")
        begun, heard = time.monotonic(), b""
        while b"event: run_added" not in heard:
            if time.monotonic() - begun > NEWS_SECONDS:
                raise WrongAnswerError(f"no news for {NEWS_SECONDS} s while {REPLAYS} have the past told")
            heard += read(0.3)
            running.execute(EVENT, events=1)
        return f"news after {time.monotonic() - begun:.1f} s"


ROWS = (
    Attack(f"streams: {STREAMS} of events", partial(_many, "/events"), requests=STREAMS, at_once=True),
    Attack(
        f"streams: {STREAMS} of a job's progress",
        partial(_many, "/fleet/plans/{job}/progress"),
        requests=STREAMS,
        prepare=_job,
        undo=_end_job,
        at_once=True,
    ),
    Attack(f"streams: {EVENTS:,} events again", _replay, prepare=_old_events),
    Attack(
        f"streams: {REPLAYS} of events again, and one from now on",
        _from_now_on,
        requests=REPLAYS + 1,
        prepare=_old_events,
        at_once=True,
    ),
    Attack("streams: 20 that nobody reads", _unread, requests=21, prepare=_old_events, at_once=True),
)
