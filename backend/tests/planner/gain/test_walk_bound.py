"""A processor's count of page walks bounds every gain, and says where huge pages cannot help."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner.gain.walk_bound import bounded_by_walks, most_speedup
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Gain,
    MeasuredHere,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    Plan,
    PlanRequest,
    State,
    WalkShare,
    Workload,
)
from hugeplan.planner.plan import plan

M2 = 2 * MIB
WHEN = "2026-11-24 15:00 UTC"


def share(fraction: float, bound: float | None = None) -> WalkShare:
    return WalkShare(fraction=fraction, bound_fraction=fraction if bound is None else bound, counted_at=WHEN)


def planned(walks: WalkShare | None, status: str = "off", runs_with: str = "32GB") -> Plan:
    """A PostgreSQL of 32 GiB planned with 2M pages, whose running server was counted."""
    settings = {"shared_buffers": "32GB"}
    counted_with = {"shared_buffers": runs_with}
    running = ObservedDatabase(
        key="pg@1", engine="postgresql", version="17", settings=counted_with, huge_pages_status=status, walks=walks
    )
    memory = Meminfo(
        mem_total_bytes=128 * GIB,
        mem_free_bytes=64 * GIB,
        mem_available_bytes=80 * GIB,
        buffers_bytes=GIB,
        cached_bytes=36 * GIB,
        s_reclaimable_bytes=GIB,
        s_unreclaim_bytes=GIB,
        kernel_stack_bytes=MIB,
        page_tables_bytes=GIB,
        percpu_bytes=MIB,
        anon_pages_bytes=20 * GIB,
        shmem_bytes=33 * GIB,
    )
    database = DatabaseInstance(
        name="db",
        engine="postgresql",
        version="17",
        settings=settings,
        connections=50,
        page_bytes=M2,
        workload=Workload(row_bytes=128, working_set_bytes=32 * GIB, active_connections=8),
    )
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=128 * GIB),), cpus=8, thp_enabled="always")
    sample = NodeSample(memory=memory, databases=(running,), processes=(), pools=(), units=())
    return plan(PlanRequest(node=node, databases=(database,), sample=sample))


def gain_in(found: Plan, kind: str = "hugetlb") -> Gain:
    return next(gain for gain in found.gains if (gain.page_bytes, gain.backing_kind) == (M2, kind))


def findings(found: Plan) -> list[tuple[State, str]]:
    return [(finding.state, finding.title) for finding in found.findings if finding.code == "walk_share"]


def test_the_share_caps_every_gain_and_stands_among_its_inputs() -> None:
    free, bound = planned(None), planned(share(0.02))
    before, gain = gain_in(free), gain_in(bound)
    assert before.speedup is not None
    assert before.speedup.high > 1 / 0.98, "the test needs a gain to cap"
    assert gain.speedup is not None
    assert gain.speedup.high == pytest.approx(1 / 0.98)
    assert gain.speedup.high - gain.speedup.low < before.speedup.high - before.speedup.low
    assert gain.saving_ns_per_operation.high < before.saving_ns_per_operation.high
    assert ("cycles with a page walk", "2.0 %") in [(term.name, term.value) for term in gain.inputs]
    assert gain.statement.endswith("no page size buys more than +2.0 %.")
    thp = gain_in(bound, "thp")
    assert thp.speedup is not None
    assert thp.speedup.high <= 1 / 0.98 + 1e-12
    assert findings(bound) == [(State.OK, "2.0 % of its cycles wait for page walks")]
    assert findings(free) == []


def test_next_to_nothing_says_leave_it() -> None:
    found = planned(share(0.004))
    assert findings(found) == [(State.ATTENTION, "0.4 % of its cycles wait for page walks: leave it")]


def test_a_large_share_changes_no_gain() -> None:
    assert gain_in(planned(share(0.6))).speedup == gain_in(planned(None)).speedup


def test_hits_of_the_second_level_are_in_the_bound() -> None:
    assert most_speedup(share(0.004, 0.1)) == pytest.approx(1 / 0.9)
    assert findings(planned(share(0.004, 0.1))) == [(State.OK, "0.4 % of its cycles wait for page walks")]


def test_a_server_on_huge_pages_says_nothing_of_base_pages() -> None:
    assert gain_in(planned(share(0.004), status="on")).speedup == gain_in(planned(None, status="on")).speedup
    assert findings(planned(share(0.004), status="on")) == []


def test_a_server_with_a_smaller_pool_says_nothing_of_a_larger_one() -> None:
    free = gain_in(planned(None, runs_with="8GB"))
    assert gain_in(planned(share(0.004), runs_with="8GB")).speedup == free.speedup
    assert findings(planned(share(0.004), runs_with="8GB")) == []
    assert findings(planned(share(0.004), runs_with="48GB")) != []


@given(fraction=st.floats(0, 3), bound=st.floats(0, 3))
def test_the_range_stays_a_range_below_the_bound(fraction: float, bound: float) -> None:
    before = gain_in(_FREE)
    walks = share(fraction, max(fraction, bound))
    gain = bounded_by_walks(before, walks, 1000.0)
    assert before.speedup is not None
    assert gain.speedup is not None
    assert gain.speedup.low <= gain.speedup.likely <= gain.speedup.high <= most_speedup(walks) * (1 + 1e-12)
    shown = gain.one_measurement
    assert shown is None or shown.low <= shown.likely <= shown.high
    assert gain.speedup.high <= before.speedup.high
    measured = replace(before, measured_here=MeasuredHere(trial_id="t", text="measured here", predicted=None))
    assert bounded_by_walks(measured, walks, 1000.0) is measured


_FREE = planned(None)
