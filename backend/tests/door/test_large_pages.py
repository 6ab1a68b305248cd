"""A page of a list is bounded in bytes, whatever its rows hold: nobody makes the service answer with a table."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from sqlalchemy import inspect
from support.reports import report
from support.service import Service
from trials.test_trials import known_node, trial

from hugeplan.access.schemas import Role
from hugeplan.api.pagination import PAGE_BYTES, READ_BYTES
from hugeplan.db.base import Base
from hugeplan.db.models import (
    FleetPlanGroupRow,
    FleetPlanRow,
    NodeRow,
    PlanRow,
    RunRow,
    SampleRow,
    ScenarioRow,
    ScenarioVersionRow,
    TrialRow,
)
from hugeplan.db.session import ReadSession
from hugeplan.documents.trial import TrialDocument
from hugeplan.fleet.sealing import seal_round
from hugeplan.main import ROUTERS
from hugeplan.scenarios import repository
from hugeplan.trials.work import _summary

API = "/api/v1"
ROWS = 24
LIMIT = {"limit": 500}
KB = 1000
TEXT = "x" * 150 * KB
NOW = datetime.now(UTC)
ID = uuid.uuid4()
LARGE: dict[str, tuple[str, Callable[[str], Iterable[Base]]]] = {}
SMALL = {
    "enrolment_requests_list": "a name and a few words of each",
    "tokens_list": "names of at most 200 characters",
    "sessions_list": "an address and a browser's name",
    "audit_list": "names and ids; who asks for the change says no text of its own",
    "scenarios_list": "without documents",
    "events_list": "a sentence and a link",
    "events_export": "the same",
    "webhooks_list": "an address each, and an administrator makes them",
    "fleet_groups_list": "the pools of a group, of at most 16 sizes",
    "fleet_groups_export": "the same",
    "fleet_plan_nodes_list": "a line per node",
    "fleet_plan_nodes_export": "the same",
}
"""Lists whose rows have no text or document of any size, and why that is so."""


def large(name: str, path: str) -> Callable[[Callable[[str], Iterable[Base]]], None]:
    def keep(rows: Callable[[str], Iterable[Base]]) -> None:
        LARGE[name] = path, rows

    return keep


def moments() -> Iterable[tuple[int, datetime]]:
    """Times of today in order, the newest first."""
    return ((at, NOW - timedelta(seconds=at)) for at in range(ROWS))


@large("nodes_list", "/nodes")
def nodes(_: str) -> Iterable[Base]:
    for at in range(ROWS - 1):
        yield NodeRow(
            id=uuid.uuid4(), machine_id=f"m{at:03d}", name=f"n{at:03d}", synthetic=False, architecture="x86_64",
            mem_total_bytes=1 << 30, numa_node_count=1, agent_version="1", first_report_at=NOW, last_report_at=NOW,
            sampled_at=NOW, labels={f"k{key}": "\U0001f600" * 256 for key in range(64)},
        )  # fmt: skip


@large("scenario_versions_list", f"/scenarios/{ID}/versions")
def versions(_: str) -> Iterable[Base]:
    yield ScenarioRow(id=ID, name="s", version=ROWS, document={}, created_at=NOW, updated_at=NOW)
    for at, moment in moments():
        yield ScenarioVersionRow(
            scenario_id=ID, version=ROWS - at, name=f"v{at}", document={"t": TEXT}, saved_at=moment, saved_by="p"
        )


@large("node_trials_list", "/nodes/{node}/trials")
def trials(node: str) -> Iterable[Base]:
    for _, moment in moments():
        summary = _summary(TrialDocument.model_validate(trial(started_at=moment.isoformat())))
        yield TrialRow(
            node_id=uuid.UUID(node), id=uuid.uuid4(), started_at=moment, ordered_at=moment, stored_at=NOW,
            content_sha256=b"0", summary=summary | {"sentence": "\u20ac" * 4000, "metric": "\u20ac" * 300},
            document=b"",
        )  # fmt: skip


@large("node_runs_list", "/nodes/{node}/runs")
def runs(node: str) -> Iterable[Base]:
    for _, moment in moments():
        yield RunRow(
            node_id=uuid.UUID(node), id=uuid.uuid4(), started_at=moment, stored_at=NOW, ordered_at=moment, command="c",
            tool_version="1", geometry_rank=0, latency_rank=0, pressure_rank=0, bad=False,
            sections=[{"name": "s", "status": "failed", "reason": "x" * 4000}] * 64, document=b"",
        )  # fmt: skip


@large("node_samples_list", "/nodes/{node}/samples")
def samples(node: str) -> Iterable[Base]:
    pool = {"numa_node": 0, "page_bytes": 2 << 20, "nr_hugepages": 0, "free_hugepages": 0}
    for _, moment in moments():
        yield SampleRow(
            node_id=uuid.UUID(node), taken_at=moment, report_id=uuid.uuid4(), mem_total_bytes=1 << 30,
            memory={"mem_total_bytes": 1 << 30}, pools=[pool] * 2000,
        )  # fmt: skip


def job(at: int, moment: datetime) -> FleetPlanRow:
    labels = [f"{at}{number}={'x' * 240}" for number in range(16)]
    return FleetPlanRow(
        id=uuid.uuid4(), name="n" * 200, created_at=moment, created_by="p", status="done", cancel_requested=False,
        selector={"labels": labels}, scenario={"t": TEXT}, model_version="1", nodes_total=1, nodes_done=1,
        plans_computed=1, heartbeat_at=moment,
    )  # fmt: skip


@large("fleet_plans_list", "/fleet/plans")
def jobs(_: str) -> Iterable[Base]:
    return [job(at, moment) for at, moment in moments()]


@large("fleet_plan_groups_list", f"/fleet/plans/{ID}/groups")
def groups(_: str) -> Iterable[Base]:
    of = job(0, NOW)
    of.id = ID
    yield of
    for at in range(ROWS):
        yield FleetPlanGroupRow(
            fleet_plan_id=ID, number=at, nodes=ROWS - at, headline="h", pools=[{"numa_node": 0, "pages": 1}] * 4000,
            plan={"t": TEXT},
        )  # fmt: skip


@large("plans_list", "/plans")
def plans(_: str) -> Iterable[Base]:
    for _at, moment in moments():
        yield PlanRow(
            id=uuid.uuid4(), created_at=moment, headline="h", plan={"t": TEXT}, artifacts=[], state="draft", version=1,
            verdict={"t": TEXT}, stale=[{"what": "x" * 300, "was": "y" * 50, "now": "z" * 50}] * 256,
        )  # fmt: skip


@pytest.mark.parametrize("name", sorted(LARGE))
async def test_a_page_has_few_bytes_and_all_pages_have_every_row(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, name: str
) -> None:
    node = await known_node(agent)
    path, rows = LARGE[name]
    async with service.database.write() as session:
        for row in rows(node):
            session.add(row)
            await session.flush()  # in this order: one names the other
    page, found, pages = {"next_cursor": ""}, [], 0
    while page["next_cursor"] is not None:
        more = {"cursor": page["next_cursor"]} if pages else {}
        answer = await viewer.get(API + path.format(node=node), params=LIMIT | more)
        assert answer.status_code == 200, answer.text[:300]
        page, pages = answer.json(), pages + 1
        assert len(page["items"]) == 1 or len(answer.content) <= PAGE_BYTES + 64 * KB
        found += page["items"]
        assert pages <= ROWS
    every = [str(item) for item in found]
    assert ROWS <= len(every) <= ROWS + 1, "each row once, and what the node's own report made"
    assert len(set(every)) == len(every)
    if sum(len(item.encode()) for item in every) > 1.3 * PAGE_BYTES:
        assert pages > 1
    one = await viewer.get(API + path.format(node=node), params={"limit": 1})
    assert [str(item) for item in one.json()["items"]] == every[:1]


@pytest.mark.parametrize("kind", ["samples", "sealed samples", "drift"])
async def test_a_page_reads_few_documents_and_all_pages_have_every_row(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, kind: str
) -> None:
    """Reports that differ in nothing take a few octets each, and lists say little of them."""
    for at in range(2 * ROWS):
        document = report(unknown=TEXT)
        if kind == "drift":  # a node each
            document |= {"machine_id": f"{at:032x}", "node_name": f"n{at}"}
            agent = await service.client_as(Role.AGENT)
        document["sample"]["taken_at"] = (NOW - timedelta(seconds=at)).isoformat()
        answer = await agent.post(f"{API}/reports", json=document)
        assert answer.status_code == 201, answer.text
        node = answer.json()["node_id"]
        if kind == "drift":
            body = {"pools": [{"page_bytes": 2 << 20, "pages": 8, "numa_node": None}]}
            assert (await planner.put(f"{API}/nodes/{node}/plan-in-force", json=body)).status_code == 200
    if kind == "sealed samples":
        assert (await seal_round(service.database, 3600, NOW + timedelta(hours=9)))[0] == 2 * ROWS
    path, query = f"{API}/nodes/{node}/samples", LIMIT
    if kind == "drift":
        path, query = f"{API}/fleet/drift", LIMIT | {"matching": True}
    page, found = (await planner.get(path, params=query)).json(), []
    while True:
        found += page["items"]
        assert len(page["items"]) * len(TEXT) <= READ_BYTES
        if page["next_cursor"] is None:
            break
        page = (await planner.get(path, params=query | {"cursor": page["next_cursor"]})).json()
    assert len({str(item) for item in found}) == len(found) == 2 * ROWS


def test_every_list_is_known_to_be_small_or_tried_with_large_rows() -> None:
    """The lists of all nodes are those of one node with another condition."""
    alike = {
        "trials_list", "runs_list", "runs_export", "scenario_plans_list", "fleet_drift_list", "fleet_drift_export",
        "nodes_export", "audit_csv",
    }  # fmt: skip
    lists = {
        route.name
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and "limit" in {each.name for each in route.dependant.query_params}
    }
    assert lists == {*LARGE, *SMALL, *alike}


async def test_scenarios_are_replaced_by_name_without_reading_what_they_were(service: Service) -> None:
    async with service.database.write() as session:
        session.add(ScenarioRow(id=ID, name="s", version=1, document={"t": TEXT}, created_at=NOW, updated_at=NOW))
    async with service.database.write() as session:
        found = await repository.scenarios_named(session, ["s"])
        assert "document" in inspect(found["s"]).unloaded
        found["s"].document = {"t": 1}
    async with service.database.read() as session:
        row = await read_scenario(session)
        assert row.document == {"t": 1}


async def read_scenario(session: ReadSession) -> Any:
    found = await repository.get_scenario(session, ID)
    assert found is not None
    return found[0]
