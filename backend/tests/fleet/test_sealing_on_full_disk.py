"""A disk that is full while reports are sealed: each is there once, in the form that it had, and is sealed later."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError
from support.reports import report

from hugeplan import embedded
from hugeplan.db import migrate
from hugeplan.db.connection import Connection
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.fleet import read_back
from hugeplan.fleet.ingest.batch import Batch
from hugeplan.fleet.ingest.in_force import SavedPlans
from hugeplan.fleet.ingest.incoming import read_report
from hugeplan.fleet.sealing import seal_round
from hugeplan.settings import Settings

COUNT = 400
#: PostgreSQL keeps its log in files of 16 MiB; with these settings it needs no new one for what is done here.
SETTINGS = embedded.DEMO_SETTINGS | {"min_wal_size": "64MB", "max_wal_size": "96MB", "autovacuum": "off"}
PLACES = """
SELECT (SELECT count(*) FROM report_documents), (SELECT count(*) FROM samples), (SELECT count(*) FROM reports),
    (SELECT count(*) FROM sealed_documents), (SELECT count(*) FROM sealed_samples)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("a file system can be mounted by root only")
    disk = tmp_path / "disk"
    disk.mkdir()
    tmp_path.chmod(0o755)
    mount = ["mount", "-t", "tmpfs", "-o", "size=320m,mode=0755", "hugeplan-sealing", str(disk)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)  # noqa: S607 - root's own path


@contextlib.contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Nothing more fits."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    yield
    ballast.unlink()


async def stored(url: str) -> tuple[uuid.UUID, dict[uuid.UUID, bytes]]:
    """Reports of a night, a minute apart: their node, and their bytes by id."""
    start = datetime.now(UTC) - timedelta(hours=16)
    sent: dict[uuid.UUID, bytes] = {}
    async with await Connection.connect(url, autocommit=True) as connection:
        for number in range(COUNT):
            document = copy.deepcopy(report())
            report_id, at = uuid.uuid4(), start + timedelta(minutes=number)
            document |= {"report_id": str(report_id), "created_at": at.isoformat()}
            document["sample"]["taken_at"] = at.isoformat()
            sent[report_id] = json.dumps(document).encode()
            incoming = read_report(sent[report_id], document, token_id=uuid.UUID(int=1), now=at)
            checked: dict[uuid.UUID, str | None] = {incoming.token_id: incoming.machine_id}
            batch = Batch(connection, [incoming], SavedPlans(), prepared=None, checked=checked)
            assert await batch.commit(lambda: None)
            answer = batch.answers[0]
            assert not isinstance(answer, Exception), answer
        return answer.node_id, sent


async def test_a_full_disk_leaves_each_report_in_one_form(small_disk: Path) -> None:
    with embedded.running(small_disk / "postgresql", SETTINGS) as server:
        server.ensure_database("hugeplan")
        url = server.url("hugeplan")
        settings = Settings.model_validate({"database_url": url})
        await asyncio.to_thread(migrate.upgrade, settings.sqlalchemy_url(), migrate.migrations_dir(None))
        node_id, sent = await stored(url)
        database = Database(create_engine(settings))

        def places() -> tuple[int, ...]:
            with psycopg.connect(url) as connection:
                return connection.execute(PLACES).fetchone() or ()

        async def assert_whole() -> None:
            async with database.read() as session:
                for report_id, raw in sent.items():
                    assert await read_back.get_document(session, node_id, report_id) == raw

        with filled(small_disk):
            with pytest.raises(DBAPIError, match="No space left on device"):
                await seal_round(database, 3600)
            assert places() == (COUNT, COUNT, COUNT, 0, 0)
            await assert_whole()
        assert (await seal_round(database, 3600))[0] >= 360
        assert places()[3:] > (0, 0)
        await assert_whole()
        await database.dispose()
