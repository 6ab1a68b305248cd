"""One Prometheus with several clusters, as Thanos and federation make them. What is
tested is what is asked, and what is made of the answers.
"""

from __future__ import annotations

import pytest
from support.prometheus_server import Lines, serving

from hugeplan.inventory.model import InventoryError
from hugeplan.inventory.prometheus import queries, read_prometheus
from hugeplan.inventory.prometheus.client import PrometheusClient, Series
from hugeplan.inventory.prometheus.pods import histories
from hugeplan.planner.model import GIB, MIB


def cluster(labels: dict[str, str], *, address: str, memory: int = 64 * GIB, pods: int = 1) -> Lines:
    """A cluster of one node named worker-1."""
    lines: Lines = [
        ("kube_node_info", {"node": "worker-1", "internal_ip": address}, 1),
        ("kube_node_status_capacity", {"node": "worker-1", "resource": "memory"}, memory),
        ("kube_node_status_allocatable", {"node": "worker-1", "resource": "memory"}, memory - GIB),
    ]
    for index in range(pods):
        pod = {"namespace": "web", "pod": f"shop-{index}"}
        lines.append(("kube_pod_info", {**pod, "node": "worker-1"}, 1))
        lines.append(("kube_pod_container_info", {**pod, "container": "app", "image": "shop:v1"}, 1))
    lines += [
        ("node_uname_info", {"instance": f"{address}:9100", "nodename": "ip-node", "machine": "x86_64"}, 1),
        ("node_memory_MemTotal_bytes", {"instance": f"{address}:9100"}, memory),
    ]
    return [(name, {**own, **labels}, value) for name, own, value in lines]


def test_clusters_are_kept_apart_by_their_label() -> None:
    lines = [
        *cluster({"cluster": "east"}, address="10.0.0.1", pods=2),
        *cluster({"cluster": "west"}, address="10.0.0.1", memory=128 * GIB, pods=3),
    ]
    asked: list[str] = []
    with serving(lines, asked) as url:
        found = read_prometheus(url)
    assert [(node.facts.name, node.facts.mem_total_bytes, node.pods) for node in found.nodes] == [
        ("east/worker-1", 64 * GIB, 2),
        ("west/worker-1", 128 * GIB, 3),
    ]
    assert len(asked) == len(set(asked)), "a table was asked for twice"


def test_a_label_of_one_cluster_changes_no_name() -> None:
    with serving(cluster({"cluster": "east"}, address="10.0.0.1"), []) as url:
        assert [node.facts.name for node in read_prometheus(url).nodes] == ["worker-1"]


def test_exporters_without_the_label_are_no_hosts_of_their_own() -> None:
    """kube-state-metrics has the label, node_exporter has not: its hosts are the clusters' nodes all the same."""
    lines = [*cluster({"cluster": "east"}, address="10.0.0.1"), *cluster({"cluster": "west"}, address="10.0.0.2")]
    bare = [(name, {k: v for k, v in labels.items() if k != "cluster" or not name.startswith("node_")}, value)
            for name, labels, value in lines]  # fmt: skip
    with serving(bare, []) as url:
        assert [node.facts.name for node in read_prometheus(url).nodes] == ["east/worker-1", "west/worker-1"]


@pytest.mark.parametrize("memory", [64 * GIB, 128 * GIB])
def test_without_the_label_two_clusters_are_refused(memory: int) -> None:
    lines = [*cluster({}, address="10.0.0.1"), *cluster({}, address="10.0.0.2", memory=memory)]
    with (
        serving(lines, []) as url,
        pytest.raises(InventoryError, match="worker-1 for one, so this server holds several clusters"),
    ):
        read_prometheus(url)


