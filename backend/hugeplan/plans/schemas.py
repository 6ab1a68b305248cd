"""Requests and responses about decisions on many plans."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from hugeplan.api.schemas import RequestModel, ResponseModel


class FleetRowsDecision(RequestModel):
    """What to do with the rows of a fleet plan. ``after`` is the answer's ``next`` of the part before."""

    to: Literal["propose", "approve", "in_force"]
    after: Annotated[int | None, Field(ge=0, le=10**9)] = None


class SkippedRow(ResponseModel):
    """A row that was left as it is, and why."""

    node_id: UUID
    node_name: str
    reason: str


class FleetRowsDecided(ResponseModel):
    """What was done with a part of the rows. ``next`` is sent as ``after`` for the rest; null: all rows are done."""

    done: int
    already: int
    skipped: list[SkippedRow]
    next: int | None
