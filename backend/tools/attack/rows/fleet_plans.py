"""Fleet plans: as many as one may ask for, cancelled, and one that reaches its limit of processor time."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import FLEET_PLANS, JOB_CPU_SECONDS, TIMEOUT_SECONDS, Attack, Target, WrongAnswerError, expect
from tools.attack.rows.plans import PLAN_BYTES, databases
from tools.attack.rows.stored import large_report

MANY = 30
DEAREST = (60, 40, 25, 15, 10)
"""Numbers of databases: the check before a job takes as long as they are many, and longer on a slow machine."""


def _dear(many: int) -> dict[str, Any]:
    found = databases(many, pool_range={"min": "128MiB", "max": "64GiB"})
    sized = [one | {"settings": {"shared_buffers": f"{(at + 1) * 64}MB"}} for at, one in enumerate(found)]
    return {"name": "n", "scenario": {"databases": sized}}


def _find_the_dearest(running: Target) -> None:
    """How many databases this machine's check lets through; the job of them takes longer than it may all the same."""
    for many in DEAREST:
        made = running.ask(Role.PLANNER, "POST", "/fleet/plan", json=_dear(many))
        if expect(made, 202, 422) == "202":
            running.memory["databases"] = many
            expect(running.ask(Role.PLANNER, "POST", f"/fleet/plans/{made.json()['id']}/cancel"), 200, 409)
            _ended(running, made.json())
            return
    raise WrongAnswerError(f"no fleet plan of {DEAREST[-1]} databases is taken")


def _ask(running: Target) -> dict[str, Any] | None:
    """A job that takes longer than it may; None where so many wait already."""
    made = running.ask(Role.PLANNER, "POST", "/fleet/plan", json=_dear(running.memory["databases"]))
    if expect(made, 202, 409) == "409":
        return None
    job: dict[str, Any] = made.json()
    return job


def _ended(running: Target, job: dict[str, Any]) -> dict[str, Any]:
    until = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < until:
        found: dict[str, Any] = running.ask(Role.VIEWER, "GET", f"/fleet/plans/{job['id']}").json()
        if found["status"] not in {"queued", "running"}:
            return found
        time.sleep(0.2)
    raise WrongAnswerError("the fleet plan does not end")


def _cancelled(running: Target) -> str:
    """All that one credential may have waiting, while the first of them runs."""
    jobs = [job for job in (_ask(running) for _ in range(MANY)) if job is not None]
    if len(jobs) == MANY:
        raise WrongAnswerError(f"{MANY} fleet plans of one credential are taken")
    for job in jobs:
        expect(running.ask(Role.PLANNER, "POST", f"/fleet/plans/{job['id']}/cancel"), 200, 409)
    states = {_ended(running, job)["status"] for job in jobs}
    if "done" in states:
        raise WrongAnswerError(f"cancelled fleet plans are {sorted(states)}")
    return f"{len(jobs)} of {MANY} taken"


def _too_long(running: Target) -> str:
    """Planned by a process per CPU, until the limit: others are served meanwhile."""
    job = _ask(running)
    found = {} if job is None else _ended(running, job)
    if "HUGEPLAN_FLEET_PLAN_CPU_SECONDS" not in (found.get("error") or ""):
        raise WrongAnswerError(f"not ended by its limit of {JOB_CPU_SECONDS:g} s: {found}")
    return str(found["status"])


def _report(running: Target, numa_nodes: int, servers: int) -> None:
    """A node that its agent says has so many NUMA nodes and servers."""
    numa = [{"id": at, "mem_total_bytes": 1 << 38} for at in range(numa_nodes)]
    databases = [
        {
            "key": f"postgresql@u{at}.service", "engine": "postgresql", "main_pid": at + 1, "version": "17",
            "settings": {"shared_buffers": {"value": "1GB", "source": "file"}}, "settings_complete": True,
        }
        for at in range(servers)
    ]  # fmt: skip
    body = large_report({"numa": numa, "databases": databases})
    body["inventory"]["numa_nodes"] = numa
    body["sample"]["memory"] = dict.fromkeys(("mem_total_bytes", "mem_available_bytes"), numa_nodes << 38)
    expect(running.ask(Role.AGENT, "POST", "/reports", json=body), 201)


def _group(numa_nodes: int, servers: int, running: Target) -> None:
    """A fleet plan of that node as it runs; an ordinary one takes its place for what comes after."""
    _report(running, numa_nodes, servers)
    made = running.ask(Role.PLANNER, "POST", "/fleet/plan", json={"selector": {"q": "db-1"}})
    expect(made, 202)
    job = _ended(running, made.json())
    _report(running, 1, 1)
    if job["status"] != "done":
        raise WrongAnswerError(f"a fleet plan ended by one node: {job['error']}")
    rows = running.ask(Role.VIEWER, "GET", f"/fleet/plans/{job['id']}/nodes?q=db-1").json()["items"]
    number = next(row["group_number"] for row in rows if row["name"] == "db-1")
    running.memory["read"] = f"/fleet/plans/{job['id']}/{'nodes' if number is None else f'groups/{number}'}"


def _read(running: Target) -> str:
    answer = running.ask(Role.VIEWER, "GET", running.memory["read"])
    if len(answer.content) > 2 * PLAN_BYTES:
        raise WrongAnswerError(f"an answer of {len(answer.content) / 1024**2:.1f} MiB")
    return f"{expect(answer, 200)}, {len(answer.content) // 1024} KiB"


ROWS = (
    Attack("fleet plans: a group of 200 databases on 8 NUMA nodes", _read, prepare=partial(_group, 8, 200)),
    Attack("fleet plans: 256 databases on 1,024 NUMA nodes", _read, prepare=partial(_group, 1024, 256)),
    Attack(
        f"fleet plans: {MANY} asked for, and cancelled",
        _cancelled,
        prepare=_find_the_dearest,
        requests=2 * MANY,
        at_once=True,
        apart=(FLEET_PLANS,),
    ),
    Attack(
        "fleet plans: one that takes too long",
        _too_long,
        prepare=_find_the_dearest,
        requests=2,
        at_once=True,
        apart=(FLEET_PLANS,),
    ),
)
