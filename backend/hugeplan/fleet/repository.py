"""Statements about nodes, their histories and what people change on them. Documents are hugeplan.fleet.read_back's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    Row,
    Select,
    Text,
    TextClause,
    Uuid,
    bindparam,
    cast,
    column,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import InstrumentedAttribute, load_only
from sqlalchemy.orm.attributes import set_committed_value
from sqlalchemy.sql import ColumnElement

from hugeplan.api.pagination import PAGE_BYTES
from hugeplan.db.base import newest_first
from hugeplan.db.models import (
    NodeFindingRow,
    NodeRow,
    NodeStateRow,
    PlanInForceRow,
    PlanRow,
    ReportDocumentRow,
    ReportRow,
    RunRow,
    SampleDayRow,
    SampleHourRow,
    SampleRow,
    SealedDocumentsRow,
    SealedSamplesRow,
)
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.kept import unpack
from hugeplan.fleet.newest import COLUMNS, newest_of, with_newest
from hugeplan.fleet.read_back import sealed_numbers
from hugeplan.fleet.schemas import NodeSummary
from hugeplan.fleet.sealed_samples import Numbers
from hugeplan.fleet.selector import NodeSelector, conditions

SORTS: Mapping[str, ColumnElement[Any] | InstrumentedAttribute[Any]] = {
    "name": NodeRow.name,
    "last_report_at": NodeRow.last_report_at,
    "mem_total_bytes": NodeRow.mem_total_bytes,
    "pool_bytes": func.coalesce(NodeRow.pool_bytes, -1),
    "pool_idle_bytes": func.coalesce(NodeRow.pool_idle_bytes, -1),
    "mem_available_bytes": func.coalesce(NodeRow.mem_available_bytes, -1),
    "findings": NodeRow.findings_wrong * 1000 + NodeRow.findings_attention,
}


async def update_node(session: WriteSession, node_id: UUID, values: Mapping[str, Any]) -> None:
    """Change a node's columns."""
    statement = update(NodeRow).where(NodeRow.id == node_id).values(**values)
    await session.execute(statement.execution_options(synchronize_session=False))


async def lock_node(session: WriteSession, node_id: UUID) -> NodeRow | None:
    """A node, locked until the transaction ends: its reports wait."""
    node: NodeRow | None = await session.scalar(select(NodeRow).where(NodeRow.id == node_id).with_for_update())
    return node


async def delete_node(session: WriteSession, node_id: UUID) -> None:
    """Delete a node with all that is stored of it. Large tables have no foreign key that would do it."""
    for table in (ReportDocumentRow, SealedDocumentsRow, SampleRow, SealedSamplesRow, SampleHourRow, SampleDayRow):
        await session.execute(delete(table).where(table.node_id == node_id))
    await session.execute(delete(NodeRow).where(NodeRow.id == node_id))


_LISTED: Final = tuple(getattr(NodeRow, name) for name in NodeSummary.model_fields if name != "stale")
"""Rows of their own instead of whole nodes, whose other documents would be decoded for each line of a list."""


async def list_nodes(
    session: ReadSession,
    selector: NodeSelector,
    *,
    sort: str,
    descending: bool,
    after: tuple[Any, UUID] | None,
    limit: int,
) -> Sequence[Row[Any]]:
    """The columns of nodes that a list shows, in order, with ``sorted_by`` and ``found``: how many there are, of which
    the last are left out where the labels of all have more than PAGE_BYTES.
    """
    value = SORTS[sort]
    key = (value.desc(), NodeRow.id.desc()) if descending else (value.asc(), NodeRow.id.asc())
    statement: Select[*tuple[Any, ...]] = select(*_LISTED, value.label("sorted_by"))
    statement = statement.where(*conditions(selector)).order_by(*key).limit(limit)
    if after is not None:
        position = tuple_(value, NodeRow.id)
        statement = statement.where(position < after if descending else position > after)
    rows = statement.subquery().c
    label_bytes = func.octet_length(cast(rows.labels, Text))
    so_far = func.sum(label_bytes).over(order_by=_in_order(rows, descending), rows=(None, 0))
    fits = ((so_far <= PAGE_BYTES) | (so_far == label_bytes)).label("fits")
    listed = select(*rows, func.count().over().label("found"), fits).subquery().c
    page = select(*(one for one in listed if one is not listed.fits)).where(listed.fits)
    return (await session.execute(page.order_by(*_in_order(listed, descending)))).all()


def _in_order(rows: Any, descending: bool) -> tuple[ColumnElement[Any], ...]:
    return (rows.sorted_by.desc(), rows.id.desc()) if descending else (rows.sorted_by.asc(), rows.id.asc())


