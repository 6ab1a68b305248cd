"""Statements about what is decided of kept plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, delete, exists, func, select, update
from sqlalchemy.orm import aliased

from hugeplan.db.models import FleetPlanNodeRow, NodeRow, PlanRow
from hugeplan.db.session import ReadSession, WriteSession


async def lock_nodes(session: WriteSession, node_ids: Collection[UUID] | Select[Any]) -> None:
    """Nodes, locked in the order of reports, which lock their nodes, then plans that labels name, then the events."""
    statement = select(NodeRow.id).where(NodeRow.id.in_(node_ids)).order_by(NodeRow.machine_id)
    await session.execute(statement.with_for_update())


async def lock_plan(session: WriteSession, plan_id: UUID) -> PlanRow | None:
    """A plan, locked for a change of its state after its node."""
    await lock_nodes(session, select(PlanRow.node_id).where(PlanRow.id == plan_id))
    found: PlanRow | None = await session.scalar(
        select(PlanRow).where(PlanRow.id == plan_id).with_for_update().execution_options(populate_existing=True)
    )
    return found


async def change_plan(session: WriteSession, row: PlanRow, values: Mapping[str, Any]) -> None:
    """Write a decision; the version grows by one."""
    statement = update(PlanRow).where(PlanRow.id == row.id).values(version=PlanRow.version + 1, **values)
    await session.execute(statement.execution_options(synchronize_session=False))
    await session.refresh(row)


async def supersede_approved(session: WriteSession, node_id: UUID, by: UUID, at: datetime) -> Sequence[UUID]:
    """Take an approval back from the other plans of a node that are not in force: there is a later one."""
    statement = (
        update(PlanRow)
        .where(PlanRow.node_id == node_id, PlanRow.state == "approved", PlanRow.id != by)
        .values(state="superseded", superseded_by=by, state_at=at, approval_ended_at=at, version=PlanRow.version + 1)
        .returning(PlanRow.id)
        .execution_options(synchronize_session=False)
    )
    return (await session.scalars(statement)).all()


async def delete_plan(session: WriteSession, plan_id: UUID) -> None:
    """Delete a plan."""
    await session.execute(delete(PlanRow).where(PlanRow.id == plan_id).execution_options(synchronize_session=False))


async def unchecked(session: ReadSession, limit: int, of_one_author: int) -> Sequence[UUID]:
    """Proposed and approved plans whose node was sampled since they were kept or checked, or has another name.

    Authors take turns, each with the plan that was not looked at for the longest time: nobody's plans wait for all of
    another's.
    """
    # A silent node may be renamed: another machine says its name. What is stale is not looked at again for that.
    is_renamed = (NodeRow.name != PlanRow.node_name) & PlanRow.stale.is_(None)
    checked = func.coalesce(PlanRow.checked_sample_at, PlanRow.sampled_at, PlanRow.created_at)
    turn = func.row_number().over(partition_by=PlanRow.author_id, order_by=checked)
    found = (
        select(PlanRow.id, turn.label("turn"), checked.label("checked"))
        .join(NodeRow, NodeRow.id == PlanRow.node_id)
        .where(PlanRow.state.in_(["proposed", "approved"]), (NodeRow.sampled_at > checked) | is_renamed)
        .subquery()
    ).c
    statement = select(found.id).where(found.turn <= of_one_author).order_by(found.turn, found.checked).limit(limit)
    return (await session.scalars(statement)).all()


async def set_checked(
    session: WriteSession, row: PlanRow, sampled_at: datetime, stale: Sequence[Mapping[str, Any]]
) -> None:
    """Keep what a newer sample says of a plan. It is no decision, so its version stays."""
    statement = update(PlanRow).where(PlanRow.id == row.id)
    values = {"checked_sample_at": sampled_at, "stale": list(stale) or None}
    await session.execute(statement.values(**values).execution_options(synchronize_session=False))
    await session.refresh(row)


async def approve_replaced(session: WriteSession, row: PlanRow) -> UUID | None:
    """The plan whose place a plan took, with the approval that this ended; None where another decision had ended it, or
    another plan of the node is approved or was since, or the node has another name than the plan says.
    """
    statement = update(PlanRow).values(approval_ended_at=None).returning(PlanRow.id)
    was_ended_by_it = (PlanRow.superseded_by == row.id) & (PlanRow.approval_ended_at == PlanRow.state_at)
    other = aliased(PlanRow)
    is_later = (other.state == "approved") | (other.approved_at > PlanRow.approval_ended_at)
    of_node = (other.node_id == row.node_id) & other.id.not_in([row.id, row.replaces])
    has_its_name = exists().where(NodeRow.id == PlanRow.node_id, NodeRow.name == PlanRow.node_name)
    stands = was_ended_by_it & has_its_name & ~exists().where(of_node, is_later)
    found: UUID | None = await session.scalar(statement.where(PlanRow.id == row.replaces, stands))
    return found


async def fleet_rows(
    session: ReadSession, fleet_plan_id: UUID, *, group_number: int | None, after: int | None, limit: int
) -> Sequence[FleetPlanNodeRow]:
    """Rows of a fleet plan, or of one of its groups, in their order."""
    statement = (
        select(FleetPlanNodeRow)
        .where(FleetPlanNodeRow.fleet_plan_id == fleet_plan_id)
        .order_by(FleetPlanNodeRow.position)
        .limit(limit)
    )
    if group_number is not None:
        statement = statement.where(FleetPlanNodeRow.group_number == group_number)
    if after is not None:
        statement = statement.where(FleetPlanNodeRow.position > after)
    return (await session.scalars(statement)).all()


async def fleet_row(session: ReadSession, fleet_plan_id: UUID, node_id: UUID) -> FleetPlanNodeRow | None:
    """One node's row of a fleet plan."""
    found: FleetPlanNodeRow | None = await session.scalar(
        select(FleetPlanNodeRow).where(
            FleetPlanNodeRow.fleet_plan_id == fleet_plan_id, FleetPlanNodeRow.node_id == node_id
        )
    )
    return found


