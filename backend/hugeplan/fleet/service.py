"""Nodes and samples out. Reports come in through hugeplan.fleet.ingest."""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from sqlalchemy import Row

from hugeplan.api.pagination import Page, decode_cursor, decode_time_cursor, encode_cursor, page_within
from hugeplan.api.schemas import fields_of
from hugeplan.db.models import NodeRow, NodeStateRow, PlanInForceRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.decoding import convert, decode
from hugeplan.documents.observed import HugetlbCgroup, Unit, WalkCounters
from hugeplan.documents.plan_digest import short
from hugeplan.documents.report import Inventory, ProcessMemory, Sample
from hugeplan.documents.sealed import DamagedBlockError
from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.errors import DamagedError, FieldProblem, NotFoundError, invalid_input
from hugeplan.fleet import read_back, repository
from hugeplan.fleet.facts import IncompleteReportError, node_facts
from hugeplan.fleet.hardware_state import MeasuredState, chosen_parts, packed, rebuilt, unpacked
from hugeplan.fleet.newest import newest_of
from hugeplan.fleet.sample_list import SampleList
from hugeplan.fleet.schemas import (
    BootPool,
    DatabaseWalks,
    HugePageLimit,
    LatestSample,
    NodeDetail,
    NodeProcesses,
    NodeSummary,
    PlanInForce,
    ProcessUnit,
    SampleRow,
)
from hugeplan.fleet.sealed_samples import Sample as KeptSample
from hugeplan.fleet.selector import STALE_AFTER, NodeSelector
from hugeplan.fleet.stored import StoredNode, as_observed, read_histories, read_node
from hugeplan.planner.memory.kernel_parameters import boot_pools
from hugeplan.planner.model import NodeFacts, NodeSample
from hugeplan.planner.pages import usual_default_size
from hugeplan.planner.remembered import Latest
from hugeplan.proof import Observation

HISTORY_FRESH_SECONDS = 2.0
"""How long a node's history need not be read again: it grows with reports, each with a state of its own, and hour by
hour with the roll-ups."""

_SAMPLES_AT_ONCE: Final = 20
"""One with 4,096 pools has about 400 kB, as JSON."""

NodeSort = Literal[
    "name", "last_report_at", "mem_total_bytes", "pool_bytes", "pool_idle_bytes", "mem_available_bytes", "findings"
]
SORT_READERS: dict[str, Callable[[str], Any]] = {"name": str, "last_report_at": datetime.fromisoformat}


_LINE: Final = tuple(name for name in NodeSummary.model_fields if name != "stale")


def summary_values(row: NodeRow | Row[Any], now: datetime) -> dict[str, Any]:
    """A node's line of a list, as the fields of NodeSummary."""
    return {name: getattr(row, name) for name in _LINE} | {"stale": row.last_report_at < now - STALE_AFTER}


async def list_nodes(
    session: ReadSession, selector: NodeSelector, *, sort: NodeSort = "name", descending: bool = False, limit: int,
    cursor: str | None,
) -> Page[NodeSummary]:  # fmt: skip
    """Nodes that a selector selects."""
    rows, next_cursor = await _listed(session, selector, sort=sort, descending=descending, limit=limit, cursor=cursor)
    now = datetime.now(UTC)
    return Page(items=[NodeSummary.model_validate(summary_values(row, now)) for row in rows], next_cursor=next_cursor)


async def list_nodes_json(
    session: ReadSession, selector: NodeSelector, *, sort: NodeSort, descending: bool, limit: int, cursor: str | None
) -> bytes:
    """What ``list_nodes`` gives, as JSON. Columns become JSON as they are: a model per line was most of the time."""
    rows, next_cursor = await _listed(session, selector, sort=sort, descending=descending, limit=limit, cursor=cursor)
    stale_before = datetime.now(UTC) - STALE_AFTER
    items: list[dict[str, Any]] = []
    for row in rows:
        line: dict[str, Any] = dict(zip(_LINE, row, strict=False))  # the last columns are not of the line
        line["stale"] = line["last_report_at"] < stale_before
        items.append(line)
    return msgspec.json.encode({"items": items, "next_cursor": next_cursor})


