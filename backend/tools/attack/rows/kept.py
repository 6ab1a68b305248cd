"""Kept plans, fleet plans and trials: what is stored once and worked on with each request, and with each report."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import MACHINE_ID, TIMEOUT_SECONDS, Attack, Target, WrongAnswerError, expect

HUGE = 2 << 20
SERVERS = 200
DATABASES = 60
MOST_SERVERS, MOST_DATABASES, LIMITS = 256, 90, 20
VERSIONS = 60
TENANTS = 400
AGAIN_SECONDS = 33.0
"""Proposed plans are planned again half a minute after a newer sample at the latest."""


def _server(number: int, limits: int) -> dict[str, Any]:
    """A server like all others: nothing tells which database of a plan it is."""
    limit = {"page_bytes": HUGE, "counter": "usage", "limit_bytes": number * HUGE}
    return {
        "key": f"postgresql@u{number}.service", "engine": "postgresql", "main_pid": number + 1, "version": "17",
        "huge_pages_status": "off", "segments": [{"bytes": 64 << 20, "kind": "anonymous_shared", "backing": "base"}],
        "hugetlb_limits": [{**limit, "cgroup_path": f"/kubepods/{number}/{one}"} for one in range(limits)],
    }  # fmt: skip


def _report(servers: int, limits: int = 1) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    pool = {"page_bytes": HUGE, "nr_hugepages": 0, "free_hugepages": 0}
    return {
        "schema_version": 1, "report_id": str(uuid.uuid4()), "machine_id": MACHINE_ID, "node_name": "db-1",
        "created_at": now, "agent_version": "0",
        "inventory": {
            "architecture": "x86_64", "base_page_bytes": 4096, "huge_page_sizes_bytes": [HUGE],
            "default_huge_page_bytes": HUGE, "numa_nodes": [{"id": 0, "mem_total_bytes": 1 << 38}],
        },
        "sample": {
            "taken_at": now, "memory": {"mem_total_bytes": 1 << 38, "mem_available_bytes": 1 << 37},
            "numa": [{"id": 0, "mem_total_bytes": 1 << 38, "mem_free_bytes": 1 << 37}],
            "pools": [{"numa_node": 0, **pool}], "global_pools": [pool],
            "databases": [_server(number, limits) for number in range(servers)],
        },
    }  # fmt: skip


def _scenario(databases: int) -> dict[str, Any]:
    one = {"engine": "postgresql", "version": "17", "settings": {"shared_buffers": "64MB", "huge_pages": "on"}}
    return {"databases": [{"name": f"d{at}", **one} for at in range(databases)]}


def _send(running: Target) -> str:
    return expect(running.ask(Role.AGENT, "POST", "/reports", json=_report(SERVERS)), 201, 429)


def _send_most(running: Target) -> str:
    return expect(running.ask(Role.AGENT, "POST", "/reports", json=_report(MOST_SERVERS, LIMITS)), 201, 429)


def _keep(running: Target, databases: int = DATABASES) -> None:
    """A node whose newest report has many servers, and a kept plan of many databases for it."""
    sent = running.ask(Role.AGENT, "POST", "/reports", json=_report(1))
    expect(sent, 201)
    running.memory["node"] = sent.json()["node_id"]
    body = {"node_id": running.memory["node"], "scenario": _scenario(databases)}
    made = running.ask(Role.PLANNER, "POST", "/plans", json=body)
    expect(made, 201)
    running.memory["kept"] = made.json()["id"]


def _step(running: Target, step: str) -> str:
    url = f"/plans/{running.memory['kept']}/{step}"
    return expect(running.ask(Role.ADMIN, "POST", url, headers={"If-Match": "*"}), 200)


def _put_in_force(running: Target) -> None:
    _keep(running)
    for step in ("propose", "approve", "in-force"):
        _step(running, step)
    _send(running)


def _put_most_in_force(running: Target) -> None:
    """As many equal databases as are planned at once, beside as many servers as a report may have."""
    _keep(running, MOST_DATABASES)
    for step in ("propose", "approve", "in-force"):
        _step(running, step)
    _send_most(running)


def _verify(running: Target) -> str:
    return expect(running.ask(Role.VIEWER, "GET", f"/plans/{running.memory['kept']}/verification"), 200)


def _propose(running: Target) -> str:
    _step(running, "propose")
    return _step(running, "withdraw")


def _propose_many(running: Target) -> None:
    running.memory["proposed"] = []
    for _ in range(10):
        _keep(running)
        _step(running, "propose")
        running.memory["proposed"].append(running.memory["kept"])


def _withdraw_many(running: Target) -> None:
    for plan in running.memory.pop("proposed", ()):
        running.ask(Role.ADMIN, "POST", f"/plans/{plan}/withdraw", headers={"If-Match": "*"})


def _again(running: Target) -> str:
    """A newer sample, and everything that the service does because of it."""
    word = expect(running.ask(Role.AGENT, "POST", "/reports", json=_report(1)), 201)
    time.sleep(AGAIN_SECONDS)
    return word


def _fleet_plan(databases: int, running: Target) -> None:
    made = running.ask(Role.PLANNER, "POST", "/fleet/plan", json={"scenario": _scenario(databases)})
    expect(made, 202)
    running.memory["job"], running.memory["after"] = made.json()["id"], None
    for _ in range(int(TIMEOUT_SECONDS / 0.1)):
        if running.ask(Role.VIEWER, "GET", f"/fleet/plans/{made.json()['id']}").json()["status"] == "done":
            return
        time.sleep(0.1)
    raise WrongAnswerError("the fleet plan does not end")


def _decide(running: Target) -> str:
    body = {"to": "propose", "after": running.memory["after"]}
    answer = running.ask(Role.PLANNER, "POST", f"/fleet/plans/{running.memory['job']}/decisions", json=body)
    word = expect(answer, 200)
    found = answer.json()
    running.memory["after"] = found["next"]
    return f"{word}, {found['done']} of {found['done'] + found['already'] + len(found['skipped'])}"


def _know(running: Target) -> None:
    """The node of the agent's token."""
    expect(running.ask(Role.AGENT, "POST", "/reports", json=_report(1)), 201, 429)