def test_a_stranger_that_says_a_nodes_size_takes_away_that_node_alone() -> None:
    lines = cluster({}, address="10.0.0.1")
    other = [(name, {**labels, **({"node": "worker-2"} if "node" in labels else {}),
                     **({"internal_ip": "10.0.0.2"} if "internal_ip" in labels else {})}, value)
             for name, labels, value in lines if name.startswith("kube")]  # fmt: skip
    odd = ("kube_node_status_capacity", {"node": "worker-1", "resource": "memory", "unit": "byte", "pod": "odd"}, 1)
    with serving([*lines, *other, odd], []) as url:
        found = read_prometheus(url)
    assert [node.facts.name for node in found.nodes] == ["worker-2"]
    assert "node worker-1 is left out" in " ".join(found.notes)


def test_the_same_series_twice_is_one_node() -> None:
    """Two replicas of kube-state-metrics say the same."""
    lines = [*cluster({"instance": "a"}, address="10.0.0.1"), *cluster({"instance": "b"}, address="10.0.0.1")]
    with serving([line for line in lines if line[0].startswith("kube")], []) as url:
        assert [node.pods for node in read_prometheus(url).nodes] == [1]


def test_an_answer_is_bounded_while_it_is_read() -> None:
    lines = cluster({}, address="10.0.0.1", pods=500)
    with serving(lines, []) as url, PrometheusClient(url, body_max=10_000) as client:
        assert client.query(queries.NODE_INFO)
        with pytest.raises(InventoryError, match="more than 10000 bytes"):
            client.query(queries.PODS)


@pytest.mark.parametrize("stranger_first", [False, True])
def test_a_scraped_program_says_nothing_of_another_namespaces_database(stranger_first: bool) -> None:
    """Prometheus keeps what the program says below exported_*, unless it is told to honour its labels."""
    pg = {"namespace": "shop", "pod": "db-0"}
    own = ("pg_settings_shared_buffers_bytes", pg, 8 * GIB)
    strange = {"namespace": "t", "pod": "e", "exported_namespace": "shop", "exported_pod": "db-0"}
    said = [own, ("pg_settings_shared_buffers_bytes", strange, GIB)]
    twice = [("pg_settings_max_connections", {**pg, "instance": str(count)}, count) for count in (7, 8)]
    targets = [("up", one, 1) for one in (pg, *(labels for _, labels, _ in twice))]
    lines = [
        *cluster({}, address="10.0.0.1"),
        ("kube_pod_info", {**pg, "node": "worker-1"}, 1),
        ("kube_pod_container_info", {**pg, "container": "pg", "image": "postgres:17"}, 1),
        *(said[::-1] if stranger_first else said),
        *twice,
        *targets,
    ]
    with serving(lines, []) as url:
        (found,) = read_prometheus(url).nodes[0].databases
    assert found.recognised.settings == {"shared_buffers": f"{8 * GIB}B"}


@pytest.mark.parametrize("own", [None, {}, {"namespace": "t", "pod": "odd"}])
@pytest.mark.parametrize("beside", [False, True])
def test_settings_are_those_that_a_target_of_the_pods_namespace_says(own: dict[str, str] | None, beside: bool) -> None:
    """``honorLabels`` or a static target: the labels of the series are the program's own, those of ``up`` are not."""
    pg, at = {"namespace": "shop", "pod": "db-0"}, {"job": "j", "instance": "10.9.9.9:80"}
    honest = {**pg, "job": "pg", "instance": "10.0.0.7:9187"}
    lines: Lines = [
        *cluster({}, address="10.0.0.1"),
        ("kube_pod_info", {**pg, "node": "worker-1"}, 1),
        ("kube_pod_container_info", {**pg, "container": "pg", "image": "postgres:17"}, 1),
        ("pg_settings_shared_buffers_bytes", {**pg, **at}, 16 * MIB),
        *([("up", {**at, **own}, 1.0), ("up", {**at, **pg}, 1.0)] if own is not None else []),
        *([("pg_settings_shared_buffers_bytes", honest, 8.0 * GIB), ("up", honest, 1.0)] if beside else []),
    ]
    with serving(lines, []) as url:
        found = read_prometheus(url)
    (database,) = found.nodes[0].databases
    assert database.recognised.settings == ({"shared_buffers": f"{8 * GIB}B"} if beside else {})
    assert database.instance.unread_settings == (() if beside else ("shared_buffers",))
    assert any("settings of shop/db-0 (postgresql) are not used" in note for note in found.notes) != beside


