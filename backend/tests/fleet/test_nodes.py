"""Nodes: lists with a total order, details, history and the facts the planner takes."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import event, text
from support.reports import GIB, MIB, curve, report, run
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.api.pagination import Page
from hugeplan.benchmarks.schemas import RunComparison, RunDetail
from hugeplan.benchmarks.service import COMPARED_BYTES, beside_backing, loses_from_lines
from hugeplan.documents.decoding import convert
from hugeplan.documents.tlbbench import Scatter
from hugeplan.fleet.reparse import reparse
from hugeplan.fleet.schemas import NodeSummary

NODES = "/api/v1/nodes"


async def post(service: Service, document: dict[str, Any]) -> dict[str, Any]:
    """Store a report with a token of its own; the receipt."""
    client = await service.client_as(Role.AGENT, machine_id=document["machine_id"])
    answer = await client.post("/api/v1/reports", json=document)
    assert answer.status_code == 201, answer.text
    receipt: dict[str, Any] = answer.json()
    return receipt


def machine(number: int) -> str:
    """A machine id."""
    return f"{number:032x}"


async def names(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """All names, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = (await client.get(NODES, params=query | ({"cursor": cursor} if cursor else {}))).json()
        assert len(page["items"]) <= query.get("limit", 50)
        found += [node["name"] for node in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


class TestList:
    async def test_empty_fleet(self, viewer: httpx.AsyncClient) -> None:
        assert (await viewer.get(NODES)).json() == {"items": [], "next_cursor": None}

    async def test_summary(self, service: Service, viewer: httpx.AsyncClient) -> None:
        receipt = await post(service, report(run=run()))
        (node,) = (await viewer.get(NODES)).json()["items"]
        assert node.pop("last_report_at")
        assert node == {
            "id": receipt["node_id"],
            "name": "db-7",
            "machine_id": "0123456789abcdef0123456789abcdef",
            "architecture": "x86_64",
            "cpu_brand": "AMD EPYC",
            "virtualised": True,
            "mem_total_bytes": 64 * GIB,
            "numa_node_count": 1,
            "pools": [
                {"page_bytes": 2 * MIB, "nr_hugepages": 1024, "free_hugepages": 512},
                {"page_bytes": GIB, "nr_hugepages": 0, "free_hugepages": 0},
            ],
            "latest_run_id": receipt["run_id"],
            "effective_granule_bytes": 4096,
            "synthetic": False,
            "labels": {},
            "machine_type": "AMD EPYC, KVM",
            "group_key": node["group_key"],
            "mem_available_bytes": 50 * GIB,
            "pool_bytes": 2 * GIB,
            "pool_idle_bytes": GIB,
            "findings_wrong": 0,
            "findings_attention": 2,
            "plan_state": None,
            "stale": False,
        }

    async def test_an_answer_has_the_form_of_its_model(self, service: Service, viewer: httpx.AsyncClient) -> None:
        """Lines go out as the database gives them; this holds them against the model, byte by byte."""
        for number in range(3):
            inventory = {"labels": {"zone": f"ü{number}"}} if number else {}
            await post(service, report(machine_id=machine(number), inventory=inventory, run=run() if number else None))
        for query in ({}, {"limit": 2, "sort": "last_report_at", "descending": True}):
            answer = await viewer.get(NODES, params=query)
            assert Page[NodeSummary].model_validate_json(answer.content, strict=True).model_dump_json() == answer.text

    async def test_pages_neither_repeat_nor_lose_nodes_of_equal_names(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        for number in range(7):
            await post(
                service, report(machine_id=machine(number), node_name=f"{'twin' if number % 2 else 'n'}{number}")
            )
        async with service.database.write() as session:  # as none has them any more, the list does not know that
            await session.execute(text("UPDATE nodes SET name = 'twin' WHERE name LIKE 'twin%'"))
        assert await names(viewer, limit=2) == ["n0", "n2", "n4", "n6", "twin", "twin", "twin"]

    async def test_search_is_literal_and_ignores_case(self, service: Service, viewer: httpx.AsyncClient) -> None:
        for number, name in enumerate(["DB-1", "db_2", "web%1"]):
            await post(service, report(machine_id=machine(number), node_name=name))
        assert await names(viewer, q="db") == ["DB-1", "db_2"]
        assert await names(viewer, q="_") == ["db_2"]
        assert await names(viewer, q="%") == ["web%1"]
        assert await names(viewer, q="\\") == []
        assert await names(viewer, q="' OR 1=1 --") == []

    async def test_unknown_free_count_stays_unknown_in_the_sum(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        pools = [
            {"numa_node": 0, "page_bytes": 2 * MIB, "nr_hugepages": 3, "free_hugepages": 1},
            {"numa_node": 1, "page_bytes": 2 * MIB, "nr_hugepages": 4, "free_hugepages": None},
        ]
        await post(service, report(sample={"pools": pools, "global_pools": []}))
        (node,) = (await viewer.get(NODES)).json()["items"]
        assert node["pools"] == [{"page_bytes": 2 * MIB, "nr_hugepages": 7, "free_hugepages": None}]


class TestDetail:
    async def test_unknown_node_is_404(self, viewer: httpx.AsyncClient) -> None:
        for suffix in ("", "/samples", "/runs", "/processes"):
            assert_problem(await viewer.get(f"{NODES}/{uuid.uuid4()}{suffix}"), 404, "not-found")

    async def test_facts_take_curves_and_pressure_of_a_separate_latency_run(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        geometry_only = run(sections=[{"name": "geometry", "status": "ok"}])
        del geometry_only["latency"]
        latency_only = run(started_at="2026-11-20T13:00:00Z", sections=[{"name": "latency", "status": "ok"}])
        del latency_only["geometry"]
        await post(service, report(run=geometry_only))
        receipt = await post(service, report(run=latency_only))
        hardware = (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()["facts"]["hardware"]
        assert [c["backing"] for c in hardware["curves"]] == ["4K", "2M"]
        assert [point["saving_ns"] for point in hardware["pressure"]] == [107.0]
        assert [g["granule_bytes"] for g in hardware["granules"]] == [2 * MIB, 4096]

    async def test_no_read_of_a_node_parses_a_run(self, service: Service, planner: httpx.AsyncClient) -> None:
        """Its run's document was validated three times by each read of the node, and twice by each preview."""
        receipt = await post(service, report(run=run()))
        path = f"{NODES}/{receipt['node_id']}"
        before = (await planner.get(path)).json()
        async with service.database.write() as session:
            await session.execute(text("UPDATE runs SET document = 'no document'"))
        assert (await planner.get(path)).json() == before
        preview = {"node_id": receipt["node_id"], "scenario": {"databases": []}}
        answer = await planner.post("/api/v1/plans/preview", json=preview)
        assert answer.status_code == 200, answer.text
        assert (await reparse(service.database)).unreadable == 1

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            (None, None),
            ("quiet splash", []),
            ("hugepages=128", [(2 * MIB, 128)]),
            ("ro hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512", [(2 * MIB, 512), (GIB, 4)]),
            ("hugepages=2 default_hugepagesz=1G", [(GIB, 2)]),
            ("hugepagesz=2M hugepages=0:100", [(2 * MIB, 100)]),
            ("hugepages=lots", []),
        ],
    )
    async def test_what_the_command_line_reserves_at_boot(
        self, service: Service, viewer: httpx.AsyncClient, line: str | None, expected: list[tuple[int, int]] | None
    ) -> None:
        receipt = await post(service, report(inventory={"kernel_command_line": line}))
        found = (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()["boot_pools"]
        assert (None if found is None else [(pool["page_bytes"], pool["pages"]) for pool in found]) == expected

    async def test_facts_without_a_run(self, service: Service, viewer: httpx.AsyncClient) -> None:
        receipt = await post(service, report())
        node = (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()
        assert node["geometry"] is None
        facts = node["facts"]
        assert node["facts_unknown_because"] is None
        assert facts["name"] == "db-7"
        assert facts["numa"] == [
            {
                "id": 0,
                "cpulist": None,
                "mem_total_bytes": 64 * GIB,
                "mem_free_bytes": 40 * GIB,
                "pools": [
                    {
                        "page_bytes": 2 * MIB,
                        "nr_hugepages": 1024,
                        "free_hugepages": 512,
                        "resv_hugepages": 0,
                        "surplus_hugepages": 0,
                    },
                    {
                        "page_bytes": GIB,
                        "nr_hugepages": 0,
                        "free_hugepages": 0,
                        "resv_hugepages": 0,
                        "surplus_hugepages": 0,
                    },
                ],
            }
        ]
        assert facts["kernel_used_bytes"] == 512 * MIB + 64 * MIB
        assert facts["hardware"]["catalogue_id"] == "amd-zen5-turin"
        assert {level["source"] for level in facts["hardware"]["levels"]} == {"catalogue"}
        assert facts["hardware"]["curves"] == []

    async def test_facts_with_a_run_hold_what_was_measured(self, service: Service, viewer: httpx.AsyncClient) -> None:
        receipt = await post(service, report(run=run()))
        node = (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()
        assert node["geometry"]["run_id"] == receipt["run_id"]
        assert node["geometry"]["effective_granule"][1]["status"] == "fractured"
        hardware = node["facts"]["hardware"]
        assert hardware["l2_hit_penalty_ns"] == 2.33
        measured = [level for level in hardware["levels"] if level["source"] == "measured"]
        assert [level["entries"] for level in measured] == [96]
        assert {c["backing"] for c in hardware["curves"]} == {"4K", "2M"}

    async def test_stopped_geometry_does_not_replace_a_complete_one(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        complete = await post(service, report(run=run()))
        stopped = run(
            started_at="2026-11-20T18:00:00Z",
            sections=[{"name": "geometry", "status": "stopped"}, {"name": "latency", "status": "ok"}],
            geometry={"status": "stopped", "reason": "the time limit was reached"},
            latency={"status": "ok", "curves": [curve("THP", 2 * MIB)]},
        )
        await post(service, report(run=stopped))
        node = (await viewer.get(f"{NODES}/{complete['node_id']}")).json()
        assert node["geometry"]["run_id"] == complete["run_id"]
        assert node["effective_granule_bytes"] == 4096
        hardware = node["facts"]["hardware"]
        assert [level["entries"] for level in hardware["levels"] if level["source"] == "measured"] == [96]
        assert [c["backing"] for c in hardware["curves"]] == ["THP"]

    async def test_curves_of_unknown_page_size_are_kept_and_not_planned_with(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        curves = [curve("4K", 4096), curve("2M", 2 * MIB) | {"page_bytes": None}, curve("1G", GIB) | {"layout": None}]
        receipt = await post(service, report(run=run(latency={"status": "ok", "curves": curves})))
        facts = (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()["facts"]
        assert [c["backing"] for c in facts["hardware"]["curves"]] == ["4K"]
        stored = (await viewer.get(f"/api/v1/runs/{receipt['run_id']}")).json()["curves"]
        assert [c["page_bytes"] for c in stored if c["section"] == "latency"] == [4096, None, GIB]
        database = {"name": "m", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "1GB"}}
        body = {"node_id": receipt["node_id"], "scenario": {"databases": [database]}}
        assert (await viewer.post("/api/v1/plans/preview", json=body)).status_code == 200

    async def test_missing_default_page_size_leaves_the_facts_unknown(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        receipt = await post(service, report(inventory={"default_huge_page_bytes": None}))
        node = (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()
        assert node["facts"] is None
        assert "default huge page size" in node["facts_unknown_because"]
        body = {"node_id": receipt["node_id"], "scenario": {}}
        assert_problem(await viewer.post("/api/v1/plans/preview", json=body), 422, "invalid-input")

    async def test_numa_nodes_without_reported_pools_have_unknown_pools(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        numa = [{"id": number, "mem_total_bytes": 32 * GIB, "cpus": None} for number in range(2)]
        pools = [{"numa_node": 0, "page_bytes": 2 * MIB, "nr_hugepages": 8, "free_hugepages": 8}]
        receipt = await post(service, report(inventory={"numa_nodes": numa}, sample={"pools": pools}))
        facts = (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()["facts"]
        assert facts["numa"][0]["pools"][0]["nr_hugepages"] == 8
        assert facts["numa"][1]["pools"] is None

    async def test_processes_are_sorted_by_size(self, service: Service, viewer: httpx.AsyncClient) -> None:
        receipt = await post(service, report())
        answer = (await viewer.get(f"{NODES}/{receipt['node_id']}/processes")).json()
        assert [process["name"] for process in answer["processes"]] == ["postgres", "small"]
        assert answer["processes"][0]["pss_bytes"] is None

    async def test_processes_are_those_of_the_newest_report_whichever_version_stored_it(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        """While a new version is rolled out, a server of the version before writes a column of its own."""
        many = [{"pid": pid, "start_time_ticks": 5, "name": f"worker {pid}"} for pid in range(1, 200)]
        node = (await post(service, report(sample={"processes": many})))["node_id"]

        async def pids() -> set[int]:
            answer = (await viewer.get(f"{NODES}/{node}/processes")).json()
            return {process["pid"] for process in answer["processes"]}

        assert await pids() == set(range(1, 200))
        async with service.database.write() as session:
            former = '[{"pid": 7, "start_time_ticks": 5, "name": "former"}]'
            await session.execute(text("UPDATE node_states SET processes = CAST(:rows AS jsonb)"), {"rows": former})
        assert await pids() == {7}
        await post(service, report(sample={"processes": many[:3]}))
        assert await pids() == {1, 2, 3}


class TestSamples:
    async def test_newest_first_within_the_range(self, service: Service, viewer: httpx.AsyncClient) -> None:
        agent = await service.client_as(Role.AGENT)
        now = datetime.now(UTC).replace(microsecond=0)
        times = [now - timedelta(hours=hours) for hours in (0, 1, 2, 30, 24 * 20)]
        for moment in times:
            answer = await agent.post("/api/v1/reports", json=report(sample={"taken_at": moment.isoformat()}))
        url = f"{NODES}/{answer.json()['node_id']}/samples"

        async def taken(**query: Any) -> list[datetime]:
            found, cursor = [], None
            while True:
                page = (await viewer.get(url, params=query | ({"cursor": cursor} if cursor else {}))).json()
                found += [datetime.fromisoformat(item["taken_at"]) for item in page["items"]]
                cursor = page["next_cursor"]
                if cursor is None:
                    return found

        assert await taken() == times
        assert await taken(limit=2) == times
        assert await taken(to=times[0].isoformat()) == times[1:]
        assert await taken(**{"from": times[2].isoformat()}) == times[:3]
        assert await taken(**{"from": times[3].isoformat(), "to": times[1].isoformat()}) == times[2:4]

    async def test_times_need_a_zone(self, service: Service, viewer: httpx.AsyncClient) -> None:
        receipt = await post(service, report())
        answer = await viewer.get(f"{NODES}/{receipt['node_id']}/samples?from=2026-11-20T00:00:00")
        assert_problem(answer, 422, "invalid-input")


class TestRuns:
    async def test_walks_are_curves_of_their_own_section(self, service: Service, viewer: httpx.AsyncClient) -> None:
        sent = run()
        like = sent["latency"]["curves"][0] | {"footprint_bytes": 2**27}
        curves = [
            like | {"name": "walks numa_node 4K", "x_name": "numa_node"},
            like | {"name": "walks chases THP-64K", "backing": "THP-64K", "backing_kind": "multi_size_thp"},
        ]
        plain = (await viewer.get(f"/api/v1/runs/{(await post(service, report(run=run())))['run_id']}")).json()
        sent["latency"]["walks"] = {"status": "ok", "reason": None, "cpu_node": 1, "curves": curves}
        receipt = await post(service, report(run=sent))
        found = (await viewer.get(f"/api/v1/runs/{receipt['run_id']}")).json()
        walks = [curve for curve in found["curves"] if curve["section"] == "walks"]
        assert [(curve["x_name"], curve["footprint_bytes"]) for curve in walks] == [
            ("numa_node", 2**27),
            (like["x_name"], 2**27),
        ]
        assert found["walks_cpu_node"] == 1
        # Nothing that is concluded from latency changes by them.
        assert [curve for curve in found["curves"] if curve["section"] != "walks"] == plain["curves"]

    async def test_run_comes_back_with_its_curves(self, service: Service, viewer: httpx.AsyncClient) -> None:
        sent = run()
        receipt = await post(service, report(run=sent))
        found = (await viewer.get(f"/api/v1/runs/{receipt['run_id']}")).json()
        assert found["node_name"] == "db-7"
        assert [c["section"] for c in found["curves"]] == ["geometry", "latency", "latency"]
        expected = [*sent["geometry"]["curves"], *sent["latency"]["curves"]]
        added = {"section", "beside_backing", "footprint_bytes"}
        assert [{k: v for k, v in c.items() if k not in added} for c in found["curves"]] == expected
        assert found["geometry"]["curves"] == []
        assert found["paired_deltas"][0]["delta_ns"] == -35.1
        assert found["pressure"] == sent["latency"]["pressure"]
        assert found["walks_cpu_node"] is None
        assert found["rows"] is None
        listed = (await viewer.get(f"{NODES}/{receipt['node_id']}/runs")).json()["items"]
        assert [item["id"] for item in listed] == [receipt["run_id"]]

    async def test_unknown_run_is_404(self, viewer: httpx.AsyncClient) -> None:
        assert_problem(await viewer.get(f"/api/v1/runs/{uuid.uuid4()}"), 404, "not-found")

    async def test_curve_with_unknown_points_keeps_them_unknown(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        points = [{"x": 1, "ns_p50": None}, {"x": 2, "ns_p50": 1.5}]
        skipped = curve("1G", GIB, status="skipped", reason="no free 1G pages", granted_fraction=None)
        skipped["points"] = []
        sent = run(latency={"status": "ok", "curves": [curve(points=0) | {"points": points}, skipped]})
        receipt = await post(service, report(run=sent))
        curves = (await viewer.get(f"/api/v1/runs/{receipt['run_id']}")).json()["curves"][1:]
        assert [point["ns_p50"] for point in curves[0]["points"]] == [None, 1.5]
        assert curves[1]["points"] == []
        assert curves[1]["reason"] == "no free 1G pages"

    async def test_a_point_of_an_earlier_program_never_waited(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        sent = run()
        for absent in ("wait_ns", "period_ns"):
            del sent["latency"]["pressure"]["points"][0][absent]
        receipt = await post(service, report(run=sent))
        [point] = (await viewer.get(f"/api/v1/runs/{receipt['run_id']}")).json()["pressure"]["points"]
        assert (point["wait_ns"], point["period_ns"]) == (0, None)

    async def test_compare_aligns_curves_in_the_order_asked(self, service: Service, viewer: httpx.AsyncClient) -> None:
        first = await post(service, report(run=run()))
        only_4k = run(latency={"status": "ok", "curves": [curve("4K", 4096)]})
        second = await post(service, report(machine_id=machine(2), node_name="other", run=only_4k))
        ids = [second["run_id"], first["run_id"]]
        answer = (await viewer.get("/api/v1/runs/compare", params={"run": ids})).json()
        assert [item["id"] for item in answer["runs"]] == ids
        present = {(row["section"], row["backing"]): [c is not None for c in row["curves"]] for row in answer["curves"]}
        assert present[("latency", "4K")] == [True, True]
        assert present[("latency", "2M")] == [False, True]
        assert answer["pressures"] == [None, run()["latency"]["pressure"]]

    async def test_runs_too_large_together_are_told_with_their_size(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        """Their points say little in their documents and much in an answer; each alone is read."""
        points = [{"x": at} for at in range(3_000)]
        curves = [curve("4K", 4096) | {"name": f"c{number}", "points": points} for number in range(14)]
        large = run(latency={"status": "ok", "curves": curves})
        ids = [
            (await post(service, report(run=large | {"started_at": f"2026-01-0{day}T00:00:00Z"})))["run_id"]
            for day in (1, 2, 3)
        ]
        answer = await viewer.get("/api/v1/runs/compare", params={"run": ids})
        assert answer.status_code == 422, len(answer.content)  # its text may be 13 MB
        [error] = assert_problem(answer, 422, "invalid-input")["errors"]
        assert (error["field"], str(COMPARED_BYTES) in error["expected"]) == ("run", True)
        for run_id in ids:
            alone = await viewer.get(f"/api/v1/runs/{run_id}")
            assert RunDetail.model_validate_json(alone.content).model_dump(mode="json") == alone.json()
            assert sum(len(each["points"]) for each in alone.json()["curves"]) >= 42_000
        assert len(alone.content) * 2 < COMPARED_BYTES < len(alone.content) * 3
        answer = await viewer.get("/api/v1/runs/compare", params={"run": ids[:2]})
        assert RunComparison.model_validate_json(answer.content).model_dump(mode="json") == answer.json()

    async def test_compare_needs_two_different_known_runs(self, service: Service, viewer: httpx.AsyncClient) -> None:
        receipt = await post(service, report(run=run()))
        one = receipt["run_id"]
        url = "/api/v1/runs/compare"
        assert_problem(await viewer.get(url, params={"run": [one]}), 422, "invalid-input")
        assert_problem(await viewer.get(url, params={"run": [one, one]}), 422, "invalid-input")
        assert_problem(await viewer.get(url, params={"run": [one, str(uuid.uuid4())]}), 404, "not-found")


def test_a_size_loses_from_the_first_count_that_lost_at_every_point_not_from_the_confirmed_one() -> None:
    def scatter(huge_ns: list[float | None], **crossing: Any) -> Scatter:
        named = {"x_name": "hot_lines", "status": "ok"}
        points = [{"x": x, "ns_p50": ns} for x, ns in zip((64, 128, 181, 256), huge_ns, strict=True)]
        base = [{"x": x, "ns_p50": 4.0} for x in (64, 128, 181, 256)]
        curves = [
            named | {"name": "scatter 4K, one line in each 1G", "backing": "4K", "points": base},
            named | {"name": "scatter 1G, one line in each 1G", "backing": "1G", "points": points},
        ]
        return convert(Scatter, {"crossing": {"backing": "1G"} | crossing, "curves": curves})

    assert loses_from_lines(scatter([5.0, 3.0, 6.0, 9.0], hot_lines=256)) == 181
    assert loses_from_lines(scatter([5.0, None, 6.0, 9.0], hot_lines=256)) == 181
    assert loses_from_lines(scatter([5.0, 5.0, 6.0, 9.0], hot_lines=181)) == 64
    assert loses_from_lines(scatter([5.0, 5.0, 6.0, 9.0], status="not_reached")) is None
    assert loses_from_lines(None) is None


def test_a_scatter_curve_names_the_size_it_is_measured_beside() -> None:
    assert beside_backing("scatter", "scatter 4K, one line in each 2M") == "2M"
    assert beside_backing("scatter", "scatter 4K") is None
    assert beside_backing("latency", "latency 4K, one line in each 2M") is None


async def test_every_statement_about_runs_and_samples_uses_an_index(
    service: Service, viewer: httpx.AsyncClient
) -> None:
    """Curves used to be filtered by a column that no index leads on."""
    receipts = [await post(service, report(run=run(started_at=f"2026-11-20T1{n}:00:00Z"))) for n in range(2)]
    node, runs = receipts[0]["node_id"], [receipt["run_id"] for receipt in receipts]
    seen: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        seen.append((statement, parameters))

    engine = service.database.engine
    event.listen(engine.sync_engine, "before_cursor_execute", note)
    try:
        for path in (
            f"{NODES}/{node}",
            f"{NODES}/{node}/runs",
            f"{NODES}/{node}/samples",
            f"{NODES}/{node}/processes",
            f"/api/v1/runs/{runs[0]}",
            f"/api/v1/runs/compare?run={runs[0]}&run={runs[1]}",
        ):
            assert (await viewer.get(path)).status_code == 200, path
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", note)
    asked = [(statement, given) for statement, given in seen if "runs" in statement or "samples" in statement]
    assert len(asked) >= 4
    async with engine.connect() as connection:
        await connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        for statement, given in asked:
            plan = await connection.exec_driver_sql(f"EXPLAIN {statement}", given)
            lines = [row[0] for row in plan]
            assert not [line for line in lines if "Seq Scan" in line], (statement, lines)


class TestRawReport:
    async def test_the_newest_report_is_given_byte_for_byte(self, service: Service, viewer: httpx.AsyncClient) -> None:
        await post(service, report())
        newest = report()
        node_id = (await post(service, newest))["node_id"]
        answer = await viewer.get(f"{NODES}/{node_id}/report")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == newest

    async def test_an_unknown_node_and_a_report_no_longer_kept_are_told_apart(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        assert_problem(await viewer.get(f"{NODES}/{uuid.uuid4()}/report"), 404, "not-found")
        node_id = (await post(service, report()))["node_id"]
        async with service.database.write() as session:
            await session.execute(text("DELETE FROM report_documents"))
        answer = await viewer.get(f"{NODES}/{node_id}/report")
        assert_problem(answer, 404, "not-found")
        assert "no longer kept" in answer.json()["detail"]


class TestContainersOfProcesses:
    async def test_units_and_their_huge_page_limits_come_with_the_processes(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        unit = {"key": "u1", "kind": "container", "name": "postgres", "memory": {"source": "cgroup_v2"}}
        limit = {
            "cgroup_path": "/kubepods/pod1/c1",
            "unit": "u1",
            "version": 2,
            "page_bytes": 2 * MIB,
            "limit_bytes": 512 * MIB,
        }
        node_id = (await post(service, report(sample={"units": [unit], "hugetlb_cgroups": [limit]})))["node_id"]
        found = (await viewer.get(f"{NODES}/{node_id}/processes")).json()
        assert [item["key"] for item in found["units"]] == ["u1"]
        assert [(item["unit"], item["limit_bytes"]) for item in found["huge_page_limits"]] == [("u1", 512 * MIB)]

    async def test_an_agent_that_reports_none_leaves_them_unknown(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        node_id = (await post(service, report()))["node_id"]
        found = (await viewer.get(f"{NODES}/{node_id}/processes")).json()
        assert (found["units"], found["huge_page_limits"]) == (None, None)
