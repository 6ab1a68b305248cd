"""Two machines report under one machine id: a disk image was cloned with its id in it."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, attention

CODE = "cloned_machine_id"


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Told by firmware ids, hardware addresses, or boots that take turns (hugeplan.access.machines)."""
    if observed.shares_machine_id:
        yield attention(
            CODE,
            observed.name,
            "Another machine has its machine id",
            "Two machines report under one machine id. Their hardware or their boots tell them apart.",
            "Give each clone a machine id of its own (empty /etc/machine-id in the image), then enrol it.",
        )
