"""Many trials: a plan costs what it did with few, and a node's own agent is not shut out by others."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import event, text
from support.service import Service, assert_problem
from trials.test_trials import API, a_node, known_node, predictable, run_with_curves, told_of, trial

from hugeplan.trials import repository

COPIES = (
    "INSERT INTO {table} SELECT (jsonb_populate_record(r, jsonb_build_object({changes}))).*"
    " FROM {table} r{more}, generate_series(1, {number}) i"
)
READ = (
    "SELECT CAST(sum(pg_stat_get_xact_blocks_fetched(oid)) AS bigint) FROM pg_class WHERE oid IN (SELECT indexrelid"
    " FROM pg_index WHERE CAST(CAST(indrelid AS regclass) AS text) IN ('nodes', 'trials'))"
    " OR CAST(oid AS regclass) IN (CAST('nodes' AS regclass), CAST('trials' AS regclass))"
)


async def blocks_read(service: Service, node_id: str) -> int:
    """How many blocks a plan of a node reads for what is known of its machine type: of 200 machines."""
    async with service.database.read() as session:
        before = (await session.execute(text(READ))).scalar_one()
        found = await repository.predictions(session, [uuid.UUID(node_id)], most=200)
        assert len({machine for _, machine, *_ in found}) == len(found) == 200
        assert await repository.nodes_with_trials(session, [uuid.UUID(node_id)])
        return int((await session.execute(text(READ))).scalar_one()) - before


async def test_a_plan_costs_the_same_however_many_trials_and_nodes_of_its_machine_type_there_are(
    service: Service,
) -> None:
    node_id, machine, agent = await a_node(service, 1, run=run_with_curves())
    assert (await agent.post(f"{API}/trials", json=predictable(machine))).status_code == 201
    new = "'id', gen_random_uuid(), 'machine_id', md5(CAST(random() AS text))"
    nodes = COPIES.format(table="nodes", more="", number="{}", changes=new)
    trials = COPIES.format(
        table="trials",
        more=" CROSS JOIN nodes n",
        number="{}",
        changes="'id', gen_random_uuid(), 'node_id', n.id, 'ordered_at', r.ordered_at - i * interval '1 s'",
    )
    read = []
    for of_nodes, of_trials in ((499, 6), (3, 3)):  # 500 nodes with 6 each, then 2,000 with 21
        async with service.database.write() as session:
            # A node's newest trial is copied with it.
            await session.execute(text("SET LOCAL session_replication_role = replica"))
            await session.execute(text("DELETE FROM trials WHERE node_id <> :id"), {"id": node_id})
            await session.execute(text(nodes.format(of_nodes)))
            await session.execute(text(trials.format(of_trials)))
        async with service.database.engine.connect() as connection:
            autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in ("nodes", "trials"):
                await autocommit.execute(text(f"VACUUM ANALYZE {table}"))
        read.append(await blocks_read(service, node_id))
    assert read[1] < 1.5 * read[0], read


async def test_one_machines_clones_crowd_out_no_other(service: Service) -> None:
    node_id, machine, agent = await a_node(service, 1, run=run_with_curves())
    _, other, others_agent = await a_node(service, 2, run=run_with_curves())
    for number, client in ((other, others_agent), (machine, agent)):
        assert (await client.post(f"{API}/trials", json=predictable(number))).status_code == 201
    clones = COPIES.format(
        table="nodes",
        more="",
        number=256,
        changes="'id', gen_random_uuid(), 'machine_id', r.machine_id || '~' || i, 'own_tried_at', now()",
    )
    async with service.database.write() as session:
        await session.execute(text(f"{clones} WHERE r.id = :id"), {"id": node_id})
        found = await repository.predictions(session, [uuid.UUID(node_id)], most=2)
        assert {machine for _, machine, *_ in found} == {machine, other}


async def test_others_trials_crowd_no_agents_out_of_its_machine_type(
    service: Service, planner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 456 nodes that a planner had tried later none was an agent's any more."""
    machines = []
    for number in (1, 2, 3):
        node_id, machine, agent = await a_node(service, number, run=run_with_curves())
        sender = agent if number == 1 else planner
        assert (await sender.post(f"{API}/trials", json=predictable(machine))).status_code == 201
        machines.append(machine)
    monkeypatch.setattr(repository, "MAX_CLONES", 0)
    async with service.database.read() as session:
        for most in (1, 3):
            found = await repository.predictions(session, [uuid.UUID(node_id)], most=most)
            assert [(machine, is_own) for _, machine, is_own, _ in found] == [
                (machines[0], True), (machines[2], False), (machines[1], False),
            ][:most]  # fmt: skip
    _, said = await told_of(planner, node_id)
    assert "3 trials on nodes of this machine type (2 not sent by their nodes' agents) moved" in said


