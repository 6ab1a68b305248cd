"""Sealed documents: an hour in one row, each byte for byte as it came, whatever ends the process meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from support.reports import report
from support.service import Service, assert_problem

from hugeplan.db.locks import AdvisoryLock
from hugeplan.documents.sealed import DamagedBlockError, seal, unseal
from hugeplan.fleet import read_back
from hugeplan.fleet.sealing import give_space_back, seal_round
from hugeplan.settings import Settings

HOUR = 3600.0


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=8), st.data())
def test_a_document_of_a_block_is_what_was_sealed(documents: list[bytes], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(documents) - 1))
    assert unseal(seal(documents), [len(one) for one in documents], number) == documents[number]


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=3))
def test_a_damaged_block_is_an_error_and_nothing_else(at: int, damage: bytes) -> None:
    documents = [b"{}" * 400, b"[]" * 300]
    block = bytearray(seal(documents))
    at %= len(block)
    block[at : at + len(damage)] = damage
    try:
        found = unseal(bytes(block), [800, 600], 1)
    except DamagedBlockError:
        return
    assert found == documents[1]


def test_a_block_that_claims_to_be_large_takes_no_memory() -> None:
    with pytest.raises(DamagedBlockError, match="bytes in place of"):
        unseal(seal([b"0" * 10**7]), [10], 0)


async def stored(service: Service, agent: httpx.AsyncClient, count: int, *, hours_ago: float) -> dict[str, bytes]:
    """Reports that arrived that long ago, a second apart: their bytes by id."""
    sent = {}
    for number in range(count):
        document = report()
        document["report_id"] = str(uuid.uuid4())
        raw = json.dumps(document, indent=number % 3).encode()
        headers = {"Content-Type": "application/json"}
        answer = await agent.post("/api/v1/reports", content=raw, headers=headers)
        assert answer.status_code == 201, answer.text
        sent[document["report_id"]] = raw
        # Time is the server's, so that it is moved here.
        moved = {"id": document["report_id"], "at": datetime.now(UTC) - timedelta(hours=hours_ago, seconds=-number)}
        async with service.database.write() as session:
            for table in ("reports", "report_documents"):
                await session.execute(text(f"UPDATE {table} SET received_at = :at WHERE report_id = :id"), moved)
    return sent


async def count(service: Service, table: str) -> int:
    async with service.database.read() as session:
        return int(await session.scalar(text(f"SELECT count(*) FROM {table}")) or 0)


async def node_id(viewer: httpx.AsyncClient) -> str:
    return str((await viewer.get("/api/v1/nodes")).json()["items"][0]["id"])


async def read(viewer: httpx.AsyncClient, report_id: str | None = None) -> httpx.Response:
    """A report's bytes as the API gives them."""
    params = {} if report_id is None else {"report_id": report_id}
    return await viewer.get(f"/api/v1/nodes/{await node_id(viewer)}/report", params=params)


