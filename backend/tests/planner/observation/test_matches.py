"""Which running server a database of a scenario is."""

from __future__ import annotations

import pytest

from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, NodeFacts, NumaNode, ObservedDatabase
from hugeplan.planner.observation import databases
from hugeplan.planner.observation.databases import match_databases


def described(name: str, shared_buffers: str) -> DatabaseInstance:
    return DatabaseInstance(name=name, engine="postgresql", settings={"shared_buffers": shared_buffers})


def running(key: str, shared_buffers: str) -> ObservedDatabase:
    return ObservedDatabase(key=key, engine="postgresql", version="17", settings={"shared_buffers": shared_buffers})


def context() -> DemandContext:
    return DemandContext.of_node(NodeFacts(name="n", arch="x86_64", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),)))


def test_the_only_one_of_its_size_is_matched() -> None:
    sizes = ["1GB", "2GB", "2GB", "3GB"]
    found = match_databases(
        [described(f"d{at}", size) for at, size in enumerate(sizes)],
        [running(f"u{at}", size) for at, size in enumerate(["3GB", "2GB", "1GB", "4GB"])],
        context(),
    )
    assert [(match.instance, match.database.key) for match in found.matched] == [("d0", "u2"), ("d3", "u0")]


def test_each_size_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one against all others, 60 databases beside a newer sample took longer than a request may."""
    asked = []
    known = databases.pool_bytes_of

    def counted(instance: DatabaseInstance, at: DemandContext) -> int | None:
        asked.append(instance.name)
        return known(instance, at)

    monkeypatch.setattr(databases, "pool_bytes_of", counted)
    match_databases(
        [described(f"d{at}", f"{at + 1}GB") for at in range(60)],
        [running(f"u{at}", f"{at * MIB}kB") for at in range(60)],
        context(),
    )
    assert len(asked) == 120
