"""Reports in, nodes and samples out."""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from hugeplan.access import service as access
from hugeplan.access.service import Actor
from hugeplan.api import problems
from hugeplan.api.body import JsonBody
from hugeplan.api.pagination import Page, decode_cursor, decode_time_cursor, page_of
from hugeplan.api.problems import ConflictError, FieldProblem, NotFoundError, invalid_input
from hugeplan.benchmarks import service as benchmarks
from hugeplan.db.models import NodeRow, ReportDocumentRow, ReportRow
from hugeplan.db.models import SampleRow as SampleTableRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.report import CollectorResult, Inventory, ProcessMemory, Report, Sample
from hugeplan.fleet import repository
from hugeplan.fleet.facts import IncompleteReportError, node_facts, node_sample
from hugeplan.fleet.schemas import (
    GeometrySummary,
    LatestSample,
    NodeDetail,
    NodeProcesses,
    NodeSummary,
    PoolSummary,
    ReportReceipt,
    SampleRow,
)
from hugeplan.planner.model import NodeFacts, NodeSample

MAX_CLOCK_AHEAD = timedelta(days=1)


def parse_report(document: Any, now: datetime) -> Report:
    """The report in a checked JSON document. InvalidInputError names what is wrong."""
    try:
        report = Report.model_validate(document)
    except ValidationError as error:
        raise problems.from_validation(error) from error
    if report.sample.taken_at > now + MAX_CLOCK_AHEAD:
        raise invalid_input(
            [
                FieldProblem(
                    field="sample.taken_at",
                    value=report.sample.taken_at.isoformat(),
                    expected="a time that is not more than a day ahead of the server's clock",
                )
            ]
        )
    return report


