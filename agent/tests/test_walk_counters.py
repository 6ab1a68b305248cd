"""Counting the page walks of databases: when, of which, and what goes into the report. Stand-ins play tlbbench."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hugeplan_agent import report_schema, tlbbench, walk_counters
from hugeplan_agent.config import resolve
from hugeplan_agent.errors import MeasureError
from hugeplan_agent.host import Host
from hugeplan_agent.walk_counters import (
    NO_GROUP,
    RETRY_SECONDS,
    WalkCounters,
    compact,
    counted_tree,
    own_group,
)

NONE = {"walk_fraction": None, "cycles": None, "instructions": None, "data_walks": None, "l2_hits": None}
COUNTED = {
    "status": "ok",
    "reason": None,
    "event_set": "intel-icelake-sp",
    "walk_cycles_are": "active",
    "seconds": 2.001,
    "running_fraction": 0.33,
    "overhead_fraction": 0.0004,
    "user": {"walk_fraction": 0.12},
    "kernel": {"walk_fraction": 0.05},
    "total": {"walk_fraction": 0.118, "cycles": 9_000_000_000, "instructions": 7_000_000_000, "l2_hits": 12_000},
    "events": [{"name": "left out of the report"}],
}


class Clock:
    """The monotonic clock, set by the test."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(walk_counters, "time", clock)
    return clock


