"""Nothing that a node's users write makes a report that the service refuses: it would refuse all of it."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hugeplan_agent.collectors import collect_all, failed
from hugeplan_agent.collectors.kubelet import parse_memory_state
from hugeplan_agent.host import Host
from hugeplan_agent.printable import storable
from hugeplan_agent.report import build
from tests.conftest import FIXTURES
from tests.test_report import IDENTITY, NOW, SCHEMA, VALIDATOR
from tests.tree import expand

SPOOL = dict.fromkeys(SCHEMA["properties"]["spool"]["required"], 0)
NUMBERS = st.sampled_from([-1, 0, 5 << 20, 2**60, 2**60 + 1, 2**61, 2**63, 2**64, 10**30]) | st.integers()
LONG = st.just("9" * 4301)
COUNTS = NUMBERS.map(str) | LONG | st.sampled_from(["max", "unlimited", "Infinity", "NaN", "1e999", "٣", ""])
NAMES = st.sampled_from([
    "a" * 255, "user@" + "b" * 240, "c" * 247 + ".service", f"docker-{'d' * 64}.scope", "lxc", "e" * 64, "\udcff\x1b",
    "x y", "kubepods", "pod0a1b2c3d-1111-2222-3333-444455556677", "system.slice", "postgresql.service",
])  # fmt: skip
FOLDERS = st.lists(NAMES, min_size=1, max_size=8).map("/".join)
RESOURCES = st.lists(st.sampled_from(["memory", "hugepages-2Mi", "x" * 300, "hugepages-" + "y" * 300]), max_size=4)


def states(resources: list[str], totals: list[str], more: int) -> str:
    names = [*resources, *(f"hugepages-{number}" for number in range(more))]
    table = ",".join(f'"{name}": {{"total": {totals[at % len(totals)] or 1}}}' for at, name in enumerate(names))
    node = f'{{"memoryMap": {{{table}}}}}'
    return f'{{"policyName": "Static", "machineState": {{"0": {node}, "1": {node}}}}}'


STATES = st.builds(
    states, RESOURCES, st.lists(NUMBERS.map(str) | LONG | st.just("1e999"), min_size=1), st.sampled_from([0, 3, 300])
)
CONFIGURATIONS = st.builds(
    lambda name, value: f'{{"maxPods": {value or 0}, "evictionHard": {{"{name}": [{value or 0}]}}}}', NAMES, COUNTS
) | COUNTS.map(lambda value: f"maxPods: {value}\nkubeReserved:\n  memory: {value}\n")
LINES = st.lists(COUNTS, min_size=1, max_size=3).map(
    lambda counts: "".join(
        f"{name} {count}\n"
        for count in counts
        for name in (
            "anon",
            "shmem",
            "file",
            "inactive_file",
            "kernel",
            "max",
            "total_rss",
            "total_shmem",
            "total_cache",
        )
    )
)
STATUSES = COUNTS.map(
    lambda value: "Name:\t" + "n" * 64 + "\nUid:\t0\n"
    + "".join(f"{name}:\t{value} kB\n" for name in ("VmRSS", "RssAnon", "RssShmem", "HugetlbPages", "VmPTE", "VmSwap"))
)  # fmt: skip
ROLLUPS = COUNTS.map(
    lambda value: "".join(
        f"{name}: {value} kB\n" for name in ("Pss", "Pss_Anon", "Pss_Shmem", "Pss_File", "Shared_Hugetlb")
    )
)
WRITTEN: list[tuple[str, st.SearchStrategy[str]]] = [
    ("proc/1033/root/var/lib/kubelet/memory_manager_state", STATES),
    ("proc/1033/root/var/lib/kubelet/config.yaml", CONFIGURATIONS),
    (
        "proc/1033/cmdline",
        COUNTS.map(lambda value: f"kubelet\0--max-pods={value}\0--root-dir=/a\0--system-reserved={value}"),
    ),
    ("limits", COUNTS.map(lambda value: f"Max locked memory  {value} {value} bytes\n")),
    ("cgroup", FOLDERS.map(lambda path: f"0::/{path}\n1:name=systemd:/{path}\n4:memory:/{path}\n")),
    ("status", STATUSES),
    ("smaps_rollup", ROLLUPS),
    ("memory.stat", LINES),
    ("hugetlb.2MB.events", LINES),
    *((name, COUNTS) for name in ("memory.max", "memory.current", "memory.swap.current", "memory.limit_in_bytes")),
    *((name, COUNTS) for name in ("hugetlb.2MB.max", "hugetlb.2MB.current", "hugetlb.2MB.rsvd.max")),
    *((name, COUNTS) for name in ("hugetlb.2MB.limit_in_bytes", "hugetlb.2MB.usage_in_bytes")),
]
FILES = st.lists(
    st.one_of(*(st.tuples(st.just(name), text | st.text()) for name, text in WRITTEN)), min_size=1, max_size=8
)


@pytest.fixture(params=["kubernetes-v1", "kubernetes-v2"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    expand((FIXTURES / f"{request.param}.tree").read_text(), tmp_path)
    return tmp_path


@contextmanager
def written(root: Path, files: list[tuple[str, str]], folder: str) -> Iterator[None]:
    """Files of these names in all folders where such ones lie, and in cgroups that a user made."""
    top = root / "sys/fs/cgroup"
    tops = [top] if (top / "cgroup.controllers").exists() else [one for one in top.iterdir() if one.is_dir()]
    made = [one / "user.slice/made" / folder for one in tops]
    for place in made:
        place.mkdir(parents=True)
    cgroups = [*made, *(one.parent for one in top.rglob("memory.stat"))]
    processes = [one.parent for one in root.glob("proc/[0-9]*/stat")]
    before: dict[Path, bytes | None] = {}
    for name, text in files:
        folders = [root] if "/" in name else cgroups if "." in name else processes
        for file in [one / name for one in folders if (one / name).parent.is_dir()]:
            before.setdefault(file, file.read_bytes() if file.exists() else None)
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
    yield
    for file, content in before.items():
        file.unlink() if content is None else file.write_bytes(content)
    for one in tops:
        shutil.rmtree(one / "user.slice/made")


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=FILES, folder=FOLDERS)
def test_no_report_is_refused(root: Path, files: list[tuple[str, str]], folder: str) -> None:
    with written(root, files, folder):
        collected = collect_all(Host(root))
    accept(build(collected, IDENTITY, now=NOW, run=None, spool=SPOOL))


def accept(report: dict[str, Any]) -> None:
    """As the published schema and, where it is installed, the service read it."""
    VALIDATOR.validate(report)
    assert failed(report["collectors"]) == []
    keys = [unit["key"] for unit in report["sample"]["units"]]
    assert len(set(keys)) == len(keys)
    if importlib.util.find_spec("hugeplan") is not None:
        model = importlib.import_module("hugeplan.documents.report").Report
        model.model_validate_json(json.dumps(storable(report), allow_nan=False))


def test_of_a_memory_manager_state_what_a_report_has_room_for_is_taken() -> None:
    found = parse_memory_state(states(["memory"], [str(2**60)], 0))
    assert found is None, "two nodes of 1 EiB"
    found = parse_memory_state(states(["memory", "x" * 300], ["1024"], 300))
    assert found is not None
    assert (found["memory"], len(found)) == (2048, 64)
    assert parse_memory_state(states(["memory"], ["1e999"], 0)) is None