def content_hash(document: Any) -> bytes:
    """SHA-256 of a document's content: equal for documents that differ only in spelling or order of keys."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).digest()


async def store_report(session: WriteSession, actor: Actor, body: JsonBody) -> ReportReceipt:
    """Store a report once. The same report again changes nothing; another one with its id is a ConflictError."""
    now = datetime.now(UTC)
    report = parse_report(body.document, now)
    await access.authorise_report(session, actor, report.machine_id)
    node = await repository.lock_node(
        session, {"id": uuid.uuid4(), "first_report_at": now, **_node_values(report, now)}
    )
    content_sha256 = content_hash(body.document)
    seen = await repository.get_report(session, node.id, report.report_id)
    if seen is not None:
        if seen.content_sha256 != content_sha256:
            raise ConflictError(
                f"Another report with the id {report.report_id} is stored.",
                [FieldProblem(field="report_id", value=str(report.report_id), expected="an id of its own")],
            )
        return ReportReceipt(report_id=report.report_id, node_id=node.id, created=False, run_id=seen.run_id)
    run_id = None
    if report.run is not None:
        run_id = await benchmarks.store_run(session, node.id, report.run, body.document["run"])
    await repository.add_report(
        session,
        ReportRow(
            node_id=node.id,
            report_id=report.report_id,
            received_at=now,
            content_sha256=content_sha256,
            run_id=run_id,
        ),
        ReportDocumentRow(node_id=node.id, received_at=now, report_id=report.report_id, document=body.raw),
        _sample_row(node.id, report),
    )
    await _refresh_node(session, node, report, run_id, now)
    return ReportReceipt(report_id=report.report_id, node_id=node.id, created=True, run_id=run_id)


def _node_values(report: Report, now: datetime) -> dict[str, Any]:
    """What a report says of its node, as columns."""
    inventory, sample = report.inventory, report.sample
    return {
        "machine_id": report.machine_id,
        "name": report.node_name,
        "synthetic": report.synthetic,
        "architecture": inventory.architecture,
        "cpu_brand": inventory.cpu.brand if inventory.cpu else None,
        "virtualised": inventory.virtualised,
        "mem_total_bytes": sample.memory.mem_total_bytes,
        "numa_node_count": max(1, len(inventory.numa_nodes)),
        "agent_version": report.agent_version,
        "last_report_at": now,
        "sampled_at": sample.taken_at,
        "inventory": inventory.model_dump(mode="json"),
        "sample": sample.model_dump(mode="json", exclude={"processes"}),
        "processes": [process.model_dump(mode="json") for process in sample.processes],
        "collectors": [collector.model_dump(mode="json") for collector in report.collectors],
    }


def _sample_row(node_id: UUID, report: Report) -> SampleTableRow:
    memory = report.sample.memory
    return SampleTableRow(
        node_id=node_id,
        taken_at=report.sample.taken_at,
        report_id=report.report_id,
        mem_total_bytes=memory.mem_total_bytes,
        mem_available_bytes=memory.mem_available_bytes,
        page_tables_bytes=memory.page_tables_bytes,
        anon_huge_pages_bytes=memory.anon_huge_pages_bytes,
        hugetlb_bytes=memory.hugetlb_bytes,
        memory=memory.model_dump(mode="json"),
        pools=[pool.model_dump(mode="json") for pool in report.sample.pools],
    )


async def _refresh_node(
    session: WriteSession, node: NodeRow, report: Report, run_id: UUID | None, now: datetime
) -> None:
    """Bring the node up to date. A report that waited in a spool does not overwrite a newer sample."""
    values: dict[str, Any] = {"last_report_at": now}
    if report.sample.taken_at >= node.sampled_at:
        values |= _node_values(report, now)
    if run_id is not None and report.run is not None:
        newest = await benchmarks.list_runs(session, node.id, limit=1, cursor=None)
        values["latest_run_id"] = newest.items[0].id
        measured = await benchmarks.newest_geometry(session, node.id)
        if measured is not None:
            values["effective_granule_bytes"] = benchmarks.granule_of_2m(measured[1].geometry)
    await repository.update_node(session, node.id, values)


def _pool_summaries(sample: Sample) -> list[PoolSummary]:
    """Pools over the whole node, smallest page first: as the kernel totals them, else summed over NUMA nodes."""
    if sample.global_pools:
        summaries = [
            PoolSummary(page_bytes=p.page_bytes, nr_hugepages=p.nr_hugepages, free_hugepages=p.free_hugepages)
            for p in sample.global_pools
        ]
        return sorted(summaries, key=lambda pool: pool.page_bytes)
    totals: dict[int, PoolSummary] = {}
    for pool in sample.pools:
        total = totals.setdefault(
            pool.page_bytes, PoolSummary(page_bytes=pool.page_bytes, nr_hugepages=0, free_hugepages=0)
        )
        total.nr_hugepages += pool.nr_hugepages
        unknown = total.free_hugepages is None or pool.free_hugepages is None
        total.free_hugepages = None if unknown else (total.free_hugepages or 0) + (pool.free_hugepages or 0)
    return sorted(totals.values(), key=lambda pool: pool.page_bytes)


def _summary(row: NodeRow) -> NodeSummary:
    return NodeSummary(
        id=row.id,
        name=row.name,
        machine_id=row.machine_id,
        architecture=row.architecture,
        cpu_brand=row.cpu_brand,
        virtualised=row.virtualised,
        mem_total_bytes=row.mem_total_bytes,
        numa_node_count=row.numa_node_count,
        last_report_at=row.last_report_at,
        pools=_pool_summaries(Sample.model_validate(row.sample)),
        latest_run_id=row.latest_run_id,
        effective_granule_bytes=row.effective_granule_bytes,
        synthetic=row.synthetic,
    )


async def list_nodes(session: ReadSession, *, search: str | None, limit: int, cursor: str | None) -> Page[NodeSummary]:
    """Nodes by name."""
    if search is not None and "\0" in search:
        raise invalid_input([FieldProblem(field="q", value=search, expected="text without NUL characters")])
    after = decode_cursor(cursor, str, UUID)
    rows = await repository.list_nodes(session, search=search, after=after, limit=limit + 1)
    items, next_cursor = page_of(rows, limit, lambda row: (row.name, str(row.id)), _summary)
    return Page(items=items, next_cursor=next_cursor)


async def require_node(session: ReadSession, node_id: UUID) -> NodeRow:
    """The node, or NotFoundError."""
    node = await repository.get_node(session, node_id)
    if node is None:
        raise NotFoundError(f"There is no node {node_id}.")
    return node


async def _facts(session: ReadSession, row: NodeRow) -> NodeFacts:
    measured = await benchmarks.newest_geometry(session, row.id)
    return node_facts(
        row.name,
        Inventory.model_validate(row.inventory),
        Sample.model_validate(row.sample),
        geometry=measured[1] if measured else None,
        latency=await benchmarks.newest_latency(session, row.id),
    )


async def get_facts(session: ReadSession, node_id: UUID) -> tuple[NodeFacts, NodeSample]:
    """The node as the planner takes it, from its newest report and newest run, and its newest sample."""
    row = await require_node(session, node_id)
    try:
        facts = await _facts(session, row)
    except IncompleteReportError as error:
        raise invalid_input([FieldProblem(field="node_id", value=str(node_id), expected=str(error))]) from error
    processes = [ProcessMemory.model_validate(process) for process in row.processes]
    sample = node_sample(Inventory.model_validate(row.inventory), Sample.model_validate(row.sample), processes)
    return facts, sample


async def get_node(session: ReadSession, node_id: UUID) -> NodeDetail:
    """A node with its newest report, geometry and facts."""
    row = await require_node(session, node_id)
    sample = Sample.model_validate(row.sample)
    facts, unknown = None, None
    try:
        facts = await _facts(session, row)
    except IncompleteReportError as error:
        unknown = str(error)
    return NodeDetail(
        **_summary(row).model_dump(),
        first_report_at=row.first_report_at,
        agent_version=row.agent_version,
        collectors=[CollectorResult.model_validate(collector) for collector in row.collectors],
        inventory=Inventory.model_validate(row.inventory),
        sample=LatestSample(
            taken_at=sample.taken_at,
            memory=sample.memory,
            pools=sample.pools,
            global_pools=sample.global_pools,
            numa=sample.numa,
        ),
        geometry=await _geometry(session, node_id),
        facts=facts,
        facts_unknown_because=unknown,
    )


async def _geometry(session: ReadSession, node_id: UUID) -> GeometrySummary | None:
    measured = await benchmarks.newest_geometry(session, node_id)
    if measured is None:
        return None
    run, document = measured
    geometry = document.geometry
    if geometry is None:
        return None
    return GeometrySummary(
        run_id=run.id,
        measured_at=run.started_at,
        status=geometry.status,
        reason=geometry.reason,
        levels=geometry.levels,
        effective_granule=geometry.effective_granule,
        penalty=geometry.penalty,
        clock=geometry.clock,
        disagreements=geometry.disagreements,
    )


async def list_samples(
    session: ReadSession,
    node_id: UUID,
    *,
    start: datetime | None,
    end: datetime | None,
    limit: int,
    cursor: str | None,
) -> Page[SampleRow]:
    """The memory history of a node, newest first."""
    await require_node(session, node_id)
    after = decode_time_cursor(cursor)
    rows = await repository.list_samples(session, node_id, start=start, end=end, after=after, limit=limit + 1)
    items, next_cursor = page_of(
        rows,
        limit,
        lambda row: (row.taken_at.isoformat(), str(row.report_id)),
        lambda row: SampleRow.model_validate({"taken_at": row.taken_at, "memory": row.memory, "pools": row.pools}),
    )
    return Page(items=items, next_cursor=next_cursor)


async def get_processes(session: ReadSession, node_id: UUID) -> NodeProcesses:
    """The processes of the newest sample, largest resident set first, then by pid."""
    row = await require_node(session, node_id)
    processes = [ProcessMemory.model_validate(process) for process in row.processes]
    processes.sort(key=lambda process: (-(process.rss_bytes or 0), process.pid))
    return NodeProcesses(node_id=node_id, taken_at=row.sampled_at, processes=processes)
