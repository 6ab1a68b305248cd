"""A sentence that names databases or workloads names at most five of them, and says how many more there are."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from msgspec import to_builtins

from hugeplan.artifacts import memlock
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NodeSample,
    NumaNode,
    PlanRequest,
    Policy,
    Pool,
    Reservations,
    Tenant,
    Workload,
)
from hugeplan.planner.plan import plan

MANY = 12
NODE = NodeFacts(
    name="a-node",
    huge_page_sizes_bytes=(2 * MIB, GIB),
    numa=(NumaNode(id=0, mem_total_bytes=512 * GIB, pools=(Pool(page_bytes=2 * MIB, nr_hugepages=512),)),),
)


def databases(engine: str, **more: Any) -> tuple[DatabaseInstance, ...]:
    return tuple(DatabaseInstance(name=f"data-{at}", engine=engine, **more) for at in range(MANY))


def asked(*found: DatabaseInstance, node: NodeFacts = NODE, **more: Any) -> PlanRequest:
    given: dict[str, Any] = {"reservations": Reservations(), "tenants": (), "policy": Policy(), **more}
    return PlanRequest(node=node, databases=found, **given)


SMALL = replace(NODE, numa=(NumaNode(id=0, mem_total_bytes=8 * GIB),))
WORK = Workload(active_connections=2)
TENANTS = tuple(Tenant(name=f"data-{at}") for at in range(MANY))
REQUESTS = {
    "plain": asked(*databases("postgresql", settings={"shared_buffers": "1GB"})),
    "not fitting": asked(*databases("postgresql", settings={"shared_buffers": "1GB"}), node=SMALL),
    "sizes not read": asked(*databases("postgresql", unread_settings=("shared_buffers",))),
    "sizes not read and not fitting": asked(*databases("redis", unread_settings=("maxmemory",)), node=SMALL),
    "of connections that work": asked(
        *databases("postgresql", settings={"shared_buffers": "1GB", "max_connections": "99999"}, workload=WORK)
    ),
    "of unknown workloads": asked(*databases("mysql"), tenants=TENANTS),
    "of unknown pods": asked(*databases("mysql"), tenants=TENANTS, reservations=Reservations(kubernetes=True)),
    "that lock": asked(*databases("mysql", version="8.0.20", settings={"large_pages": "ON"})),
    "of a default size": asked(*databases("oracle", settings={"sga_target": "4G"})),
    "of no pool": asked(*databases("mongodb")),
    "of limits": asked(
        *databases("postgresql", settings={"shared_buffers": "1GB"}, pod_hugepages_limit_bytes=2 * MIB),
        reservations=Reservations(kubernetes=True),
        sample=NodeSample(),
    ),
}


def sentences(found: object) -> list[str]:
    if isinstance(found, str):
        return [found]
    if isinstance(found, dict):
        return [text for value in found.values() for text in sentences(value)]
    return [text for value in found for text in sentences(value)] if isinstance(found, list | tuple) else []


@pytest.mark.parametrize("what", REQUESTS)
def test_a_sentence_names_at_most_five(what: str) -> None:
    found = plan(REQUESTS[what])
    said = sentences(to_builtins(found))
    lines = [line for one in memlock.render(found, REQUESTS[what]) for line in one.content.splitlines()]
    long = [text for text in (*said, *lines) if len(set(re.findall(r"data-\d+", text))) > 5]
    assert long == []
