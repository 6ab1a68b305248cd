"""Any scraped program may leave labels out: what has no name is nobody's, and takes nothing from anybody."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.prometheus_server import Lines, selects

from hugeplan.http_answer import Answer
from hugeplan.inventory.model import FoundNode, Inventory
from hugeplan.inventory.prometheus import client, queries, read_prometheus
from hugeplan.planner.model import GIB, MIB

NOW = 1_700_000_000.0
AGGREGATED = {queries.CPUS: "cpus", queries.POD_USE: "pod use", queries.HOST_USE: "host use"}


def node(name: str, job: dict[str, str]) -> Lines:
    """A node and its pod, as kube-state-metrics and cAdvisor tell of them."""
    at, of = {**job, "node": name}, {**job, "namespace": "n", "pod": f"pg-{name}"}
    asked = {**of, "container": "c", "resource": "memory"}
    return [
        ("kube_node_info", {**at, "internal_ip": name, "kernel_version": "6.1.0", "system_uuid": f"u-{name}"}, 1),
        *[
            (f"kube_node_status_{table}", {**at, "resource": resource}, size)
            for table in ("capacity", "allocatable")
            for resource, size in (("memory", 64 * GIB), ("hugepages_2Mi", 8 * GIB))
        ],
        ("kube_pod_info", {**of, "node": name}, 1),
        ("kube_pod_status_phase", {**of, "phase": "Running"}, 1),
        ("kube_pod_container_info", {**of, "container": "c", "image": "postgres:17"}, 1),
        ("kube_pod_container_resource_requests", asked, 9 * GIB),
        ("kube_pod_container_resource_limits", asked, 9 * GIB),
        ("kube_pod_container_resource_limits", {**asked, "resource": "hugepages_2Mi"}, GIB),
        ("pod use", {**of, "job": "kubelet"}, 5 * GIB),
        ("pg_settings_shared_buffers_bytes", {**of, "job": "pg", "instance": f"{name}:9187"}, 2 * GIB),
        ("up", {**of, "job": "pg", "instance": f"{name}:9187"}, 1),
    ]


def host(name: str, job: str) -> Lines:
    """A host as node_exporter tells of it."""
    at = {"instance": f"{name}-at:9100", "job": job}
    said = {"MemTotal_bytes": 64 * GIB, "MemAvailable_bytes": 9 * GIB, "Hugepagesize_bytes": 2 * MIB,
            "HugePages_Total": 4.0, "HugePages_Free": 4.0}  # fmt: skip
    return [
        ("node_uname_info", {**at, "nodename": name, "machine": "x86_64", "release": "6.1.0"}, 1),
        *[(f"node_memory_{entry}", at, value) for entry, value in said.items()],
        ("node_memory_numa_MemTotal", {**at, "node": "0"}, 64 * GIB),
        ("cpus", at, 16),
        ("host use", at, 40 * GIB),
    ]


KSM = {"job": "kube-state-metrics", "instance": "10.0.9.1:8080"}
OWN = [*node("k1", KSM), *node("k2", KSM), *host("k1", "node-exporter"), *host("db", "node-exporter")]
TENANT = [*node("x1", {"job": "t/program", "instance": "10.9.9.9:80"}), *host("x-db", "t/program")]
LEFT_OUT = [(at, label) for at, (_, labels, _) in enumerate(TENANT) for label in labels]


def read(lines: Lines) -> Inventory:
    """The inventory of a server with these series."""

    def whole_answer(*_: object, data: dict[str, str], **__: object) -> Answer:
        asked = AGGREGATED.get(data["query"])
        result: Any = [
            {"metric": {"__name__": name, **labels}, "values": [[NOW - hour, value] for hour in (7200, 3600)]}
            for name, labels, value in lines
            if (name == asked if asked else selects(data["query"], name))
        ]
        if data["query"] == "time()":
            result = [NOW, str(NOW)]
        content = json.dumps({"status": "success", "data": {"result": result}}).encode()
        return Answer(200, httpx.Headers(), content)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(client, "whole_answer", whole_answer)
        return read_prometheus("http://prometheus.example")


def known(found: Iterable[FoundNode]) -> dict[str, FoundNode]:
    """The nodes by their names."""
    return {one.facts.name: one for one in found}


HONEST = read(OWN)


def test_what_is_told_in_full_is_read() -> None:
    found = known(read([*OWN, *TENANT]).nodes)
    assert list(found) == ["db", "k1", "k2", "x-db", "x1"]
    assert [len(found[name].databases) for name in ("k1", "k2", "x1")] == [1, 1, 1]
    assert [found[name].facts.cpus for name in ("db", "x-db")] == [16, 16]
    assert HONEST.notes == ()


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.sampled_from(sorted({label for _, label in LEFT_OUT}))), st.sets(st.sampled_from(LEFT_OUT)))
@example({"node"}, set())
@example({"instance"}, set())
@example({"instance", "nodename"}, set())
@example({"namespace", "pod"}, set())
@example({"container"}, set())
def test_labels_that_a_program_leaves_out_change_no_others_node(
    everywhere: set[str], here: set[tuple[int, str]]
) -> None:
    said: Lines = [
        (name, {key: text for key, text in labels.items() if key not in everywhere and (at, key) not in here}, value)
        for at, (name, labels, value) in enumerate(TENANT)
    ]
    found = known(read([*said, *OWN]).nodes)
    assert {name: one for name, one in found.items() if name in known(HONEST.nodes)} == known(HONEST.nodes)
    assert found.keys() - known(HONEST.nodes) <= {"x1", "x-db", "x-db-at:9100"}
    made = [database for one in found.values() for database in one.databases]
    assert {(one.namespace, one.workload, one.recognised.container) for one in made} <= {
        ("n", f"pg-{name}", "c") for name in ("k1", "k2", "x1")
    }
