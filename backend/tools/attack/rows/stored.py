"""What large reports and many of them have left in the database, read by a viewer."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from hugeplan.access.schemas import Role
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.fleet.sealing import seal_round
from hugeplan.settings import Settings
from tools.attack.rig import MACHINE_ID, Attack, Target, WrongAnswerError, expect

HUGE = 2 << 20
NAME = "attack-"
LABELLED = 500
LISTED = 5_000
POOLS = 4_096
SAMPLES = 50
DENSE_BLOCKS = 240
PAGE_BYTES = 1.5 * 1024**2
COPY = """
INSERT INTO nodes
SELECT (jsonb_populate_record(nodes, jsonb_build_object(
    'id', gen_random_uuid(), 'machine_id', 'attack-' || i, 'name', %(name)s || lpad(i::text, 6, '0'), 'labels', l.labels
))).*
FROM nodes, generate_series(1, %(number)s) i,
    (SELECT coalesce(jsonb_object_agg('k' || k, repeat(%(text)s, 256)), '{}') AS labels
     FROM generate_series(1, %(labels)s) k) l
WHERE nodes.id = (SELECT id FROM nodes ORDER BY name LIMIT 1)
"""
SAMPLE = """
INSERT INTO samples (node_id, taken_at, report_id, mem_total_bytes, memory, pools)
SELECT %(node)s, %(at)s - i * interval '1 minute', gen_random_uuid(), 1 << 30, '{"mem_total_bytes": 1073741824}',
    (SELECT jsonb_agg(jsonb_build_object('numa_node', p / 4, 'page_bytes', 2097152 << (p %% 4), 'nr_hugepages',
        (random() * 1e9)::bigint, 'free_hugepages', i)) FROM generate_series(0, %(pools)s - 1) p)
