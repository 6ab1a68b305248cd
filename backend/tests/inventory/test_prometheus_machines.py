"""Hosts of node_exporter beside nodes of kube-state-metrics: what a scraped program says takes none away silently."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.prometheus_server import Lines, selects, serving

from hugeplan.cli import main
from hugeplan.inventory.model import InventoryError
from hugeplan.inventory.prometheus import read_prometheus
from hugeplan.inventory.prometheus.client import Series
from hugeplan.inventory.prometheus.hosts import Host
from hugeplan.inventory.prometheus.machines import machines_of, not_in_clusters, of_clusters
from hugeplan.planner.model import GIB

STRANGER: dict[str, Any] = {"job": "t/program", "namespace": "t", "instance": "10.9.9.9:80"}


def host(name: str, address: str, size: int = 64, **labels: str) -> Lines:
    """A host as node_exporter tells of it."""
    at = {"instance": f"{address}:9100", "job": "node-exporter", **labels}
    return [("node_uname_info", {**at, "nodename": name, "machine": "x86_64"}, 1),
            ("node_memory_MemTotal_bytes", at, size * GIB)]  # fmt: skip


def node(name: str, address: str = "", size: int = 64, **labels: str) -> Lines:
    """A node as kube-state-metrics tells of it; without an address nobody says kube_node_info."""
    at = {"node": name, "job": "kube-state-metrics", **labels}
    lines: Lines = [
        ("kube_node_status_capacity", {**at, "resource": "memory"}, size * GIB),
        ("kube_node_status_allocatable", {**at, "resource": "memory"}, size * GIB - GIB),
    ]
    return [*lines, *([("kube_node_info", {**at, "internal_ip": address}, 1.0)] if address else [])]


def info(name: str, address: str, **labels: str) -> Lines:
    """The address of a node alone, as any program may say it."""
    return [("kube_node_info", {"node": name, "internal_ip": address, **STRANGER, **labels}, 1)]


def read(lines: Lines) -> tuple[dict[str, float], str]:
    """Sizes in GiB by node, and the notes."""
    with serving(lines, []) as url:
        found = read_prometheus(url)
    return {one.facts.name: one.facts.mem_total_bytes / GIB for one in found.nodes}, "; ".join(found.notes)


HOSTS = [*host("db-a", "10.0.0.1"), *host("db-b", "10.0.0.2", 32)]
OWN = [*HOSTS, *node("k1", "10.0.1.1"), *host("k1", "10.0.1.1")]
HONEST = {"db-a": 64.0, "db-b": 32.0, "k1": 64.0}


def test_what_is_honest_leaves_no_note() -> None:
    assert read(OWN) == (HONEST, "")


@pytest.mark.parametrize("name", ["whatever", "db-a", "k1"])
def test_a_node_that_is_only_an_address_takes_no_host_away(name: str) -> None:
    found, notes = read([*OWN, *info(name, "10.0.0.1")])
    assert {"db-a", "db-b"} <= found.keys()
    assert "k1" in found or "node k1 is left out" in notes


def test_addresses_alone_take_all_hosts_away_nowhere() -> None:
    """The refusal said that node_exporter has no series."""
    assert read([*HOSTS, *info("w1", "10.0.0.1"), *info("w2", "10.0.0.2")])[0] == {"db-a": 64, "db-b": 32}


@pytest.mark.parametrize("size", [1024, 64])
@pytest.mark.parametrize("labels", [{}, {"cluster": "aaa"}])
@pytest.mark.parametrize(("name", "address"), [("db-a", ""), ("db-a", "10.0.0.1"), ("x", "10.0.0.1")])
def test_a_node_of_a_lesser_job_takes_the_place_of_no_host(
    name: str, address: str, labels: dict[str, str], size: int
) -> None:
    found, notes = read([*OWN, *node(name, address, size, **{**STRANGER, **labels})])
    assert {key: found.get(key) for key in HONEST} == HONEST
    assert name == "x" or "nodes db-a are left out, their hosts stay: " in notes


@pytest.mark.parametrize("name", ["k1", "worker"])
def test_a_node_of_which_its_exporter_says_another_size_is_left_out(name: str) -> None:
    found, notes = read([*HOSTS, *node(name, "10.0.1.1"), *host("k1", "10.0.1.1", 16)])
    assert found == {"db-a": 64, "db-b": 32}
    assert f"nodes {name} (64 GiB, k1 at 10.0.1.1:9100 16 GiB) are left out: " in notes
    assert "alone" not in read([*HOSTS, *node("db-a", "10.0.0.1", 1024, job="t/program")])[1]
    with pytest.raises(InventoryError, match="node_exporter says another size"):
        read([*node("k1", "10.0.1.1"), *host("k1", "10.0.1.1", 16)])


@pytest.mark.parametrize("job", ["t/program", "kube-state-metrics"])
def test_a_node_that_a_job_alone_tells_of_is_merged_with_a_note_of_an_unknown_job(job: str) -> None:
    found, notes = read([*HOSTS, *node("db-a", "10.0.0.1", job=job)])
    assert found == {"db-a": 64, "db-b": 32}
    assert notes == (
        "nodes db-a are as programs of job t/program say alone: are those your kube-state-metrics?"
        if "/" in job
        else ""
    )


def test_many_made_up_nodes_make_no_job_the_exporter_silently() -> None:
    made_up = [line for number in range(3) for line in node(f"n{number}", **STRANGER)]
    found, notes = read([*OWN, *made_up, *node("db-a", "10.0.0.1", **STRANGER)])
    assert found.keys() >= HONEST.keys()
    assert "nodes k1 are left out, their hosts stay: " in notes
    assert "nodes db-a are as programs of job t/program say alone" in notes


def test_a_program_under_the_exporters_job_is_named_where_it_tells_of_a_host() -> None:
    """Who makes a Service names the job that scrapes it."""
    own = [*OWN, *node("k2", "10.0.1.2")]
    found, notes = read([*own, *node("db-a", "10.0.0.1", **{**STRANGER, "job": "kube-state-metrics"})])
    assert found == {**HONEST, "k2": 64}
    assert notes == "nodes db-a are as programs of job kube-state-metrics say alone: are those your kube-state-metrics?"
    assert read([*OWN, *node("k1", "10.0.1.1", instance="replica")]) == (HONEST, "")


def test_a_node_without_a_cluster_beside_clusters_is_named_where_it_has_a_hosts_name() -> None:
    nodes = [*node("k1", "10.0.1.1", cluster="A"), *node("k2", "10.0.1.2", cluster="B")]
    found, notes = read([*nodes, *HOSTS, *node("db-a", "10.0.0.1")])
    assert found == {"A/k1": 64, "B/k2": 64, "db-a": 64, "db-b": 32}
    assert "nodes db-a are as programs of job kube-state-metrics say alone: " in notes


def test_a_node_without_memory_takes_no_host_away() -> None:
    cpu: Lines = [("kube_node_status_capacity", {"node": "db-a", "resource": "cpu", **STRANGER}, 8)]
    found, notes = read([*HOSTS, *cpu, *info("db-a", "10.0.0.1")])
    assert found == {"db-a": 64, "db-b": 32}
    assert "node db-a is left out: its memory capacity is missing" in notes


def test_a_host_that_is_merged_under_another_name_is_named() -> None:
    found, notes = read([*node("k1", "10.0.1.1"), *host("ip-1", "10.0.1.1")])
    assert found == {"k1": 64}
    assert notes == "hosts ip-1 (k1) are the machines of these Kubernetes nodes: by address or name, and their size"


def test_a_node_of_which_two_things_are_said_takes_its_host_with_it_by_name() -> None:
    found, notes = read([*OWN, *host("ip-2", "10.0.1.2"), *node("k2", "10.0.1.2"), *node("k2", size=1, **STRANGER)])
    assert found == HONEST
    assert "node k2 is left out" in notes
    assert "hosts ip-2 (k2) are " in notes


def test_made_up_clusters_hide_no_host_and_a_note_names_the_clusters() -> None:
    lines = [*node("db-a", "10.0.0.1", 1024, **STRANGER, cluster="aaa"),
             *node("zz", "10.0.0.2", 32, **STRANGER, cluster="bbb")]  # fmt: skip
    found, notes = read([*OWN, *node("k2", "10.0.1.2"), *node("k3", "10.0.1.3"), *lines])
    assert {key: found.get(key) for key in HONEST} == HONEST
    assert "of clusters aaa, bbb" in notes


def test_a_made_up_cluster_hides_no_host_of_another_cluster() -> None:
    own = [(name, {**labels, "cluster": "A"}, value) for name, labels, value in OWN]
    found, notes = read([*own, *node("x", "10.0.0.1", **STRANGER, cluster="0")])
    assert {key: found.get(f"A/{key}") for key in HONEST} == HONEST
    assert "of clusters 0, A" in notes


def test_a_host_without_a_cluster_is_named_where_it_is_a_clusters_node() -> None:
    nodes = [*node("k1", "10.0.1.1", cluster="A"), *node("k2", "10.0.1.2", cluster="B")]
    found, notes = read([*nodes, *host("k1", "10.0.1.1"), *host("k2", "10.0.1.2", 32)])
    assert found == {"A/k1": 64, "B/k2": 64, "k2": 32}
    assert "hosts k1 (A/k1) are the machines" in notes


def test_a_host_of_a_lesser_job_goes_by_its_address_beside_a_node_of_its_name() -> None:
    found, notes = read([*OWN, *host("k1", "10.9.9.9", 1, job="t/program")])
    assert found == {**HONEST, "10.9.9.9:9100": 1}
    assert "hosts 10.9.9.9:9100 go by addresses" in notes


def test_of_two_nodes_under_one_name_neither_is_planned() -> None:
    """A node's label may hold a slash, as the names of clusters' nodes do."""
    nodes = [*node("k1", "10.0.1.1", cluster="A"), *node("k2", "10.0.1.2", cluster="B")]
    found, notes = read([*nodes, *node("A/k1", size=1, **STRANGER)])
    assert found == {"B/k2": 64}
    assert "nodes A/k1 are left out: " in notes


@pytest.mark.parametrize("contradicted", [False, True])
@pytest.mark.parametrize("name", ["k1", "K1", "k1.corp", "db-a", "DB-A.corp"])
def test_a_node_without_a_cluster_is_left_out_beside_a_clusters_node_or_host_of_its_name(
    name: str, contradicted: bool
) -> None:
    """Who copies files to hosts has that machine for it, also where the cluster's node itself is left out."""
    own = [*node("k1", "10.0.1.1", cluster="A"), *node("k2", "10.0.1.2", cluster="B"),
           *host("db-a", "10.0.0.1", cluster="A")]  # fmt: skip
    said = node("k1", size=1, cluster="A", instance="x", job="kube-state-metrics") if contradicted else []
    found, notes = read([*own, *said, *node(name, **STRANGER), *node("k3", **STRANGER)])
    assert found == {"A/db-a": 64, "B/k2": 64, "k3": 64, **({} if contradicted else {"A/k1": 64})}
    assert f"nodes {name} are left out: two are told of under one host's name" in notes


