"""What sealing and reading again take of memory, whatever one node has stored within its quota."""

from __future__ import annotations

import base64
import json
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import event, text
from support.reports import report
from support.service import Service

from hugeplan.fleet import sealing
from hugeplan.fleet.reparse import reparse
from hugeplan.fleet.sealing import seal_round

HOUR = 3600.0
MOST_BYTES = 64 << 20

DOCUMENTS = """
INSERT INTO report_documents (node_id, received_at, report_id, document)
SELECT node_id, received_at + n * interval '1 second', gen_random_uuid(), document
FROM report_documents, generate_series(1, 50) n
"""
REFERENCES = """
INSERT INTO report_references (node_id, report_id, made_at, document)
SELECT node_id, gen_random_uuid(), received_at + n * interval '1 second', document
FROM report_documents, generate_series(1, 60) n
"""
POOLS = """
WITH pools AS (
    SELECT jsonb_agg(jsonb_build_object('numa_node', n, 'page_bytes', 2097152, 'nr_hugepages', n)) AS pools
    FROM generate_series(1, 4096) n
), made AS (
    INSERT INTO report_documents (node_id, received_at, report_id, document)
    SELECT node_id, received_at + n * interval '1 second', gen_random_uuid(), convert_to(:small, 'UTF8')
    FROM report_documents, generate_series(1, 300) n RETURNING node_id, received_at, report_id
)
INSERT INTO samples (node_id, taken_at, report_id, mem_total_bytes, memory, pools)
SELECT node_id, received_at, report_id, 1, CAST('{"mem_total_bytes": 1}' AS jsonb), pools FROM made, pools
"""


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "MAX_SHARE", 1.0)


@contextmanager
def within() -> Iterator[None]:
    """Fails where more than MOST_BYTES are taken at a time."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES, f"{peak / 2**20:.0f} MiB"


async def large(service: Service, agent: httpx.AsyncClient) -> tuple[str, bytes]:
    """A report of 1.5 MB that nothing makes smaller, of ten hours ago: its id and its bytes."""
    document = report()
    document["unknown"] = [base64.b85encode(os.urandom(600_000)).decode() for _ in range(2)]
    raw = json.dumps(document).encode()
    answer = await agent.post("/api/v1/reports", content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text
    for table in ("reports", "report_documents"):
        await run(service, f"UPDATE {table} SET received_at = received_at - interval '10 hours'")
    return str(document["report_id"]), raw


async def run(service: Service, statement: str, **values: object) -> None:
    async with service.database.write() as session:
        await session.execute(text(statement), values)


async def read(viewer: httpx.AsyncClient, report_id: str) -> bytes:
    node = (await viewer.get("/api/v1/nodes")).json()["items"][0]["id"]
    return (await viewer.get(f"/api/v1/nodes/{node}/report", params={"report_id": report_id})).content


@pytest.mark.parametrize(("statement", "documents"), [(DOCUMENTS, 51), (REFERENCES, 1), (POOLS, 301)])
async def test_sealing_reads_a_little_at_a_time(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, statement: str, documents: int
) -> None:
    report_id, raw = await large(service, agent)
    await run(service, statement, **({"small": json.dumps(report())} if statement is POOLS else {}))
    with within():
        sealed = await seal_round(service.database, HOUR)
    assert sealed[0] == documents
    assert await read(viewer, report_id) == raw


async def test_what_is_behind_a_large_damaged_document_is_sealed(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    report_id, raw = await large(service, agent)
    await run(
        service,
        "INSERT INTO report_documents (node_id, received_at, report_id, document)"
        " SELECT node_id, received_at - interval '1 second', gen_random_uuid(), :damaged FROM report_documents",
        damaged=b"\x1f\x8b" + os.urandom(7 << 20),
    )
    assert (await seal_round(service.database, HOUR))[0] == 1
    assert await read(viewer, report_id) == raw


async def test_unread_reports_are_read_one_at_a_time(service: Service, agent: httpx.AsyncClient) -> None:
    await large(service, agent)
    await run(
        service, "UPDATE report_documents SET document = :known", known=json.dumps({"a": "a" * 1_500_000}).encode()
    )
    await run(service, DOCUMENTS)
    await run(
        service,
        "INSERT INTO reports (node_id, report_id, received_at, content_sha256)"
        " SELECT node_id, report_id, received_at, sha256('') FROM report_documents ON CONFLICT DO NOTHING",
    )
    await run(service, "UPDATE reports SET state = 'newer_schema', schema_version = 1")
    with within():
        done = await reparse(service.database)
    assert (done.reports, done.unreadable) == (0, 51)


async def test_unread_reports_are_found_some_at_a_time(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node may have left millions. Many may have arrived in one moment."""
    await agent.post("/api/v1/reports", json=report())
    await run(service, "UPDATE report_documents SET document = '{}'")
    await run(service, DOCUMENTS)
    await run(
        service,
        "INSERT INTO report_documents (node_id, received_at, report_id, document)"
        " SELECT node_id, max(received_at), gen_random_uuid(), '{}' FROM report_documents, generate_series(1, 30)"
        " GROUP BY node_id, generate_series",
    )
    await run(
        service,
        "INSERT INTO reports (node_id, report_id, received_at, content_sha256)"
        " SELECT node_id, report_id, received_at, sha256('') FROM report_documents ON CONFLICT DO NOTHING",
    )
    await run(service, "UPDATE reports SET state = 'newer_schema', schema_version = 1")
    monkeypatch.setattr("hugeplan.fleet.reparse.KEYS", 9, raising=False)
    found: list[int] = []

    def count(_: object, cursor: Any, statement: str, *__: object) -> None:
        if "FROM report_documents JOIN reports" in statement:
            found.append(cursor.rowcount)

    event.listen(service.database.engine.sync_engine, "after_cursor_execute", count)
    done = await reparse(service.database)
    assert (done.reports, done.unreadable) == (0, 81)
    assert sum(found) == 81
    assert max(found) == 9
