"""Plans of nodes that report: what runs there counts, and a plan that does not fit hands out no file."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event, text
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.fleet import service as fleet
from hugeplan.planner.other_node import MOST_TRIED
from hugeplan.planner.remembered import Latest

PREVIEW = "/api/v1/plans/preview"
EXAMPLE = Path(__file__).parents[3] / "docs" / "report.example.json"


def example(number: int = 0, **memory: int) -> dict[str, Any]:
    """The example report of the documentation, ``number`` hours earlier, with lines of meminfo replaced."""
    document: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    moment = (datetime.now(UTC) - timedelta(hours=number)).isoformat()
    document["report_id"] = f"5b0e4a52-7f0c-4f0e-8a53-{number:012d}"
    document["created_at"] = document["sample"]["taken_at"] = moment
    document["sample"]["memory"] |= memory
    return document


def wide(number: str) -> dict[str, Any]:
    """A node with the most memory of all, and so many NUMA nodes and units that its plan takes long."""
    document = example() | {"machine_id": number * 32, "node_name": f"wide-{number}"}
    numa = [{"id": at, "mem_total_bytes": 2**36, "mem_free_bytes": 2**35} for at in range(512)]
    document["inventory"]["numa_nodes"] = document["sample"]["numa"] = numa
    document["sample"]["memory"] |= dict.fromkeys(("mem_total_bytes", "mem_free_bytes", "mem_available_bytes"), 2**45)
    memory = {"source": "cgroup_v2", "anon_bytes": 2**26}
    units = [{"key": f"u{at}", "kind": "service", "name": f"u{at}", "memory": memory} for at in range(500)]
    document["sample"]["units"] = units
    return document


async def stored(service: Service, *reports: dict[str, Any]) -> str:
    """The id of the node that the reports are about."""
    agent = await service.client_as(Role.AGENT)
    node_id = ""
    for document in reports:
        answer = await agent.post("/api/v1/reports", json=document)
        assert answer.status_code == 201, answer.text
        node_id = answer.json()["node_id"]
    return node_id


async def test_the_first_scenario_is_the_databases_as_they_run(service: Service, planner: httpx.AsyncClient) -> None:
    node_id = await stored(service, example())
    scenario = (await planner.get(f"/api/v1/nodes/{node_id}/scenario")).json()
    assert [database["engine"] for database in scenario["databases"]] == ["postgresql", "mysql"]
    first = scenario["databases"][0]
    assert first["settings"] == {"shared_buffers": "16GB", "max_connections": "200", "huge_pages": "try"}
    assert first["runs_as"].startswith("postgresql@container:")
    answer = await planner.post(PREVIEW, json={"node_id": node_id, "scenario": scenario})
    assert answer.status_code == 200, answer.text
    plan = answer.json()["plan"]
    assert {match["instance"] for match in plan["now"]["matches"]} == {"postgresql", "mysql"}
    memory = example()["sample"]["memory"]
    for ledger in (plan["ledger"], plan["now"]["ledger"]):
        assert sum(part["bytes"] for part in ledger["parts"]) == memory["mem_total_bytes"]
    workloads = sum(tenant["now_bytes"] for tenant in plan["now"]["tenants"])
    assert workloads == memory["anon_pages_bytes"] + memory["shmem_bytes"]
    pods = {tenant["name"]: tenant for tenant in plan["now"]["tenants"]}
    # The server's private and shared memory is planned with it, the rest of its pod stays a workload.
    assert pods["shop/orders-db-0"]["database_bytes"] == 1153433600 + 20971520
    assert plan["risk"]["probability"]["high"] > plan["risk"]["policy"], "one sample is no history"


@pytest.mark.parametrize(
    ("limits", "flags", "heap_gib", "mapped_gib", "fits"),
    [
        ((8, 8), {}, 2, 2, True),
        ((8, 8), {"MaxRAMPercentage": "75"}, 6, 6, True),
        ((None, None), {}, 29.96875, 30, True),  # 31.5 GiB are a quarter of the node: beyond compressed pointers
        ((None, None), {"MaxRAMPercentage": "25"}, 31.5, 31.5, True),
        ((8, 8), {"MaxRAMPercentage": "75"}, 6, 2, None),  # its limit was another one when it started
        ((16, 8), {}, 4, None, None),  # releases differ in which of the two they see
        (("?", None), {}, None, None, None),
    ],
)
async def test_a_jvm_takes_a_share_of_what_its_container_leaves_it(  # noqa: PLR0917 - a table
    service: Service,
    limits: tuple[int | str | None, int | None],
    flags: dict[str, str],
    heap_gib: float | None,
    mapped_gib: float | None,
    fits: bool | None,
) -> None:
    """Found: a JVM in a container of 8 GiB was counted at a quarter of its node of 126 GiB, and it fitted."""
    document, gib = example(), 2**30
    sample = document["sample"]
    (server,) = [one for one in sample["databases"] if one["engine"] == "postgresql"]
    sample["databases"] = [server]
    for unit in sample["units"]:
        size = limits[unit["kind"] == "pod"]
        known = isinstance(size, int)
        limit = {"limit_bytes": size * gib if known else None, "limited": None if size == "?" else known}
        unit["memory"] |= limit if unit["kind"] in {"pod", "container"} else {}
    server |= {
        "key": server["key"].replace("postgresql", "jvm").removesuffix(":5432"), "engine": "jvm", "version": "17",
        "settings": {n: {"value": v, "source": "command line"} for n, v in ({"UseG1GC": "true"} | flags).items()},
        "segments": [{"bytes": int(mapped_gib * gib), "backing": "hugetlb", "page_bytes": 2**21,
                      "kind": "anonymous_private"}] if mapped_gib else [],
    }  # fmt: skip
    sample["processes"] = []
    for unit in sample["units"]:
        unit["databases"] = [server["key"]] if unit["kind"] in {"pod", "container"} else []
    node_id = await stored(service, document)
    planner = await service.client_as(Role.PLANNER)
    scenario = (await planner.get(f"/api/v1/nodes/{node_id}/scenario")).json()
    answer = (await planner.post(PREVIEW, json={"node_id": node_id, "scenario": scenario})).json()
    (instance,) = answer["plan"]["instances"]
    if heap_gib is not None and fits:
        assert instance["demand"]["pool_bytes"] == heap_gib * gib
    assert answer["plan"]["fits"] is fits, answer["plan"]["headline"]
    assert ("Xmx of jvm was not read" in answer["plan"]["headline"]) is (fits is None)


async def test_nothing_described_changes_nothing(service: Service, planner: httpx.AsyncClient) -> None:
    node_id = await stored(service, example())
    plan = (await planner.post(PREVIEW, json={"node_id": node_id, "scenario": {}})).json()["plan"]
    assert all(change["now_bytes"] == change["planned_bytes"] for change in plan["difference"]["memory"])
    assert all(change["now_pages"] == change["planned_pages"] for change in plan["difference"]["pools"])
    free = sum(part["bytes"] for part in plan["ledger"]["parts"] if part["kind"] == "free")
    assert free == example()["sample"]["memory"]["mem_free_bytes"]


async def test_the_history_of_the_node_counts(service: Service, planner: httpx.AsyncClient) -> None:
    anon = example()["sample"]["memory"]["anon_pages_bytes"]
    busy = [example(hours, anon_pages_bytes=anon + hours * 2**27) for hours in range(12, 0, -1)]
    node_id = await stored(service, *busy, example())
    plan = (await planner.post(PREVIEW, json={"node_id": node_id, "scenario": {}})).json()["plan"]
    rest = plan["now"]["tenants"][-1]
    # What the service keeps of thirteen samples, one per hour: the largest of each hour.
    assert "13 hourly maxima" in rest["basis"]
    assert rest["planned_bytes"] >= rest["now_bytes"] + 12 * 2**27


async def test_the_next_preview_reads_the_node_again_only_when_it_changed(
    service: Service, planner: httpx.AsyncClient
) -> None:
    """A slider asks at every step: who asks, whether the node changed, trials of it and its type, no more."""
    agent = await service.client_as(Role.AGENT)
    node_id = (await agent.post("/api/v1/reports", json=example())).json()["node_id"]
    body = {"node_id": node_id, "scenario": {}}
    first = (await planner.post(PREVIEW, json=body)).json()["plan"]
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "webhooks" not in statement:  # their deliveries look around by themselves, at any moment
            statements.append(statement)

    event.listen(service.database.engine.sync_engine, "before_cursor_execute", note)
    again = (await planner.post(PREVIEW, json=body)).json()["plan"]
    event.remove(service.database.engine.sync_engine, "before_cursor_execute", note)
    assert again == first
    # A trial is sent at any time and changes no report, so it is asked for each time.
    assert [sum(word in one for one in statements) for word in ("FROM tokens", "FROM trials")] == [1, 2], statements
    assert len(statements) == 4, statements
    less = example(0, mem_available_bytes=2**33, mem_free_bytes=2**32)
    less["report_id"] = "5b0e4a52-7f0c-4f0e-8a53-00000000ffff"
    assert (await agent.post("/api/v1/reports", json=less)).status_code == 201
    plan = (await planner.post(PREVIEW, json=body)).json()["plan"]
    assert plan["now"]["available_bytes"] == 2**33
    async with service.database.write() as session:
        # As a replica of the release before does it, which writes the processes beside the sample.
        change = (
            "UPDATE node_states SET sample = jsonb_set(sample, '{memory,mem_available_bytes}', '4096'),"
            " processes_kept = '[]'"
        )
        await session.execute(text(change))
    plan = (await planner.post(PREVIEW, json=body)).json()["plan"]
    assert plan["now"]["available_bytes"] == 4096


async def test_workloads_are_left_out_on_request_and_the_risk_is_then_unknown(
    service: Service, planner: httpx.AsyncClient
) -> None:
    node_id = await stored(service, example())
    scenario = {"observed": {"workloads": False}}
    plan = (await planner.post(PREVIEW, json={"node_id": node_id, "scenario": scenario})).json()["plan"]
    assert plan["risk"]["probability"] is None
    excluded = {"observed": {"exclude": ["mysql.service"]}}
    plan = (await planner.post(PREVIEW, json={"node_id": node_id, "scenario": excluded})).json()["plan"]
    (gone,) = [tenant for tenant in plan["now"]["tenants"] if tenant["name"] == "mysql.service"]
    assert gone["planned_bytes"] is None
    assert gone["now_bytes"] > 2**34


async def test_files_of_a_plan_that_does_not_fit_are_held_back(service: Service, planner: httpx.AsyncClient) -> None:
    node_id = await stored(service, example())
    settings = {"shared_buffers": "110GB"}
    scenario = {"databases": [{"name": "main", "engine": "postgresql", "version": "17", "settings": settings}]}
    preview = (await planner.post(PREVIEW, json={"node_id": node_id, "scenario": scenario})).json()
    assert preview["plan"]["feasible"] is False
    assert preview["artifacts"] == []
    assert preview["plan"]["headline"].startswith("Does not fit db-7: ")
    saved = await planner.post("/api/v1/scenarios", json={"name": "x", "node_id": node_id, "scenario": scenario})
    made = (await planner.post(f"/api/v1/scenarios/{saved.json()['id']}/plans")).json()
    assert made["artifacts"] == []
    for path in ("artifacts", "artifacts/sysctl", "artifacts.zip"):
        answer = await planner.get(f"/api/v1/plans/{made['id']}/{path}")
        problem = assert_problem(answer, 409, "plan-does-not-fit")
        assert "the largest shared_buffers" in problem["detail"].lower()
    forced = (await planner.get(f"/api/v1/plans/{made['id']}/artifacts", params={"force": "true"})).json()
    assert forced["items"]
    assert all("WARNING: Does not fit db-7" in item["content"] + item["summary"] for item in forced["items"])


async def test_a_node_with_a_kubelet_is_planned_as_one_of_kubernetes(
    service: Service, planner: httpx.AsyncClient
) -> None:
    node_id = await stored(service, example())
    scenario = (await planner.get(f"/api/v1/nodes/{node_id}/scenario")).json()
    assert scenario["reservations"] == {"kubernetes": True}
    answer = await planner.put(f"/api/v1/nodes/{node_id}/labels", json={"labels": {"provider": "gke"}})
    assert answer.status_code == 200, answer.text
    scenario = (await planner.get(f"/api/v1/nodes/{node_id}/scenario")).json()
    assert scenario["reservations"] == {"kubernetes": True, "provider": "gke"}
    answer = await planner.post(PREVIEW, json={"node_id": node_id, "scenario": scenario})
    assert answer.status_code == 200, answer.text
    assert answer.json()["plan"]["kubernetes"] is not None
    bare = example(1)
    bare["machine_id"] = "0" * 31 + "7"
    bare["sample"]["kubelet"] = None
    other_id = await stored(service, bare)
    assert "reservations" not in (await planner.get(f"/api/v1/nodes/{other_id}/scenario")).json()


async def test_another_node_of_the_fleet_is_offered_where_the_database_fits(
    service: Service, planner: httpx.AsyncClient
) -> None:
    node_id = await stored(service, example())
    small = example(1) | {"machine_id": "1" * 32, "node_name": "db-small"}
    large = example(2) | {"machine_id": "2" * 32, "node_name": "db-large"}
    large["sample"] = json.loads(json.dumps(large["sample"]))
    large["sample"]["memory"] |= {
        name: large["sample"]["memory"][name] + 512 * 2**30
        for name in ("mem_total_bytes", "mem_free_bytes", "mem_available_bytes")
    }
    for numa in large["sample"].get("numa") or []:
        numa["mem_total_bytes"] += 512 * 2**30 // len(large["sample"]["numa"])
    settings = {"shared_buffers": "110GB"}
    database = {"name": "main", "engine": "postgresql", "version": "17", "settings": settings}
    body = {"node_id": node_id, "scenario": {"databases": [database]}}
    alone = (await planner.post(PREVIEW, json=body)).json()["plan"]
    assert not [option for option in alone["shortfall"]["options"] if option["kind"] == "node"]
    for document in (small, large):
        await stored(service, document | {"created_at": datetime.now(UTC).isoformat()})
    plan = (await planner.post(PREVIEW, json=body)).json()["plan"]
    (offer,) = [option for option in plan["shortfall"]["options"] if option["kind"] == "node"]
    assert (offer["instance"], offer["node"]) == ("main", "db-large")
    assert offer["text"].startswith("main fits on db-large: ")
    for number in "345":
        await stored(service, wide(number))
    assert (await planner.post(PREVIEW, json=body)).json()["plan"]["shortfall"] == plan["shortfall"]
    large_id = next(n["id"] for n in (await planner.get("/api/v1/nodes")).json()["items"] if n["name"] == "db-large")
    there = (await planner.post(PREVIEW, json=body | {"node_id": large_id})).json()["plan"]
    assert there["feasible"] is True
    async with service.database.write() as session:  # one credential may have many clones, and each says what it likes
        await session.execute(text("UPDATE nodes SET machine_id = machine_id || '~a' WHERE name = 'db-large'"))
    cloned = (await planner.post(PREVIEW, json=body)).json()["plan"]
    assert not [option for option in cloned["shortfall"]["options"] if option["kind"] == "node"]


async def test_nodes_that_lack_a_figure_do_not_hold_up_who_asks_where_it_fits(
    service: Service, planner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 300 that are listed were read for each plan without room: 310 made-up ones took 5 s of the event loop."""
    node_id = await stored(service, example())
    most = dict.fromkeys(("mem_total_bytes", "mem_free_bytes", "mem_available_bytes"), 2**45)
    for number in range(8):
        odd = example(0, **most) | {"machine_id": str(number) * 32, "node_name": f"odd-{number}"}
        odd["inventory"].pop("default_huge_page_bytes")
        await stored(service, odd)
    asked: list[object] = []
    get_facts = fleet.get_facts

    async def noted(*given: Any) -> Any:
        asked.append(given)
        return await get_facts(*given)

    monkeypatch.setattr(fleet, "get_facts", noted)
    database = {"name": "main", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "110GB"}}
    answer = await planner.post(PREVIEW, json={"node_id": node_id, "scenario": {"databases": [database]}})
    assert answer.status_code == 200, answer.text
    assert not answer.json()["plan"]["feasible"]
    assert len(asked) == 1 + MOST_TRIED


