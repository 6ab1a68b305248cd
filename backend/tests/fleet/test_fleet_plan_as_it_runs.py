"""A fleet plan without a scenario takes each node as it runs; its groups say what changes on each of their nodes."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import event, text
from support.reports import GIB, MIB, report
from support.service import Service, assert_problem, somebody_waits

from hugeplan.access.schemas import Role
from hugeplan.db.locks import AdvisoryLock
from hugeplan.db.models import FleetPlanNodeRow
from hugeplan.plans import fleet_rows

API = "/api/v1"


def database_node(number: int, *, pages: int, brand: str = "AMD EPYC", buffers: str = "4GB") -> dict[str, Any]:
    """A node with one PostgreSQL on base pages beside a pool that nobody uses."""
    document = report(machine_id=f"{number:032x}", node_name=f"node-{number}")
    document["inventory"]["cpu"]["brand"] = brand
    sample = document["sample"]
    for pool in (sample["pools"][0], sample["global_pools"][0]):
        pool |= {"nr_hugepages": pages, "free_hugepages": pages}
    sample["memory"]["hugetlb_bytes"] = pages * 2 * MIB
    sample["databases"] = [
        {
            "key": "postgresql:main",
            "engine": "postgresql",
            "version": "17",
            "main_pid": 11,
            "owner_uid": 100 + number,
            "client_count": 20,
            "settings": {"shared_buffers": {"value": buffers, "source": "command line"}},
            "memory": {"private_bytes": GIB, "hugetlb_bytes": 0},
            "segments": [{"bytes": 4 * GIB, "backing": "base_pages"}],
            "huge_pages_status": "off",
        }
    ]
    return document


@pytest_asyncio.fixture
async def job(service: Service, planner: httpx.AsyncClient) -> AsyncIterator[dict[str, Any]]:
    """A finished plan of four nodes: two alike, one of another machine type, one with a smaller pool."""
    for document in (
        database_node(1, pages=8000),
        database_node(2, pages=8000),
        database_node(3, pages=8000, brand="Intel Xeon"),
        database_node(4, pages=100),
    ):
        agent = await service.client_as(Role.AGENT, machine_id=document["machine_id"])
        assert (await agent.post(f"{API}/reports", json=document)).status_code == 201
    begun = await planner.post(f"{API}/fleet/plan", json={"name": "as it runs"})
    assert begun.status_code == 202, begun.text
    url = f"{API}/fleet/plans/{begun.json()['id']}"
    async with planner.stream("GET", f"{url}/progress") as stream:
        await stream.aread()
    found = (await planner.get(url)).json()
    assert found["status"] == "done", found
    yield found | {"url": url}
    await service.app.state.fleet_plan_runner.close()


async def groups(client: httpx.AsyncClient, job: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(f"{job['url']}/groups")).json()["items"]
    return found


async def test_a_group_is_one_machine_type_with_the_same_pools_now_and_then(
    viewer: httpx.AsyncClient, planner: httpx.AsyncClient, job: dict[str, Any]
) -> None:
    assert job["scenario"] is None
    found = await groups(viewer, job)
    assert sorted(group["nodes"] for group in found) == [1, 1, 2]
    for group in found:
        figures = group["figures"]
        assert sum(figures["answers"].values()) == group["nodes"]
        (size,) = figures["sizes"]
        assert size["planned_pages"] * size["page_bytes"] >= 4 * GIB
        assert figures["returned_bytes"] == (size["present_pages"] - size["planned_pages"]) * size["page_bytes"]
        rows = (await viewer.get(f"{job['url']}/nodes", params={"group_number": group["number"]})).json()["items"]
        assert len(rows) == group["nodes"]
        # The reason is that of a verdict, and names the node of that verdict.
        name, _, reason = figures["reason"].partition(": ")
        (node_id,) = (row["node_id"] for row in rows if row["name"] == name)
        kept = (await planner.post(f"{job['url']}/nodes/{node_id}/plan")).json()
        assert reason == kept["verdict"]["reason"]
        assert kept["verdict"]["answer"] in figures["answers"]
    largest = found[0]
    assert (largest["nodes"], largest["figures"]["sizes"][0]["present_pages"]) == (2, 8000)
    # Nodes number their users as they like, and the plan of a group is for all of its nodes.
    detail = (await viewer.get(f"{job['url']}/groups/{largest['number']}")).json()
    assert [instance["owner_uid"] for instance in detail["plan"]["instances"]] == [None]


async def test_a_row_is_the_nodes_own_plan_as_it_runs(planner: httpx.AsyncClient, job: dict[str, Any]) -> None:
    rows = (await planner.get(f"{job['url']}/nodes")).json()["items"]
    for row in rows:
        plan = (await planner.post(f"{job['url']}/nodes/{row['node_id']}/plan")).json()
        assert plan["plan"]["net_memory"]["locked_bytes"] == row["locked_bytes"]
        (instance,) = plan["plan"]["instances"]
        number = int(row["name"].removeprefix("node-"))
        assert (instance["engine"], instance["owner_uid"]) == ("postgresql", 100 + number)


async def test_one_group_is_decided_about_alone(
    planner: httpx.AsyncClient, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_rows, "SECONDS_PER_CALL", 60.0)
    largest = (await groups(planner, job))[0]
    body = {"to": "propose", "group_number": largest["number"]}
    done = (await planner.post(f"{job['url']}/decisions", json=body)).json()
    assert (done["done"] + len(done["skipped"]), done["next"]) == (2, None)
    kept = (await planner.get(f"{API}/plans", params={"fleet_plan_id": job["id"]})).json()["items"]
    rows = (await planner.get(f"{job['url']}/nodes", params={"group_number": largest["number"]})).json()["items"]
    assert {plan["node_id"] for plan in kept} <= {row["node_id"] for row in rows}


async def test_decisions_hold_nothing_that_reports_take_last_while_they_wait_for_a_node(
    service: Service, admin: httpx.AsyncClient, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_rows, "SECONDS_PER_CALL", 60.0)
    for body in ({"to": "propose"}, {"to": "approve", "accept_unknown_fit": True}):
        done = (await admin.post(f"{job['url']}/decisions", json=body)).json()
        assert done["done"] == 4, done
    last = (await admin.get(f"{job['url']}/nodes")).json()["items"][-1]["node_id"]
    async with service.database.write() as reports:
        await reports.execute(text("SELECT FROM nodes WHERE id = :id FOR UPDATE"), {"id": last})
        decided = asyncio.create_task(admin.post(f"{job['url']}/decisions", json={"to": "in_force"}))
        await somebody_waits(reports)
        events = text(f"SELECT pg_try_advisory_xact_lock({AdvisoryLock.EVENTS:d})")
        assert await reports.scalar(events), "a report of the node that is waited for could not be stored"
    assert (await decided).json()["done"] == 4


async def test_the_files_of_a_group_name_its_nodes(viewer: httpx.AsyncClient, job: dict[str, Any]) -> None:
    largest = (await groups(viewer, job))[0]
    read: list[FleetPlanNodeRow] = []
    event.listen(FleetPlanNodeRow, "load", keep := lambda row, _: read.append(row))
    answer = await viewer.get(f"{job['url']}/groups/{largest['number']}/files.zip")
    event.remove(FleetPlanNodeRow, "load", keep)
    assert answer.status_code == 200, answer.text
    assert len(read) == 1, "a group may have as many nodes as the fleet: of the others the names alone are read"
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.read("nodes.txt").decode().split() == ["node-1", "node-2"]
    assert "2 nodes that get the same files" in archive.read("README.md").decode()
    folders = {name.split("/")[0] for name in archive.namelist() if "/" in name}
    assert "alternatives" in folders
    assert {name[0] for name in folders - {"alternatives"}} == {str(n + 1) for n in range(len(folders) - 1)}, (
        "the steps are numbered without a gap"
    )
    assert_problem(await viewer.get(f"{job['url']}/groups/99/files.zip"), 404, "not-found")
    for address in ("groups/{}", "groups/{}/files.zip"):
        assert_problem(await viewer.get(f"{job['url']}/{address.format(2**63)}"), 422, "invalid-input")


@pytest.mark.usefixtures("job")
async def test_a_node_that_is_silent_is_said_on_its_row_and_left_out_of_its_groups_hosts(
    service: Service, planner: httpx.AsyncClient
) -> None:
    """Its files are made from a report of long ago."""
    async with service.database.write() as session:
        heard = "UPDATE nodes SET last_report_at = '2026-01-02 03:04+00' WHERE name IN ('node-2', 'node-3')"
        await session.execute(text(heard))
    again = {"url": f"{API}/fleet/plans/{(await planner.post(f'{API}/fleet/plan', json={'name': 'x'})).json()['id']}"}
    async with planner.stream("GET", f"{again['url']}/progress") as stream:
        await stream.aread()
    silent = "silent since 2026-01-02 03:04 UTC"
    rows = (await planner.get(f"{again['url']}/nodes")).json()["items"]
    said = {row["name"]: [text for text in row["exceptions"] if silent in text] for row in rows}
    found = {name: [f"{name} has been {silent}."] if name in ("node-2", "node-3") else [] for name in said}
    assert said == found
    assert len(said) == 4
    assert {row["severity"] for row in rows if said[row["name"]]} <= {"attention", "wrong"}
    files = {}
    for group in await groups(planner, again):
        answer = await planner.get(f"{again['url']}/groups/{group['number']}/files.zip")
        archive = zipfile.ZipFile(io.BytesIO(answer.content))
        hosts = archive.read("nodes.txt").decode() if "nodes.txt" in archive.namelist() else None
        files[hosts] = archive.read("README.md").decode()
    assert {hosts: silent in readme for hosts, readme in files.items()} == {"node-1\n": True, "": True, None: False}
    assert "1 of the 2 nodes are left out of `nodes.txt`" in files["node-1\n"]
    assert "that get the same files" not in files[""]


async def test_a_node_without_a_hosts_name_leaves_no_group_without_files(
    service: Service, viewer: httpx.AsyncClient, job: dict[str, Any]
) -> None:
    largest = (await groups(viewer, job))[0]
    async with service.database.write() as session:
        for table in ("fleet_plan_nodes", "nodes"):
            await session.execute(text(f"UPDATE {table} SET name = '!rep', mem_total_bytes = 1 WHERE name = 'node-1'"))
    answer = await viewer.get(f"{job['url']}/groups/{largest['number']}/files.zip")
    assert answer.status_code == 200, answer.text
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.read("nodes.txt").decode().split() == ["node-2"]
    assert "made for node-2" in " ".join(archive.read("README.md").decode().split())


@pytest.mark.parametrize("changed", [{"buffers": "6GB"}, {"pages": 7000, "buffers": "5GB"}, None])
async def test_a_node_that_has_changed_since_keeps_back_its_own_files_alone(
    service: Service, planner: httpx.AsyncClient, job: dict[str, Any], changed: dict[str, Any] | None
) -> None:
    """The node with the least memory stands for its group, and any agent may say that it has less than others."""
    largest = (await groups(planner, job))[0]
    async with service.database.write() as session:
        await session.execute(text("UPDATE fleet_plan_nodes SET mem_total_bytes = 1 WHERE name = 'node-2'"))
        if changed is None:
            await session.execute(text("DELETE FROM nodes WHERE name = 'node-2'"))
    if changed is not None:
        agent = await service.client_as(Role.AGENT, machine_id=f"{2:032x}")
        document = database_node(2, **{"pages": 8000, **changed})
        assert (await agent.post(f"{API}/reports", json=document)).status_code == 201
    address = f"{job['url']}/groups/{largest['number']}/files.zip"
    answer = await planner.get(address)
    assert answer.status_code == 200, answer.text
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    readme = " ".join(archive.read("README.md").decode().split())
    assert archive.read("nodes.txt").decode().split() == ["node-1"]
    assert "made for node-1" in readme
    assert f"node-2 ({'gone' if changed is None else 'has no such files any more'})" in readme
    agent = await service.client_as(Role.AGENT, machine_id=f"{1:032x}")
    document = database_node(1, pages=8000, buffers="6GB")
    assert (await agent.post(f"{API}/reports", json=document)).status_code == 201
    assert_problem(await planner.get(address), 409, "conflict")


@pytest.mark.parametrize("name", ["a.localhost", "10.0.0.7", "a;b", "db-1."])
async def test_a_listed_host_stands_for_its_group(
    service: Service, viewer: httpx.AsyncClient, job: dict[str, Any], name: str
) -> None:
    largest = (await groups(viewer, job))[0]
    async with service.database.write() as session:
        for table in ("fleet_plan_nodes", "nodes"):
            odd = text(f"UPDATE {table} SET name = :name, mem_total_bytes = 1 WHERE name = 'node-1'")
            await session.execute(odd, {"name": name})
    answer = await viewer.get(f"{job['url']}/groups/{largest['number']}/files.zip")
    assert answer.status_code == 200, answer.text
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.read("nodes.txt").decode().split() == ["node-2"]
    assert "made for node-2" in " ".join(archive.read("README.md").decode().split())


def on_kubernetes(number: int, *, kube_reserved: str) -> dict[str, Any]:
    document = database_node(number, pages=8000)
    total = document["sample"]["memory"]["mem_total_bytes"]
    document["sample"]["kubelet"] = {
        "version": "v1.34.0",
        "capacity": {"memory": total, "pods": 110},
        "allocatable": {"memory": total - 3 * GIB},
        "config": {"kubeReserved": {"memory": kube_reserved}, "evictionHard": {"memory.available": "500Mi"}},
        "config_source": "api",
    }
    return document


async def test_the_files_of_a_group_are_those_of_each_of_its_nodes(
    service: Service, planner: httpx.AsyncClient
) -> None:
    """Kubelets that set aside another amount get another file; a kubelet that changed since gets none."""
    agents = {}
    for number, kube_reserved in ((1, "1Gi"), (2, "1Gi"), (3, "2Gi")):
        agent = agents[number] = await service.client_as(Role.AGENT, machine_id=f"{number:032x}")
        sent = await agent.post(f"{API}/reports", json=on_kubernetes(number, kube_reserved=kube_reserved))
        assert sent.status_code == 201, sent.text
    scenario = {
        "reservations": {"kubernetes": True},
        "databases": [{"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "1GB"}}],
    }
    begun = (await planner.post(f"{API}/fleet/plan", json={"name": "reserved", "scenario": scenario})).json()
    job = {"url": f"{API}/fleet/plans/{begun['id']}"}
    async with planner.stream("GET", f"{job['url']}/progress") as stream:
        await stream.aread()
    found = await groups(planner, job)
    assert [group["nodes"] for group in found] == [2, 1]
    for group, reserved in zip(found, ("1Gi", "2Gi"), strict=True):
        answer = await planner.get(f"{job['url']}/groups/{group['number']}/files.zip")
        assert answer.status_code == 200, answer.text
        archive = zipfile.ZipFile(io.BytesIO(answer.content))
        (name,) = (name for name in archive.namelist() if name.endswith("kubelet.conf"))
        assert f"kubeReserved:\n  memory: {reserved}\n" in archive.read(name).decode()

    rows = (await planner.get(f"{job['url']}/nodes", params={"group_number": found[1]["number"]})).json()["items"]
    own = f"{job['url']}/nodes/{rows[0]['node_id']}/plan"
    for number in (1, 2, 3):
        changed = on_kubernetes(number, kube_reserved="4Gi")
        assert (await agents[number].post(f"{API}/reports", json=changed)).status_code == 201
    assert (await planner.post(own)).status_code == 201  # the same pools; its own files are those of its newest report
    for group in found:
        problem = await planner.get(f"{job['url']}/groups/{group['number']}/files.zip")
        assert_problem(problem, 409, "conflict")
        assert "have changed since the fleet plan" in problem.json()["detail"]
    await service.app.state.fleet_plan_runner.close()
