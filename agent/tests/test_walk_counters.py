"""Counting the page walks of databases: when, of which, and what goes into the report. Stand-ins play tlbbench."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hugeplan_agent import report_schema, tlbbench, walk_counters
from hugeplan_agent.config import resolve
from hugeplan_agent.errors import MeasureError
from hugeplan_agent.walk_counters import RETRY_SECONDS, WalkCounters, compact

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
    return [int(pid) for pid in calls.read_text().split()] if calls.exists() else []


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
