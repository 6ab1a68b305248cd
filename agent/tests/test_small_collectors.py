"""Collectors of a few lines: command line, boot, clones, blocks, pressure, watermarks, kubelet, limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan_agent.collectors import (
    buddyinfo,
    clone_hints,
    collect_all,
    kubelet,
    kubernetes_node,
    pressure,
    watermarks,
)
from hugeplan_agent.collectors.boot import parse_boot_time
from hugeplan_agent.collectors.cgroup_tree import parse_membership
from hugeplan_agent.collectors.engines import mysql, postgresql
from hugeplan_agent.collectors.engines.base import Settings
from hugeplan_agent.collectors.hugetlb_cgroups import parse_events, size_name
from hugeplan_agent.collectors.kernel import relevant_words
from hugeplan_agent.collectors.keyvalue import parse_limit
from hugeplan_agent.collectors.limits import parse_memlock
from hugeplan_agent.collectors.mappings import page_sizes, parse_maps
from hugeplan_agent.collectors.process_table import Process, need_status
from hugeplan_agent.collectors.simple_yaml import leaves, parse
from hugeplan_agent.host import Host

MIB, GIB = 1024**2, 1024**3
Machine = Callable[[str], Host]


@pytest.mark.parametrize(
    ("groups", "is_read", "is_below"), [(3, True, False), (4000, True, False), (65536, False, True)]
)
def test_a_process_of_many_groups_has_figures_and_hides_no_namespace(
    machine: Machine, groups: int, is_read: bool, is_below: bool
) -> None:
    host = machine("kubernetes-v2")
    listed = " ".join(str(100_000_000 + number) for number in range(groups))
    text = f"Name:\tx\nUid:\t7\t7\t7\t7\nGroups:\t{listed} \nNSpid:\t2201\nVmRSS:\t8 kB\nRssAnon:\t4 kB\n"
    host.path("proc/2201/status").write_text(text)
    found = need_status(host, Process(2201, 1, 5, "x", 0))
    assert (found.user, found.is_below) == (7, is_below)
    assert found.rss_anon_bytes == (4096 if is_read else None)


def test_only_words_about_huge_pages_leave_the_node() -> None:
    line = (
        "BOOT_IMAGE=/vmlinuz root=UUID=1 ro rd.luks.key=/k hugepagesz=1G hugepages=0:2,1:2 hugepagesz=2M hugepages=64"
        ' default-hugepagesz=2M dyndbg="file a +p" hugetlb_cma=4G mem=64G -- hugepages=9'
    )
    assert relevant_words(line) == (
        "hugepagesz=1G hugepages=0:2,1:2 hugepagesz=2M hugepages=64 default-hugepagesz=2M hugetlb_cma=4G mem=64G"
    )


def test_clones_differ_by_hardware_and_agree_with_themselves(machine: Machine) -> None:
    host = machine("kubernetes-v2")
    first = clone_hints.collect(host).inventory["clone_hints"]
    assert first == clone_hints.collect(host).inventory["clone_hints"]
    host.path("sys/class/net/eth0/address").write_text("02:11:22:33:44:56\n")
    second = clone_hints.collect(host).inventory["clone_hints"]
    assert first["mac_sha256"] != second["mac_sha256"]
    assert first["dmi_sha256"] == second["dmi_sha256"]
    assert len(first["mac_sha256"]) == 1, "addresses of virtual devices change with every pod"


def test_buddyinfo() -> None:
    text = "Node 0, zone   Normal    1    0    3\nNode 1, zone  Movable   0 0 7\nrubbish\n"
    assert buddyinfo.parse(text) == [
        {"numa_node": 0, "zone": "Normal", "free_blocks": [1, 0, 3]},
        {"numa_node": 1, "zone": "Movable", "free_blocks": [0, 0, 7]},
    ]


def test_pressure() -> None:
    text = "some avg10=1.50 avg60=0.00 avg300=0.10 total=99\n"
    assert pressure.parse(text) == {
        "some": {"avg10_percent": 1.5, "avg60_percent": 0.0, "avg300_percent": 0.1, "total_microseconds": 99}
    }


def test_watermarks_are_summed_over_zones() -> None:
    zone = (
        "Node {n}, zone   {z}\n  per-node stats\n      nr_free 5\n  pages free     3840\n        boost    0\n"
        "        min      {a}\n        low      {b}\n        high     {c}\n        spanned  4095\n"
        "        managed  {m}\n        protection: (0, {p}, 40)\n  pagesets\n    cpu: 0\n              high:  7\n"
    )
    text = zone.format(n=0, z="DMA", a=1, b=2, c=3, m=1000, p=90) + zone.format(
        n=0, z="Normal", a=10, b=20, c=30, m=50, p=60
    )
    assert watermarks.parse(text, 4096) == {
        "min_bytes": 11 * 4096,
        "low_bytes": 22 * 4096,
        "high_bytes": 33 * 4096,
        "reserved_bytes": (93 + 50) * 4096,
    }


def test_boot_time() -> None:
    assert parse_boot_time("cpu 1\nbtime 1764000000\n") == 1_764_000_000
    assert parse_boot_time("") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("65536000Ki", 65_536_000 << 10),
        ("8Gi", 8 << 30),
        ("0", 0),
        ("128M", 128_000_000),
        ("2k", 2000),
        ("1Ei", 1 << 60),
        ("", None),
        ("1930m", None),
        ("1.5Gi", None),
        ("-1", None),
        (None, None),
    ],
)
def test_quantities_of_an_api_server(text: object, expected: object) -> None:
    assert kubernetes_node.quantity_bytes(text) == expected


def test_resources_are_memory_and_huge_pages() -> None:
    table = {"cpu": "8", "memory": "1Gi", "hugepages-2Mi": "4Mi", "pods": "110", "hugepages-1Gi": "rubbish"}
    assert kubernetes_node.resources(table) == {"memory": 1 << 30, "hugepages-2Mi": 4 << 20}
    assert kubernetes_node.resources({"cpu": "8"}) is None
    assert kubernetes_node.resources("rubbish") is None


class TestKubelet:
    def test_facts(self, machine: Machine) -> None:
        found = collect_all(machine("kubernetes-v2")).sample["kubelet"]
        assert found["started_at"] == "2025-11-24T16:00:36.000Z", "boot + 3600 ticks of 10 ms"
        assert found["capacity"] == {"hugepages-2Mi": 8 * GIB, "memory": 67_108_864_000}
        assert found["config"] == {
            "cgroupDriver": "systemd",
            "memoryManagerPolicy": "Static",
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "10%"},
            "kubeReserved": {"cpu": "100m", "memory": "200Mi"},
            "reservedMemory": [{"numaNode": "0", "limits": {"memory": "500Mi"}}],
            "enforceNodeAllocatable": ["pods"],
            "maxPods": "200",
        }
        assert found["config_source"] == "file, command line"

    def test_files_of_the_drop_in_folder_are_merged_in_the_order_of_their_names(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        pid = collect_all(host).sample["kubelet"]["pid"]
        line = host.path(f"proc/{pid}/cmdline")
        line.write_bytes(line.read_bytes().rstrip(b"\0") + b"\0--config-dir=/etc/kubernetes/kubelet.conf.d\0")
        folder = host.path("etc/kubernetes/kubelet.conf.d")
        folder.mkdir(parents=True)
        head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        (folder / "20-first.conf").write_text(head + "maxPods: 10\nevictionHard:\n  memory.available: 1Gi\n")
        (folder / "60-hugeplan.conf").write_text(head + "evictionSoft:\n  memory.available: 2Gi\n")
        (folder / "90-other.yaml").write_text(head + "failSwapOn: true\n")
        found = collect_all(host).sample["kubelet"]
        assert found["config"]["evictionHard"] == {"memory.available": "1Gi", "nodefs.available": "10%"}
        assert found["config"]["evictionSoft"] == {"memory.available": "2Gi"}
        assert found["config"]["maxPods"] == "200", "the command line wins"
        assert "failSwapOn" not in found["config"], "only names that end with .conf"
        assert found["config_source"] == "file, config-dir, command line"

    def test_no_kubelet_is_known(self, machine: Machine) -> None:
        seen = collect_all(machine("kubernetes-v1"))
        assert seen.sample["kubelet"] is None

    def test_the_none_policy_keeps_no_memory_map(self) -> None:
        assert kubelet.parse_memory_state('{"policyName":"None","machineState":{}}') is None
        assert kubelet.parse_memory_state("rubbish") is None
        assert kubelet.parse_memory_state("[]") is None


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("max", (None, False)),
        ("0", (0, True)),
        ("1073741824", (GIB, True)),
        ("9223372036852678656", (None, False)),
        ("", (None, None)),
        (None, (None, None)),
    ],
)
def test_limits_of_hugetlb(text: str | None, limit: tuple[int | None, bool | None]) -> None:
    assert parse_limit(text) == limit


def test_names_of_sizes_in_the_controllers_files() -> None:
    assert [size_name(size) for size in (64 * 1024, 2 * MIB, 512 * MIB, GIB, 16 * GIB)] == [
        "64KB", "2MB", "512MB", "1GB", "16GB",
    ]  # fmt: skip
    assert parse_events("max 3\n") == 3


def test_memlock() -> None:
    head = "Limit                     Soft Limit           Hard Limit           Units     \n"
    assert parse_memlock(f"{head}Max locked memory         65536                unlimited            bytes\n") == {
        "memlock_limit_bytes": 65536, "memlock_limited": True,
    }  # fmt: skip
    assert parse_memlock(f"{head}Max locked memory         unlimited            unlimited            bytes\n") == {
        "memlock_limit_bytes": None, "memlock_limited": False,
    }  # fmt: skip
    assert parse_memlock("")["memlock_limited"] is None


class TestYaml:
    def test_blocks(self) -> None:
        text = "a:\n  b: 'x # y' # c\n  l:\n  - 1\n  - k: v\n    w: z\n  m: {p: 1, q: 2}\n"
        text += "n:\n- one\n- two\ne:\nf: |\n  lost\n"
        assert parse(text) == {
            "a": {"b": "x # y", "l": ["1", {"k": "v", "w": "z"}], "m": {"p": "1", "q": "2"}},
            "n": ["one", "two"],
            "e": None,
            "f": None,
        }

    def test_json_is_yaml(self) -> None:
        assert parse('{"a": {"b": [1, true, null]}}') == {"a": {"b": ["1", "true", None]}}

    def test_leaves(self) -> None:
        assert leaves("storage:\n  wiredTiger:\n    engineConfig:\n      cacheSizeGB: 4\n") == {
            "storage.wiredTiger.engineConfig.cacheSizeGB": "4"
        }


@given(st.text())
def test_no_text_makes_a_parser_fail(text: str) -> None:
    parse(text)
    leaves(text)
    relevant_words(text)
    buddyinfo.parse(text)
    pressure.parse(text)
    watermarks.parse(text, 4096)
    parse_membership(text)
    list(postgresql.parse_lines(text, Settings(frozenset())))
    postgresql.parse_arguments(text.split())
    mysql.command_line(text.split())
    lines = text.encode().split(b"\n")
    parse_maps(lines, 4096, [2 * MIB])
    page_sizes(lines, {0})
    kubelet.parse_memory_state(text)
    kubelet.read_config(text)
    parse_limit(text)
    parse_memlock(text)


@given(st.text(alphabet="ab:-#'\"{}[], \n\t&*|", max_size=60))
def test_no_yaml_like_text_makes_the_reader_fail(text: str) -> None:
    parse(text)
