"""Statements about many nodes at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Row,
    Select,
    Text,
    Uuid,
    cast,
    column,
    func,
    literal_column,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.orm import aliased

from hugeplan.db.models import NodeFindingRow, NodeRow, NodeStateRow, PlanInForceRow, RunRow, RunWinsRow
from hugeplan.db.session import ReadSession
from hugeplan.fleet.newest import COLUMNS, with_newest
from hugeplan.fleet.selector import NodeSelector, conditions
from hugeplan.planner.evaluation.win_matrix import TIE
from hugeplan.planner.model import MIB

MAX_PARTS = 200
MOST_GROUPS = 2_000
MOST_RUNS = 5_000
"""Of which wins are added up, each node's share the same and at least one."""


def _bytes(value: Any) -> Any:
    """A sum of bytes as a number: PostgreSQL sums bigint as numeric."""
    return func.coalesce(func.sum(value), 0)


async def totals(session: ReadSession, selector: NodeSelector, stale_before: datetime) -> Row[Any]:
    """One row over all selected nodes."""
    unknown = NodeRow.mem_available_bytes.is_(None) | NodeRow.pool_idle_bytes.is_(None)
    known_pool = NodeRow.pool_idle_bytes.is_not(None)
    statement = select(
        func.count().label("nodes"),
        func.count().filter(NodeRow.synthetic).label("nodes_synthetic"),
        func.count().filter(NodeRow.last_report_at < stale_before).label("nodes_stale"),
        func.count().filter(NodeRow.findings_wrong > 0).label("nodes_wrong"),
        func.count().filter(NodeRow.findings_attention > 0).label("nodes_attention"),
        func.count().filter(NodeRow.effective_granule_bytes < 2 * MIB).label("nodes_fractured"),
        func.count().filter(NodeRow.latest_run_id.is_not(None)).label("nodes_measured"),
        func.count().filter(unknown).label("nodes_unknown"),
        _bytes(NodeRow.mem_total_bytes).label("mem_total_bytes"),
        _bytes(NodeRow.mem_available_bytes).label("mem_available_bytes"),
        _bytes(NodeRow.pool_bytes).label("pool_bytes"),
        _bytes(NodeRow.pool_bytes - NodeRow.pool_idle_bytes).label("pool_used_bytes"),
        func.coalesce(func.sum(NodeRow.pool_idle_bytes).filter(known_pool), 0).label("pool_idle_bytes"),
        _bytes(NodeRow.page_tables_bytes).label("page_tables_bytes"),
        _bytes(NodeRow.anon_huge_pages_bytes).label("anon_huge_pages_bytes"),
        func.max(NodeRow.last_report_at).label("updated_at"),
    )
    return (await session.execute(statement.where(*conditions(selector)))).one()


async def plan_states(session: ReadSession, selector: NodeSelector) -> dict[str | None, int]:
    """Nodes by their state beside the plan in force."""
    statement = select(NodeRow.plan_state, func.count()).where(*conditions(selector)).group_by(NodeRow.plan_state)
    return {row[0]: row[1] for row in await session.execute(statement)}


async def pools(session: ReadSession, selector: NodeSelector) -> Sequence[Any]:
    """Page size, nodes with pages of it, pages, free pages, nodes that do not say how many are free."""
    pool = func.jsonb_array_elements(NodeRow.pools).table_valued(column("value", JSONB), name="pool").lateral()
    value = pool.c.value
    size_number, pages_number, free_number = (
        cast(value[name].astext, BigInteger) for name in ("page_bytes", "nr_hugepages", "free_hugepages")
    )
    statement = (
        select(
            size_number.label("page_bytes"),
            func.count().filter(pages_number > 0).label("nodes"),
            _bytes(pages_number).label("nr_hugepages"),
            _bytes(free_number).label("free_hugepages"),
            func.count().filter(free_number.is_(None)).label("nodes_unknown"),
        )
        .select_from(NodeRow)
        .join(pool, literal_column("true"))
        .where(*conditions(selector))
        .group_by(size_number)
        .order_by(size_number)
    )
    return (await session.execute(statement)).all()


