"""A node over time: one query, from the coarsest table that is fine enough, in at most 500 points."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import text

from hugeplan.db.session import ReadSession
from hugeplan.documents.sealed import DamagedBlockError, cost_of
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
"""Blocks of 360 samples that are read for one history: ten days at two samples per minute. Of more the hours are.
A block counts by its cost; samples that are not sealed yet count as the blocks that they will be.
"""
_GAP_WIDTHS = 3
"""A gap is a time without samples of this many widths, and of five minutes at least."""

_WEEKS: Final = datetime(2001, 1, 1, tzinfo=UTC)
"""2001 began on a Monday, so weeks begin on one."""


_Totals = dict[str, Any]
"""What the samples of one width add up to, by _NAMES."""
_NAMES: Final = (
    *(name for name in HistoryPoint.model_fields if name != "mem_available_bytes_mean"),
    "mem_available_bytes_sum", "mem_available_samples",
)  # fmt: skip
_EXTREMES: Final[dict[str, Callable[..., Any]]] = {"min": min, "max": max}
_SUMMED: Final = Numbers.__struct_fields__[1:7]


def _kind(name: str) -> str:
    """How a field of ``_Totals`` is made of values, or of the same field of finer roll-ups."""
    kind = name.rpartition("_")[2]
    return kind if kind in _EXTREMES else "sum"


_COLUMNS: Final = ", ".join(f"{_kind(name)}({name})" for name in _NAMES[1:])


# Sealed and not in one statement: a sample that is sealed meanwhile is there once.
_SAMPLES: Final = (
    "SELECT taken_at, mem_total_bytes, mem_available_bytes, page_tables_bytes, anon_huge_pages_bytes, hugetlb_bytes,"
    " pool_idle_bytes, NULL, NULL FROM samples WHERE node_id = :node_id AND taken_at >= :start AND taken_at < :end"
    " UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, numbers FROM sealed_samples"
    " WHERE node_id = :node_id AND start_at < :end AND end_at >= :start"
)
_BLOCKS: Final = text(
    "SELECT (SELECT (count(*) + 359) / 360 FROM (SELECT FROM samples"
    " WHERE node_id = :node_id AND taken_at >= :start AND taken_at < :end LIMIT 360 * CAST(:most AS bigint) + 1) s),"
    " ARRAY(SELECT numbers FROM sealed_samples WHERE node_id = :node_id AND start_at < :end AND end_at >= :start"
    " LIMIT CAST(:most AS bigint) + 1)"
)
_STATEMENTS: Final = {"samples": _SAMPLES} | {
    source: "SELECT date_bin(make_interval(secs => :width), start_at, TIMESTAMPTZ '2001-01-01 00:00:00+00') AS at,"  # noqa: S608
    f" {_COLUMNS} FROM sample_{source} WHERE node_id = :node_id AND start_at >= :start AND start_at < :end GROUP BY 1"
    for source in ("hours", "days")
}


def width_for(span: timedelta, points: int) -> int:
    """The smallest width in seconds that covers a span in at most so many points."""
    wanted = span.total_seconds() / max(1, points - 1)
    return next((width for width in _WIDTHS if width >= wanted), _WIDTHS[-1])


def _source(width: int) -> Literal["samples", "hours", "days"]:
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
    if width < HOUR:
        unsealed, blocks = (await session.execute(_BLOCKS, values | {"most": _MOST_BLOCKS})).one()
        costs = itertools.accumulate(map(cost_of, blocks), initial=unsealed)
        width = HOUR if any(cost > _MOST_BLOCKS for cost in costs) else width
    source = _source(width)
    found = await _points(session, source, node_id, start=since, end=until, width=width)
    return NodeHistory(
        node_id=node_id, start_at=since, end_at=until, width_seconds=width, source=source,
        points=[point for point, _ in found], gaps=_gaps(found),
    )  # fmt: skip


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
        return sorted((dict(zip(_NAMES, row, strict=True)) for row in rows), key=itemgetter("start_at"))

    def totals() -> list[_Totals]:
        unsealed = [Numbers(microseconds(row[0]), *row[1:-1]) for row in rows if row[-1] is None]
        blocks = (row[-1] for row in rows if row[-1] is not None)
        return _totals_of(unsealed + read_numbers(blocks, start, end), width)

    try:
        # Up to a fortnight of samples: not in the loop that answers everybody.
        return await asyncio.to_thread(totals)
    except DamagedBlockError as error:
        raise DamagedError(
            f"Samples of node {node_id} between {start.isoformat()} and {end.isoformat()} cannot be read back from the"
            f" database: {error}. Spans of a month or more are read from hourly values."
        ) from error


def _totals_of(samples: Sequence[Numbers], width: int) -> list[_Totals]:
    """One per width that has samples, in order."""
    step, origin = width * 10**6, microseconds(_WEEKS)
    of_width: dict[int, list[Numbers]] = defaultdict(list)
    for one in samples:
        of_width[(one.taken_at_microseconds - origin) // step].append(one)
    totals = []
    for number, found in sorted(of_width.items()):
        values = {name: [x for one in found if (x := getattr(one, name)) is not None] for name in _SUMMED}
        values["ordinary_bytes"] = [
            max(0, one.mem_total_bytes - one.mem_available_bytes - one.hugetlb_bytes)
            for one in found
            if one.mem_available_bytes is not None and one.hugetlb_bytes is not None
        ]
        extremes = {
            name: _EXTREMES[kind](values[name.removesuffix(f"_{kind}")], default=None)
            for name in _NAMES
            if (kind := _kind(name)) in _EXTREMES
        }
        start_at, available = _WEEKS + timedelta(seconds=number * width), values["mem_available_bytes"]
        means = {"mem_available_bytes_sum": sum(available), "mem_available_samples": len(available)}
        totals.append({"start_at": start_at, "samples": len(found)} | means | extremes)
    return totals


def _floor(start: datetime, source: str) -> datetime:
    """The start of the roll-up that holds a time, so that the first one is not left out."""
    moment = start.astimezone(UTC)
    if source == "days":
        return moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return moment.replace(minute=0, second=0, microsecond=0) if source == "hours" else moment


def _point(totals: _Totals) -> HistoryPoint:
    count, total = totals.pop("mem_available_samples"), totals.pop("mem_available_bytes_sum")
    mean = None if not count or total is None else round(Decimal(total) / Decimal(count))
    return HistoryPoint.model_validate(totals | {"mem_available_bytes_mean": mean})


def _gaps(points: Sequence[tuple[HistoryPoint, int]]) -> list[HistoryGap]:
    gaps = []
    for (before, width), (after, _) in itertools.pairwise(points):
        step = timedelta(seconds=width)
        if after.start_at - before.start_at - step >= max(_GAP_WIDTHS * step, timedelta(minutes=5)):
            gaps.append(HistoryGap(start_at=before.start_at + step, end_at=after.start_at))
    return gaps
