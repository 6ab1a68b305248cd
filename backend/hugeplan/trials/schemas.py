"""Responses about trials."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from hugeplan.api.schemas import ResponseModel
from hugeplan.documents.trial import MeasuredGain, TrialMachine, TrialShape, TrialStatus


class TrialReceipt(ResponseModel):
    """``created`` is false when the same trial was stored before."""

    id: UUID
    node_id: UUID
    created: bool


class TrialResult(ResponseModel):
    """What one page size gained over base pages in per cent; ``text`` says it, null where nothing was measured.

    ``equal`` is base pages against base pages: the noise floor.
    """

    page_size: Literal["equal", "2M", "1G", "thp", "huge"]
    status: TrialStatus
    reason: str | None
    gain: MeasuredGain | None
    blocks: int
    text: str | None


class Trial(ResponseModel):
    """One trial on a node, without its pairs. ``others_share``: share of the CPUs that other work took meanwhile."""

    id: UUID
    node_id: UUID
    started_at: datetime
    stored_at: datetime
    seconds: float
    stopped: Literal["narrow", "time", "interrupted"]
    engine: str
    version: str | None
    shape: TrialShape
    machine: TrialMachine
    measure: Literal["cpu_per_operation", "rate"]
    others_share: float | None
    sentence: str
    page_sizes: list[TrialResult]


class FleetTrial(Trial):
    """A trial beside those of other nodes."""

    node_name: str
