"""What a plan costs, counted in calls: the same on every machine, whatever else runs there.

The bars themselves (5 ms per plan, 2 ms per observed node of many) are measured by ``make bench``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from hugeplan.planner.model import (
    GIB,
    DatabaseInstance,
    Meminfo,
    MemoryHistory,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedUnit,
    PlanRequest,
    Workload,
)
from hugeplan.planner.plan import plan

#: 5,022 on 2026-11-22, 5,835 on 2026-11-24 with providers' caps, memory without CPUs and growth as a part of its own;
#: 7,829 before work that was done twice was taken away. 5,421 on 2026-11-26, since a choice is placed once.
MOST_CALLS_OF_A_PLAN = 5_800
#: Of a plan that does not fit, with the largest pool that does: 22,773, where 69,332 were once made.
MOST_CALLS_OF_A_PLAN_THAT_DOES_NOT_FIT = 27_000


def calls_of(work: Callable[[], object]) -> int:
    """Python functions that ``work`` calls, built-in ones left out."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def observed(shared_buffers_mib: int = 8192) -> PlanRequest:
    """A node with two NUMA nodes, twelve pods, 400 hours of history and one PostgreSQL."""
    total = 256 * GIB
    memory = Meminfo(
        mem_total_bytes=total, mem_free_bytes=total // 3, mem_available_bytes=total // 2, buffers_bytes=GIB,
        cached_bytes=20 * GIB, s_reclaimable_bytes=GIB, s_unreclaim_bytes=2 * GIB, kernel_stack_bytes=2**26,
        page_tables_bytes=2**28, percpu_bytes=2**26, anon_pages_bytes=20 * GIB, shmem_bytes=GIB,
    )  # fmt: skip
    units = tuple(
        ObservedUnit(key=f"u{k}", kind="pod", name=f"pod-{k}", source="cgroup_v2", ordinary_bytes=GIB + k)
        for k in range(12)
    )
    history = MemoryHistory(
        times_seconds=tuple(3600.0 * k for k in range(400)), used_bytes=tuple(20 * GIB + k for k in range(400))
    )
    settings = {"shared_buffers": f"{shared_buffers_mib}MB", "max_connections": "200"}
    return PlanRequest(
        node=NodeFacts(name="n", numa=tuple(NumaNode(id=i, mem_total_bytes=total // 2, pools=()) for i in range(2))),
        databases=(
            DatabaseInstance(
                name="db",
                engine="postgresql",
                version="17",
                settings=settings,
                workload=Workload(active_connections=16),
            ),
        ),
        sample=NodeSample(taken_at_seconds=0.0, memory=memory, units=units, ordinary_history=history),
    )


def test_a_plan_of_an_observed_node_under_a_slider_stays_cheap() -> None:
    """A step back to work per sample, per page size or per part shows here long before it shows on a clock."""
    for shared_buffers_mib in (4096, 4160):
        plan(observed(shared_buffers_mib))
    calls = calls_of(lambda: plan(observed(4224)))
    assert calls < MOST_CALLS_OF_A_PLAN, calls


def test_a_plan_that_does_not_fit_places_few_choices() -> None:
    """What the slack alone rules out is not placed, and no choice twice: the largest pool that fits is near a bound."""

    def too_large(shared_buffers_mib: int) -> PlanRequest:
        base = observed(shared_buffers_mib)
        others = (replace(base.databases[0], name=name, settings={"shared_buffers": "8GB"}) for name in ("a", "b", "c"))
        return replace(base, sample=None, databases=(*base.databases, *others))

    assert plan(too_large(400_000)).shortfall is not None
    calls = calls_of(lambda: plan(too_large(400_037)))
    assert calls < MOST_CALLS_OF_A_PLAN_THAT_DOES_NOT_FIT, calls
