"""Write-ahead log per report, by table and kind of record: what a report makes PostgreSQL write beside its tables.

::

    python -m tools.wal_cost ../docs/report.example.json --nodes 10 --reports 30 --processes 2

Each node's report is replayed a minute apart (tools/replay.py says with what change), and the nodes' reports of a
minute share a commit, as they do under load. Record bytes and full-page images are told apart: the first write of a
page after a checkpoint adds the page itself, so images depend on how often PostgreSQL checkpoints, and records do not.
The demo's PostgreSQL, on loopback, is asked with its own pg_waldump; no checkpoint comes in between.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import tempfile
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg

from hugeplan import embedded
from hugeplan.db import migrate
from hugeplan.db.connection import Connection
from hugeplan.fleet.ingest.batch import Batch
from hugeplan.fleet.ingest.in_force import SavedPlans
from hugeplan.fleet.ingest.incoming import Incoming, read_report
from hugeplan.settings import Settings
from tools.replay import replayed

MIGRATIONS: Final = Path(__file__).resolve().parents[2] / "migrations"
WARM_UP: Final = 5
"""Reports per node before those that are counted: a node's first ones make its rows."""
_RECORD: Final = re.compile(r"rmgr: (\S+)\s+len \(rec/tot\):\s+(\d+)/\s*(\d+), .*?desc: (\S+)")
_RELATION: Final = re.compile(r"rel \d+/\d+/(\d+)")


def _arrivals(report: dict[str, Any], nodes: int, count: int, processes: int) -> list[list[Incoming]]:
    """For each minute the reports of all nodes."""
    start = datetime.now(UTC) - timedelta(minutes=count)
    of_nodes = []
    for number in range(nodes):
        machine, chance = f"{number:032x}", random.Random(number)  # noqa: S311 - the same change in each run
        token, own = uuid.UUID(int=number), report | {"machine_id": machine, "node_name": f"wal-{number}"}
        of_nodes.append([
            read_report(raw, json.loads(raw), token_id=token, now=at)
            for _, at, raw in replayed(own, processes=processes, start=start, minutes=count, chance=chance)
        ])  # fmt: skip
    return [list(minute) for minute in zip(*of_nodes, strict=True)]


async def _stored(url: str, minutes: list[list[Incoming]]) -> None:
    async with await Connection.connect(url, autocommit=True) as connection:
        for minute in minutes:
            checked: dict[uuid.UUID, str | None] = {one.token_id: one.machine_id for one in minute}
            batch = Batch(connection, minute, SavedPlans(), prepared=None, checked=checked)
            while not await batch.commit(lambda: None):
                pass
            refused = [answer for answer in batch.answers.values() if isinstance(answer, Exception)]
            if refused:
                raise refused[0]


def _position(connection: psycopg.Connection[Any]) -> str:
    row = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
    assert row is not None
    return str(row[0])


def measured(server: embedded.EmbeddedPostgres, folder: Path, minutes: list[list[Incoming]]) -> dict[str, Any]:
    """Bytes of write-ahead log per report. ``minutes``: what arrives in each."""
    url = server.url("hugeplan")
    migrate.upgrade(Settings.model_validate({"database_url": url}).sqlalchemy_url(), MIGRATIONS)
    asyncio.run(_stored(url, minutes[:WARM_UP]))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        first = _position(connection)
        asyncio.run(_stored(url, minutes[WARM_UP:]))
        last = _position(connection)
        names = dict(connection.execute("SELECT pg_relation_filenode(oid)::text, relname FROM pg_class").fetchall())
    command = [embedded.programs_dir() / "pg_waldump", "-p", folder / "pg_wal", "-s", first, "-e", last]
    dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return _summed(dump, names, sum(map(len, minutes[WARM_UP:])))


def _summed(dump: str, names: dict[str, str], count: int) -> dict[str, Any]:
    tables: Counter[str] = Counter()
    images = 0
    for line in dump.splitlines():
        found = _RECORD.search(line)
        if found is None:
            continue
        manager, record, total, kind = found[1], int(found[2]), int(found[3]), found[4]
        relation = _RELATION.search(line)
        table = names.get(relation[1], relation[1]) if relation else ""
        tables[f"{manager} {kind.lower()} {table}".strip()] += record
        images += total - record
    return {
        "reports": count,
        "wal_record_bytes_per_report": round(sum(tables.values()) / count),
        "full_page_image_bytes_per_report": round(images / count),
        "of_it": {name: round(size / count) for name, size in tables.most_common(24)},
    }


def measured_here(report: dict[str, Any], nodes: int, reports: int, processes: int) -> dict[str, Any]:
    """The same with a PostgreSQL of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as state:
        folder = Path(state) / "postgresql"
        Path(state).chmod(0o755)
        with embedded.running(folder, embedded.DEMO_SETTINGS | {"checkpoint_timeout": "1h"}) as server:
            server.ensure_database("hugeplan")
            return measured(server, folder, _arrivals(report, nodes, WARM_UP + reports, processes))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="write-ahead log per report")
    parser.add_argument("report", type=Path, help="what hugeplan-agent observe printed")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--reports", type=int, default=30)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    print(json.dumps(measured_here(json.loads(given.report.read_text()), given.nodes, given.reports, given.processes)))


if __name__ == "__main__":
    main()