async def count_nodes(session: ReadSession, selector: NodeSelector) -> int:
    """How many nodes a selector selects."""
    return int(await session.scalar(select(func.count()).select_from(NodeRow).where(*conditions(selector))) or 0)


async def get_node(session: ReadSession, node_id: UUID) -> NodeRow | None:
    """A node by id."""
    node: NodeRow | None = await session.scalar(select(NodeRow).where(NodeRow.id == node_id))
    return node


async def get_node_with_state(session: ReadSession, node_id: UUID) -> tuple[NodeRow, NodeStateRow] | None:
    """A node with all that its newest report says and its runs measured."""
    measured = load_only(NodeStateRow.measured, NodeStateRow.findings, raiseload=True)
    statement = with_newest(select(NodeRow, NodeStateRow, *COLUMNS).options(measured))
    row = (await session.execute(statement.where(NodeRow.id == node_id))).one_or_none()
    if row is None:
        return None
    for name, said in newest_of(row).in_full().items():
        set_committed_value(row[1], name, said)
    return row[0], row[1]


StateVersion = tuple[str, str, datetime, datetime, str]
"""A node's name and labels, when it last reported and when that was sampled, and the transaction that wrote its state:
what tells facts apart."""


# Made once: a preview under a slider runs it at every step, and building a statement costs more than running it.
_STATE_VERSION = (
    select(
        NodeRow.name, cast(NodeRow.labels, Text), NodeRow.last_report_at, NodeRow.sampled_at,
        cast(literal_column("node_states.xmin"), Text),
    )
    .join(NodeStateRow, NodeStateRow.node_id == NodeRow.id)
    .where(NodeRow.id == bindparam("node_id"))
)  # fmt: skip


async def get_state_version(session: ReadSession, node_id: UUID) -> StateVersion | None:
    """What changes whenever the node's state does, without the state."""
    row = (await session.execute(_STATE_VERSION, {"node_id": node_id})).one_or_none()
    return None if row is None else (row[0], row[1], row[2], row[3], row[4])


async def get_newest(session: ReadSession, node_id: UUID) -> Any | None:
    """``sampled_at`` of a node, and what ``newest_of`` reads."""
    statement = with_newest(select(NodeRow.sampled_at, *COLUMNS)).where(NodeRow.id == node_id)
    return (await session.execute(statement)).one_or_none()


_NEWEST_RUNS: Final = 1000
"""Good runs of a node among which the best are looked for: its reports wait meanwhile."""
_PART: Final = func.jsonb_each(NodeStateRow.measured["parts"]).table_valued("key", column("value", JSONB)).lateral()
_SOURCES: Final = select(cast(_PART.c.value["run_id"].astext, Uuid)).select_from(NodeStateRow).join(_PART, true())
"""The runs that the facts of nodes come from, at most three of each."""


async def best_runs(session: ReadSession, node_id: UUID, without: Collection[UUID]) -> Sequence[RunRow]:
    """Of the newest good runs of a node, and of those that its facts come from, however old, that are not among
    ``without``: those that say most about each part, and the newest. They come without their documents.
    """
    ranks = RunRow.geometry_rank, RunRow.latency_rank, RunRow.pressure_rank
    good = select(RunRow.id, RunRow.ordered_at, *ranks).where(RunRow.node_id == node_id, RunRow.bad.is_(False))
    newest_good = newest_first(good, RunRow.ordered_at, RunRow.id, limit=_NEWEST_RUNS).subquery()
    found = select(newest_good).union(good.where(RunRow.id.in_(_SOURCES.where(NodeStateRow.node_id == node_id)))).cte()
    newest = found.c.ordered_at.desc(), found.c.id.desc()
    orders = [newest, *((found.c[rank.key].desc(), *newest) for rank in ranks)]
    of_node = select(found.c.id).where(found.c.id.not_in(without))
    chosen = [RunRow.id == of_node.order_by(*order).limit(1).scalar_subquery() for order in orders]
    narrow = load_only(RunRow.id, RunRow.ordered_at, *ranks, raiseload=True)
    statement = select(RunRow).options(narrow).where(RunRow.node_id == node_id, or_(*chosen))
    return (await session.scalars(statement)).all()


