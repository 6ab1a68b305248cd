"""Kept plans and scenarios as large as they may be, read in every way that a viewer has."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import Attack, Target, WrongAnswerError, expect
from tools.attack.rows.plans import PREVIEWS, WARM_NODE, databases, numa

OF_PLAN = {
    "read": "/plans/{plan}", "its document": "/plans/{plan}/document.json", "its inputs": "/plans/{plan}/inputs",
    "its difference": "/plans/{plan}/diff?against={other}", "its files": "/plans/{plan}/artifacts?force=true",
    "one file": "/plans/{plan}/artifacts/sysctl?force=true", "its bundle": "/plans/{plan}/artifacts.zip?force=true",
    "its files' difference": "/plans/{plan}/artifacts-diff?against={other}",
}  # fmt: skip
PLANS: dict[str, dict[str, Any]] = {
    "64 databases": PREVIEWS["64 databases"],
    "8 databases on 64 NUMA nodes": {"node": numa(64), "databases": databases(8)},
    "300 tenants": {
        "node": WARM_NODE,
        "tenants": [{"name": f"t{at}", "request": "1Gi"} for at in range(300)],
        "databases": databases(8),
    },
    "names of 200 characters": {
        "node": {**numa(4), "name": "n" * 200},
        "databases": [{**one, "name": f"{at:02d}" + "d" * 198} for at, one in enumerate(databases(20))],
    },
}
"""As large as may be on a slow machine, too."""
TENANTS = 1_000
SETTINGS = {f"setting_{at}": "1" for at in range(490)}
SCENARIOS: dict[str, dict[str, Any]] = {
    f"{TENANTS:,} tenants": {
        "node": {"name": "n", "memory": "64TiB"},
        "databases": [{"name": "d", "engine": "postgresql", "settings": {"shared_buffers": "1GB"}}],
        "tenants": [{"name": f"t{at:05d}" + "\u00e9 : #" * 30, "request": "1Mi"} for at in range(TENANTS)],
    },
    "100 databases of 490 settings": {
        "node": {"name": "n", "memory": "64TiB"},
        "databases": [{"name": f"d{at}", "engine": "postgresql", "settings": SETTINGS} for at in range(100)],
    },
}
OF_SCENARIO = {
    "read": "/scenarios/{large}",
    "as YAML": "/scenarios/{large}/document.yaml",
    "listed": "/scenarios?limit=500",
}


def _keep(what: str, running: Target) -> None:
    """Two plans that differ in each database."""
    for name, pages in (("plan", "1GB"), ("other", "1025MB")):
        scenario = copy.deepcopy(PLANS[what])
        for database in scenario["databases"]:
            database["settings"]["shared_buffers"] = pages
        made = running.ask(Role.PLANNER, "POST", "/plans", json={"scenario": scenario})
        expect(made, 201)
        running.memory[name] = made.json()["id"]


def _save(what: str, running: Target) -> None:
    made = running.ask(Role.PLANNER, "POST", "/scenarios", json={"name": "large", "scenario": SCENARIOS[what]})
    expect(made, 201)
    running.memory["large"] = made.json()["id"]


def _read(path: str, running: Target) -> str:
    answer = running.ask(Role.VIEWER, "GET", path.format(**running.memory))
    word = expect(answer, 200, 404, 409, 422)
    if answer.status_code == 422 and "takes more than" not in answer.text:
        raise WrongAnswerError(answer.text[:300])
    return f"{word}, {len(answer.content) // 1024} KiB"


ROWS = (
    *(
        Attack(
            f"plan of {what}: {how}",
            partial(_read, path),
            prepare=partial(_keep, what),
            in_tests=what == "64 databases",
        )
        for what in PLANS
        for how, path in OF_PLAN.items()
    ),
    *(
        Attack(f"scenario of {what}: {how}", partial(_read, path), prepare=partial(_save, what))
        for what in SCENARIOS
        for how, path in OF_SCENARIO.items()
    ),
)