async def _listed(
    session: ReadSession, selector: NodeSelector, *, sort: NodeSort, descending: bool, limit: int, cursor: str | None
) -> tuple[Sequence[Row[Any]], str | None]:
    """The rows of a page, and the cursor of the next one."""
    after = decode_cursor(cursor, SORT_READERS.get(sort, int), UUID)
    rows = await repository.list_nodes(
        session, selector, sort=sort, descending=descending, after=after, limit=limit + 1
    )
    page = rows[:limit]
    if not rows or len(page) == rows[0].found:
        return page, None
    last = page[-1]
    value = last.sorted_by
    return page, encode_cursor(value.isoformat() if isinstance(value, datetime) else str(value), str(last.id))


async def count_nodes(session: ReadSession, selector: NodeSelector) -> int:
    """How many nodes a selector selects."""
    return await repository.count_nodes(session, selector)


def unknown_node(node_id: UUID) -> NotFoundError:
    """The error of a node that is not there."""
    return NotFoundError(f"There is no node {node_id}.")


async def require_node(session: ReadSession, node_id: UUID) -> NodeRow:
    """The node, or NotFoundError."""
    node = await repository.get_node(session, node_id)
    if node is None:
        raise unknown_node(node_id)
    return node


async def _with_state(session: ReadSession, node_id: UUID) -> tuple[NodeRow, NodeStateRow]:
    found = await repository.get_node_with_state(session, node_id)
    if found is None:
        raise unknown_node(node_id)
    return found


def measured_of(state: NodeStateRow) -> MeasuredState:
    """What runs measured on the node."""
    return MeasuredState() if state.measured is None else unpacked(msgspec.convert(state.measured, MeasuredState))


def facts_of(name: str, state: NodeStateRow) -> NodeFacts:
    """The node as the planner takes it. IncompleteReportError when the report lacks what the planner needs."""
    return node_facts(
        name,
        convert(Inventory, state.inventory),
        convert(Sample, state.sample),
        measured=measured_of(state).hardware,
    )


async def get_facts(session: ReadSession, node_id: UUID) -> tuple[NodeFacts, NodeSample]:
    """The node as the planner takes it, from its newest report and its runs, and its newest sample.

    Equal facts are the same objects from one call to the next, so that the planner finds what it remembers of them.
    """
    version = await repository.get_state_version(session, node_id)
    if version is None:
        raise unknown_node(node_id)
    known = _known_facts.get(node_id)
    if known is None or known.version != version:
        known = _KnownFacts(version, *await _parsed_facts(session, node_id))
    now = monotonic()
    if now - known.history_read_at > HISTORY_FRESH_SECONDS:
        history = (await read_histories(session, {node_id: known.until})).get(node_id)
        if history != known.sample.ordinary_history:
            known = replace(known, sample=replace(known.sample, ordinary_history=history))
        known = replace(known, history_read_at=now)
    _known_facts.keep(node_id, known, known.size_bytes)
    return known.facts, known.sample


@dataclass(frozen=True, slots=True)
class _KnownFacts:
    """A node's facts as parsed from the state of ``version``, which has ``size_bytes`` of JSON. ``until``: when its
    sample was taken.

    ``history_read_at``: when the sample's history was read, by the monotonic clock.
    """

    version: repository.StateVersion
    facts: NodeFacts
    sample: NodeSample
    until: datetime
    size_bytes: int
    history_read_at: float = -math.inf


#: Nodes that were planned last, within so much JSON: who moves a slider asks for one node many times.
_known_facts: Final = Latest[UUID, _KnownFacts](8 * 1024**2)


async def _parsed_facts(session: ReadSession, node_id: UUID) -> tuple[NodeFacts, NodeSample, datetime, int]:
    stored = await get_stored(session, node_id)

    def parse() -> tuple[NodeFacts, NodeSample, datetime, int]:
        facts, newest = facts_as_stored(stored), newest_of(stored)
        size = len(bytes(newest.inventory)) + len(bytes(newest.sample)) + len(stored.measured or "")
        return *facts, stored.taken_at, size

    return await asyncio.to_thread(parse)  # a large report takes longer than others are to wait


