"""A node over time: one query, from the coarsest table that is fine enough, in at most 500 points."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import text

from hugeplan.db.session import ReadSession
from hugeplan.documents.sealed import DamagedBlockError
from hugeplan.errors import DamagedError, FieldProblem, invalid_input
from hugeplan.fleet.schemas import HistoryGap, HistoryPoint, NodeHistory
from hugeplan.fleet.sealed_samples import Numbers, microseconds, read_numbers
from hugeplan.fleet.service import require_node

MINUTE, HOUR, DAY = 60, 3600, 86_400
_WIDTHS: Final = (
    MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
)  # fmt: skip
_DEFAULT_SPAN = timedelta(days=1)
_LONGEST = timedelta(days=3660)
_MOST_BLOCKS: Final = 100
"""Blocks of 360 samples that are read for one history: ten days at two samples per minute. Of more the hours are."""
_GAP_WIDTHS = 3
"""A gap is a time without samples of this many widths, and of five minutes at least."""

_COLUMNS: Final = (
    "sum(samples), max(mem_total_bytes_max), min(mem_available_bytes_min), sum(mem_available_bytes_sum),"
    " sum(mem_available_samples), max(page_tables_bytes_max), max(anon_huge_pages_bytes_max), min(hugetlb_bytes_min),"
    " max(hugetlb_bytes_max), min(pool_idle_bytes_min), max(pool_idle_bytes_max), max(ordinary_bytes_max)"
)
_SAMPLE_COLUMNS: Final = (
    "count(*), max(mem_total_bytes), min(mem_available_bytes), sum(mem_available_bytes), count(mem_available_bytes),"
    " max(page_tables_bytes), max(anon_huge_pages_bytes), min(hugetlb_bytes), max(hugetlb_bytes),"
    " min(pool_idle_bytes), max(pool_idle_bytes),"
    " max(greatest(0, mem_total_bytes - mem_available_bytes - hugetlb_bytes))"
    " FILTER (WHERE mem_available_bytes IS NOT NULL AND hugetlb_bytes IS NOT NULL)"
)
_WEEKS: Final = datetime(2001, 1, 1, tzinfo=UTC)
"""2001 began on a Monday, so weeks begin on one."""


class _Totals(NamedTuple):
    """What the samples of one width add up to."""

    start_at: datetime
    samples: int
    mem_total_bytes_max: int
    mem_available_bytes_min: int | None
    mem_available_bytes_sum: int | float | None
    mem_available_samples: int
    page_tables_bytes_max: int | None
    anon_huge_pages_bytes_max: int | None
    hugetlb_bytes_min: int | None
    hugetlb_bytes_max: int | None
    pool_idle_bytes_min: int | None
    pool_idle_bytes_max: int | None
    ordinary_bytes_max: int | None


def _statement(table: str, column: str, columns: str) -> str:
    return (
        f"SELECT date_bin(make_interval(secs => :width), {column}, TIMESTAMPTZ '2001-01-01 00:00:00+00') AS at,"  # noqa: S608
        f" {columns} FROM {table} WHERE node_id = :node_id AND {column} >= :start AND {column} < :end GROUP BY 1"
    )


# Sealed and not in one statement: a sample that is sealed meanwhile is there once.
_SAMPLES: Final = (
    f"SELECT s.*, NULL FROM ({_statement('samples', 'taken_at', _SAMPLE_COLUMNS)}) s UNION ALL"  # noqa: S608
    f" SELECT start_at, {', '.join(['NULL'] * (len(_Totals._fields) - 1))}, numbers FROM sealed_samples"
    " WHERE node_id = :node_id AND start_at < :end AND end_at >= :start"
)
_BLOCKS: Final = text(
    "SELECT count(*) FROM sealed_samples WHERE node_id = :node_id AND start_at < :end AND end_at >= :start"
)
_STATEMENTS: Final = {
    "samples": _SAMPLES,
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
    values = {"node_id": node_id, "start": since, "end": until}
    if width < HOUR and (await session.scalar(_BLOCKS, values) or 0) > _MOST_BLOCKS:
        width = HOUR
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
) -> list[_Totals]:
    values = {"width": width, "node_id": node_id, "start": _floor(start, source), "end": end}
    rows = (await session.execute(text(_STATEMENTS[source]), values)).all()
    if source != "samples":
        return sorted(_Totals(*row) for row in rows)
    blocks = [row[-1] for row in rows if row[-1] is not None]
    try:
        # Up to a fortnight of samples: not in the loop that answers everybody.
        sealed = await asyncio.to_thread(lambda: _totals_of(read_numbers(blocks, start, end), width)) if blocks else []
    except DamagedBlockError as error:
        raise DamagedError(
            f"Samples of node {node_id} between {start.isoformat()} and {end.isoformat()} cannot be read back from the"
            f" database: {error}. Spans of a month or more are read from hourly values."
        ) from error
    return _merged([*(_Totals(*row[:-1]) for row in rows if row[-1] is None), *sealed])


def _totals_of(samples: Sequence[Numbers], width: int) -> list[_Totals]:
    """One per width that has samples; the same as _SAMPLE_COLUMNS."""
    step, origin = width * 10**6, microseconds(_WEEKS)
    of_width: dict[int, list[Numbers]] = defaultdict(list)
    for one in samples:
        of_width[(one.taken_at_microseconds - origin) // step].append(one)
    totals = []
    for number, found in of_width.items():
        available = _known(one.mem_available_bytes for one in found)
        hugetlb, idle = _known(one.hugetlb_bytes for one in found), _known(one.pool_idle_bytes for one in found)
        ordinary = [
            max(0, one.mem_total_bytes - one.mem_available_bytes - one.hugetlb_bytes)
            for one in found
            if one.mem_available_bytes is not None and one.hugetlb_bytes is not None
        ]
        totals.append(
            _Totals(
                start_at=_WEEKS + timedelta(seconds=number * width),
                samples=len(found),
                mem_total_bytes_max=max(one.mem_total_bytes for one in found),
                mem_available_bytes_min=min(available, default=None),
                mem_available_bytes_sum=sum(available),
                mem_available_samples=len(available),
                page_tables_bytes_max=max(_known(one.page_tables_bytes for one in found), default=None),
                anon_huge_pages_bytes_max=max(_known(one.anon_huge_pages_bytes for one in found), default=None),
                hugetlb_bytes_min=min(hugetlb, default=None),
                hugetlb_bytes_max=max(hugetlb, default=None),
                pool_idle_bytes_min=min(idle, default=None),
                pool_idle_bytes_max=max(idle, default=None),
                ordinary_bytes_max=max(ordinary, default=None),
            )
        )
    return totals


def _known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def _merged(totals: Iterable[_Totals]) -> list[_Totals]:
    """One per width, in order: a width may have samples in both forms, and in more than one block."""
    found: dict[datetime, _Totals] = {}
    for one in totals:
        other = found.get(one.start_at)
        found[one.start_at] = (
            one if other is None else _Totals(one.start_at, *map(_together, _NAMES, one[1:], other[1:]))
        )
    return [found[at] for at in sorted(found)]


_NAMES: Final = _Totals._fields[1:]


def _together(name: str, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other) if name.endswith("_min") else max(one, other) if name.endswith("_max") else one + other


def _floor(start: datetime, source: str) -> datetime:
    """The start of the roll-up that holds a time, so that the first one is not left out."""
    moment = start.astimezone(UTC)
    if source == "days":
        return moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return moment.replace(minute=0, second=0, microsecond=0) if source == "hours" else moment


def _point(totals: _Totals) -> HistoryPoint:
    count, total = totals.mem_available_samples, totals.mem_available_bytes_sum
    mean = None if not count or total is None else round(Decimal(total) / Decimal(count))
    rest = totals._asdict()
    del rest["mem_available_bytes_sum"], rest["mem_available_samples"]
    return HistoryPoint.model_validate(rest | {"mem_available_bytes_mean": mean})


def _gaps(points: Sequence[tuple[HistoryPoint, int]]) -> list[HistoryGap]:
    gaps = []
    for (before, width), (after, _) in itertools.pairwise(points):
        step = timedelta(seconds=width)
        if after.start_at - before.start_at - step >= max(_GAP_WIDTHS * step, timedelta(minutes=5)):
            gaps.append(HistoryGap(start_at=before.start_at + step, end_at=after.start_at))
    return gaps
