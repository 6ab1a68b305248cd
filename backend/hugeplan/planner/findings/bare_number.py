"""Was a buffer pool given without a unit? shared_buffers = 32 is 256 KiB, not 32 GiB."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand.registry import bare_number
from hugeplan.planner.findings.base import FindingInputs, attention, ok
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes

CODE = "size_without_unit"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance whose pool has a size."""
    for instance, planned in zip(inputs.request.databases, inputs.instances, strict=True):
        note, size = bare_number(instance), planned.demand.pool_bytes
        if note is not None:
            yield attention(CODE, instance.name, "Its buffer pool was given without a unit", note, "Write the unit.")
        elif size is not None:
            yield ok(CODE, instance.name, "Its buffer pool was read as it was written", f"It is {format_bytes(size)}.")
