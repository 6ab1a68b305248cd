"""Findings: one file and one row per rule. A rule says ok, attention, wrong or unknown, with reason and fix.

Plans, reports, imports, ``verify`` and the linter ask the same table, each with the facts that it knows.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings import (
    bare_number,
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
    walk_share,
)
from hugeplan.planner.findings.base import Facts, FindingInputs, Rule, of_plan
from hugeplan.planner.model import Finding, State

#: One row per rule. A rule runs in every place that knows the facts it needs.
RULES: tuple[Rule, ...] = (
    of_plan(fit.check),
    of_plan(no_start.check),
    of_plan(risk_policy.check),
    of_plan(page_size_available.check),
    of_plan(provider_cap.check),
    of_plan(reserved_memory.check),
    of_plan(pools_present.check),
    of_plan(segment_mistaken.check),
    of_plan(pool_idle.check),
    of_plan(fallback.check),
    Rule(silent_fallback.check_limits, ("sample", "default_huge_page_bytes")),
    of_plan(silent_fallback.check),
    Rule(time_bomb.check, ("sample",)),
    Rule(initdb_bus_error.check, ("sample", "default_huge_page_bytes")),
    of_plan(contention.check),
    Rule(pod_limit.check, ("claims",)),
    of_plan(pod_memory.check),
    of_plan(default_size.check),
    of_plan(numa_balance.check),
    of_plan(fragmentation.check),
    of_plan(command_line.check),
    of_plan(kubelet_restart.check),
    of_plan(phantom_eviction.check),
    of_plan(memlock.check),
    of_plan(thp.check),
    of_plan(fractured_guest.check),
    of_plan(walk_share.check),
    of_plan(rounding_waste.check),
    of_plan(bare_number.check),
    of_plan(count_uncertain.check),
    of_plan(planned_idle.check),
    of_plan(page_cache.check),
    of_plan(double_counting.check),
    of_plan(overcommit.check),
    of_plan(hvo.check),
    of_plan(invisible_pool.check),
)

_WORST_FIRST = {State.WRONG: 0, State.ATTENTION: 1, State.UNKNOWN: 2, State.OK: 3}


def findings_of(inputs: FindingInputs) -> tuple[Finding, ...]:
    """All findings of a plan, the worst first, else in the order of the table."""
    return findings_by(
        Facts(
            default_huge_page_bytes=inputs.node.default_huge_page_bytes,
            sample=inputs.sample,
            claims=pod_limit.claims_of(inputs),
            plan=inputs,
        )
    )


def findings_by(facts: Facts) -> tuple[Finding, ...]:
    """What the rules say of the facts that are known, the worst first, else in the order of the table."""
    found = [finding for rule in RULES for finding in rule.findings(facts)]
    return tuple(sorted(found, key=lambda finding: _WORST_FIRST[finding.state]))


def what_is_wrong(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings that ask for something to be done: a list of faults has no other."""
    return tuple(finding for finding in found if finding.state in {State.WRONG, State.ATTENTION})
