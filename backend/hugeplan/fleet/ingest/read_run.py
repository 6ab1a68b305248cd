"""A run in a report, with everything made of it that needs no database and nothing of its node."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from hugeplan.benchmarks.records import RunRecord, WinsRecord, run_record, wins_records
from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.fleet.hardware_state import MeasuredState, measured_alone, packed
from hugeplan.hardware.curves import hardware_facts_of

_NO_NODE: Final = UUID(int=0)


class ReadRun(msgspec.Struct, frozen=True):
    """A run that was read: its id, its document as it is kept, its rows without their node, and what it measured.

    It is plain data, so a process beside the service can make it.
    """

    document: bytes
    record: RunRecord
    wins: list[WinsRecord]
    measured: MeasuredState

    @property
    def id(self) -> UUID:
        """The run's id, made when it was read."""
        return self.record.id

    def rows(self, node_id: UUID, received_at: datetime) -> tuple[RunRecord, list[WinsRecord]]:
        """The run's narrow row and its wins, for the node that it arrived for."""
        at = min(self.record.started_at, received_at)
        run = msgspec.structs.replace(self.record, node_id=node_id, stored_at=received_at, ordered_at=at)
        return run, [msgspec.structs.replace(wins, node_id=node_id) for wins in self.wins]


def read_run(run: TlbbenchDocument, kept: bytes, now: datetime) -> ReadRun:
    """What is made of a run. ``kept`` is its document as it is kept."""
    record = run_record(run, node_id=_NO_NODE, run_id=uuid.uuid4(), received_at=now)
    facts = hardware_facts_of(run)
    wins = wins_records(run, node_id=_NO_NODE, run_id=record.id, facts=facts)
    return ReadRun(kept, record, wins, packed(measured_alone(run, record, facts)))
