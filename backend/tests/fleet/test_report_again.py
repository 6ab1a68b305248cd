"""A batch that is written a second time stores what the first time would have stored."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import text
from support.reports import MACHINE_ID, report
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.fleet.ingest.batch import Batch
from hugeplan.fleet.ingest.in_force import MAX_REMEMBERED, SavedPlans
from hugeplan.fleet.ingest.incoming import read_report
from hugeplan.settings import Settings

PROCESSES = [{"pid": 7, "name": "postgres", "rss_bytes": 2**30}]


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_retry_stores_the_processes_too(
    service: Service, settings: Settings, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, is_known: bool
) -> None:
    """What PostgreSQL undid, by a deadlock or by its restart, is judged and written again."""
    if is_known:
        assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    await service.token(Role.AGENT, machine_id=MACHINE_ID)
    async with service.database.read() as session:
        token_id = (await session.execute(text("SELECT id FROM tokens WHERE role = 'agent' LIMIT 1"))).scalar_one()
    document = report(report_id=str(uuid.uuid4()), sample={"processes": PROCESSES})
    raw = json.dumps(document).encode()
    incoming = read_report(raw, document, token_id=token_id, now=datetime.now(UTC))
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        batch = Batch(connection, [incoming], SavedPlans(), prepared=None)
        for is_kept in (False, True):
            await connection.execute("SELECT 1")  # begins a transaction
            assert await batch.write()
            await (connection.commit() if is_kept else connection.rollback())
    node_id = batch.answers[0].node_id  # type: ignore[union-attr]
    found = (await viewer.get(f"/api/v1/nodes/{node_id}/processes")).json()
    assert [process["name"] for process in found["processes"]] == ["postgres"]


def test_what_came_cannot_be_changed() -> None:
    document = report()
    incoming = read_report(json.dumps(document).encode(), document, token_id=uuid.uuid4(), now=datetime.now(UTC))
    assert incoming.parsed is not None
    with pytest.raises(AttributeError):
        incoming.parsed.sample.processes = []
    with pytest.raises(AttributeError):
        incoming.parsed.machine_id = "another"


async def saved(service: Service, count: int) -> list[uuid.UUID]:
    """Plans of one form, which this version reads."""
    async with service.database.write() as session:
        scenario = "INSERT INTO scenarios (id, name, version, document, created_at, updated_at)"
        await session.execute(text(f"{scenario} VALUES (:id, 'a', 1, '{{}}', now(), now())"), {"id": uuid.uuid4()})
        rows = await session.execute(
            text(
                "INSERT INTO plans (id, scenario_id, scenario_version, created_at, headline, plan, artifacts,"
                " schema_version) SELECT gen_random_uuid(), s.id, 1, now(), 'a', '{}', '[]', 999"
                " FROM scenarios s, generate_series(1, :count) RETURNING id"
            ),
            {"count": count},
        )
        return [row[0] for row in rows]


async def test_more_plans_than_are_remembered_are_all_looked_at(service: Service, settings: Settings) -> None:
    plans = await saved(service, MAX_REMEMBERED + 20)
    known = SavedPlans()
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        everything: dict[uuid.UUID, Any] = dict(await known.read(connection, plans, again=set()))
        assert everything.keys() == set(plans)
        # One that is remembered and one that is not, while what is remembered is full.
        again = await known.read(connection, [plans[0], plans[-1]], again=set())
        assert again.keys() == {plans[0], plans[-1]}
    assert "cannot read" in everything[plans[0]].plan.why
