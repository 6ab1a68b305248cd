"""Fleet plans: as many as one may ask for, cancelled, and one that reaches its limit of processor time."""

from __future__ import annotations

import time
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import FLEET_PLANS, JOB_CPU_SECONDS, TIMEOUT_SECONDS, Attack, Target, WrongAnswerError, expect
from tools.attack.rows.plans import databases

MANY = 30
DEAR: dict[str, Any] = {
    "databases": [
        one | {"settings": {"shared_buffers": f"{(at + 1) * 64}MB"}}
        for at, one in enumerate(databases(60, pool_range={"min": "128MiB", "max": "64GiB"}))
    ]
}


def _ask(running: Target) -> dict[str, Any] | None:
    """A job that takes longer than it may; None where so many wait already."""
    made = running.ask(Role.PLANNER, "POST", "/fleet/plan", json={"name": "n", "scenario": DEAR})
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


ROWS = (
    Attack(
        f"fleet plans: {MANY} asked for, and cancelled",
        _cancelled,
        requests=2 * MANY,
        at_once=True,
        apart=(FLEET_PLANS,),
    ),
    Attack("fleet plans: one that takes too long", _too_long, requests=2, at_once=True, apart=(FLEET_PLANS,)),
)
