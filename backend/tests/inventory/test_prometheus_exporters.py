"""Who tells of a host's memory: no job's name makes a tenant's program the exporter of a node or a host."""

from __future__ import annotations

import re
import time

import pytest
from inventory.test_prometheus_machines import node
from support.prometheus_server import Lines, selects, serving

from hugeplan.inventory.model import FoundNode
from hugeplan.inventory.prometheus import build, read_prometheus
from hugeplan.inventory.prometheus.client import PrometheusClient, Series
from hugeplan.inventory.prometheus.hosts import read_hosts
from hugeplan.inventory.prometheus.machines import machines_of
from hugeplan.planner.model import GIB, MIB

JOBS = ["t/node-exporter", "a"]
FIRST = pytest.mark.parametrize("first", [False, True])


def exporter(at: str, name: str | None, job: str, kernel: int = 23, **other: float | str) -> Lines:
    """A host of 64 GiB without pools, the kernel of which holds so many GiB."""
    own = {"instance": at, "job": job}
    entries = {"MemTotal_bytes": 64 * GIB, "Hugepagesize_bytes": 2 * MIB, "HugePages_Total": 0, "HugePages_Free": 0,
               "SUnreclaim_bytes": kernel * GIB, "KernelStack_bytes": 0}  # fmt: skip
    uname = {"nodename": name or "", "machine": "x86_64", "release": "6.1.0",
             **{key: value for key, value in other.items() if isinstance(value, str)}}  # fmt: skip
    lines: Lines = [("node_uname_info", {**own, **uname}, 1)] if name else []
    lines += [(f"node_memory_{entry}", own, float(other.get(entry, value))) for entry, value in entries.items()]
    return lines


K1, K2 = node("k1", "10.0.1.1"), node("k2", "10.0.1.2")
NODES = [*K1, *K2]


def read(own: Lines, said: Lines, *, first: bool) -> tuple[dict[str, FoundNode], str]:
    """The nodes by name, and the notes."""
    with serving([*said, *own] if first else [*own, *said], []) as url:
        found = read_prometheus(url)
    return {one.facts.name: one for one in found.nodes}, "; ".join(found.notes)


def kernels(found: dict[str, FoundNode]) -> dict[str, float | None]:
    """The kernel's GiB by node; None where it is not known."""
    used = {name: one.facts.kernel_used_bytes for name, one in found.items()}
    return {name: None if held is None else held / GIB for name, held in used.items()}


@FIRST
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("own", "at"),
    [("integrations/unix", "k1:9100"), ("linux", "k1:9100"), ("integrations/node_exporter", "k1:9100"),
     ("monitoring/node-exporter", "k1:9100"), ("prometheus-node-exporter", "k1:9100"), ("linux", "10.0.1.1:9100"),
     ("node-exporter", "k1"), ("integrations/unix", "k1"), ("linux", "K1.corp:9100")],
)  # fmt: skip
def test_a_program_elsewhere_takes_no_nodes_exporter_away(own: str, at: str, job: str, first: bool) -> None:
    found, notes = read([*NODES, *exporter(at, "k1", own)], exporter("10.9.9.9:80", "k1", job, 0), first=first)
    assert kernels({name: found[name] for name in ("k1", "k2")}) == {"k1": 23, "k2": None}
    assert "hosts 10.9.9.9:80 go by addresses: Kubernetes nodes have their names" in notes


DIFFERENT = [{"nodename": "k9"}, {"machine": "aarch64"}, {"release": "6.2.0"}, {"MemTotal_bytes": 65.0 * GIB},
             {"Hugepagesize_bytes": 32.0 * MIB}, {"HugePages_Total": 9.0}]  # fmt: skip


@pytest.mark.parametrize(("job", "first"), [("t/node-exporter", False), ("a", True)])
@pytest.mark.parametrize("other", DIFFERENT)
@pytest.mark.parametrize(
    ("own", "at"),
    [("10.0.1.1:9100", "10.0.1.1:9100"), ("10.0.1.1:9100", "10.0.1.1:9999"), ("10.0.1.1:9100", "k1:9100"),
     ("k1:9100", "10.0.1.1:80"), ("k1:9100", "k1:9100"), ("k1", "k1:80")],
)  # fmt: skip
def test_a_node_is_left_out_where_programs_at_its_address_or_instance_differ(
    own: str, at: str, job: str, other: dict[str, float | str], first: bool
) -> None:
    said = exporter(at, "k1", job, 0, **other)
    found, notes = read([*NODES, *exporter(own, "k1", "linux")], said, first=first)
    assert kernels(found) == {"k2": None}
    assert f"nodes k1 ({', '.join(sorted({own, at}))}) are left out: the series say different things" in notes


