"""Units of work on two Kubernetes nodes (versions 2 and 1 of control groups). The trees are constructed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hugeplan_agent.collectors import collect_all, kubernetes_node
from hugeplan_agent.collectors.cgroup_owners import Hierarchy
from hugeplan_agent.collectors.cgroup_tree import PathIndex, parse_membership
from hugeplan_agent.collectors.unit_names import name_of
from hugeplan_agent.host import Host

MIB, GIB = 1024**2, 1024**3
Machine = Callable[[str], Host]
STATIC = "9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a"
ID = "3c9f2f0d8b1f4a4f9c61b1a1f7f4ad3cf5c0b2d7e8f90112233445566778899a"


def by_name(host: Host) -> dict[str, dict[str, Any]]:
    return {unit["name"]: unit for unit in collect_all(host).sample["units"]}


class TestVersion2:
    @pytest.fixture
    def units(self, machine: Machine) -> dict[str, dict[str, Any]]:
        return by_name(machine("kubernetes-v2"))

    def test_pods_have_the_names_of_the_api_without_the_api(self, units: dict[str, dict[str, Any]]) -> None:
        pod = units["shop/orders-db-0"]
        assert pod["kind"] == "pod"
        assert pod["key"] == "pod:6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11"
        assert pod["pod"] == {
            "uid": "6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11", "namespace": "shop", "name": "orders-db-0",
            "qos_class": "Burstable",
        }  # fmt: skip
        assert units["stream/kafka-1"]["pod"]["qos_class"] == "Guaranteed"

    def test_the_kubelets_name_of_a_pod_goes_before_what_the_api_server_says(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = "6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11"
        monkeypatch.setattr(kubernetes_node, "is_offered", lambda _: True)
        monkeypatch.setattr(kubernetes_node, "pod_names", lambda *_: {own: ("evil", "x")})
        names = by_name(machine("kubernetes-v2"))
        assert "shop/orders-db-0" in names
        assert "evil/x" not in names
        assert f"pod? {STATIC}" in names, "asked for, and not said"

    def test_a_container_is_part_of_its_pod(self, units: dict[str, dict[str, Any]]) -> None:
        container = units["shop/orders-db-0/postgres"]
        assert container["parent"] == units["shop/orders-db-0"]["key"]
        assert container["container"] == {"id": ID, "name": "postgres", "runtime": "containerd"}

    def test_memory_of_the_cgroup(self, units: dict[str, dict[str, Any]]) -> None:
        memory = units["shop/orders-db-0"]["memory"]
        assert memory["source"] == "cgroup_v2"
        assert (memory["anon_bytes"], memory["shmem_bytes"]) == (600 * MIB, 40 * MIB)
        assert memory["file_bytes"] == 2 * GIB, "shmem is not page cache"
        assert memory["working_set_bytes"] == 2800 * MIB - 1500 * MIB
        assert (memory["limit_bytes"], memory["limited"]) == (4 * GIB, True)
        assert memory["page_tables_bytes"] == 20 * MIB
        assert memory["hugetlb_bytes"] == 200 * MIB
        assert units["mysql.service"]["memory"]["limited"] is False

    def test_of_two_limits_programs_take_the_one_or_the_other_for_theirs(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        path = by_name(host)["mysql.service"]["cgroup_path"]
        host.path(f"sys/fs/cgroup{path.rpartition('/')[0]}/memory.max").write_text(f"{2 * GIB}\n")
        host.path("sys/fs/cgroup/kubepods.slice/memory.max").write_text(f"{2 * GIB}\n")
        units = by_name(Host(host.root))
        assert units["mysql.service"]["memory"]["limited"] is None
        assert units["shop/orders-db-0"]["memory"]["limit_bytes"] == 4 * GIB, "from within, nothing above is seen"
        host.path(f"sys/fs/cgroup{path}/memory.max").write_text(f"{GIB}\n")
        assert by_name(Host(host.root))["mysql.service"]["memory"]["limit_bytes"] == GIB

    def test_a_static_pod_has_the_name_of_its_folder_of_logs(self, machine: Machine) -> None:
        host = machine("kubernetes-v2")
        host.path(f"var/log/pods/kube-system_etcd-n1_{STATIC}/etcd").mkdir(parents=True)
        pod = by_name(host)["kube-system/etcd-n1"]
        assert (pod["key"], pod["pod"]["namespace"], pod["pod"]["uid"]) == (f"pod:{STATIC}", "kube-system", STATIC)

    def test_a_pod_of_one_container_is_said_once_unless_a_database_runs_in_it(
        self, units: dict[str, dict[str, Any]]
    ) -> None:
        assert not any(name.endswith(("/" + "11" * 6, "/" + "22" * 6)) for name in units), "sandboxes are left out"
        static = "pod 9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a"
        assert units[static]["memory"]["anon_bytes"] == 50 * MIB
        assert not any(name.startswith(f"{static}/") for name in units)

    def test_units_without_a_parent_do_not_overlap(self, machine: Machine) -> None:
        found = collect_all(machine("kubernetes-v2")).sample["units"]
        tops = [unit for unit in found if unit["parent"] is None]
        paths = [unit["cgroup_path"] for unit in tops]
        assert len(set(paths)) == len(paths)
        assert not any(a != b and a.startswith(f"{b}/") for a in paths for b in paths)
        assert sum(unit["memory"]["anon_bytes"] for unit in tops) == (600 + 3072 + 50 + 2600 + 80 + 9) * MIB

    def test_small_ones_are_counted_not_hidden(self, machine: Machine) -> None:
        seen = collect_all(machine("kubernetes-v2"))
        note = next(result["reason"] for result in seen.results if result["name"] == "units")
        assert note == "1 units below 4 MiB are left out"

    def test_a_process_seen_from_inside_a_namespace_is_placed(self, machine: Machine) -> None:
        """A DaemonSet's agent reads paths such as /../../kubepods-burstable.slice/...: only their end is known."""
        processes = collect_all(machine("kubernetes-v2")).sample["processes"]
        assert next(one["unit"] for one in processes if one["pid"] == 5001) == f"container:{ID}"


