"""Sealed samples: lists, histories and the planner read them as before, whatever ends the process meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
import tracemalloc
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest
import zstandard
from fleet.test_sealing import KILLED
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from support.reports import GIB, report
from support.service import Service, assert_problem

from hugeplan.db.maintenance import maintain
from hugeplan.db.models import SampleRow, SealedSamplesRow
from hugeplan.documents import against, numbers
from hugeplan.documents.sealed import cost_of, seal, unseal_all
from hugeplan.fleet import sample_list, sealed_samples
from hugeplan.fleet.reparse import reparse
from hugeplan.fleet.sample_list import SampleList
from hugeplan.fleet.sealed_samples import Numbers, SampleKey, microseconds, read_numbers
from hugeplan.fleet.sealing import BATCH_BYTES, seal_and_give_back, seal_round
from hugeplan.fleet.stored import read_histories
from hugeplan.settings import Settings

HOUR = 3600.0
HALF_A_DAY = 12 * 3600 * 10**6
LONG_AGO = datetime(1980, 1, 1, tzinfo=UTC)
MOST_POOLS = 4096
NODES = "/api/v1/nodes"


@pytest.fixture(autouse=True)
def as_large_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small reports of these tests are kept as large ones: as changes of numbers."""
    monkeypatch.setattr(against, "NUMBERS_FROM_BYTES", 0)


async def stored(agent: httpx.AsyncClient, count: int, *, newest: datetime, every: timedelta) -> str:
    """Samples with numbers of their own, some of them unknown; the node."""
    chance = random.Random(7)
    for number in range(count):
        document = report()
        memory = document["sample"]["memory"]
        memory["mem_available_bytes"] = None if number % 7 == 3 else 4096 * chance.randrange(10**7)
        memory["hugetlb_bytes"] = None if number % 5 == 4 else 2 * GIB
        memory["anon_pages_bytes"], memory["shmem_bytes"] = GIB + 4096 * number, 4096
        if number % 11 == 0:
            document["sample"]["pools"] = []
        document["sample"]["taken_at"] = (newest - number * every).isoformat()
        answer = await agent.post("/api/v1/reports", json=document)
        assert answer.status_code == 201, answer.text
    return str(answer.json()["node_id"])


async def all_samples(viewer: httpx.AsyncClient, node: str, **query: Any) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        params = query | ({"cursor": cursor} if cursor else {})
        page = (await viewer.get(f"{NODES}/{node}/samples", params=params)).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def readings(viewer: httpx.AsyncClient, node: str, newest: datetime) -> Mapping[str, Any]:
    """What is read of samples, by lists and by histories of several spans."""
    found: dict[str, Any] = {}
    for limit in (1, 7, 200):
        found[f"pages of {limit}"] = await all_samples(viewer, node, limit=limit)
    cut = {"from": (newest - timedelta(hours=9)).isoformat(), "to": (newest - timedelta(minutes=30)).isoformat()}
    found["cut"] = await all_samples(viewer, node, limit=3, **cut)
    for hours in (2, 24, 100):
        # Both ends inside what is stored, on no whole width.
        span = {"from": (newest - timedelta(hours=hours, seconds=1)).isoformat(), "to": newest.isoformat()}
        answer = await viewer.get(f"{NODES}/{node}/history", params=span)
        assert answer.json()["source"] == "samples"
        found[f"{hours} hours"] = answer.json()
    return found


@pytest.mark.parametrize("hours_ago", [0, 12])
async def test_what_is_read_is_the_same_before_and_after(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, hours_ago: int
) -> None:
    newest = datetime.now(UTC) - timedelta(hours=hours_ago)
    node = await stored(agent, 40, newest=newest, every=timedelta(minutes=37))
    before = await readings(viewer, node, newest)
    assert len(before["pages of 7"]) == 40
    _, sealed = await seal_round(service.database, HOUR)
    assert sealed > 30
    assert await readings(viewer, node, newest) == before
    # What comes late lies between sealed ones, and is sealed by the next round.
    await stored(agent, 3, newest=newest - timedelta(hours=11), every=timedelta(minutes=1))
    late = await readings(viewer, node, newest)
    assert len(late["pages of 7"]) == 43
    assert await seal_round(service.database, HOUR) == (0, 3)
    assert await readings(viewer, node, newest) == late


