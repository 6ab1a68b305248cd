"""A node's newest state, read from its report's document, and reports kept as what changed since a reference."""

from __future__ import annotations

import copy
import json
import secrets
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import httpx
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, text
from support.reports import report
from support.service import Service, assert_problem

from hugeplan.db import maintenance
from hugeplan.db.engine import create_engine
from hugeplan.db.retention import FORGET_REFERENCES
from hugeplan.db.session import Database
from hugeplan.documents import against as against_module
from hugeplan.documents.against import against, reference_of, restored
from hugeplan.documents.kept import pack
from hugeplan.documents.sealed import DamagedBlockError
from hugeplan.fleet import read_back
from hugeplan.fleet.sealing import seal_round
from hugeplan.settings import Settings

NODES = "/api/v1/nodes"


ID, REFERENCE = uuid.UUID(int=5), uuid.UUID(int=7)
FORMS = (0, against_module.NUMBERS_FROM_BYTES)
"""Of small documents: changes of numbers, as of large ones, or frames."""


@pytest.fixture(params=FORMS, ids=["numbers", "frames"])
def either_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of both forms."""
    monkeypatch.setattr(against_module, "NUMBERS_FROM_BYTES", request.param)


def kept_as(form: int, document: bytes, reference: bytes) -> bytes:
    with mock.patch.object(against_module, "NUMBERS_FROM_BYTES", form):
        return against(document, ID, REFERENCE, reference)


@given(st.binary(min_size=1, max_size=3000), st.binary(max_size=3000), st.sampled_from(FORMS), st.booleans())
def test_any_bytes_come_back_with_any_reference(document: bytes, reference: bytes, form: int, says_ids: bool) -> None:
    reference = b"{" + reference  # it is JSON
    if says_ids:
        document, reference = document + str(ID).encode() * 2, reference + str(REFERENCE).encode()
    kept = kept_as(form, document, reference)
    assert reference_of(kept) == REFERENCE
    assert restored(kept, pack(reference), ID) == document


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=3), st.sampled_from(FORMS))
def test_a_damaged_difference_is_an_error_and_nothing_else(at: int, damage: bytes, form: int) -> None:
    document, reference = (b'{"a": %d, "b": "%s"}' % (number, b"b" * 60) * 40 for number in (1, 2))
    kept = bytearray(kept_as(form, document, reference))
    at = 17 + at % (len(kept) - 17)
    kept[at : at + len(damage)] = damage
    try:
        found = restored(bytes(kept), pack(reference), ID)
    except DamagedBlockError:
        return
    assert found == document


def test_a_difference_that_claims_to_be_large_takes_no_memory() -> None:
    with pytest.raises(DamagedBlockError, match="bytes in place of"):
        restored(kept_as(0, b"x" * 10**7, b""), b"", ID)


@pytest.mark.parametrize("form", FORMS)
def test_without_its_reference_a_document_is_damaged(form: int) -> None:
    with pytest.raises(DamagedBlockError, match=str(REFERENCE)):
        restored(kept_as(form, b"{}", b"{}"), None, ID)


def test_a_large_report_of_the_release_before_is_read() -> None:
    document = (b'{"a": 1, "b": "%s"}' % (b"b" * 60)) * 400
    kept = kept_as(1 << 30, document, document)
    assert kept[17:21] == b"\x28\xb5\x2f\xfd"
    assert restored(kept, pack(document), ID) == document
    assert not kept_as(FORMS[1], document, document).startswith(kept[:21])


SPARSE, NUMBERS, PARTS = b'"name": "worker"' * (1 << 11), b"a 1" * (1 << 13), b"{name" * (1 << 13)


@pytest.mark.parametrize(
    ("document", "reference"),
    [(SPARSE * 4, b"x"), (SPARSE, SPARSE * 4), (SPARSE[: 1 << 13], SPARSE), (SPARSE, NUMBERS), (NUMBERS, SPARSE),
     (SPARSE, PARTS), (PARTS, SPARSE)],
)  # fmt: skip
def test_of_what_is_small_or_has_too_many_numbers_or_parts_a_frame_is_kept(document: bytes, reference: bytes) -> None:
    """Numbers cost ten times as much time as their bytes in a frame, and parts more."""
    assert kept_as(FORMS[1], SPARSE, SPARSE)[17:18] == b"\x02"
    assert kept_as(FORMS[1], document, reference)[17:21] == b"\x28\xb5\x2f\xfd"


def minute(number: int) -> dict[str, Any]:
    """A report of a node with a pool, some processes and units, that many minutes later than the first."""
    processes = [
        {"pid": pid, "start_time_ticks": 5, "name": f"worker {pid}", "rss_bytes": 4096 * (pid + number)}
        for pid in range(1, 30 + number)
    ]
    pools = [{"page_bytes": 2 << 20, "numa_node": 0, "nr_hugepages": 8 + number, "free_hugepages": number}]
    document: dict[str, Any] = copy.deepcopy(report(sample={"processes": processes, "pools": pools}))
    document["report_id"] = str(uuid.uuid4())
    document["sample"]["taken_at"] = (datetime.now(UTC) - timedelta(minutes=10 - number)).isoformat()
    document["sample"]["global_pools"] = [
        {"page_bytes": 2 << 20, "nr_hugepages": 8 + number, "free_hugepages": number, "resv_hugepages": 0,
         "surplus_hugepages": 0, "overcommit_hugepages": 0}
    ]  # fmt: skip
    document["sample"]["memory"]["mem_available_bytes"] = 4096 * (1000 + number)
    document["collectors"] = [{"name": "memory", "status": "ok", "duration_seconds": 0.001 * (number + 1)}]
    return document


async def sent(agent: httpx.AsyncClient, document: dict[str, Any]) -> str:
    answer = await agent.post("/api/v1/reports", json=document)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["node_id"])


async def one(service: Service, query: str, **values: Any) -> Any:
    async with service.database.read() as session:
        return (await session.execute(text(query), values)).one()


async def change(service: Service, statement: str, **values: Any) -> None:
    async with service.database.write() as session:
        await session.execute(text(statement), values)


async def assert_shown(viewer: httpx.AsyncClient, node: str, document: dict[str, Any]) -> None:
    """Each reader of a node's newest state tells what this report says."""
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    sample = document["sample"]
    assert detail["sample"]["memory"]["mem_available_bytes"] == sample["memory"]["mem_available_bytes"]
    assert detail["collectors"][0]["duration_seconds"] == document["collectors"][0]["duration_seconds"]
    (pool,) = sample["pools"]
    assert detail["facts"]["numa"][0]["pools"][0]["nr_hugepages"] == pool["nr_hugepages"]
    listed = (await viewer.get(f"{NODES}/{node}/processes")).json()["processes"]
    assert {one["pid"]: one["rss_bytes"] for one in listed} == {
        one["pid"]: one["rss_bytes"] for one in sample["processes"]
    }
    (drift,) = (await viewer.get("/api/v1/fleet/drift", params={"matching": True})).json()["items"]
    assert [one["actual_pages"] for one in drift["pools"]] == [pool["nr_hugepages"]]
    assert (await viewer.get(f"{NODES}/{node}/report")).json() == document