async def test_files_are_compared_with_the_plan_in_force_of_the_node(
    service: Service, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    node_id = await stored(service, example())
    scenario = (await planner.get(f"/api/v1/nodes/{node_id}/scenario")).json()
    saved = await planner.post("/api/v1/scenarios", json={"name": "x", "node_id": node_id, "scenario": scenario})
    first = (await planner.post(f"/api/v1/scenarios/{saved.json()['id']}/plans")).json()
    url = f"/api/v1/plans/{first['id']}/artifacts-diff"
    none = await planner.get(url)
    assert none.status_code == 409
    assert "No saved plan is in force" in none.json()["detail"]
    for step in ("propose", "approve", "in-force"):
        done = await admin.post(f"/api/v1/plans/{first['id']}/{step}", headers={"If-Match": "*"})
        assert done.status_code == 200, done.text
    same = (await planner.get(url)).json()
    assert (same["against"], same["items"]) == (first["id"], [])


async def test_nodes_that_were_planned_are_remembered_by_the_size_of_their_reports(
    service: Service, planner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "_known_facts", Latest[Any, Any](120_000))
    ids = []
    for number in range(4):
        document = example() | {"machine_id": f"{number:032x}"}
        memory = {"source": "cgroup_v2", "anon_bytes": 1}
        unit = {"kind": "service", "name": "n" * 200, "memory": memory, "databases": []}
        document["sample"]["units"] = [unit | {"key": f"u{n}"} for n in range(150)]
        ids.append(await stored(service, document))
        assert (await planner.get(f"/api/v1/nodes/{ids[-1]}/scenario")).status_code == 200
    kept = [fleet._known_facts.get(uuid.UUID(node_id)) is not None for node_id in ids]
    assert kept == [False, False, True, True]
