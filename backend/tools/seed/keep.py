"""A synthetic fleet that keeps reporting: what a minute of its agents would have added."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg

from tools.seed.writer import ANON, AVAILABLE, MEMORY, SHMEM

# Nodes that are made to be silent stay silent: they are older than the youngest by more than a node may be. After a
# pause of the service all others are old alike, and go on.
_REPORT = f"""
WITH latest AS (SELECT max(last_report_at) AS at FROM nodes WHERE synthetic),
said AS (
    UPDATE nodes n SET last_report_at = %(now)s, sampled_at = %(now)s FROM latest
    WHERE n.synthetic AND n.last_report_at > latest.at - interval '15 minutes' AND latest.at < %(now)s
    RETURNING n.*
),
state AS (
    UPDATE node_states s SET sample = jsonb_set(s.sample, '{{taken_at}}', to_jsonb(CAST(%(text)s AS text)))
    FROM said WHERE s.node_id = said.id
    RETURNING s.node_id, s.sample
),
sample AS (
    SELECT n.*, v.available, {ANON} + {SHMEM} AS anon_shmem_bytes, {MEMORY.format(anon=ANON)} AS memory,
        s.sample -> 'pools' AS sample_pools
    FROM said n JOIN state s ON s.node_id = n.id
    CROSS JOIN LATERAL (SELECT {AVAILABLE.format(at="%(now)s")} AS available) AS v
),
stored AS (
    INSERT INTO samples (node_id, taken_at, report_id, mem_total_bytes, mem_available_bytes, page_tables_bytes,
        anon_huge_pages_bytes, hugetlb_bytes, pool_idle_bytes, memory, pools)
    SELECT id, %(now)s, gen_random_uuid(), mem_total_bytes, available, page_tables_bytes, anon_huge_pages_bytes,
        pool_bytes, pool_idle_bytes, memory, sample_pools
    FROM sample
),
hour AS ({{hour}}), day AS ({{day}})
SELECT count(*) FROM said
"""  # noqa: S608 - constants
_ROLL_UP = """
    INSERT INTO {table} AS t (node_id, start_at, samples, mem_total_bytes_max, mem_available_bytes_min,
        mem_available_bytes_sum, mem_available_samples, page_tables_bytes_max, anon_huge_pages_bytes_max,
        hugetlb_bytes_min, hugetlb_bytes_max, pool_idle_bytes_min, pool_idle_bytes_max, ordinary_bytes_max,
        anon_shmem_bytes_max)
    SELECT id, date_trunc('{width}', CAST(%(now)s AS timestamptz), 'UTC'), 1, mem_total_bytes, available, available, 1,
        page_tables_bytes, anon_huge_pages_bytes, pool_bytes, pool_bytes, pool_idle_bytes, pool_idle_bytes,
        greatest(0, mem_total_bytes - available - coalesce(pool_bytes, 0)), anon_shmem_bytes
    FROM sample
    ON CONFLICT (node_id, start_at) DO UPDATE SET samples = t.samples + 1,
        mem_available_bytes_min = least(t.mem_available_bytes_min, excluded.mem_available_bytes_min),
        mem_available_bytes_sum = t.mem_available_bytes_sum + excluded.mem_available_bytes_sum,
        mem_available_samples = t.mem_available_samples + 1,
        ordinary_bytes_max = greatest(t.ordinary_bytes_max, excluded.ordinary_bytes_max),
        anon_shmem_bytes_max = greatest(t.anon_shmem_bytes_max, excluded.anon_shmem_bytes_max)
"""


def report_again(url: str, now: datetime | None = None) -> int:
    """One report of each synthetic node that still reports; the number of nodes."""
    moment = now or datetime.now(UTC)
    parts = {width: _ROLL_UP.format(table=f"sample_{width}s", width=width) for width in ("hour", "day")}
    statement = _REPORT
    for width, part in parts.items():
        statement = statement.replace(f"{{{width}}}", part)
    with psycopg.connect(url, application_name="hugeplan seed") as connection:
        row = connection.execute(statement, {"now": moment, "text": moment.isoformat()}).fetchone()
    return 0 if row is None else int(row[0])


def size(url: str) -> int:
    """How many synthetic nodes there are; none where the tables are missing."""
    with psycopg.connect(url, application_name="hugeplan seed") as connection:
        try:
            row = connection.execute("SELECT count(*) FROM nodes WHERE synthetic").fetchone()
        except psycopg.errors.UndefinedTable:
            return 0
    return 0 if row is None else int(row[0])
