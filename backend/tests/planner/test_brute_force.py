"""A plan's page sizes against every combination of them, planned by force: 150 scenarios or more per seed.

A plan that says "does not fit" is right where no combination fits. One that fits has the highest score of those that
fit and are no less safe.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.seeds import SEEDS

from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Policy,
    Reservations,
    Tenant,
    Workload,
)
from hugeplan.planner.plan import plan

SIZES = (0, 2 * MIB, GIB)
SCENARIOS = 150
#: A day's dice may roll few of a kind among 150: more are rolled until each kind was seen this often.
OF_EACH_KIND = 6
#: Scores are rounded to three digits in a plan.
ROUNDED = 0.01


def database(rng: random.Random, name: str, nodes: int, gib: int) -> DatabaseInstance:
    engine, settings = rng.choice(
        (
            ("postgresql", {"shared_buffers": f"{gib}GB", "max_connections": rng.choice(("20", "100"))}),
            ("postgresql", {"shared_buffers": f"{gib}GB", "max_connections": "100"}),
            ("mysql", {"innodb_buffer_pool_size": f"{gib}G"}),
            ("mariadb", {"innodb_buffer_pool_size": f"{gib}G"}),
            ("jvm", {"Xmx": f"{gib}g"}),
        )
    )
    return DatabaseInstance(
        name=name,
        engine=engine,
        settings=settings,
        numa_node=rng.choice((None, None, *range(nodes))),
        weight=rng.choice((0.2, 1.0, 5.0)),
        workload=Workload(operation_class=rng.choice(("key_lookup", "oltp")), active_connections=8),
    )


def scenario(rng: random.Random) -> PlanRequest:
    """One to three servers on one to three NUMA nodes, often with too little memory or a provider's cap."""
    nodes = rng.choice((1, 2, 2, 3))
    far = rng.choice((None, None, None, nodes - 1)) if nodes > 1 else None
    pools = [rng.choice((1, 3, 7, 12, 20)) for _ in range(rng.choice((1, 2, 3)))]
    each = (sum(pools) * rng.uniform(1.0, 1.9) + 4) / nodes
    numa = tuple(
        NumaNode(id=i, mem_total_bytes=int(each * rng.uniform(0.6, 1.4) * GIB), cpulist="" if i == far else f"{i}")
        for i in range(nodes)
    )
    limit = rng.choice((None, 8 * GIB))
    return PlanRequest(
        node=NodeFacts(name="n", numa=numa, kernel_used_bytes=256 * MIB, cpus=16, hvo_enabled=rng.choice((None, True))),
        tenants=(
            Tenant(name="app", request_bytes=rng.randrange(0, 4 * GIB), limit_bytes=limit),
            Tenant(name="near", request_bytes=GIB, limit_bytes=2 * GIB, numa_node=rng.choice((None, 0))),
        ),
        databases=tuple(database(rng, f"d{i}", nodes, gib) for i, gib in enumerate(pools)),
        policy=Policy(
            free_margin_bytes=0, slack_min_pages=rng.choice((0, 2)), slack_fraction=rng.choice((0.0, 0.01, 0.05))
        ),
        reservations=Reservations(
            kubernetes=True, provider=rng.choice(("gke", None)), kube_reserved_bytes=rng.choice((0, None))
        ),
    )


def by_force(request: PlanRequest) -> Iterator[Plan]:
    """The plans of all combinations of page sizes that fit."""
    for sizes in itertools.product(SIZES, repeat=len(request.databases)):
        pairs = list(zip(request.databases, sizes, strict=True))
        found = plan(replace(request, databases=tuple(replace(d, page_bytes=size) for d, size in pairs)))
        available = all(f.state != "wrong" for f in found.findings if f.code == "page_size_not_available")
        as_asked = all(i.page_bytes == (size or None) for i, size in zip(found.instances, sizes, strict=True))
        if found.feasible and available and as_asked:
            yield found


def safety(found: Plan) -> int:
    """How the probability compares with the policy: above it, on both sides of it, within it."""
    chance = found.risk.probability
    assert chance is not None
    return 2 if chance.high <= found.risk.policy else 0 if chance.low > found.risk.policy else 1


def score(found: Plan) -> float:
    return sum(i.chosen.score for i in found.instances if i.chosen is not None)


def is_unconstrained(found: Plan) -> bool:
    """Whether every instance has the page size that it would have by itself: no combination has a higher score."""
    return found.feasible and all(
        i.runner_up is None or (i.chosen is not None and i.chosen.score >= i.runner_up.score) for i in found.instances
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_no_combination_of_page_sizes_is_better(seed: int) -> None:
    rng = random.Random(seed)
    fits = constrained = refused = 0
    for number in range(4 * SCENARIOS):
        if number >= SCENARIOS and min(fits, constrained, refused) >= OF_EACH_KIND:
            break
        request = scenario(rng)
        found = plan(request)
        for numa in request.node.numa:
            parts = [part.bytes for part in found.ledger.parts if part.numa_node == numa.id]
            assert sum(parts) == numa.mem_total_bytes, (seed, number)
        fits += found.feasible
        if is_unconstrained(found):
            continue
        others = list(by_force(request))
        assert found.feasible == bool(others), (seed, number)
        refused += not found.feasible
        constrained += found.feasible
        as_safe = [score(other) for other in others if safety(other) >= safety(found)]
        assert not as_safe or score(found) >= max(as_safe) - ROUNDED, (seed, number)
    assert min(fits, constrained, refused) >= OF_EACH_KIND
