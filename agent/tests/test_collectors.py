"""Collectors over captured and constructed machines. Expected numbers are read off the trees by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hugeplan_agent.collectors import COLLECTORS, Collected, collect_all, cpu, process_table, processes, walks
from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host

KIB, MIB, GIB = 1024, 1024**2, 1024**3
Machine = Callable[[str], Host]


def statuses(collected: Collected) -> dict[str, str]:
    return {result["name"]: result["status"] for result in collected.results}


class TestTwoSockets:
    @pytest.fixture
    def seen(self, machine: Machine) -> Collected:
        return collect_all(machine("xeon-two-sockets"))

    def test_every_collector_is_content_but_for_what_the_capture_lacks(self, seen: Collected) -> None:
        absent = {name for name, status in statuses(seen).items() if status == "no_data"}
        assert absent == {"boot", "clone_hints", "watermarks", "buddyinfo", "pressure", "tunables"}
        assert "failed" not in statuses(seen).values()
        assert list(statuses(seen)) == list(COLLECTORS)
        assert all(result["duration_seconds"] >= 0 for result in seen.results)

    def test_memory_is_in_bytes(self, seen: Collected) -> None:
        memory = seen.sample["memory"]
        assert memory["mem_total_bytes"] == 527_994_880 * KIB
        assert memory["page_tables_bytes"] == 2_400_000 * KIB
        assert memory["hugetlb_bytes"] == 256 * GIB
        assert memory["direct_map_1g_bytes"] == 516_947_968 * KIB

    def test_a_word_the_kernel_does_not_print_is_unknown(self, seen: Collected) -> None:
        assert seen.sample["memory"]["percpu_bytes"] is None
        assert seen.sample["vmstat"]["compact_fail"] is None
        assert seen.sample["vmstat"]["htlb_buddy_alloc_fail"] == 1

    def test_pools_per_numa_node_and_size(self, seen: Collected) -> None:
        pools = [
            (
                pool["numa_node"],
                pool["page_bytes"],
                pool["nr_hugepages"],
                pool["free_hugepages"],
                pool["resv_hugepages"],
            )
            for pool in seen.sample["pools"]
        ]
        assert pools == [
            (0, 2 * MIB, 32768, 24576, None),
            (0, GIB, 64, 64, None),
            (1, 2 * MIB, 32768, 16384, None),
            (1, GIB, 64, 64, None),
        ]

    def test_global_pools_carry_reservations_and_overcommit(self, seen: Collected) -> None:
        two_mib = seen.sample["global_pools"][0]
        assert two_mib == {
            "page_bytes": 2 * MIB,
            "nr_hugepages": 65536,
            "free_hugepages": 40960,
            "resv_hugepages": 8192,
            "surplus_hugepages": 0,
            "nr_overcommit_hugepages": 512,
        }

    def test_a_numa_node_without_memory_is_known_to_have_none(self, seen: Collected) -> None:
        assert seen.inventory["numa_nodes"][2] == {"id": 2, "mem_total_bytes": 0, "cpus": ""}
        assert seen.inventory["numa_nodes"][1]["cpus"] == "32-63,96-127"

    def test_processor_and_kernel(self, seen: Collected) -> None:
        inventory = seen.inventory
        assert inventory["cpu"] == {
            "vendor": "GenuineIntel", "family": 6, "model": 207, "stepping": 2,
            "brand": "INTEL(R) XEON(R) PLATINUM 8592+", "part": None, "revision": None, "online": 128,
        }  # fmt: skip
        assert inventory["virtualised"] is False
        assert inventory["hypervisor"] is None
        assert inventory["hvo_enabled"] is True
        assert inventory["default_huge_page_bytes"] == 2 * MIB
        assert inventory["thp"] == {"enabled": "madvise", "defrag": "defer+madvise", "shmem_enabled": "never"}
        assert (inventory["cgroup_version"], inventory["cgroup_hugetlb"]) == (2, True)

    def test_processes_by_weight_without_kernel_threads_and_small_ones(self, seen: Collected) -> None:
        assert [process["pid"] for process in seen.sample["processes"]] == [900, 901]
        postmaster, backend = seen.sample["processes"]
        assert postmaster["shared_hugetlb_bytes"] == 48 * GIB
        assert postmaster["start_time_ticks"] == 4242
        assert postmaster["anon_huge_bytes"] == 2 * MIB
        assert backend["name"] == "postgres: app (x"
        assert backend["start_time_ticks"] == 5151
        assert backend["vm_pte_bytes"] == 98000 * KIB

    def test_what_may_not_be_looked_into_is_unknown_and_noted(self, seen: Collected) -> None:
        backend = seen.sample["processes"][1]
        assert backend["pss_bytes"] is None
        note = next(result["reason"] for result in seen.results if result["name"] == "processes")
        assert note.endswith("processes may not be read by this user")


class TestSixtyFourKibPages:
    def test_sizes_are_those_of_the_machine(self, machine: Machine) -> None:
        seen = collect_all(machine("arm64-64k"))
        assert seen.inventory["base_page_bytes"] == 64 * KIB
        assert seen.inventory["huge_page_sizes_bytes"] == [2 * MIB, 512 * MIB, 16 * GIB]
        assert seen.inventory["default_huge_page_bytes"] == 512 * MIB
        assert seen.inventory["architecture"] == "aarch64"
        assert seen.inventory["cpu"]["vendor"] == "0x41"
        assert seen.inventory["cpu"]["part"] == "0xd0c"
        assert seen.inventory["cpu"]["family"] is None
        assert seen.inventory["virtualised"] is None, "nothing says whether this is a guest"
        assert seen.inventory["thp"]["shmem_enabled"] is None


class TestBareKernel:
    def test_absent_things_are_no_data_and_nothing_fails(self, machine: Machine) -> None:
        seen = collect_all(machine("riscv-bare"))
        assert statuses(seen) == {
            "meminfo": "ok", "pools": "no_data", "numa": "ok", "thp": "no_data", "cpu": "ok", "kernel": "ok",
            "boot": "no_data", "clone_hints": "no_data", "cgroup": "no_data", "vmstat": "no_data",
            "watermarks": "no_data", "buddyinfo": "no_data", "pressure": "no_data", "tunables": "no_data",
            "units": "no_data", "databases": "no_data", "processes": "no_data", "hugetlb_cgroups": "no_data",
            "kubelet": "no_data",
        }  # fmt: skip
        assert "pools" not in seen.sample, "unknown is absent, not an empty list"
        assert seen.inventory["numa_nodes"] == [{"id": 0, "mem_total_bytes": 8_123_456 * KIB, "cpus": "0-3"}]
        assert seen.inventory["hvo_enabled"] is None
        assert seen.inventory["default_huge_page_bytes"] is None


class TestCapturedGuest:
    def test_a_real_capture_reads_without_failure(self, machine: Machine) -> None:
        seen = collect_all(machine("zen5-guest"))
        assert "failed" not in statuses(seen).values()
        assert seen.inventory["virtualised"] is True
        assert seen.inventory["cpu"]["family"] == 26
        assert seen.inventory["huge_page_sizes_bytes"] == [2 * MIB, GIB]
        assert seen.inventory["hvo_enabled"] is False


class TestThisMachine:
    def test_the_running_system_reads_without_failure(self) -> None:
        seen = collect_all(Host("/"))
        assert "failed" not in statuses(seen).values(), seen.results
        assert seen.sample["memory"]["mem_total_bytes"] > 0


def test_a_failing_collector_does_not_stop_the_rest() -> None:
    def broken(_: Host) -> Fragment:
        raise ValueError("line one\nline two")

    def absent(_: Host) -> Fragment:
        raise NoData("no such thing here")

    def fine(_: Host) -> Fragment:
        return Fragment({"architecture": "x86_64"})

    seen = collect_all(
        Host("/"), {name: Collector(one) for name, one in (("broken", broken), ("absent", absent), ("fine", fine))}
    )
    assert [(result["status"], result["reason"]) for result in seen.results] == [
        ("failed", "line one line two"),
        ("no_data", "no such thing here"),
        ("ok", None),
    ]
    assert seen.inventory == {"architecture": "x86_64"}


def test_without_numa_folders_the_global_pool_is_node_0(machine: Machine) -> None:
    host = machine("xeon-two-sockets")
    host.path("sys/devices/system/node").rename(host.path("sys/devices/system/gone"))
    pools = collect_all(host).sample["pools"]
    assert [(pool["numa_node"], pool["page_bytes"], pool["resv_hugepages"]) for pool in pools] == [
        (0, 2 * MIB, 8192),
        (0, GIB, 0),
    ]


def test_an_unreadable_pool_is_left_out_and_named(machine: Machine) -> None:
    host = machine("xeon-two-sockets")
    host.path("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").write_text("not a number\n")
    seen = collect_all(host)
    assert [pool["page_bytes"] for pool in seen.sample["global_pools"]] == [GIB]
    assert seen.inventory["huge_page_sizes_bytes"] == [2 * MIB, GIB]
    assert next(result["reason"] for result in seen.results if result["name"] == "pools") == (
        "nr_hugepages is unreadable for pages of [2097152] bytes"
    )


@pytest.mark.parametrize(
    ("vendor", "product", "name"),
    [
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "KVM"),
        ("VMware, Inc.", "VMware7,1", "VMware"),
        ("Microsoft Corporation", "Virtual Machine", "Hyper-V"),
        ("Microsoft Corporation", "Surface", None),
        ("Google", "Google Compute Engine", "KVM"),
    ],
)
def test_hypervisor_from_the_firmware(machine: Machine, vendor: str, product: str, name: str | None) -> None:
    host = machine("xeon-two-sockets")
    host.path("sys/class/dmi/id").mkdir(parents=True)
    host.path("sys/class/dmi/id/sys_vendor").write_text(f"{vendor}\n")
    host.path("sys/class/dmi/id/product_name").write_text(f"{product}\n")
    assert cpu.hypervisor_name(host) == name


def test_too_many_processes_are_counted_not_hidden(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "MAX_PROCESSES", 1)
    fragment = processes.collect(machine("xeon-two-sockets"))
    assert [process["pid"] for process in fragment.sample["processes"]] == [900]
    assert fragment.note is not None
    assert fragment.note.startswith("1 smaller processes are left out")


def test_where_the_kernel_hides_processes_none_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hidepid a node of two servers was told to have none, as a thing known."""
    host = machine("xeon-two-sockets")
    monkeypatch.setattr(Path, "is_mount", lambda path: path == host.path("proc"))
    assert statuses(collect_all(host))["databases"] == "ok", "the first process is listed"
    shutil.rmtree(host.path("proc/1"))
    seen = collect_all(host)
    for name in ("units", "databases", "processes"):
        assert name not in seen.sample
        (result,) = (one for one in seen.results if one["name"] == name)
        assert (result["status"], "hidepid" in result["reason"]) == ("failed", True)


