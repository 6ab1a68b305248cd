"""Was a buffer pool given without a unit? shared_buffers = 32 is 256 KiB, not 32 GiB."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand.registry import bare_number
from hugeplan.planner.findings.base import FindingInputs, attention
from hugeplan.planner.model import Finding

CODE = "size_without_unit"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance whose pool is a small bare number."""
    for instance in inputs.request.databases:
        note = bare_number(instance)
        if note is not None:
            yield attention(CODE, instance.name, "Its buffer pool was given without a unit", note, "Write the unit.")