@pytest.mark.parametrize("lines", [host("db-a", "10.0.0.1", 0), node("k1", size=-1)])
def test_the_refusal_is_true_where_a_series_says_no_size(lines: Lines) -> None:
    with pytest.raises(InventoryError, match=r"says a size|memory capacity is missing"):
        read(lines)


def test_an_import_without_a_database_says_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The node that is left out may be the one with the databases."""
    with serving([*HOSTS, *node("k1", "10.0.1.1"), *host("k1", "10.0.1.1", 16)], []) as url:
        assert main(["import", "prometheus", url]) != 0
    assert "nodes k1 (64 GiB, k1 at 10.0.1.1:9100 16 GiB) are left out" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["DB-A", "db-a.x", "Db-A.", "K1", "k1.x"])
def test_another_spelling_of_a_hosts_name_is_that_name(name: str) -> None:
    """Who copies files to the hosts that they are named after has no other host for it, nor has ``hugeplan apply``."""
    found, notes = read([*OWN, *node("k2", "10.0.1.2"), *node(name, "10.9.9.9", 512, **STRANGER)])
    assert (found, f"nodes {name} are left out, their hosts stay: " in notes) == ({**HONEST, "k2": 64}, True)
    own = "k1" if name.lower().startswith("k1") else "10.0.0.1:9100"
    for job in ("t/node-x", "t/program", "node-exporter"):
        found, notes = read([*OWN, *host(name, "10.9.9.9", 512, job=job)])
        assert found == {own: 64, "db-b": 32, "k1": 64, "10.9.9.9:9100": 512, **({"db-a": 64} if own == "k1" else {})}
        assert f"hosts {'' if own == 'k1' else own + ', '}10.9.9.9:9100 go by addresses: " in notes
    assert not read([*OWN, *node("k2", "10.0.1.2", job="a"), *node("K2", job="b")])[0].keys() & {"k2", "K2"}


def test_names_with_one_first_part_are_as_many_hosts() -> None:
    """As those of ACK, TKE and CCE have."""
    nodes = [line for i in range(3) for line in (*node(f"cn-b.10.0.0.{i}", f"10.0.0.{i}"), *node(f"10.0.1.{i}"))]
    hosts = [line for i in range(3) for line in host(f"cn-b.10.0.0.{i}", f"10.0.0.{i}")]
    honest = read([*nodes, *hosts])
    assert (len(honest[0]), honest[1]) == (6, "")
    found, notes = read([*nodes, *hosts, *host("cn-b", "10.9.9.9", job="t/program")])
    assert found == {**honest[0], "10.9.9.9:9100": 64}
    assert "hosts 10.9.9.9:9100 go by addresses: " in notes


class Recorded:
    """A node and a host of each number, all at one address."""

    def __init__(self, count: int) -> None:
        self.hosts = [Host(f"10.0.0.1:{i}", {f"h{i}"}, values={"MemTotal": 1}) for i in range(count)]
        lines = [(i, line) for i in range(count) for line in node(f"n{i}", "10.0.0.1", instance=str(i), cluster="A")]
        self.series = [Series({"__name__": name, **labels}, (0,), (value,)) for _, (name, labels, value) in lines]

    def query(self, expression: str) -> list[Series]:
        return [one for one in self.series if selects(expression, one.labels["__name__"])]

    def query_range(self, *_: object) -> list[Series]:
        return []


def test_many_nodes_at_one_address_cost_what_they_are_many() -> None:
    recorded = Recorded(12_000)
    began = time.process_time()
    assert len(machines_of(recorded.hosts, recorded, (), []).beside) == 12_000
    assert len(not_in_clusters(recorded.hosts, recorded, [])) == 12_000
    assert of_clusters([f"n{i}.x" for i in range(12_000)], recorded, []) == {f"n{i}.x" for i in range(12_000)}
    assert time.process_time() - began < 4
