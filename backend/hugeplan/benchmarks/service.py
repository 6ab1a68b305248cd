"""Runs: storing a tlbbench document as rows, and answering it again."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from hugeplan.api.pagination import Page, decode_time_cursor, page_of
from hugeplan.api.problems import FieldProblem, NotFoundError, invalid_input
from hugeplan.api.schemas import JsonObject
from hugeplan.benchmarks import repository
from hugeplan.benchmarks.schemas import ComparedCurve, Run, RunComparison, RunCurve, RunDetail, RunSection
from hugeplan.db.models import CurveRow, RunRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.tlbbench import CurvePointDocument, Geometry, TlbbenchDocument

#: How tlbbench (scatter.c) names a scatter curve: "scatter 4K, one line in each 2M".
_BESIDE = re.compile(r"one line in each (\w+)$")
_POINT_FIELDS = ("ns_min", "ns_p10", "ns_p50", "ns_p90", "ns_mad", "batches", "dropped")
_CURVE_FIELDS = (
    "name",
    "x_name",
    "backing",
    "backing_kind",
    "page_bytes",
    "layout",
    "granted_fraction",
    "status",
    "reason",
)


async def store_run(session: WriteSession, node_id: UUID, document: TlbbenchDocument, raw: JsonObject) -> UUID:
    """Store a run with its curves; ``raw`` is the document as the agent sent it. The new run's id."""
    run_id = uuid.uuid4()
    run = RunRow(
        node_id=node_id,
        id=run_id,
        started_at=document.started_at,
        stored_at=datetime.now(UTC),
        command=document.command,
        profile=document.profile,
        tool_version=document.tool.version,
        duration_seconds=document.duration_seconds,
        sections=[section.model_dump(mode="json") for section in document.sections],
        document=raw,
    )
    curves = []
    for ordinal, (section, curve) in enumerate(document.curves()):
        arrays = {name: [getattr(point, name) for point in curve.points] for name in ("x", *_POINT_FIELDS)}
        fields = {name: getattr(curve, name) for name in _CURVE_FIELDS}
        curves.append(CurveRow(node_id=node_id, run_id=run_id, ordinal=ordinal, section=section, **fields, **arrays))
    await repository.add_run(session, run, curves)
    return run_id


def granule_of_2m(geometry: Geometry | None) -> int | None:
    """What one TLB entry covers with 2 MiB pages: the hugetlb backing's granule, else THP's. None is unknown."""
    if geometry is None:
        return None
    candidates = [g for g in geometry.effective_granule if g.page_bytes == 2 * 1024**2 and g.granule_bytes]
    candidates.sort(key=lambda granule: granule.backing_kind != "hugetlb")
    return candidates[0].granule_bytes if candidates else None


def _run(row: RunRow, node_name: str) -> Run:
    return Run(
        id=row.id,
        node_id=row.node_id,
        node_name=node_name,
        started_at=row.started_at,
        profile=row.profile,
        command=row.command,
        tool_version=row.tool_version,
        duration_seconds=row.duration_seconds,
        sections=[RunSection(name=s["name"], status=s["status"], reason=s.get("reason")) for s in row.sections],
    )


def _curve(row: CurveRow) -> RunCurve:
    columns = [getattr(row, name) for name in _POINT_FIELDS]
    points = [
        CurvePointDocument(x=x, **dict(zip(_POINT_FIELDS, values, strict=True)))
        for x, *values in zip(row.x, *columns, strict=True)
    ]
    fields = {name: getattr(row, name) for name in _CURVE_FIELDS}
    return RunCurve(section=row.section, beside_backing=beside_backing(row.section, row.name), points=points, **fields)


def beside_backing(section: str, name: str) -> str | None:
    """The backing that a scatter curve is measured beside; tlbbench gives it in the curve's name alone."""
    found = _BESIDE.search(name) if section == "scatter" else None
    return found[1] if found else None


def parse_document(row: RunRow) -> TlbbenchDocument:
    """The stored document, read again by today's parser."""
    return TlbbenchDocument.model_validate(row.document)


def _geometry_without_curves(document: TlbbenchDocument) -> Geometry | None:
    return None if document.geometry is None else document.geometry.model_copy(update={"curves": []})


async def list_runs(session: ReadSession, node_id: UUID, *, limit: int, cursor: str | None) -> Page[Run]:
    """The runs of a node, newest first."""
    after = decode_time_cursor(cursor)
    rows = await repository.list_runs(session, node_id, after=after, limit=limit + 1)
    items, next_cursor = page_of(
        rows, limit, lambda row: (row[0].started_at.isoformat(), str(row[0].id)), lambda row: _run(*row)
    )
    return Page(items=items, next_cursor=next_cursor)


async def get_run(session: ReadSession, run_id: UUID) -> RunDetail:
    """A run with everything it measured. NotFoundError when there is none."""
    found = (await repository.get_runs(session, [run_id])).get(run_id)
    if found is None:
        raise NotFoundError(f"There is no run {run_id}.")
    row, node_name = found
    document = parse_document(row)
    curves = [_curve(curve) for curve in await repository.get_curves(session, [run_id])]
    return RunDetail(
        **_run(row, node_name).model_dump(),
        environment=document.environment,
        geometry=_geometry_without_curves(document),
        curves=curves,
        paired_deltas=document.latency.paired_deltas if document.latency else [],
        pressure=document.latency.pressure if document.latency else None,
        rows=document.rows,
        scatter=document.scatter.model_copy(update={"curves": []}) if document.scatter else None,
    )


async def compare_runs(session: ReadSession, run_ids: Sequence[UUID]) -> RunComparison:
    """Runs side by side, in the order asked for. InvalidInputError names a run that is missing or repeated."""
    if len(set(run_ids)) != len(run_ids):
        raise invalid_input([FieldProblem(field="run", value=None, expected="different runs")])
    found = await repository.get_runs(session, run_ids)
    for run_id in run_ids:
        if run_id not in found:
            raise NotFoundError(f"There is no run {run_id}.")
    documents = [parse_document(found[run_id][0]) for run_id in run_ids]
    by_key: dict[tuple[str, str, str, str, str | None], list[RunCurve | None]] = {}
    positions = {run_id: index for index, run_id in enumerate(run_ids)}
    for row in await repository.get_curves(session, run_ids):
        key = (row.section, row.name, row.x_name, row.backing, row.layout)
        by_key.setdefault(key, [None] * len(run_ids))[positions[row.run_id]] = _curve(row)
    return RunComparison(
        runs=[_run(*found[run_id]) for run_id in run_ids],
        geometries=[_geometry_without_curves(document) for document in documents],
        pressures=[document.latency.pressure if document.latency else None for document in documents],
        curves=[
            ComparedCurve(section=section, name=name, x_name=x_name, backing=backing, layout=layout, curves=curves)
            for (section, name, x_name, backing, layout), curves in sorted(
                by_key.items(), key=lambda item: (item[0][0], item[0][1], item[0][3], item[0][4] or "")
            )
        ],
    )


async def newest_geometry(session: ReadSession, node_id: UUID) -> tuple[RunRow, TlbbenchDocument] | None:
    """The run that says most about a node's geometry, and its document."""
    run = await repository.newest_run_with(session, node_id, "geometry")
    return None if run is None else (run, parse_document(run))


async def newest_latency(session: ReadSession, node_id: UUID) -> TlbbenchDocument | None:
    """The document that says most about a node's latency over footprint."""
    run = await repository.newest_run_with(session, node_id, "latency")
    return None if run is None else parse_document(run)
