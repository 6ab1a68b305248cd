"""Is transparent_hugepage = always beside a database?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, measured, ok, unknown
from hugeplan.planner.model import Finding, InstancePlan, named

CODE = "thp_always"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a node with a database: its THP mode against what its engines ask for."""
    if not inputs.request.databases:
        return
    sample = inputs.sample
    mode = (sample.thp_enabled if sample is not None else None) or inputs.node.thp_enabled
    name = inputs.node.name
    if mode is None:
        yield unknown(CODE, name, "Whether THP is always on is not known", "The THP mode is not known.")
        return
    wants_always = [p.name for p in inputs.instances if "always" in _advised(p)]
    others = [p.name for p in inputs.instances if "always" not in _advised(p)]
    evidence = (measured("enabled", mode),)
    if mode == "always" and others:
        against = f" {named(wants_always)} would rather have it always on." if wants_always else ""
        reason = (
            "THP is always on: private memory of connections grows by whole 2M pages, and compaction stalls appear."
            f"{against}"
        )
        fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and transparent_hugepage=madvise at boot."
        yield attention(CODE, name, "THP is always on beside a database", reason, fix, evidence=evidence)
    elif mode != "always" and wants_always and not others:
        reason = f"THP is {mode}. {named(wants_always)}: the vendor advises always."
        fix = "echo always > /sys/kernel/mm/transparent_hugepage/enabled, and transparent_hugepage=always at boot."
        yield attention(CODE, name, "THP is not always on, as its engines advise", reason, fix, evidence=evidence)
    elif mode == "always":
        yield ok(CODE, name, "THP is always on, as its engines advise", "THP is always on.", evidence=evidence)
    else:
        yield ok(CODE, name, "THP is not always on", f"THP is {mode}.", evidence=evidence)


def _advised(planned: InstancePlan) -> set[str]:
    """The THP modes that the engine's own advice names."""
    return {advice.value for advice in planned.demand.settings if advice.name == "transparent_hugepage/enabled"}