@pytest.mark.usefixtures("either_form")
async def test_every_reader_sees_the_newest_state(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    node = await sent(agent, minute(0))
    body = {"pools": [{"page_bytes": 2 << 20, "pages": 8, "numa_node": None}]}
    assert (await planner.put(f"{NODES}/{node}/plan-in-force", json=body)).status_code == 200
    for number in (1, 2, 3):
        document = minute(number)
        await sent(agent, document)
        await assert_shown(viewer, node, document)
    # Else this test says nothing: it is the document that was read.
    assert await columns_say(service) == 4096 * 1000


async def columns_say(service: Service) -> int:
    """``mem_available_bytes`` in the columns of the only node's state."""
    state = await one(service, "SELECT sample -> 'memory' ->> 'mem_available_bytes' AS bytes FROM node_states")
    return int(state.bytes)


async def test_a_state_that_stays_is_not_written_with_each_report(service: Service, agent: httpx.AsyncClient) -> None:
    await sent(agent, minute(0))
    await sent(agent, minute(1))
    before = await one(service, "SELECT xmin::text, findings FROM node_states")
    document = minute(1)
    document["sample"]["memory"]["cached_bytes"] = 4096
    await sent(agent, document)
    assert await one(service, "SELECT xmin::text, findings FROM node_states") == before


async def test_a_report_that_leaves_optional_members_out_is_shown_as_one_that_says_null(
    agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    node = await sent(agent, minute(0))
    short = minute(1)
    for member in ("units", "databases", "hugetlb_cgroups", "watermarks", "pressure", "global_pools", "processes"):
        short["sample"].pop(member, None)
    short |= {"processes": [{"pid": "unknown members are nobody's"}], "collectors": [{"name": "m", "status": "ok"}]}
    await sent(agent, short)
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["global_pools"] == []
    assert detail["collectors"] == [{"name": "m", "status": "ok", "duration_seconds": None, "reason": None}]
    listed = (await viewer.get(f"{NODES}/{node}/processes")).json()
    assert (listed["processes"], listed["units"], listed["huge_page_limits"]) == ([], None, None)


async def test_a_large_report_is_read_from_columns(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    large = minute(1)
    large["sample"]["units"] = [
        {"key": f"u{n}", "kind": "service", "name": "n", "cgroup_path": secrets.token_hex(2000),
         "memory": {"source": "rss"}}
        for n in range(200)
    ]  # fmt: skip
    node = await sent(agent, minute(0))
    await sent(agent, large)
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 4096 * 1001
    assert await columns_say(service) == 4096 * 1001
    assert len((await viewer.get(f"{NODES}/{node}/processes")).json()["processes"]) == 30
    for number in (2, 3):
        await sent(agent, minute(number))
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 4096 * 1003
    assert await columns_say(service) == 4096 * 1001


async def test_a_replica_of_the_release_before_may_store_the_newest_report(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    """It writes the columns that it knows, among them ``processes_kept``, and leaves the others alone."""
    node = await sent(agent, minute(0))
    await sent(agent, minute(1))
    theirs = [{"pid": 7, "start_time_ticks": 5, "name": "theirs"}]
    await change(
        service,
        "UPDATE node_states SET sample = jsonb_set(sample, '{memory,mem_available_bytes}', '8192'), processes = '[]',"
        " processes_kept = :kept",
        kept=pack(json.dumps(theirs).encode()),
    )
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 8192
    listed = (await viewer.get(f"{NODES}/{node}/processes")).json()["processes"]
    assert [one["name"] for one in listed] == ["theirs"]
    await sent(agent, minute(2))
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 4096 * 1002


async def test_what_the_release_before_wrote_since_its_base_is_read(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    """It wrote ``newest_kept``, a frame with ``base_kept`` as its dictionary, and left ``processes_kept`` empty."""
    node = await sent(agent, minute(0))
    sample = minute(1)["sample"]
    processes = sample.pop("processes")
    state = {"inventory": report()["inventory"], "sample": sample | {"processes": []}, "collectors": []}
    base, newest = (json.dumps(state | {"processes": listed}).encode() for listed in ([], processes))
    dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    frame = zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=True).compress(newest)
    await change(
        service, "UPDATE node_states SET base_kept = :base, newest_kept = :frame", base=pack(base), frame=frame
    )
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 4096 * 1001
    listed = (await viewer.get(f"{NODES}/{node}/processes")).json()["processes"]
    assert {one["pid"] for one in listed} == {one["pid"] for one in processes}
    await change(service, "UPDATE node_states SET newest_kept = overlay(newest_kept placing 'xx' from 20)")
    assert_problem(await viewer.get(f"{NODES}/{node}"), 500, "document-damaged")
    await sent(agent, minute(2))
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 4096 * 1002


async def test_the_columns_say_what_the_newest_reference_says(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    node = await sent(agent, minute(0))
    document = minute(1)
    document["sample"]["processes"] = [
        {"pid": pid, "start_time_ticks": pid * 7919 % 100_003, "name": uuid.uuid4().hex, "rss_bytes": pid**5}
        for pid in range(1, 400)
    ]
    await sent(agent, document)
    assert await columns_say(service) == 4096 * 1001
    assert len((await viewer.get(f"{NODES}/{node}/processes")).json()["processes"]) == 399
    assert (await viewer.get(f"{NODES}/{node}/report")).json() == document


async def silent(service: Service, agent: httpx.AsyncClient, *, days: float) -> tuple[str, dict[str, Any]]:
    """A node that sent its last report that long ago, which refers to an earlier report; and that report."""
    ago = timedelta(days=days)
    for number in (0, 1):
        document = minute(number)
        document["sample"]["taken_at"] = (datetime.now(UTC) - ago - timedelta(minutes=2 - number)).isoformat()
        node = await sent(agent, document)
    for table in ("reports", "report_documents"):
        await change(service, f"UPDATE {table} SET received_at = received_at - :ago", ago=ago)
    await change(service, "UPDATE report_references SET made_at = made_at - :ago", ago=ago)
    return node, document


@pytest.mark.usefixtures("either_form")
async def test_a_silent_node_is_shown_by_its_newest_report_after_it_is_sealed(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    node, document = await silent(service, agent, days=1)
    assert (await seal_round(service.database, 3600))[0] == 2
    assert (await one(service, "SELECT count(*) FROM report_documents")).count == 0
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 4096 * 1001
    assert len((await viewer.get(f"{NODES}/{node}/processes")).json()["processes"]) == 30
    assert (await one(service, "SELECT count(*) FROM samples")).count == 0
    # A newer reference does not take the one away that the newest report is read with.
    await change(
        service,
        "INSERT INTO report_references SELECT node_id, gen_random_uuid(), now(), document FROM report_references",
    )
    await change(service, FORGET_REFERENCES + ")")
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 4096 * 1001
    # And once it reports again, nothing of it stays.
    await sent(agent, minute(2))
    assert (await one(service, "SELECT newest_document FROM node_states")).newest_document is None
    assert document["report_id"] not in str((await viewer.get(f"{NODES}/{node}/report")).json())


async def test_a_silent_node_is_shown_by_its_newest_report_after_that_is_no_longer_kept(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, settings: Settings
) -> None:
    node, _ = await silent(service, agent, days=40)
    now = datetime.now(UTC)
    all_of_it = settings.model_copy(update={"retention_max_share": 1.0})
    assert await maintenance.maintain(service.database, all_of_it, now) is None
    assert (await one(service, "SELECT count(*) FROM report_documents")).count == 0
    detail = (await viewer.get(f"{NODES}/{node}")).json()
    assert detail["sample"]["memory"]["mem_available_bytes"] == 4096 * 1001


@pytest.mark.usefixtures("either_form")
async def test_reports_are_read_byte_for_byte_before_and_after_they_are_sealed(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    raw, ahead = {}, (datetime.now(UTC) + timedelta(seconds=40)).isoformat()
    for number in range(6):
        document = minute(number)
        if number == 2:  # its clock is ahead
            document["sample"]["taken_at"] = ahead
        if number == 3:  # so different that the next ones refer to it
            document["labels"] = {f"label-{place}": uuid.uuid4().hex for place in range(60)}
        raw[document["report_id"]] = json.dumps(document, indent=1).encode()
        headers = {"Content-Type": "application/json"}
        answer = await agent.post("/api/v1/reports", content=raw[document["report_id"]], headers=headers)
        assert answer.status_code == 201, answer.text
    node = answer.json()["node_id"]

    async def assert_whole() -> None:
        for report_id, document in raw.items():
            read = await viewer.get(f"{NODES}/{node}/report", params={"report_id": report_id})
            assert read.content == document
            again = dict(reversed(json.loads(document).items()))
            assert (await agent.post("/api/v1/reports", json=again)).status_code == 200

    await assert_whole()
    kept = await one(
        service,
        "SELECT count(*), count(DISTINCT substring(document FROM 2 FOR 16)) AS used,"
        " (SELECT count(*) FROM report_references) AS made"
        " FROM report_documents WHERE substring(document FOR 1) = '\\x01'::bytea",
    )
    assert kept == (6, 2, 2)
    # The first three are of this morning; the rest refers to both references, or to the later one.
    early = list(raw)[:3]
    for table in ("reports", "report_documents"):
        await change(
            service,
            f"UPDATE {table} SET received_at = received_at - interval '9 hours' WHERE report_id = ANY(:ids)",
            ids=[uuid.UUID(one) for one in early],
        )
    assert (await seal_round(service.database, 3600))[0] == 3
    assert (await one(service, "SELECT count(*) FROM report_references")).count == 1
    # What a report says of its time, in its block's row too, is found where it comes again.
    said = [datetime.fromisoformat(json.loads(raw[report_id])["sample"]["taken_at"]) for report_id in early]
    row = await one(service, "SELECT taken_from, taken_to FROM sealed_documents")
    assert (row.taken_from, row.taken_to) == (min(said), max(said))
    await assert_whole()


async def test_a_reference_that_is_needed_is_never_forgotten(service: Service, agent: httpx.AsyncClient) -> None:
    await sent(agent, minute(0))
    await sent(agent, minute(1))
    document = minute(2)
    document["labels"] = {f"label-{place}": uuid.uuid4().hex for place in range(60)}
    await sent(agent, document)
    assert (await one(service, "SELECT count(*) FROM report_references")).count == 2
    await change(service, FORGET_REFERENCES + ")")
    assert (await one(service, "SELECT count(*) FROM report_references")).count == 2
    await change(service, "DELETE FROM report_documents WHERE report_id <> :id", id=uuid.UUID(document["report_id"]))
    await change(service, FORGET_REFERENCES + ")")
    assert (await one(service, "SELECT count(*) FROM report_references")).count == 1
    # The newest serves the reports to come, whether one refers to it or not.
    await change(service, "DELETE FROM report_documents")
    await change(service, FORGET_REFERENCES + ")")
    assert (await one(service, "SELECT count(*) FROM report_references")).count == 1


async def test_references_are_forgotten_while_no_node_is_locked(
    service: Service, settings: Settings, agent: httpx.AsyncClient
) -> None:
    """All documents of the node are looked at for that, and a batch of everybody's reports would wait."""
    await sent(agent, minute(0))
    await sent(agent, minute(1) | {"labels": {f"label-{place}": uuid.uuid4().hex for place in range(60)}})
    assert (await one(service, "SELECT count(*) FROM report_references")).count == 2
    done: list[str] = []
    own = Database(create_engine(settings))
    event.listen(own.engine.sync_engine, "before_cursor_execute", lambda *given: done.append(given[2]))
    event.listen(own.engine.sync_engine, "commit", lambda _: done.append("commit"))
    assert (await seal_round(own, 0, datetime.now(UTC) + timedelta(hours=9)))[0] == 2
    assert (await one(service, "SELECT count(*) FROM report_references")).count == 1
    await own.dispose()
    transactions = "".join(done).split("commit")
    assert sum("DELETE FROM report_references" in said for said in transactions) == 1
    assert not any("DELETE FROM report_references" in said and "FOR UPDATE" in said for said in transactions)


@pytest.mark.parametrize("parts_read", [0, 1])
async def test_a_report_that_retention_deletes_while_it_is_read_is_not_there(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, parts_read: int
) -> None:
    node, document = await silent(service, agent, days=1)
    assert (await seal_round(service.database, 3600))[0] == 2
    monkeypatch.setattr(read_back, "_PART_BYTES", 64)
    parts: list[str] = []
    async with service.database.write() as session:
        scalar = session.scalar

        async def beside_retention(statement: Any) -> Any:
            if "substr" in str(statement):
                parts.append(str(statement))
                if len(parts) > parts_read:
                    await session.execute(text("DELETE FROM sealed_documents"))
            return await scalar(statement)

        monkeypatch.setattr(session, "scalar", beside_retention)
        ids = uuid.UUID(node), uuid.UUID(document["report_id"])
        assert await read_back.get_document(session, *ids) is None


@pytest.mark.usefixtures("either_form")
async def test_a_damaged_reference_is_named_and_nothing_else_suffers(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    first, second = minute(0), minute(1)
    node = await sent(agent, first)
    await sent(agent, second)
    await change(service, "UPDATE report_references SET document = overlay(document placing 'xx' from 20)")
    params = {"report_id": second["report_id"]}
    problem = assert_problem(await viewer.get(f"{NODES}/{node}/report", params=params), 500, "document-damaged")
    assert second["report_id"] in problem["detail"]
    # What the node is shown by is the same document.
    assert_problem(await viewer.get(f"{NODES}/{node}"), 500, "document-damaged")
    assert_problem(await viewer.get(f"{NODES}/{node}/processes"), 500, "document-damaged")
    assert len((await viewer.get(NODES)).json()["items"]) == 1
    again = dict(reversed(second.items()))
    assert (await agent.post("/api/v1/reports", json=again)).status_code in {200, 409}
    # The next report is stored all the same, and makes a reference that can be read.
    third = minute(2)
    await sent(agent, third)
    assert (await viewer.get(f"{NODES}/{node}/report")).json() == third
    assert (await viewer.get(f"{NODES}/{node}")).status_code == 200
