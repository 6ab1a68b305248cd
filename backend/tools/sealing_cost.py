"""What a node and day take in the database, as they came and sealed, beside gzip in one table, and what sealing costs.

::

    hugeplan-agent observe > report.json
    python -m tools.sealing_cost report.json --nodes 5 --processes 38

One report is replayed each minute of 24 hours (tools/replay.py says with what change); its documents, samples and
reports are stored as ingest stores them, in the demo's PostgreSQL on loopback. Prints one JSON object; bytes are what
the tables take with their indexes and TOAST, after VACUUM FULL of those that were emptied. The yardstick is one table
of node, time and gzip of level 6.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import tempfile
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from hugeplan import embedded
from hugeplan.db import migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.documents.against import against
from hugeplan.documents.kept import pack
from hugeplan.fleet.sealing import seal_round
from hugeplan.settings import Settings
from tools.replay import MINUTES_PER_DAY, replayed

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
TABLES: Final = (
    "report_documents_default", "samples_default", "reports", "sealed_documents_default", "sealed_samples_default",
)  # fmt: skip
_NODE: Final = """
INSERT INTO nodes (id, machine_id, name, synthetic, architecture, mem_total_bytes, numa_node_count, agent_version,
    first_report_at, last_report_at, sampled_at)
VALUES (:node, CAST(:node AS text), 'n', false, 'x86_64', 1, 1, '1', :at, :at, :at)
"""
_REFERENCE: Final = "INSERT INTO report_references VALUES (:node, :id, :at, :document)"
_ROWS: Final = (
    "INSERT INTO report_documents (node_id, received_at, report_id, document) VALUES (:node, :at, :id, :document)",
    "INSERT INTO yardstick VALUES (:node, :at, :gzip)",
    "INSERT INTO reports (node_id, report_id, received_at, content_sha256) VALUES (:node, :id, :at, sha256(:document))",
    "INSERT INTO samples (node_id, taken_at, report_id, mem_total_bytes, mem_available_bytes, page_tables_bytes,"
    " anon_huge_pages_bytes, hugetlb_bytes, pool_idle_bytes, anon_shmem_bytes)"
    " SELECT :node, :took, :id, m.mem_total_bytes, m.mem_available_bytes, m.page_tables_bytes, m.anon_huge_pages_bytes,"
    " m.hugetlb_bytes, 0, m.anon_pages_bytes + m.shmem_bytes FROM jsonb_to_record(CAST(:memory AS jsonb)) AS m("
    " mem_total_bytes bigint, mem_available_bytes bigint, page_tables_bytes bigint, anon_huge_pages_bytes bigint,"
    " hugetlb_bytes bigint, anon_pages_bytes bigint, shmem_bytes bigint)",
)


async def _store(database: Database, report: dict[str, Any], processes: int, chance: random.Random) -> int:
    """One node's day; the bytes of its documents."""
    node = uuid.UUID(int=chance.getrandbits(128))
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
    rows: list[dict[str, Any]] = []
    size = 0
    first: tuple[uuid.UUID, bytes] | None = None
    for report_id, at, document in replayed(
        report, processes=processes, start=start, minutes=MINUTES_PER_DAY, chance=chance
    ):
        sample = json.loads(document)["sample"]
        size += len(document)
        first = first or (report_id, document)
        rows.append({
            "node": node, "id": report_id, "at": at, "document": against(document, report_id, *first),
            "gzip": gzip.compress(document, 6),
            "memory": json.dumps(sample["memory"]), "took": datetime.fromisoformat(sample["taken_at"]),
        })  # fmt: skip
    async with database.write() as session:
        await session.execute(text(_NODE), {"node": node, "at": start})
        assert first is not None
        reference = {"node": node, "id": first[0], "at": start, "document": pack(first[1])}
        await session.execute(text(_REFERENCE), reference)
        for statement in _ROWS:
            await session.execute(text(statement), rows)
    return size


async def measured(url: str, report: dict[str, Any], nodes: int, processes: int) -> dict[str, float]:
    """Bytes per node and day in each form, and the seconds of processor and time that sealing took."""
    settings = Settings.model_validate({"database_url": url})
    migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
    database = Database(create_engine(settings))
    chance = random.Random(1)  # noqa: S311 - the same change in each run
    async with database.write() as session:
        await session.execute(text("CREATE TABLE yardstick (node_id uuid, at timestamptz, document bytea)"))
        await session.execute(text("CREATE INDEX ON yardstick (node_id, at)"))
        await session.execute(text("ALTER TABLE yardstick ALTER document SET STORAGE EXTERNAL"))
    document_bytes = sum([await _store(database, report, processes, chance) for _ in range(nodes)])

    async def stored_bytes(*tables: str) -> int:
        async with database.engine.connect() as connection:
            free = await connection.execution_options(isolation_level="AUTOCOMMIT")
            sizes = []
            for table in tables:
                await free.execute(text(f"VACUUM FULL {table}"))
                sizes.append(int(await free.scalar(text(f"SELECT pg_total_relation_size('{table}')")) or 0))
            return sum(sizes)

    before, yardstick = await stored_bytes(*TABLES), await stored_bytes("yardstick")
    cpu, began = time.process_time(), time.monotonic()
    sealed = await seal_round(database, 3600)
    cpu, seconds = time.process_time() - cpu, time.monotonic() - began
    assert sealed == (nodes * MINUTES_PER_DAY,) * 2, sealed
    parts = {name: await stored_bytes(name) for name in TABLES}
    # A node's reference stays for as long as it serves: it is no part of a day.
    reference = await stored_bytes("report_references")
    await database.dispose()
    return {
        "processes": processes,
        "document_bytes": round(document_bytes / nodes / MINUTES_PER_DAY),
        "yardstick_bytes_per_node_day": round(yardstick / nodes),
        "unsealed_bytes_per_node_day": round(before / nodes),
        "sealed_bytes_per_node_day": round(sum(parts.values()) / nodes),
        **{f"of_it_{name.removesuffix('_default')}_bytes": round(size / nodes) for name, size in parts.items()},
        "reference_bytes_per_node": round(reference / nodes),
        "service_cpu_seconds_per_node_day": round(cpu / nodes, 4),
        "seconds_per_node_day": round(seconds / nodes, 3),
    }


def measured_here(report: dict[str, Any], nodes: int, processes: int) -> dict[str, float]:
    """The same with a PostgreSQL of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with embedded.running(Path(folder) / "postgresql", embedded.DEMO_SETTINGS) as server:
            server.ensure_database("hugeplan")
            return asyncio.run(measured(server.url("hugeplan"), report, nodes, processes))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="what a node and day take")
    parser.add_argument("report", type=Path, help="what hugeplan-agent observe printed")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--processes", type=int, default=38)
    arguments = parser.parse_args()
    print(json.dumps(measured_here(json.loads(arguments.report.read_text()), arguments.nodes, arguments.processes)))


if __name__ == "__main__":
    main()
