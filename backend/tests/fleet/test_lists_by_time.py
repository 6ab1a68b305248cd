"""Lists of all runs and trials cost what their pages hold, however many rows one node has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import event, text
from support.reports import report, run
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.benchmarks import repository
from hugeplan.fleet import overview_repository

API = "/api/v1"
FLOOD = 20_000
#: Of a trial that measured nothing.
SUMMARY = {
    "id": "0" * 32,
    "started_at": "2026-10-01T12:00:00Z",
    "seconds": 1.0,
    "stopped": "time",
    "machine": {"name": "a"},
    "engine": "postgresql",
    "shape": {},
    "measure": "rate",
    "priority": "idle",
    "seed": 1,
    "sentence": "",
    "page_sizes": [{"page_size": "2M", "status": "skipped", "blocks": 0}],
}
_RUNS = (
    "INSERT INTO runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid(),"
    " 'ordered_at', r.ordered_at - i * interval '1 min'))).* FROM runs r, generate_series(1, :flood) i"
)
_TRIALS = (
    "INSERT INTO trials (node_id, id, started_at, ordered_at, stored_at, content_sha256, summary, document)"
    " SELECT id, gen_random_uuid(), now(), now() - i * interval '1 min', now(), '',"
    " CAST(:summary AS jsonb), '' FROM nodes, generate_series(1, :flood) i"
)


@pytest_asyncio.fixture
async def flooded(service: Service, agent: httpx.AsyncClient) -> Service:
    """A service with a node of 20,001 runs and 20,000 trials."""
    answer = await agent.post(f"{API}/reports", json=report(run=run()))
    assert answer.status_code == 201, answer.text
    async with service.database.write() as session:
        await session.execute(text(_RUNS), {"flood": FLOOD})
        await session.execute(text(_TRIALS), {"flood": FLOOD, "summary": json.dumps(SUMMARY)})
        for table in ("runs", "trials", "nodes"):
            await session.execute(text(f"ANALYZE {table}"))
    return service


@contextmanager
def listening(service: Service, table: str) -> Iterator[list[tuple[str, Any]]]:
    """The statements, with their parameters, that look for the rows of a page."""
    asked: list[tuple[str, Any]] = []

    def listen(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        if f"FROM {table}" in statement and "LIMIT" in statement:
            asked.append((statement, parameters))

    engine = service.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", listen)
    try:
        yield asked
    finally:
        event.remove(engine, "before_cursor_execute", listen)


@pytest.mark.parametrize("table", ["runs", "trials"])
async def test_pages_are_read_by_the_index(flooded: Service, viewer: httpx.AsyncClient, table: str) -> None:
    """The first and those behind it: none sorts the rows of the fleet."""
    with listening(flooded, table) as asked:
        page = (await viewer.get(f"{API}/{table}", params={"limit": 100})).json()
        assert len(page["items"]) == 100
        assert (await viewer.get(f"{API}/{table}", params={"cursor": page["next_cursor"]})).is_success
    assert len(asked) >= 2
    async with flooded.database.read() as session:
        connection = await session.connection()
        for statement, parameters in asked:
            plan = "\n".join(row[0] for row in await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
            assert f"using ix_{table}_ordered_at_id" in plan, plan
            assert "Sort" not in plan, plan


async def test_what_a_filter_finds_is_looked_for_once_for_a_page(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    """Each look may pass a flood of other nodes' runs. Odd runs are left out, and no other with them."""
    for number in range(7):
        answer = await agent.post(f"{API}/reports", json=report(run=run(), node_name="quiet"))
        assert answer.status_code == 201, (number, answer.text)
    async with service.database.write() as session:
        await session.execute(text(_RUNS), {"flood": 30})
        odd = "UPDATE runs SET sections = '[{}]' WHERE id IN (SELECT id FROM runs ORDER BY ordered_at DESC LIMIT 120)"
        await session.execute(text(odd))
    found: list[str] = []
    cursor = None
    with listening(service, "runs") as asked:
        while cursor is not None or not found:
            given = {"limit": "110", "q": "quiet"} | ({} if cursor is None else {"cursor": cursor})
            page = (await viewer.get(f"{API}/runs", params=given)).json()
            found += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
    async with service.database.read() as session:
        good = "SELECT CAST(id AS text) FROM runs WHERE sections <> '[{}]' ORDER BY ordered_at DESC, id DESC"
        assert found == list(await session.scalars(text(good)))
    assert 2 <= len(asked) <= 4


async def test_a_page_looks_through_a_bounded_number_of_runs_of_other_nodes(
    service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages go on where the look before ended, and a list, an export too, is whole at its end."""
    monkeypatch.setattr(repository, "LOOKED_AT", 5)
    for machine, name, times in (("1" * 32, "quiet", (0, 1, 2, 59)), ("2" * 32, "loud", range(10, 22))):
        agent = await service.client_as(Role.AGENT, machine_id=machine)
        for at in times:
            one = run(started_at=f"2026-11-20T12:{at:02}:00Z")
            sent = await agent.post(f"{API}/reports", json=report(machine_id=machine, run=one, node_name=name))
            assert sent.status_code == 201, sent.text
    pages, given = [], {"limit": "2", "q": "quiet"}
    while "cursor" not in given or given["cursor"]:
        page = (await viewer.get(f"{API}/runs", params=given)).json()
        pages.append([item["node_name"] for item in page["items"]])
        given["cursor"] = page["next_cursor"]
    assert pages == [["quiet"], [], ["quiet", "quiet"], ["quiet"]]  # 1 of 5, 0 of 5, 2 of 5 (and one more), 1
    assert (await viewer.get(f"{API}/runs.csv", params={"q": "quiet"})).text.count("\n") == 1 + 4
    node = next(node for node in (await viewer.get(f"{API}/nodes")).json()["items"] if node["name"] == "loud")
    assert len((await viewer.get(f"{API}/nodes/{node['id']}/runs")).json()["items"]) == 5  # a node has fewer in truth


async def test_runs_that_are_deleted_meanwhile_do_not_end_the_list(
    flooded: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = repository.list_keys
    gone: list[UUID] = []

    async def delete(one: UUID) -> None:
        async with flooded.database.write() as other:
            await other.execute(text("DELETE FROM runs WHERE id = :id"), {"id": one})

    async def then_delete(*given: Any, **named: Any) -> Any:
        found = await find(*given, **named)
        if not gone:
            gone.append(found[0][3][1])
            await asyncio.create_task(delete(gone[0]))
        return found

    monkeypatch.setattr(repository, "list_keys", then_delete)
    page = (await viewer.get(f"{API}/runs", params={"limit": 10})).json()
    assert len(page["items"]) == 10
    assert str(gone[0]) not in {item["id"] for item in page["items"]}
    assert page["next_cursor"] is not None


async def test_the_wins_of_a_flood_are_bounded(
    service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each node has the same share, so that none crowds the others out."""
    monkeypatch.setattr(overview_repository, "MOST_RUNS", 6)
    for machine, many in (("1" * 32, 9), ("2" * 32, 2)):
        agent = await service.client_as(Role.AGENT, machine_id=machine)
        for _ in range(many):
            sent = await agent.post(f"{API}/reports", json=report(machine_id=machine, run=run()))
            assert sent.status_code == 201, sent.text
    for latest_only, runs in ((True, 2), (False, 3 + 2)):
        wins = (await viewer.get(f"{API}/fleet/page-size-wins", params={"latest_only": latest_only})).json()
        assert (wins["nodes"], wins["runs"], wins["cases"]) == (2, runs, 3 * runs)
