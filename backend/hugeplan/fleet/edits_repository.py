"""Statements of what people change on a node."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import delete, exists, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from hugeplan.db.models import NodeFindingRow, NodeStateRow, PlanInForceRow, PlanRow
from hugeplan.db.session import ReadSession, WriteSession


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


async def get_plan_pools(session: ReadSession, plan_id: UUID) -> list[dict[str, Any]] | None:
    """The pools of a saved plan."""
    pools: list[dict[str, Any]] | None = await session.scalar(
        select(PlanRow.plan["pools"]).where(PlanRow.id == plan_id)
    )
    return pools


async def is_approved(session: WriteSession, plan_id: UUID, node_id: UUID) -> bool | None:
    """Whether a kept plan is approved for a node, or in force on it by a person's word; None where there is none such.

    What the node's own label says is nobody's word. Nobody withdraws the plan until the transaction ends.
    """
    is_there = exists().where(
        PlanInForceRow.node_id == node_id, PlanInForceRow.plan_id == plan_id, PlanInForceRow.source != "label"
    )
    statement = select(PlanRow.state, PlanRow.approved_at, PlanRow.node_id, is_there).where(PlanRow.id == plan_id)
    row = (await session.execute(statement.with_for_update(of=PlanRow))).one_or_none()
    if row is None or row[3]:
        return None if row is None else True
    return row[1] is not None and row[0] in {"approved", "in_force"} and row[2] == node_id


async def replace_findings(session: WriteSession, node_id: UUID, rows: list[dict[str, Any]]) -> None:
    """Replace the findings of a node, in full and for the fleet's counts."""
    changed = update(NodeStateRow).where(NodeStateRow.node_id == node_id).values(findings=rows)
    await session.execute(changed.execution_options(synchronize_session=False))
    await session.execute(delete(NodeFindingRow).where(NodeFindingRow.node_id == node_id))
    if rows:
        narrow = [
            {name: row[name] for name in ("code", "subject", "state", "title")}
            | {"node_id": node_id, "since": datetime.fromisoformat(row["since"])}
            for row in rows
        ]
        await session.execute(insert(NodeFindingRow), narrow)