class TestVersion1:
    @pytest.fixture
    def units(self, machine: Machine) -> dict[str, dict[str, Any]]:
        return by_name(machine("kubernetes-v1"))

    def test_hierarchical_totals_are_read(self, units: dict[str, dict[str, Any]]) -> None:
        memory = units["pod 6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11"]["memory"]
        assert memory["source"] == "cgroup_v1"
        assert (memory["anon_bytes"], memory["shmem_bytes"], memory["file_bytes"]) == (500 * MIB, 620 * MIB, GIB)
        assert (memory["limit_bytes"], memory["limited"]) == (3 * GIB, True)

    def test_the_kernels_largest_number_is_no_limit(self, units: dict[str, dict[str, Any]]) -> None:
        memory = units["container 0d0d0d0d0d0d"]["memory"]
        assert (memory["limit_bytes"], memory["limited"]) == (None, False)

    def test_a_limit_above_acts(self, machine: Machine) -> None:
        host = machine("kubernetes-v1")
        path = by_name(host)["container 0d0d0d0d0d0d"]["cgroup_path"]
        stat = host.path(f"sys/fs/cgroup/memory{path}/memory.stat")
        stat.write_text(f"{stat.read_text()}hierarchical_memory_limit {2 * GIB}\n")
        memory = by_name(Host(host.root))["container 0d0d0d0d0d0d"]["memory"]
        assert (memory["limit_bytes"], memory["limited"]) == (2 * GIB, True)

    @pytest.mark.parametrize("version", [1, 2])
    def test_processes_outside_the_memory_controller_are_units_by_systemd_or_name(
        self, machine: Machine, version: int
    ) -> None:
        """Found on version 2 without that controller: no server had its unit, and pg_ctl restarted it beside that."""
        host = machine("kubernetes-v1")
        if version == 2:
            host.path("proc/800/cgroup").write_text("0::/system.slice/backup.service\n")
        units = by_name(host)
        service = units["backup.service"]
        assert (service["kind"], service["key"]) == ("systemd_service", "systemd:backup.service")
        assert service["memory"]["source"] == "rss"
        assert service["memory"]["anon_bytes"] == 190_000 * 1024
        assert units["rsyslogd"]["kind"] == "process_group"


