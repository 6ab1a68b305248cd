"""The page size does not turn with the last per cent of a setting: each is chosen on one side of one size."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from support.seeds import SEEDS

from hugeplan.planner.model import GIB, DatabaseInstance, NodeFacts, NumaNode, PlanRequest, Policy
from hugeplan.planner.plan import plan


def chosen(memory_gib: int, sizes: Sequence[str], rng: random.Random) -> list[int | None]:
    node = NodeFacts(
        name="n",
        numa=tuple(NumaNode(id=i, mem_total_bytes=memory_gib * GIB) for i in range(rng.choice((1, 1, 2)))),
        kernel_used_bytes=GIB,
        hvo_enabled=rng.choice((None, True)),
    )
    connections = str(rng.choice((20, 100, 500)))
    policy = Policy(slack_fraction=rng.choice((0.0, 0.01, 0.03)))
    picks = []
    for size in sizes:
        settings = {"shared_buffers": size, "max_connections": connections}
        database = DatabaseInstance(name="db", engine="postgresql", version="16", settings=settings)
        found = plan(PlanRequest(node=node, databases=(database,), policy=policy))
        picks.append(found.instances[0].page_bytes if found.feasible else None)
    return picks


def test_29_gb_between_28_and_30() -> None:
    rng = random.Random(1)
    assert len(set(chosen(64, ("28GB", "29GB", "30GB"), rng))) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_choose_alike(seed: int) -> None:
    """At most one turn from 2M to 1G over a range of sizes. Below 32 GB, where a hash table of the server doubles."""
    rng = random.Random(seed)
    for _ in range(12):
        sizes = [f"{gb * 1024 + rng.randrange(0, 1024)}MB" for gb in range(rng.choice((3, 5)), 30, 2)]
        memory = rng.choice((64, 128, 512, 2048))
        picks = [pick for pick in chosen(memory, sizes, rng) if pick is not None]
        turns = sum(a != b for a, b in itertools.pairwise(picks))
        assert turns <= 1, (seed, memory, list(zip(sizes, picks, strict=False)))