def test_processes_past_the_time_limit_stay_unknown(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "FIRST_SECONDS", -1.0)
    fragment = processes.collect(machine("xeon-two-sockets"))
    assert [process["pss_bytes"] for process in fragment.sample["processes"]] == [None, None]
    assert fragment.note is not None
    assert "processes were not read" in fragment.note


def test_shares_read_earlier_are_kept_with_their_age(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    host = machine("xeon-two-sockets")
    first = collect_all(host).sample["processes"][0]
    assert (first["pss_bytes"], first["pss_age_seconds"]) == (90_000 * KIB, 0.0)
    monkeypatch.setattr(process_table, "ROLLUP_SHARE", 0.0)
    host.path("proc/900/smaps_rollup").write_text("Pss: 1 kB\n")
    again = collect_all(host).sample["processes"][0]
    assert again["pss_bytes"] == 90_000 * KIB, "there was no time to read it again"
    assert again["pss_age_seconds"] >= 0


def test_a_pid_used_again_does_not_inherit_shares(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    host = machine("xeon-two-sockets")
    collect_all(host)
    monkeypatch.setattr(process_table, "ROLLUP_SHARE", 0.0)
    stat = host.path("proc/900/stat")
    stat.write_text(stat.read_text().replace("4242", "99999"))
    assert collect_all(host).sample["processes"][0]["pss_bytes"] is None


def test_a_small_process_that_holds_huge_pages_is_reported(tmp_path: Path) -> None:
    """Huge pages are no part of resident memory: a program of 9 MiB may hold a whole pool."""
    for name, text in {
        "proc/7/stat": f"7 (tiny) S 1 {' '.join(['0'] * 17)} 5 {40 * 1024**2} 2304 {' '.join(['0'] * 20)}\n",
        "proc/7/status": "Name:\ttiny\nVmRSS:\t9216 kB\nRssAnon:\t9216 kB\nHugetlbPages:\t8192 kB\nVmPTE:\t40 kB\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "4\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (found,) = collect_all(Host(tmp_path)).sample["processes"]
    assert (found["name"], found["hugetlb_bytes"]) == ("tiny", 8 * 1024**2)
