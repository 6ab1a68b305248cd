"""Can the static Memory Manager start? Its reservedMemory must equal the reservations to the byte."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, computed, ok, wrong
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes

CODE = "reserved_memory_equality"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a node with the static Memory Manager."""
    view = inputs.kubernetes
    if view is None or not inputs.request.reservations.memory_manager_static:
        return
    total = inputs.reserved.total_bytes
    placed = sum(int(entry["memory"]) for entry in view.reserved_memory)
    evidence = (
        computed("kube + system + eviction", format_bytes(total)),
        computed("reservedMemory", format_bytes(placed)),
    )
    if placed == total:
        reason = f"reservedMemory sums to {format_bytes(total)}, as the kubelet demands."
        yield ok(CODE, inputs.node.name, "The Memory Manager can start", reason, evidence=evidence)
    else:
        reason = f"{format_bytes(total)} are to be reserved, but the pools leave no room for them on any NUMA node."
        yield wrong(
            CODE, inputs.node.name, "The Memory Manager cannot start", reason, "Shrink the pools.", evidence=evidence
        )
