"""Statements about saved scenarios and plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Text, cast, delete, func, select, text, update
from sqlalchemy.orm import defer

from hugeplan.db import retention
from hugeplan.db.base import newest_first
from hugeplan.db.models import NodeRow, PlanInForceRow, PlanRow, RunRow, ScenarioRow, ScenarioVersionRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.scenarios.schemas import PlanFilter

MAX_VERSIONS = 200
"""Of one scenario, the newest. A kept plan has its own copy of what it was computed from."""


def _latest_plan_id() -> Any:
    return (
        select(PlanRow.id)
        .where(PlanRow.scenario_id == ScenarioRow.id)
        .order_by(PlanRow.created_at.desc(), PlanRow.id.desc())
        .limit(1)
        .scalar_subquery()
    )


async def list_scenarios(
    session: ReadSession, *, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[tuple[ScenarioRow, UUID | None]]:
    """Scenarios with their newest plan's id, most recently changed first, without their documents."""
    statement = select(ScenarioRow, _latest_plan_id()).options(defer(ScenarioRow.document, raiseload=True))
    statement = statement.where(~ScenarioRow.is_gone)
    statement = newest_first(statement, ScenarioRow.updated_at, ScenarioRow.id, after=after, limit=limit)
    return [(row[0], row[1]) for row in await session.execute(statement)]


async def get_scenario(session: ReadSession, scenario_id: UUID) -> tuple[ScenarioRow, UUID | None] | None:
    """A scenario and its newest plan's id."""
    statement = select(ScenarioRow, _latest_plan_id()).where(ScenarioRow.id == scenario_id, ~ScenarioRow.is_gone)
    row = (await session.execute(statement)).one_or_none()
    return None if row is None else (row[0], row[1])


async def scenarios_named(session: WriteSession, names: Sequence[str]) -> dict[str, ScenarioRow]:
    """Scenarios without a node by name, locked for a change, without their documents; the newest of each name."""
    statement = (
        select(ScenarioRow)
        .options(defer(ScenarioRow.document, raiseload=True))
        .where(ScenarioRow.name.in_(names), ScenarioRow.node_id.is_(None), ~ScenarioRow.is_gone)
        .order_by(ScenarioRow.updated_at, ScenarioRow.id)
        .with_for_update()
    )
    return {row.name: row for row in await session.scalars(statement)}


async def count_scenarios(session: ReadSession) -> int:
    """How many scenarios are kept."""
    gone = select(func.count()).where(ScenarioRow.is_gone).scalar_subquery()  # each by an index
    return (await session.execute(select(func.count() - gone).select_from(ScenarioRow))).scalar_one()


async def count_open_plans(session: ReadSession, author_id: UUID) -> int:
    """How many drafts and proposals somebody has kept."""
    is_open = PlanRow.state.in_(["draft", "proposed"])
    statement = select(func.count()).select_from(PlanRow).where(PlanRow.author_id == author_id, is_open)
    return (await session.execute(statement)).scalar_one()


async def add_scenarios(session: WriteSession, scenarios: Sequence[ScenarioRow]) -> None:
    """Store new scenarios, and what was changed of those that are there."""
    session.add_all(scenarios)
    await session.flush()


async def replace_scenario(session: WriteSession, scenario_id: UUID, version: int, values: Mapping[str, Any]) -> bool:
    """Change a scenario if it still has this version. False when it has another, or is gone."""
    statement = (
        update(ScenarioRow)
        .where(ScenarioRow.id == scenario_id, ScenarioRow.version == version)
        .values(version=version + 1, **values)
        .returning(ScenarioRow.id)
        .execution_options(synchronize_session=False)
    )
    return (await session.execute(statement)).scalar_one_or_none() is not None


async def delete_scenario(session: WriteSession, scenario_id: UUID, version: int) -> bool:
    """Delete a scenario if it still has this version, and a part of what was made of it: the rest goes by itself."""
    if not await replace_scenario(session, scenario_id, version, {"is_gone": True}):
        return False
    for statement in retention.GONE_SCENARIO:
        await session.execute(text(statement), {"id": scenario_id, "limit": retention.GONE_AT_ONCE})
    return True


async def add_plans(session: WriteSession, plans: Sequence[PlanRow]) -> None:
    """Store plans."""
    session.add_all(plans)
    await session.flush()


async def get_plan(session: ReadSession, plan_id: UUID) -> PlanRow | None:
    """A plan by id."""
    plan: PlanRow | None = await session.scalar(select(PlanRow).where(PlanRow.id == plan_id))
    return plan


