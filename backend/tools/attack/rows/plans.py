"""Plans: scenarios that are small and mean much arithmetic, or many words."""

from __future__ import annotations

from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import Attack, Target, WrongAnswerError, expect
from tools.attack.warm import SCENARIO

PLAN_BYTES = 4 * 1024**2
WARM_NODE = {"name": "n", "memory": "1TiB", "cpus": 64}


def numa(number: int) -> dict[str, Any]:
    """A node of so many NUMA nodes."""
    return {"name": "n", "cpus": 64, "numa_nodes": [{"id": one, "memory": "8GiB"} for one in range(number)]}


def databases(number: int, **more: Any) -> list[dict[str, Any]]:
    """So many servers of PostgreSQL."""
    one = {"engine": "postgresql", "version": "17", "settings": {"shared_buffers": "1GB"}}
    return [{"name": f"d{at}", **one, **more} for at in range(number)]


MOVABLE = {"pool_range": {"min": "64MiB", "max": "64GiB"}, "workload": {"working_set": "80GiB", "row_bytes": 128}}
HISTORY = {"times": [float(n * 60) for n in range(20_000)], "used": [n % 97 * 2**20 for n in range(20_000)]}
PREVIEWS: dict[str, dict[str, Any]] = {
    "64 databases": {"node": WARM_NODE, "databases": databases(64)},
    "64 databases on 64 NUMA nodes": {"node": numa(64), "databases": databases(64)},
    "64 databases on 300 NUMA nodes": {"node": numa(300), "databases": databases(64)},
    "64 databases of any size": {"node": numa(8), "databases": databases(64, **MOVABLE)},
    "1,000 tenants": {
        "node": WARM_NODE,
        "tenants": [{"name": f"t{n}", "request": "1Gi", "count": 10_000} for n in range(1000)],
        "databases": databases(8),
    },
    "1,000 tenants on 19 NUMA nodes": {
        "node": numa(19),
        "tenants": [{"name": f"t{n}", "request": "1Gi"} for n in range(1000)],
        "databases": databases(8),
    },
    "20 histories of 20,000 samples": {
        "node": WARM_NODE,
        "tenants": [{"name": f"t{n}", "history": HISTORY} for n in range(8)],
        "databases": databases(4),
    },
    "1,024 NUMA nodes": {"node": numa(1024), "databases": databases(4)},
    "names of 200 characters": {
        "node": {**numa(8), "name": "n" * 200},
        "tenants": [{"name": f"{n:03d}" + "t" * 197, "request": "900Gi", "count": 10_000} for n in range(100)],
        "databases": [{**one, "name": f"{at:02d}" + "d" * 198} for at, one in enumerate(databases(64))],
    },
    "what does not fit": {"node": {"name": "n", "memory": "8GiB"}, "databases": databases(64, **MOVABLE)},
}


def _preview(scenario: dict[str, Any], running: Target) -> str:
    answer = running.ask(Role.VIEWER, "POST", "/plans/preview", json={"scenario": scenario})
    word = expect(answer, 200, 413, 422)
    if len(answer.content) > PLAN_BYTES:
        raise WrongAnswerError(
            f"an answer of {len(answer.content) / 1024**2:.1f} MiB; at most {PLAN_BYTES // 1024**2} MiB"
        )
    return f"{word}, {len(answer.content) // 1024} KiB"


def _save(scenario: dict[str, Any], running: Target) -> None:
    made = running.ask(Role.PLANNER, "POST", "/scenarios", json={"name": "attack", "scenario": scenario})
    if made.status_code != 201:
        raise WrongAnswerError(f"the scenario was answered {made.status_code}: {made.text[:200]}")
    running.memory["scenario"] = made.json()["id"]


def _plan_saved(running: Target) -> str:
    answer = running.ask(Role.PLANNER, "POST", f"/scenarios/{running.memory['scenario']}/plans")
    return f"{expect(answer, 201, 422)}, {len(answer.content) // 1024} KiB"


def _validated(body: dict[str, Any], running: Target) -> str:
    return expect(running.ask(Role.PLANNER, "POST", "/scenarios", json={"name": "a", **body}), 413, 422)


UNKNOWN = {f"k{number}": number for number in range(90_000)}
MOST_UNKNOWN = {f"k{number}": number for number in range(49_000)}

ROWS = (
    *(Attack(f"preview: {name}", partial(_preview, scenario)) for name, scenario in PREVIEWS.items()),
    Attack("plan: 64 databases saved", _plan_saved, prepare=partial(_save, PREVIEWS["64 databases"])),
    Attack("scenario: 90,000 unknown members", partial(_validated, {"scenario": UNKNOWN})),
    Attack(
        "scenario: 90,000 unknown settings",
        partial(
            _validated, {"scenario": {**SCENARIO, "databases": [{"name": "d", "engine": "mysql", "settings": UNKNOWN}]}}
        ),
    ),
    Attack("scenario: a list of 100,000 databases", partial(_validated, {"scenario": {"databases": [{}] * 99_000}})),
    Attack("scenario: as many members as are read", partial(_validated, {"scenario": MOST_UNKNOWN})),
    Attack("scenario: 49,000 numbers of far exponents", partial(_validated, {"scenario": [5e-324, 1e308] * 24_500})),
)