@pytest.mark.parametrize(("job", "first"), [("t/node-exporter", False), ("a", True)])
@pytest.mark.parametrize("at", ["10.0.1.1:9100", "10.0.1.1:12345", "k1", "k1:80"])
@pytest.mark.parametrize("name", ["k1", None])
def test_two_that_agree_at_a_nodes_address_count_as_one_that_leaves_less(
    name: str | None, at: str, job: str, first: bool
) -> None:
    """As node_exporter and Grafana Alloy on one node do."""
    found, notes = read([*NODES, *exporter("10.0.1.1:9100", name, "linux")], exporter(at, name, job, 0), first=first)
    assert kernels(found) == {"k1": 23, "k2": None}
    assert "left out" not in notes


@FIRST
@pytest.mark.parametrize("kernel", [0, 23])
def test_of_two_that_say_a_nodes_name_elsewhere_neither_is_its_exporter(kernel: int, first: bool) -> None:
    """Nothing tells them apart, and the node is not planned as if it had none."""
    own = exporter("10.0.5.5:9100", "k1", "node-exporter")
    assert kernels(read([*NODES, *own], [], first=first)[0]) == {"k1": 23, "k2": None}
    found, notes = read([*NODES, *own], exporter("10.9.9.9:80", "k1.corp", "linux", kernel), first=first)
    assert kernels(found) == {"k2": None}
    assert "nodes k1 (10.0.5.5:9100, 10.9.9.9:80) are left out" in notes
    lines = exporter("10.9.9.9:80", "k1", "linux", MemTotal_bytes=0.0)
    assert kernels(read([*NODES, *own], lines, first=first)[0]) == {"k2": None}


@FIRST
def test_a_node_is_not_planned_as_if_it_had_no_exporter_where_its_name_or_address_is_anothers_too(first: bool) -> None:
    own = exporter("10.0.5.5:9100", "k1", "linux")
    twice = [*node("k1.east", "10.0.1.1"), *node("k1.west", "10.0.1.3"), *K2]
    assert kernels(read([*twice, *own], [], first=first)[0]) == {"10.0.5.5:9100": 23, "k2": None}
    shared = [*K1, *node("k3", "10.0.1.1"), *K2]
    found, notes = read([*shared, *exporter("10.0.1.1:9100", "ip-1", "linux")], [], first=first)
    assert (set(found), "nodes k1, k3 are left out" in notes) == ({"ip-1", "k2"}, True)
    added: Lines = [("kube_node_info", {"node": "k2", "internal_ip": "10.0.1.1", "job": "kube-state-metrics",
                                 "instance": "10.9.9.9:80"}, 1.0)]  # fmt: skip
    found, _ = read([*NODES, *exporter("10.0.1.1:9100", "ip-1", "linux")], added, first=first)
    assert kernels(found) == {"k1": 23, "k2": None}


@FIRST
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("own", ["linux", "integrations/unix", "node-exporter"])
def test_a_hosts_name_that_two_say_is_nobodys(own: str, job: str, first: bool) -> None:
    beside = exporter("10.0.0.2:9100", "db-b", own)
    real = [*beside, *exporter("10.0.0.1:9100", "db-a", own)]
    found, notes = read(real, exporter("10.9.9.9:80", "db-a", job, MemTotal_bytes=1024.0 * GIB), first=first)
    assert found.keys() == {"db-b", "10.0.0.1:9100", "10.9.9.9:80"}
    assert "hosts 10.0.0.1:9100, 10.9.9.9:80 go by addresses: others say the same names" in notes
    for at in ("10.0.0.1:9100", "10.0.0.1:80"):
        found, notes = read(real, exporter(at, "db-a", job, MemTotal_bytes=1024.0 * GIB), first=first)
        assert (set(found), "hosts 10.0.0.1:" in notes) == ({"db-b"}, True)
    found, notes = read(real, exporter("db-a", "db-a", job, MemTotal_bytes=1024.0 * GIB), first=first)
    assert (set(found), "hosts db-a are left out" in notes) == ({"db-b", "10.0.0.1:9100"}, True)
    named = [*beside, *exporter("db-a.corp:9100", "ip-1", own)]
    found, _ = read(named, exporter("10.9.9.9:80", "db-a.corp", job), first=first)
    assert found.keys() == {"db-b", "ip-1", "10.9.9.9:80"}
    for at in ("10.0.0.1:9100", "10.0.0.1:12345"):
        found, notes = read(real, exporter(at, "db-a", job, 0), first=first)
        assert (set(found), notes) == ({"db-a", "db-b"}, "")


