"""Measured throughputs decide: between two points that rise, more buffer pool is never worth nothing."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from support.seeds import SEEDS

from hugeplan.planner.model import (
    GIB,
    BenefitPoint,
    DatabaseInstance,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Policy,
    Workload,
)
from hugeplan.planner.plan import plan
from hugeplan.planner.pool_benefit.benefit_of_size import pool_benefit, table_says

Table = list[tuple[int, float]]


def points_of(table: Table) -> tuple[BenefitPoint, ...]:
    return tuple(BenefitPoint(pool_bytes=gib * GIB, throughput=value) for gib, value in table)


def planned(table: Table, most_gib: int) -> Plan:
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=1024 * GIB),), kernel_used_bytes=GIB)
    database = DatabaseInstance(
        name="db",
        engine="postgresql",
        pool_min_bytes=4 * GIB,
        pool_max_bytes=most_gib * GIB,
        workload=Workload(benefit_points=points_of(table)),
    )
    return plan(PlanRequest(node=node, databases=(database,)))


@pytest.mark.parametrize(
    "table",
    [
        [(16, 7000), (64, 9000), (128, 9500)],
        [(8, 4000), (16, 7000), (64, 9000), (128, 9500)],
        [(8, 4000), (16, 7000), (32, 8900), (64, 9000), (128, 9500)],
        [(128, 9500), (16, 7000), (64, 9000), (32, 8800)],
    ],
)
def test_a_large_node_takes_the_pool_that_was_measured_best(table: Table) -> None:
    found = planned(table, 256).instances[0]
    assert found.demand.pool_bytes is not None
    assert 127.5 * GIB <= found.demand.pool_bytes <= 130 * GIB
    if found.pool_benefit is not None:
        assert found.pool_benefit.throughput == pytest.approx(9500, rel=0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_more_pool_between_rising_points_is_worth_something(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        sizes = sorted(rng.sample(range(2, 300), rng.randrange(2, 9)))
        value, table = rng.uniform(100, 5000), []
        for size in sizes:
            table.append((size, value))
            value += rng.choice((1.0, 0.2, 0.03, 0.005)) * rng.uniform(50, 3000)
        points = points_of(table)
        grid = np.linspace(sizes[0] * GIB, sizes[-1] * GIB, 200).astype(int).tolist()
        benefits, _ = pool_benefit(Workload(benefit_points=points), grid)
        assert all(b > a for a, b in itertools.pairwise(benefits)), (seed, table)
        assert benefits[-1] == pytest.approx(100.0, abs=5.0)
        middle = grid[rng.randrange(0, 199)]
        said = table_says(points, middle)
        if said is not None:
            assert said.marginal_per_gib > 0, (seed, table, middle)
            share = 100.0 * said.throughput / max(y for _, y in table)
            assert share == pytest.approx(benefits[grid.index(middle)], rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_large_node_takes_all_that_rises(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        sizes = sorted(rng.sample(range(8, 200), rng.randrange(3, 7)))
        table = [(size, 1000.0 * (i + 1) ** rng.uniform(0.2, 1.5)) for i, size in enumerate(sizes)]
        best = max(table, key=lambda row: row[1])[0]
        pool = planned(table, 250).instances[0].demand.pool_bytes
        assert pool is not None
        assert pool >= 0.99 * best * GIB, (seed, table)


@pytest.mark.parametrize("seed", SEEDS)
def test_at_a_measured_size_the_benefit_is_the_measured_one(seed: int) -> None:
    """Also where returns rise before they fall: 12 GiB 524 and 21 GiB 4,456 are not worth half of it at 12 GiB."""
    rng = random.Random(seed)
    for _ in range(60):
        sizes = sorted(rng.sample(range(2, 300), rng.randrange(2, 9)))
        table = [(size, rng.uniform(100, 9000)) for size in sizes]
        best = max(y for _, y in table)
        benefits, _ = pool_benefit(Workload(benefit_points=points_of(table)), [size * GIB for size in sizes])
        reached = list(itertools.accumulate((y for _, y in table), max))
        for benefit, (_, value), most in zip(benefits, table, reached, strict=True):
            if value == most:  # a point below a smaller one is noise: the lines pass above it
                assert benefit == pytest.approx(100 * value / best, abs=6.0), (seed, table)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_databases_share_as_their_tables_say(seed: int) -> None:
    """Against every split of its memory, read off the tables by straight lines: at most 3 points less.

    Of 15 splits together: of 4,500 one was worth 18 less, where a fitted curve bends between two points far apart.
    """
    rng = random.Random(seed)
    less = []
    for _ in range(15):
        tables: list[Table] = []
        for _ in range(2):
            sizes = sorted(rng.sample(range(2, 40), rng.randrange(2, 6)))
            tables.append([(sizes[0], value := rng.uniform(500, 2000))])
            for before, size in itertools.pairwise(sizes):
                value += rng.uniform(1, 500) * (size - before)
                tables[-1].append((size, value))
        least = sum(table[0][0] for table in tables) + 4
        memory = max(least, rng.uniform(0.5, 0.95) * sum(table[-1][0] for table in tables) + 4)
        databases = tuple(
            DatabaseInstance(
                name=f"d{i}",
                engine="mariadb",
                version="11.4",
                page_bytes=2 << 20,
                pool_min_bytes=table[0][0] * GIB,
                pool_max_bytes=table[-1][0] * GIB,
                workload=Workload(benefit_points=points_of(table)),
            )
            for i, table in enumerate(tables)
        )
        node = NodeFacts(
            name="n", numa=(NumaNode(id=0, mem_total_bytes=int(memory * GIB)),), kernel_used_bytes=GIB // 4
        )
        policy = Policy(free_margin_bytes=0, slack_fraction=0.0, slack_min_pages=0)
        found = plan(PlanRequest(node=node, databases=databases, policy=policy))
        pools = [(instance.demand.pool_bytes or 0) / GIB for instance in found.instances]

        def worth(split: tuple[float, float], tables: list[Table] = tables) -> float:
            values = (
                np.interp(size, *zip(*table, strict=True)) / table[-1][1]
                for size, table in zip(split, tables, strict=True)
            )
            return 100.0 * float(sum(values))

        first = np.linspace(tables[0][0][0], tables[0][-1][0], 300)
        whole = sum(pools)
        splits = [(size, whole - size) for size in first if tables[1][0][0] <= whole - size <= tables[1][-1][0]]
        best = max((worth((float(a), float(b))) for a, b in splits), default=0.0)
        less.append(best - worth((pools[0], pools[1])))
    assert float(np.mean(less)) <= 3.0, (seed, less)
