"""Would the engine silently fall back, or did a container's limit make it? huge_pages = try hides both."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import OnShortage, engine_named
from hugeplan.planner.findings.base import Facts, FindingInputs, attention, given, measured, ok, unknown, wrong
from hugeplan.planner.findings.container_limits import FIX, REFUSES, silent_fallback
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes

CODE = "silent_fallback"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool."""
    for instance, planned in inputs.with_pool:
        use = inputs.pool_uses[instance.name]
        shortage, engine = use.on_shortage, engine_named(planned.engine)
        setting, refusing = engine.refusal or (None, None)
        if shortage is OnShortage.REFUSE and engine.refusal is None and not use.all_or_none:
            title = "Whether a short pool is noticed is not known"
            reason = "It depends on the program; it is taken to refuse to start."
            fix = "Try its start with a short pool, or check HugePages_Rsvd after each start."
            yield unknown(CODE, instance.name, title, reason, fix)
            continue
        if shortage is OnShortage.REFUSE and not use.all_or_none:
            title = "A short pool will be noticed"
            yield ok(CODE, instance.name, title, "The engine refuses to start, so a short pool is noticed.")
            continue
        how = "takes what there is" if shortage is OnShortage.PARTIAL else "silently uses base pages"
        fix = (
            f"Set {setting} = {refusing}." if setting else "Check the server's log and HugePages_Rsvd after each start."
        )
        advised = {item.name: item.value for item in planned.demand.settings}.get(setting or "", refusing)
        if advised != refusing:  # its count has no bound
            fix = f"Compare the plan's count with the server's own, then set {setting} = {refusing}."
        default = next((spec.default for spec in engine.settings if spec.name == setting), None)
        value = instance.settings.get(setting, f"{default}, the default") if setting else "no setting refuses it"
        title = "A short pool may go unnoticed"
        if use.all_or_none:
            title = "A short pool stops it, an empty one may go unnoticed"
            how = "does not start; with one that has no free page it uses base pages"
        reason = f"With a short pool the engine {how}."
        yield attention(CODE, instance.name, title, reason, fix, evidence=(given(setting or "engine", value),))


def check_limits(facts: Facts) -> Iterable[Finding]:
    """One finding for each observed database that a limit sent to base pages."""
    sample, default = facts.sample, facts.default_huge_page_bytes
    assert sample is not None
    assert default is not None
    for database in sample.databases or ():
        short = silent_fallback(database, default)
        if short is None:
            continue
        refuses = REFUSES.get(database.engine)
        notice = f" {refuses} makes the next start fail instead of falling back." if refuses else ""
        limit = format_bytes(short.limit.limit_bytes)
        title = f"It fell back to base pages: its limit is {limit}, its segment {format_bytes(short.segment_bytes)}"
        reason = "The reservation limit of its cgroup refused the mapping, so the whole segment lies on base pages."
        evidence = (
            measured("segment", format_bytes(short.segment_bytes)),
            measured("limit (reservation)", limit),
            measured("cgroup", short.limit.cgroup_path),
        )
        yield wrong(CODE, database.key, title, reason, FIX + notice, evidence=evidence)