@pytest.fixture
def two_are_kept(service: Service) -> Iterator[None]:
    """Two trials of a node, for one test."""
    state = service.app.state
    before = state.settings
    state.settings = before.model_copy(update={"max_trials_per_node": 2})
    yield
    state.settings = before


async def send(client: httpx.AsyncClient, kept: list[str]) -> httpx.Response:
    """Send another trial, and note its id where it was taken."""
    document: dict[str, Any] = trial()
    answer = await client.post(f"{API}/trials", json=document)
    if answer.status_code == 201:
        kept.append(answer.json()["id"])
    return answer


async def of_node(viewer: httpx.AsyncClient, node_id: str) -> set[str]:
    return {item["id"] for item in (await viewer.get(f"{API}/nodes/{node_id}/trials")).json()["items"]}


@pytest.mark.usefixtures("two_are_kept")
async def test_a_nodes_own_trials_take_the_place_of_others(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    node_id = await known_node(agent)
    of_planner: list[str] = []
    own: list[str] = []
    for _ in range(3):
        assert (await send(planner, of_planner)).status_code == 201
    assert await of_node(viewer, node_id) == set(of_planner[1:]), "the oldest goes"
    assert (await send(agent, own)).status_code == 201
    assert await of_node(viewer, node_id) == {of_planner[2], own[0]}
    assert (await send(planner, of_planner)).status_code == 201
    assert await of_node(viewer, node_id) == {of_planner[3], own[0]}, "no planner's takes an own one's place"
    for _ in range(3):
        assert (await send(agent, own)).status_code == 201
    assert await of_node(viewer, node_id) == set(own[2:])
    refused = assert_problem(await send(planner, of_planner), 409, "conflict")["detail"]
    assert "HUGEPLAN_MAX_TRIALS_PER_NODE" in refused
    assert await of_node(viewer, node_id) == set(own[2:])


@pytest.mark.usefixtures("two_are_kept")
async def test_trials_whose_sender_is_not_known_stay_before_a_planners(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    """Those of the release before may be the node's own."""
    node_id = await known_node(agent)
    former: list[str] = []
    for _ in range(2):
        await send(agent, former)
    async with service.database.write() as session:
        await session.execute(text("UPDATE trials SET is_own = NULL"))
    assert (await send(planner, [])).status_code == 409
    assert (await send(agent, former)).status_code == 201
    assert await of_node(viewer, node_id) == set(former[1:])


async def test_a_plan_takes_the_own_agents_trial_before_those_that_others_sent(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """A planner's newer trial took its place, and fifty of another engine hid it."""
    node_id = await known_node(agent)
    own: list[str] = []
    of_planner: list[str] = []
    await send(agent, own)
    for _ in range(2):
        await send(planner, of_planner)
    async with service.database.read() as session:
        found = await repository.newest_summaries(session, uuid.UUID(node_id), limit=2)
    assert [str(trial_id) for trial_id, _ in found] == [own[0], of_planner[1]]


async def test_whose_a_trial_is_is_found_by_indexes(service: Service) -> None:
    """Of 3,000 nodes the one with the machine id, and its clones: an OR of both read them all."""
    node_id, machine, _ = await a_node(service, 1)
    asked: list[tuple[str, Any]] = []

    def listen(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        asked.append((statement, parameters))

    copies = {
        "nodes": "'id', gen_random_uuid(), 'machine_id', 'zz' || i",
        "machines": "'node_machine_id', 'zz' || i, 'machine_id', 'zz' || i",
    }
    async with service.database.write() as session:
        for table, changes in copies.items():
            await session.execute(text(COPIES.format(table=table, more="", number=3000, changes=changes)))
            await session.execute(text(f"ANALYZE {table}"))
        engine = service.database.engine.sync_engine
        event.listen(engine, "before_cursor_execute", listen)
        try:
            found = await repository.nodes_of_machine(session, machine)
        finally:
            event.remove(engine, "before_cursor_execute", listen)
        assert [str(node.id) for node in found] == [node_id]
        (statement, parameters), connection = asked[-1], await session.connection()
        plan = "\n".join(row[0] for row in await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
        assert "Seq Scan" not in plan, plan
        assert plan.count("Index") >= 2, plan
        await session.rollback()
