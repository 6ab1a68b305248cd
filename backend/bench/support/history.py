"""How fast a node's history is read, of which 30 days are kept a minute apart: sealed, but for the last hours."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from bench.support import world
from bench.support.figures import Figure
from bench.support.reads import Call, quantiles
from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.fleet.ingest.statements import roll_up
from hugeplan.fleet.sealing import seal_round
from hugeplan.settings import Settings

DAYS = 30
BAR_SECONDS = 0.080
_NODE = """
INSERT INTO nodes (id, machine_id, name, synthetic, architecture, mem_total_bytes, numa_node_count, agent_version,
    first_report_at, last_report_at, sampled_at)
VALUES (%(node)s, 'history', 'history', false, 'x86_64', 1, 1, '1', now(), now(), now())
"""
_SAMPLES = """
INSERT INTO samples (node_id, taken_at, report_id, mem_total_bytes, mem_available_bytes, page_tables_bytes,
    anon_huge_pages_bytes, hugetlb_bytes, pool_idle_bytes, memory, pools)
SELECT %(node)s, at, gen_random_uuid(), (m->>'mem_total_bytes')::bigint, v.free, 4096 * (random() * 50000)::bigint,
    2097152 * (random() * 1000)::bigint, (m->>'hugetlb_bytes')::bigint, 0,
    m || jsonb_build_object('mem_available_bytes', v.free, 'anon_pages_bytes', 4096 * (random() * 500000)::bigint),
    %(pools)s::jsonb
FROM generate_series(now() - make_interval(days => %(days)s), now(), interval '1 minute') AS at,
    LATERAL (SELECT %(memory)s::jsonb AS m, 4096 * (random() * 1000000)::bigint AS free WHERE at IS NOT NULL) AS v
"""
_ROWS = "(SELECT *, 0::bigint AS ordinary_bytes FROM samples) AS rows"


def history(postgres: embedded.EmbeddedPostgres, folder: Path, report: dict[str, Any]) -> Iterator[Figure]:
    """p95 of spans up to 30 days. Up to 19 days are read from samples, longer ones from hours."""
    settings = world.fresh(postgres, "history")
    node, sample = uuid.uuid4(), report["sample"]
    values = {
        "node": node, "days": DAYS, "memory": json.dumps(sample["memory"]), "pools": json.dumps(sample["pools"]),
    }  # fmt: skip
    with psycopg.connect(postgres.url("history"), autocommit=True) as connection:
        connection.execute(_NODE, values)
        connection.execute(_SAMPLES, values)
        for width in ("hour", "day"):
            connection.execute(f"WITH {roll_up(width, f'sample_{width}s', _ROWS)} SELECT")
    asyncio.run(_sealed(settings))
    with psycopg.connect(postgres.url("history"), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    (token,) = asyncio.run(world.tokens(settings, Role.VIEWER, [None]))
    now = datetime.now(UTC)
    with world.service(postgres.url("history"), folder) as (port, _):
        for days in (1, 7, 19, DAYS):
            start = f"{now - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
            calls = [(Call(f"/api/v1/nodes/{node}/history?from={start}"),)]
            yield quantiles(port, token, f"history of a node, {days} days", calls, BAR_SECONDS)


async def _sealed(settings: Settings) -> None:
    database = Database(create_engine(settings))
    await seal_round(database, 3600)
    await database.dispose()
