"""Searches, filters and cursors over a fleet of thousands of nodes, and settings that somebody pasted."""

from __future__ import annotations

import base64
import json
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import psycopg

from hugeplan.access.schemas import Role
from hugeplan.documents.against import against
from hugeplan.documents.kept import pack
from tools.attack.rig import Attack, Target, expect
from tools.attack.rows.stored import HUGE, NAME, copy_nodes, large_report, remove_copies

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
    answer = running.ask(Role.VIEWER, "GET", path.format(node=running.memory.get("listed")))
    return f"{expect(answer, 200, 422)}, {len(answer.content) // 1024} KiB"


def _fleet(running: Target) -> None:
    copy_nodes(NODES, 1, running)
    running.memory["listed"] = running.ask(Role.VIEWER, "GET", "/nodes?limit=1").json()["items"][0]["id"]


def _paste(text: str, running: Target) -> str:
    return expect(running.ask(Role.VIEWER, "POST", "/engines/read-settings", json={"text": text}), 200, 422)


DRIFT = 500
COPY_STATE = """
WITH copies AS (SELECT * FROM unnest(%(ids)s::uuid[], %(kept)s::bytea[], %(references)s::bytea[]) c (id, kept, base)),
states AS (
    INSERT INTO node_states SELECT (jsonb_populate_record(s, jsonb_build_object(
        'node_id', id, 'processes', '[]'::jsonb, 'processes_kept', NULL, 'newest_kept', NULL, 'newest_document', kept
    ))).* FROM copies, node_states s WHERE s.node_id = %(node)s
), bases AS (INSERT INTO report_references SELECT id, id, now(), base FROM copies)
INSERT INTO plans_in_force SELECT (jsonb_populate_record(p, jsonb_build_object('node_id', id))).*
FROM copies, plans_in_force p WHERE p.node_id = %(node)s
"""


def _drift(running: Target) -> None:
    """Nodes whose newest reports are kept as changes of numbers, each of a reference."""
    copy_nodes(DRIFT, 1, running)
    node = running.ask(Role.AGENT, "POST", "/reports", json=large_report({})).json()["node_id"]
    body = {"pools": [{"page_bytes": HUGE, "pages": 8, "numa_node": None}]}
    expect(running.ask(Role.PLANNER, "PUT", f"/nodes/{node}/plan-in-force", json=body), 200)
    with psycopg.connect(running.server.database_url) as connection:
        found = connection.execute("SELECT id FROM nodes WHERE name LIKE %s", (f"{NAME}%",)).fetchall()
    ids, texts = [row[0] for row in found], [json.dumps(_busy(minute)).encode() for minute in (0, 1)]
    kept = [against(texts[1], one, one, texts[0]) for one in ids]
    running.execute(COPY_STATE, node=node, ids=ids, kept=kept, references=[pack(texts[0])] * len(ids))


def _busy(minute: int) -> dict[str, Any]:
    processes = [
        {"pid": pid, "name": "postgres", "rss_bytes": 4096 * (pid**2 + minute), "pss_bytes": 1024 * (pid**3 + minute),
         "hugetlb_bytes": HUGE * pid, "unit": "systemd:postgresql.service"}
        for pid in range(1, 401)
    ]  # fmt: skip
    return large_report({"processes": processes})


ROWS = (
    Attack(
        f"query: drift of {DRIFT} nodes of 400 processes",
        partial(_query, "/fleet/drift?limit=500&matching=true"),
        prepare=_drift,
        undo=remove_copies,
    ),
    *(
        Attack(f"query: {what}", partial(_query, path), prepare=_fleet, undo=remove_copies)
        for what, path in QUERIES.items()
    ),
    *(Attack(f"pasted settings: {what}", partial(_paste, text)) for what, text in PASTED.items()),
)
