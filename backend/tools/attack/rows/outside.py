"""What stands outside the service: a proxy before it, the clocks of nodes, the agent with a server that turned bad."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import unicodedata
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import MACHINE_ID, Attack, Target, WrongAnswerError, expect

GUESSES = 40
AGENT_TIMEOUT_SECONDS = 1.0
AGENT_SECONDS = 30.0
"""An agent starts, observes, and waits for a few times its limit of one answer; others use the machine as well."""
AGENT_BYTES = 128 * 1024**2
CODES = "\x1b]0;owned\x07\x1b[2J\u202e\u2028"


def _guess_behind_the_proxy(running: Target) -> str:
    """One client guesses until it is refused; another one of the same proxy logs in meanwhile."""
    with running.client(None) as client:
        for _ in range(GUESSES):
            wrong = {"Authorization": "Bearer hpl_" + "x" * 43, "X-Forwarded-For": "192.0.2.1"}
            last = client.get("/api/v1/session", headers=wrong)
        expect(last, 401, 429)
        body = {"token": running.tokens[Role.VIEWER]}
        other = client.post("/api/v1/session", json=body, headers={"X-Forwarded-For": "192.0.2.2"})
        return expect(other, 200, 201)


def _long_forwarded(running: Target) -> str:
    """As many addresses as a head holds, each a proxy's own."""
    headers = {**running.headers(Role.VIEWER), "X-Forwarded-For": ", ".join(["127.0.0.1"] * 1000)}
    with running.client(None) as client:
        return expect(client.get("/api/v1/session", headers=headers), 200, 400, 431)


def _report(at: datetime) -> dict[str, Any]:
    return {
        "schema_version": 1, "report_id": str(uuid.uuid4()), "machine_id": MACHINE_ID, "node_name": "db-1",
        "created_at": at.isoformat(), "agent_version": "0",
        "inventory": {"architecture": "x86_64", "base_page_bytes": 4096, "huge_page_sizes_bytes": [2 << 20]},
        "sample": {"taken_at": at.isoformat(), "memory": {"mem_total_bytes": 1 << 36}},
    }  # fmt: skip


def _clock_of_a_node(days: int, running: Target) -> str:
    """A node's clock is wrong for one report. The next one counts, and nothing is from the future."""
    now = datetime.now(UTC)
    for at in (now + timedelta(days=days), now):
        sent = running.ask(Role.AGENT, "POST", "/reports", json=_report(at))
        expect(sent, 201)
    node = running.ask(Role.VIEWER, "GET", f"/nodes/{sent.json()['node_id']}").json()
    newest = datetime.fromisoformat(node["last_report_at"])
    if not now - timedelta(minutes=1) <= newest <= datetime.now(UTC) + timedelta(seconds=1):
        raise WrongAnswerError(f"the node was last heard at {newest}")
    return "201, 201"


def _nested(opened: socket.socket) -> None:
    body = b"[" * 100_000 + b"]" * 100_000
    opened.sendall(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n")
    opened.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)


def _trickle(opened: socket.socket) -> None:
    opened.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 100000\r\n\r\n")
    while True:
        opened.sendall(b"{")
        time.sleep(0.05)


def _continue_for_ever(opened: socket.socket) -> None:
    while True:
        opened.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 50)


def _codes(opened: socket.socket) -> None:
    body = json.dumps({"title": CODES, "status": 422, "detail": CODES}, ensure_ascii=False).encode()
    head = b"HTTP/1.1 422 Unprocessable Content\r\nContent-Type: application/problem+json\r\n"
    opened.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def _serve(listening: socket.socket, speak: Callable[[socket.socket], None], asked: list[bytes]) -> None:
    while True:
        try:
            opened, _ = listening.accept()
        except OSError:
            return
        with opened, suppress(OSError):
            opened.settimeout(5)
            asked.append(opened.recv(65536))
            speak(opened)


def _agent(speak: Callable[[socket.socket], None], running: Target) -> str:
    """The real agent sends one report to a server that speaks so. It ends in time, small, and with clean text."""
    folder = running.folder / f"agent-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    token = folder / "token"
    token.write_text("hpl_" + "x" * 43)
    token.chmod(0o600)
    asked: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listening, speak, asked), daemon=True).start()
    settings = {
        "SERVER": f"http://127.0.0.1:{listening.getsockname()[1]}", "TOKEN_FILE": str(token),
        "SPOOL_DIR": str(folder), "TIMEOUT": f"{AGENT_TIMEOUT_SECONDS:g}s",
    }  # fmt: skip
    environment = {**os.environ, **{f"HUGEPLAN_AGENT_{name}": value for name, value in settings.items()}}
    limited = f"import resource, runpy; resource.setrlimit(resource.RLIMIT_DATA, ({AGENT_BYTES}, {AGENT_BYTES}))"
    command = [sys.executable, "-c", f"{limited}; runpy.run_module('hugeplan_agent', run_name='__main__')", "once"]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=AGENT_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        raise WrongAnswerError(f"the agent still runs after {AGENT_SECONDS:g} s") from late
    finally:
        listening.close()
    said = (done.stdout + done.stderr).decode()
    if not any(b"/api/v1/reports" in one for one in asked):
        raise WrongAnswerError(f"the agent sent no report: {said[-300:]}")
    if "MemoryError" in said or "Traceback" in said:
        raise WrongAnswerError(f"the agent failed: {said[-300:]}")
    if any(unicodedata.category(one) in {"Cc", "Cf", "Zl", "Zp"} and one != "\n" for one in said):
        raise WrongAnswerError(f"the agent wrote codes: {said!r:.300}")
    return f"agent ended {done.returncode}"


ROWS = (
    Attack("proxy: one client guesses, another logs in", _guess_behind_the_proxy, requests=GUESSES + 1),
    Attack("proxy: 1,000 addresses in a header", _long_forwarded),
    Attack("clock: a node 40 days ahead for a report", partial(_clock_of_a_node, 40), requests=3),
    Attack("clock: a node 40 days behind for a report", partial(_clock_of_a_node, -40), requests=3),
    Attack("agent: an answer nested 100,000 deep", partial(_agent, _nested)),
    Attack("agent: an answer that trickles", partial(_agent, _trickle)),
    Attack("agent: 100 Continue for ever", partial(_agent, _continue_for_ever)),
    Attack("agent: terminal codes in a refusal", partial(_agent, _codes)),
)