def facts_as_stored(stored: StoredNode) -> tuple[NodeFacts, NodeSample]:
    """A node that was read as the planner takes it. InvalidInputError where its report lacks what the planner needs."""
    try:
        return as_observed(stored)
    except IncompleteReportError as error:
        raise invalid_input([FieldProblem(field="node_id", value=str(stored.id), expected=str(error))]) from error


async def get_stored(session: ReadSession, node_id: UUID) -> StoredNode:
    """What is stored of a node, unread."""
    stored = await read_node(session, node_id)
    if stored is None:
        raise unknown_node(node_id)
    return stored


def observation_of(stored: StoredNode) -> Observation:
    """A node's newest report for the checks of a plan. It takes as long as the report is large: work for a thread."""
    inventory, sample = newest_of(stored).parsed()
    said = msgspec.to_builtins((inventory, sample))
    return Observation(*said)


def boot_pools_of(facts: NodeFacts) -> list[BootPool] | None:
    """What the kernel command line reserves at boot, by page size; None when the line is not known."""
    if facts.kernel_command_line is None:
        return None
    sizes = facts.huge_page_sizes_bytes
    found = boot_pools(
        facts.kernel_command_line,
        sizes,
        usual_default_size(facts.base_page_bytes, sizes),
        tuple(numa.id for numa in facts.numa),
        kernel_release=facts.kernel_release,
        arch=facts.arch,
    )
    return [BootPool(page_bytes=size, pages=sum(by_node.values())) for size, by_node in sorted(found.pools.items())]


async def get_node(session: ReadSession, node_id: UUID) -> NodeDetail:
    """A node with its newest report, geometry and facts."""
    row, state = await _with_state(session, node_id)
    facts, unknown = None, None
    try:
        facts = facts_of(row.name, state)
    except IncompleteReportError as error:
        unknown = str(error)
    measured = measured_of(state)
    in_force = await repository.get_plan_in_force(session, node_id)
    states = await repository.report_states(session, node_id)
    return NodeDetail.model_validate(
        summary_values(row, datetime.now(UTC))
        | {
            "first_report_at": row.first_report_at,
            "agent_version": row.agent_version,
            "collectors": state.collectors,
            "inventory": state.inventory,
            "sample": {name: state.sample[name] for name in LatestSample.model_fields},
            "geometry": measured.geometry,
            "facts": facts,
            "facts_unknown_because": unknown,
            "boot_pools": None if facts is None else boot_pools_of(facts),
            "findings": state.findings,
            "spool": row.spool,
            "clock_ahead_seconds": row.clock_ahead_seconds,
            "plan_in_force": None if in_force is None else plan_in_force(in_force),
            "unread_reports": states.get("newer_schema", 0),
        }
    )


async def get_plan_in_force_id(session: ReadSession, node_id: UUID) -> UUID | None:
    """The saved plan that is in force on a node; None where there is none, or pools alone were put in force."""
    found = await repository.get_plan_in_force(session, node_id)
    return None if found is None else found.plan_id


def plan_in_force(row: PlanInForceRow) -> PlanInForce:
    """A stored plan in force as it is answered."""
    stored = fields_of(PlanInForce, row, "short_digest")
    return PlanInForce.model_validate(stored | {"short_digest": None if row.digest is None else short(row.digest)})


async def list_samples(
    session: ReadSession, node_id: UUID, *, start: datetime | None, end: datetime | None, limit: int, cursor: str | None
) -> Page[SampleRow]:
    """The memory history of a node, newest first."""
    await require_node(session, node_id)

    samples = SampleList(session, node_id, start=start, end=end, limit=limit)

    async def read(after: str | None, rows: int) -> Sequence[KeptSample]:
        return await samples.read(decode_time_cursor(after), rows)

    try:
        items, next_cursor = await page_within(
            session,
            read,
            limit=limit,
            cursor=cursor,
            key=lambda row: (row.taken_at.isoformat(), str(row.report_id)),
            at_once=_SAMPLES_AT_ONCE,
            item=lambda row: SampleRow(
                taken_at=row.taken_at,
                memory=msgspec.json.decode(row.memory),
                pools=msgspec.json.decode(row.pools),
            ),
            read_bytes=lambda row: row.read_bytes,
            is_cut=lambda: samples.is_cut,
        )
    except DamagedBlockError as error:
        raise DamagedError(f"Samples of node {node_id} cannot be read back from the database: {error}.") from error
    return Page(items=items, next_cursor=next_cursor)


