"""Reports as large as a body may be: what an agent's token, or whoever is root on a node, can send."""

from __future__ import annotations

import json
import select
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import MACHINE_ID, Attack, Target, WrongAnswerError, expect

AT_ONCE = 6
OF_ONE = 64
LISTS = [[[number] for number in range(36_000)]] * 2
PROCESS = {"pid": 1, "name": "p", "rss_bytes": 1 << 30}
EXTRA: dict[str, Any] = {
    "72,000 unknown lists": {"x": LISTS},
    "140,000 unknown members": {"x": [{f"k{part}{number}": 0 for number in range(70_000)} for part in "ab"]},
    "a NUL behind 72,000 lists": {"x": LISTS, "z": "\0"},
    "seven texts of a megabyte": {"x": [f"{number}" * 999_000 for number in range(7)]},
    "140,000 numbers of far exponents": {"x": [[5e-324, 1e308] * 35_000] * 2},
    "140,000 labels": {"labels": {f"k{number}": "v" for number in range(99_000)}},
    "1,500 processes": {"sample": {"processes": [PROCESS | {"name": "p" * 64}] * 1_500}},
    "8,000 processes": {"sample": {"processes": [PROCESS] * 8_000}},
    "90,000 empty curves": {"run": {"sections": [{"curves": [{}] * 90_000}]}},
}


def _document(extra: dict[str, Any], machine_id: str = MACHINE_ID) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {
        "schema_version": 1, "report_id": str(uuid.uuid4()), "machine_id": machine_id, "node_name": "db-1",
        "created_at": now, "agent_version": "0",
        "inventory": {"architecture": "x86_64", "base_page_bytes": 4096, "huge_page_sizes_bytes": [2 << 20]},
        "sample": {"taken_at": now, "memory": {"mem_total_bytes": 1 << 36}, **extra.get("sample", {})},
        **{name: value for name, value in extra.items() if name != "sample"},
    }  # fmt: skip


def _report(extra: dict[str, Any], running: Target) -> str:
    return expect(running.ask(Role.AGENT, "POST", "/reports", json=_document(extra)), 200, 201, 413, 422, 429)


def _agents(running: Target) -> None:
    """Several machines, each with a credential of its own."""
    made = [
        running.ask(Role.ADMIN, "POST", "/tokens", json={"name": f"a{number}", "role": "agent"})
        for number in range(AT_ONCE)
    ]
    running.memory["agents"] = [(one.json()["token"], uuid.uuid4().hex) for one in made]


def _at_once(extra: dict[str, Any], running: Target) -> str:
    """Large reports of several machines together. Each is stored, or its agent is told to send it again."""
    agents = running.memory["agents"]
    bodies = [json.dumps(_document(extra, machine_id)).encode() for _, machine_id in agents]

    def send(agent: tuple[str, str], body: bytes) -> str:
        token, _ = agent
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return expect(running.ask(None, "POST", "/reports", content=body, headers=headers), 200, 201, 429, 503)

    with ThreadPoolExecutor(AT_ONCE) as senders:
        return " ".join(senders.map(send, agents, bodies))


def _of_one(running: Target) -> str:
    """Reports of one machine, which are all there before the first is read. Those of all others come between them."""
    bodies = [json.dumps(_document(EXTRA["1,500 processes"])).encode() for _ in range(OF_ONE)]
    connections = [running.connect() for _ in bodies]
    head = "POST /api/v1/reports HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in running.headers(Role.AGENT).items())
    with ThreadPoolExecutor(OF_ONE) as senders:
        whole = [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
        list(senders.map(lambda to, what: to.sendall(what), connections, whole))
    token, machine_id = running.memory["agents"][0]
    others = {"Authorization": f"Bearer {token}"}
    expect(running.ask(None, "POST", "/reports", json=_document({}, machine_id), headers=others), 201)
    before = len(select.select(connections, (), (), 0)[0])
    answers = [connection.makefile("rb").readline().split()[1].decode() for connection in connections]
    for connection in connections:
        connection.close()
    if not {*answers} <= {"201", "429"} or before > OF_ONE // 2:
        raise WrongAnswerError(
            f"answered {sorted({*answers})}, {before} of {OF_ONE} before the report of another machine"
        )
    return f"{' '.join(sorted({*answers}))}, {before} first"


ROWS = (
    *(Attack(f"report: {name}", partial(_report, extra)) for name, extra in EXTRA.items()),
    *(
        Attack(f"reports: {AT_ONCE} of {name}", partial(_at_once, EXTRA[name]), AT_ONCE, prepare=_agents, at_once=True)
        for name in ("seven texts of a megabyte", "140,000 unknown members")
    ),
    Attack(f"reports: {OF_ONE} at once of one machine", _of_one, OF_ONE, prepare=_agents, at_once=True),
)