async def run_documents(session: ReadSession, node_id: UUID, run_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """The documents of some runs of a node."""
    statement = select(RunRow.id, RunRow.document).where(RunRow.node_id == node_id, RunRow.id.in_(run_ids))
    return {row[0]: unpack(row[1]) for row in await session.execute(statement)}


async def set_measured(session: WriteSession, node_id: UUID, measured: dict[str, Any]) -> None:
    """Replace what was measured on a node."""
    statement = update(NodeStateRow).where(NodeStateRow.node_id == node_id).values(measured=measured)
    await session.execute(statement.execution_options(synchronize_session=False))


async def get_plan_in_force(session: ReadSession, node_id: UUID) -> PlanInForceRow | None:
    """The plan in force of a node."""
    row: PlanInForceRow | None = await session.scalar(select(PlanInForceRow).where(PlanInForceRow.node_id == node_id))
    return row


async def put_plan_in_force(
    session: WriteSession,
    node_id: UUID,
    *,
    plan_id: UUID | None,
    pools: list[dict[str, Any]],
    source: str,
    since: datetime,
    by: str,
) -> None:
    """Replace the plan in force of a node."""
    values = {"plan_id": plan_id, "pools": pools, "source": source, "since": since, "set_by": by}
    values |= {"outcome": None, "verified_at": None, "checks": []}
    statement = upsert(PlanInForceRow).values(node_id=node_id, **values)
    await session.execute(statement.on_conflict_do_update(index_elements=[PlanInForceRow.node_id], set_=values))


async def delete_plan_in_force(session: WriteSession, node_id: UUID) -> bool:
    """End the plan in force of a node. False when there was none."""
    statement = delete(PlanInForceRow).where(PlanInForceRow.node_id == node_id).returning(PlanInForceRow.node_id)
    return (await session.execute(statement)).scalar_one_or_none() is not None


async def get_plan_pools(session: ReadSession, plan_id: UUID) -> tuple[str | None, list[dict[str, Any]]] | None:
    """What a saved plan calls its node, and its pools."""
    found = await session.execute(select(PlanRow.node_name, PlanRow.plan["pools"]).where(PlanRow.id == plan_id))
    row = found.one_or_none()
    return None if row is None else (row[0], row[1])


async def is_approved(session: WriteSession, plan_id: UUID, node_id: UUID) -> bool | None:
    """Whether a kept plan is approved for a node, or in force on it by a person's word; None where there is none such.

    What the node's own label says is nobody's word. Nobody withdraws the plan until the transaction ends.
    """
    is_there = exists().where(
        PlanInForceRow.node_id == node_id, PlanInForceRow.plan_id == plan_id, PlanInForceRow.source != "label"
    )
    stands = PlanRow.approved_at.is_not(None) & PlanRow.approval_ended_at.is_(None)
    statement = select(PlanRow.state, stands, PlanRow.node_id, is_there).where(PlanRow.id == plan_id)
    row = (await session.execute(statement.with_for_update(of=PlanRow))).one_or_none()
    return None if row is None else row[3] or (row[1] and row[0] in {"approved", "in_force"} and row[2] == node_id)


async def replace_findings(
    session: WriteSession, node_id: UUID, rows: list[dict[str, Any]], counted: list[dict[str, Any]]
) -> None:
    """Replace the findings of a node, in full and for the fleet's counts."""
    changed = update(NodeStateRow).where(NodeStateRow.node_id == node_id).values(findings=rows)
    await session.execute(changed.execution_options(synchronize_session=False))
    await session.execute(delete(NodeFindingRow).where(NodeFindingRow.node_id == node_id))
    if counted:
        narrow = [
            {name: row[name] for name in ("code", "subject", "state", "title")}
            | {"node_id": node_id, "since": datetime.fromisoformat(row["since"])}
            for row in counted
        ]
        await session.execute(insert(NodeFindingRow), narrow)


async def report_states(session: ReadSession, node_id: UUID) -> dict[str, int]:
    """How many reports of a node are stored, by state."""
    sealed = select(func.coalesce(func.sum(SealedDocumentsRow.report_count), 0))
    sealed = sealed.where(SealedDocumentsRow.node_id == node_id)
    statement = select(ReportRow.state, func.count()).where(ReportRow.node_id == node_id).group_by(ReportRow.state)
    # One statement, so that none is counted twice or not at all while it is sealed.
    rows = await session.execute(statement.union_all(select(literal_column("'parsed'"), sealed.scalar_subquery())))
    found: Counter[str] = Counter()
    for state, number in rows:
        found[state] += number
    return {state: number for state, number in found.items() if number}


def is_one_of(node_ids: Collection[UUID]) -> ColumnElement[bool]:
    """The condition that selects some nodes."""
    return NodeRow.id.in_(node_ids)


async def stored_nodes(
    session: ReadSession,
    which: Sequence[ColumnElement[bool]],
    *,
    after: tuple[str, UUID] | None,
    limit: int,
) -> list[dict[str, Any]]:
    """What is stored of nodes, by name: the fields of ``StoredNode`` but its history."""
    columns = NodeRow.id, NodeRow.name, NodeRow.labels, NodeRow.machine_type, NodeRow.mem_total_bytes, *COLUMNS
    of_them = (
        NodeRow.last_report_at,
        NodeRow.sampled_at.label("taken_at"),
        cast(NodeStateRow.measured, Text).label("measured"),
    )
    statement = with_newest(select(*columns, *of_them)).where(*which).order_by(NodeRow.name, NodeRow.id).limit(limit)
    if after is not None:
        statement = statement.where(tuple_(NodeRow.name, NodeRow.id) > after)
    return [dict(row) for row in (await session.execute(statement)).mappings()]


_WANTED: Final = "unnest(CAST(:ids AS uuid[]), CAST(:starts AS timestamptz[])) AS wanted (node_id, start)"
_HOURLY_HISTORIES: Final = text(
    "SELECT h.node_id, array_agg(CAST(extract(epoch FROM h.start_at) AS float8) ORDER BY h.start_at),"  # noqa: S608
    f" array_agg(h.anon_shmem_bytes_max ORDER BY h.start_at) FROM {_WANTED}"
    " JOIN sample_hours h ON h.node_id = wanted.node_id AND h.start_at >= wanted.start"
    " WHERE h.start_at >= :earliest AND h.anon_shmem_bytes_max IS NOT NULL GROUP BY h.node_id"
)
ANON_SHMEM: Final = (
    "coalesce(s.anon_shmem_bytes, CAST(s.memory->>'anon_pages_bytes' AS bigint)"
    " + CAST(s.memory->>'shmem_bytes' AS bigint))"
)
"""SQL: AnonPages + Shmem of a row ``s`` of ``samples``."""
_SAMPLE_HISTORIES: Final = text(
    "SELECT node_id, array_agg(CAST(extract(epoch FROM at) AS float8) ORDER BY at), array_agg(used ORDER BY at) FROM ("  # noqa: S608
    "SELECT s.node_id, date_bin(:every, s.taken_at, TIMESTAMPTZ '2000-01-01 00:00:00+00') AS at,"
    f" max({ANON_SHMEM}) AS used"
    f" FROM {_WANTED} CROSS JOIN LATERAL (SELECT * FROM samples n WHERE n.node_id = wanted.node_id"
    " AND n.taken_at >= wanted.start AND n.taken_at >= :earliest ORDER BY n.taken_at DESC LIMIT :most) s"
    " GROUP BY s.node_id, at) AS steps WHERE used IS NOT NULL GROUP BY node_id"
)
_MOST_SAMPLES: Final = 7200
"""Of a node that are read for a short history: two hours at one per second, the shortest interval of an agent. A node
may say that all its samples are of one time.
"""
_MOST_BLOCKS: Final = 24
"""The same where they are sealed: each has up to 360, and takes a millisecond."""

History = tuple[UUID, Sequence[float], Sequence[int]]
"""A node, seconds since the epoch, and AnonPages + Shmem in bytes at each, oldest first."""


async def hourly_histories(session: ReadSession, starts: Mapping[UUID, datetime]) -> list[History]:
    """The largest AnonPages + Shmem of each hour since each node's start; hours that do not tell it are left out."""
    return await _histories(session, _HOURLY_HISTORIES, starts, {})


async def sample_histories(session: ReadSession, starts: Mapping[UUID, datetime], *, every: timedelta) -> list[History]:
    """The same from each node's newest samples: the largest of each step of ``every``."""
    found = await _histories(session, _SAMPLE_HISTORIES, starts, {"every": every, "most": _MOST_SAMPLES})
    largest = {node_id: dict(zip(times, sizes, strict=True)) for node_id, times, sizes in found}

    def take(node_id: UUID, numbers: Sequence[Numbers]) -> None:
        of_node = largest.setdefault(node_id, {})
        for one in numbers:
            if one.anon_shmem_bytes is not None:
                seconds = one.taken_at_microseconds / 10**6
                step = seconds - seconds % every.total_seconds()
                of_node[step] = max(of_node.get(step, 0), one.anon_shmem_bytes)

    await sealed_numbers(session, starts, take, _MOST_BLOCKS)
    return [(node_id, sorted(of_node), [of_node[at] for at in sorted(of_node)]) for node_id, of_node in largest.items()]


async def _histories(
    session: ReadSession, statement: TextClause, starts: Mapping[UUID, datetime], more: Mapping[str, Any]
) -> list[History]:
    if not starts:
        return []
    values = {"ids": list(starts), "starts": list(starts.values()), "earliest": min(starts.values()), **more}
    return [(row[0], row[1], row[2]) for row in await session.execute(statement, values)]