@pytest.mark.parametrize("last", [False, True])
def test_few_moments_of_a_pods_use_are_not_outnumbered_by_another_jobs(last: bool) -> None:
    def used(labels: dict[str, str], *points: tuple[float, float]) -> Series:
        return Series({"namespace": "web", "pod": "shop-0", **labels}, *zip(*points, strict=True))

    own = used({"job": "kubelet"}, (6, 30), (7, 34))
    for said in (used({"job": "t"}, *((at, 1) for at in range(7))), used({"cluster": "t"}, (6, 20), (7, 34))):
        notes: list[str] = []
        (history,) = histories([own, said] if last else [said, own], notes).values()
        assert set(history.used_bytes) == {34}
        assert len(notes) == 1
    (history,) = histories([own, used({"job": "again"}, (6, 31), (7, 33))], notes := []).values()
    assert (history.times_seconds, history.used_bytes, notes) == ((6, 7), (31, 34), [])


def of_jobs(lines: Lines) -> Lines:
    """As they are scraped in a cluster: the job and the address are the server's words."""
    return [
        (name, {"job": "kube-state-metrics" if name.startswith("kube_") else "node-exporter", **labels}, value)
        for name, labels, value in lines
    ]


STRANGER = {"job": "t/program", "namespace": "t", "pod": "odd"}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("at", [["10.9.9.9:8080"], ["10.0.0.1:9100"], ["10.0.0.1:8080"]])
def test_a_scraped_program_says_nothing_of_a_node_that_its_exporters_tell_of(first: bool, at: list[str]) -> None:
    """At the address of the node's own exporter nothing tells which of both is it, so the node is left out."""
    own = of_jobs([*cluster({}, address="10.0.0.1"), ("node_memory_SUnreclaim_bytes", {"instance": "10.0.0.1:9100"}, 5),
                   ("node_memory_KernelStack_bytes", {"instance": "10.0.0.1:9100"}, 5)])  # fmt: skip
    instances = [{**STRANGER, "instance": one} for one in at]
    said: Lines = [
        ("kube_pod_info", {**STRANGER, "pod": "shop-0", "namespace": "web", "node": "worker-2"}, 1),
        *(("node_uname_info", {**labels, "nodename": "ip-node", "machine": "s390x"}, 1) for labels in instances),
        *((f"node_memory_{entry}_bytes", {**labels, "nodename": "ip-node"}, 7 * GIB)
          for entry in ("MemTotal", "SUnreclaim", "KernelStack") for labels in instances),
    ]  # fmt: skip
    beside: Lines = [("node_uname_info", {"instance": "db1:9100", "nodename": "db1", "job": "x"}, 1),
                     ("node_memory_MemTotal_bytes", {"instance": "db1:9100", "job": "x"}, GIB)]  # fmt: skip
    with serving([*said, *own, *beside] if first else [*own, *beside, *said], []) as url:
        found = read_prometheus(url)
    names = [node.facts.name for node in found.nodes]
    if "10.9.9.9:8080" not in at:
        assert names == ["db1"]
        assert "nodes worker-1 (10.0.0.1:" in "; ".join(found.notes)
        return
    (node,) = [node for node in found.nodes if node.facts.name == "worker-1"]
    assert (node.facts.mem_total_bytes, node.facts.arch, node.pods) == (64 * GIB, "x86_64", 1)
    assert (node.facts.kernel_used_bytes, node.hugetlb_pool_bytes) == (10, None)
    assert names == ["10.9.9.9:8080", "db1", "worker-1"]


