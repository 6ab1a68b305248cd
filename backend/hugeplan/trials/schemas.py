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


class PredictedGain(ResponseModel):
    """What the model of then predicted in per cent, and the class of its error."""

    low: float
    likely: float
    high: float
    error_class: str


class TrialResult(ResponseModel):
    """What one page size gained over base pages in per cent; ``text`` says it, null where nothing was measured.

    ``equal`` is base pages against base pages: the noise floor. ``predicted``: from the node's curves when the trial
    came; null where nothing was measured of them, for THP, and for what is no lookup by key.
    """

    page_size: Literal["equal", "2M", "1G", "thp", "huge"]
    status: TrialStatus
    reason: str | None
    gain: MeasuredGain | None
    blocks: int
    text: str | None
    predicted: PredictedGain | None


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
    machine_type: str | None