class NodeOfGroup(NamedTuple):
    """A node of a group, how it is called now and when it last reported (None: it is gone)."""

    node_id: UUID
    name: str
    fits: bool | None
    mem_total_bytes: int
    name_now: str | None
    last_report_at: datetime | None


async def group(session: ReadSession, fleet_plan_id: UUID, number: int) -> list[NodeOfGroup]:
    """The nodes of a group, without what their rows say: it may have as many as the fleet."""
    row = FleetPlanNodeRow
    statement = (
        select(row.node_id, row.name, row.fits, row.mem_total_bytes, NodeRow.name, NodeRow.last_report_at)
        .outerjoin(NodeRow, NodeRow.id == row.node_id)
        .where(row.fleet_plan_id == fleet_plan_id, row.group_number == number)
    )
    return [NodeOfGroup(*each) for each in await session.execute(statement)]


class KeptOfRow(NamedTuple):
    """Which plan was kept of a row, without the plan, which may have a megabyte."""

    id: UUID
    state: str
    version: int


async def plan_of_row(session: ReadSession, fleet_plan_id: UUID, node_id: UUID) -> KeptOfRow | None:
    """The plan that was kept of a row, the newest one."""
    return (await plans_of_rows(session, fleet_plan_id, [node_id])).get(node_id)


async def plans_of_rows(session: ReadSession, fleet_plan_id: UUID, node_ids: Collection[UUID]) -> dict[UUID, KeptOfRow]:
    """The plan that was kept of each of some rows, the newest one; without those of which none was."""
    found = await session.execute(
        select(PlanRow.node_id, PlanRow.id, PlanRow.state, PlanRow.version)
        .where(PlanRow.fleet_plan_id == fleet_plan_id, PlanRow.node_id.in_(node_ids))
        .order_by(PlanRow.created_at, PlanRow.id)
    )
    return {row[0]: KeptOfRow(*row[1:]) for row in found if row[0] is not None}  # the newest comes last
