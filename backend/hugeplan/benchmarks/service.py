"""Runs as they are answered: read from their documents again, by today's parser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement

from hugeplan.api.pagination import Page, decode_time_cursor, encode_cursor, page_within
from hugeplan.api.schemas import fields_of
from hugeplan.benchmarks import repository
from hugeplan.benchmarks.schemas import Run, RunSection
from hugeplan.db.models import RunRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.decoding import changed, decode
from hugeplan.documents.kept import unpack, unpacked_bytes
from hugeplan.documents.tlbbench import Curve, Geometry, Scatter, TlbbenchDocument, curves_of
from hugeplan.errors import FieldProblem, NotFoundError, invalid_input

#: How tlbbench (scatter.c) names a scatter curve: "scatter 4K, one line in each 2M".
_BESIDE = re.compile(r"one line in each (\w+)$")

_ROWS_AT_ONCE: Final = 50
"""64 reasons of a run's sections are at most 256 kB of an agent's text."""

COMPARED_BYTES: Final = 12 * 1024**2
"""What runs side by side may have as JSON, about: twenty quick runs of a hundred kilobytes are a third of it."""
_OBJECT_BYTES: Final = 100
"""What a point takes as JSON beyond what its document says of it: the names of what it leaves out."""


def beside_backing(section: str, name: str) -> str | None:
    """The backing that a scatter curve is measured beside; tlbbench gives it in the curve's name alone."""
    found = _BESIDE.search(name) if section == "scatter" else None
    return found[1] if found else None


def loses_from_lines(scatter: Scatter | None) -> int | None:
    """The fewest hot lines from which on the size was slower than base pages at every count up to the confirmed one.

    tlbbench confirms a crossing at few counts, and the size may have lost before. None without a confirmed crossing.
    """
    crossing = scatter.crossing if scatter else None
    if scatter is None or crossing is None or crossing.hot_lines is None:
        return None
    huge = next((curve for curve in scatter.curves if curve.backing == crossing.backing), None)
    base = next((c for c in scatter.curves if beside_backing("scatter", c.name) == crossing.backing != c.backing), None)
    if huge is None or base is None:
        return crossing.hot_lines
    base_ns = {point.x: point.ns_p50 for point in base.points}
    first = crossing.hot_lines
    for point in sorted(huge.points, key=lambda point: -point.x):
        if point.x > crossing.hot_lines:
            continue
        other = base_ns.get(point.x)
        if point.ns_p50 is None or other is None or point.ns_p50 <= other:
            break
        first = int(point.x)
    return first


def _run(row: RunRow, node_name: str, synthetic: bool) -> Run:
    sections = [RunSection(name=s["name"], status=s["status"], reason=s.get("reason")) for s in row.sections]
    stored = fields_of(Run, row, "node_name", "synthetic", "sections")
    return Run(**stored, node_name=node_name, synthetic=synthetic, sections=sections)


def document_of(row: RunRow) -> TlbbenchDocument:
    """The stored document, read again by today's parser."""
    return decode(TlbbenchDocument, unpack(row.document))


def _without_curves(document: TlbbenchDocument) -> Geometry | None:
    return None if document.geometry is None else changed(document.geometry, curves=[])


def _curve(section: str, curve: Curve) -> dict[str, Any]:
    """A RunCurve, as it is written."""
    shown: dict[str, Any] = msgspec.structs.asdict(cast(Any, curve))
    return shown | {"section": section, "beside_backing": beside_backing(section, curve.name)}


async def list_runs(session: ReadSession, node_id: UUID, *, limit: int, cursor: str | None) -> Page[Run]:
    """The runs of a node, newest first."""
    return await list_fleet_runs(session, where=(), limit=limit, cursor=cursor, node_id=node_id)


async def list_fleet_runs(
    session: ReadSession,
    *,
    where: Sequence[ColumnElement[bool]],
    limit: int,
    cursor: str | None,
    node_id: UUID | None = None,
) -> Page[Run]:
    """The runs of the nodes that meet the conditions, newest first. Looking for them may pass many of other nodes, so
    it is done once for a page, and again only where items of it could not be made. A page with few or none has a
    cursor where older ones were not looked through yet."""
    keys: list[repository.RunKey] = []
    is_end, goes_on_at = False, None

    async def read(after: str | None, rows: int) -> Sequence[repository.NamedRun]:
        nonlocal keys, is_end, goes_on_at
        last = decode_time_cursor(after)
        keys = [key for key in keys if last is None or key[:2] < last]
        while True:
            if len(keys) < rows and not is_end:
                keys, goes_on_at = await repository.list_keys(session, node_id, where, after=last, limit=limit + 1)
                is_end = len(keys) <= limit
            found = await repository.list_runs(session, keys[:rows])
            if len(found) == len(keys[:rows]):
                return found
            keys, is_end = [], False  # some were deleted meanwhile: fewer rows than there are would end the list

    items, next_cursor = await page_within(
        session,
        read,
        limit=limit,
        cursor=cursor,
        key=lambda row: (row[0].ordered_at.isoformat(), str(row[0].id)),
        at_once=_ROWS_AT_ONCE,
        item=lambda row: _run(*row),
    )
    if next_cursor is None and goes_on_at is not None:
        next_cursor = encode_cursor(goes_on_at[0].isoformat(), str(goes_on_at[1]))
    return Page(items=items, next_cursor=next_cursor)