@pytest.mark.parametrize("said", [{"node": "0", "entry": "MemTotal"}, {"node": "1", "entry": "HugePages_Total"}])
def test_a_pool_or_a_size_of_a_numa_node_is_not_added(said: dict[str, str]) -> None:
    at = {"instance": "10.0.0.1:9100", "job": "node-exporter"}
    own = [*exporter("10.0.0.1:9100", "db-a", "linux"), *exporter("10.0.0.2:9100", "db-b", "linux")]
    more = [*exporter(at["instance"], "db-a", at["job"]),
            (f"node_memory_numa_{said['entry']}", {**at, "node": said["node"]}, 7.0)]  # fmt: skip
    assert read(own, more, first=False)[0].keys() == {"db-b"}


class Recorded:
    """Hosts, and nodes that have their names."""

    def __init__(self, lines: Lines) -> None:
        self.series = [Series({"__name__": name, **labels}, (0,), (value,)) for name, labels, value in lines]

    def query(self, expression: str) -> list[Series]:
        return [one for one in self.series if selects(expression, one.labels["__name__"])]

    def query_range(self, *_: object) -> list[Series]:
        return []


def test_many_hosts_of_one_name_or_first_part_cost_what_they_are_many() -> None:
    def seconds(count: int) -> float:
        lines: Lines = []
        for i in range(count):
            lines += [*node(f"k1.x{i}", "10.0.1.1"), *node(f"k2.x{i}")]
            for at, name in ((f"10.1.0.1:{i}", "k1"), (f"10.1.0.2:{i}", f"k2.y{i}"), (f"10.1.0.3:{i}", f"k1.x{i}"),
                             (f"10.0.1.1:{i}", "k1"), ("10.1.0.4:1", f"k2.x{i}"), (f"k2:{i}", "k2")):  # fmt: skip
                one = {"instance": at, "job": str(i)}
                lines += [("node_uname_info", {**one, "nodename": name}, 1), ("node_memory_MemTotal_bytes", one, GIB)]
        recorded = Recorded(lines)
        began = time.process_time()
        notes: list[str] = []
        machines_of(read_hosts(recorded), recorded, (), notes)
        assert all(note.count(":") < 40 for note in notes)
        return time.process_time() - began

    small = min(seconds(500) for _ in range(3))
    assert seconds(4_000) < 20 * max(small, 0.02)


@pytest.mark.parametrize(("pods", "hours"), [(0, 1), (6, 2), (300, 51)])
def test_pods_that_anybody_makes_up_hide_no_peak(monkeypatch: pytest.MonkeyPatch, pods: int, hours: int) -> None:
    """18,000 cut the week for everybody to 139 hours, and a node that a weekly peak did not fit on was planned."""
    asked: list[tuple[str, float, float]] = []
    ask = PrometheusClient.query_range

    def noted(client: PrometheusClient, expression: str, start: float, end: float, step_seconds: float) -> list[Series]:
        asked.append((expression, end - start, step_seconds))
        return ask(client, expression, start, end, step_seconds)

    monkeypatch.setattr(PrometheusClient, "query_range", noted)
    monkeypatch.setattr(build, "MOST_POINTS", 1000)
    made_up: Lines = [
        ("kube_pod_info", {"namespace": "t", "pod": f"p{at}", "node": "n", "job": "t"}, 1.0) for at in range(pods)
    ]
    with serving([*NODES, *made_up], []) as url:
        found = read_prometheus(url)
    assert any("most of each" in note for note in found.notes) is (hours > 1)
    assert asked
    for expression, seconds, step_seconds in asked:
        assert (seconds, step_seconds) == (7 * 86_400, hours * 3600)
        assert set(re.findall(r"\[\w+\]", expression)) == {f"[{hours}h]"}
