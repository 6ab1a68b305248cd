"""One scenario has one answer: command, API, planner and text say the same, whatever the units it is written in."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from support.seeds import SEEDS

from hugeplan.artifacts import render
from hugeplan.cli import main
from hugeplan.cli.plan_answer import plan_answer
from hugeplan.cli.plan_text import plan_text
from hugeplan.planner.model import GIB, MIB, Plan, PlanRequest
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import load, to_request


def scenario(rng: random.Random) -> dict[str, Any]:
    nodes = rng.choice((1, 1, 2))
    databases = []
    for index in range(rng.choice((1, 2, 3))):
        mib = rng.randrange(256, 20_000)
        engine, settings = rng.choice(
            (
                ("postgresql", {"shared_buffers": f"{mib}MB", "max_connections": str(rng.choice((20, 400)))}),
                ("mysql", {"innodb_buffer_pool_size": f"{mib}M"}),
                ("mariadb", {"innodb_buffer_pool_size": f"{mib}M"}),
                ("jvm", {"Xmx": f"{mib}m"}),
            )
        )
        database: dict[str, Any] = {"name": f"d{index}", "engine": engine, "settings": settings}
        if rng.random() < 0.3:
            database["numa_node"] = rng.randrange(nodes)
        if rng.random() < 0.3:
            database["pool_range"] = {"min": f"{mib}MiB", "max": f"{mib + rng.randrange(1, 9000)}MiB"}
        databases.append(database)
    return {
        "node": {
            "numa_nodes": [{"id": i, "memory": f"{rng.randrange(8_000, 90_000)}MiB"} for i in range(nodes)],
            "cpus": 16,
        },
        "tenants": [{"name": "app", "count": rng.randrange(1, 5), "request": "1GiB", "limit": "2048Mi"}],
        "databases": databases,
        "reservations": {"kubernetes": rng.random() < 0.5},
        "policy": {"slack": rng.choice(("1%", 0.02))},
    }


def in_other_units(rng: random.Random, value: Any, key: str = "") -> Any:
    """The same scenario with every size written in another unit that means as much."""
    if isinstance(value, dict):
        return {name: in_other_units(rng, part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [in_other_units(rng, part, key) for part in value]
    return _in_another_unit(rng, value, key) if isinstance(value, str) and value[:1].isdigit() else value


def _in_another_unit(rng: random.Random, value: str, key: str) -> str | int:
    number = int(value[: len(value) - len(value.lstrip("0123456789"))])
    if key in {"memory", "min", "max", "request", "limit"}:
        mib = number * (1024 if "G" in value else 1)
        return rng.choice((f"{mib}MiB", f"{mib}Mi", mib * MIB, f"{mib * 1024}KiB"))
    if key == "shared_buffers":
        return rng.choice((f"{number * 1024}kB", str(number * 128), f" {number} MB"))
    if key in {"innodb_buffer_pool_size", "Xmx"}:
        return rng.choice((f"{number * 1024}k", f"{number * 1024}K", str(number * MIB)))
    return "0.01" if value == "1%" else value


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def without_words(found: Plan) -> dict[str, Any]:
    """A plan without the texts that repeat how a size was written."""
    return {
        "pools": [(p.numa_node, p.page_bytes, p.pages, p.demand_pages, p.slack_pages) for p in found.pools],
        "ledger": [(p.kind, p.name, p.numa_node, p.bytes) for p in found.ledger.parts],
        "headline": found.headline,
        "findings": [(f.code, f.state, f.subject) for f in found.findings],
        "risk": found.risk,
        "net": found.net_memory,
        "feasible": found.feasible,
    }


async def previewed(planner: httpx.AsyncClient, document: dict[str, Any]) -> dict[str, Any]:
    answer = await planner.post("/api/v1/plans/preview", json={"scenario": document})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["plan"]
    return found


def commanded(document: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str, int]:
    """The command's JSON, its short text, and its status."""
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(document))
    status = main(["plan", str(file), "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert main(["plan", str(file)]) == status
    return printed["plan"], capsys.readouterr().out, status


@pytest.mark.parametrize("seed", SEEDS)
async def test_command_api_and_text_say_what_the_planner_says(
    seed: int, planner: httpx.AsyncClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    for number in range(12):
        document = scenario(rng)
        request = to_request(load(yaml.safe_dump(document)))
        own = plan(request)
        expected = as_json(dataclasses.asdict(own))
        printed, text, status = commanded(document, tmp_path, capsys)
        assert printed == expected, (seed, number)
        assert await previewed(planner, document) == expected, (seed, number)
        assert (status == 4) == (not own.feasible), (seed, number)
        files = render(own, request) if own.feasible else ()
        for said in (text, plan_answer(own, files), plan_text(own, files)):
            assert own.headline in " ".join(said.split()), (seed, number)
        for size in {pool.page_bytes for pool in own.pools if own.feasible and pool.pages}:
            total = sum(pool.pages for pool in own.pools if pool.page_bytes == size)
            assert f"{total:,} page" in own.headline, (seed, number)


@pytest.mark.parametrize("seed", SEEDS)
def test_units_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(40):
        document = scenario(rng)
        plans = [plan(to_request(load(yaml.safe_dump(d)))) for d in (document, in_other_units(rng, document))]
        assert without_words(plans[0]) == without_words(plans[1]), (seed, number, document)


# --- monotony -------------------------------------------------------------------------------------


def larger(request: PlanRequest, rng: random.Random) -> PlanRequest:
    """The same node with more memory on one of its NUMA nodes."""
    numa = list(request.node.numa)
    at = rng.randrange(len(numa))
    numa[at] = dataclasses.replace(numa[at], mem_total_bytes=numa[at].mem_total_bytes + rng.randrange(1, 64) * GIB)
    return dataclasses.replace(request, node=dataclasses.replace(request.node, numa=tuple(numa)))


def kernel_fixed(request: PlanRequest) -> PlanRequest:
    """The kernel's share given, so that a larger node does not assume a larger kernel."""
    policy = dataclasses.replace(request.policy, free_margin_bytes=0)
    return dataclasses.replace(request, node=dataclasses.replace(request.node, kernel_used_bytes=GIB), policy=policy)


@pytest.mark.parametrize("seed", SEEDS)
def test_more_memory_never_fits_less_and_is_never_riskier(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(40):
        document = scenario(rng)
        for database in document["databases"]:
            database.pop("pool_range", None)
        document["reservations"] = {}
        request = kernel_fixed(to_request(load(yaml.safe_dump(document))))
        less, more = plan(request), plan(larger(request, rng))
        assert more.feasible or not less.feasible, (seed, number, document)
        assert less.risk.probability is not None
        assert more.risk.probability is not None
        if less.instances and [i.page_bytes for i in less.instances] == [i.page_bytes for i in more.instances]:
            assert more.risk.probability.likely <= less.risk.probability.likely + 1e-9, (seed, number)


@pytest.mark.parametrize("seed", SEEDS)
def test_more_connections_and_larger_pools_never_need_less(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        buffers, connections = rng.randrange(128, 30_000), rng.randrange(10, 800)
        pages = []
        for more in (0, 1):
            settings = {
                "shared_buffers": f"{buffers + more * rng.randrange(0, 500)}MB",
                "max_connections": str(connections + more * rng.randrange(0, 300)),
            }
            database = {"name": "db", "engine": "postgresql", "settings": settings, "page_size": "2MiB"}
            document = {"node": {"memory": "256GiB"}, "databases": [database]}
            found = plan(to_request(load(yaml.safe_dump(document))))
            pages.append((found.instances[0].demand.pages, sum(pool.pages for pool in found.pools)))
        assert pages[0] <= pages[1]
        assert pages[0][1] <= pages[1][1]
