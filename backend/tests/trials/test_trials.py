"""Trials over REST: who may send one, for which node, what is listed, what is kept."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import REPOSITORY
from sqlalchemy import text
from support.reports import curve, report, run
from support.server import serving
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.cli import InputError
from hugeplan.cli.service_client import post
from hugeplan.documents.trial import TrialDocument
from hugeplan.embedded import EmbeddedPostgres
from hugeplan.fleet.stored import read_nodes_by_id
from hugeplan.trials import repository
from hugeplan.trials.service import with_trials_of_each

API = "/api/v1"
EXAMPLE = json.loads((REPOSITORY / "docs" / "report.example.json").read_text(encoding="utf-8"))


def trial(machine_id: str | None = EXAMPLE["machine_id"], **changes: Any) -> dict[str, Any]:
    """A measured trial with one block."""
    batch = {"rate": 40_000.0, "cpu_ns": 25_000.0}
    block = {"swapped": False, "seconds": 8.5, "others_share": 0.02, "pairs": [{"base": batch, "other": batch}]}
    size = {"page_size": "2M", "page_bytes": 2 << 20, "status": "measured", "blocks": [block]}
    return {
        "id": uuid.uuid4().hex,
        "started_at": datetime.now(UTC).isoformat(),
        "seconds": 300.0,
        "stopped": "narrow",
        "machine": {"name": "db-7", "machine_id": machine_id, "cpus": 2},
        "engine": "postgresql",
        "version": "15.18",
        "shape": {"operation_class": "key_lookup", "row_bytes": 128, "data_bytes": 1 << 30, "clients": 8},
        "measure": "cpu_per_operation",
        "others_share": 0.02,
        "priority": "idle",
        "seed": 7,
        "sentence": "2M pages: +7.5 % (+6.6 to +8.4) more work per CPU second than 4K pages, in 22 blocks.",
        "page_sizes": [
            size | {"gain": {"likely": 7.5, "low": 6.6, "high": 8.4}},
            size | {"page_size": "equal", "gain": {"likely": 0.1, "low": -0.8, "high": 1.0}},
            size | {"page_size": "1G", "status": "skipped", "reason": "no 1G pages", "blocks": []},
        ],
    } | changes


async def known_node(agent: httpx.AsyncClient) -> str:
    now = datetime.now(UTC).isoformat()
    document = json.loads(json.dumps(EXAMPLE)) | {"report_id": str(uuid.uuid4()), "created_at": now}
    document["sample"]["taken_at"] = now
    sent = await agent.post(f"{API}/reports", json=document)
    assert sent.status_code == 201, sent.text
    return str(sent.json()["node_id"])


async def test_an_agent_sends_its_nodes_trial_once(agent: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    node_id, document = await known_node(agent), trial()
    first, again = [await agent.post(f"{API}/trials", json=document) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 200), first.text
    assert first.json() == {"id": str(uuid.UUID(document["id"])), "node_id": node_id, "created": True}
    other = await agent.post(f"{API}/trials", json=document | {"seconds": 301.0})
    assert_problem(other, 409, "conflict")
    listed = (await viewer.get(f"{API}/nodes/{node_id}/trials")).json()["items"]
    assert len(listed) == 1
    by_size = {size["page_size"]: size for size in listed[0]["page_sizes"]}
    day = f"{datetime.now(UTC).day} {datetime.now(UTC):%b %Y}"
    assert by_size["2M"]["text"] == f"measured here on {day}: +7.5 % (+6.6 to +8.4)"
    assert by_size["2M"]["blocks"] == 1
    assert (by_size["1G"]["text"], by_size["1G"]["reason"]) == (None, "no 1G pages")
    whole = (await viewer.get(f"{API}/trials/{document['id']}")).json()
    assert whole["page_sizes"][0]["blocks"][0]["pairs"][0]["base"]["cpu_ns"] == 25_000.0


async def test_a_noisy_trial_says_no_gain(agent: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    node_id, document = await known_node(agent), trial()
    document["page_sizes"][0] |= {"status": "too_noisy", "gain": {"likely": 9.0, "low": None, "high": None}}
    assert (await agent.post(f"{API}/trials", json=document)).status_code == 201
    listed = (await viewer.get(f"{API}/nodes/{node_id}/trials")).json()["items"]
    assert listed[0]["page_sizes"][0]["text"] is None


async def test_a_plan_of_the_node_takes_it_in_place_of_the_prediction(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    node_id = await known_node(agent)
    database = {
        "name": "db",
        "engine": "postgresql",
        "version": "15",
        "settings": {"shared_buffers": "1GB"},
        "page_size": "2M",
        "connections": 20,
        "workload": {"row_bytes": 100, "working_set": "1GiB", "active_connections": 8},
    }
    body = {"node_id": node_id, "scenario": {"databases": [database], "observed": {"workloads": False}}}

    async def measured() -> str | None:
        answer = await planner.post(f"{API}/plans/preview", json=body)
        assert answer.status_code == 200, answer.text
        gains = [gain for gain in answer.json()["plan"]["gains"] if gain["backing"] == "2M"]
        return None if gains[0]["measured_here"] is None else str(gains[0]["measured_here"]["text"])

    assert await measured() is None
    wide = {"likely": 7.5, "low": 6.4, "high": 8.6}
    for wrong in (wide, {"likely": 9.0, "low": 6.6, "high": 8.4}, {"likely": 900.0, "low": 899.5, "high": 900.5}):
        document = trial()
        document["page_sizes"][0]["gain"] = wrong
        assert (await agent.post(f"{API}/trials", json=document)).status_code == 201
        assert await measured() is None, "a sender may call anything measured"
    for blocks in ([], [{"swapped": False, "seconds": 1.0, "pairs": []}]):
        document = trial()
        document["page_sizes"][0]["blocks"] = blocks
        assert (await agent.post(f"{API}/trials", json=document)).status_code == 201
        assert await measured() is None, "a gain of no pair of batches"
        newest = (await planner.get(f"{API}/nodes/{node_id}/trials")).json()["items"][0]
        assert (newest["page_sizes"][0]["blocks"], newest["page_sizes"][0]["text"]) == (0, None)
    assert (await agent.post(f"{API}/trials", json=trial(engine="mariadb"))).status_code == 201
    assert await measured() is None
    assert (await agent.post(f"{API}/trials", json=trial())).status_code == 201
    told = await measured()
    assert told is not None
    assert told.endswith("+7.5 % (+6.6 to +8.4)")


async def test_a_fleet_plan_takes_it_as_the_nodes_own_plan_does(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    await known_node(agent)
    assert (await agent.post(f"{API}/trials", json=trial())).status_code == 201
    workload = {"row_bytes": 100, "working_set": "1GiB", "active_connections": 8}
    database = {"name": "db", "engine": "postgresql", "version": "15", "settings": {"shared_buffers": "1GB"},
                "page_size": "2M", "connections": 20, "workload": workload}  # fmt: skip

    async def measured(**changes: Any) -> list[str]:
        """What the plan of the only group says was measured, with a changed workload."""
        scenario = {"databases": [database | {"workload": workload | changes}], "observed": {"workloads": False}}
        made = await planner.post(f"{API}/fleet/plan", json={"scenario": scenario})
        assert made.status_code == 202, made.text
        url = f"{API}/fleet/plans/{made.json()['id']}"
        async with planner.stream("GET", f"{url}/progress") as stream:
            await stream.aread()
        (group,) = (await planner.get(f"{url}/groups")).json()["items"]
        gains = (await planner.get(f"{url}/groups/{group['number']}")).json()["plan"]["gains"]
        return [gain["measured_here"]["text"] for gain in gains if gain["measured_here"]]

    (told,) = await measured()
    assert told.endswith("+7.5 % (+6.6 to +8.4)")
    # Rows or connections beyond the rule of a match are predicted.
    assert await measured(row_bytes=4000) == []
    assert await measured(active_connections=64) == []


async def test_newest_first_in_pages(planner: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    node_id = await known_node(agent)
    for day in (3, 1, 2):
        sent = await planner.post(f"{API}/trials", json=trial(started_at=f"2026-10-0{day}T12:00:00Z"))
        assert sent.status_code == 201, sent.text
    page = (await planner.get(f"{API}/nodes/{node_id}/trials", params={"limit": 2})).json()
    rest = await planner.get(f"{API}/nodes/{node_id}/trials", params={"cursor": page["next_cursor"]})
    days = [item["started_at"][8:10] for item in [*page["items"], *rest.json()["items"]]]
    assert days == ["03", "02", "01"]
    everywhere = (await planner.get(f"{API}/trials", params={"limit": 2})).json()
    more = await planner.get(f"{API}/trials", params={"cursor": everywhere["next_cursor"]})
    found = [*everywhere["items"], *more.json()["items"]]
    assert [item["started_at"][8:10] for item in found] == ["03", "02", "01"]
    assert {(item["node_id"], item["node_name"]) for item in found} == {(node_id, EXAMPLE["node_name"])}


async def test_who_may_not(service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    await known_node(agent)
    assert_problem(await viewer.post(f"{API}/trials", json=trial()), 403, "forbidden")
    stranger = await service.client_as(Role.AGENT)
    assert_problem(await stranger.post(f"{API}/trials", json=trial()), 403, "forbidden")
    assert_problem(await service.client().post(f"{API}/trials", json=trial()), 401, "unauthenticated")
    assert_problem(await agent.get(f"{API}/trials/{uuid.uuid4()}"), 403, "forbidden")


async def test_no_other_nodes_trial_takes_the_place_of_one(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    """Its agent chooses the id: that of a trial which another node has sent names that one still."""
    await known_node(agent)
    document, other_machine = trial(), "e" * 32
    assert (await agent.post(f"{API}/trials", json=document)).status_code == 201
    other = await service.client_as(Role.AGENT)
    assert (await other.post(f"{API}/reports", json=report(machine_id=other_machine))).status_code == 201
    forged = trial(other_machine, id=document["id"], sentence="2M pages: +99 %.")
    assert (await other.post(f"{API}/trials", json=forged)).status_code == 201
    found = (await viewer.get(f"{API}/trials/{document['id']}")).json()
    assert (found["machine"]["machine_id"], found["sentence"]) == (EXAMPLE["machine_id"], document["sentence"])


async def clones(
    service: Service, brands: tuple[str, str] = ("AMD EPYC 9B14", "Intel Xeon 8581C")
) -> list[tuple[str, httpx.AsyncClient]]:
    """Two machines of one image, each with a token of its own: ids of their nodes and their agents."""
    enroller, found = await service.client_as(Role.ENROLMENT), []
    for number, brand in zip("ab", brands, strict=True):
        hints = {"dmi_sha256": number * 64, "mac_sha256": None}
        asked = {"machine_id": EXAMPLE["machine_id"], "node_name": f"pg-{number}", "clone_hints": hints}
        token = (await enroller.post(f"{API}/enrolments", json=asked)).json()["token"]
        made, client = report(machine_id=EXAMPLE["machine_id"], node_name=f"pg-{number}"), service.client(token)
        made["inventory"] |= {"clone_hints": hints, "cpu": made["inventory"]["cpu"] | {"brand": brand}}
        sent = await client.post(f"{API}/reports", json=made)
        assert sent.status_code == 201, sent.text
        found.append((str(sent.json()["node_id"]), client))
    return found


async def test_a_clones_trial_is_its_own_nodes(service: Service, planner: httpx.AsyncClient) -> None:
    """It was taken for one of the machine that has the plain id, and was "measured here" in that one's plans."""

    def of(name: str, processor: str | None) -> dict[str, Any]:
        machine = {"name": name, "machine_id": EXAMPLE["machine_id"], "processor": processor}
        return trial(machine=machine)

    async def sent(by: httpx.AsyncClient, name: str, processor: str | None = "Intel Xeon 8581C") -> str:
        answer = await by.post(f"{API}/trials", json=of(name, processor))
        return str(answer.json()["node_id"] if answer.status_code == 201 else answer.status_code)

    (plain, agent), (clone, its_agent) = await clones(service)
    assert await sent(its_agent, "pg-b") == clone
    assert await sent(its_agent, "another-name") == clone
    assert await sent(agent, "pg-a", "AMD EPYC 9B14") == plain
    assert await sent(agent, "pg-b") == "409", "another machine's"
    assert await sent(its_agent, "pg-a", None) == "409"
    refused = await its_agent.post(f"{API}/trials", json=of("pg-a", None))
    told = assert_problem(refused, 409, "conflict")["detail"]
    assert "pg-b (Intel Xeon 8581C)" in told
    assert not {"pg-a", "AMD"} & set(told.replace("(", "").split()), "an agent reads nothing of another node"
    assert await sent(planner, "pg-b", None) == clone
    assert await sent(planner, "another-name") == clone
    assert await sent(planner, "pg-a", "AMD EPYC  9B14") == plain
    unclear = await planner.post(f"{API}/trials", json=of("another-name", None))
    assert {"pg-a", "pg-b"} <= set(assert_problem(unclear, 409, "conflict")["detail"].replace(",", "").split())