async def get_processes(session: ReadSession, node_id: UUID) -> NodeProcesses:
    """The processes of the newest sample, largest resident set first, then by pid."""
    found = await repository.get_newest(session, node_id)
    if found is None:
        raise unknown_node(node_id)
    sample = newest_of(found).in_full()["sample"]
    units, limits, databases = sample["units"], sample["hugetlb_cgroups"], sample["databases"]
    processes = [ProcessMemory.model_validate(process) for process in sample["processes"]]
    processes.sort(key=lambda process: (-(process.rss_bytes or 0), process.pid))
    return NodeProcesses.model_validate(
        {
            "node_id": node_id,
            "taken_at": found.sampled_at,
            "processes": processes,
            "units": None if units is None else [_unit(unit) for unit in units],
            "huge_page_limits": None if limits is None else [_limit(row) for row in limits],
            "walks": [_walks(kept) for kept in databases or () if kept.get("counters")],
        }
    )


def _walks(kept: Mapping[str, Any]) -> DatabaseWalks:
    return DatabaseWalks(
        key=kept["key"],
        engine=kept["engine"],
        pid=kept["main_pid"],
        counters=WalkCounters.model_validate(kept["counters"]),
    )


def _unit(kept: Mapping[str, Any]) -> ProcessUnit:
    unit = convert(Unit, kept)
    pod = unit.pod and "/".join(part for part in (unit.pod.namespace, unit.pod.name) if part)
    return ProcessUnit(
        key=unit.key, kind=unit.kind, name=unit.name, pod=pod or None, limit_bytes=unit.memory.limit_bytes
    )


def _limit(kept: Mapping[str, Any]) -> HugePageLimit:
    limit = convert(HugetlbCgroup, kept)
    return HugePageLimit.model_validate({name: getattr(limit, name) for name in HugePageLimit.model_fields})


async def report_document(session: ReadSession, node_id: UUID, report_id: UUID | None) -> bytes:
    """One report of a node as it came, without an id the newest. NotFoundError when it is not kept, DamagedError."""
    await require_node(session, node_id)
    which = "The newest report" if report_id is None else f"Report {report_id}"
    try:
        if report_id is None:
            document = await read_back.newest_document(session, node_id)
        else:
            document = await read_back.get_document(session, node_id, report_id)
    except (DamagedBlockError, zlib.error) as error:
        raise DamagedError(f"{which} of node {node_id} cannot be read back from the database: {error}.") from error
    if document is None:
        raise NotFoundError(f"{which} of node {node_id} is no longer kept.")
    return document


_MOST_UNREADABLE: Final = 20


async def measure_again(session: WriteSession, node_id: UUID) -> None:
    """Conclude anew from the good runs of a node: after one was deleted or marked, or parsers have changed.

    A run that today's parser refuses, or that retention deletes meanwhile (it waits for no node), is passed over; the
    next best one takes its place, up to the first twenty: its reports wait meanwhile.
    """
    await repository.lock_node(session, node_id)
    documents: dict[UUID, TlbbenchDocument] = {}
    passed_over: set[UUID] = set()
    while True:
        runs = await repository.best_runs(session, node_id, passed_over)
        wanted = {part.run_id for part in chosen_parts(runs).values()} - documents.keys()
        for run_id, kept in (await repository.run_documents(session, node_id, sorted(wanted))).items():
            with suppress(ValueError):
                documents[run_id] = decode(TlbbenchDocument, kept)
        if wanted <= documents.keys():
            break
        passed_over |= wanted - documents.keys()
        if len(passed_over) >= _MOST_UNREADABLE:
            runs = [one for one in runs if one.id in documents]
            break
    measured = rebuilt(runs, documents)
    await repository.set_measured(session, node_id, msgspec.to_builtins(packed(measured)))
    latest = measured.latest.run_id if measured.latest else None
    columns = {"latest_run_id": latest, "effective_granule_bytes": measured.effective_granule_bytes}
    await repository.update_node(session, node_id, columns)