async def require_run(session: ReadSession, run_id: UUID) -> repository.NamedRun:
    """A run with its node's name. NotFoundError when there is none."""
    found = (await repository.get_runs(session, [run_id])).get(run_id)
    if found is None:
        raise NotFoundError(f"There is no run {run_id}.")
    return found


async def get_run(session: ReadSession, run_id: UUID) -> bytes:
    """A RunDetail as JSON: the run with everything it measured. NotFoundError when there is none.

    It is written from the document that was read: made as a model, 75,000 points would hold others up for a second.
    """
    row, node_name, synthetic = await require_run(session, run_id)
    document = document_of(row)
    latency = document.latency
    rest = {
        "environment": document.environment,
        "geometry": _without_curves(document),
        "curves": [_curve(section, curve) for section, curve in curves_of(document)],
        "paired_deltas": latency.paired_deltas if latency else [],
        "pressure": latency.pressure if latency else None,
        "walks_cpu_node": latency.walks.cpu_node if latency and latency.walks else None,
        "rows": document.rows,
        "scatter": changed(document.scatter, curves=[]) if document.scatter else None,
        "scatter_loses_from_lines": loses_from_lines(document.scatter),
    }
    return msgspec.json.encode(_run(row, node_name, synthetic).model_dump() | rest)


async def compare_runs(session: ReadSession, run_ids: Sequence[UUID]) -> bytes:
    """A RunComparison as JSON: runs side by side, in the order asked for.

    InvalidInputError names a run that is repeated, and how large the runs are where they are too large together.
    """
    if len(set(run_ids)) != len(run_ids):
        raise invalid_input([FieldProblem(field="run", value=None, expected="different runs")])
    _refuse_large(await repository.kept_bytes(session, run_ids))
    found = await repository.get_runs(session, run_ids)
    for run_id in run_ids:
        if run_id not in found:
            raise NotFoundError(f"There is no run {run_id}.")
    written, documents = 0, []
    for run_id in run_ids:
        kept = found[run_id][0].document
        _refuse_large(written + unpacked_bytes(kept))
        raw = unpack(kept)
        written += len(raw) + _OBJECT_BYTES * raw.count(b"{")
        _refuse_large(written)
        documents.append(decode(TlbbenchDocument, raw))
    by_key: dict[tuple[str, str, str, str, str | None], list[dict[str, Any] | None]] = {}
    for position, document in enumerate(documents):
        for section, curve in curves_of(document):
            key = (section, curve.name, curve.x_name, curve.backing, curve.layout)
            by_key.setdefault(key, [None] * len(run_ids))[position] = _curve(section, curve)
    return msgspec.json.encode(
        {
            "runs": [_run(*found[run_id]).model_dump() for run_id in run_ids],
            "geometries": [_without_curves(document) for document in documents],
            "pressures": [document.latency.pressure if document.latency else None for document in documents],
            "curves": [
                dict(zip(("section", "name", "x_name", "backing", "layout", "curves"), (*key, curves), strict=True))
                for key, curves in sorted(
                    by_key.items(), key=lambda item: (item[0][0], item[0][1], item[0][3], item[0][4] or "")
                )
            ],
        }
    )


def _refuse_large(count: int) -> None:
    if count > COMPARED_BYTES:
        expected = f"runs of at most {COMPARED_BYTES} bytes together, as they are answered; compare fewer"
        raise invalid_input([FieldProblem(field="run", value=f"at least {count} bytes", expected=expected)])


async def mark_run(session: WriteSession, run_id: UUID, *, bad: bool, reason: str | None) -> tuple[UUID, Run]:
    """Mark a run as bad, so that nothing is concluded from it, or take the mark away. Its node's id, and the run."""
    row, node_name, synthetic = await require_run(session, run_id)
    if not await repository.mark_run(session, row, bad=bad, reason=reason):
        raise _gone(run_id)
    return row.node_id, _run(row, node_name, synthetic).model_copy(update={"bad": bad, "bad_reason": reason})


async def delete_run(session: WriteSession, run_id: UUID) -> UUID:
    """Delete a run. The id of the node that it was measured on."""
    row, _, _ = await require_run(session, run_id)
    if not await repository.delete_run(session, row):
        raise _gone(run_id)
    return row.node_id


def _gone(run_id: UUID) -> NotFoundError:
    """Somebody else deleted it in this moment."""
    return NotFoundError(f"There is no run {run_id}.")
