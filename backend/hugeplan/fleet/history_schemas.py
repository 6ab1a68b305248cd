"""Responses about a node over time."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from hugeplan.api.schemas import ResponseModel


class HistoryPoint(ResponseModel):
    """A node's samples in one span of ``width_seconds`` that begins at ``start_at``. Bytes; null is unknown.

    ``ordinary_bytes_max`` is memory in use that is not in a huge page pool.
    """

    start_at: datetime
    samples: int
    mem_total_bytes_max: int
    mem_available_bytes_min: int | None
    mem_available_bytes_mean: int | None
    page_tables_bytes_max: int | None
    anon_huge_pages_bytes_max: int | None
    hugetlb_bytes_min: int | None
    hugetlb_bytes_max: int | None
    pool_idle_bytes_min: int | None
    pool_idle_bytes_max: int | None
    ordinary_bytes_max: int | None


class HistoryGap(ResponseModel):
    """A time without samples between two points."""

    start_at: datetime
    end_at: datetime


class NodeHistory(ResponseModel):
    """A node over time, oldest first. ``source``: the samples themselves, or their roll-ups by hour or day.

    Where the source does not reach back to ``start_at``, older points come from the next coarser roll-up and span an
    hour or a day.
    """

    node_id: UUID
    start_at: datetime
    end_at: datetime
    width_seconds: int
    source: Literal["samples", "hours", "days"]
    points: list[HistoryPoint]
    gaps: list[HistoryGap]
