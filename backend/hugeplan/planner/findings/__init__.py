"""Findings: one file and one row per check. A check says ok, attention, wrong or unknown, with reason and fix."""

from __future__ import annotations

from hugeplan.planner.findings import (
    command_line,
    contention,
    count_uncertain,
    default_size,
    double_counting,
    fallback,
    fit,
    fractured_guest,
    fragmentation,
    hvo,
    initdb_bus_error,
    invisible_pool,
    kubelet_restart,
    memlock,
    no_start,
    numa_balance,
    overcommit,
    page_cache,
    page_size_available,
    phantom_eviction,
    planned_idle,
    pod_limit,
    pod_memory,
    pool_idle,
    pools_present,
    provider_cap,
    reserved_memory,
    risk_policy,
    rounding_waste,
    segment_mistaken,
    silent_fallback,
    thp,
    time_bomb,
)
from hugeplan.planner.findings.base import Check, FindingInputs
from hugeplan.planner.model import Finding, State

CHECKS: tuple[Check, ...] = (
    fit.check,
    no_start.check,
    risk_policy.check,
    page_size_available.check,
    provider_cap.check,
    reserved_memory.check,
    pools_present.check,
    segment_mistaken.check,
    pool_idle.check,
    fallback.check,
    silent_fallback.check,
    time_bomb.check,
    initdb_bus_error.check,
    contention.check,
    pod_limit.check,
    pod_memory.check,
    default_size.check,
    numa_balance.check,
    fragmentation.check,
    command_line.check,
    kubelet_restart.check,
    phantom_eviction.check,
    memlock.check,
    thp.check,
    fractured_guest.check,
    rounding_waste.check,
    count_uncertain.check,
    planned_idle.check,
    page_cache.check,
    double_counting.check,
    overcommit.check,
    hvo.check,
    invisible_pool.check,
)

_WORST_FIRST = {State.WRONG: 0, State.ATTENTION: 1, State.UNKNOWN: 2, State.OK: 3}


def findings_of(inputs: FindingInputs) -> tuple[Finding, ...]:
    """All findings, the worst first, else in the order of the table."""
    found = [finding for check in CHECKS for finding in check(inputs)]
    return tuple(sorted(found, key=lambda finding: _WORST_FIRST[finding.state]))
