"""A node over time: one query, from the coarsest table that is fine enough, in at most 500 points."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text

from hugeplan.db.session import ReadSession
from hugeplan.errors import FieldProblem, invalid_input
from hugeplan.fleet.history_schemas import HistoryGap, HistoryPoint, NodeHistory
from hugeplan.fleet.service import require_node

MINUTE, HOUR, DAY = 60, 3600, 86_400
_WIDTHS: Final = (
    MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
)  # fmt: skip
_DEFAULT_SPAN = timedelta(days=1)
_LONGEST = timedelta(days=3660)
_GAP_WIDTHS = 3
"""A gap is a time without samples of this many widths, and of five minutes at least."""

_COLUMNS: Final = (
    "sum(samples), max(mem_total_bytes_max), min(mem_available_bytes_min),"
    " CAST(sum(mem_available_bytes_sum) / nullif(sum(mem_available_samples), 0) AS bigint),"
    " max(page_tables_bytes_max), max(anon_huge_pages_bytes_max), min(hugetlb_bytes_min), max(hugetlb_bytes_max),"
    " min(pool_idle_bytes_min), max(pool_idle_bytes_max), max(ordinary_bytes_max)"
)
_SAMPLE_COLUMNS: Final = (
    "count(*), max(mem_total_bytes), min(mem_available_bytes), CAST(avg(mem_available_bytes) AS bigint),"
    " max(page_tables_bytes), max(anon_huge_pages_bytes), min(hugetlb_bytes), max(hugetlb_bytes),"
    " min(pool_idle_bytes), max(pool_idle_bytes),"
    " max(greatest(0, mem_total_bytes - mem_available_bytes - hugetlb_bytes))"
    " FILTER (WHERE mem_available_bytes IS NOT NULL AND hugetlb_bytes IS NOT NULL)"
)


def _statement(table: str, column: str, columns: str) -> str:
    # 2001 began on a Monday, so weeks begin on one.
    return (
        f"SELECT date_bin(make_interval(secs => :width), {column}, TIMESTAMPTZ '2001-01-01 00:00:00+00'), {columns}"  # noqa: S608
        f" FROM {table} WHERE node_id = :node_id AND {column} >= :start AND {column} < :end GROUP BY 1 ORDER BY 1"
    )


_STATEMENTS: Final = {
    "samples": _statement("samples", "taken_at", _SAMPLE_COLUMNS),
    "hours": _statement("sample_hours", "start_at", _COLUMNS),
    "days": _statement("sample_days", "start_at", _COLUMNS),
}


def width_for(span: timedelta, points: int) -> int:
    """The smallest width in seconds that covers a span in at most so many points."""
    wanted = span.total_seconds() / max(1, points - 1)
    return next((width for width in _WIDTHS if width >= wanted), _WIDTHS[-1])


def _source(width: int) -> str:
    return "samples" if width < HOUR else "hours" if width < DAY else "days"


async def get_history(
    session: ReadSession, node_id: UUID, *, start: datetime | None, end: datetime | None, points: int
) -> NodeHistory:
    """The memory of a node between two times; by default the last day."""
    await require_node(session, node_id)
    until = end or datetime.now(UTC)
    since = start or until - _DEFAULT_SPAN
    if not timedelta(0) < until - since <= _LONGEST:
        raise invalid_input(
            [FieldProblem(field="from", value=since.isoformat(), expected="a time before to, within ten years of it")]
        )
    width = width_for(until - since, points)
    source = _source(width)
    found = await _points(session, source, node_id, start=since, end=until, width=width)
    return NodeHistory.model_validate(
        {
            "node_id": node_id,
            "start_at": since,
            "end_at": until,
            "width_seconds": width,
            "source": source,
            "points": [point for point, _ in found],
            "gaps": _gaps(found),
        }
    )


_COARSER: Final = {"samples": ("hours", HOUR), "hours": ("days", DAY)}


async def _points(
    session: ReadSession, source: str, node_id: UUID, *, start: datetime, end: datetime, width: int
) -> list[tuple[HistoryPoint, int]]:
    """Points with the seconds that each spans. What is older than the source reaches comes from coarser roll-ups, so
    that a longer span never shows less of the past than a shorter one.
    """
    rows = await _read(session, source, node_id, start=start, end=end, width=width)
    found = [(_point(row), width) for row in rows]
    coarser = _COARSER.get(source)
    first = found[0][0].start_at if found else end
    if coarser is None or first - start <= timedelta(seconds=max(width, coarser[1])):
        return found
    table, least = coarser
    # Up to the roll-up that holds the first point: that one is partly of the same samples.
    before = await _points(session, table, node_id, start=start, end=_floor(first, table), width=max(width, least))
    return before + found


async def _read(
    session: ReadSession, source: str, node_id: UUID, *, start: datetime, end: datetime, width: int
) -> Sequence[Any]:
    values = {"width": width, "node_id": node_id, "start": _floor(start, source), "end": end}
    return (await session.execute(text(_STATEMENTS[source]), values)).all()


def _floor(start: datetime, source: str) -> datetime:
    """The start of the roll-up that holds a time, so that the first one is not left out."""
    moment = start.astimezone(UTC)
    if source == "days":
        return moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return moment.replace(minute=0, second=0, microsecond=0) if source == "hours" else moment


def _point(row: Any) -> HistoryPoint:
    names = list(HistoryPoint.model_fields)
    return HistoryPoint.model_validate(dict(zip(names, row, strict=True)))


def _gaps(points: Sequence[tuple[HistoryPoint, int]]) -> list[HistoryGap]:
    gaps = []
    for (before, width), (after, _) in itertools.pairwise(points):
        step = timedelta(seconds=width)
        if after.start_at - before.start_at - step >= max(_GAP_WIDTHS * step, timedelta(minutes=5)):
            gaps.append(HistoryGap(start_at=before.start_at + step, end_at=after.start_at))
    return gaps
