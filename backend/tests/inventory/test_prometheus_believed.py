"""What programs that are scraped say of nodes and pods that another job tells of, and what honest fleets have."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.prometheus_server import Lines, selects, serving

from hugeplan.inventory.model import FoundNode
from hugeplan.inventory.prometheus import read_prometheus
from hugeplan.inventory.prometheus.believed import Believed
from hugeplan.inventory.prometheus.client import Series
from hugeplan.planner.model import GIB

KSM = {"job": "kube-state-metrics", "instance": "10.0.9.1:8080"}
STRANGER = {"job": "t/program", "instance": "10.9.9.9:80"}
FORGED = {"job": "kube-state-metrics", "instance": "10.9.9.9:80"}


def sizes(name: str, at: dict[str, str], **resources: int) -> Lines:
    """Capacity and allocatable of a node, in GiB."""
    return [
        (f"kube_node_status_{table}", {"node": name, "resource": resource, **at}, size * GIB)
        for table in ("capacity", "allocatable")
        for resource, size in resources.items()
    ]


def node(name: str, at: dict[str, str] = KSM) -> Lines:
    """A node as kube-state-metrics tells of it."""
    info = ("kube_node_info", {"node": name, "internal_ip": name, "kubelet_version": "v1.34.0", **at}, 1.0)
    return [info, *sizes(name, at, memory=64, hugepages_2Mi=0)]


def pod(name: str, on: str, at: dict[str, str] = KSM, image: str = "nginx:1", **limits: int) -> Lines:
    """A pod of one container."""
    own = {"namespace": "shop", "pod": name, **at}
    found: Lines = [("kube_pod_info", {**own, "node": on}, 1),
                    ("kube_pod_container_info", {**own, "container": "c", "image": image}, 1)]  # fmt: skip
    return [*found, *(limit(name, at, resource, size) for resource, size in limits.items())]


def limit(name: str, at: dict[str, str], resource: str, size: int) -> tuple[str, dict[str, str], float]:
    """A limit of a pod's container, in GiB."""
    labels = {"namespace": "shop", "pod": name, "container": "c", "resource": resource, **at}
    return "kube_pod_container_resource_limits", labels, size * GIB


OWN = [*node("k1"), *node("k2"), *pod("pg-0", "k1", image="postgres:17", memory=40), *pod("web-0", "k1"),
       *pod("web-1", "k2", memory=4)]  # fmt: skip


def read(lines: Lines) -> tuple[list[FoundNode], str]:
    """The nodes, and the notes."""
    with serving(lines, []) as url:
        found = read_prometheus(url)
    return list(found.nodes), "; ".join(found.notes)


HONEST, NO_NOTES = read(OWN)
ADDED: dict[str, Any] = {
    "a page size": lambda at: sizes("k1", at, hugepages_1Gi=33),
    "another size of memory": lambda at: sizes("k1", at, memory=128)[1:],
    "an address": lambda at: [("kube_node_info", {"node": "k1", "internal_ip": "k2", **at}, 1)],
    "a pod": lambda at: pod("ghost-0", "k1", at, hugepages_2Mi=24),
    "another node of a pod": lambda at: pod("web-1", "k1", at)[:1],
    "a limit": lambda at: [limit("web-0", at, "hugepages_2Mi", 20)],
    "a larger limit": lambda at: [limit("pg-0", at, "memory", 50)],
    "a container": lambda at: pod("web-0", "k1", at, "mysql:8")[1:],
    "an end": lambda at: [("kube_pod_status_phase", {"namespace": "shop", "pod": "pg-0", "phase": "Failed", **at}, 1)],
}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("at", [STRANGER, FORGED])
@pytest.mark.parametrize("what", ADDED)
def test_what_is_added_to_a_node_that_another_job_tells_of_is_left_out_with_a_note(
    what: str, at: dict[str, str], first: bool
) -> None:
    """A program of the exporter's own job is one of its shards where it tells of pods: nothing shows another thing."""
    if at == FORGED and what in {"a pod", "another node of a pod"}:
        return
    said = ADDED[what](at)
    found, notes = read([*said, *OWN] if first else [*OWN, *said])
    assert NO_NOTES == ""
    assert found == HONEST
    assert f"what job {at['job']} says of " in notes
    assert "is left out: " in notes


@pytest.mark.parametrize("more", [0, 3])
@pytest.mark.parametrize("what", ADDED)
def test_a_job_that_tells_of_all_and_adds_to_a_node_takes_that_node_alone(what: str, more: int) -> None:
    """However many nodes it makes up, it is not believed in the place of another."""
    copied = [(name, {**labels, **STRANGER}, value) for name, labels, value in OWN]
    made_up = [line for number in range(more) for line in node(f"x{number}", STRANGER)]
    found, notes = read([*OWN, *copied, *made_up, *ADDED[what](STRANGER)])
    assert [one for one in found if one.facts.name == "k2"] == HONEST[1:]
    assert "k1" not in [one.facts.name for one in found]
    assert "node k1 is left out: the series say different things of it" in notes


