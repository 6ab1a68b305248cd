"""A node of many has the plan that it would have alone, or a reason why it has none."""

from __future__ import annotations

import dataclasses
import pickle
import random

import pytest
from support.any_scenario import Dice
from support.seeds import SEEDS

from hugeplan.planner import fleet
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.fleet import KEPT_ANSWERS, SharedPlans, plan_node
from hugeplan.planner.memory.ledger import free_bytes
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedUnit,
    PlanRequest,
    Policy,
    Pool,
)
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import ScenarioDocument, to_request

PG = DatabaseInstance(
    name="main", engine="postgresql", version="17",
    settings={"shared_buffers": "4GB", "max_connections": "100", "effective_cache_size": "8GB"},
)  # fmt: skip


def node(name: str = "n", pools: tuple[Pool, ...] | None = None, memory_bytes: int = 64 * GIB) -> NodeFacts:
    return NodeFacts(name=name, numa=(NumaNode(id=0, mem_total_bytes=memory_bytes, pools=pools),))


def test_it_is_the_plan_of_the_node() -> None:
    for memory_bytes in (3 * GIB, 64 * GIB):
        request = PlanRequest(node=node(memory_bytes=memory_bytes), databases=(PG,))
        own, found = plan(request), plan_node(request)
        assert found.plan == own
        assert (found.free_bytes, found.fits) == (free_bytes(own.ledger), own.fits)


def test_missing_and_idle_pages_are_counted() -> None:
    pools = (
        Pool(page_bytes=2 * MIB, nr_hugepages=100, free_hugepages=100),
        Pool(page_bytes=GIB, nr_hugepages=2, free_hugepages=2),
    )
    found = plan_node(PlanRequest(node=node(pools=pools), databases=(PG,)))
    assert found.plan is not None
    planned = sum(p.pages for p in found.plan.pools)
    assert (found.missing_pages, found.idle_pages) == (planned - 100, 2)


def test_unknown_pools_are_not_zero() -> None:
    assert plan_node(PlanRequest(node=node(), databases=(PG,))).missing_pages is None


def test_nodes_with_the_same_pools_are_one_group() -> None:
    small, large, none = (
        plan_node(PlanRequest(node=node(f"n{size}", memory_bytes=size * GIB), databases=databases))
        for size, databases in ((64, (PG,)), (128, (PG,)), (64, ()))
    )
    assert small.group == large.group != none.group


def test_a_node_that_cannot_be_planned_says_why() -> None:
    found = plan_node(PlanRequest(node=node(), policy=Policy(risk=2.0)))
    assert (found.plan, found.fits, found.free_bytes, found.group) == (None, None, None, None)
    assert "policy.risk" in (found.why_not or "")
    assert dataclasses.replace(found.request, policy=Policy()) == PlanRequest(node=node())


def asked(seed: int) -> PlanRequest:
    """Some scenario, with a sample and pools where the dice say so."""
    return to_request(ScenarioDocument.model_validate(Dice(seed).scenario()))


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_that_ask_the_same_question_have_the_plan_of_each_to_the_byte(seed: int) -> None:
    rng = random.Random(seed)
    shared, nodes = SharedPlans(), 0
    requests: list[PlanRequest] = []
    for _ in range(40):
        try:
            requests.append(asked(rng.randrange(10_000)))
        except PlannerError:
            continue
    requests += [observed(rng) for _ in range(20)]
    for copy in range(3):
        for request in requests:
            sample = request.sample
            if sample is not None:
                sample = dataclasses.replace(sample, taken_at_seconds=1.7e9 + 60 * copy)
            name = f"{request.node.name}-{copy}"
            own = dataclasses.replace(request, node=dataclasses.replace(request.node, name=name), sample=sample)
            found, alone = shared.plan_node(own), plan_node(own)
            assert found == alone
            assert repr(found) == repr(alone)
            nodes += 1
    assert shared.planned <= len(requests) < nodes


def observed(rng: random.Random) -> PlanRequest:
    """A node with a sample, two units and a database that runs among them, or not."""
    total = rng.choice((64, 256)) * GIB
    used = rng.randrange(total // 2)
    memory = Meminfo(
        mem_total_bytes=total, mem_free_bytes=total - used - GIB, mem_available_bytes=total - used,
        s_unreclaim_bytes=GIB // 4, kernel_stack_bytes=MIB, page_tables_bytes=MIB, anon_pages_bytes=used,
        shmem_bytes=0,
    )  # fmt: skip
    units = tuple(
        ObservedUnit(key=f"u{i}", kind="pod", name=f"p{i}", source="cgroup_v2", ordinary_bytes=GIB) for i in (1, 2)
    )
    sample = NodeSample(taken_at_seconds=0.0, memory=memory, units=units)
    return PlanRequest(node=node("o", memory_bytes=total), databases=(PG,) if rng.random() < 0.7 else (), sample=sample)


def test_what_differs_in_a_byte_is_planned_by_itself() -> None:
    shared = SharedPlans()
    base = PlanRequest(node=node("a"), databases=(PG,))
    for number in range(3):
        larger = dataclasses.replace(base, node=node(f"n{number}", memory_bytes=64 * GIB + number))
        assert shared.plan_node(larger) == plan_node(larger)
    assert shared.planned == 3


def test_a_job_keeps_a_bounded_number_of_answers() -> None:
    shared = SharedPlans()
    for number in range(KEPT_ANSWERS + 5):
        shared.plan_node(PlanRequest(node=node("n", memory_bytes=8 * GIB + number)))
    first = PlanRequest(node=node("n", memory_bytes=8 * GIB))
    assert shared.plan_node(first) == plan_node(first)
    assert shared.planned == KEPT_ANSWERS + 6


def test_a_job_keeps_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pickle writes them, questions and answers. The larger the answers, the fewer are kept."""
    monkeypatch.setattr(fleet, "KEPT_PARTS", 1500)
    monkeypatch.setattr(fleet, "KEPT_BYTES", MIB // 8)
    for count in (1, 8):
        databases = tuple(dataclasses.replace(PG, name=f"d{at}") for at in range(count))
        shared = SharedPlans()
        for number in range(KEPT_ANSWERS):
            shared.plan_node(PlanRequest(node=node("n", memory_bytes=64 * GIB + number), databases=databases))
        kept = sum(len(key) + len(pickle.dumps(answer)) for key, answer in shared._answers.items())
        assert MIB / 4 < kept < MIB, count
        assert sum(len(written) for _, written in shared._read.values()) < MIB // 4
        # What was dropped is planned again, and what is kept is not.
        for number in (0, KEPT_ANSWERS - 1):
            request = PlanRequest(node=node("n", memory_bytes=64 * GIB + number), databases=databases)
            assert shared.plan_node(request) == plan_node(request)
        assert shared.planned == KEPT_ANSWERS + 1
