"""POST /reports: stored once, kept unchanged, refused with the field's name."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, text
from support.reports import MACHINE_ID, report, run
from support.service import Service, assert_problem, fields_of

from hugeplan.access.schemas import Role
from hugeplan.db.models import NodeRow, ReportDocumentRow, ReportRow, RunRow, SampleRow
from hugeplan.documents.decoding import decode
from hugeplan.documents.kept import unpack
from hugeplan.documents.report import Report
from hugeplan.fleet import read_back

URL = "/api/v1/reports"


async def counts(service: Service) -> dict[str, int]:
    """Rows of every table that a report touches."""
    found = {}
    async with service.database.read() as session:
        for table in (NodeRow, ReportRow, ReportDocumentRow, SampleRow, RunRow):
            found[table.__tablename__] = (await session.execute(select(func.count()).select_from(table))).scalar_one()
    return found


ONE_REPORT = {"nodes": 1, "reports": 1, "report_documents": 1, "samples": 1, "runs": 0}
NOTHING = dict.fromkeys(ONE_REPORT, 0)


class TestStoring:
    async def test_new_report_is_201(self, service: Service, agent: httpx.AsyncClient) -> None:
        document = report()
        answer = await agent.post(URL, json=document)
        assert answer.status_code == 201
        body = answer.json()
        assert body["report_id"] == document["report_id"]
        assert body["created"] is True
        assert body["run_id"] is None
        assert await counts(service) == ONE_REPORT

    async def test_same_report_again_is_200_and_changes_nothing(
        self, service: Service, agent: httpx.AsyncClient
    ) -> None:
        document = report(run=run())
        first = (await agent.post(URL, json=document)).json()
        before = await counts(service)
        again = await agent.post(URL, json=document)
        assert again.status_code == 200
        assert again.json() == first | {"created": False}
        assert await counts(service) == before

    async def test_the_documented_example_is_stored_and_its_sections_are_read(self, agent: httpx.AsyncClient) -> None:
        """docs/report.example.json holds every section that an agent may send."""
        example = json.loads((Path(__file__).parents[3] / "docs" / "report.example.json").read_text())
        example["sample"]["taken_at"] = example["created_at"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        assert (await agent.post(URL, json=example)).status_code == 201
        read = decode(Report, json.dumps(example).encode())
        database = (read.sample.databases or [])[0]
        assert database.settings["shared_buffers"].value == "16GB"
        assert (database.hugetlb_limits or [])[0].counter == "usage"
        assert [unit.parent is None for unit in read.sample.units or []] == [True, False, True, True]
        assert read.sample.kubelet is not None
        assert read.inventory.kernel_command_line_filtered

    async def test_same_content_with_other_key_order_is_the_same_report(self, agent: httpx.AsyncClient) -> None:
        document = report()
        assert (await agent.post(URL, json=document)).status_code == 201
        reordered = json.dumps(dict(reversed(document.items())), indent=3)
        answer = await agent.post(URL, content=reordered, headers={"Content-Type": "application/json"})
        assert answer.status_code == 200

    async def test_other_content_with_the_same_id_is_409_and_keeps_the_first(
        self, service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        document = report()
        await agent.post(URL, json=document)
        problem = assert_problem(await agent.post(URL, json=document | {"node_name": "other"}), 409, "conflict")
        assert fields_of(problem) == ["report_id"]
        assert await counts(service) == ONE_REPORT
        assert (await viewer.get("/api/v1/nodes")).json()["items"][0]["name"] == "db-7"

    async def test_concurrent_duplicates_store_one(self, service: Service) -> None:
        document = report(run=run())
        token = await service.token(Role.AGENT)
        clients = [service.client(token) for _ in range(12)]
        answers = await asyncio.gather(*(client.post(URL, json=document) for client in clients))
        assert sorted(answer.status_code for answer in answers) == [200] * 11 + [201]
        assert len({answer.json()["run_id"] for answer in answers}) == 1
        assert await counts(service) == ONE_REPORT | {"runs": 1}

    async def test_concurrent_reports_of_one_machine_are_all_stored(self, service: Service) -> None:
        token = await service.token(Role.AGENT)
        clients = [service.client(token) for _ in range(10)]
        answers = await asyncio.gather(*(client.post(URL, json=report()) for client in clients))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["node_id"] for answer in answers}) == 1
        assert (await counts(service))["samples"] == 10

    async def test_a_known_machine_is_never_inserted_again(self, service: Service, agent: httpx.AsyncClient) -> None:
        """Every report used to try the insert of the whole node first, and to update it after the conflict."""
        assert (await agent.post(URL, json=report())).status_code == 201
        refuse = (
            "CREATE FUNCTION refuse_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'inserted'; END $$",
            "CREATE TRIGGER refuse_insert BEFORE INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION refuse_insert()",
        )
        try:
            async with service.database.write() as session:
                for statement in refuse:
                    await session.execute(text(statement))
            assert (await agent.post(URL, json=report())).status_code == 201
        finally:
            async with service.database.write() as session:
                await session.execute(text("DROP FUNCTION IF EXISTS refuse_insert CASCADE"))

    async def test_document_is_kept_byte_for_byte(self, service: Service, agent: httpx.AsyncClient) -> None:
        document = report() | {"zulu": 1, "alpha": [1.0, 1e3, "é"], "extension": {"kept": None}}
        spelled = json.dumps(document, indent=1, ensure_ascii=False).replace('"zulu"', '"zu\\u006cu"').encode()
        answer = await agent.post(URL, content=spelled, headers={"Content-Type": "application/json"})
        receipt = answer.json()
        async with service.database.read() as session:
            stored = await read_back.get_document(
                session, uuid.UUID(receipt["node_id"]), uuid.UUID(receipt["report_id"])
            )
        assert stored == spelled

    async def test_run_document_keeps_order_and_unknown_fields(
        self, service: Service, agent: httpx.AsyncClient
    ) -> None:
        sent = run()
        receipt = (await agent.post(URL, json=report(run=sent))).json()
        async with service.database.read() as session:
            stored = (await session.scalars(select(RunRow))).one()
        assert str(stored.id) == receipt["run_id"]
        assert json.dumps(json.loads(unpack(stored.document))) == json.dumps(sent)


class TestNodeState:
    async def test_late_report_does_not_overwrite_a_newer_sample(
        self, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        now = datetime.now(UTC)
        newer = report(node_name="new-name", sample={"taken_at": now.isoformat()})
        older = report(node_name="old-name", sample={"taken_at": (now - timedelta(hours=3)).isoformat()})
        assert (await agent.post(URL, json=newer)).status_code == 201
        assert (await agent.post(URL, json=older)).status_code == 201
        (node,) = (await viewer.get("/api/v1/nodes")).json()["items"]
        assert node["name"] == "new-name"
        samples = (await viewer.get(f"/api/v1/nodes/{node['id']}/samples")).json()["items"]
        assert len(samples) == 2

    async def test_older_run_does_not_become_the_latest(
        self, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        newer = (await agent.post(URL, json=report(run=run(started_at="2026-11-20T12:00:00Z")))).json()
        await agent.post(URL, json=report(run=run(started_at="2026-11-01T12:00:00Z")))
        (node,) = (await viewer.get("/api/v1/nodes")).json()["items"]
        assert node["latest_run_id"] == newer["run_id"]

    async def test_run_without_geometry_keeps_the_measured_granule(
        self, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        await agent.post(URL, json=report(run=run()))
        latency_only = run(started_at="2026-11-20T13:00:00Z", sections=[{"name": "latency", "status": "ok"}])
        del latency_only["geometry"]
        receipt = (await agent.post(URL, json=report(run=latency_only))).json()
        (node,) = (await viewer.get("/api/v1/nodes")).json()["items"]
        assert node["latest_run_id"] == receipt["run_id"]
        assert node["effective_granule_bytes"] == 4096


def _with(path: str, value: Any) -> dict[str, Any]:
    """A report with one value replaced, by its dotted path."""
    document = report(run=run())
    at: Any = document
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        at = at[part]
    if value is _ABSENT:
        del at[last]
    else:
        at[last] = value
    return document


_ABSENT = object()

WRONG = [
    ("schema_version", 0, "schema_version"),
    ("schema_version", 2**20, "schema_version"),
    ("schema_version", _ABSENT, "schema_version"),
    ("report_id", "not-a-uuid", "report_id"),
    ("machine_id", "", "machine_id"),
    ("machine_id", "a b c d", "machine_id"),
    ("machine_id", "x" * 300, "machine_id"),
    ("node_name", "", "node_name"),
    ("node_name", "x" * 300, "node_name"),
    ("node_name", "db\0seven", "node_name"),
    ("node_name", "\ud800", "node_name"),
    ("synthetic", "maybe", "synthetic"),
    ("created_at", "yesterday", "created_at"),
    ("created_at", "2026-11-20T12:00:00", "created_at"),
    ("created_at", 10**18, "created_at"),
    ("sample.taken_at", "1066-10-14T00:00:00Z", "sample.taken_at"),
    ("sample.memory.mem_total_bytes", 0, "sample.memory.mem_total_bytes"),
    ("sample.memory.mem_total_bytes", -1, "sample.memory.mem_total_bytes"),
    ("sample.memory.mem_total_bytes", 2**62, "sample.memory.mem_total_bytes"),
    ("sample.memory.mem_total_bytes", 10**30, "sample.memory.mem_total_bytes"),
    ("sample.memory.mem_total_bytes", None, "sample.memory.mem_total_bytes"),
    ("sample.memory.mem_total_bytes", "much", "sample.memory.mem_total_bytes"),
    ("sample.memory", [], "sample.memory"),
    ("sample.pools.0.nr_hugepages", -5, "sample.pools[0].nr_hugepages"),
    ("sample.pools.0.page_bytes", 0, "sample.pools[0].page_bytes"),
    ("sample.processes", [{}] * 8193, "sample.processes"),
    ("inventory", _ABSENT, "inventory"),
    ("inventory.numa_nodes", [{"id": 0, "mem_total_bytes": 1}] * 2, "inventory"),
    ("inventory.base_page_bytes", 0, "inventory.base_page_bytes"),
    ("run.latency.curves.0.points.0.x", -1, "run.latency.curves[0].points[0].x"),
    ("run.latency.curves.0.points.0.ns_p50", -1.0, "run.latency.curves[0].points[0].ns_p50"),
    ("run.latency.curves.0.points", [{"x": 1}] * 4097, "run.latency.curves[0].points"),
    ("run.started_at", None, "run.started_at"),
    ("run", "none", "run"),
    ("collectors", {}, "collectors"),
    ("sample.pools", [{"numa_node": 0, "page_bytes": 3 << 20, "nr_hugepages": 1}], "sample"),
    ("sample.pools", [{"numa_node": 0, "page_bytes": 1 << n, "nr_hugepages": 1} for n in range(12, 29)], "sample"),
    ("sample.pools", [{"numa_node": 0, "page_bytes": 1 << 44, "nr_hugepages": 1 << 50}], "sample"),
    ("sample.global_pools", [{"page_bytes": 2 << 20, "nr_hugepages": 1, "free_hugepages": 1 << 43}], "sample"),
    ("sample.pools", [{"numa_node": n, "page_bytes": 1 << 20, "nr_hugepages": 1 << 39} for n in range(3)], "sample"),
]


class TestRefusing:
    async def test_more_than_a_day_may_keep_waits_in_the_spool(
        self, service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        few = service.app.state.settings.model_copy(update={"report_bytes_per_day": 1})
        monkeypatch.setitem(service.app.state._state, "settings", few)
        answer = await agent.post("/api/v1/reports", json=report())
        assert_problem(answer, 429, "rate-limited")
        assert int(answer.headers["Retry-After"]) > 0

    async def test_a_long_one_that_packs_well_counts_as_it_is_long(
        self, service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Sealing 1.1 MB costs the same, however small they are kept."""
        few = service.app.state.settings.model_copy(update={"report_bytes_per_day": 40_000})
        monkeypatch.setitem(service.app.state._state, "settings", few)
        answer = await agent.post("/api/v1/reports", json=report() | {"pad": ["a" * 60_000] * 18})
        assert_problem(answer, 429, "rate-limited")
        assert (await agent.post("/api/v1/reports", json=report())).status_code == 201

    @pytest.mark.parametrize(("path", "value", "field"), WRONG, ids=lambda part: str(part)[:40])
    async def test_wrong_field_is_named_and_nothing_is_stored(
        self, service: Service, agent: httpx.AsyncClient, path: str, value: Any, field: str
    ) -> None:
        # json.dumps of the client refuses lone surrogates; the escaped form is what a broken agent sends.
        content = json.dumps(_with(path, value), ensure_ascii=True)
        answer = await agent.post(URL, content=content, headers={"Content-Type": "application/json"})
        problem = assert_problem(answer, 422, "invalid-input")
        assert field in fields_of(problem)
        assert field in problem["detail"]
        assert await counts(service) == NOTHING

    @pytest.mark.parametrize("spelled", ["NaN", "Infinity", "-Infinity", "1e400"])
    async def test_number_that_is_not_finite(self, agent: httpx.AsyncClient, spelled: str) -> None:
        content = json.dumps(_with("run.latency.curves.0.points.1.ns_p50", 123.25)).replace("123.25", spelled)
        answer = await agent.post(URL, content=content, headers={"Content-Type": "application/json"})
        problem = assert_problem(answer, 422, "invalid-input")
        assert fields_of(problem) == ["run.latency.curves[0].points[1].ns_p50"]

    async def test_number_that_is_not_finite_in_a_field_nobody_reads(self, agent: httpx.AsyncClient) -> None:
        content = json.dumps(report() | {"extension": 5.5}).replace("5.5", "NaN")
        answer = await agent.post(URL, content=content, headers={"Content-Type": "application/json"})
        assert fields_of(assert_problem(answer, 422, "invalid-input")) == ["extension"]

    async def test_agent_of_another_machine_is_403(self, service: Service, agent: httpx.AsyncClient) -> None:
        assert (await agent.post(URL, json=report())).status_code == 201
        problem = assert_problem(await agent.post(URL, json=report(machine_id="f" * 32)), 403, "forbidden")
        assert fields_of(problem) == ["machine_id"]
        assert await counts(service) == ONE_REPORT

    async def test_agent_enrolled_for_the_machine_may_report(self, service: Service) -> None:
        agent = await service.client_as(Role.AGENT, machine_id=MACHINE_ID)
        assert (await agent.post(URL, json=report())).status_code == 201

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.PLANNER, Role.ADMIN, Role.ENROLMENT])
    async def test_other_roles_may_not_report(self, service: Service, role: Role) -> None:
        client = await service.client_as(role)
        assert_problem(await client.post(URL, json=report()), 403, "forbidden")

    async def test_anonymous_may_not_report(self, service: Service) -> None:
        assert_problem(await service.client().post(URL, json=report()), 401, "unauthenticated")
        assert await counts(service) == NOTHING


@pytest.mark.parametrize(("ahead", "follows"), [(timedelta(hours=6), True), (timedelta(seconds=20), False)])
async def test_a_node_follows_its_reports_after_the_clock_was_stepped_back(
    service: Service, agent: httpx.AsyncClient, ahead: timedelta, follows: bool
) -> None:
    assert (await agent.post(URL, json=report(node_name="before"))).status_code == 201
    async with service.database.write() as session:
        await session.execute(text("UPDATE nodes SET sampled_at = :at"), {"at": datetime.now(UTC) + ahead})
    # A newest sample that is a little ahead is one that arrived at the same moment: the older one stays behind it.
    assert (await agent.post(URL, json=report(node_name="after"))).status_code == 201
    async with service.database.read() as session:
        name = (await session.execute(select(NodeRow.name))).scalar_one()
    assert name == ("after" if follows else "before")
