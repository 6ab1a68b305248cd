"""Is transparent_hugepage = always beside a database?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, measured, ok, unknown
from hugeplan.planner.model import Finding

CODE = "thp_always"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a node with a database."""
    if not inputs.request.databases:
        return
    sample = inputs.sample
    mode = (sample.thp_enabled if sample is not None else None) or inputs.node.thp_enabled
    name = inputs.node.name
    if mode is None:
        yield unknown(CODE, name, "Whether THP is always on is not known", "The THP mode is not known.")
    elif mode == "always":
        yield attention(
            CODE,
            name,
            "THP is always on beside a database",
            "THP is always on: private memory of connections grows by whole 2M pages, and compaction stalls appear.",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and transparent_hugepage=madvise at boot.",
            evidence=(measured("enabled", mode),),
        )
    else:
        yield ok(CODE, name, "THP is not always on", f"THP is {mode}.", evidence=(measured("enabled", mode),))