async def test_an_agents_trial_is_its_own_nodes_whatever_its_host_is_called(service: Service) -> None:
    """The host of the node pg-b has the image's name, which a sibling reports under."""
    (_, other), (clone, its_agent) = await clones(service, ("AMD EPYC 9B14", "AMD EPYC 9B14"))
    machine = {"name": "pg-a", "machine_id": EXAMPLE["machine_id"], "processor": "AMD EPYC 9B14"}
    answer = await its_agent.post(f"{API}/trials", json=trial(machine=machine))
    assert (answer.status_code, answer.json().get("node_id")) == (201, clone), answer.text
    refused = await other.post(f"{API}/trials", json=trial(machine=machine | {"processor": "Intel Xeon 8581C"}))
    assert_problem(refused, 409, "conflict")


async def test_no_other_processors_trial_is_measured_here(planner: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    await known_node(agent)
    machine = trial()["machine"] | {"processor": "Intel Xeon 8581C"}
    for client in (planner, agent):
        assert_problem(await client.post(f"{API}/trials", json=trial(machine=machine)), 409, "conflict")


async def test_what_is_not_known_or_not_valid(planner: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    await known_node(agent)
    assert_problem(await planner.post(f"{API}/trials", json=trial("f" * 32)), 404, "not-found")
    for changes in ({"machine": {"name": "db-7", "machine_id": None}},):
        assert_problem(await planner.post(f"{API}/trials", json=trial(**changes)), 422, "invalid-input")
    for wrong in (
        {"id": "x"},
        {"page_sizes": []},
        {"seconds": -1},
        {"stopped": "later"},
        {"surprise": 1},
        {"started_at": "yesterday"},
    ):
        assert_problem(await planner.post(f"{API}/trials", json=trial(**wrong)), 422, "invalid-input")
    assert_problem(await planner.get(f"{API}/trials/{uuid.uuid4()}"), 404, "not-found")
    assert_problem(await planner.get(f"{API}/nodes/{uuid.uuid4()}/trials"), 404, "not-found")


@pytest.fixture
def trials_url(postgres: EmbeddedPostgres, template: str) -> str:
    """The URL of a migrated database."""
    postgres.ensure_database("trials", template)
    return postgres.url("trials")


def test_the_command_sends_it(trials_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``hugeplan trial --to URL`` against a service of its own: refusals in one line, stored, stored before."""
    document = TrialDocument.model_validate(trial())
    with serving(trials_url, tmp_path) as server:
        assert server.admin_token is not None
        (tmp_path / "token").write_text(server.admin_token + "\n")
        monkeypatch.delenv("HUGEPLAN_TOKEN", raising=False)
        with pytest.raises(InputError, match="needs a token"):
            post(server.url, document, None)
        monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_wrong")
        with pytest.raises(InputError, match="HTTP 401"):
            post(server.url, document, None)
        with pytest.raises(InputError, match="HTTP 404: No node reports under the machine id"):
            post(server.url, document, str(tmp_path / "token"))
        admin = {"authorization": f"Bearer {server.admin_token}"}
        made = httpx.post(f"{server.url}{API}/tokens", json={"name": "a", "role": "agent"}, headers=admin)
        assert made.status_code == 201, made.text
        report = EXAMPLE | {"report_id": str(uuid.uuid4())}
        sent = httpx.post(
            f"{server.url}{API}/reports", json=report, headers={"authorization": f"Bearer {made.json()['token']}"}
        )
        assert sent.status_code == 201, sent.text
        monkeypatch.setenv("HUGEPLAN_TOKEN", made.json()["token"])
        assert post(server.url, document, None).endswith(": stored")
        assert post(server.url, document, None).endswith("it was there already")
    with pytest.raises(InputError, match="Connection refused"):
        post(server.url, document, None)


# --- predicted when it comes, and what it says of its machine type ------------------------------


def run_with_curves() -> dict[str, Any]:
    """A run from whose curves the price of a walk can be fitted: up to 70 ns at 4 GiB."""
    base, large = (curve(name, size, points=9) for name, size in (("4K", 4096), ("2M", 2 << 20)))
    for step, point in enumerate(base["points"]):
        point |= {name: point[name] + 9.0 * step for name in ("ns_min", "ns_p10", "ns_p50", "ns_p90")}
    made = run()
    return made | {"latency": made["latency"] | {"curves": [base, large], "pressure": None}}


async def a_node(service: Service, number: int, **changes: Any) -> tuple[str, str, httpx.AsyncClient]:
    """Id and machine id of a new node with curves, and its agent."""
    machine = f"{number:032x}"
    client = await service.client_as(Role.AGENT)
    sent = await client.post(f"{API}/reports", json=report(machine_id=machine, node_name=f"n{number}", **changes))
    assert sent.status_code == 201, sent.text
    return str(sent.json()["node_id"]), machine, client


def predictable(machine: str, likely: float = 9.0, **changes: Any) -> dict[str, Any]:
    document = trial(machine, **changes)
    document["shape"] |= {"pool_bytes": 5 << 28}
    document["page_sizes"][0]["gain"] = {"likely": likely, "low": likely - 0.6, "high": likely + 0.6}
    return document


async def told_of(planner: httpx.AsyncClient, node_id: str, **changes: Any) -> tuple[dict[str, float], str]:
    """Speed-up and statement of the gain of 2M pages, for a shape that no trial here matches."""
    workload = {"row_bytes": 1000, "working_set": "1GiB", "active_connections": 8} | changes
    database = {"name": "db", "engine": "postgresql", "version": "15", "settings": {"shared_buffers": "1GB"},
                "page_size": "2M", "connections": 20, "workload": workload}  # fmt: skip
    body = {"node_id": node_id, "scenario": {"databases": [database], "observed": {"workloads": False}}}
    answer = await planner.post(f"{API}/plans/preview", json=body)
    assert answer.status_code == 200, answer.text
    (gain,) = [gain for gain in answer.json()["plan"]["gains"] if gain["backing"] == "2M"]
    return gain["speedup"], gain["statement"]


async def test_newer_trials_of_a_planner_do_not_speak_for_a_machine_type_before_its_agents(
    service: Service, planner: httpx.AsyncClient
) -> None:
    """They moved what was said of untried nodes from +10.4 % to +3.8 %."""
    untried, _, _ = await a_node(service, 9, run=run_with_curves())
    tried = [await a_node(service, number, run=run_with_curves()) for number in range(1, 4)]
    for _, machine, agent in tried:
        sent = await agent.post(f"{API}/trials", json=predictable(machine, 12.0))
        assert sent.status_code == 201, sent.text
    of_agents = await told_of(planner, untried)
    assert "3 trials on nodes of this machine type moved" in of_agents[1]
    for _, machine, _ in tried:
        for _ in range(6):
            assert (await planner.post(f"{API}/trials", json=predictable(machine, -20.0))).status_code == 201
    assert await told_of(planner, untried) == of_agents


async def test_a_trial_narrows_the_plans_of_untried_nodes_of_its_machine_type(
    service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    untried, _, _ = await a_node(service, 1, run=run_with_curves())
    before, _ = await told_of(planner, untried)
    for number in (2, 3, 4):
        node_id, machine, agent = await a_node(service, number, run=run_with_curves())
        for likely in (1.0, 12.0):  # the newest of a node counts
            sent = await agent.post(f"{API}/trials", json=predictable(machine, likely))
            assert sent.status_code == 201, sent.text
        listed = (await viewer.get(f"{API}/nodes/{node_id}/trials")).json()["items"][0]["page_sizes"]
        by_size = {size["page_size"]: size["predicted"] for size in listed}
        assert by_size["2M"]["error_class"] == "rows_inline"
        assert by_size["2M"]["low"] < by_size["2M"]["likely"] < by_size["2M"]["high"]
        assert by_size["equal"] is None
    after, said = await told_of(planner, untried)
    assert "3 trials on nodes of this machine type moved the likely gain by +" in said
    assert after["likely"] > before["likely"]
    # Another processor, one without a name, and a synthetic node: no trial of theirs counts, and none counts for them.
    other = report()["inventory"]
    for number, cpu in ((5, {"brand": "Another"}), (6, {"brand": None})):
        inventory = other | {"cpu": other["cpu"] | cpu}
        node_id, machine, agent = await a_node(service, number, run=run_with_curves(), inventory=inventory)
        assert "machine type" not in (await told_of(planner, node_id))[1]
        assert (await agent.post(f"{API}/trials", json=predictable(machine, -5.0))).status_code == 201
    _, machine, agent = await a_node(service, 7, run=run_with_curves(), synthetic=True)
    assert (await agent.post(f"{API}/trials", json=predictable(machine, -5.0))).status_code == 201
    assert (await told_of(planner, untried)) == (after, said)
    everywhere = (await viewer.get(f"{API}/trials")).json()["items"]
    assert {item["machine_type"] for item in everywhere} >= {"AMD EPYC, KVM", "Another, KVM"}


async def test_a_machine_is_one_witness_whatever_it_tries(service: Service, planner: httpx.AsyncClient) -> None:
    untried, _, _ = await a_node(service, 1, run=run_with_curves())
    _, machine, agent = await a_node(service, 2, run=run_with_curves())
    for shape in ({"row_bytes": 128}, {"clients": 1}, {"row_bytes": 4096}):
        document = predictable(machine, -9.0)
        document["shape"] |= shape
        sent = await agent.post(f"{API}/trials", json=document)
        assert sent.status_code == 201, sent.text
    _, said = await told_of(planner, untried, row_bytes=None, operations_per_second_per_busy_core=25000.0)
    assert "1 trial on a node of this machine type moved" in said


async def test_many_trials_of_one_machine_crowd_out_no_other(service: Service) -> None:
    node_id, machine, agent = await a_node(service, 1, run=run_with_curves())
    _, other, others_agent = await a_node(service, 2, run=run_with_curves())
    assert (await others_agent.post(f"{API}/trials", json=predictable(other))).status_code == 201
    for _ in range(3):
        assert (await agent.post(f"{API}/trials", json=predictable(machine))).status_code == 201
    async with service.database.write() as session:
        found = await repository.predictions(session, [uuid.UUID(node_id)], most=2)
        assert [of for _, of, *_ in found] == [machine, other]
        # A clone of a machine is no other machine.
        clone = {"id": f"{machine}~a", "other": other}
        await session.execute(text("UPDATE nodes SET machine_id = :id WHERE machine_id = :other"), clone)
        assert {of for _, of, *_ in await repository.predictions(session, [uuid.UUID(node_id)], most=9)} == {machine}


async def test_an_odd_trial_is_left_out_of_what_others_read(
    service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    untried, _, _ = await a_node(service, 1, run=run_with_curves())
    ids = []
    for number in (2, 3):
        node_id, machine, agent = await a_node(service, number, run=run_with_curves())
        assert (await agent.post(f"{API}/trials", json=predictable(machine))).status_code == 201
        ids.append(node_id)
    odd = "jsonb_set(summary, '{predicted}', '{\"2M\": 3}') - 'page_sizes'"
    async with service.database.write() as session:
        await session.execute(text(f"UPDATE trials SET summary = {odd} WHERE node_id = :id"), {"id": ids[0]})
    for node_id in (untried, *ids):
        assert "1 trial on a node of this machine type" in (await told_of(planner, node_id))[1]
    assert [item["node_id"] for item in (await viewer.get(f"{API}/trials")).json()["items"]] == ids[1:]


async def test_no_summary_is_opened_of_a_trial_that_does_not_count(service: Service) -> None:
    node_id, machine, agent = await a_node(service, 1, run=run_with_curves())
    assert (await agent.post(f"{API}/trials", json=predictable(machine))).status_code == 201
    nodes = (
        "INSERT INTO nodes SELECT (jsonb_populate_record(n, jsonb_build_object('id', gen_random_uuid(),"
        " 'machine_id', 'o' || i))).* FROM nodes n, generate_series(1, 199) i"
    )
    long = "(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 300) WHERE n.id IS NOT NULL)"
    copies = (
        "INSERT INTO trials (node_id, id, started_at, ordered_at, stored_at, content_sha256, summary, document)"
        " SELECT n.id, gen_random_uuid(), started_at, ordered_at + interval '1 s', stored_at, content_sha256,"
        f" summary || jsonb_build_object('long', {long}), document FROM trials, nodes n"
    )
    opened = text(
        "SELECT pg_stat_get_xact_blocks_fetched(reltoastrelid) FROM pg_class WHERE oid = CAST('trials' AS regclass)"
    )
    async with service.database.write() as session:
        for statement in (nodes, copies):
            await session.execute(text(statement))
    async with service.database.read() as session:
        assert len(await repository.predictions(session, [uuid.UUID(node_id)], most=2)) == 2
        few = (await session.execute(opened)).scalar_one()
        assert len(await repository.predictions(session, [uuid.UUID(node_id)], most=200)) == 200
        assert 0 < 20 * few < (await session.execute(opened)).scalar_one()


async def test_trials_of_other_machine_types_cost_a_plan_nothing(service: Service) -> None:
    """A decision about rows of a fleet plan asks again and again; of 100 types it had read 20,000 trials each time."""
    node_id, machine, agent = await a_node(service, 1, run=run_with_curves())
    assert (await agent.post(f"{API}/trials", json=predictable(machine))).status_code == 201
    nodes = (
        "INSERT INTO nodes SELECT (jsonb_populate_record(n, jsonb_build_object('id', gen_random_uuid(),"
        " 'name', 'o' || i, 'machine_id', 'o' || i, 'machine_type', 'type ' || i))).* FROM nodes n,"
        " generate_series(1, 100) i"
    )
    copies = (
        "INSERT INTO trials (node_id, id, started_at, ordered_at, stored_at, content_sha256, summary, document)"
        " SELECT n.id, gen_random_uuid(), started_at, ordered_at - i * interval '1 s', stored_at, content_sha256,"
        " summary, document FROM trials, nodes n, generate_series(1, 200) i"
    )
    async with service.database.write() as session:
        for statement in (nodes, copies, "ANALYZE nodes", "ANALYZE trials"):
            await session.execute(text(statement))
    async with service.database.read() as session:
        nodes_read = await read_nodes_by_id(session, [uuid.UUID(node_id)])
        await with_trials_of_each(session, nodes_read)
        begun = time.thread_time()
        (node,) = await with_trials_of_each(session, nodes_read)
        spent = time.thread_time() - begun
        types = {kind for kind, *_ in await repository.predictions(session, [uuid.UUID(node_id)], most=200)}
    assert (len(node.type_trials), types) == (1, {node.machine_type})
    assert spent < 0.1, f"{spent:.3f} s"


async def test_a_fleet_plan_counts_with_the_machine_type_as_the_nodes_own_plan_does(
    service: Service, planner: httpx.AsyncClient
) -> None:
    await a_node(service, 1, run=run_with_curves())
    _, machine, agent = await a_node(service, 2, run=run_with_curves())
    assert (await agent.post(f"{API}/trials", json=predictable(machine))).status_code == 201
    workload = {"row_bytes": 1000, "working_set": "1GiB", "active_connections": 8}
    database = {"name": "db", "engine": "postgresql", "version": "15", "settings": {"shared_buffers": "1GB"},
                "page_size": "2M", "connections": 20, "workload": workload}  # fmt: skip
    scenario = {"databases": [database], "observed": {"workloads": False}}
    made = await planner.post(f"{API}/fleet/plan", json={"scenario": scenario})
    url = f"{API}/fleet/plans/{made.json()['id']}"
    async with planner.stream("GET", f"{url}/progress") as stream:
        await stream.aread()
    (group,) = (await planner.get(f"{url}/groups")).json()["items"]
    gains = (await planner.get(f"{url}/groups/{group['number']}")).json()["plan"]["gains"]
    (statement,) = [gain["statement"] for gain in gains if gain["backing"] == "2M"]
    assert "1 trial on a node of this machine type moved the likely gain by" in statement


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": {"operation_class": "script", "data_bytes": 1 << 30, "pool_bytes": 1 << 30, "clients": 8}},
        {"shape": {"operation_class": "key_lookup", "row_bytes": 128, "data_bytes": 1 << 30, "clients": 8}},
        {"measure": "rate"},
        {"engine": "no such engine"},
        {"version": "no such version"},
    ],
)
async def test_what_cannot_be_predicted_is_stored_as_unknown(
    changes: dict[str, Any], service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    node_id, machine, agent = await a_node(service, 1, run=run_with_curves())
    assert (await agent.post(f"{API}/trials", json=predictable(machine) | changes)).status_code == 201
    sizes = (await viewer.get(f"{API}/nodes/{node_id}/trials")).json()["items"][0]["page_sizes"]
    assert [size["predicted"] for size in sizes] == [None] * 3
    assert "machine type" not in (await told_of(planner, node_id))[1]


async def test_a_node_without_curves_predicts_nothing(service: Service, viewer: httpx.AsyncClient) -> None:
    node_id, machine, agent = await a_node(service, 1)
    assert (await agent.post(f"{API}/trials", json=predictable(machine))).status_code == 201
    sizes = (await viewer.get(f"{API}/nodes/{node_id}/trials")).json()["items"][0]["page_sizes"]
    assert [size["predicted"] for size in sizes] == [None] * 3


async def test_a_trial_of_an_earlier_release_has_no_prediction(
    service: Service, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    node_id, machine, agent = await a_node(service, 1, run=run_with_curves())
    assert (await agent.post(f"{API}/trials", json=predictable(machine))).status_code == 201
    async with service.database.write() as session:
        await session.execute(text("UPDATE trials SET summary = summary - 'predicted'"))
    sizes = (await viewer.get(f"{API}/nodes/{node_id}/trials")).json()["items"][0]["page_sizes"]
    assert [size["predicted"] for size in sizes] == [None] * 3
    assert "machine type" not in (await told_of(planner, node_id))[1]