def _trial(blocks: int, running: Target) -> str:
    batch = {"rate": 1000.123456789, "cpu_ns": 2000.123456789}
    block = {"swapped": False, "seconds": 1.0, "pairs": [{"base": batch, "other": batch}] * 12}
    size = {"page_size": "2M", "status": "measured", "gain": {"likely": 1, "low": 0, "high": 2}}
    body = {
        "id": uuid.uuid4().hex, "started_at": datetime.now(UTC).isoformat(), "seconds": 1, "stopped": "time",
        "machine": {"name": "n", "machine_id": MACHINE_ID}, "engine": "postgresql", "shape": {}, "seed": 1,
        "measure": "rate", "priority": "idle", "sentence": "s", "page_sizes": [{**size, "blocks": [block] * blocks}],
    }  # fmt: skip
    return expect(running.ask(Role.AGENT, "POST", "/trials", json=body), 201, 413, 429)


def _import(count: int, running: Target) -> str:
    one = {**_scenario(1), "node": {"memory": "64GiB"}}
    body = {"source": "attack", "scenarios": [{"name": f"n{at}", "scenario": one} for at in range(count)]}
    return expect(running.ask(Role.PLANNER, "POST", "/imports/scenarios", json=body), 200, 422)


def _save_versions(running: Target) -> None:
    """A scenario of which many versions are kept, each of a hundred kilobytes."""
    tenants = [{"name": f"t{at}" + "x" * 190, "request": "1Mi"} for at in range(TENANTS)]
    scenario = {**_scenario(1), "node": {"memory": "64GiB", "name": "n"}, "tenants": tenants}
    body = {"name": "large", "scenario": scenario}
    made = running.ask(Role.PLANNER, "POST", "/scenarios", json=body)
    expect(made, 201)
    running.memory["versions"] = made.json()["id"]
    for version in range(1, VERSIONS):
        headers = {"If-Match": f'"{version}"'}
        expect(running.ask(Role.PLANNER, "PUT", f"/scenarios/{made.json()['id']}", json=body, headers=headers), 200)


def _list_versions(running: Target) -> str:
    return expect(running.ask(Role.VIEWER, "GET", f"/scenarios/{running.memory['versions']}/versions?limit=500"), 200)


ROWS = (
    Attack(f"list: {VERSIONS} versions of a large scenario", _list_versions, prepare=_save_versions),
    Attack(f"kept plan: {DATABASES} databases proposed and withdrawn", _propose, requests=2, prepare=_keep),
    Attack(f"kept plan: {SERVERS} servers beside it verified", _verify, prepare=_put_in_force),
    Attack(f"kept plan: a report of {SERVERS} servers beside it", _send, prepare=_put_in_force),
    Attack(f"kept plan: {MOST_DATABASES} databases beside {MOST_SERVERS} servers", _verify, prepare=_put_most_in_force),
    Attack(f"kept plan: {MOST_SERVERS} servers of {LIMITS} limits", _send_most, prepare=_put_most_in_force),
    Attack(
        "kept plan: ten proposed, and a newer sample",
        _again,
        requests=10,
        prepare=_propose_many,
        undo=_withdraw_many,
        in_tests=False,
    ),
    Attack("fleet plan: rows of 1 database proposed", _decide, prepare=partial(_fleet_plan, 1)),
    Attack("fleet plan: rows of 20 databases proposed", _decide, prepare=partial(_fleet_plan, 20)),
    Attack("trial: 500 blocks", partial(_trial, 500), prepare=_know),
    Attack("import: 500 scenarios", partial(_import, 500)),
)
