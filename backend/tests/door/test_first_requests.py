"""Nobody pays for what a process computes once: the first request of each route costs no more than any other."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from support.document import committed_document

from hugeplan.access.schemas import Role
from tools.attack.judge import CPU_SECONDS, HELD_UP_SECONDS
from tools.attack.rig import Target, expect, target
from tools.attack.rows import kept
from tools.attack.warm import SCENARIO
from tools.attack.yardstick import slowness

TESTS = Path(__file__).resolve().parents[1]
OTHER = ("/", "/metrics", "/api/docs", "/api/docs/docs.js", "/api/openapi.json", "/api/v1/nothing")
"""GET outside of the document."""
NOT_200 = {
    "/api/v1/nothing": 404,
    "/api/v1/webhooks": 403,
    "/api/v1/tokens": 403,
    "/api/v1/enrolments/requests": 403,
    "/api/v1/audit": 403,
    "/api/v1/audit.csv": 403,
    "/api/v1/oidc/login": 404,
    "/api/v1/oidc/callback": 401,
}
"""What a viewer of this service is answered where it is not 200."""
STARTS_THE_SANDBOX = ("/files.zip", "/document.yaml")
"""The GETs that plan, or write YAML. What starts the process for that (1 s, ADR 0033) is no part of its cost."""


def fill(running: Target) -> dict[str, str]:
    """Keep something of each kind, so that every route has an answer. Values of the paths' parameters."""
    kept._put_in_force(running)
    kept._fleet_plan(1, running)
    kept._trial(2, running)
    scenario = running.ask(Role.PLANNER, "POST", "/scenarios", json={"name": "s", "scenario": SCENARIO})
    expect(scenario, 201)

    def newest(what: str) -> list[str]:
        return [one["id"] for one in running.ask(Role.VIEWER, "GET", f"/{what}?limit=2").json()["items"]]

    return {
        "node_id": running.memory["node"], "trial_id": newest("trials")[0], "number": "0",
        "run_id": newest("runs")[0], "other_run_id": newest("runs")[1],
        "job_id": running.memory["job"], "scenario_id": scenario.json()["id"], "plan_id": running.memory["kept"],
        "kind": "sysctl",
    }  # fmt: skip


def paths(values: dict[str, str]) -> list[str]:
    """Every GET with its parameters, those of the query that it needs among them."""
    queries = {
        "/api/v1/runs/compare": "run={run_id}&run={other_run_id}",
        "/api/v1/plans/{plan_id}/diff": "against={plan_id}",
        "/api/v1/plans/{plan_id}/artifacts-diff": "against={plan_id}",
        "/api/v1/oidc/callback": "code=a&state=b",
    }
    found = [path for path, methods in committed_document()["paths"].items() if "get" in methods]
    with_query = [f"{path}?{queries[path]}" if path in queries else path for path in found]
    return [re.sub(r"\{(\w+)\}", lambda match: values[match[1]], path) for path in with_query] + [*OTHER]


def test_the_first_request_of_every_route_stays_within_the_budget(tmp_path: Path) -> None:
    with target(tmp_path) as running:
        asked = paths(fill(running))
        environment = {
            **os.environ, "HUGEPLAN_DATABASE_URL": running.server.database_url, "PYTHONPATH": f"{TESTS}:{TESTS.parent}",
        }  # fmt: skip
        command = [sys.executable, "-m", "support.first_request", running.tokens[Role.VIEWER]]
        before = slowness()
        done = subprocess.run(
            command, env=environment, input="\n".join(asked), capture_output=True, text=True, check=True, timeout=600
        )
        slow = (before + slowness()) / 2
    found = [line.split() for line in done.stdout.splitlines()]
    print(done.stdout, done.stderr)
    assert [line[3] for line in found] == asked
    answered = {path: int(status) for status, _, _, path in found}
    assert answered.pop("/") in {200, 404}  # with a built interface and without one
    wrong = {path: status for path, status in answered.items() if status != NOT_200.get(path.partition("?")[0], 200)}
    assert wrong == {}
    used = {
        path: float(own) + (0 if path.endswith(STARTS_THE_SANDBOX) else float(below)) for _, own, below, path in found
    }
    dear = {path: seconds for path, seconds in used.items() if seconds / slow > CPU_SECONDS}
    assert dear == {}
    held_up = {path: float(own) for _, own, _, path in found if float(own) / slow > HELD_UP_SECONDS}
    assert held_up == {}


START = """
import sys, time
begun = time.process_time()
import fastapi, pydantic, sqlalchemy.ext.asyncio
bare = time.process_time() - begun
from hugeplan.main import create_app
from hugeplan.settings import Settings
create_app(Settings())
unused = {"alembic", "authlib", "httpx", "highspy", "hugeplan.lint.detect", "hugeplan.inventory.kubernetes"}
print((time.process_time() - begun) / bare)
print(*unused & sys.modules.keys())
"""
MOST_OF_BARE = 4.0
"""A start, as a multiple of what its web framework and its database library take to be imported."""


def test_a_start_reads_what_every_service_needs_and_builds_it_once(tmp_path: Path) -> None:
    """Measured without the collector, as commands start, and with compiled modules: the first run writes them."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "HUGEPLAN_DATABASE_URL": "postgresql:///none"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", f"import gc\ngc.disable(){START}"]
    runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(6)]
    ratios, unused = zip(*(run.stdout.splitlines() for run in runs), strict=True)
    assert set(unused) == {""}
    assert statistics.median(map(float, ratios[1:])) < MOST_OF_BARE
