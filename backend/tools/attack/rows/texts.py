"""Scenario files and inventories: deep, long and wide."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from tools.attack.rig import Attack, Target, expect
from tools.attack.warm import KUBERNETES, SCENARIO_TEXT

SCENARIOS = {
    "4,000 brackets": "x: " + "[" * 4_000,
    "262,000 brackets": "[" * 262_000,
    "262,000 braces": "{a: " * 65_000,
    "a list of 131,000 items": "x: [" + "1," * 131_000 + "1]",
    "a block list of 131,000 items": "x:\n" + "- 1\n" * 131_000,
    "40,000 unknown keys": "".join(f"k{number}: 1\n" for number in range(40_000)),
    "400,000 newlines": "\n" * 400_000 + "a: 1",
    "an alias bomb": "a: &a [1,1]\n" + "".join(f"a{n}: &a{n} [*a,*a]\n" for n in range(9_000)),
    "64 databases with 500 settings": SCENARIO_TEXT.split("databases")[0]
    + "databases:\n"
    + "".join(
        f"- name: d{n}\n  engine: postgresql\n  settings:\n" + "".join(f"    s{m}: 1\n" for m in range(500))
        for n in range(64)
    ),
}


def _scenario(text: str, running: Target) -> str:
    body = {"name": "attack", "yaml": text}
    return expect(running.ask(Role.PLANNER, "POST", "/scenarios/import", json=body), 201, 422)


def pod(number: int, node: str = "n") -> dict[str, Any]:
    """A pod with a database, as short as one can be."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": f"p{number}", "namespace": "d"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "postgres:17"}]},
        "status": {"phase": "Running"},
    }


def _kubernetes(items: list[dict[str, Any]], running: Target, *, save: bool = False) -> str:
    body = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}, separators=(",", ":"))
    answer = running.ask(
        Role.PLANNER,
        "POST",
        "/imports/kubernetes",
        params={"save": save},
        content=body,
        headers={"Content-Type": "application/json"},
    )
    return expect(answer, 200, 413, 422)


NODE = KUBERNETES["items"][0]


def _nodes(number: int) -> list[dict[str, Any]]:
    return [{**NODE, "metadata": {"name": f"n{one}"}} for one in range(number)]


def _each_a_database(running: Target) -> str:
    return _kubernetes([*_nodes(1000), *(pod(one, f"n{one}") for one in range(1000))], running, save=True)


ROWS = (
    *(Attack(f"scenario: {name}", partial(_scenario, text)) for name, text in SCENARIOS.items()),
    Attack(
        "import: 26,000 database pods on one node",
        partial(_kubernetes, [NODE, *(pod(number) for number in range(26_000))]),
    ),
    Attack("import: 200 database pods on one node", partial(_kubernetes, [NODE, *(pod(n) for n in range(200))])),
    Attack("import: 8,000 nodes", partial(_kubernetes, _nodes(8_000))),
    Attack("import: a database on each of 1,000 nodes, kept", _each_a_database),
)
