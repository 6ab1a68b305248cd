"""A fleet plan's line of a node is the node's own plan, which is the command line's and an import's, to the byte."""

from __future__ import annotations

import random
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from support.reports import GIB, MIB, report, run
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.documents.decoding import convert
from hugeplan.documents.report import Inventory, Sample
from hugeplan.fleet.facts import node_facts
from hugeplan.fleet.observation import node_sample
from hugeplan.inventory.answer import answer
from hugeplan.inventory.model import FoundDatabase, FoundNode
from hugeplan.inventory.model import Inventory as FoundInventory
from hugeplan.planner.fleet import plan_node
from hugeplan.planner.plan import plan
from hugeplan.recognition import Recognised
from hugeplan.recognition.base import Confidence
from hugeplan.scenario_file import ScenarioDocument, to_request

FLEET = "/api/v1/fleet"
MYSQL = {"name": "shop", "engine": "mysql", "version": "8.0", "settings": {"innodb_buffer_pool_size": "104G"}}

RECOGNISED = Recognised(
    engine="mysql", container="mysql", version="8.0", settings={}, sources={}, source="a test",
    confidence=Confidence.HIGH, complete=True,
)  # fmt: skip


def scenario(*databases: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"databases": list(databases), **parts}


async def finished(client: httpx.AsyncClient, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A job when it has ended, and its lines."""
    made = await client.post(f"{FLEET}/plan", json=body)
    assert made.status_code == 202, made.text
    url = f"{FLEET}/plans/{made.json()['id']}"
    async with client.stream("GET", f"{url}/progress") as stream:
        await stream.aread()
    lines = (await client.get(f"{url}/nodes", params={"limit": 200})).json()["items"]
    return (await client.get(url)).json(), lines


async def store(service: Service, document: dict[str, Any]) -> None:
    """Store a report with a token of its machine."""
    agent = await service.client_as(Role.AGENT, machine_id=document["machine_id"])
    answered = await agent.post("/api/v1/reports", json=document)
    assert answered.status_code == 201, answered.text


def random_report(rng: random.Random, number: int) -> dict[str, Any]:
    """A node as agents report them: any size, NUMA nodes, pools with pages in use, workloads, a database, a kubelet."""
    numa = rng.choice([1, 1, 2])
    total = rng.randrange(24, 256) * GIB + rng.randrange(GIB // 4096) * 4096
    pages = rng.choice([0, 0, rng.randrange(1, total // (8 * MIB))])
    used = rng.randrange(pages + 1)
    ordinary = total - pages * 2 * MIB
    anonymous = int(ordinary * rng.uniform(0.05, 0.6))
    free = int((ordinary - anonymous) * rng.uniform(0.1, 0.9))
    per_node = [total // numa] * (numa - 1) + [total - total // numa * (numa - 1)]
    shares = [pages // numa] * (numa - 1) + [pages - pages // numa * (numa - 1)]
    uses = [min(share, used // numa) for share in shares]
    sample: dict[str, Any] = {
        "taken_at": datetime.now(UTC).isoformat(),
        "memory": {
            "mem_total_bytes": total, "mem_free_bytes": free, "mem_available_bytes": free + anonymous // 4,
            "cached_bytes": ordinary - anonymous - free, "anon_pages_bytes": anonymous, "shmem_bytes": 0,
            "s_unreclaim_bytes": GIB // 4, "kernel_stack_bytes": 32 * MIB, "page_tables_bytes": 64 * MIB,
        },
        "pools": [
            {"numa_node": n, "page_bytes": 2 * MIB, "nr_hugepages": shares[n], "free_hugepages": shares[n] - uses[n],
             "surplus_hugepages": 0}
            for n in range(numa)
        ],
        "global_pools": [
            {"page_bytes": 2 * MIB, "nr_hugepages": pages, "free_hugepages": pages - sum(uses), "resv_hugepages": 0,
             "surplus_hugepages": 0, "nr_overcommit_hugepages": 0},
        ],
        "numa": [{"id": n, "mem_total_bytes": per_node[n], "mem_free_bytes": free // numa} for n in range(numa)],
        "units": [
            {"key": f"u{k}", "kind": rng.choice(["pod", "service"]), "name": f"unit {k}",
             "memory": {"source": "cgroup_v2", "anon_bytes": rng.randrange(GIB), "shmem_bytes": 0}}
            for k in range(rng.randrange(5))
        ],
        "processes": [],
    }  # fmt: skip
    if rng.random() < 0.5:
        sample["databases"] = [
            {"key": "mysql:3306", "engine": "mysql", "version": "8.0", "main_pid": 7, "client_count": 20,
             "settings": {"innodb_buffer_pool_size": {"value": "8G", "source": "command line"}},
             "memory": {"private_bytes": GIB, "hugetlb_bytes": sum(uses) * 2 * MIB},
             "segments": [{"bytes": 8 * GIB, "backing": "base"}], "huge_pages_status": "off"}
        ]  # fmt: skip
    if rng.random() < 0.5:
        config = {"kubeReserved": {"memory": "2Gi"}, "evictionHard": {"memory.available": "5%"}}
        sample["kubelet"] = {
            "version": "v1.31.0",
            "capacity": {"memory": total, "pods": 110},
            "allocatable": {"memory": total - 3 * GIB},
            "config": rng.choice([None, config]),
            "config_source": "api",
        }
    return report(
        machine_id=f"{number:032x}",
        node_name=f"node-{number:02}",
        benchmark=run() if rng.random() < 0.3 else None,
        inventory={
            "numa_nodes": [{"id": n, "mem_total_bytes": per_node[n]} for n in range(numa)],
            "huge_page_sizes_bytes": rng.choice([[2 * MIB], [2 * MIB, GIB]]),
            "default_huge_page_bytes": 2 * MIB,
        },
        sample=sample,
    )


async def with_history(service: Service, rng: random.Random) -> None:
    """Hours of the past week for the nodes that are there, as the roll-ups would have made them."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    async with service.database.write() as session:
        nodes = (await session.execute(text("SELECT id, mem_total_bytes FROM nodes ORDER BY name"))).all()
        for node_id, total in nodes:
            for hour in range(1, rng.choice([2, 30, 60])):
                await session.execute(
                    text(
                        "INSERT INTO sample_hours (node_id, start_at, samples, mem_total_bytes_max,"
                        " mem_available_bytes_sum, mem_available_samples, anon_shmem_bytes_max)"
                        " VALUES (:id, :at, 1, :total, 0, 0, :used)"
                    ),
                    {
                        "id": node_id,
                        "at": now - timedelta(hours=hour),
                        "total": total,
                        "used": rng.randrange(total // 2),
                    },
                )


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_line_is_the_nodes_own_plan(service: Service, planner: httpx.AsyncClient, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(12):
        await store(service, random_report(rng, number))
    await with_history(service, rng)
    asked = scenario(
        {"name": "shop", "engine": "mysql", "version": "8.0",
         "settings": {"innodb_buffer_pool_size": f"{rng.choice([4, 16, 60])}G"}},
        reservations={"kubernetes": seed == 1},
        tenants=[{"name": "app", "kind": "service", "request": "1Gi", "limit": "2Gi"}],
    )  # fmt: skip
    job, lines = await finished(planner, {"scenario": asked})
    assert (job["status"], len(lines)) == ("done", 12)
    groups: dict[int, dict[str, Any]] = {}
    for line in lines:
        body = {"node_id": line["node_id"], "scenario": asked, "files": False}
        own = (await planner.post("/api/v1/plans/preview", json=body)).json()["plan"]
        number = line["group_number"]
        if number not in groups:
            groups[number] = (await planner.get(f"{FLEET}/plans/{job['id']}/groups/{number}")).json()
        shared = groups[number]["plan"]
        assert [(p["numa_node"], p["page_bytes"], p["pages"]) for p in own["pools"] if p["pages"]] == [
            (p["numa_node"], p["page_bytes"], p["pages"]) for p in shared["pools"] if p["pages"]
        ]
        if shared["node"] == line["name"]:
            assert without_option(shared) == without_option(own)
        free = sum(part["bytes"] for part in own["ledger"]["parts"] if part["kind"] == "free")
        assert (line["free_bytes"], line["fits"]) == (free, own["fits"])
        assert line["locked_bytes"] == own["net_memory"]["locked_bytes"]
        said = {f"{f['subject']}: {f['title']}" for f in own["findings"] if f["state"] in ("wrong", "attention")}
        said.add(own["headline"] if own["shortfall"] is None else f"{own['headline']} {own['shortfall']['reason']}")
        assert {text for text in line["exceptions"] if ": " in text} <= said


def without_option(found: dict[str, Any]) -> dict[str, Any]:
    """A plan without the other node that a preview looks for where it does not fit."""
    if not found["shortfall"]:
        return found
    options = [option for option in found["shortfall"]["options"] if option["kind"] != "node"]
    return found | {"shortfall": found["shortfall"] | {"options": options}}


def test_the_command_line_and_an_import_say_the_same() -> None:
    rng = random.Random(4)
    for number in range(20):
        document = random_report(rng, number)
        inventory, sample = convert(Inventory, document["inventory"]), convert(Sample, document["sample"])
        facts = node_facts(document["node_name"], inventory, sample, measured=None)
        observed = node_sample(inventory, sample, sample.processes)
        request = to_request(ScenarioDocument.model_validate(scenario(MYSQL)), facts, sample=observed)
        own = plan(request)
        assert plan_node(request).plan == own
        found = FoundNode(
            facts=facts,
            reservations=request.reservations,
            sample=observed,
            databases=tuple(
                FoundDatabase(instance=one, recognised=RECOGNISED, namespace="", workload="shop", node=facts.name)
                for one in request.databases
            ),
        )
        imported = answer(FoundInventory(source="a test", nodes=(found,))).nodes[0]
        assert imported.plan is not None
        assert asdict(imported.plan) == asdict(own)


async def test_the_example_does_not_fit_in_both(service: Service, planner: httpx.AsyncClient) -> None:
    """104 GiB of MySQL beside the workloads of a node of 128 GiB: the node's plan and the fleet's say the same."""
    rng = random.Random(0)
    document = random_report(rng, 1)
    total = 128 * GIB
    document["inventory"] |= {"numa_nodes": [{"id": 0, "mem_total_bytes": total}]}
    document["sample"] |= {"units": [], "pools": [], "databases": [], "numa": []}
    document["sample"]["global_pools"] = []
    document["sample"]["memory"] |= {
        "mem_total_bytes": total, "mem_free_bytes": 60 * GIB, "mem_available_bytes": 70 * GIB,
        "cached_bytes": 20 * GIB, "anon_pages_bytes": 44 * GIB,
    }  # fmt: skip
    await store(service, document)
    _, (line,) = await finished(planner, {"scenario": scenario(MYSQL)})
    body = {"node_id": line["node_id"], "scenario": scenario(MYSQL)}
    own = (await planner.post("/api/v1/plans/preview", json=body)).json()["plan"]
    assert own["feasible"] is False
    assert (line["fits"], line["severity"]) == (False, "wrong")


async def test_an_odd_node_never_fails_a_job(service: Service, planner: httpx.AsyncClient) -> None:
    """Three nodes with 1G pages and a virtual machine without them: three plans, and one line that says why."""
    rng = random.Random(5)
    for number in range(4):
        document = random_report(rng, number)
        document["inventory"]["huge_page_sizes_bytes"] = [2 * MIB] if number == 2 else [2 * MIB, GIB]
        await store(service, document)
    asked = scenario(
        {"name": "shop", "engine": "generic", "settings": {"segment_size": "2GiB"}, "page_size": "1G"},
    )
    job, lines = await finished(planner, {"scenario": asked})
    assert (job["status"], job["error"]) == ("done", None)
    (odd,) = [line for line in lines if line["group_number"] is None]
    assert (odd["name"], odd["severity"]) == ("node-02", "wrong")
    assert odd["exceptions"][0].startswith("node-02: ")
    assert "page" in odd["exceptions"][0]
    assert job["summary"]["nodes_without_facts"] == 1
    assert job["summary"]["nodes_fit_unknown"] == 1, "not among those that fit"
