"""Searches, filters and cursors over a fleet of thousands of nodes, and settings that somebody pasted."""

from __future__ import annotations

import base64
import json
from functools import partial
from urllib.parse import quote, urlencode

from hugeplan.access.schemas import Role
from tools.attack.rig import Attack, Target, expect
from tools.attack.rows.stored import copy_nodes, remove_copies

NODES = 2_000


def _cursor(text: str) -> str:
    return quote(base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))


QUERIES = {
    "60 wildcards": "/nodes?q=" + "%25_" * 60,
    "100 backslashes": "/nodes?q=" + "%5C" * 100,
    "16 labels": "/nodes?" + "&".join(f"label=k{at}%3Dv" for at in range(16)),
    "300 labels": "/nodes?" + "&".join(f"label=k{at}%3Dv" for at in range(300)),
    "600 machine types and groups": "/nodes?"
    + urlencode([(key, at) for key in ("machine_type", "group") for at in range(300)]),
    "every node by findings": "/nodes?limit=500&sort=findings&descending=true",
    "a summary by a label": "/fleet/summary?by=label&label_key=k1",
    "drift": "/fleet/drift?limit=500&matching=true",
    "groups": "/fleet/groups?limit=500",
    "wins of all runs": "/fleet/page-size-wins?latest_only=false",
    "a cursor of 20,000 letters": "/nodes?cursor=" + "A" * 20_000,
    "a cursor of 4,000 brackets": "/nodes?cursor=" + _cursor("[" * 4_000),
    "a cursor of a long number": "/runs?cursor=" + _cursor(json.dumps(["9" * 4_000, "x"])),
    "a cursor of objects": "/nodes?cursor=" + _cursor(json.dumps([{}, {}])),
    "ten years of history": "/nodes/{node}/history?from=2017-06-01T00:00:00Z&points=2000",
    "events of every kind": "/events/history?limit=500",
    "the model beside results": "/evidence/backtest",
    "a shape of the largest sizes": f"/evidence/pool-shape?pool_bytes={2**62}&working_set_bytes={2**62}",
}  # fmt: skip
PASTED = {
    "30,000 lines": " name | setting \n" * 30_000,
    "500,000 pipes": "|" * 500_000,
    "spaces": " " * 499_999 + "x",
    "tabs": "a\t" * 240_000,
    "brackets": "[" * 400_000,
    "a long number": "shared_buffers = " + "9" * 400_000,
    "120,000 pairs": "# Server\n" + "a:b\n" * 120_000,
    "a table's rule": "+" + "-" * 400_000,
    "flags": "-Xmx1g " * 70_000,
    "quotes": '"' * 499_999,
}


def _query(path: str, running: Target) -> str:
    answer = running.ask(Role.VIEWER, "GET", path.format(node=running.memory["listed"]))
    return f"{expect(answer, 200, 422)}, {len(answer.content) // 1024} KiB"


def _fleet(running: Target) -> None:
    copy_nodes(NODES, 1, running)
    running.memory["listed"] = running.ask(Role.VIEWER, "GET", "/nodes?limit=1").json()["items"][0]["id"]


def _paste(text: str, running: Target) -> str:
    return expect(running.ask(Role.VIEWER, "POST", "/engines/read-settings", json={"text": text}), 200, 422)


ROWS = (
    *(
        Attack(f"query: {what}", partial(_query, path), prepare=_fleet, undo=remove_copies)
        for what, path in QUERIES.items()
    ),
    *(Attack(f"pasted settings: {what}", partial(_paste, text)) for what, text in PASTED.items()),
)
