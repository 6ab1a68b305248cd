"""What no rule could plan with is refused by the field's path, before anything is computed."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest

from hugeplan.planner.check import checked_request
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    MemoryHistory,
    NodeFacts,
    NumaNode,
    PlanRequest,
    Policy,
    Reservations,
    Tenant,
    Workload,
)

NODE = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=32 * GIB), NumaNode(id=1, mem_total_bytes=32 * GIB)))
DATABASE = DatabaseInstance(name="main", engine="postgresql", settings={"shared_buffers": "8GB"})
TENANT = Tenant(name="app", request_bytes=GIB, limit_bytes=2 * GIB)
REQUEST = PlanRequest(node=NODE, databases=(DATABASE,), tenants=(TENANT,))


def node(**changes: object) -> PlanRequest:
    return replace(REQUEST, node=replace(NODE, **changes))


def numa(*nodes: tuple[int, int]) -> PlanRequest:
    return node(numa=tuple(NumaNode(id=number, mem_total_bytes=size) for number, size in nodes))


def tenant(**changes: object) -> PlanRequest:
    return replace(REQUEST, tenants=(TENANT, replace(TENANT, **changes)))


def history(times: tuple[float, ...], used: tuple[int, ...]) -> PlanRequest:
    return tenant(history=MemoryHistory(times_seconds=times, used_bytes=used))


def database(**changes: object) -> PlanRequest:
    return replace(REQUEST, databases=(DATABASE, replace(DATABASE, name="second", **changes)))


def policy(**changes: object) -> PlanRequest:
    return replace(REQUEST, policy=replace(Policy(), **changes))


REFUSED = {
    "no NUMA node": (numa(), "node.numa", "at least one"),
    "a NUMA node twice": (numa((0, GIB), (0, GIB)), "node.numa[1].id", "each NUMA node once"),
    "less than no memory": (numa((0, GIB), (1, -1)), "node.numa[1].mem_total_bytes", "0 or more"),
    "no memory at all": (numa((0, 0), (1, 0)), "node.numa[0].mem_total_bytes", "memory on at least one"),
    "no base page": (node(base_page_bytes=0), "node.base_page_bytes", "more than 0"),
    "a huge page of a base page": (
        node(huge_page_sizes_bytes=(4096,)), "node.huge_page_sizes_bytes", "multiples of the base page",
    ),
    "a huge page and a half": (
        node(huge_page_sizes_bytes=(2 * MIB + 1,)), "node.huge_page_sizes_bytes", "multiples of the base page",
    ),
    "pages of radix and hash": (
        node(arch="ppc64le", base_page_bytes=64 * 1024, huge_page_sizes_bytes=(2 * MIB, 16 * MIB)),
        "node.huge_page_sizes_bytes", "not both",
    ),
    "a kernel larger than its node": (node(kernel_used_bytes=65 * GIB), "node.kernel_used_bytes", "0 to MemTotal"),
    "a kernel below nothing": (node(kernel_used_bytes=-1), "node.kernel_used_bytes", "0 to MemTotal"),
    "an unknown kind of workload": (tenant(kind="vm"), "tenants[1].kind", "one of pod, service, page_cache"),
    "fewer than none": (tenant(count=-1), "tenants[1].count", "0 or more"),
    "a request below nothing": (tenant(request_bytes=-1), "tenants[1].request_bytes", "0 or more"),
    "a limit below nothing": (tenant(request_bytes=None, limit_bytes=-1), "tenants[1].limit_bytes", "0 or more"),
    "a limit below the request": (tenant(limit_bytes=GIB - 1), "tenants[1].limit_bytes", "at least the request"),
    "a workload on no NUMA node": (tenant(numa_node=2), "tenants[1].numa_node", "one of the node's NUMA nodes: 0, 1"),
    "values without times": (history((0.0,), (1, 2)), "tenants[1].history.used_bytes", "as many values as times"),
    "a time that is none": (history((0.0, nan), (1, 2)), "tenants[1].history.times_seconds", "seconds since the epoch"),
    "a time without end": (history((0.0, inf), (1, 2)), "tenants[1].history.times_seconds", "seconds since the epoch"),
    "times in falling order": (history((1.0, 0.0), (1, 2)), "tenants[1].history.times_seconds", "in rising order"),
    "a name twice": (
        replace(REQUEST, databases=(DATABASE, DATABASE)), "databases[1].name", "a name used once",
    ),
    "an unknown engine": (database(engine="postgresq"), "databases[1].engine", "postgresql"),
    "a database on no NUMA node": (database(numa_node=7), "databases[1].numa_node", "0, 1"),
    "a weight below nothing": (database(weight=-1.0), "databases[1].weight", "a finite number of at least 0"),
    "a weight without end": (database(weight=inf), "databases[1].weight", "a finite number of at least 0"),
    "an unknown operation": (
        database(workload=Workload(operation_class="key_lookups")), "databases[1].workload.operation_class",
        "key_lookup",
    ),
    "one bound alone": (database(pool_max_bytes=GIB), "databases[1].pool_range", "both bounds or none"),
    "bounds in falling order": (
        database(pool_min_bytes=2 * GIB, pool_max_bytes=GIB), "databases[1].pool_range", "not below it",
    ),
    "a lower bound of nothing": (
        database(pool_min_bytes=0, pool_max_bytes=GIB), "databases[1].pool_range", "a lower bound above 0",
    ),
    "a range for an engine that sizes itself": (
        database(engine="mongodb", settings={}, pool_min_bytes=GIB, pool_max_bytes=2 * GIB), "databases[1].pool_range",
        "an engine whose pool has a size setting",
    ),
    "slack in percent": (policy(slack_fraction=2.0), "policy.slack_fraction", "did you mean 0.02?"),
    "slack below nothing": (policy(slack_fraction=-0.1), "policy.slack_fraction", "0 to 0.5"),
    "slack of fewer than no pages": (policy(slack_min_pages=-1), "policy.slack_min_pages", "0 or more"),
    "certainty": (policy(risk=0.0), "policy.risk", "more than 0 and less than 1"),
    "a risk of one": (policy(risk=1.0), "policy.risk", "more than 0 and less than 1"),
    "an unknown moment": (policy(reserve_at="later"), "policy.reserve_at", "one of boot, runtime"),
    "a margin below nothing": (policy(free_margin_bytes=-1), "policy.free_margin_bytes", "0 or more"),
    "a page size that the node has not": (
        policy(allowed_page_bytes=(16 * MIB,)), "policy.allowed_page_bytes", "the node's huge page sizes: 2M, 1G",
    ),
    "a reservation below nothing": (
        replace(REQUEST, reservations=Reservations(system_reserved_bytes=-1)), "reservations.system_reserved_bytes",
        "0 or more",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_by_its_field(what: str) -> None:
    request, field, expected = REFUSED[what]
    with pytest.raises(PlannerError) as refused:
        checked_request(request)
    assert refused.value.field == field
    assert expected in refused.value.expected


def test_what_can_be_planned_with_is_taken_as_it_is_but_for_names_and_empty_sockets() -> None:
    request = replace(numa((0, GIB), (1, 0)), databases=(replace(DATABASE, engine="postgres"),))
    checked = checked_request(request)
    assert [one.id for one in checked.node.numa] == [0]
    assert checked.databases == (DATABASE,)
    assert checked_request(REQUEST) == REQUEST