def test_a_hosts_name_is_nobodys_where_another_says_it_too() -> None:
    at = {"instance": "db1:9100", "job": "node"}
    own: Lines = [("node_uname_info", {**at, "nodename": "db1", "machine": "x86_64"}, 1),
                  ("node_memory_MemTotal_bytes", at, 64 * GIB)]  # fmt: skip
    odd: Lines = [(name, {**labels, "instance": "10.9.9.9:80", **STRANGER}, 1 * GIB) for name, labels, _ in own]
    with serving([*own, *odd], []) as url:
        found = read_prometheus(url)
    assert {node.facts.name: node.facts.mem_total_bytes for node in found.nodes} == {
        "db1:9100": 64 * GIB, "10.9.9.9:80": GIB,
    }  # fmt: skip


def test_only_nodes_that_other_programs_contradict_are_left_out() -> None:
    lines: Lines = [
        ("kube_node_status_capacity", {"node": f"n{number}", "resource": "memory"}, 64 * GIB) for number in range(4)
    ]
    odd = [(name, {**labels, **STRANGER}, GIB) for name, labels, _ in lines[:3]]
    with serving([*lines, *odd], []) as url:
        found = read_prometheus(url)
    assert [node.facts.name for node in found.nodes] == ["n3"]
    assert [note for note in found.notes if "node n0 is left out" in note] != []


@pytest.mark.parametrize("honest", ["integrations/kubernetes/kube-state-metrics", "kubernetes-service-endpoints", ""])
@pytest.mark.parametrize("odd", ["kube-state-metrics", "x-kube-state-metrics", "evil/kube-state-metrics"])
def test_the_name_of_a_job_makes_nobody_believed(honest: str, odd: str) -> None:
    """Who makes a Service names the job that scrapes it; a size that is too large would be a plan that does not fit."""
    job = {"job": honest} if honest else {}
    lines: Lines = [
        ("kube_node_status_capacity", {"node": f"n{number}", "resource": "memory", **job}, 64 * GIB)
        for number in range(3)
    ]
    said = [(name, {**labels, **STRANGER, "job": odd}, 8 * GIB) for name, labels, _ in lines[:1]]
    with serving([*lines, *said], []) as url:
        found = read_prometheus(url)
    assert {node.facts.name: node.facts.mem_total_bytes for node in found.nodes} == {"n1": 64 * GIB, "n2": 64 * GIB}
    assert [note for note in found.notes if "node n0 is left out" in note] != []


def test_what_nobody_foresaw_of_one_pod_leaves_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr("hugeplan.inventory.prometheus.build.recognise", fails)
    with serving(cluster({}, address="10.0.0.1"), []) as url:
        found = read_prometheus(url)
    (node,) = found.nodes
    assert (node.databases, node.pods, len(node.tenants)) == ((), 1, 1)
    assert found.notes[1:] == ("pod web/shop-0 counts as a workload: internal error: ValueError: odd",)


def both(own: Lines, said: Lines, last: bool) -> Lines:
    """What two programs say, the stranger's last or first."""
    return [*own, *said] if last else [*said, *own]


def of_node(lines: Lines, name: str, address: str) -> Lines:
    """What kube-state-metrics says of worker-1, of another node."""
    other = {"node": name, "internal_ip": address}
    return [
        (metric, {**labels, **{key: other[key] for key in other if key in labels}}, value)
        for metric, labels, value in lines
        if metric.startswith("kube_node_")
    ]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("kube_node_status_allocatable", {"resource": "memory"}, 32 * GIB),
        ("kube_node_info", {"internal_ip": "10.0.0.1", "kubelet_version": "v1.20.0"}, 1),
    ],
)
def test_a_node_of_which_two_things_are_said_is_left_out(
    name: str, labels: dict[str, str], value: float, last: bool
) -> None:
    own = [(metric, {**told, **({"kubelet_version": "v1.34.2"} if metric == "kube_node_info" else {})}, held)
           for metric, told, held in cluster({}, address="10.0.0.1")]  # fmt: skip
    said: Lines = [
        ("kube_node_status_capacity", {"node": "worker-1", "resource": "memory", **STRANGER}, 64 * GIB),
        (name, {"node": "worker-1", **labels, **STRANGER}, value),
    ]
    lines = both(own, said, last)
    with serving([*lines, *of_node(own, "worker-2", "10.0.0.2")], []) as url:
        found = read_prometheus(url)
    assert [node.facts.name for node in found.nodes] == ["worker-2"]
    assert [note for note in found.notes if "node worker-1 is left out" in note] != []


