"""Runs as large as an agent can send them, read by a viewer: by themselves and side by side."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import Attack, Target, expect
from tools.attack.rows.stored import large_report

RUNS = 11
POINT = {"ns_min": 1.5, "ns_p50": 2.5}
SHAPES: dict[str, tuple[int, int, dict[str, float]]] = {
    "8 curves of 3,000 points": (8, 3_000, POINT),
    "500 curves of 70 points": (500, 70, POINT),
    "18 curves of 4,000 points without a time": (18, 4_000, {}),
}


def _run(shape: str, minutes_ago: int) -> dict[str, Any]:
    curves, points, point = SHAPES[shape]
    return {
        "schema_version": 1, "tool": {"name": "tlbbench", "version": "1"}, "command": "all", "profile": "quick",
        "started_at": (datetime.now(UTC) - timedelta(minutes=minutes_ago)).isoformat(), "exit_status": 0,
        "sections": [{"name": f"s{number}", "status": "ok", "reason": "r" * 4_000} for number in range(64)],
        "latency": {"status": "ok", "curves": [
            {
                "name": f"c{number}", "x_name": "footprint_bytes", "backing": "huge_2m", "page_bytes": 2 << 20,
                "status": "ok", "points": [{"x": at} | point for at in range(points)],
            }
            for number in range(curves)
        ]},
    }  # fmt: skip


def _store(shape: str, running: Target) -> None:
    running.execute("DELETE FROM runs WHERE command = 'all' AND tool_version = '1'")
    running.memory["runs"] = []
    for number in range(RUNS):
        report = large_report({}) | {"run": _run(shape, RUNS - number)}
        body = json.dumps(report, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json"}
        sent = running.ask(Role.AGENT, "POST", "/reports", content=body, headers=headers)
        expect(sent, 201)
        running.memory["runs"].append(sent.json()["run_id"])


def _read(running: Target) -> str:
    answer = running.ask(Role.VIEWER, "GET", f"/runs/{running.memory['runs'][0]}")
    return f"{expect(answer, 200)}, {len(answer.content) // 1024} KiB"


def _compare(number: int, running: Target) -> str:
    asked = "&".join(f"run={run}" for run in running.memory["runs"][:number])
    answer = running.ask(Role.VIEWER, "GET", f"/runs/compare?{asked}")
    return f"{expect(answer, 200, 422)}, {len(answer.content) // 1024} KiB"


ROWS = tuple(
    Attack(f"runs: {what} with {shape}", run, prepare=partial(_store, shape))
    for shape in SHAPES
    for what, run in (
        ("read one", _read),
        ("2 side by side", partial(_compare, 2)),
        (f"{RUNS} side by side", partial(_compare, RUNS)),
    )
)
