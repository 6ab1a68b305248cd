"""A trial in place of a prediction: which trial matches, and what a gain says then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hugeplan.planner.model import (
    GIB,
    MIB,
    Confidence,
    DatabaseInstance,
    Gain,
    MeasuredTrial,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Range,
    Workload,
)
from hugeplan.planner.plan import plan
from hugeplan.planner.question import biggest_question
from hugeplan.planner.verdict import verdict

M2 = 2 * MIB
TEXT = "measured here on 23 Nov 2026: +7.5 % (+6.6 to +8.4)"
TRIAL = MeasuredTrial(
    trial_id="a" * 32,
    engine="postgresql",
    version="17.4",
    backing_kind="hugetlb",
    page_bytes=M2,
    operation_class="key_lookup",
    row_bytes=128,
    data_bytes=4 * GIB,
    clients=8,
    speedup=Range(1.064, 1.075, 1.086),
    text=TEXT,
)
WORK = Workload(row_bytes=128, working_set_bytes=4 * GIB, active_connections=8)


def planned(*trials: MeasuredTrial, workload: Workload = WORK, **changes: Any) -> tuple[PlanRequest, Plan]:
    node = NodeFacts(
        name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), cpus=8, thp_enabled="always", trials=trials
    )
    fields: dict[str, Any] = {
        "name": "db",
        "engine": "postgresql",
        "version": "17",
        "settings": {"shared_buffers": "6GB"},
        "connections": 50,
        "page_bytes": M2,
    } | changes
    request = PlanRequest(node=node, databases=(DatabaseInstance(workload=workload, **fields),))
    return request, plan(request)


def gain_in(found: Plan, page_bytes: int = M2, kind: str = "hugetlb") -> Gain:
    return next(gain for gain in found.gains if (gain.page_bytes, gain.backing_kind) == (page_bytes, kind))


def test_a_matching_trial_takes_the_predictions_place() -> None:
    request, found = planned(TRIAL)
    predicted, gain = gain_in(planned()[1]), gain_in(found)
    assert gain.speedup == TRIAL.speedup
    assert gain.measured_here is not None
    assert (gain.measured_here.text, gain.measured_here.predicted) == (TEXT, predicted.speedup)
    assert gain.confidence is Confidence.HIGH
    assert gain.one_measurement is None
    assert TEXT in gain.statement
    saving = gain.saving_ns_per_operation
    # Nanoseconds and percentage are one calculation: the operation's cost is assumed to be 20 us.
    assert saving.likely == pytest.approx(20_000 * (1 - 1 / 1.075))
    assert saving.low < saving.likely < saving.high
    assert any(TEXT in line for line in verdict(found, request).gains)
    assert biggest_question(found, request) is None, "nothing narrows what was measured"


@pytest.mark.parametrize("share", [0.8, 0.98, 1.0, 1.1])
def test_a_size_that_was_not_tried_moves_alike(share: float) -> None:
    """One page size does not win because the trial of another disappointed, nor lose because it did well."""
    before = planned(page_bytes=None)[1]
    predicted = gain_in(before).speedup
    assert predicted is not None
    speedup = Range(*(share * predicted.likely * x for x in (0.99, 1.0, 1.01)))
    after = planned(replace(TRIAL, speedup=speedup), page_bytes=None)[1]
    assert after.instances[0].page_bytes in (before.instances[0].page_bytes, None)
    for page_bytes, kind in ((GIB, "hugetlb"), (M2, "thp")):
        was, now = gain_in(before, page_bytes, kind), gain_in(after, page_bytes, kind)
        assert now.measured_here is None
        assert was.speedup is not None
        assert now.speedup is not None
        assert now.speedup.likely == pytest.approx(was.speedup.likely * (share if was.speedup.likely != 1.0 else 1.0))
        assert now.speedup.low <= min(was.speedup.low, now.speedup.likely)
        assert now.speedup.high >= max(was.speedup.high, now.speedup.likely)
        assert (now.saving_ns_per_operation.likely < 0.0) is (now.speedup.likely < 1.0)
    assert "On this node 2M pages gained" in gain_in(after, GIB).statement


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": "mariadb"},
        {"version": "16.4"},
        {"page_bytes": GIB},
        {"backing_kind": "thp"},
        {"operation_class": "script"},
        {"operation_class": None},
        {"row_bytes": 300},
        {"row_bytes": 60},
        {"row_bytes": None},
        {"clients": 17},
        {"clients": 3},
        {"clients": None},
        {"data_bytes": GIB - 1},
        {"data_bytes": 17 * GIB},
        {"data_bytes": None},
    ],
)
def test_another_shape_is_no_match(changes: dict[str, Any]) -> None:
    assert gain_in(planned(replace(TRIAL, **changes))[1]).measured_here is None


@pytest.mark.parametrize(
    "changes",
    [
        {"version": None},
        {"version": "17.9"},
        {"row_bytes": 256},
        {"row_bytes": 64},
        {"clients": 16},
        {"data_bytes": GIB},
        {"data_bytes": 16 * GIB},
    ],
)
def test_a_near_shape_is_a_match(changes: dict[str, Any]) -> None:
    assert gain_in(planned(replace(TRIAL, **changes))[1]).measured_here is not None


@pytest.mark.parametrize("change", [{"operation_class": "nested_loop"}, {"operation_class": "oltp"}, {"zipf_s": 0.9}])
def test_another_workload_is_no_match(change: dict[str, Any]) -> None:
    assert gain_in(planned(TRIAL, workload=replace(WORK, **change))[1]).measured_here is None


def test_the_newest_that_matches_counts() -> None:
    newest_elsewhere = replace(TRIAL, trial_id="b" * 32, row_bytes=4096)
    newer = replace(TRIAL, trial_id="c" * 32, speedup=Range(1.01, 1.015, 1.02))
    found = gain_in(planned(newest_elsewhere, newer, TRIAL)[1]).measured_here
    assert found is not None
    assert found.trial_id == "c" * 32


def test_a_loss_that_was_measured_is_a_loss() -> None:
    gain = gain_in(planned(replace(TRIAL, speedup=Range(0.97, 0.98, 0.99)))[1])
    assert gain.saving_ns_per_operation.high < 0.0
    assert gain.speedup is not None
    assert gain.speedup.high < 1.0


def test_a_minor_version_of_the_mysql_family_is_its_major_one() -> None:
    work = replace(WORK, active_connections=None)
    change = {"engine": "mariadb", "settings": {"innodb_buffer_pool_size": "6G"}}
    for version, matches in (("10.11.6", True), ("10.6.16", False)):
        trial = replace(TRIAL, engine="mariadb", version=version)
        gain = gain_in(planned(trial, workload=work, **(change | {"version": "10.11"}))[1])
        assert (gain.measured_here is not None) is matches