async def findings(session: ReadSession, selector: NodeSelector) -> Sequence[Any]:
    """Findings that hold, with the number of nodes, their idle pool memory, and the id of the node with the most."""
    row, idle = NodeFindingRow, NodeRow.pool_idle_bytes
    nodes = func.count().label("nodes")
    # Both in one word: to put the findings of a fleet in order takes a second.
    word = func.lpad(cast(func.coalesce(idle, 0), Text), 19, "0") + cast(NodeRow.id, Text)
    worst = func.max(word.collate("C"))
    statement = (
        select(
            row.code,
            row.state,
            nodes,
            func.min(row.since).label("oldest_since"),
            cast(func.substr(worst, 20), Uuid).label("example_node_id"),
            _bytes(idle).label("pool_idle_bytes"),
        )
        .join(NodeRow, NodeRow.id == row.node_id)
        .where(*conditions(selector))
        .group_by(row.code, row.state)
        .order_by(row.state.desc(), _bytes(idle).desc(), nodes.desc(), row.code)
    )
    return (await session.execute(statement)).all()


async def stored_findings(session: ReadSession, nodes: Sequence[UUID]) -> dict[UUID, tuple[str, list[dict[str, Any]]]]:
    """Names and findings of some nodes with their texts, worst first."""
    statement = select(NodeRow.id, NodeRow.name, NodeStateRow.findings)
    statement = statement.join(NodeStateRow, NodeStateRow.node_id == NodeRow.id).where(NodeRow.id.in_(nodes))
    return {row.id: (row.name, row.findings) for row in await session.execute(statement)}


def grouping_key(by: str, label: str | None) -> Any:
    """What nodes are grouped by."""
    if by == "provider":
        return NodeRow.labels["provider"].astext
    if by == "label":
        return NodeRow.labels[label or ""].astext
    columns: dict[str, Any] = {
        "machine_type": NodeRow.machine_type,
        "architecture": NodeRow.architecture,
        "group": NodeRow.group_key,
    }
    return columns[by]


async def parts(session: ReadSession, selector: NodeSelector, key: Any, stale_before: datetime) -> Sequence[Any]:
    """The selected nodes by a key, the largest group first."""
    named = key.label("key")
    statement = (
        select(
            named,
            func.count().label("nodes"),
            _bytes(NodeRow.mem_total_bytes).label("mem_total_bytes"),
            _bytes(NodeRow.pool_bytes).label("pool_bytes"),
            _bytes(NodeRow.pool_idle_bytes).label("pool_idle_bytes"),
            func.count().filter(NodeRow.findings_wrong > 0).label("nodes_wrong"),
            func.count().filter(NodeRow.findings_attention > 0).label("nodes_attention"),
            func.count().filter(NodeRow.plan_state.in_(["short", "drifted"])).label("nodes_short"),
            func.count().filter(NodeRow.last_report_at < stale_before).label("nodes_stale"),
        )
        .where(*conditions(selector))
        .group_by(named)
        .order_by(func.count().desc(), named)
        .limit(MAX_PARTS)
    )
    return (await session.execute(statement)).all()


async def drift(
    session: ReadSession, selector: NodeSelector, *, matching: bool, after: tuple[str, UUID] | None, limit: int
) -> Sequence[Any]:
    """Nodes with a plan in force, by name: the plan, the pools of the newest sample, and since when they differ."""
    since = (
        select(func.min(NodeFindingRow.since))
        .where(NodeFindingRow.node_id == NodeRow.id, NodeFindingRow.code == "plan_drift")
        .scalar_subquery()
    )
    columns = NodeRow.id, NodeRow.name, NodeRow.plan_state, NodeRow.sampled_at, PlanInForceRow, *COLUMNS
    statement = (
        with_newest(select(*columns, since.label("since")))
        .join(PlanInForceRow, PlanInForceRow.node_id == NodeRow.id)
        .where(*conditions(selector))
        .order_by(NodeRow.name, NodeRow.id)
        .limit(limit)
    )
    if not matching:
        statement = statement.where(NodeRow.plan_state != "match")
    if after is not None:
        statement = statement.where(tuple_(NodeRow.name, NodeRow.id) > after)
    return (await session.execute(statement)).all()


async def wins_counts(
    session: ReadSession, selector: NodeSelector, *, latest_only: bool, runs: Sequence[UUID]
) -> Sequence[Any]:
    """Machine type, nodes and runs that have cases, of MAX_PARTS types, the most runs first; and nodes and runs of all
    types in each row."""
    row, joined = _good_runs(selector, latest_only=latest_only, runs=runs)
    nodes, many = func.count(row.node_id.distinct()), func.count()
    of_all = func.sum(nodes).over().label("all_nodes"), func.sum(many).over().label("all_runs")
    statement = joined.add_columns(NodeRow.machine_type, nodes.label("nodes"), many.label("runs"), *of_all)
    statement = statement.where(row.backing == TIE).group_by(NodeRow.machine_type)  # each run has one
    order = many.desc(), NodeRow.machine_type
    return (await session.execute(statement.order_by(*order).limit(MAX_PARTS))).all()