PG = {"namespace": "db", "pod": "pg-0"}
MEMORY = {**PG, "container": "pg", "resource": "memory"}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("name", "labels", "value", "nodes"),
    [
        ("kube_pod_info", {**PG, "node": "worker-2"}, 1, ["worker-1", "worker-2"]),
        ("kube_pod_container_info", {**PG, "container": "pg", "image": "busybox"}, 1, ["worker-1"]),
        ("kube_pod_container_resource_requests", MEMORY, GIB, ["worker-1"]),
        ("kube_pod_container_resource_limits", MEMORY, 4 * GIB, ["worker-1"]),
        ("kube_pod_container_resource_limits", {**MEMORY, "resource": "hugepages_2Mi"}, GIB, ["worker-1"]),
        ("kube_pod_status_phase", {**PG, "phase": "Failed"}, 1, ["worker-1"]),
    ],
)
def test_a_pod_of_which_two_things_are_said_is_a_workload_with_the_larger_sizes(
    name: str, labels: dict[str, str], value: float, nodes: list[str], last: bool
) -> None:
    node = cluster({}, address="10.0.0.1", pods=0)
    pod: Lines = [
        ("kube_pod_info", {**PG, "node": "worker-1"}, 1),
        ("kube_pod_container_info", {**PG, "container": "pg", "image": "postgres:17"}, 1),
        ("kube_pod_container_resource_requests", MEMORY, 8 * GIB),
        ("kube_pod_container_resource_limits", MEMORY, 8 * GIB),
        ("kube_pod_container_resource_limits", {**MEMORY, "resource": "hugepages_2Mi"}, 2 * GIB),
        ("kube_pod_status_phase", {**PG, "phase": "Running"}, 1),
    ]
    lines = [*node, *of_node(node, "worker-2", "10.0.0.2"), *both(pod, [(name, {**labels, "uid": "odd"}, value)], last)]
    with serving(lines, []) as url:
        found = read_prometheus(url)
    assert [one.facts.name for one in found.nodes if one.tenants] == nodes
    for one in found.nodes[: len(nodes)]:
        (tenant,), (user,) = one.tenants, one.huge_page_users
        assert (tenant.name, tenant.request_bytes, tenant.limit_bytes) == ("db/pg-0", 8 * GIB, 8 * GIB)
        assert (user.limit_bytes, one.databases) == ({2 * MIB: 2 * GIB}, ())
    assert [note for note in found.notes if "pods db/pg-0 count with their larger sizes" in note] != []


def test_a_node_is_left_out_where_a_pods_larger_size_would_leave_the_pod_out() -> None:
    """Else who says more of a pod than the node has takes the pod's memory away."""
    node = cluster({}, address="10.0.0.1")
    web = {"namespace": "web", "pod": "shop-0", "container": "app", "resource": "memory"}
    said: Lines = [("kube_pod_container_resource_requests", {**web, "uid": str(size)}, size) for size in (GIB, 2**50)]
    with serving([*node, *of_node(node, "worker-2", "10.0.0.2"), *said], []) as url:
        found = read_prometheus(url)
    assert [one.facts.name for one in found.nodes] == ["worker-2"]
    assert [note for note in found.notes if "node worker-1 is left out: " in note and "pod web/shop-0" in note] != []


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("node_uname_info", {"nodename": "db2", "machine": "x86_64"}, 1),
        ("node_uname_info", {"nodename": "db1", "machine": "s390x", "job": "a-node"}, 1),
        ("node_memory_MemTotal_bytes", {}, 128 * GIB),
        ("node_memory_numa_MemTotal", {"node": "0"}, 128 * GIB),
    ],
)
def test_a_host_of_which_two_things_are_said_is_left_out(
    name: str, labels: dict[str, str], value: float, last: bool
) -> None:
    at = {"instance": "db1:9100", "job": "node"}
    own: Lines = [("node_uname_info", {**at, "nodename": "db1", "machine": "x86_64"}, 1),
                  ("node_memory_MemTotal_bytes", at, 64 * GIB),
                  ("node_memory_numa_MemTotal", {**at, "node": "0"}, 64 * GIB)]  # fmt: skip
    beside = cluster({}, address="10.0.0.1")
    with serving([*beside, *both(own, [(name, {**at, **labels}, value)], last)], []) as url:
        found = read_prometheus(url)
    assert [node.facts.name for node in found.nodes] == ["worker-1"]
    assert [note for note in found.notes if "hosts db1:9100 are left out" in note] != []