def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counters: dict[str, Any]) -> tuple[WalkCounters, Path]:
    """A counter whose tlbbench writes down whom it counted and prints this result."""
    calls = tmp_path / "calls"
    document = json.dumps({"schema_version": 1, "counters": counters})
    program = tmp_path / "tlbbench"
    program.write_text(f"#!/bin/sh\necho \"$3\" >>{calls}\necho '{document}'\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(tlbbench, "POLL_SECONDS", 0.001)
    return WalkCounters(str(program), 3600.0, lambda: False), calls


def servers(*pids: int) -> list[dict[str, Any]]:
    return [{"key": f"db{pid}", "engine": "postgresql", "main_pid": pid, "start_time_ticks": 7} for pid in pids]


def called(calls: Path) -> list[int]:
    return [int(pid) for pid in told(calls)]


def told(calls: Path) -> list[str]:
    """What tlbbench was to count, as it was named."""
    return calls.read_text().split() if calls.exists() else []


def test_one_server_per_report_and_its_figures_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    walks, calls = counting(tmp_path, monkeypatch, COUNTED)
    first, second, third = servers(10, 20), servers(10, 20), servers(10, 20)
    walks.add(first)
    assert [entry.get("counters", {}).get("walk_fraction") for entry in first] == [0.118, None]
    walks.add(second)
    walks.add(third)
    assert called(calls) == [10, 20]
    assert [entry["counters"]["walk_fraction"] for entry in third] == [0.118, 0.118]
    assert third[0]["counters"]["kernel_walk_fraction"] == 0.05
    assert "events" not in third[0]["counters"]
    clock.now += 3601.0
    walks.add(servers(10, 20))
    assert called(calls) == [10, 20, 10]


def test_a_user_that_starts_servers_anew_makes_nobody_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, machine: Callable[[str], Host]
) -> None:
    """One is new each minute, and 119 of the user's stay: more than can be counted in an hour."""
    walks, _ = counting(tmp_path, monkeypatch, COUNTED)
    walks.host = machine("kubernetes-v2")
    for pid in range(600, 720):
        walks.host.path(f"proc/{pid}").mkdir()
        walks.host.path(f"proc/{pid}/cgroup").write_text("0::/user.slice/user-1001.slice/session-1.scope\n")
    counted: list[int] = []

    def count(self: WalkCounters, server: walk_counters.Server, now: float) -> None:
        counted.append(server[0])
        self.due_at[server] = now + self.every_seconds

    monkeypatch.setattr(WalkCounters, "_count", count)
    for minute in range(600):
        clock.now += 60.0
        new = [{**one, "start_time_ticks": minute // 100} for one in servers(*range(601, 720))]
        walks.add([*servers(5001), *new, {**servers(600)[0], "start_time_ticks": minute}])
    assert counted.count(5001) == 10


def test_another_server_with_the_same_number_is_counted_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walks, calls = counting(tmp_path, monkeypatch, COUNTED)
    walks.add(servers(10))
    restarted = [{**servers(10)[0], "start_time_ticks": 8}]
    walks.add(restarted)
    assert called(calls) == [10, 10]
    walks.add([])
    assert walks.found == {}


@pytest.mark.parametrize("status", ["unsupported", "not_permitted"])
def test_a_machine_without_counters_is_left_alone_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, status: str
) -> None:
    walks, calls = counting(
        tmp_path, monkeypatch, {**COUNTED, "status": status, "reason": "no PMU here", "total": NONE}
    )
    entries = servers(10, 20)
    walks.add(entries)
    assert entries[0]["counters"]["status"] == status
    clock.now += 3700.0
    walks.add(servers(10, 20))
    assert called(calls) == [10]
    clock.now += RETRY_SECONDS
    walks.add(servers(10, 20))
    assert len(called(calls)) == 2


def test_a_server_that_is_too_dear_to_count_waits_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    walks, calls = counting(tmp_path, monkeypatch, {**COUNTED, "status": "stopped", "reason": "counting costs 2 %"})
    walks.add(servers(10))
    clock.now += 3700.0
    walks.add(servers(10))
    assert called(calls) == [10]
    clock.now += RETRY_SECONDS
    walks.add(servers(10))
    assert called(calls) == [10, 10]


def test_without_the_program_the_report_says_so(tmp_path: Path) -> None:
    walks = WalkCounters(str(tmp_path / "absent"), 60.0, lambda: False)
    entries = servers(10)
    walks.add(entries)
    assert entries[0]["counters"]["status"] == "failed"
    assert "absent" in entries[0]["counters"]["reason"]


def test_the_entry_keeps_the_published_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walks, _ = counting(tmp_path, monkeypatch, COUNTED)
    entries = servers(10)
    walks.add(entries)
    schema = report_schema.document()
    database = jsonschema.Draft202012Validator({"$ref": "#/$defs/database", "$defs": schema["$defs"]})
    assert not list(database.iter_errors(entries[0]))
    entries[0]["counters"]["walk_fraction"] = -1
    assert list(database.iter_errors(entries[0]))


def test_a_document_without_counters_is_refused() -> None:
    with pytest.raises(MeasureError, match="no counters"):
        compact({"total": None}, datetime.now(timezone.utc))


class TestFromAContainer:
    """Below another root the numbers of processes are another namespace's: servers are counted by control group."""

    #: Of the captured machine: two processes in containers, two services, and one of the machine's own.
    POSTGRESQL, JAVA, MYSQL, KUBELET = 5001, 6001, 2201, 1033

    def test_a_server_in_a_container_or_service_is_counted_by_its_group(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Callable[[str], Host]
    ) -> None:
        walks, calls = counting(tmp_path, monkeypatch, COUNTED)
        walks.host = machine("kubernetes-v2")
        found = servers(self.POSTGRESQL, self.MYSQL)
        for _ in found:
            walks.add(found)
        assert [entry["counters"]["status"] for entry in found] == ["ok", "ok"]
        container, service = told(calls)
        # The process's own file says /../../../../kubepods-burstable.slice/...
        assert container.startswith(f"{walks.host.root}/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/")
        assert container.endswith(
            "cri-containerd-3c9f2f0d8b1f4a4f9c61b1a1f7f4ad3cf5c0b2d7e8f90112233445566778899a.scope"
        )
        assert service == f"{walks.host.root}/sys/fs/cgroup/system.slice/mysql.service"
        assert all(Path(folder).is_dir() for folder in (container, service))

    def test_two_servers_of_one_group_are_not_counted_for_each_other(self, machine: Callable[[str], Host]) -> None:
        host = machine("kubernetes-v2")
        assert own_group(host, self.POSTGRESQL, [self.JAVA, self.MYSQL])
        assert own_group(host, self.POSTGRESQL, [5004]) is None

    @pytest.mark.parametrize("path", ["/", "/kubepods.slice", "/init.scope", "/not/there", ""])
    def test_a_group_that_holds_more_is_not_the_servers(self, machine: Callable[[str], Host], path: str) -> None:
        host = machine("kubernetes-v2")
        host.path(f"proc/{self.MYSQL}/cgroup").write_text(f"0::{path}\n")
        assert own_group(host, self.MYSQL, []) is None
        walks = WalkCounters(None, 3600.0, lambda: False, host)
        entries = servers(self.MYSQL)
        walks.add(entries)
        assert (entries[0]["counters"]["status"], entries[0]["counters"]["reason"]) == ("failed", NO_GROUP)

    def test_a_group_below_the_container_is_the_containers(self, machine: Callable[[str], Host]) -> None:
        host = machine("kubernetes-v2")
        inner = "/system.slice/mysql.service/container"
        host.path(f"sys/fs/cgroup{inner}").mkdir()
        host.path(f"proc/{self.MYSQL}/cgroup").write_text(f"0::{inner}\n")
        found = own_group(host, self.MYSQL, [])
        assert found is not None
        assert found.endswith("/system.slice/mysql.service")

    def test_version_1_has_a_tree_for_counting(self, machine: Callable[[str], Host]) -> None:
        host = machine("kubernetes-v1")
        assert counted_tree(host) is None
        redis, folder = 802, f"/docker/{'0d' * 32}"
        host.path(f"sys/fs/cgroup/perf_event{folder}").mkdir(parents=True)
        host.path(f"proc/{redis}/cgroup").write_text(f"9:perf_event:{folder}\n5:memory:/elsewhere\n0::/\n")
        assert own_group(host, redis, []) == str(host.path(f"sys/fs/cgroup/perf_event{folder}"))

    def test_the_real_program_opens_a_group_of_another_root(self, tmp_path: Path) -> None:
        """As a container sees it, below /host; this machine's own groups, or the exact lack of this machine."""
        (tmp_path / "host").mkdir()
        (tmp_path / "host/sys").symlink_to("/sys")
        host = Host(tmp_path / "host")
        if counted_tree(host) is None:
            pytest.skip("SKIP: no control groups of version 2 and no perf_event of version 1 here")
        found = WalkCounters(tlbbench.find(None), 3600.0, lambda: False, host).trial()
        assert "cannot be opened" not in (found["reason"] or "")
        assert found["status"] in {"ok", "stopped", "unsupported", "cannot_tell"} or os.geteuid() != 0


def test_zero_seconds_turn_it_off() -> None:
    assert resolve({"count_walks_every": "0s"}, {}).count_walks_every_seconds == 0
    assert resolve({}, {}).count_walks_every_seconds == 3600


def test_the_real_program_counts_or_says_why() -> None:
    """This process, by the program that was built: figures, or the exact lack of this machine."""
    walks = WalkCounters(tlbbench.find(None), 3600.0, lambda: False)
    entries = servers(os.getpid())
    walks.add(entries)
    counters = entries[0]["counters"]
    assert counters["status"] == "ok" or counters["reason"]
    assert (counters["cycles"] is None) == (counters["status"] in {"unsupported", "not_permitted", "failed"})