async def wins(
    session: ReadSession,
    selector: NodeSelector,
    kinds: Sequence[str] | None,
    *,
    latest_only: bool,
    runs: Sequence[UUID],
) -> Sequence[Any]:
    """The sums of wins by backing, over the good runs of the selected nodes or over ``runs``: of all machine types, or
    by machine type of ``kinds``."""
    row, joined = _good_runs(selector, latest_only=latest_only, runs=runs)
    sums = [_bytes(getattr(row, name)).label(name) for name in ("cases", "wins", "lowest", "log_sum", "log_count")]
    statement = joined.add_columns(row.backing, *sums).group_by(row.backing)
    if kinds is not None:
        statement = statement.add_columns(NodeRow.machine_type).group_by(NodeRow.machine_type)
        statement = statement.where(NodeRow.machine_type.in_(kinds))
    return (await session.execute(statement)).all()


def _good_runs(selector: NodeSelector, *, latest_only: bool, runs: Sequence[UUID]) -> tuple[Any, Select[Any]]:
    """Wins, and a statement without columns that joins nodes and those of their good runs that count: ``runs``, or of
    each of MOST_RUNS nodes the newest, or its share of as many. No more are read, whatever one node has. Which nodes,
    where there are more, is by their ids, which nobody chooses."""
    chosen, run, wins = conditions(selector), RunRow, RunWinsRow
    if runs:
        joined = select().select_from(wins).join(NodeRow, NodeRow.id == wins.node_id)
        joined = joined.join(run, (run.node_id == wins.node_id) & (run.id == wins.run_id))
        return wins, joined.where(run.bad.is_(False), wins.run_id.in_(runs), *chosen)
    measured = select(NodeRow.id, NodeRow.latest_run_id).where(NodeRow.latest_run_id.is_not(None), *chosen)
    node = measured.order_by(NodeRow.id).limit(MOST_RUNS).cte()
    good = select(run.id).where(run.node_id == node.c.id, run.bad.is_(False)).correlate(node)
    if latest_only:
        counted = good.where(run.id == node.c.latest_run_id).lateral("counted")
    else:
        share = select(MOST_RUNS / func.greatest(func.count(), 1)).select_from(node).scalar_subquery()
        counted = good.order_by(run.ordered_at.desc(), run.id.desc()).limit(share).lateral("counted")
    # Offset 0: PostgreSQL would read the wins of all runs of a node, and choose among them.
    of_run = (wins.node_id == node.c.id) & (wins.run_id == counted.c.id)
    read = aliased(wins, select(wins).where(of_run).correlate(node, counted).offset(0).lateral("read"))
    joined = select().select_from(node).join(NodeRow, NodeRow.id == node.c.id)
    return read, joined.join(counted, true()).join(read, true())


async def groups(
    session: ReadSession, selector: NodeSelector, *, after: tuple[int, str] | None, limit: int
) -> Sequence[Any]:
    """Groups of like nodes, the largest first, of MOST_GROUPS: each page counts all nodes again."""
    count = func.count().label("nodes")
    first = aggregate_order_by(NodeRow.name, NodeRow.name, NodeRow.id)
    statement = (
        select(
            NodeRow.group_key,
            count,
            func.min(NodeRow.machine_type).label("machine_type"),
            func.min(NodeRow.numa_node_count).label("numa_node_count"),
            func.min(NodeRow.mem_total_bytes).label("mem_total_bytes_min"),
            func.max(NodeRow.mem_total_bytes).label("mem_total_bytes_max"),
            func.count().filter(NodeRow.findings_wrong > 0).label("nodes_wrong"),
            func.count().filter(NodeRow.findings_attention > 0).label("nodes_attention"),
            func.count().filter(NodeRow.latest_run_id.is_not(None)).label("nodes_measured"),
            func.array_agg(first)[1].label("example_node_name"),
            func.array_agg(aggregate_order_by(NodeRow.id, NodeRow.name, NodeRow.id))[1].label("example_node_id"),
            func.min(cast(NodeRow.pools, Text)).label("pools"),
        )
        .where(NodeRow.group_key.is_not(None), *conditions(selector))
        .group_by(NodeRow.group_key)
        .order_by(count.desc(), NodeRow.group_key)
        .limit(MOST_GROUPS)
    ).subquery()
    row = statement.c
    page = select(statement).order_by(row.nodes.desc(), row.group_key).limit(limit)
    if after is not None:
        nodes, key = after
        page = page.where((row.nodes < nodes) | ((row.nodes == nodes) & (row.group_key > key)))
    return (await session.execute(page)).all()