async def get_plan_to_verify(session: ReadSession, plan_id: UUID) -> Row[UUID | None, str | None, int, str] | None:
    """Node, digest and form of a plan, and the plan as JSON: whoever verifies it parses what is needed of it."""
    columns = PlanRow.node_id, PlanRow.digest, PlanRow.schema_version, cast(PlanRow.plan, Text).label("plan")
    return (await session.execute(select(*columns).where(PlanRow.id == plan_id))).one_or_none()


async def list_plans(
    session: ReadSession, wanted: PlanFilter, *, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[PlanRow]:
    """Kept plans, newest first, without their content."""
    content = (PlanRow.plan, PlanRow.verdict, PlanRow.artifacts, PlanRow.scenario, PlanRow.request)
    statement = select(PlanRow).options(*(defer(column, raiseload=True) for column in content))
    for column in (PlanRow.scenario_id, PlanRow.node_id, PlanRow.fleet_plan_id, PlanRow.state):
        value = getattr(wanted, column.key)
        if value is not None:
            statement = statement.where(column == value)
    statement = newest_first(statement, PlanRow.created_at, PlanRow.id, after=after, limit=limit)
    return (await session.scalars(statement)).all()


async def in_force_of(session: ReadSession, plan_ids: Sequence[UUID]) -> dict[UUID, list[tuple[PlanInForceRow, str]]]:
    """The nodes on which plans are in force, with the nodes' names, by plan."""
    statement = (
        select(PlanInForceRow, NodeRow.name)
        .join(NodeRow, NodeRow.id == PlanInForceRow.node_id)
        .where(PlanInForceRow.plan_id.in_(plan_ids))
        .order_by(NodeRow.name, NodeRow.id)
    )
    found: dict[UUID, list[tuple[PlanInForceRow, str]]] = {}
    for row, name in await session.execute(statement):
        assert row.plan_id is not None
        found.setdefault(row.plan_id, []).append((row, name))
    return found


async def set_outcome(
    session: WriteSession, node_id: UUID, outcome: str, at: datetime | None, checks: list[dict[str, Any]]
) -> bool:
    """Keep what a node's newest report, of this time, says of its plan in force. False: there is a newer one."""
    is_newest = (
        select(NodeRow.id).where(NodeRow.id == node_id, NodeRow.last_report_at.is_not_distinct_from(at)).exists()
    )
    statement = update(PlanInForceRow).where(PlanInForceRow.node_id == node_id, is_newest)
    values = {"outcome": outcome, "verified_at": at, "checks": checks}
    statement = statement.values(**values).execution_options(synchronize_session=False)
    return await session.scalar(statement.returning(PlanInForceRow.node_id)) is not None


async def newest_runs(session: ReadSession, node_ids: Collection[UUID]) -> dict[UUID, tuple[UUID, datetime]]:
    """The newest run of each of some nodes and when it began; without those that have none."""
    statement = select(NodeRow.id, RunRow.id, RunRow.started_at).join(
        NodeRow, (NodeRow.id == RunRow.node_id) & (NodeRow.latest_run_id == RunRow.id)
    )
    found = await session.execute(statement.where(NodeRow.id.in_(node_ids)))
    return {node_id: (run_id, started_at) for node_id, run_id, started_at in found}


async def add_versions(session: WriteSession, versions: Sequence[ScenarioVersionRow]) -> None:
    """Keep a version of each of some scenarios, and of the versions before it the newest MAX_VERSIONS - 1."""
    session.add_all(versions)
    await session.flush()
    for version in versions:
        if version.version > MAX_VERSIONS:
            too_old = ScenarioVersionRow.version <= version.version - MAX_VERSIONS
            await session.execute(
                delete(ScenarioVersionRow).where(ScenarioVersionRow.scenario_id == version.scenario_id, too_old)
            )


async def list_versions(session: ReadSession, scenario_id: UUID, *, before: int | None, limit: int) -> Sequence[Any]:
    """The versions of a scenario, newest first, each with its document as the text that is kept."""
    statement = select(ScenarioVersionRow).where(ScenarioVersionRow.scenario_id == scenario_id)
    if before is not None:
        statement = statement.where(ScenarioVersionRow.version < before)
    # Chosen first: where PostgreSQL sorts, it would unpack the documents of all.
    row = statement.order_by(ScenarioVersionRow.version.desc()).limit(limit).subquery().c
    columns = (row.scenario_id, row.version, row.name, row.node_id, row.saved_at, row.saved_by)
    statement = select(*columns, cast(row.document, Text).label("document")).order_by(row.version.desc())
    return (await session.execute(statement)).all()
