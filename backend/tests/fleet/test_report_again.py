"""A batch that is written a second time stores what the first time would have stored."""

from __future__ import annotations

import json
import tracemalloc
import uuid
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import text
from support.reports import MACHINE_ID, MIB, report
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.documents.plans import SCHEMA_VERSION, dump_plan
from hugeplan.fleet.ingest import in_force
from hugeplan.fleet.ingest.batch import Batch
from hugeplan.fleet.ingest.in_force import SavedPlans, Unreadable, verified
from hugeplan.fleet.ingest.incoming import read_report
from hugeplan.planner.model import Plan
from hugeplan.planner.plan import plan
from hugeplan.scenario_file.convert import to_request
from hugeplan.scenario_file.documents import ScenarioDocument
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


async def saved(service: Service, count: int, plan: str = "{}", version: int = 999) -> list[uuid.UUID]:
    """So many copies of a plan, of no node; this version reads none of the form 999."""
    async with service.database.write() as session:
        scenario = "INSERT INTO scenarios (id, name, version, document, created_at, updated_at)"
        await session.execute(text(f"{scenario} VALUES (:id, 'a', 1, '{{}}', now(), now())"), {"id": uuid.uuid4()})
        rows = await session.execute(
            text(
                "INSERT INTO plans (id, scenario_id, scenario_version, created_at, headline, plan, artifacts,"
                " schema_version) SELECT gen_random_uuid(), s.id, 1, now(), 'a', :plan, '[]', :version"
                " FROM scenarios s, generate_series(1, :count) RETURNING id"
            ),
            {"count": count, "plan": plan, "version": version},
        )
        return [row[0] for row in rows]


async def test_more_plans_than_are_remembered_are_all_looked_at(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_force, "REMEMBERED_BYTES", 20 * 1024)
    plans = await saved(service, 40)
    known = SavedPlans()
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        everything: dict[uuid.UUID, Any] = dict(await known.read(connection, plans, labelled=()))
        assert everything.keys() == set(plans)
        # One that is remembered and one that is not, while what is remembered is full.
        again = await known.read(connection, [plans[0], plans[-1]], labelled=())
        assert again.keys() == {plans[0], plans[-1]}
    assert "cannot read" in everything[plans[0]].plan.why


async def test_plans_are_remembered_by_size(service: Service, settings: Settings) -> None:
    """Of a plan of two megabytes its verification looks at a tenth, and answers the same by that."""
    databases = [{"name": f"d{n}", "engine": "postgresql", "settings": {"shared_buffers": "1GB"}} for n in range(20)]
    node = {"name": "n", "cpus": 64, "numa_nodes": [{"id": n, "memory": "8GiB"} for n in range(64)]}
    whole = plan(to_request(ScenarioDocument.model_validate({"node": node, "databases": databases})))
    kept = json.dumps(dump_plan(whole))
    plans = await saved(service, 20, kept, SCHEMA_VERSION)
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        found = await SavedPlans().read(connection, plans[:1], labelled=())
        known = SavedPlans()
        tracemalloc.start()
        await known.read(connection, plans, labelled=())
        grown = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert len(kept) * len(plans) > 30 * MIB
    assert grown < 16 * MIB, f"{grown / MIB:.0f} MiB"
    one = found[plans[0]].plan
    assert not isinstance(one, Unreadable)
    observed = {"inventory": report()["inventory"], "sample": report()["sample"]}
    assert verified(one, observed) == verified(whole, observed)


async def test_a_label_reads_no_plan_of_another_node_and_parses_none_again(
    service: Service, settings: Settings, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = uuid.UUID((await agent.post("/api/v1/reports", json=report())).json()["node_id"])
    own, other = await saved(service, 2)
    async with service.database.write() as session:
        await session.execute(text("UPDATE plans SET node_id = :node WHERE id = :id"), {"node": node_id, "id": own})
    parsed: list[int] = []

    def parse(_: object, version: int) -> Plan:
        parsed.append(version)
        raise ValueError("of another form")

    monkeypatch.setattr(in_force, "read_plan", parse)
    known = SavedPlans()
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        for _ in range(2):
            found = await known.read(connection, (), labelled={(own, node_id), (other, node_id)})
            assert found.keys() == {own}
            assert len(parsed) == 1
        # A plan in force is read, whoever else has a label with it.
        assert (await known.read(connection, [other], labelled={(other, node_id)})).keys() == {other}
        async with service.database.write() as session:
            await session.execute(text("UPDATE plans SET approved_at = now() WHERE id = :id"), {"id": own})
        await connection.rollback()
        assert (await known.read(connection, (), labelled={(own, node_id)}))[own].approved_at is not None
        async with service.database.write() as session:
            await session.execute(text("DELETE FROM plans WHERE id = :id"), {"id": own})
        await connection.rollback()
        assert not await known.read(connection, (), labelled={(own, node_id)})
    assert len(parsed) == 2
