"""Lists of all runs and trials cost what their pages hold, however many rows one node has."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import event, text
from support.reports import report, run
from support.service import Service

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


@pytest.mark.parametrize("table", ["runs", "trials"])
async def test_pages_are_read_by_the_index(flooded: Service, viewer: httpx.AsyncClient, table: str) -> None:
    """The first and those behind it: none sorts the rows of the fleet."""
    asked: list[tuple[str, Any]] = []

    def listen(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        if f"FROM {table} JOIN nodes" in statement:
            asked.append((statement, parameters))

    engine = flooded.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", listen)
    try:
        page = (await viewer.get(f"{API}/{table}", params={"limit": 100})).json()
        assert len(page["items"]) == 100
        assert (await viewer.get(f"{API}/{table}", params={"cursor": page["next_cursor"]})).is_success
    finally:
        event.remove(engine, "before_cursor_execute", listen)
    assert len(asked) >= 3
    async with flooded.database.read() as session:
        connection = await session.connection()
        for statement, parameters in asked:
            plan = "\n".join(row[0] for row in await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
            assert f"using ix_{table}_ordered_at_id" in plan, plan
            assert "Sort" not in plan, plan
