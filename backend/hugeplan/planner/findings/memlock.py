"""May the server lock its segment? SysV and locking engines need RLIMIT_MEMLOCK of at least its size."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import engine_named
from hugeplan.planner.findings.base import FindingInputs, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes

CODE = "memlock_too_low"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance of a locking engine that the plan gives huge pages."""
    for instance, planned in inputs.with_pool:
        if not engine_named(planned.engine).locks_segment(planned.demand.version or ""):
            continue
        need = planned.demand.segment_bytes
        kib = -(-need // 1024)
        fix = f"limits.d: memlock at least {kib} KiB for the server's user; systemd: LimitMEMLOCK=infinity."
        limits = [process.memlock_limit_bytes for process in inputs.processes_of(instance.name) or ()]
        low = min((limit for limit in limits if limit is not None and limit >= 0), default=None)
        if low is not None and low < need:
            evidence = (measured("limit", format_bytes(low)),)
            reason = f"The limit is {format_bytes(low)}, the segment needs {format_bytes(need)}."
            title = f"It may lock {format_bytes(low)}, less than its segment"
            yield wrong(CODE, instance.name, title, reason, fix, evidence=evidence)
        elif not limits or None in limits:
            title = f"Whether it may lock {format_bytes(need)} is not known"
            yield unknown(CODE, instance.name, title, "The limit of its processes is not known.", fix)
        else:
            yield ok(CODE, instance.name, "It may lock its whole segment", "The limit covers the segment.")
