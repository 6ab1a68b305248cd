"""A whole plan's choice of page sizes is the best there is: compared with every combination, planned by force."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from hugeplan.planner.choice.candidates import candidates_of_all
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.memory.ledger import free_bytes
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Policy,
    State,
    Tenant,
    Workload,
)
from hugeplan.planner.plan import plan

SIZES = (0, 2 * MIB, GIB)


def instance(rng: random.Random, name: str, nodes: int) -> DatabaseInstance:
    numa_node = rng.choice([None, *range(nodes)])
    workload = Workload(operation_class=rng.choice(["key_lookup", "oltp", "nested_loop"]))
    weight = rng.choice([0.2, 1.0, 3.0])
    gib = rng.choice([1, 2, 5, 9])
    if rng.random() < 0.3:
        settings = {"innodb_buffer_pool_size": f"{gib}G"}
        return DatabaseInstance(
            name=name, engine="mysql", settings=settings, numa_node=numa_node, weight=weight, workload=workload
        )
    settings = {"shared_buffers": f"{gib}GB", "max_connections": str(rng.choice([20, 100, 400]))}
    return DatabaseInstance(
        name=name, engine="postgresql", settings=settings, numa_node=numa_node, weight=weight, workload=workload
    )


def request_of(seed: int) -> PlanRequest:
    """Two or three instances of two engines on one or two NUMA nodes, often with too little memory for all."""
    rng = random.Random(seed)
    nodes = rng.choice([1, 2])
    numa = tuple(NumaNode(id=i, mem_total_bytes=rng.randrange(8 * GIB, 24 * GIB)) for i in range(nodes))
    return PlanRequest(
        node=NodeFacts(name="n", numa=numa, kernel_used_bytes=512 * MIB, hvo_enabled=True),
        tenants=(Tenant(name="app", request_bytes=rng.randrange(GIB, 6 * GIB)),),
        databases=tuple(instance(rng, f"d{i}", nodes) for i in range(rng.choice([2, 3]))),
        policy=Policy(free_margin_bytes=0, slack_min_pages=0, slack_fraction=0.0),
    )


def scores_of(request: PlanRequest) -> dict[tuple[str, int], float]:
    """(instance, page size or 0) -> points, with every size weighed beside the others."""
    context = DemandContext.of_node(request.node)
    return {
        (found.instance.name, candidate.page_bytes if candidate.is_pool else 0): candidate.score
        for found in candidates_of_all(request.node, request.databases, request.policy, context)
        for candidate in found.candidates
    }


def fits(found: Plan, request: PlanRequest) -> bool:
    enough = all(free_bytes(found.ledger, numa.id) >= 0 for numa in request.node.numa)
    had = all(f.state is not State.WRONG for f in found.findings if f.code == "page_size_not_available")
    return enough and had


@pytest.mark.parametrize("seed", range(24))
def test_equals_the_best_of_all_combinations(seed: int) -> None:
    request = request_of(seed)
    chosen = plan(request)
    scores = scores_of(request)
    every: list[float] = []
    for sizes in itertools.product(SIZES, repeat=len(request.databases)):
        forced = tuple(
            dataclasses.replace(d, page_bytes=size) for d, size in zip(request.databases, sizes, strict=True)
        )
        candidate = plan(dataclasses.replace(request, databases=forced))
        if fits(candidate, request):
            every.append(sum(scores[d.name, size] for d, size in zip(request.databases, sizes, strict=True)))
    if not every:
        assert not fits(chosen, request)
        return
    assert fits(chosen, request)
    own = sum(scores[planned.name, planned.page_bytes or 0] for planned in chosen.instances)
    assert own == pytest.approx(max(every), abs=1e-6)