async def test_each_report_of_a_sealed_hour_is_read_byte_for_byte(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    sent = await stored(service, agent, 70, hours_ago=8)
    newest = await stored(service, agent, 1, hours_ago=0)
    assert (await seal_round(service.database, HOUR))[0] == 70
    assert (await count(service, "report_documents"), await count(service, "sealed_documents")) == (1, 1)
    for report_id, raw in (sent | newest).items():
        assert (await read(viewer, report_id)).content == raw
    assert (await read(viewer)).content == next(iter(newest.values()))
    assert (await seal_round(service.database, HOUR))[0] == 0  # once more changes nothing
    assert_problem(await read(viewer, str(uuid.uuid4())), 404, "not-found")


async def test_who_reads_sealed_reports_waits_for_who_reads_others(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full block takes 80 MiB while it is read."""
    sent = await stored(service, agent, 3, hours_ago=8)
    await seal_round(service.database, HOUR)
    threads: list[str] = []

    def noted(*given: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return unseal(*given)

    monkeypatch.setattr(read_back, "unseal", noted)
    answers = await asyncio.gather(*(read(viewer, report_id) for report_id in [*sent] * 4))
    assert [answer.content for answer in answers] == [*sent.values()] * 4
    assert len(threads) == 12
    assert len(set(threads)) == 1


async def test_blocks_of_the_release_before_are_read(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    sent = await stored(service, agent, 3, hours_ago=8)
    # As it sealed them: after each other, with the rows of their reports left where they were.
    whole = zstandard.ZstdCompressor(level=9, write_checksum=True).compress(b"".join(sent.values()))
    values = {"ids": list(map(uuid.UUID, sent)), "sizes": list(map(len, sent.values())), "documents": whole}
    async with service.database.write() as session:
        await session.execute(
            text(
                "INSERT INTO sealed_documents (node_id, start_at, first_report_id, end_at, report_ids, sizes_bytes,"
                " documents) SELECT node_id, min(received_at), gen_random_uuid(), max(received_at), :ids,"
                " CAST(:sizes AS integer[]), :documents FROM report_documents GROUP BY node_id"
            ),
            values,
        )
        await session.execute(text("DELETE FROM report_documents"))
    for report_id, raw in sent.items():
        assert (await read(viewer, report_id)).content == raw
        assert (await agent.post("/api/v1/reports", json=json.loads(raw))).status_code == 200
    assert (await read(viewer)).content == list(sent.values())[-1]


async def test_the_newest_report_of_a_silent_node_is_read_from_its_block(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    sent = await stored(service, agent, 3, hours_ago=8)
    await seal_round(service.database, HOUR)
    assert (await read(viewer)).content == list(sent.values())[-1]


async def test_a_report_that_comes_again_is_compared_with_its_sealed_bytes(
    service: Service, agent: httpx.AsyncClient
) -> None:
    sent = await stored(service, agent, 3, hours_ago=8)
    await seal_round(service.database, HOUR)
    for raw in sent.values():
        document: dict[str, Any] = json.loads(raw)
        spelled = dict(reversed(document.items()))
        assert (await agent.post("/api/v1/reports", json=spelled)).status_code == 200
        document["sample"]["memory"]["mem_available_bytes"] -= 4096
        assert_problem(await agent.post("/api/v1/reports", json=document), 409, "conflict")


async def test_what_an_earlier_version_could_not_read_waits_unsealed(
    service: Service, agent: httpx.AsyncClient
) -> None:
    sent = await stored(service, agent, 3, hours_ago=8)
    unread = next(iter(sent))
    async with service.database.write() as session:
        await session.execute(text("UPDATE reports SET state = 'newer_schema' WHERE report_id = :id"), {"id": unread})
    assert (await seal_round(service.database, HOUR))[0] == 2
    assert await count(service, "report_documents") == 1


async def test_a_damaged_block_is_named_and_nothing_else_suffers(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    sent = await stored(service, agent, 2, hours_ago=8)
    newest = await stored(service, agent, 1, hours_ago=0)
    await seal_round(service.database, HOUR)
    async with service.database.write() as session:
        await session.execute(text("UPDATE sealed_documents SET documents = set_byte(documents, 9, 255)"))
        await session.execute(text("UPDATE sealed_documents SET documents = overlay(documents placing 'xx' from 12)"))
    problem = assert_problem(await read(viewer, next(iter(sent))), 500, "document-damaged")
    assert next(iter(sent)) in problem["detail"]
    assert (await read(viewer)).content == next(iter(newest.values()))
    again = json.loads(next(iter(sent.values())))
    answer = await agent.post("/api/v1/reports", json=dict(reversed(again.items())))
    assert answer.status_code in {200, 409}  # it cannot be compared, and stops no other report
    assert (await stored(service, agent, 1, hours_ago=0)).keys()


async def test_deleting_a_node_deletes_its_blocks(
    service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await stored(service, agent, 2, hours_ago=8)
    await seal_round(service.database, HOUR)
    assert (await admin.delete(f"/api/v1/nodes/{await node_id(admin)}")).status_code == 204
    assert await count(service, "sealed_documents") == 0


async def test_one_replica_seals_at_a_time(service: Service, agent: httpx.AsyncClient) -> None:
    await stored(service, agent, 2, hours_ago=8)
    async with service.database.write() as other:
        await other.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(AdvisoryLock.SEALING)})
        assert (await asyncio.create_task(seal_round(service.database, HOUR)))[0] == 0
    assert (await seal_round(service.database, HOUR))[0] == 2


KILLED = """
import asyncio, sys
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.fleet.sealing import seal_round
from hugeplan.settings import Settings
async def main():
    database = Database(create_engine(Settings()))
    print("begins", flush=True)
    while True:
        await seal_round(database, 3600)
        await asyncio.sleep(0.01)
asyncio.run(main())
"""


async def test_killed_at_any_moment_each_report_is_there_once(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, settings: Settings
) -> None:
    environment = os.environ | {"HUGEPLAN_DATABASE_URL": settings.database_url.get_secret_value()}
    sent: dict[str, bytes] = {}
    for round_number in range(4):
        sent |= await stored(service, agent, 20, hours_ago=8 + round_number)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, env=environment, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        await process.stdout.readline()
        await asyncio.sleep(0.004 * round_number)  # another moment of the round each time
        process.send_signal(signal.SIGKILL)
        await process.wait()
        async with service.database.read() as session:
            places = await session.scalar(
                text(
                    "SELECT (SELECT count(*) FROM report_documents)"
                    " + (SELECT coalesce(sum(cardinality(report_ids)), 0) FROM sealed_documents)"
                )
            )
        assert places == len(sent)
    for report_id, raw in sent.items():
        assert (await read(viewer, report_id)).content == raw


async def test_an_emptied_day_gives_its_space_back(service: Service, agent: httpx.AsyncClient) -> None:
    day = (datetime.now(UTC) - timedelta(days=3)).date()
    name = f"report_documents_{day:%Y%m%d}"
    async with service.database.write() as session:
        await session.execute(
            text(
                f"CREATE TABLE {name} PARTITION OF report_documents"
                f" FOR VALUES FROM ('{day}T00:00Z') TO ('{day + timedelta(days=1)}T00:00Z')"
            )
        )
    try:
        await stored(service, agent, 2, hours_ago=72)
        assert name not in await give_space_back(service.database, datetime.now(UTC))
        await seal_round(service.database, HOUR)
        assert name in await give_space_back(service.database, datetime.now(UTC))
    finally:
        async with service.database.write() as session:
            await session.execute(text(f"DROP TABLE {name}"))
