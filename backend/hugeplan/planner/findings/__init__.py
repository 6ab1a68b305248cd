"""Findings: one file and one row per rule. A rule says ok, attention, wrong or unknown, with reason and fix.

Plans, reports, imports, ``verify`` and the linter ask the same table, each with the facts that it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from hugeplan.planner.demand import PageChoice, engine_named
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
    numa_allowed,
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
from hugeplan.planner.findings.base import FACTS, Facts, FindingInputs, Rule, of_plan
from hugeplan.planner.model import Finding, State, named
from hugeplan.planner.observation.sizes_unread import Unread, not_read, settings_of

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
    of_plan(numa_allowed.check),
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


@cache
def _checks(known: frozenset[str]) -> tuple[Callable[[Facts], Iterable[Finding]], ...]:
    """Of the rules whose facts are known: each report asks, and knows few of them."""
    return tuple(rule.check for rule in RULES if known.issuperset(rule.needs))


def findings_by(facts: Facts) -> tuple[Finding, ...]:
    """What the rules say of the facts that are known, the worst first, else in the order of the table."""
    known = frozenset(name for name in FACTS if getattr(facts, name) is not None)
    found = [finding for check in _checks(known) for finding in check(facts)]
    if facts.plan is not None and facts.plan.unread:
        found = [_without_sizes(finding, facts.plan) for finding in found]
    return tuple(sorted(found, key=lambda finding: _WORST_FIRST[finding.state]))


#: Rules whose ok counts the pages of one instance, of all of them, and the memory of all.
_PAGES_OF_ONE: Final = frozenset(
    rule.CODE for rule in (no_start, pod_limit, memlock, rounding_waste, bare_number, count_uncertain)
)
_PAGES_OF_ALL: Final = frozenset(
    rule.CODE for rule in (pools_present, segment_mistaken, contention, provider_cap, planned_idle)
)
_MEMORY: Final = frozenset(rule.CODE for rule in (pod_memory, page_cache))


def _without_sizes(finding: Finding, inputs: FindingInputs) -> Finding:
    """An ok that rests on sizes which nobody read is not known."""
    if finding.state is not State.OK:
        return finding
    of = inputs.unread
    if finding.code in _PAGES_OF_ONE:
        of = {name: found for name, found in of.items() if name == finding.subject}
    elif finding.code in _PAGES_OF_ALL:
        takers = {d.name for d in inputs.request.databases if engine_named(d.engine).page_choice is not PageChoice.NONE}
        of = {name: found for name, found in of.items() if name in takers}
    elif finding.code not in _MEMORY:
        return finding
    if not of:
        return finding
    return replace(
        finding,
        state=State.UNKNOWN,
        title=f"Not known while the size of {named(of, ' and ')} is not",
        reason=_stands_in(of, f"{finding.title}."),
        fix=_asks_for(of),
    )


#: Rules whose fix carries the plan out, or sets something to its pages: beside too little memory it would do harm.
_CARRY_OUT: Final = frozenset(
    rule.CODE
    for rule in (
        pools_present, segment_mistaken, fallback, fragmentation, overcommit, default_size, hvo, pod_limit,
        silent_fallback, phantom_eviction,
    )
)  # fmt: skip


#: What else counts pages or memory: at a size that stands in for one which nobody read, each count is another's.
_COUNT: Final = _CARRY_OUT | {
    rule.CODE
    for rule in (
        no_start, memlock, planned_idle, pool_idle, time_bomb, pod_memory, risk_policy, page_cache, contention,
        numa_balance, reserved_memory, rounding_waste,
    )
}  # fmt: skip


def once_it_fits(found: Iterable[Finding], unread: Mapping[str, Unread]) -> tuple[Finding, ...]:
    """What is said beside a plan that does not fit, or of which that is not known: nobody is told to carry it out as it
    is. ``unread``: as :func:`sizes_not_read` says it; these are asked for in place of what their defaults come to."""

    def held(one: Finding) -> Finding:
        if not unread:
            return replace(one, fix=f"Once the plan fits: {one.fix}") if one.code in _CARRY_OUT else one
        return replace(one, reason=_stands_in(unread, one.reason), fix=_asks_for(unread)) if one.code in _COUNT else one

    return tuple(held(one) if one.fix and one.fix != _asks_for(unread) else one for one in found)


def _stands_in(unread: Mapping[str, Unread], what: str) -> str:
    return f"{not_read(unread)}. At the size that stands in for it: {what}"


def _asks_for(unread: Mapping[str, Unread]) -> str:
    return f"Set {settings_of(unread)} to the size that the server is to have, or report the node with the agent."


def what_is_wrong(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings that ask for something to be done: a list of faults has no other."""
    return tuple(finding for finding in found if finding.state in {State.WRONG, State.ATTENTION})