async def arrived(service: Service, hours_ago: float) -> None:
    """Let all documents have arrived that long ago."""
    async with service.database.write() as session:
        for table in ("reports", "report_documents"):
            moved = f"UPDATE {table} SET received_at = received_at - :ago"
            await session.execute(text(moved), {"ago": timedelta(hours=hours_ago)})


@pytest.mark.parametrize("order", ["documents with their samples", "documents alone, by the release before"])
async def test_samples_are_sealed_in_full_whichever_release_sealed_their_documents(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, order: str
) -> None:
    newest = datetime.now(UTC) - timedelta(hours=12)
    node = await stored(agent, 40, newest=newest, every=timedelta(minutes=37))
    before = await readings(viewer, node, newest)
    assert {len(one["pools"]) for one in before["pages of 200"]} > {0}
    await arrived(service, 11)
    if order == "documents with their samples":
        assert await seal_round(service.database, HOUR) == (40, 40)
    else:
        async with service.database.write() as session:
            await session.execute(text("CREATE TABLE aside AS SELECT * FROM samples"))
            await session.execute(text("DELETE FROM samples"))
        assert await seal_round(service.database, HOUR) == (40, 0)
        async with service.database.write() as session:
            await session.execute(text("INSERT INTO samples SELECT * FROM aside"))
            await session.execute(text("DROP TABLE aside"))
        assert await seal_round(service.database, HOUR) == (0, 40)
    assert await readings(viewer, node, newest) == before


@pytest.mark.parametrize("spelled", ["{:.0f}", "number", "{:.0f}.25"])
async def test_a_time_is_sealed_and_read_in_each_spelling_that_a_report_may_have(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, spelled: str
) -> None:
    newest = (datetime.now(UTC) - timedelta(hours=12)).replace(microsecond=0)
    node = await stored(agent, 2, newest=newest, every=timedelta(minutes=5))
    for seconds in (1, 2):
        document, at = report(), (newest - timedelta(seconds=seconds)).timestamp()
        document["sample"]["taken_at"] = int(at) if spelled == "number" else spelled.format(at)
        assert (await agent.post("/api/v1/reports", json=document)).status_code == 201
    before = await all_samples(viewer, node, limit=50)
    await arrived(service, 11)
    assert await seal_round(service.database, HOUR) == (4, 4)
    assert await all_samples(viewer, node, limit=50) == before


async def sealed_with_their_documents(service: Service, agent: httpx.AsyncClient, count: int, **settings: bool) -> str:
    """Samples of half a day ago, sealed in one batch with their documents; the node."""
    newest = datetime.now(UTC) - timedelta(hours=12)
    node = await stored(agent, count, newest=newest, every=timedelta(minutes=10))
    await arrived(service, 11)
    assert await seal_round(service.database, HOUR, **settings) == (count, count)
    return node


async def changed(service: Service, statement: str) -> None:
    async with service.database.write() as session:
        await session.execute(text(statement))