def test_replicas_shards_and_a_second_exporter_that_says_the_same_leave_no_note() -> None:
    shard = {**KSM, "instance": "10.0.9.2:8080"}
    of_second = [(name, {**labels, **shard}, value) if labels.get("pod") == "web-1" or labels.get("node") == "k2"
                 else (name, labels, value) for name, labels, value in OWN]  # fmt: skip
    again = [(name, {**labels, **shard}, value) for name, labels, value in OWN]
    cost = [(name, {**labels, "job": "opencost", "instance": "10.0.9.3:9003"}, value) for name, labels, value in OWN
            if name not in {"kube_pod_info", "kube_node_info"}]  # fmt: skip
    for lines in (of_second, [*OWN, *again], [*OWN, *cost], [*cost, *OWN]):
        assert read(lines) == (HONEST, "")


def test_federated_jobs_are_believed_of_their_own_nodes_also_where_pods_have_one_name() -> None:
    other = {"job": "federate-b", "instance": "b"}
    beside = [*node("b1", other), *pod("pg-0", "b1", other, image="mysql:8", memory=8)]
    found, notes = read([*OWN, *beside])
    assert ([one for one in found if one.facts.name != "b1"], notes) == (HONEST, "")
    (b1,) = [one for one in found if one.facts.name == "b1"]
    assert [one.instance.engine for one in b1.databases] == ["mysql"]


def test_pods_of_a_job_of_their_own_are_there_with_a_note() -> None:
    """kube-state-metrics may be one program for nodes and another for pods."""
    lines = [(name, {**labels, "job": "ksm-pods"} if name.startswith("kube_pod") else labels, value)
             for name, labels, value in OWN]  # fmt: skip
    found, notes = read(lines)
    assert found == HONEST
    assert notes == "pods are those that job ksm-pods tells of: job kube-state-metrics tells of none"


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("job", ["t/program", "t/kube-state-metrics", "program"])
@pytest.mark.parametrize("count", [1, 40])
def test_whoever_adds_a_pod_where_pods_have_a_job_of_their_own_takes_that_node_alone(
    job: str, count: int, first: bool
) -> None:
    """Series of one pod are no pods, and a job's name is what makes it be believed of the other nodes."""
    own = [(name, {**labels, "job": "kube-state-metrics-pods"} if name.startswith("kube_pod") else labels, value)
           for name, labels, value in OWN]  # fmt: skip
    at = {**STRANGER, "job": job}
    said = [(name, {**labels, "uid": str(uid)}, value) for uid in range(count)
            for name, labels, value in pod("ghost-0", "k1", at, image="postgres:17", memory=50)]  # fmt: skip
    found, notes = read([*said, *own] if first else [*own, *said])
    assert found == HONEST[1:]
    assert "node k1 is left out: the series say different things of it" in notes
    assert "pods are those that job kube-state-metrics-pods tells of" in notes


def test_pods_that_a_stranger_alone_tells_of_where_pods_have_a_job_of_their_own_take_their_node() -> None:
    """The other job's silence of a node is what it says of it."""
    own = [(name, {**labels, "job": "ksm-pods"} if name.startswith("kube_pod") else labels, value)
           for name, labels, value in [*OWN, *node("k3")]]  # fmt: skip
    found, notes = read([*own, *pod("ghost-0", "k3", STRANGER, image="postgres:17")])
    assert found == HONEST
    assert "node k3 is left out: the series say different things of it" in notes
    again = [(name, {**labels, "job": "z-pods"}, value) for name, labels, value in own if labels["job"] == "ksm-pods"]
    assert [one.facts.name for one in read([*own, *again])[0]] == ["k1", "k2", "k3"]


@pytest.mark.parametrize(("length", "pods"), [(253, 1), (254, 0)])
@pytest.mark.parametrize("label", ["namespace", "pod", "node"])
def test_a_series_with_a_longer_name_than_kubernetes_has_is_not_read(label: str, length: int, pods: int) -> None:
    said = [(name, {**labels, **({label: "a" * length} if label in labels else {})}, value)
            for name, labels, value in [*node("k3"), *pod("odd-0", "k3")]]  # fmt: skip
    found, _ = read([*OWN, *said])
    assert [one for one in found if one.facts.name in {"k1", "k2"}] == HONEST
    assert sum(one.pods for one in found if one not in HONEST) == pods


class Recorded:
    """As many nodes and pods, told of by two jobs."""

    def __init__(self, count: int) -> None:
        lines = [line for at in (KSM, STRANGER) for i in range(count)
                 for line in (*node(f"n.{i}", at), *pod(f"p{i}", f"n.{i}", at, memory=1))]  # fmt: skip
        self.series = [Series({"__name__": name, **labels}, (0,), (value,)) for name, labels, value in lines]

    def query(self, expression: str) -> list[Series]:
        return [one for one in self.series if selects(expression, one.labels["__name__"])]

    def query_range(self, *_: object) -> list[Series]:
        return []


def test_two_jobs_that_tell_of_all_cost_what_they_tell() -> None:
    def seconds(count: int) -> float:
        tables = Recorded(count)
        began = time.process_time()
        assert Believed(tables).contradicted([]) == set()
        return time.process_time() - began

    assert seconds(6_000) < 8 * min(seconds(1_500) for _ in range(3))