FROM generate_series(1, %(samples)s) i
"""
AGAIN = """
INSERT INTO sealed_samples (node_id, start_at, first_report_id, end_at, report_ids, numbers, details)
SELECT node_id, start_at, gen_random_uuid(), end_at, report_ids, numbers, details
FROM (SELECT * FROM sealed_samples WHERE node_id = %(node)s LIMIT 1) s, generate_series(2, %(blocks)s)
"""


def copy_nodes(number: int, labels: int, running: Target) -> None:
    """So many copies of a node, with as many labels of 256 letters each."""
    running.execute(COPY, name=NAME, number=number, labels=labels, text="\U0001f600")


def remove_copies(running: Target) -> None:
    """Delete them."""
    running.execute("DELETE FROM nodes WHERE name LIKE %(name)s", name=f"{NAME}%")


def _list(path: str, running: Target) -> str:
    answer = running.ask(Role.VIEWER, "GET", path)
    word = expect(answer, 200)
    if len(answer.content) > PAGE_BYTES:
        raise WrongAnswerError(f"a page of {len(answer.content) / 1024**2:.1f} MiB")
    return f"{word}, {len(answer.content) // 1024} KiB"


def _export(running: Target) -> str:
    answer = running.ask(Role.VIEWER, "GET", f"/nodes.csv?q={NAME}")
    if answer.text.count(NAME) < LISTED:
        raise WrongAnswerError(f"{answer.text.count(NAME)} rows of {LISTED}")
    return f"{expect(answer, 200)}, {len(answer.content) // 1024} KiB"


async def _seal(database_url: str) -> None:
    database = Database(create_engine(Settings(database_url=database_url)))
    try:
        await seal_round(database, 3600.0)
    finally:
        await database.dispose()


def _node(running: Target) -> str:
    sent = running.ask(Role.AGENT, "POST", "/reports", json=large_report({}))
    expect(sent, 201, 429)
    if sent.status_code == 201:
        running.memory["reported"] = sent.json()["node_id"]
    node: str = running.memory["reported"]
    return node


def _sealed(samples: int, pools: int, blocks: int, running: Target) -> None:
    """Samples of half a day ago, as one or more blocks."""
    node, at = _node(running), datetime.now(UTC) - timedelta(hours=12)
    running.execute("DELETE FROM samples WHERE node_id = %(node)s", node=node)
    running.execute("DELETE FROM sealed_samples WHERE node_id = %(node)s", node=node)
    running.execute(SAMPLE, node=node, at=at, samples=samples, pools=pools)
    asyncio.run(_seal(running.server.database_url))
    if blocks > 1:
        running.execute(AGAIN, node=node, blocks=blocks)


def _samples(query: str, running: Target) -> str:
    before = (datetime.now(UTC) - timedelta(hours=11)).isoformat().replace("+00:00", "Z")
    return _list(f"/nodes/{running.memory['reported']}/{query}to={before}", running)


def large_report(sample: dict[str, Any]) -> dict[str, Any]:
    """A report of a node as its agent would send it, with more in its sample."""
    now = datetime.now(UTC).isoformat()
    return {
        "schema_version": 1, "report_id": str(uuid.uuid4()), "machine_id": MACHINE_ID, "node_name": "db-1",
        "created_at": now, "agent_version": "0",
        "inventory": {
            "architecture": "x86_64", "base_page_bytes": 4096, "huge_page_sizes_bytes": [HUGE],
            "default_huge_page_bytes": HUGE, "numa_nodes": [{"id": 0, "mem_total_bytes": 1 << 38}],
        },
        "sample": {
            "taken_at": now, "memory": {"mem_total_bytes": 1 << 38, "mem_available_bytes": 1 << 37},
            "numa": [{"id": 0, "mem_total_bytes": 1 << 38, "mem_free_bytes": 1 << 37}], **sample,
        },
    }  # fmt: skip


LARGE = {
    "8,000 processes": {
        "processes": [
            {"pid": pid, "name": "n" * 250, "rss_bytes": pid << 12, "pss_bytes": pid << 11, "unit": f"u{pid % 2000}"}
            for pid in range(1, 8_001)
        ]
    },
    "4,096 pools": {
        "pools": [
            {"numa_node": at // 4, "page_bytes": HUGE << (at % 4), "nr_hugepages": at, "free_hugepages": 0}
            for at in range(POOLS)
        ]
    },
    "4,096 limits": {
        "hugetlb_cgroups": [
            {"page_bytes": HUGE, "version": 2, "limit_bytes": at * HUGE, "cgroup_path": f"/kubepods/{at:0200d}"}
            for at in range(4_000)
        ]
    },
    "1,024 NUMA nodes": {"numa": [{"id": at, "mem_total_bytes": 1 << 30, "mem_free_bytes": 1} for at in range(1_024)]},
}  # fmt: skip


def _send(sample: dict[str, Any], running: Target) -> None:
    sent = running.ask(Role.AGENT, "POST", "/reports", json=large_report(sample))
    expect(sent, 201)
    running.memory["reported"] = sent.json()["node_id"]


def _of_node(path: str, running: Target) -> str:
    answer = running.ask(Role.VIEWER, "GET", path.format(node=running.memory["reported"]))
    return f"{expect(answer, 200)}, {len(answer.content) // 1024} KiB"


def _preview(running: Target) -> str:
    body = {"node_id": running.memory["reported"], "scenario": {"databases": []}}
    return expect(running.ask(Role.VIEWER, "POST", "/plans/preview", json=body), 200, 413, 422)


ROWS = (
    Attack(
        f"list: {LABELLED} nodes of 64 long labels",
        partial(_list, f"/nodes?limit=500&q={NAME}"),
        prepare=partial(copy_nodes, LABELLED, 64),
        undo=remove_copies,
    ),
    Attack(
        f"list: {LISTED:,} nodes as CSV",
        _export,
        LISTED // 500,
        prepare=partial(copy_nodes, LISTED, 1),
        undo=remove_copies,
    ),
    Attack(
        f"samples: the newest of a block of {POOLS:,} pools each",
        partial(_samples, "samples?limit=1&"),
        prepare=partial(_sealed, SAMPLES, POOLS, 1),
    ),
    Attack(
        f"samples: as many as a page holds of {POOLS:,} pools each",
        partial(_samples, "samples?limit=500&"),
        prepare=partial(_sealed, SAMPLES, POOLS, 1),
    ),
    Attack(
        "samples: 500 of a block",
        partial(_samples, "samples?limit=500&"),
        prepare=partial(_sealed, 360, 4, 1),
    ),
    *(
        Attack(
            f"history: {blocks} blocks of 360 samples",
            partial(_samples, "history?"),
            prepare=partial(_sealed, 360, 2, blocks),
        )
        for blocks in (100, DENSE_BLOCKS)
    ),
    *(
        Attack(f"node: {what}, {name}", partial(_of_node, path), prepare=partial(_send, sample))
        for what, sample in LARGE.items()
        for name, path in (("read", "/nodes/{node}"), ("processes", "/nodes/{node}/processes"))
    ),
    *(Attack(f"node: {what}, planned", _preview, prepare=partial(_send, sample)) for what, sample in LARGE.items()),
)
