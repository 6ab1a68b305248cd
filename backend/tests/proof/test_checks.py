"""Each check reaches each of its verdicts, from one observation in the report's words."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from artifacts.samples import request_of
from conftest import REPOSITORY

from hugeplan.cli.node_now import boot_counts, observe
from hugeplan.cli.verify import EXIT_OF, exit_status
from hugeplan.planner.memory.kernel_parameters import after_writes
from hugeplan.planner.model import GIB, MIB, Plan, PoolPlan, State
from hugeplan.planner.plan import plan
from hugeplan.proof import Observation, verify
from hugeplan.proof.causes import Cause
from hugeplan.proof.checks.machine import check_next_boot
from hugeplan.proof.verdict import Outcome

EXAMPLE = json.loads((REPOSITORY / "docs" / "report.example.json").read_text(encoding="utf-8"))
M2 = 2 * MIB


def good() -> tuple[Plan, dict[str, Any]]:
    """A plan and a report that says it is in force."""
    found = plan(request_of("postgresql", nodes=1))
    (instance,) = (i for i in found.instances if i.name == "postgresql")
    pages = instance.demand.pages
    pool = PoolPlan(numa_node=0, page_bytes=M2, demand_pages=pages, slack_pages=0, pages=pages, present_pages=0)
    found = replace(found, pools=(pool,), kubernetes=None)
    report = copy.deepcopy(EXAMPLE)
    report["inventory"]["kernel_command_line"] = f"default_hugepagesz=2M hugepagesz=2M hugepages={pages}"
    report["sample"] |= {
        "pools": [
            {"numa_node": 0, "page_bytes": M2, "nr_hugepages": pages, "free_hugepages": 0, "surplus_hugepages": 0}
        ],
        "global_pools": [
            {
                "page_bytes": M2,
                "nr_hugepages": pages,
                "free_hugepages": 0,
                "resv_hugepages": 0,
                "surplus_hugepages": 0,
                "nr_overcommit_hugepages": 0,
            }
        ],
        "buddyinfo": [{"numa_node": 0, "zone": "Normal", "free_blocks": [0] * 9 + [4, 1]}],
        "databases": [
            {
                "key": "postgresql@x",
                "engine": "postgresql",
                "main_pid": 7,
                "huge_pages_status": "on",
                "segments": [{"bytes": pages * M2, "backing": "hugetlb", "page_bytes": M2, "kind": "anonymous_shared"}],
                "hugetlb_limits": [],
                "memlock_limited": True,
                "memlock_limit_bytes": 65536,
            }
        ],
        "kubelet": None,
    }
    return found, report


def states(found: Plan, report: dict[str, Any]) -> tuple[Outcome, dict[str, State]]:
    verdict = verify(found, Observation(report["inventory"], report["sample"]))
    return verdict.outcome, {f.code: f.state for f in verdict.findings}


def test_a_plan_in_force() -> None:
    outcome, by_code = states(*good())
    assert outcome is Outcome.IN_FORCE
    assert set(by_code.values()) == {State.OK}
    assert set(by_code) == {
        "verify_pool",
        "verify_overcommit",
        "verify_pool_idle",
        "verify_engine",
        "verify_limit",
        "verify_thp",
        "verify_next_boot",
    }


def pool_of(report: dict[str, Any]) -> dict[str, Any]:
    return report["sample"]["pools"][0]


def server_of(report: dict[str, Any]) -> dict[str, Any]:
    return report["sample"]["databases"][0]


def short(report: dict[str, Any]) -> None:
    pool_of(report)["nr_hugepages"] -= 5


def fell_back(report: dict[str, Any]) -> None:
    server_of(report) | {}
    server_of(report)["segments"][0] |= {"backing": "base", "page_bytes": None}
    server_of(report)["huge_pages_status"] = "off"


def other_size(report: dict[str, Any]) -> None:
    server_of(report)["segments"][0]["page_bytes"] = GIB


def limit(counter: str) -> Any:
    def change(report: dict[str, Any]) -> None:
        server_of(report)["hugetlb_limits"] = [
            {"page_bytes": M2, "counter": counter, "limit_bytes": M2, "usage_bytes": 0, "cgroup_path": "/x"}
        ]

    return change


def changed(*path: Any, to: Any) -> Any:
    def change(report: dict[str, Any]) -> None:
        here: Any = report
        for part in path[:-1]:
            here = here[part]
        here[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "code", "state", "outcome"),
    [
        (short, "verify_pool", State.WRONG, Outcome.NOT_IN_FORCE),
        (changed("sample", "pools", to=None), "verify_pool", State.UNKNOWN, Outcome.UNDECIDED),
        (changed("sample", "pools", to=[]), "verify_pool", State.WRONG, Outcome.NOT_IN_FORCE),
        (changed("sample", "pools", 0, "nr_hugepages", to=10**6), "verify_pool", State.ATTENTION, Outcome.IN_FORCE),
        (fell_back, "verify_engine", State.WRONG, Outcome.NOT_IN_FORCE),
        (other_size, "verify_engine", State.WRONG, Outcome.NOT_IN_FORCE),
        (changed("sample", "databases", to=[]), "verify_engine", State.UNKNOWN, Outcome.UNDECIDED),
        (
            changed("sample", "databases", 0, "huge_pages_status", to=None),
            "verify_engine",
            State.UNKNOWN,
            Outcome.UNDECIDED,
        ),
        (
            changed("sample", "databases", 0, "huge_pages_status", to="partial"),
            "verify_engine",
            State.ATTENTION,
            Outcome.IN_FORCE,
        ),
        (
            changed("sample", "databases", 0, "segments", 0, "bytes", to=M2),
            "verify_engine",
            State.UNKNOWN,
            Outcome.UNDECIDED,
        ),
        (limit("usage"), "verify_limit", State.WRONG, Outcome.NOT_IN_FORCE),
        (limit("reservation"), "verify_limit", State.WRONG, Outcome.NOT_IN_FORCE),
        (changed("sample", "databases", 0, "hugetlb_limits", to=None), "verify_limit", State.UNKNOWN, Outcome.IN_FORCE),
        (
            changed("sample", "global_pools", 0, "nr_overcommit_hugepages", to=9),
            "verify_overcommit",
            State.ATTENTION,
            Outcome.IN_FORCE,
        ),
        (changed("sample", "global_pools", to=None), "verify_overcommit", State.UNKNOWN, Outcome.IN_FORCE),
        (
            changed("sample", "global_pools", 0, "free_hugepages", to=2000),  # without a reservation
            "verify_engine",
            State.UNKNOWN,
            Outcome.UNDECIDED,
        ),
        (
            changed("sample", "global_pools", 0, "free_hugepages", to=200),
            "verify_engine",
            State.OK,
            Outcome.IN_FORCE,
        ),
        (
            changed("sample", "global_pools", 0, "free_hugepages", to=2000),
            "verify_pool_idle",
            State.ATTENTION,
            Outcome.UNDECIDED,
        ),
        (changed("inventory", "thp", "enabled", to="always"), "verify_thp", State.ATTENTION, Outcome.IN_FORCE),
        (changed("inventory", "thp", to=None), "verify_thp", State.UNKNOWN, Outcome.IN_FORCE),
        (
            changed("inventory", "kernel_command_line", to="quiet"),
            "verify_next_boot",
            State.ATTENTION,
            Outcome.IN_FORCE,
        ),
        (
            changed("inventory", "kernel_command_line", to="hugepagesz=2M hugepages=9,0:1"),
            "verify_next_boot",
            State.ATTENTION,
            Outcome.NOT_IN_FORCE,
        ),
        (changed("inventory", "kernel_command_line", to=None), "verify_next_boot", State.UNKNOWN, Outcome.IN_FORCE),
    ],
)
def test_each_check_reaches_its_verdict(change: Any, code: str, state: State, outcome: Outcome) -> None:
    found, report = good()
    change(report)
    got, by_code = states(found, report)
    assert by_code[code] is state
    assert got is outcome


def on_two_numa_nodes(words: str, planned: dict[int, int]) -> tuple[Plan, dict[str, Any]]:
    """A plan of these pages by NUMA node, and the inventory of a node with two that boots with ``hugepages=WORDS``."""
    found, report = good()
    pools = tuple(replace(found.pools[0], numa_node=numa, pages=count) for numa, count in planned.items())
    nodes = [{"id": numa, "mem_total_bytes": 1 << 34} for numa in (0, 1)]
    line = f"hugepagesz=2M hugepages={words}"
    return replace(found, pools=pools), report["inventory"] | {"kernel_command_line": line, "numa_nodes": nodes}


@pytest.mark.parametrize(
    ("pages", "planned", "is_the_plan"),
    [
        ("1:218", {1: 218}, True),
        ("0:218", {1: 218}, False),
        ("218", {1: 218}, False),
        ("218", {0: 109, 1: 109}, False),  # threads of newer kernels give each odd page to the first node
        ("217", {0: 109, 1: 108}, False),
        ("218", {0: 118, 1: 100}, False),
        ("0:118,1:100", {0: 118, 1: 100}, True),
        ("0:100,1:118", {0: 118, 1: 100}, False),
    ],
)
def test_the_next_boot_is_of_each_numa_node(pages: str, planned: dict[int, int], *, is_the_plan: bool) -> None:
    """Found: the same total on another NUMA node was "the plan again": after the boot its database did not start."""
    found, inventory = on_two_numa_nodes(pages, planned)
    page_bytes = found.pools[0].page_bytes
    by_node: dict[int | None, int] = {}
    for part in pages.split(","):
        numa, _, count = part.rpartition(":")
        by_node[int(numa) if numa else None] = int(count)
    seen = Observation(inventory, {}), Observation(inventory, {}, [("/etc/a.conf", page_bytes, by_node)])
    for observed in seen:
        assert [f.state is State.OK for f in check_next_boot(found, observed)] == [is_the_plan]


@pytest.mark.parametrize(
    ("line", "files", "planned", "is_the_plan"),
    [
        ("0:500", [{1: 218}], {1: 218}, False),
        ("0:500", [{0: 0, 1: 218}], {1: 218}, True),
        ("0:1", [{0: 500}, {1: 218}], {1: 218}, False),
        ("0:1", [{None: 218}, {0: 218}], {0: 218}, False),
        ("0:109,1:109", [{0: 109}], {0: 109, 1: 109}, True),
        ("0:9", [{0: 109}, {1: 109}], {0: 109, 1: 109}, True),
        # The rest is what Linux 6.1 ended with in a virtual machine of two NUMA nodes, or a plan that it did not.
        ("0:9", [{0: 109}, {None: 218}], {0: 109, 1: 109}, False),
        ("0:40", [{None: 40}], {0: 20, 1: 20}, False),
        ("0:40", [{None: 40}], {0: 40}, True),
        ("0:9", [{None: 40}], {0: 20, 1: 20}, False),
        ("0:9", [{None: 41}], {0: 25, 1: 16}, True),
        ("0:30,1:10", [{None: 20}], {0: 10, 1: 10}, False),
        ("0:30,1:10", [{None: 20}], {0: 20}, True),
        ("0:30,1:10", [{None: 10}], {0: 10}, True),
        ("0:20,1:20", [{None: 60}], {0: 30, 1: 30}, True),
        ("0:20,1:20", [{None: 41}], {0: 21, 1: 20}, False),
        ("41", [{None: 40}], {0: 20, 1: 20}, False),
        ("41", [{0: 20}], {0: 20, 1: 20}, False),
        ("41", [{0: 20}, {1: 20}], {0: 20, 1: 20}, True),
        ("41", [{0: 30}, {1: 10}, {None: 20}], {0: 20}, True),
        ("0:9", [{0: 218, 1: 0, None: 300}], {0: 218}, False),
        ("0:9", [{0: 218, 1: 0, None: 300}], {0: 259, 1: 41}, True),
        ("0:9", [{None: 300, 0: 218, 1: 0}], {0: 218}, True),
    ],
)
def test_a_count_of_one_numa_node_leaves_those_of_others(
    line: str, files: list[dict[int | None, int]], planned: dict[int, int], *, is_the_plan: bool
) -> None:
    found, inventory = on_two_numa_nodes(line, planned)
    counts = [(f"/etc/{n}.conf", found.pools[0].page_bytes, by_node) for n, by_node in enumerate(files)]
    findings = [*check_next_boot(found, Observation(inventory, {}, counts))]
    assert [finding.state is State.OK for finding in findings] == [is_the_plan]


def test_an_even_split_by_the_kernel_is_unknown_and_another_one_is_not_the_plan() -> None:
    """Found: a total was "spread evenly again", so a node with 40 pages on one NUMA node was the plan of 20 and 20."""
    for files in ([], [{None: 217}]):
        found, inventory = on_two_numa_nodes("217", {0: 109, 1: 108})
        counts = [("/etc/a.conf", M2, by_node) for by_node in files]
        (finding,) = check_next_boot(found, Observation(inventory, {}, counts))
        assert (finding.state, finding.fix) == (State.UNKNOWN, "Write a count for each NUMA node.")
        other, _ = on_two_numa_nodes("217", {0: 9, 1: 208})
        (finding,) = check_next_boot(other, Observation(inventory, {}, counts))
        assert finding.state is State.ATTENTION


@pytest.mark.parametrize(
    ("before", "writes", "after"),
    [
        ({None: 3}, [(1, 2), (None, 4), (0, 0)], {None: 2, 0: 0}),
        ({None: 4}, [(0, 3), (None, 4)], {None: 4}),
        ({None: 4}, [(0, 3), (1, 1)], {0: 3, 1: 1}),
        ({None: 0}, [(0, 3), (None, 7)], {0: 5, 1: 2}),
        ({0: 3, 1: 9}, [(None, 6)], {1: 6, 0: 0}),
        ({0: 3, 1: 9}, [(None, 7)], {None: 7}),
        ({None: 5}, [(None, 0), (7, 9), (1, 2)], {0: 0, 1: 2}),
    ],
)
def test_a_count_of_a_node_is_said_where_no_turn_of_the_kernel_ends_with_another(
    before: dict[int | None, int], writes: list[tuple[int | None, int]], after: dict[int | None, int]
) -> None:
    """Found: 2 pages on node 1 after the first of these, where the kernel may have made it 3."""
    assert after_writes(before, writes, (0, 1)) == after


POOLS = "hugepages/hugepages-2048kB/nr_hugepages"
NODE0, TOTAL = f"/sys/devices/system/node/node0/{POOLS}", f"/sys/kernel/mm/{POOLS}"


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({"tmpfiles.d/10.conf": f"w {NODE0} - - - - 50", "tmpfiles.d/60.conf": f"w {NODE0} - - - - 218"}, 50),
        ({"tmpfiles.d/60.conf": f"w {NODE0} - - - - 218", "tmpfiles.d/90.conf": f"w {NODE0} - - - - 50"}, 218),
        ({"tmpfiles.d/10.conf": f"w {NODE0} - - - - 50 # x", "tmpfiles.d/60.conf": f"w {NODE0} - - - - 218"}, None),
        ({"tmpfiles.d/10.conf": f"w {NODE0} 50", "tmpfiles.d/60.conf": f"w {NODE0} - - - - 218"}, 218),
        ({"tmpfiles.d/60.conf": f"w {NODE0.replace('node0', 'node*')} - - - - 7"}, 7),
        ({"tmpfiles.d/60.conf": f"w {NODE0.replace('node0', 'node{0,1}')} - - - - 7"}, 7),
        ({"tmpfiles.d/60.conf": "w /sys/kernel/mm/hugepages/*2048*/nr_hugepages - - - - 7"}, 7),
        ({"tmpfiles.d/60.conf": f"f+ {TOTAL} - - - - 7"}, 7),
        ({"tmpfiles.d/60.conf": f'w "{TOTAL.replace("mm/", "mm//./")}" - - - - 7'}, 7),
        ({"tmpfiles.d/60.conf": f"w {NODE0} - - - - 218\nw {TOTAL} - - - - 9"}, 9),
        ({"tmpfiles.d/60.conf": f"w {TOTAL} - - - - 9\nw {NODE0} - - - - 218"}, 218),
        ({"tmpfiles.d/60.conf": "w /proc/sys/vm/nr_hugepages - - - - 010"}, 8),
        ({"tmpfiles.d/60.conf": f"w {TOTAL} 218"}, None),
        ({"tmpfiles.d/60.conf": f"d {TOTAL} - - - - 218"}, None),
        ({"tmpfiles.d/60.conf": "w /sys/kernel/mm/hugepages/hugepages-2M/nr_hugepages - - - - 218"}, None),
        ({"tmpfiles.d/60.conf": f"w {NODE0.replace('node0', 'node5')} - - - - 218"}, None),
        ({"sysctl.d/60.conf": "vm.nr_hugepages = 218\nvm.nr_hugepages_mempolicy=7"}, 7),
        ({"sysctl.d/60.conf": "vm.nr_hugepages_mempolicy=7\nvm.nr_hugepages = 218"}, 218),
        ({"sysctl.d/60.conf": "vm.nr_hugepages = 0218"}, None),
        ({"sysctl.d/60.conf": "vm.nr_hugepages = 010"}, 8),
        ({"tmpfiles.d/10.conf": f"w+ {NODE0} - - - - 218", "tmpfiles.d/90.conf": f"w+ {NODE0} - - - - 50"}, 50),
        ({"tmpfiles.d/10.conf": f"w+ {NODE0} - - - - 50\nw {NODE0} - - - - 218\nw+ {NODE0} - - - - 9"}, 9),
        ({"tmpfiles.d/10.conf": f"w {NODE0} - - - - 218\nw+ {NODE0} - - - - 50"}, 218),
        ({"tmpfiles.d/10.conf": f"w+ {NODE0} - - - - 50\nw {TOTAL} - - - - 7\nw+ {NODE0} - - - - 9"}, 7),
        ({"tmpfiles.d/10.conf": f"w {NODE0}/ - - - - 7\nw {NODE0} - - - - 218"}, 7),
        ({"tmpfiles.d/10.conf": f"w {NODE0} - - - - 7\\n"}, 7),
        ({"tmpfiles.d/10.conf": f"w {NODE0} - - - - +7"}, 7),
        ({"tmpfiles.d/10.conf": f"F {NODE0} - - - - 218", "tmpfiles.d/20.conf": f"w {NODE0} - - - - 50"}, 50),
        ({"tmpfiles.d/10.conf": f"w {NODE0} - - - - 50", "tmpfiles.d/20.conf": f"f+ {NODE0} - - - - 218"}, 50),
        ({"tmpfiles.d/10.conf": f"F {NODE0} - - - - 7\nf+ {NODE0} - - - - 218"}, 7),
        ({"tmpfiles.d/10.conf": f"r {NODE0}\nw {NODE0} - - - - 218"}, None),
        ({"tmpfiles.d/10.conf": f"F {NODE0.replace('node0', 'node*')} - - - - 218"}, None),
        ({"sysctl.d/60.conf": "vm.nr_hugepages = 218", "sysctl.d/99.conf": "vm.nr_hugepages = 4G"}, None),
        ({"sysctl.d/60.conf": "vm.nr_hugepages = 218\nvm.nr_hugepages = -1\n"}, None),
        ({"sysctl.d/60.conf": "vm.nr_hugepages = 7", "sysctl.d/99.conf": "vm.nr_hugepages_mempolicy = 4G"}, 7),
        ({"sysctl.d/60.conf": "vm.nr_hugepages=7\nvm.nr_hugepages_mempolicy=8\nvm.nr_hugepages=7"}, 8),
        ({"sysctl.d/60.conf": "vm.nr_hug* = 7"}, 7),
        ({"sysctl.d/60.conf": "vm.nr_hugepages = 8", "sysctl.d/.70.conf": "vm.nr_hugepages = 7"}, 8),
        ({"sysctl.d/60.conf": "vm.nr_hug* = 7", "sysctl.d/70.conf": "vm.nr_hugepages = 8"}, 8),
        ({"sysctl.d/60.conf": "vm.nr_huge* = 7\n-vm.nr_hugepages\n-vm/nr_hugepages_mempolicy"}, None),
        ({"sysctl.d/60.conf": "vm.nr_hugepages = 218\n-vm.nr_hugepages"}, None),
    ],
)
def test_files_write_at_boot_what_systemd_252_and_linux_wrote(
    tmp_path: Path, files: dict[str, str], ends: int | None
) -> None:
    """Found: an older line of 50 pages, which systemd-tmpfiles takes, beside the plan's: "A reboot reserves it again".

    ``ends``: pages of 2M that the node had after these files were applied; None: they wrote nothing.
    """
    (tmp_path / "usr/lib/systemd").mkdir(parents=True)
    (tmp_path / "usr/lib/systemd/systemd-sysctl").touch()
    for name, text in files.items():
        path = tmp_path / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    found, report = good()
    inventory = report["inventory"] | {"numa_nodes": [{"id": 0, "mem_total_bytes": 1 << 34}]}
    inventory |= {"kernel_command_line": "hugepages=77", "default_huge_page_bytes": M2}
    for planned in (7, 8, 9, 50, 77, 218):
        plan_of = replace(found, pools=(replace(found.pools[0], pages=planned),))
        now = Observation(inventory, {}, boot_counts(str(tmp_path), inventory))
        said = {finding.state for finding in check_next_boot(plan_of, now)}
        assert (said == {State.OK}) == (planned == (ends or 77)), planned


def test_what_writes_counts_after_the_command_line_is_looked_at(tmp_path: Path) -> None:
    """Found: "A reboot reserves the plan again" beside a sysctl.conf of 100 pages, which the next boot ended with."""
    found, report = good()
    pages = pool_of(report)["nr_hugepages"]
    (meminfo := tmp_path / "proc/meminfo").parent.mkdir()
    meminfo.write_text("MemTotal: 8388608 kB\nHugepagesize: 2048 kB\n")
    (unit := tmp_path / "etc/systemd/system/sysinit.target.wants/hugeplan-hugepages.service").parent.mkdir(parents=True)

    def said(**files: str) -> tuple[State, str]:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        now = observe(str(tmp_path))
        size = {"default_huge_page_bytes": now.inventory.get("default_huge_page_bytes")}
        verdict = verify(found, Observation(report["inventory"] | size, report["sample"], now.boot_counts))
        (finding,) = (f for f in verdict.findings if f.code == "verify_next_boot")
        return finding.state, f"{finding.title} {finding.reason}"

    reported = verify(found, Observation(report["inventory"], report["sample"])).findings
    assert [f.reason[-18:] for f in reported if f.code == "verify_next_boot"] == ["was not looked at."]
    assert said() == said(etc__sysctl_d__98_conf="vm.swappiness = 1\n")
    assert said()[0] is State.OK
    wrong, text = said(
        etc__sysctl_d__60_conf=f"vm.nr_hugepages = {pages}\n", usr__lib__sysctl_d__99_conf="vm.nr_hugepages=7\n"
    )
    assert wrong is State.ATTENTION
    assert f"{tmp_path}/usr/lib/sysctl.d/99.conf sets 7 pages of 2M; {pages:,} pages of 2M are planned." in text
    assert said(etc__sysctl_d__99_conf="")[0] is State.OK, "it takes the place of the other folder's"
    assert said(etc__sysctl_conf="vm/nr_hugepages = 8\n")[0] is State.ATTENTION
    assert said(etc__sysctl_conf="")[0] is State.OK
    pool = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"
    assert "sets 9 pages" in said(etc__tmpfiles_d__x_conf=f"w {pool} - - - - 9\n")[1]
    script = {"etc__tmpfiles_d__x_conf": "", "usr__local__sbin__hugeplan-reserve": "reserve 0 hugepages-2048kB 0\n"}
    assert said(**script)[0] is State.OK
    unit.touch()
    assert "hugeplan-reserve sets 0 pages" in said()[1]
    # What the command line does not say, an enabled unit or a file does.
    report["inventory"]["kernel_command_line"] = "quiet"
    script = f"reserve 0 hugepages-2048kB {pages}\n"
    assert said(**{"usr__local__sbin__hugeplan-reserve": script})[0] is State.OK
    unit.unlink()
    assert "The command line reserves nothing" in said(etc__sysctl_d__60_conf="")[1]
    assert said(etc__sysctl_d__60_conf=f"vm.nr_hugepages = {pages}\n")[0] is State.OK
    meminfo.write_text("MemTotal: 8388608 kB\n")
    report["inventory"]["kernel_command_line"] = f"default_hugepagesz=2M hugepagesz=2M hugepages={pages}"
    assert said()[0] is State.UNKNOWN, "a count of pages of a size that nobody read"


@pytest.mark.parametrize(("blocks", "state"), [([0] * 10 + [3], State.OK), ([9] * 9 + [0, 0], State.ATTENTION)])
def test_whether_missing_pages_can_be_made(blocks: list[int], state: State) -> None:
    found, report = good()
    pool_of(report)["nr_hugepages"] -= 6  # a block of order 10 holds two pages of order 9
    report["sample"]["buddyinfo"] = [{"numa_node": 0, "zone": "Normal", "free_blocks": blocks}]
    assert states(found, report)[1]["verify_fragmentation"] is state


def test_gigantic_pages_are_sure_at_boot_only() -> None:
    found, report = good()
    found = replace(found, pools=(replace(found.pools[0], page_bytes=GIB, pages=2),))
    assert states(found, report)[1]["verify_fragmentation"] is State.ATTENTION


@pytest.mark.parametrize(
    ("capacity", "state"),
    [
        ({"hugepages-2Mi": None}, State.UNKNOWN),
        (None, State.UNKNOWN),
        ({"hugepages-2Mi": 0}, State.WRONG),
        ("pool", State.OK),
    ],
)
def test_the_kubelet_knows_the_pool(capacity: Any, state: State) -> None:
    _, report = good()
    found = plan(request_of("postgresql", nodes=1, kubernetes=True))
    pages = pool_of(report)["nr_hugepages"]
    value = {"hugepages-2Mi": pages * M2} if capacity == "pool" else capacity
    report["sample"]["kubelet"] = {"started_at": "x", "capacity": value}
    found = replace(found, pools=tuple(p for p in found.pools if p.page_bytes == M2))
    assert states(found, report)[1]["verify_kubelet"] is state


def test_a_kubelet_beside_the_plan_of_a_machine_is_judged_too() -> None:
    """``plan --node this`` describes no cluster, and a kubelet that runs there counts pages all the same."""
    found, report = good()
    assert "verify_kubelet" not in states(found, report)[1]
    report["sample"]["kubelet"] = {"started_at": "x", "capacity": {"hugepages-2Mi": 0}}
    assert states(found, report)[1]["verify_kubelet"] is State.WRONG
    assert exit_status(verify(found, Observation(report["inventory"], report["sample"]))) == 18


@pytest.mark.parametrize(
    ("version", "words", "fix"),
    [
        ("15.4", "The plan is for version 17, the server is version 15.4.", "version 15.4"),
        ("17.6", "its settings are not the plan's.", "plan again"),
        (None, "or its version is not 17", "plan again"),
    ],
)
def test_other_pages_of_an_older_version_are_not_blamed_on_settings(version: str | None, words: str, fix: str) -> None:
    found, report = good()
    segment = server_of(report)["segments"][0]
    segment["bytes"] -= 40 * M2
    server_of(report)["version"] = version
    verdict = verify(found, Observation(report["inventory"], report["sample"]))
    (finding,) = [one for one in verdict.findings if one.code == "verify_engine"]
    assert finding.state is State.ATTENTION
    assert words in finding.reason
    assert fix in (finding.fix or "")


def test_pages_that_nobody_has_are_no_plan_in_force_whatever_maps_them() -> None:
    """A mapping without a reservation (MAP_NORESERVE) of nearly the planned size, and one that is read in part."""
    for change in ({"bytes": 2100 * M2}, {"bytes": 2100 * M2, "partial": True}):
        found, report = good()
        server_of(report)["segments"][0]["bytes"] = change["bytes"]
        server_of(report)["huge_pages_status"] = "partial" if "partial" in change else "on"
        assert states(found, report)[0] is Outcome.IN_FORCE
        report["sample"]["global_pools"][0]["free_hugepages"] = 2100
        assert states(found, report)[0] is Outcome.UNDECIDED


def holder(report: dict[str, Any]) -> None:
    fell_back(report)
    held = {"pid": 99, "name": "redis", "hugetlb_bytes": 40 * M2, "unit": "/user.slice/a", "database": None}
    mapped = [{"page_bytes": M2, "mapped_bytes": None, "shared_bytes": 0, "private_bytes": 40 * M2}]
    report["sample"]["processes"] = [held | {"huge_page_mappings": mapped}]


def left_behind(report: dict[str, Any]) -> None:
    """40 pages in a file, 30 in two segments; part of a page, and a segment larger than what is missing, are not."""
    fell_back(report)
    pool = report["sample"]["global_pools"][0]
    pool["free_hugepages"] = pool["nr_hugepages"] - 70
    report["sample"]["processes"] = []
    report["sample"]["huge_page_files"] = [
        {"path": "/mnt/huge/old\x1b[31m", "page_bytes": M2, "pages": 40},
        {"path": "/mnt/1g/other", "page_bytes": GIB, "pages": 1},
    ]
    report["sample"]["sysv_segments"] = [
        {"id": 5, "bytes": 20 * M2 - 4096, "resident_bytes": 20 * M2},
        {"id": 8, "bytes": 10 * M2, "resident_bytes": 10 * M2 * 512},  # as kernels since 6.7 report it
        {"id": 6, "bytes": 4096, "resident_bytes": 4096},
        {"id": 7, "bytes": 31 * M2, "resident_bytes": 31 * M2},
    ]


def test_pages_without_a_process_are_named_by_file_and_segment() -> None:
    """'Held by 70 pages of 2M that no process read here has touched' named nobody."""
    found, report = good()
    left_behind(report)
    text = " ".join(f.reason for f in verify(found, Observation(report["inventory"], report["sample"])).findings)
    assert "the file /mnt/huge/old\\u001b[31m, which no process read here maps, with 40 pages of 2M" in text
    assert "SysV segment 5, which no process has attached (ipcrm -m 5 removes it), with 20 pages of 2M" in text
    assert "SysV segment 8, which no process has attached (ipcrm -m 8 removes it), with 10 pages of 2M" in text
    assert "no process read here has touched" not in text
    assert not [one for one in ("segment 6", "segment 7", "/mnt/1g") if one in text]


def not_restarted(report: dict[str, Any]) -> None:
    fell_back(report)
    report["sample"]["global_pools"][0]["free_hugepages"] = pool_of(report)["nr_hugepages"]


def told_not_to(report: dict[str, Any]) -> None:
    not_restarted(report)
    server_of(report)["settings"] = {"huge_pages": {"value": "off", "source": "own\x1b.conf"}}


def lowered(report: dict[str, Any]) -> None:
    pool_of(report)["surplus_hugepages"] = 30
    report["sample"]["global_pools"][0]["surplus_hugepages"] = 30


def both_short_and_not_running(report: dict[str, Any]) -> None:
    short(report)
    report["sample"]["databases"] = []


@pytest.mark.parametrize(
    ("change", "cause", "words"),
    [
        (lambda _: None, Cause.IN_FORCE, ()),
        (changed("sample", "pools", 0, "nr_hugepages", to=0), Cause.NOT_RESERVED, ("is not reserved",)),
        (short, Cause.SHORT, ("The kernel gave",)),
        (both_short_and_not_running, Cause.SHORT, ("The kernel gave",)),
        (lowered, Cause.LOWERED, ("was lowered to", "PostgreSQL (PID 7) with", "30 pages are surplus")),
        (changed("sample", "databases", to=[]), Cause.NOT_RUNNING, ("PostgreSQL is not running",)),
        (not_restarted, Cause.NOT_RESTARTED, ("still runs on base pages", "restart it")),
        (told_not_to, Cause.NOT_RESTARTED, ("says huge_pages = off (own\\u001b.conf)", "change it there")),
        (holder, Cause.HELD, ("redis (PID 99, /user.slice/a) with 40 pages of 2M", "no process read here has touched")),
        (other_size, Cause.OTHER_SIZE, ("runs on pages of 1G",)),
        (limit("reservation"), Cause.LIMIT, ("silently falls back",)),
        (limit("usage"), Cause.LIMIT, ("once its cache is warm",)),
        (changed("sample", "databases", 0, "huge_pages_status", to=None), Cause.NOT_OBSERVED, ()),
    ],
)
def test_states_are_told_apart_by_their_cause(change: Any, cause: Cause, words: tuple[str, ...]) -> None:
    found, report = good()
    change(report)
    verdict = verify(found, Observation(report["inventory"], report["sample"]))
    assert verdict.cause is cause
    text = " ".join(f"{f.title} {f.reason} {f.fix}" for f in verdict.findings)
    assert [one for one in words if one not in text] == []
    assert (verdict.next_step is None) is (cause in {Cause.IN_FORCE, Cause.NOT_OBSERVED, Cause.OTHER})


@pytest.mark.parametrize(
    ("settings", "is_complete", "said"),
    [
        ({"shared_buffers": "4194304kB"}, True, None),  # 100 connections are its default
        ({"shared_buffers": "'524288'", "max_connections": "100", "huge_pages": "try"}, True, None),
        (
            {"shared_buffers": "4GB", "max_connections": "60"},
            True,
            "max_connections = 100, its server has 60 (own.conf)",
        ),
        ({"max_connections": "100"}, True, "shared_buffers = 4GB, its server has its default"),
        ({"max_connections": "60"}, False, None),  # what could not be read may say another thing
    ],
)
def test_a_setting_that_the_server_does_not_have_is_not_in_force(
    settings: dict[str, str], is_complete: bool, said: str | None
) -> None:
    """The plan of 80 connections was in force on a server of 60: its file was not installed."""
    found, report = good()
    server_of(report)["settings"] = {name: {"value": v, "source": "own.conf"} for name, v in settings.items()}
    server_of(report)["settings_complete"] = is_complete
    verdict = verify(found, Observation(report["inventory"], report["sample"]))
    assert verdict.cause is (Cause.IN_FORCE if said is None else Cause.NOT_RESTARTED)
    assert [f.reason for f in verdict.findings if f.code == "verify_settings"] == (
        [] if said is None else [f"The plan counts with {said}."]
    )


def test_every_cause_has_an_exit_status_of_its_own() -> None:
    assert set(EXIT_OF) == set(Cause)
    assert len(set(EXIT_OF.values())) == len(Cause)


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        ("/kubepods.slice/pod1/c", "Set hugepages-2Mi: "),
        ("/system.slice/db.service", "Raise the usage limit of 2M pages of the cgroup /system.slice/db.service to "),
    ],
)
def test_a_limit_is_raised_where_somebody_set_it(path: str, fix: str) -> None:
    """'Set hugepages-2Mi as request and limit of its container' was said of a service on a node without Kubernetes."""
    found, report = good()
    limit("usage")(report)
    server_of(report)["hugetlb_limits"][0]["cgroup_path"] = path
    verdict = verify(found, Observation(report["inventory"], report["sample"]))
    (short,) = [f for f in verdict.findings if f.code == "verify_limit"]
    assert (verdict.cause, (short.fix or "")[: len(fix)]) == (Cause.LIMIT, fix)


def test_a_limit_within_the_counts_error_holds_only_where_the_segment_was_read() -> None:
    """Nobody read what the server maps: the rule's count may be off by more than the limit has beyond it."""
    found, report = good()
    (instance,) = found.instances
    demand = replace(instance.demand, error_pages=20)
    found = replace(found, instances=(replace(instance, demand=demand),))
    limit("usage")(report)
    server_of(report)["hugetlb_limits"][0]["limit_bytes"] = (demand.pages + 10) * M2

    def said() -> tuple[State, Cause]:
        verdict = verify(found, Observation(report["inventory"], report["sample"]))
        (one,) = [f for f in verdict.findings if f.code == "verify_limit"]
        return one.state, verdict.cause

    assert said()[0] is State.OK
    server_of(report)["segments"] = []
    state, cause = said()
    assert (state, cause is Cause.LIMIT) == (State.UNKNOWN, False)
