"""Migrations of a database with many samples, while writers of the version before go on."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path

import psycopg

from hugeplan import embedded
from hugeplan.db import migrate
from hugeplan.settings import Settings
from tools.chaos.rig import REPOSITORY, Outcome

OLD = "0004_verification"
"""The last migration of the release before."""
MAX_WAIT_SECONDS = 2.0
_WRITE_EVERY_SECONDS = 0.01

_NODES = """
INSERT INTO nodes (id, machine_id, name, synthetic, architecture, mem_total_bytes, numa_node_count, agent_version,
    first_report_at, last_report_at, sampled_at, machine_type, group_key)
SELECT gen_random_uuid(), lpad(n::text, 32, '0'), 'chaos-' || n, true, 'x86_64', 17179869184, 1, 'chaos', now(), now(),
    now(), 'chaos', 'chaos'
FROM generate_series(1, %s) AS n
"""
_SAMPLE = """
INSERT INTO samples (node_id, taken_at, report_id, mem_total_bytes, mem_available_bytes, memory, pools)
VALUES (%s, clock_timestamp(), gen_random_uuid(), 17179869184, 8589934592, '{"mem_total_bytes": 17179869184}', '[]')
"""
_HOUR = """
INSERT INTO sample_hours AS t (node_id, start_at, samples, mem_total_bytes_max, mem_available_bytes_sum,
    mem_available_samples)
VALUES (%s, date_trunc('hour', now(), 'UTC'), 1, 17179869184, 8589934592, 1)
ON CONFLICT (node_id, start_at) DO UPDATE SET samples = t.samples + 1
"""


class _Writer(threading.Thread):
    """The version before, as far as its statements for samples go."""

    def __init__(self, url: str, node_id: uuid.UUID) -> None:
        super().__init__()
        self._url, self._node_id = url, node_id
        self.ending = threading.Event()
        self.seconds: list[float] = []
        self.error: str | None = None

    def run(self) -> None:
        try:
            with psycopg.connect(self._url, autocommit=True) as connection:
                while not self.ending.wait(_WRITE_EVERY_SECONDS):
                    begun = time.monotonic()
                    with connection.transaction():
                        connection.execute(_SAMPLE, [self._node_id])
                        connection.execute(_HOUR, [self._node_id])
                    self.seconds.append(time.monotonic() - begun)
        except psycopg.Error as error:
            self.error = str(error)


def migration(folder: Path, *, samples: int, nodes: int = 1000) -> Outcome:
    """Bring a database with many samples from OLD to the newest migration beside a writer, and judge its wait."""
    with embedded.running(folder / "migration", embedded.DEMO_SETTINGS | {"max_wal_size": "2GB"}) as postgres:
        postgres.ensure_database("chaos")
        url = postgres.url("chaos")
        sqlalchemy_url = Settings(database_url=url).sqlalchemy_url()
        migrate.upgrade(sqlalchemy_url, REPOSITORY / "migrations", OLD)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_NODES, [nodes])
            begun = time.monotonic()
            _copy_samples(connection, samples, nodes)
            filled = time.monotonic() - begun
            (node_id,) = connection.execute("SELECT id FROM nodes LIMIT 1").fetchone() or (uuid.uuid4(),)
        writer = _Writer(url, node_id)
        writer.start()
        while len(writer.seconds) < 20 and writer.is_alive():
            time.sleep(0.01)
        begun = time.monotonic()
        migrate.upgrade(sqlalchemy_url, REPOSITORY / "migrations")
        taken = time.monotonic() - begun
        before = len(writer.seconds)
        while len(writer.seconds) < before + 20 and writer.is_alive():
            time.sleep(0.01)
        writer.ending.set()
        writer.join()
        with psycopg.connect(url) as connection:
            (found,) = connection.execute("SELECT count(*) FROM samples").fetchone() or (0,)
    longest = max(writer.seconds, default=0.0)
    wrong = [] if writer.error is None else [f"the writer failed: {writer.error}"]
    if longest > MAX_WAIT_SECONDS:
        wrong.append(f"a write waited {longest:.2f} s")
    if found != samples + len(writer.seconds):
        wrong.append(f"{found} samples are there, {samples + len(writer.seconds)} were written")
    return Outcome(
        f"migration from {OLD} beside {samples} samples (COPY in {filled:.1f} s) took {taken:.2f} s;"
        f" {len(writer.seconds)} writes, the longest waited {longest * 1000:.0f} ms",
        wrong,
    )


def _copy_samples(connection: psycopg.Connection[tuple[object, ...]], samples: int, nodes: int) -> None:
    """Samples of the last day, by COPY from one table to the other through this process."""
    each = -(-samples // nodes)
    source = f"""COPY (
        SELECT n.id, now() - make_interval(secs => s * 86400.0 / {each}), gen_random_uuid(), n.mem_total_bytes,
            n.mem_total_bytes / 2, '{{"mem_total_bytes": 17179869184}}'::jsonb, '[]'::jsonb
        FROM generate_series(1, {each}) AS s CROSS JOIN nodes n LIMIT {samples}
    ) TO STDOUT"""  # noqa: S608 - numbers of our own
    target = (
        "COPY samples (node_id, taken_at, report_id, mem_total_bytes, mem_available_bytes, memory, pools) FROM STDIN"
    )
    with (
        psycopg.connect(connection.info.dsn, autocommit=True) as other,
        connection.cursor().copy(source) as read,
        other.cursor().copy(target) as write,
    ):
        for block in read:
            write.write(block)