@pytest.mark.parametrize(
    ("path", "kind", "key"),
    [
        (
            "/kubepods/besteffort/pod6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11",
            "pod",
            "pod:6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11",
        ),
        (f"/kubepods/burstable/pod{STATIC}", "pod", f"pod:{STATIC}"),
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice", "pod", f"pod:{STATIC}"),
        (
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
            f"kubelet-kubepods-burstable-pod{STATIC}.slice",
            "pod",
            f"pod:{STATIC}",
        ),
        (
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod6f0f6c1e_5a0e_4b5e_9a3e_0d5f3c7a9b11.slice",
            "pod",
            "pod:6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11",
        ),
        (f"/kubelet/kubepods/pod{STATIC}", "pod", f"pod:{STATIC}"),
        (f"/kubepods/burstable/pod6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11/{ID}", "container", f"container:{ID}"),
        (f"/kubepods.slice/x.slice/crio-{ID}.scope", "container", f"container:{ID}"),
        (f"/system.slice/docker-{ID}.scope", "container", f"container:{ID}"),
        (f"/machine.slice/libpod-{ID}.scope", "container", f"container:{ID}"),
        (f"/docker/{ID}", "container", f"container:{ID}"),
        ("/lxc.payload.db1", "container", "container:lxc/db1"),
        ("/lxc/db1", "container", "container:lxc/db1"),
        ("/system.slice/postgresql@16-main.service", "systemd_service", "systemd:postgresql@16-main.service"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/db.service",
            "systemd_service",
            "systemd:user@1000.service/db.service",
        ),
        ("/user.slice/user-0.slice/session-3.scope", "systemd_scope", "systemd:session-3.scope"),
        ("/system.slice", None, None),
        ("/kubepods.slice", None, None),
        (f"/kubepods.slice/crio-conmon-{ID}.scope", None, None),
        ("/pod6f0f6c1e-5a0e-4b5e-9a3e-0d5f3c7a9b11", None, None),
    ],
)
def test_what_a_cgroup_path_says(path: str, kind: str | None, key: str | None) -> None:
    name = name_of(path)
    assert (name and name.kind, name and name.key) == (kind, key)


def test_membership_of_both_versions() -> None:
    text = "5:memory:/a\n4:cpu,cpuacct:/b:c\n1:name=systemd:/system.slice/x.service\n0::/\n"
    assert parse_membership(text) == {
        "memory": "/a", "cpu": "/b:c", "cpuacct": "/b:c", "name=systemd": "/system.slice/x.service", "": "/",
    }  # fmt: skip


def test_a_name_with_a_separator_of_lines_in_it_is_no_second_line() -> None:
    path = "/user.slice/user-1000.slice/user@1000.service/a\u20281:name=systemd:/system.slice/postgresql.service"
    assert parse_membership(f"0::{path}\n") == {"": path}


def test_an_ambiguous_end_of_a_path_is_unknown(tmp_path: Path) -> None:
    found = ["/a", "/a/x", "/a/x/init.scope", "/b", "/b/y", "/b/y/init.scope"]
    for path in found:
        (tmp_path / f"tree{path}").mkdir(parents=True, exist_ok=True)
    index = PathIndex(Host(tmp_path), Hierarchy(2, "tree"), found)
    assert index.resolve("/../../init.scope") is None
    assert index.resolve("/../y/init.scope") == "/b/y/init.scope"
    assert index.resolve("/b/y") == "/b/y"
    assert index.resolve("/") == "/"


def test_a_group_of_processes_by_shares(machine: Machine) -> None:
    """Two processes that share 100 MiB count it once by PSS, twice by RSS."""
    host = machine("kubernetes-v1")
    for pid, anon in ((800, 190_000), (801, 20_000)):
        host.path(f"proc/{pid}/smaps_rollup").write_text(
            f"Pss: {anon + 5000} kB\nPss_Anon: {anon} kB\nPss_File: 5000 kB\nPss_Shmem: 0 kB\nAnonHugePages: 0 kB\n"
        )
    memory = by_name(host)["backup.service"]["memory"]
    assert (memory["source"], memory["anon_bytes"], memory["file_bytes"]) == ("pss", 190_000 * 1024, 5000 * 1024)
    assert memory["pss_bytes"] == 195_000 * 1024
