"""What the documents of a node and day take, as they came (gzip) and sealed, and what sealing costs.

::

    hugeplan-agent observe > report.json
    python -m tools.sealing_cost report.json --nodes 5 --processes 38

One report is replayed each minute of 24 hours with synthetic change: three tenths of the numbers above 100,000 in its
sample move by up to 200 pages, and the list of processes is repeated to ``--processes``. The demo's PostgreSQL, on
loopback. Prints one JSON object; bytes are what the tables take with their indexes, after VACUUM FULL of the first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text

from hugeplan import embedded
from hugeplan.db import migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.documents.kept import pack
from hugeplan.fleet.sealing import seal_round
from hugeplan.settings import Settings

MINUTES = 24 * 60
MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"


def moved(value: Any, chance: random.Random) -> Any:
    """The same with some of its large numbers moved."""
    if isinstance(value, dict):
        return {key: moved(one, chance) for key, one in value.items()}
    if isinstance(value, list):
        return [moved(one, chance) for one in value]
    if isinstance(value, int) and value > 100_000 and chance.random() < 0.3:
        return max(0, value + 4096 * chance.randint(-200, 200))
    return value


def replayed(report: dict[str, Any], processes: int, chance: random.Random) -> list[tuple[uuid.UUID, bytes]]:
    """The reports of one day, as an agent would send them."""
    sample = dict(report["sample"])
    given = sample.get("processes", [])
    sample["processes"] = [given[i % len(given)] | {"pid": 1000 + i} for i in range(processes)] if given else []
    made = []
    for minute in range(MINUTES):
        sample = moved(sample, chance)
        now = f"2026-11-23T{minute // 60:02d}:{minute % 60:02d}:{chance.random() * 60:09.6f}Z"
        report_id = uuid.UUID(int=chance.getrandbits(128))
        document = report | {"report_id": str(report_id), "created_at": now, "sample": sample | {"taken_at": now}}
        made.append((report_id, json.dumps(document, separators=(",", ":")).encode()))
    return made


async def measured(url: str, report: dict[str, Any], nodes: int, processes: int) -> dict[str, float]:
    """Bytes per node and day in both forms, and the seconds of processor and time that sealing took."""
    settings = Settings.model_validate({"database_url": url})
    migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
    database = Database(create_engine(settings))
    chance = random.Random(1)  # noqa: S311 - the same change in each run
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
    raw_bytes = 0
    for _ in range(nodes):
        node_id = uuid.UUID(int=chance.getrandbits(128))
        documents = replayed(report, processes, chance)
        raw_bytes += sum(len(document) for _, document in documents)
        rows = [
            {"node": node_id, "id": report_id, "at": start + timedelta(minutes=minute), "document": pack(document)}
            for minute, (report_id, document) in enumerate(documents)
        ]
        async with database.write() as session:
            await session.execute(text("INSERT INTO report_documents VALUES (:node, :at, :id, :document)"), rows)

    async def stored_bytes(table: str) -> int:
        async with database.read() as session:
            return int(await session.scalar(text(f"SELECT pg_total_relation_size('{table}_default')")) or 0)

    async with database.engine.connect() as connection:
        free = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await free.execute(text("VACUUM FULL report_documents_default"))
    before = await stored_bytes("report_documents")
    cpu, began = time.process_time(), time.monotonic()
    sealed = await seal_round(database, 3600)
    cpu, seconds = time.process_time() - cpu, time.monotonic() - began
    assert sealed == (nodes * MINUTES, 0)
    after = await stored_bytes("sealed_documents")
    await database.dispose()
    return {
        "document_bytes": round(raw_bytes / nodes / MINUTES),
        "gzip_bytes_per_node_day": round(before / nodes),
        "sealed_bytes_per_node_day": round(after / nodes),
        "service_cpu_seconds_per_node_day": round(cpu / nodes, 4),
        "seconds_per_node_day": round(seconds / nodes, 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="what sealed documents take")
    parser.add_argument("report", type=Path, help="what hugeplan-agent observe printed")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--processes", type=int, default=38)
    arguments = parser.parse_args()
    report = json.loads(arguments.report.read_text())
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with embedded.running(Path(folder) / "postgresql", embedded.DEMO_SETTINGS) as server:
            server.ensure_database("hugeplan")
            url = server.url("hugeplan")
            print(json.dumps(asyncio.run(measured(url, report, arguments.nodes, arguments.processes))))


if __name__ == "__main__":
    main()
