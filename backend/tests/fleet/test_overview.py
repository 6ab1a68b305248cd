"""Many nodes at once: summary, groups, drift, wins, labels, history, events, fleet plans."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import event, text
from support.reports import GIB, MIB, report, run
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.db.models import RunRow
from hugeplan.events.feed import EventFeed
from hugeplan.fleet import overview_repository, repository
from hugeplan.fleet.ingest import incoming
from hugeplan.fleet.reparse import reparse

NODES = "/api/v1/nodes"
FLEET = "/api/v1/fleet"
REPORTS = "/api/v1/reports"


async def post(service: Service, number: int = 0, **changes: Any) -> dict[str, Any]:
    """Store a report of machine ``number`` with its own token; the receipt."""
    machine = f"{number:032x}"
    client = await service.client_as(Role.AGENT, machine_id=machine)
    document = report(machine_id=machine, **({"node_name": f"n{number}"} | changes))
    answer = await client.post(REPORTS, json=document)
    assert answer.status_code == 201, answer.text
    receipt: dict[str, Any] = answer.json()
    return receipt


def pool(pages: int, free: int | None) -> dict[str, Any]:
    """A sample with one pool of 2 MiB pages."""
    own = {"numa_node": 0, "page_bytes": 2 * MIB, "nr_hugepages": pages, "free_hugepages": free}
    total = {"page_bytes": 2 * MIB, "nr_hugepages": pages, "free_hugepages": free, "resv_hugepages": 0}
    return {"pools": [own], "global_pools": [total]}


async def kinds(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """Kinds of past events, oldest first."""
    page = (await client.get("/api/v1/events/history", params={"limit": 200} | query)).json()
    return [event["kind"] for event in reversed(page["items"])]


class TestSummary:
    async def test_an_empty_fleet(self, viewer: httpx.AsyncClient) -> None:
        answer = (await viewer.get(f"{FLEET}/summary")).json()
        assert answer["nodes"] == 0
        assert answer["pools"] == answer["findings"] == answer["parts"] == []
        assert answer["updated_at"] is None

    async def test_sums_over_nodes_and_by_group(self, service: Service, viewer: httpx.AsyncClient) -> None:
        await post(service, 1, sample=pool(1024, 0), labels={"provider": "gke"})
        await post(service, 2, sample=pool(1024, 1024), labels={"provider": "gke"})
        await post(service, 3, sample=pool(100, None), labels={"provider": "eks"}, run=run())
        answer = (await viewer.get(f"{FLEET}/summary", params={"by": "provider"})).json()
        assert answer["nodes"] == 3
        assert answer["nodes_measured"] == answer["nodes_fractured"] == 1
        assert answer["memory"]["mem_total_bytes"] == 3 * 64 * GIB
        assert answer["memory"]["pool_bytes"] == 2148 * 2 * MIB
        assert answer["memory"]["pool_idle_bytes"] == 1024 * 2 * MIB
        assert answer["memory"]["pool_used_bytes"] == 1024 * 2 * MIB
        assert answer["memory"]["nodes_unknown"] == 1
        (size,) = answer["pools"]
        assert (size["nr_hugepages"], size["free_hugepages"], size["nodes_unknown"]) == (2148, 1024, 1)
        assert {part["key"]: part["nodes"] for part in answer["parts"]} == {"gke": 2, "eks": 1}
        assert {f["code"]: f["nodes"] for f in answer["findings"]} == {"pool_idle": 1, "fractured_guest": 1}
        gke = (await viewer.get(f"{FLEET}/summary", params={"label": "provider=gke"})).json()
        assert gke["nodes"] == 2

    async def test_a_finding_has_its_idle_memory_and_the_node_with_the_most_of_it(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        await post(service, 1, sample=pool(1024, 1024))
        worst = await post(service, 2, sample=pool(4096, 3072))
        await post(service, 3, sample=pool(1024, 0))
        (found,) = (await viewer.get(f"{FLEET}/summary")).json()["findings"]
        selected = (await viewer.get(f"{FLEET}/summary", params={"finding": "pool_idle"})).json()
        assert (selected["nodes"], selected["findings"]) == (2, [found])
        for state, nodes in (("attention", 2), ("wrong", 0)):
            selector = {"finding": "pool_idle", "state": state}
            assert (await viewer.get(f"{FLEET}/summary", params=selector)).json()["nodes"] == nodes
        assert (found["code"], found["nodes"], found["pool_idle_bytes"]) == ("pool_idle", 2, 4096 * 2 * MIB)
        assert (found["example_node_id"], found["example_node_name"]) == (worst["node_id"], "n2")
        assert found["fix"] == "Give the pages back, or start what they were reserved for."

    async def test_groups_by_a_label_need_its_key(self, viewer: httpx.AsyncClient) -> None:
        assert_problem(await viewer.get(f"{FLEET}/summary?by=label"), 422, "invalid-input")

    async def test_like_nodes_are_one_group(self, service: Service, viewer: httpx.AsyncClient) -> None:
        for number in range(3):
            await post(service, number, sample=pool(1024, number))
        await post(service, 9, sample=pool(5, 0))
        first = (await viewer.get(f"{FLEET}/groups", params={"limit": 1})).json()
        (group,) = first["items"]
        assert (group["nodes"], group["example_node_name"]) == (3, "n0")
        assert group["pools"][0]["nr_hugepages"] == 1024
        rest = (await viewer.get(f"{FLEET}/groups", params={"limit": 1, "cursor": first["next_cursor"]})).json()
        assert [found["nodes"] for found in rest["items"]] == [1]
        assert rest["next_cursor"] is None

    async def test_an_export_counts_the_nodes_of_a_bounded_number_of_groups(
        self, service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each of its pages counts all nodes again, and each node may be a group of its own."""
        monkeypatch.setattr(overview_repository, "MOST_GROUPS", 2)
        for number in range(4):
            await post(service, number, sample=pool(max(number, 1), 0))
        page = (await viewer.get(f"{FLEET}/groups", params={"limit": 1})).json()
        assert page["items"][0]["nodes"] == 2
        rest = (await viewer.get(f"{FLEET}/groups", params={"cursor": page["next_cursor"]})).json()
        assert [[one["nodes"] for one in rest["items"]], rest["next_cursor"]] == [[1], None]

    async def test_a_time_bomb_and_a_silent_fallback_are_counted(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        limit = {"page_bytes": 2 * MIB, "counter": "usage", "limit_bytes": GIB, "cgroup_path": "/kubepods/a"}
        bomb = {
            "key": "pg-1",
            "engine": "postgresql",
            "main_pid": 7,
            "huge_pages_status": "on",
            "segments": [{"bytes": 4 * GIB, "backing": "hugetlb", "page_bytes": 2 * MIB}],
            "hugetlb_limits": [limit, limit | {"counter": "reservation"}],
        }
        fallback = {
            "key": "pg-2",
            "engine": "postgresql",
            "main_pid": 8,
            "huge_pages_status": "off",
            "segments": [{"bytes": GIB, "backing": "base_pages"}],
        }
        await post(service, 1, sample=pool(4096, 1000) | {"databases": [bomb, fallback]})
        await post(service, 2, sample=pool(4096, 100) | {"databases": [fallback]})  # the pool could not hold it
        answer = (await viewer.get(f"{FLEET}/summary")).json()
        assert (answer["time_bombs"], answer["silent_fallbacks"], answer["nodes_wrong"]) == (1, 1, 1)
        (node,) = (await viewer.get(NODES, params={"finding": "silent_fallback"})).json()["items"]
        detail = (await viewer.get(f"{NODES}/{node['id']}")).json()
        assert [(f["code"], f["subject"]) for f in detail["findings"] if f["state"] == "wrong"] == [
            ("time_bomb", "pg-1"),
            ("silent_fallback", "pg-2"),
        ]
        many = [fallback | {"key": f"pg-{number}", "main_pid": number} for number in range(9, 29)]
        await post(service, 1, sample=pool(4096, 1000) | {"databases": [bomb, fallback, *many]})
        assert (await viewer.get(f"{FLEET}/summary")).json()["silent_fallbacks"] == 1
        async with service.database.read() as session:
            assert await session.scalar(text("SELECT count(*) FROM node_findings WHERE code = 'silent_fallback'")) == 1


class TestLists:
    async def test_sorted_pages_hold_every_node_once(self, service: Service, viewer: httpx.AsyncClient) -> None:
        for number, free in enumerate([5, 900, None, 5, 7]):
            await post(service, number, sample=pool(1024, free))
        for sort in ("pool_idle_bytes", "last_report_at", "findings", "mem_total_bytes", "name"):
            for descending in (False, True):
                found, cursor = [], None
                while True:
                    query = {"limit": 2, "sort": sort, "descending": descending}
                    page = (await viewer.get(NODES, params=query | ({"cursor": cursor} if cursor else {}))).json()
                    found += [node["name"] for node in page["items"]]
                    cursor = page["next_cursor"]
                    if cursor is None:
                        break
                assert sorted(found) == ["n0", "n1", "n2", "n3", "n4"], (sort, descending)
        idle = (await viewer.get(NODES, params={"sort": "pool_idle_bytes", "descending": True})).json()["items"]
        assert [node["name"] for node in idle][::4] == ["n1", "n2"]

    async def test_csv_has_the_same_nodes_and_no_formula(self, service: Service, viewer: httpx.AsyncClient) -> None:
        await post(service, 1, node_name="=cmd()")
        answer = await viewer.get(f"{NODES}.csv")
        assert answer.headers["content-type"].startswith("text/csv")
        (row,) = csv.DictReader(io.StringIO(answer.text))
        assert row["name"] == "'=cmd()"
        assert row["mem_total_bytes"] == str(64 * GIB)

    async def test_csv_holds_every_row_unless_a_page_is_asked_for(
        self, service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Three pages after the first: more than one round in the part that is streamed.
        monkeypatch.setattr("hugeplan.api.csv_response.MAX_LIMIT", 5)
        for number in range(62):
            await post(service, number)
        everything = await viewer.get(f"{NODES}.csv", params={"sort": "mem_total_bytes"})
        rows = list(csv.DictReader(io.StringIO(everything.text)))
        assert len({row["id"] for row in rows}) == len(rows) == 62
        assert "X-Next-Cursor" not in everything.headers
        assert 'filename="nodes.csv"' in everything.headers["content-disposition"]
        page = await viewer.get(f"{NODES}.csv", params={"limit": 7})
        assert len(list(csv.DictReader(io.StringIO(page.text)))) == 7
        rest = await viewer.get(f"{NODES}.csv", params={"cursor": page.headers["X-Next-Cursor"], "limit": 500})
        assert len(list(csv.DictReader(io.StringIO(rest.text)))) == 55
        changes = await viewer.get("/api/v1/events/history.csv", params={"kind": "node_added"})
        added = list(csv.DictReader(io.StringIO(changes.text)))
        assert len({row["node_id"] for row in added}) == len(added) == 62

    async def test_nul_in_a_filter_is_422(self, viewer: httpx.AsyncClient) -> None:
        for query in ({"label": "a\0b"}, {"machine_type": "\0"}, {"q": "\0"}):
            assert_problem(await viewer.get(NODES, params=query), 422, "invalid-input")


class TestLabelsAndPlans:
    async def test_labels_are_written_over_the_agents(
        self, service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        receipt = await post(service, 1, labels={"env": "test", "team": "a"})
        url = f"{NODES}/{receipt['node_id']}/labels"
        answer = await planner.put(url, json={"labels": {"env": "prod"}})
        assert answer.json()["labels"] == {"env": "prod", "team": "a"}
        await post(service, 1, labels={"env": "dev", "zone": "z"})
        assert (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()["labels"] == {"env": "prod", "zone": "z"}
        assert len((await viewer.get(NODES, params={"label": ["env=prod", "zone"]})).json()["items"]) == 1
        assert (await viewer.get(NODES, params={"label": "env=dev"})).json()["items"] == []

    async def test_labels_have_a_bound_in_all(self, service: Service, planner: httpx.AsyncClient) -> None:
        """Whoever chooses nodes by a label reads those of all nodes."""
        long = {f"k{number}": "\u00e4" * 250 for number in range(9)}
        receipt = await post(service, 1)
        answer = await planner.put(f"{NODES}/{receipt['node_id']}/labels", json={"labels": long})
        assert "at most 4096 bytes" in answer.text
        agent = await service.client_as(Role.AGENT, machine_id=f"{1:032x}")
        sent = await agent.post(REPORTS, json=report(machine_id=f"{1:032x}", labels=long))
        assert (answer.status_code, sent.status_code) == (422, 422)

    async def test_drift_from_the_plan_in_force(
        self, service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        node_id = (await post(service, 1, sample=pool(1024, 0)))["node_id"]
        url = f"{NODES}/{node_id}/plan-in-force"
        body = {"pools": [{"page_bytes": 2 * MIB, "pages": 1030}], "source": "hand"}
        answer = (await planner.put(url, json=body)).json()
        assert answer["plan_state"] == "short"
        assert answer["plan_in_force"]["pools"] == [{"page_bytes": 2 * MIB, "pages": 1030, "numa_node": None}]
        (item,) = (await viewer.get(f"{FLEET}/drift")).json()["items"]
        assert (item["node_name"], item["state"]) == ("n1", "short")
        assert item["pools"] == [
            {"numa_node": None, "page_bytes": 2 * MIB, "planned_pages": 1030, "actual_pages": 1024, "state": "short"}
        ]
        assert item["since"] is not None
        await post(service, 1, sample=pool(1030, 0))
        assert (await viewer.get(f"{FLEET}/drift")).json()["items"] == []
        assert (await viewer.get(f"{FLEET}/summary")).json()["plan_states"]["match"] == 1
        assert (await kinds(viewer, code="plan_drift")) == ["finding_opened", "finding_closed"]
        assert (await planner.delete(url)).status_code == 204
        assert_problem(await planner.delete(url), 404, "not-found")

    async def test_a_finding_keeps_its_time_while_it_holds(self, service: Service, viewer: httpx.AsyncClient) -> None:
        async def since(node_id: str) -> list[str]:
            detail = (await viewer.get(f"{NODES}/{node_id}")).json()
            return [finding["since"] for finding in detail["findings"] if finding["code"] == "pool_idle"]

        node_id = (await post(service, 1, sample=pool(1024, 1000)))["node_id"]
        first = await since(node_id)
        await post(service, 1, sample=pool(1024, 900))
        assert await since(node_id) == first
        await post(service, 1, sample=pool(1024, 0))
        assert await since(node_id) == []
        await post(service, 1, sample=pool(1024, 900))
        assert await since(node_id) != first

    async def test_a_plan_in_force_needs_one_source_of_pools(
        self, service: Service, planner: httpx.AsyncClient
    ) -> None:
        node_id = (await post(service, 1))["node_id"]
        for body in ({}, {"pools": [{"page_bytes": 1, "pages": 1}] * 2}):
            assert_problem(await planner.put(f"{NODES}/{node_id}/plan-in-force", json=body), 422, "invalid-input")


class TestRuns:
    async def test_wins_of_a_bad_or_deleted_run_do_not_count(
        self, service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        receipt = await post(service, 1, run=run())
        wins = (await viewer.get(f"{FLEET}/page-size-wins")).json()
        assert wins["cases"] == 3
        assert sum(size["share"] for size in wins["sizes"]) == pytest.approx(1)
        assert wins["machines"][0]["machine_type"] == "AMD EPYC, KVM"
        marked = await planner.put(f"/api/v1/runs/{receipt['run_id']}/mark", json={"bad": True, "reason": "noise"})
        assert marked.json()["bad"] is True
        assert (await viewer.get(f"{FLEET}/page-size-wins")).json()["cases"] == 0
        detail = (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()
        assert detail["geometry"] is None
        assert detail["facts"]["hardware"]["curves"] == []
        await planner.put(f"/api/v1/runs/{receipt['run_id']}/mark", json={"bad": False})
        assert (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()["effective_granule_bytes"] == 4096
        assert (await planner.delete(f"/api/v1/runs/{receipt['run_id']}")).status_code == 204
        assert (await viewer.get(f"{NODES}/{receipt['node_id']}")).json()["latest_run_id"] is None

    async def test_a_run_that_retention_deletes_meanwhile_is_no_error(
        self, service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Retention waits for no node: it deletes between the look for runs and the look for their documents."""
        first = await post(service, 1, run=run())
        second = (await post(service, 1, run=run()))["run_id"]
        find = repository.best_runs

        async def delete() -> None:
            async with service.database.write() as other:
                await other.execute(text("DELETE FROM runs WHERE id = :id"), {"id": second})

        async def then_delete(*given: Any) -> Any:
            found = await find(*given)
            await asyncio.create_task(delete())
            return found

        monkeypatch.setattr(repository, "best_runs", then_delete)
        marked = await planner.put(f"/api/v1/runs/{first['run_id']}/mark", json={"bad": False})
        assert marked.status_code == 200, marked.text
        detail = (await viewer.get(f"{NODES}/{first['node_id']}")).json()
        assert detail["effective_granule_bytes"] == 4096

    async def test_the_sources_of_a_nodes_facts_are_looked_at_however_old(
        self, service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of others the newest 1,000: a mark on any run had lost what was measured before them."""
        monkeypatch.setattr(repository, "_NEWEST_RUNS", 3)
        start = datetime.now(UTC) - timedelta(days=1)
        whole = await post(service, 1, run=run(started_at=start.isoformat()))
        later = [
            await post(
                service,
                1,
                run=run(started_at=(start + timedelta(hours=hour)).isoformat(), geometry=None, latency=None),
            )
            for hour in range(1, 6)
        ]
        url = f"{NODES}/{whole['node_id']}"
        before = (await viewer.get(url)).json()
        assert before["geometry"]["run_id"] == whole["run_id"]
        await planner.put(f"/api/v1/runs/{later[2]['run_id']}/mark", json={"bad": True})
        after = (await viewer.get(url)).json()
        assert after["geometry"] == before["geometry"]
        assert after["facts"]["hardware"] == before["facts"]["hardware"]
        assert after["latest_run_id"] == later[-1]["run_id"]
        await planner.put(f"/api/v1/runs/{whole['run_id']}/mark", json={"bad": True})
        assert (await viewer.get(url)).json()["geometry"] is None, "a bad run is no source"

    async def test_what_is_measured_again_does_not_read_all_runs(
        self, service: Service, planner: httpx.AsyncClient
    ) -> None:
        """A year of hourly runs held everybody up for a quarter of a second."""
        start = datetime.now(UTC) - timedelta(days=1)
        says: list[dict[str, Any]] = [
            {"geometry": None}, {}, {"latency": None}, {"geometry": None, "latency": None},
            {"geometry": None, "latency": None},
        ]  # fmt: skip
        made = []
        for hour, changes in enumerate(says * 2):
            at = start + timedelta(hours=hour)
            made.append(await post(service, 1, run=run(started_at=at.isoformat(), **changes)))
        read: list[UUID] = []

        def seen(row: RunRow, _: Any) -> None:
            read.append(row.id)

        async def measured(*bad: int) -> tuple[Any, Any, int]:
            read.clear()
            event.listen(RunRow, "load", seen)
            try:
                url = f"/api/v1/runs/{made[bad[-1]]['run_id']}/mark"
                assert (await planner.put(url, json={"bad": True, "reason": "noise"})).status_code == 200
            finally:
                event.remove(RunRow, "load", seen)
            async with service.database.read() as session:
                found = await session.scalar(text("SELECT measured FROM node_states"))
            sources = {name: found["parts"][name]["run_id"] for name in ("geometry", "latency")}
            return sources, found["latest"]["run_id"], len(read)

        def runs(geometry: int, latency: int, latest: int) -> tuple[dict[str, str], str]:
            ids = [one["run_id"] for one in made]
            return {"geometry": ids[geometry], "latency": ids[latency]}, ids[latest]

        for bad, expected in [(9, runs(7, 6, 8)), (6, runs(7, 5, 8)), (7, runs(2, 5, 8)), (8, runs(2, 5, 5))]:
            *found, many = await measured(bad)
            assert tuple(found) == expected
            assert many < 8

    async def test_marks_reports_and_deletions_at_once(
        self, service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        machine = f"{1:032x}"
        agent = await service.client_as(Role.AGENT, machine_id=machine)
        receipts = []
        for _ in range(6):
            receipts.append((await agent.post(REPORTS, json=report(machine_id=machine, run=run()))).json())
        runs = [receipt["run_id"] for receipt in receipts]

        async def mark(number: int) -> int:
            address = f"/api/v1/runs/{runs[number % len(runs)]}/mark"
            return (await planner.put(address, json={"bad": number % 2 == 0})).status_code

        async def remove(number: int) -> int:
            return (await planner.delete(f"/api/v1/runs/{runs[number]}")).status_code

        async def send(_: int) -> int:
            return (await agent.post(REPORTS, json=report(machine_id=machine, run=run()))).status_code

        work = [mark(n) for n in range(18)] + [remove(n % 2) for n in range(4)] + [send(n) for n in range(6)]
        statuses = await asyncio.gather(*work)
        # 503: a deadlock that PostgreSQL ended, nothing was changed. 404: the run is deleted.
        assert set(statuses) <= {200, 201, 204, 404, 503}
        assert statuses.count(204) <= 2
        assert (await viewer.get(f"{NODES}/{receipts[0]['node_id']}")).status_code == 200

    async def test_wins_over_chosen_runs_count_old_ones_and_no_others(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        old = await post(service, 1, run=run())
        await post(service, 1, run=run(started_at=datetime.now(UTC).isoformat()))
        other = await post(service, 2, run=run())
        url = f"{FLEET}/page-size-wins"
        one = (await viewer.get(url, params={"run": [old["run_id"]]})).json()
        assert (one["runs"], one["nodes"], one["cases"]) == (1, 1, 3)
        two = (await viewer.get(url, params={"run": [old["run_id"], other["run_id"]]})).json()
        assert (two["runs"], two["nodes"], two["cases"]) == (2, 2, 6)

    async def test_backings_that_tlbbench_does_not_have_count_in_no_sum_of_the_fleet(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        document = run()
        for curve in document["latency"]["curves"]:
            curve["backing"] = {"2M": "a word of the sender"}.get(curve["backing"], curve["backing"])
        await post(service, 1, run=document)
        await post(service, 2, run=run())
        found = (await viewer.get(f"{FLEET}/page-size-wins")).json()
        assert {size["backing"] for size in found["sizes"]} == {"4K", "2M", "tie"}

    async def test_wins_are_told_of_a_bounded_number_of_machine_types_and_page_sizes(
        self, service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An agent says what its processor is called, and which page sizes it has."""
        monkeypatch.setattr(overview_repository, "MAX_PARTS", 1)
        document = run()
        curve = document["latency"]["curves"][0]
        names = [f"{thp}{1 << power}{unit}" for thp in ("", "THP-") for unit in "KMGT" for power in range(10)]
        document["latency"]["curves"] = [curve | {"backing": name} for name in names]
        await post(service, 1, run=document)
        inventory = report()["inventory"]
        inventory["cpu"]["brand"] = "Another"
        for number in (2, 3):
            await post(service, number, run=run(), inventory=inventory)
        found = (await viewer.get(f"{FLEET}/page-size-wins")).json()
        assert [(one["machine_type"], one["nodes"], one["runs"]) for one in found["machines"]] == [
            ("Another, KVM", 2, 2)
        ]
        assert (found["nodes"], found["runs"]) == (3, 3)
        assert found["cases"] > found["machines"][0]["cases"] == 6
        assert 20 <= len(found["sizes"]) <= 20 + 3  # those of one run, and the other's own and ties

    async def test_runs_of_the_fleet_are_listed_newest_first_and_searched_by_node(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        made = [await post(service, number, node_name=f"db-{number}", run=run()) for number in (1, 2, 3)]
        ids = [receipt["run_id"] for receipt in made]
        found: list[str] = []
        cursor = None
        while True:
            page = (
                await viewer.get("/api/v1/runs", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
            ).json()
            found += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert sorted(found) == sorted(ids)
        searched = (await viewer.get("/api/v1/runs", params={"q": "DB-2"})).json()["items"]
        assert [(item["id"], item["node_name"]) for item in searched] == [(ids[1], "db-2")]
        exported = await viewer.get("/api/v1/runs.csv")
        rows = list(csv.DictReader(io.StringIO(exported.text)))
        assert [row["id"] for row in rows] == found
        assert {row["node_name"] for row in rows} == {"db-1", "db-2", "db-3"}

    async def test_a_run_of_2199_is_not_newest_for_ever(self, service: Service, viewer: httpx.AsyncClient) -> None:
        await post(service, 1, run=run(started_at="2199-01-01T00:00:00Z"))
        later = await post(service, 1, run=run(started_at=datetime.now(UTC).isoformat()))
        (node,) = (await viewer.get(NODES)).json()["items"]
        assert node["latest_run_id"] == later["run_id"]

    async def test_a_clock_that_is_ahead_freezes_nothing(self, service: Service, viewer: httpx.AsyncClient) -> None:
        ahead = (datetime.now(UTC) + timedelta(hours=23)).isoformat()
        await post(service, 1, node_name="ahead", sample={"taken_at": ahead}, created_at=ahead)
        (node,) = (await viewer.get(NODES)).json()["items"]
        detail = (await viewer.get(f"{NODES}/{node['id']}")).json()
        assert "clock_ahead" in {finding["code"] for finding in detail["findings"]}
        await post(service, 1, node_name="right")
        (node,) = (await viewer.get(NODES)).json()["items"]
        assert node["name"] == "right"

    async def test_a_deleted_node_leaves_nothing(
        self, service: Service, admin: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        node_id = (await post(service, 1, run=run()))["node_id"]
        assert (await admin.delete(f"{NODES}/{node_id}")).status_code == 204
        assert_problem(await viewer.get(f"{NODES}/{node_id}"), 404, "not-found")
        assert (await viewer.get(f"{FLEET}/summary")).json()["nodes"] == 0
        assert (await kinds(viewer))[-1] == "node_deleted"


class TestReparse:
    async def test_what_a_migration_could_not_fill_is_made_from_documents(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        """A database of before the fleet tables has runs, and neither wins nor facts of them."""
        node_id = (await post(service, 1, run=run()))["node_id"]
        before = (await viewer.get(f"{NODES}/{node_id}")).json()["facts"]
        wins = (await viewer.get(f"{FLEET}/page-size-wins")).json()
        async with service.database.write() as session:
            for statement in ("UPDATE node_states SET measured = NULL", "DELETE FROM run_wins"):
                await session.execute(text(statement))
        assert (await viewer.get(f"{NODES}/{node_id}")).json()["facts"] != before
        for _ in range(2):
            done = await reparse(service.database)
            assert (done.nodes, done.runs, done.unreadable) == (1, 1, 0)
        assert (await viewer.get(f"{NODES}/{node_id}")).json()["facts"] == before
        assert (await viewer.get(f"{FLEET}/page-size-wins")).json() == wins

    async def test_a_report_kept_unread_is_read_after_the_upgrade(
        self, service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """To a service that reads no form yet, today's report is one of a newer schema."""
        node_id = (await post(service, 1))["node_id"]
        with monkeypatch.context() as before_the_upgrade:
            before_the_upgrade.setattr(incoming, "SCHEMA_VERSION", 0)
            later = await post(service, 1, node_name="renamed", run=run())
        assert later["state"] == "newer_schema"
        seen = (await viewer.get(f"{NODES}/{node_id}")).json()
        assert (seen["name"], seen["unread_reports"], seen["latest_run_id"]) == ("n1", 1, None)
        done = await reparse(service.database)
        assert (done.reports, done.runs, done.unreadable) == (1, 1, 0)
        seen = (await viewer.get(f"{NODES}/{node_id}")).json()
        assert (seen["name"], seen["unread_reports"]) == ("n1", 0), "its next report says whose the name is"
        assert seen["latest_run_id"] is not None
        assert (await reparse(service.database)).reports == 0

    async def test_a_marked_report_is_read_once_the_service_knows_its_schema(
        self, service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The service of before is this one, told that it knows no schema at all."""
        agent = await service.client_as(Role.AGENT)
        now = datetime.now(UTC)
        assert (await agent.post(REPORTS, json=report())).status_code == 201
        later = report(node_name="later", run=run(), sample={"taken_at": (now + timedelta(seconds=1)).isoformat()})
        earlier = report(node_name="earlier", sample={"taken_at": (now - timedelta(hours=1)).isoformat()})
        damaged = report() | {"sample": "in another form"}
        with monkeypatch.context() as patched:
            patched.setattr(incoming, "SCHEMA_VERSION", 0)
            for document in (later, earlier, damaged):
                answer = await agent.post(REPORTS, json=document)
                assert (answer.status_code, answer.json()["state"]) == (201, "newer_schema")
        (node,) = (await viewer.get(NODES)).json()["items"]
        detail = (await viewer.get(f"{NODES}/{node['id']}")).json()
        assert (detail["name"], detail["unread_reports"]) == ("db-7", 3)
        for reports in (2, 0):
            done = await reparse(service.database)
            assert (done.nodes, done.runs, done.reports, done.unreadable) == (1, 1, reports, 1)
        detail = (await viewer.get(f"{NODES}/{node['id']}")).json()
        assert (detail["name"], detail["unread_reports"]) == ("db-7", 1)
        assert detail["last_report_at"] == node["last_report_at"]
        samples = (await viewer.get(f"{NODES}/{node['id']}/samples")).json()["items"]
        assert len(samples) == 3
        (found,) = (await viewer.get(f"{NODES}/{node['id']}/runs")).json()["items"]
        assert (await viewer.get(f"/api/v1/runs/{found['id']}")).status_code == 200
        # Its agent may send it once more: it is the same report.
        again = await agent.post(REPORTS, json=later)
        assert (again.status_code, again.json()["state"], again.json()["run_id"]) == (200, "parsed", found["id"])

    async def test_the_planners_history_is_filled_from_the_samples_that_are_left(self, service: Service) -> None:
        memory = {"mem_total_bytes": 2**34, "anon_pages_bytes": 2**30, "shmem_bytes": 2**20}
        now = datetime.now(UTC)
        agent = await service.client_as(Role.AGENT)
        for hours in (5, 3, 1):
            document = report(sample={"taken_at": (now - timedelta(hours=hours)).isoformat(), "memory": memory})
            answer = await agent.post(REPORTS, json=document)
            assert answer.status_code == 201
        query = text("SELECT anon_shmem_bytes_max FROM sample_hours WHERE node_id = :node_id ORDER BY start_at")
        query = query.bindparams(node_id=UUID(answer.json()["node_id"]))
        async with service.database.write() as session:
            assert (await session.scalars(query)).all() == [2**30 + 2**20] * 3
            await session.execute(text("UPDATE sample_hours SET anon_shmem_bytes_max = NULL"))
        await reparse(service.database)
        async with service.database.read() as session:
            assert (await session.scalars(query)).all() == [2**30 + 2**20] * 3


class TestNewerSchema:
    async def test_it_is_kept_marked_and_not_read(self, agent: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
        await agent.post(REPORTS, json=report())
        newer = report(node_name="changed") | {"schema_version": 2, "sample": "in another form"}
        answer = await agent.post(REPORTS, json=newer)
        assert (answer.status_code, answer.json()["state"]) == (201, "newer_schema")
        again = await agent.post(REPORTS, json=newer)
        assert (again.status_code, again.json()["state"]) == (200, "newer_schema")
        (node,) = (await viewer.get(NODES)).json()["items"]
        assert node["name"] == "db-7"
        assert (await viewer.get(f"{NODES}/{node['id']}")).json()["unread_reports"] == 1

    async def test_a_new_machine_with_an_unreadable_report_is_422(self, agent: httpx.AsyncClient) -> None:
        newer = report() | {"schema_version": 2, "sample": "in another form"}
        assert_problem(await agent.post(REPORTS, json=newer), 422, "invalid-input")


class TestHistory:
    async def test_a_year_is_one_answer_of_fewer_than_500_points(
        self, service: Service, viewer: httpx.AsyncClient
    ) -> None:
        now = datetime.now(UTC)
        for days in (300, 200, 10, 1, 0):
            taken = (now - timedelta(days=days)).isoformat()
            receipt = await post(service, 1, sample={"taken_at": taken})
        url = f"{NODES}/{receipt['node_id']}/history"
        year = {"from": (now - timedelta(days=365)).isoformat(), "to": (now + timedelta(minutes=1)).isoformat()}
        answer = (await viewer.get(url, params=year)).json()
        assert (answer["source"], answer["width_seconds"], len(answer["points"])) == ("days", 86400, 5)
        assert len(answer["gaps"]) == 3
        assert answer["points"][0]["mem_available_bytes_min"] == 50 * GIB
        assert answer["points"][0]["ordinary_bytes_max"] == 12 * GIB
        week = (await viewer.get(url, params={"from": (now - timedelta(days=11)).isoformat()})).json()
        assert (week["source"], sum(p["samples"] for p in week["points"])) == ("hours", 3)
        hour = (await viewer.get(url, params={"from": (now - timedelta(hours=1)).isoformat()})).json()
        assert (hour["source"], sum(p["samples"] for p in hour["points"])) == ("samples", 1)

    async def test_a_span_that_is_none_is_422(self, service: Service, viewer: httpx.AsyncClient) -> None:
        receipt = await post(service, 1)
        now = datetime.now(UTC).isoformat()
        query = {"from": now, "to": now}
        answer = await viewer.get(f"{NODES}/{receipt['node_id']}/history", params=query)
        assert_problem(answer, 422, "invalid-input")


SCENARIO = {
    "databases": [{"name": "orders", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "8GB"}}]
}


async def finished(client: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    """A job after it has ended."""
    for _ in range(400):
        job: dict[str, Any] = (await client.get(f"{FLEET}/plans/{job_id}")).json()
        if job["status"] in ("done", "failed", "cancelled"):
            return job
        await asyncio.sleep(0.1)
    raise AssertionError("the job does not end")


class TestFleetPlan:
    async def test_a_job_plans_every_selected_node_exceptions_first(
        self, service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        for number in range(4):
            await post(service, number, sample=pool(5000, 5000))
        await post(service, 8, inventory={"default_huge_page_bytes": None})
        await post(service, 9, node_name="small", sample={"memory": {"mem_total_bytes": 4 * GIB}}, inventory={
            "numa_nodes": [{"id": 0, "mem_total_bytes": 4 * GIB}]
        })  # fmt: skip
        await post(service, 20, labels={"other": "yes"})
        answer = await planner.post(f"{FLEET}/plan", json={"scenario": SCENARIO, "selector": {"synthetic": False}})
        assert answer.status_code == 202, answer.text
        job = await finished(viewer, answer.json()["id"])
        assert (job["status"], job["error"]) == ("done", None)
        assert job["summary"]["nodes"] == job["nodes_total"] == job["nodes_done"] == 7
        assert job["summary"]["nodes_without_facts"] == 1
        assert job["scenario"] == SCENARIO
        nodes = (await viewer.get(f"{FLEET}/plans/{job['id']}/nodes", params={"limit": 2})).json()
        assert [node["name"] for node in nodes["items"]] == ["n8", "small"]
        assert "default huge page size" in nodes["items"][0]["exceptions"][0]
        rest = await viewer.get(f"{FLEET}/plans/{job['id']}/nodes", params={"cursor": nodes["next_cursor"]})
        assert len(rest.json()["items"]) == 5
        groups = (await viewer.get(f"{FLEET}/plans/{job['id']}/groups")).json()["items"]
        detail = (await viewer.get(f"{FLEET}/plans/{job['id']}/groups/{groups[0]['number']}")).json()
        assert detail["plan"]["pools"]
        text = (await viewer.get(f"{FLEET}/plans/{job['id']}/nodes.csv")).text
        assert len(list(csv.DictReader(io.StringIO(text)))) == 7
        stream = await viewer.get(f"{FLEET}/plans/{job['id']}/progress")
        assert "event: end" in stream.text
        assert (await kinds(viewer))[-1] == "fleet_plan_finished"

    async def test_scenarios_that_no_node_can_be_planned_for_are_refused(
        self, service: Service, planner: httpx.AsyncClient
    ) -> None:
        assert_problem(await planner.post(f"{FLEET}/plan", json={"scenario": SCENARIO}), 422, "invalid-input")
        await post(service, 1)
        with_node = SCENARIO | {"node": {"memory": "1GiB"}}
        assert_problem(await planner.post(f"{FLEET}/plan", json={"scenario": with_node}), 422, "invalid-input")
        unknown = {"databases": [{"name": "x", "engine": "nonesuch"}]}
        answer = await planner.post(f"{FLEET}/plan", json={"scenario": unknown})
        assert "nonesuch" in assert_problem(answer, 422, "invalid-input")["errors"][0]["value"]

    async def test_a_job_that_has_ended_cannot_be_cancelled(
        self, service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
    ) -> None:
        await post(service, 1)
        job_id = (await planner.post(f"{FLEET}/plan", json={"scenario": SCENARIO})).json()["id"]
        first = await planner.post(f"{FLEET}/plans/{job_id}/cancel")
        assert first.status_code in (200, 409)
        job = await finished(viewer, job_id)
        assert job["status"] == ("cancelled" if first.status_code == 200 else "done")
        assert_problem(await planner.post(f"{FLEET}/plans/{job_id}/cancel"), 409, "conflict")


class TestEvents:
    async def test_the_stream_repeats_what_came_after_an_event_and_goes_on(self, service: Service) -> None:
        feed = service.app.state.event_feed
        await post(service, 1)
        viewer = await service.client_as(Role.VIEWER)
        history = (await viewer.get("/api/v1/events/history")).json()["items"]
        listening = feed.listen(history[-1]["id"] - 1, uuid4())
        heard = await anext(listening)
        assert (heard[0].kind, len(heard)) == ("node_added", len(history))
        waiting = asyncio.ensure_future(anext(listening))
        await asyncio.sleep(0)
        await post(service, 2)
        (event, *_) = await asyncio.wait_for(waiting, 20)
        assert (event.kind, event.node_name) == ("node_added", "n2")
        await listening.aclose()

    async def test_streams_end_with_the_server(self, service: Service) -> None:
        feed = EventFeed(service.app.state.database)
        listening = feed.listen(None, uuid4())
        waiting = asyncio.ensure_future(anext(listening))
        await asyncio.sleep(0)
        await feed.end()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(waiting, 20)

    async def test_ids_rise_in_the_order_of_commits(self, service: Service, viewer: httpx.AsyncClient) -> None:
        seen: list[int] = []

        async def watch() -> None:
            while len(seen) < 20:
                page = (await viewer.get("/api/v1/events/history", params={"kind": "node_added", "limit": 200})).json()
                ids = [event["id"] for event in reversed(page["items"])]
                assert ids[: len(seen)] == seen  # nothing appears below what was seen
                seen[:] = ids

        await asyncio.gather(watch(), *(post(service, number) for number in range(20)))

    async def test_history_pages_and_csv(self, service: Service, viewer: httpx.AsyncClient) -> None:
        for number in range(3):
            await post(service, number)
        first = (await viewer.get("/api/v1/events/history", params={"kind": "node_added", "limit": 2})).json()
        query = {"kind": "node_added", "limit": 2, "cursor": first["next_cursor"]}
        rest = (await viewer.get("/api/v1/events/history", params=query)).json()
        assert [e["node_name"] for e in first["items"] + rest["items"]] == ["n2", "n1", "n0"]
        text = (await viewer.get("/api/v1/events/history.csv")).text
        assert json.dumps("node_added")[1:-1] in text