@pytest.mark.parametrize("last", [False, True])
def test_a_node_is_left_out_where_two_programs_at_its_address_differ(last: bool) -> None:
    """Those that agree count as one, with the larger memory of the kernel."""

    def exporter(port: int, memory: int, used: int) -> Lines:
        at = {"instance": f"10.0.0.1:{port}", "job": "node-exporter"}
        entries = {"MemTotal": memory, "SUnreclaim": used, "KernelStack": 0}
        return [(f"node_memory_{entry}_bytes", at, value) for entry, value in entries.items()]

    node = [line for line in cluster({}, address="10.0.0.1") if line[0].startswith("kube")]
    node += of_node(node, "worker-2", "10.0.0.2")
    for memory, used in ((64 * GIB, {"worker-1": 2 * GIB, "worker-2": None}), (32 * GIB, {"worker-2": None})):
        lines = both(exporter(9100, 64 * GIB, 2 * GIB), exporter(8080, memory, GIB), last)
        with serving([*node, *lines], []) as url:
            found = read_prometheus(url)
        assert {one.facts.name: one.facts.kernel_used_bytes for one in found.nodes} == used
    assert "nodes worker-1 (10.0.0.1:8080, 10.0.0.1:9100) are left out: " in "; ".join(found.notes)


def test_hosts_of_one_name_go_by_their_addresses_and_a_note_says_so() -> None:
    lines: Lines = []
    for at in ("10.0.0.1:9100", "10.0.0.2:9100"):
        lines += [("node_uname_info", {"instance": at, "job": "node", "nodename": "db1", "machine": "x86_64"}, 1),
                  ("node_memory_MemTotal_bytes", {"instance": at, "job": "node"}, 64 * GIB)]  # fmt: skip
    with serving(lines, []) as url:
        found = read_prometheus(url)
    assert [node.facts.name for node in found.nodes] == ["10.0.0.1:9100", "10.0.0.2:9100"]
    assert [note for note in found.notes if "10.0.0.1:9100, 10.0.0.2:9100" in note] != []


def test_a_cluster_whose_every_node_is_contradicted_takes_no_other_cluster_or_host_away() -> None:
    """Any program that is scraped may name a cluster of its own, and contradict itself there."""
    host = {"instance": "db1:9100", "job": "node", "cluster": "east"}
    made_up: Lines = [
        ("kube_node_status_capacity", {"node": "x", "resource": "memory", "cluster": "t", "pod": str(size)}, size * GIB)
        for size in (1, 2)
    ]
    own = cluster({"cluster": "east"}, address="10.0.0.1")
    beside: Lines = [("node_uname_info", {**host, "nodename": "db1", "machine": "x86_64"}, 1),
                     ("node_memory_MemTotal_bytes", host, 64 * GIB)]  # fmt: skip
    for lines, left in (
        ([*own, *beside, *made_up], ["east/db1", "east/worker-1"]),
        ([*cluster({}, address="10.0.0.1"), *cluster({}, address="10.0.0.2"), *beside], ["db1"]),
    ):
        with serving(lines, []) as url:
            found = read_prometheus(url)
        assert [node.facts.name for node in found.nodes] == left
        assert [note for note in found.notes if "for one, so this server holds several clusters" in note] != []