async def test_samples_are_in_their_documents_and_are_named_where_those_are_damaged(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    node = await sealed_with_their_documents(service, agent, 5)
    async with service.database.read() as session:
        assert await session.scalar(text("SELECT max(octet_length(details)) FROM sealed_samples")) == 0
    assert {one["memory"]["anon_pages_bytes"] for one in await all_samples(viewer, node, limit=2)} > {GIB}
    await changed(service, "UPDATE sealed_documents SET documents = overlay(documents placing 'xxx' from 30)")
    assert_problem(await viewer.get(f"{NODES}/{node}/samples"), 500, "document-damaged")
    assert (await viewer.get(f"{NODES}/{node}/history")).json()["points"]
    await changed(service, "UPDATE sealed_documents SET report_ids = report_ids[2:], sizes_bytes = sizes_bytes[2:]")
    assert_problem(await viewer.get(f"{NODES}/{node}/samples"), 500, "document-damaged")


async def test_documents_are_sealed_without_their_text(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To put the numbers back as text and to take it apart again is a third of what sealing cost."""

    def not_needed(*_: Any) -> bytes:
        raise AssertionError("its text is made")

    monkeypatch.setattr(numbers, "text_of", not_needed)
    await sealed_with_their_documents(service, agent, 5)
    async with service.database.read() as session:
        span = "SELECT taken_to - taken_from, (SELECT end_at - start_at FROM sealed_samples) FROM sealed_documents"
        assert (await session.execute(text(span))).one() == (timedelta(minutes=40),) * 2


@pytest.mark.parametrize("samples_outlive", [False, True])
async def test_what_is_left_of_samples_whose_documents_are_not_kept_any_more(
    service: Service,
    agent: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    settings: Settings,
    samples_outlive: bool,
) -> None:
    """What histories read of them, and everything where samples were set to be kept for longer."""
    node = await sealed_with_their_documents(service, agent, 5, samples_outlive=samples_outlive)
    before = await all_samples(viewer, node, limit=50)
    points = (await viewer.get(f"{NODES}/{node}/history")).json()["points"]
    days = {"sample_retention_days": 30, "document_retention_days": 1, "retention_max_share": 1.0}
    later = datetime.now(UTC) + timedelta(days=3)
    assert await maintain(service.database, settings.model_copy(update=days), later) is None
    async with service.database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM sealed_documents")) == 0
    found = await all_samples(viewer, node, limit=50)
    assert found == (before if samples_outlive else [])
    assert (await viewer.get(f"{NODES}/{node}/history")).json()["points"] == points


@pytest.mark.parametrize(("samples", "documents"), [(30, 30), (30, 31), (31, 30)])
async def test_samples_that_are_kept_for_longer_than_documents_say_it_themselves(
    service: Service, agent: httpx.AsyncClient, settings: Settings, samples: int, documents: int
) -> None:
    days = {"sample_retention_days": samples, "document_retention_days": documents}
    await stored(agent, 2, newest=datetime.now(UTC) - timedelta(hours=12), every=timedelta(minutes=10))
    await arrived(service, 11)
    await seal_and_give_back(service.database, settings.model_copy(update=days))
    async with service.database.read() as session:
        (details,) = (await session.scalars(text("SELECT details FROM sealed_samples"))).all()
    assert bool(details) is (samples > documents)


async def test_samples_that_the_release_before_wrote_in_full_are_read_and_sealed(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    newest = datetime.now(UTC) - timedelta(hours=12)
    node = await stored(agent, 5, newest=newest, every=timedelta(minutes=10))
    memory = {"mem_total_bytes": 2 * GIB, "anon_pages_bytes": GIB, "shmem_bytes": 4096}
    pools = [{"page_bytes": 2 << 20, "numa_node": 0, "nr_hugepages": 3, "free_hugepages": 1}]
    in_full = "UPDATE samples SET memory = :memory, pools = :pools, anon_shmem_bytes = NULL"
    async with service.database.write() as session:
        values = {"memory": json.dumps(memory), "pools": json.dumps(pools)}
        cast = in_full.replace(":memory", "CAST(:memory AS jsonb)").replace(":pools", "CAST(:pools AS jsonb)")
        await session.execute(text(cast), values)
    before = await all_samples(viewer, node, limit=50)
    assert {(one["memory"]["anon_pages_bytes"], one["pools"][0]["nr_hugepages"]) for one in before} == {(GIB, 3)}
    async with service.database.read() as session:
        history = await read_histories(session, {uuid.UUID(node): newest})
    assert max(history[uuid.UUID(node)].used_bytes) >= GIB + 4096
    await arrived(service, 11)
    assert await seal_round(service.database, HOUR) == (5, 5)
    assert await all_samples(viewer, node, limit=50) == before


async def test_a_sample_whose_document_is_damaged_keeps_what_its_row_knows(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    newest = datetime.now(UTC) - timedelta(hours=12)
    node = await stored(agent, 3, newest=newest, every=timedelta(minutes=10))
    before = await all_samples(viewer, node, limit=50)
    async with service.database.write() as session:
        damaged = "UPDATE report_documents SET document = overlay(document placing 'xx' from 22)"
        await session.execute(text(damaged))
    for sealed in (0, 3):
        found = await all_samples(viewer, node, limit=50)
        for one, whole in zip(found, before, strict=True):
            for name in ("mem_total_bytes", "mem_available_bytes", "hugetlb_bytes"):
                assert one["memory"][name] == whole["memory"][name]
            assert (one["memory"]["anon_pages_bytes"], one["pools"]) == (None, [])
        assert (await seal_round(service.database, HOUR))[1] == 3 - sealed


async def test_a_row_of_samples_begins_on_the_day_of_each_of_them_where_they_are_far_apart(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    """It is dropped with the day that it begins in."""
    now = datetime.now(UTC)
    for days in (20, 1):
        node = await stored(agent, 2, newest=now - timedelta(days=days), every=timedelta(seconds=1))
    await arrived(service, 11)
    assert await seal_round(service.database, HOUR) == (4, 4)
    async with service.database.read() as session:
        starts = (await session.scalars(text("SELECT start_at FROM sealed_samples ORDER BY 1"))).all()
    assert [start > now - timedelta(days=2) for start in starts] == [False, True]
    assert len(await all_samples(viewer, node, limit=50)) == 4


async def test_samples_of_one_time_are_listed_once_each(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    newest = datetime.now(UTC) - timedelta(hours=12)
    node = await stored(agent, 5, newest=newest, every=timedelta(0))
    before = await all_samples(viewer, node, limit=2)
    await seal_round(service.database, HOUR)
    await stored(agent, 2, newest=newest, every=timedelta(0))
    assert len(before) == 5
    assert len(await all_samples(viewer, node, limit=2)) == 7


async def test_a_young_silent_nodes_plan_reads_its_sealed_samples(service: Service, agent: httpx.AsyncClient) -> None:
    newest = datetime.now(UTC).replace(minute=50) - timedelta(hours=20)
    node = uuid.UUID(await stored(agent, 9, newest=newest, every=timedelta(minutes=5)))

    async def history() -> Mapping[uuid.UUID, Any]:
        async with service.database.read() as session:
            return await read_histories(session, {node: newest})

    before = await history()
    assert len(before[node].times_seconds) > 5
    await seal_round(service.database, HOUR)
    assert await history() == before
    async with service.database.write() as session:
        await session.execute(text("UPDATE sealed_samples SET numbers = 'damaged'"))
    assert await history() == {}


async def copied(service: Service, table: str, count: int) -> None:
    """So many more rows as each of a table, with ids of their own."""
    async with service.database.write() as session:
        names = (
            await session.scalars(
                text("SELECT column_name FROM information_schema.columns WHERE table_name = :table"), {"table": table}
            )
        ).all()
        theirs = {
            "report_id": "gen_random_uuid()",
            "first_report_id": "CAST(md5(first_report_id::text || g) AS uuid)",
            "report_ids": "ARRAY(SELECT CAST(md5(i::text || g) AS uuid) FROM unnest(report_ids) WITH ORDINALITY u(i, n)"
            " ORDER BY n)",
        }
        values = ", ".join(theirs.get(name, name) for name in names)
        made = f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table}, generate_series(1, :count) g"
        await session.execute(text(made.replace("::", "\\:\\:")), {"count": count})


@pytest.mark.parametrize(("is_sealed", "copies"), [(True, 24), (False, 7200)])
async def test_a_short_history_reads_the_newest_samples_alone(
    service: Service, agent: httpx.AsyncClient, is_sealed: bool, copies: int
) -> None:
    """A node may say that all its samples are of one time, so that it stays young."""
    newest = datetime.now(UTC).replace(minute=50) - timedelta(hours=20)

    async def stored_then(count: int, at: datetime) -> uuid.UUID:
        node = await stored(agent, 1, newest=at, every=timedelta(0))
        await changed(service, "UPDATE sample_hours SET anon_shmem_bytes_max = NULL")
        if is_sealed:
            await seal_round(service.database, HOUR)
        await copied(service, "sealed_samples" if is_sealed else "samples", count)
        return uuid.UUID(node)

    node = await stored_then(copies, newest)
    await stored_then(0, newest - timedelta(minutes=30))
    async with service.database.read() as session:
        assert await read_histories(session, {node: newest}) == {}


@pytest.mark.parametrize("rows", [360, 361])
async def test_a_history_of_very_many_samples_is_of_hours_before_they_are_sealed(
    service: Service,
    agent: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
) -> None:
    """A block of 360 counts the same before it is one."""
    node = await stored(agent, 1, newest=datetime.now(UTC) - timedelta(hours=1), every=timedelta(0))
    await copied(service, "samples", rows - 1)
    monkeypatch.setattr("hugeplan.fleet.history._MOST_BLOCKS", 1)
    found = (await viewer.get(f"{NODES}/{node}/history")).json()
    fits = rows <= 360
    assert found["source"] == ("samples" if fits else "hours")
    assert sum(point["samples"] for point in found["points"]) == (rows if fits else 1)


async def many_blocks(service: Service, agent: httpx.AsyncClient, copies: int, every: timedelta) -> uuid.UUID:
    """A node with 6 samples and so many more blocks of the same times, each with its documents."""
    node = await stored(agent, 6, newest=datetime.now(UTC) - timedelta(hours=12), every=every)
    await arrived(service, 11)
    assert await seal_round(service.database, HOUR) == (6, 6)
    for table in ("sealed_samples", "sealed_documents"):
        await copied(service, table, copies)
    return uuid.UUID(node)


@pytest.mark.parametrize("every", [timedelta(0), timedelta(minutes=1)])
async def test_a_page_ends_before_it_unseals_many_blocks(
    service: Service,
    agent: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    every: timedelta,
) -> None:
    """Each sample may be in a block of its own, whose documents have megabytes."""
    node = await many_blocks(service, agent, 19, every)
    unsealed: list[int] = []
    unseal = sealed_samples.unseal_some

    def counted(*given: Any) -> list[bytes]:
        unsealed.append(1)
        return unseal(*given)

    monkeypatch.setattr(sealed_samples, "unseal_some", counted)
    page = (await viewer.get(f"{NODES}/{node}/samples", params={"limit": 60})).json()
    assert 0 < len(unsealed) <= 20
    # A block of the six has 3 kB, and counts for 64 kB beside them.
    monkeypatch.setattr("hugeplan.fleet.sample_list.READ_BYTES", 200_000)
    unsealed.clear()
    page = (await viewer.get(f"{NODES}/{node}/samples", params={"limit": 60})).json()
    assert 0 < len(unsealed) <= 3
    assert len(page["items"]) < 60
    assert len(await all_samples(viewer, str(node), limit=60)) == 120


async def keys_by_pages(service: Service, node: uuid.UUID, limit: int) -> list[SampleKey]:
    found: list[SampleKey] = []
    while True:
        async with service.database.read() as session:
            page = SampleList(session, node, start=None, end=None, limit=limit)
            rows = await page.read(found[-1] if found else None, limit)
        found += [(one.taken_at, one.report_id) for one in rows]
        if len(rows) < limit and not page.is_cut:
            return found


@pytest.mark.parametrize("every", [timedelta(0), timedelta(minutes=1)])
@pytest.mark.parametrize("most_cost", [20, 500])
async def test_samples_of_overlapping_blocks_are_listed_once_each_newest_first(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, every: timedelta, most_cost: int
) -> None:
    node = await many_blocks(service, agent, 4, every)
    later = datetime.now(UTC) - timedelta(hours=11, minutes=59)
    await stored(agent, 3, newest=later, every=timedelta(minutes=2))
    monkeypatch.setattr("hugeplan.fleet.sample_list._MOST_COST", most_cost)
    for limit in (1, 4, 50):
        found = await keys_by_pages(service, node, limit)
        assert found == sorted(set(found), reverse=True)
        assert len(found) == 33


async def test_a_time_of_which_too_many_blocks_have_samples_is_named(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await many_blocks(service, agent, 9, timedelta(minutes=1))
    async with service.database.read() as session:
        newest = (await session.execute(text("SELECT max(end_at) FROM sealed_samples"))).scalar_one()
    monkeypatch.setattr("hugeplan.fleet.sample_list._MOST_COST", 10)
    url = f"{NODES}/{node}/samples"
    problem = assert_problem(await viewer.get(url), 422, "invalid-input")
    assert (problem["errors"][0]["field"], problem["errors"][0]["value"]) == ("to", newest.isoformat())
    before = await viewer.get(url, params={"to": (newest - timedelta(hours=1)).isoformat()})
    assert before.json() == {"items": [], "next_cursor": None}


def numbers_of(number: int, forms: int) -> Numbers:
    """A sample's numbers, unknown or of 19 digits in so many ways."""
    which, said = number % forms, []
    for _ in range(5):
        said.append((None, 10**18 + number, number * 4096)[which % 3])
        which //= 3
    return Numbers(microseconds(datetime.now(UTC)) - HALF_A_DAY - number * 10**6, 2**39, *said, GIB + number)


def cheapest(work: Callable[[], Any]) -> float:
    """Seconds of processor time: the least of some."""
    taken = []
    for _ in range(7):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


@pytest.mark.parametrize("forms", [1, 6, 20, 64, 150, 360])
def test_a_block_costs_no_less_than_reading_it_takes(forms: int) -> None:
    def block(forms: int) -> bytes:
        return seal([msgspec.json.encode(numbers_of(number, forms)) for number in range(360)])

    ordinary, odd = block(1), block(forms)
    assert cost_of(ordinary) == 1
    assert (cost_of(odd) == 1) == (forms <= 6)
    times = [cheapest(lambda one=one: read_numbers([one], LONG_AGO)) for one in (ordinary, odd)]  # type: ignore[misc]
    assert times[1] < 2 * cost_of(odd) * times[0]
    assert (cost_of(b""), cost_of(odd[:30]), cost_of(b"\x02" + odd[1:]), cost_of(b"{}")) == (1, 1, 1, 1)


def test_an_earlier_versions_block_costs_by_its_size() -> None:
    compress = zstandard.ZstdCompressor().compress
    for size, cost in ((10_000, 1), (80_000, 3)):
        assert cost_of(b"\x02" + compress(bytes(size))) == cost_of(compress(bytes(size))) == cost


async def costly_blocks(service: Service, agent: httpx.AsyncClient, blocks: int, forms: int, details: int) -> str:
    """A node with blocks of 360 samples whose numbers and details have so many forms; the node."""
    node = await stored(agent, 1, newest=datetime.now(UTC), every=timedelta(0))
    said = [numbers_of(number, forms) for number in range(359, -1, -1)]
    pool = {"numa_node": 0, "page_bytes": 2 << 20, "nr_hugepages": 1}
    pools = [[pool | {"x" * (p + 1): n} for p in range(details) if (n >> p % 8) & 1] for n in range(360)]
    in_full = [{"memory": {"mem_total_bytes": n + 1}, "pools": of_it} for n, of_it in enumerate(pools)]
    kept = {
        "node_id": uuid.UUID(node), "start_at": said[0].taken_at, "end_at": said[-1].taken_at,
        "numbers": seal([msgspec.json.encode(one) for one in said]),
        "details": seal([msgspec.json.encode(one) for one in in_full]),
    }  # fmt: skip
    async with service.database.write() as session:
        for _ in range(blocks):
            ids = [uuid.uuid4() for _ in said]
            session.add(SealedSamplesRow(**kept, first_report_id=ids[0], report_ids=ids))
    return node


@pytest.mark.parametrize("forms", [1, 64])
async def test_a_history_reads_as_many_blocks_as_their_cost_allows(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, forms: int
) -> None:
    read = 40 if forms == 1 else 0
    node = await costly_blocks(service, agent, 40, forms, 1)
    unsealed: list[int] = []
    unseal = sealed_samples.unseal_all

    def counted(*given: Any) -> list[bytes]:
        unsealed.append(1)
        return unseal(*given)

    monkeypatch.setattr(sealed_samples, "unseal_all", counted)
    found = (await viewer.get(f"{NODES}/{node}/history")).json()
    assert (found["source"], len(unsealed)) == ("samples" if read else "hours", read)
    unsealed.clear()
    async with service.database.read() as session:
        await read_histories(session, {uuid.UUID(node): datetime.now(UTC) - timedelta(hours=12)})
    assert len(unsealed) == (24 if read else 3)


async def test_a_page_reads_as_many_keys_as_their_cost_allows(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await costly_blocks(service, agent, 30, 64, 1)
    looked_at: list[int] = []
    keys_of = sample_list.keys_of

    def counted(block: sealed_samples.Block) -> list[sealed_samples.SortKey]:
        looked_at.append(1)
        return keys_of(block)

    monkeypatch.setattr(sample_list, "keys_of", counted)
    await viewer.get(f"{NODES}/{node}/samples", params={"limit": 200})
    assert 1 <= len(looked_at) <= 12


async def test_a_page_of_costly_details_ends_early_and_all_are_listed_once(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await costly_blocks(service, agent, 1, 1, 30)
    whole = await all_samples(viewer, node, limit=200)
    assert len(whole) == 361
    monkeypatch.setattr(sample_list, "_MOST_KEYS", 200)
    page = (await viewer.get(f"{NODES}/{node}/samples", params={"limit": 200})).json()
    assert 0 < len(page["items"]) < 100
    assert await all_samples(viewer, node, limit=200) == whole


async def test_what_is_sealed_while_a_page_is_read_is_listed_once(service: Service, agent: httpx.AsyncClient) -> None:
    newest = datetime.now(UTC) - timedelta(hours=12)
    node = uuid.UUID(await stored(agent, 6, newest=newest, every=timedelta(minutes=1)))
    whole = await keys_by_pages(service, node, 50)
    async with service.database.read() as session:
        page = SampleList(session, node, start=None, end=None, limit=50)
        found = [(one.taken_at, one.report_id) for one in await page.read(None, 2)]
        assert await asyncio.create_task(seal_round(service.database, HOUR)) == (0, 6)
        found += [(one.taken_at, one.report_id) for one in await page.read(found[-1], 50)]
    assert found == whole
    assert len(whole) == 6


async def test_hours_are_filled_from_sealed_samples(service: Service, agent: httpx.AsyncClient) -> None:
    node = await stored(agent, 4, newest=datetime.now(UTC) - timedelta(hours=12), every=timedelta(hours=2))
    await seal_round(service.database, HOUR)
    query = text("SELECT anon_shmem_bytes_max FROM sample_hours WHERE node_id = :node ORDER BY start_at")
    query = query.bindparams(node=uuid.UUID(node))
    async with service.database.write() as session:
        before = (await session.scalars(query)).all()
        await session.execute(text("UPDATE sample_hours SET anon_shmem_bytes_max = NULL"))
    await reparse(service.database)
    async with service.database.read() as session:
        assert (await session.scalars(query)).all() == before


async def test_a_damaged_block_is_named_and_longer_spans_are_read(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    newest = datetime.now(UTC) - timedelta(hours=12)
    node = await stored(agent, 4, newest=newest, every=timedelta(minutes=10))
    await seal_round(service.database, HOUR)
    now = datetime.now(UTC)
    await stored(agent, 2, newest=now, every=timedelta(minutes=10))
    for column in ("numbers", "details"):
        async with service.database.write() as session:
            await session.execute(text(f"UPDATE sealed_samples SET {column} = overlay({column} placing 'xx' from 20)"))
        assert_problem(await viewer.get(f"{NODES}/{node}/samples"), 500, "document-damaged")
    near = {"from": (now - timedelta(hours=1)).isoformat()}
    assert len((await viewer.get(f"{NODES}/{node}/samples", params=near)).json()["items"]) == 2
    problem = assert_problem(await viewer.get(f"{NODES}/{node}/history"), 500, "document-damaged")
    assert node in problem["detail"]
    month = {"from": (now - timedelta(days=30)).isoformat()}
    points = (await viewer.get(f"{NODES}/{node}/history", params=month)).json()["points"]
    assert sum(point["samples"] for point in points) == 6


async def many_pools(service: Service, agent: httpx.AsyncClient, count: int) -> str:
    """A node with samples of as many pools as one may have, with numbers of their own."""
    node = await stored(agent, 1, newest=datetime.now(UTC), every=timedelta(0))
    chance = random.Random(3)
    async with service.database.write() as session:
        for number in range(count):
            pools = [
                {
                    "numa_node": at // 4,
                    "page_bytes": 2 << 20,
                    "nr_hugepages": chance.randrange(10**12),
                    "free_hugepages": 0,
                }
                for at in range(MOST_POOLS)
            ]
            session.add(
                SampleRow(
                    node_id=uuid.UUID(node), taken_at=datetime.now(UTC) - timedelta(hours=12, minutes=number),
                    report_id=uuid.uuid4(), mem_total_bytes=GIB, memory={"mem_total_bytes": GIB}, pools=pools,
                )
            )  # fmt: skip
    return node


async def test_large_samples_are_sealed_a_few_at_a_time(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    """A block that says more than is ever read could not be read back."""
    node = await many_pools(service, agent, 50)
    before = await all_samples(viewer, node, limit=7)
    assert await seal_round(service.database, HOUR) == (0, 50)
    async with service.database.read() as session:
        blocks = (await session.scalars(text("SELECT details FROM sealed_samples"))).all()
    sizes = [sum(map(len, unseal_all(block))) for block in blocks]
    assert len(sizes) > 1
    assert max(sizes) < 1.1 * BATCH_BYTES
    assert await all_samples(viewer, node, limit=7) == before


async def test_of_a_block_is_read_what_a_list_shows(service: Service, agent: httpx.AsyncClient) -> None:
    node = uuid.UUID(await many_pools(service, agent, 50))
    await seal_round(service.database, HOUR)
    async with service.database.read() as session:
        tracemalloc.start()
        try:
            found = await SampleList(session, node, start=None, end=None, limit=2).read(None, 2)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert len(found) == 2
    assert peak < 64 * 2**20, f"{peak / 2**20:.0f} MiB"


async def test_a_full_disk_leaves_both_forms_whole(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    newest = datetime.now(UTC) - timedelta(hours=12)
    node = await stored(agent, 6, newest=newest, every=timedelta(minutes=10))
    before = await readings(viewer, node, newest)
    async with service.database.write() as session:
        await session.execute(
            text(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
            )
        )
        # PostgreSQL raises this one when a write to disk fails; a disk that is really full would stop other tests.
        await session.execute(
            text("CREATE TRIGGER full_disk AFTER INSERT ON sealed_samples FOR EACH ROW EXECUTE FUNCTION full_disk()")
        )
    try:
        with pytest.raises(SQLAlchemyError, match="No space left"):
            await seal_round(service.database, HOUR)
        assert await readings(viewer, node, newest) == before
    finally:
        async with service.database.write() as session:
            await session.execute(text("DROP FUNCTION full_disk CASCADE"))
    assert (await seal_round(service.database, HOUR))[1] == 6
    assert await readings(viewer, node, newest) == before


async def test_a_node_that_is_deleted_meanwhile_leaves_no_block(
    service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    node = await stored(agent, 5, newest=datetime.now(UTC) - timedelta(hours=12), every=timedelta(minutes=1))
    async with service.database.write() as session:
        await session.execute(text("SELECT FROM nodes FOR UPDATE"))
        sealing = asyncio.create_task(seal_round(service.database, HOUR))
        waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not await session.scalar(waits):
            await asyncio.sleep(0.01)
        for table in ("samples", "nodes"):
            column = "id" if table == "nodes" else "node_id"
            await session.execute(text(f"DELETE FROM {table} WHERE {column} = :node"), {"node": node})
    assert await sealing == (0, 0)
    async with service.database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM sealed_samples")) == 0
    assert (await admin.get(f"{NODES}/{node}")).status_code == 404


async def test_killed_at_any_moment_each_sample_is_there_once(
    agent: httpx.AsyncClient, viewer: httpx.AsyncClient, settings: Settings
) -> None:
    environment = os.environ | {"HUGEPLAN_DATABASE_URL": settings.database_url.get_secret_value()}
    total = 0
    for number in range(4):
        newest = datetime.now(UTC) - timedelta(hours=8 + number)
        node = await stored(agent, 20, newest=newest, every=timedelta(seconds=1))
        total += 20
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, env=environment, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        await process.stdout.readline()
        await asyncio.sleep(0.006 * number)  # another moment of the round each time
        process.send_signal(signal.SIGKILL)
        await process.wait()
        assert len(await all_samples(viewer, node, limit=200)) == total


async def test_a_report_is_known_by_its_sealed_document(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    sent = [report() for _ in range(3)]
    sent[1]["sample"]["taken_at"] = (datetime.now(UTC) + timedelta(minutes=3)).isoformat()  # its clock is ahead
    for document in sent:
        answer = await agent.post("/api/v1/reports", json=document)
    node = str(answer.json()["node_id"])
    moved = text("UPDATE report_documents SET received_at = received_at - interval '9 hours'")
    async with service.database.write() as session:
        await session.execute(moved)
    assert (await seal_round(service.database, HOUR))[0] == 3
    async with service.database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM reports")) == 0
    for document in sent:
        again = await agent.post("/api/v1/reports", json=dict(reversed(document.items())))
        assert (again.status_code, again.json()["created"]) == (200, False)
        document["node_name"] = "another"
        assert_problem(await agent.post("/api/v1/reports", json=document), 409, "conflict")
        found = await viewer.get(f"{NODES}/{node}/report", params={"report_id": document["report_id"]})
        assert json.loads(found.content)["report_id"] == document["report_id"]
    assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    assert (await agent.post("/api/v1/reports", json=report(report_id=str(uuid.uuid4())))).status_code == 201
    assert len(await all_samples(viewer, node, limit=50)) == 5
