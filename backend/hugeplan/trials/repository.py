"""Statements about trials."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Text, delete, exists, func, literal, select, union
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import defer, load_only

from hugeplan.access.machines import MAX_CLONES
from hugeplan.db.base import newest_first
from hugeplan.db.models import Machine, NodeRow, TrialRow
from hugeplan.db.models.trials import IS_PREDICTED
from hugeplan.db.session import ReadSession, WriteSession

_KEY: Final = (TrialRow.ordered_at, TrialRow.id)
_MOST_OF_A_NODE: Final = 5  # among those of its machine type
_NO_DOCUMENT: Final = defer(TrialRow.document, raiseload=True)


async def nodes_of_machine(session: ReadSession, machine_id: str) -> Sequence[NodeRow]:
    """The node that reports under a machine id, and those of its clones."""
    of_both = union(
        select(literal(machine_id).label("id")),  # by either side of an OR all nodes would be read
        select(Machine.node_machine_id).where(Machine.machine_id == machine_id),
    ).subquery()
    of_node = load_only(NodeRow.name, NodeRow.machine_id, NodeRow.cpu_brand)
    statement = select(NodeRow).join(of_both, of_both.c.id == NodeRow.machine_id).order_by(NodeRow.machine_id)
    return (await session.scalars(statement.options(of_node))).all()


async def delete_past(session: WriteSession, node_id: UUID, most: int) -> set[UUID]:
    """Delete the trials of a node past the most: those that its agent did not send first, of each kind the oldest."""
    kept = (TrialRow.is_own.is_(False), TrialRow.stored_at.desc(), TrialRow.id)
    past = select(TrialRow.id).where(TrialRow.node_id == node_id).order_by(*kept).offset(most)
    statement = delete(TrialRow).where(TrialRow.node_id == node_id, TrialRow.id.in_(past)).returning(TrialRow.id)
    return set((await session.scalars(statement.execution_options(synchronize_session=False))).all())


async def insert_trial(session: WriteSession, values: dict[str, Any]) -> bool:
    """Store a trial. False when the node has one of that id."""
    statement = insert(TrialRow).values(values).on_conflict_do_nothing().returning(TrialRow.id)
    return (await session.execute(statement)).scalar_one_or_none() is not None


async def content_of(session: ReadSession, node_id: UUID, trial_id: UUID) -> bytes | None:
    """The digest of what is stored under an id of a node."""
    statement = select(TrialRow.content_sha256).where(TrialRow.node_id == node_id, TrialRow.id == trial_id)
    return (await session.execute(statement)).scalar_one_or_none()


TrialOfNode = tuple[TrialRow, str, str | None]


async def list_trials(
    session: ReadSession, node_id: UUID | None, *, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[TrialOfNode]:
    """Trials of a node, or of all, without their documents, with nodes' names and machine types, newest first."""
    statement = select(TrialRow, NodeRow.name, NodeRow.machine_type).join(NodeRow, NodeRow.id == TrialRow.node_id)
    if node_id is not None:
        statement = statement.where(TrialRow.node_id == node_id)
    found = await session.execute(newest_first(statement.options(_NO_DOCUMENT), *_KEY, after=after, limit=limit))
    return [(row, name, kind) for row, name, kind in found]


def _own_first(trial: Any) -> tuple[ColumnElement[Any], ...]:
    """What others say of a node stands behind all that its agent says."""
    return trial.is_own.is_(False), trial.ordered_at.desc(), trial.id.desc()


async def newest_summaries(session: ReadSession, node_id: UUID, *, limit: int) -> Sequence[tuple[UUID, dict[str, Any]]]:
    """Ids and summaries of a node's newest trials: those that its agent sent, then those of others."""
    statement = select(TrialRow.id, TrialRow.summary).where(TrialRow.node_id == node_id)
    statement = statement.order_by(*_own_first(TrialRow)).limit(limit)
    return [(trial_id, summary) for trial_id, summary in await session.execute(statement)]


async def predictions(
    session: ReadSession, node_ids: Collection[UUID], *, most: int
) -> Sequence[tuple[str, str, bool, str]]:
    """Machine type, machine, whether its own agent sent it, and predictions (JSON) of trials of each machine type of
    some nodes: of each machine its newest, then of each the one before, agents' before all that others sent. A machine
    with its clones (~) is one: who holds its token speaks for all. A processor without a name is no type, and what a
    synthetic node says was not measured.
    """
    of_nodes = select(NodeRow.machine_type).where(NodeRow.id.in_(node_ids), NodeRow.cpu_brand.is_not(None))
    kinds = of_nodes.distinct().subquery()
    types = kinds.c
    tried = select(NodeRow.id.label("node_id"), func.split_part(NodeRow.machine_id, "~", 1).label("machine"))
    tried = tried.where(NodeRow.machine_type == types.machine_type).correlate(kinds)
    tried = tried.where(NodeRow.cpu_brand.is_not(None), NodeRow.synthetic.is_(False))
    of_agents, of_all = (  # however many nodes others send trials of
        tried.where(moment.is_not(None)).order_by(moment.desc()).limit(most + MAX_CLONES)
        for moment in (NodeRow.own_tried_at, NodeRow.tried_at)
    )
    node = of_agents.union(of_all).lateral().c
    made = select(TrialRow.id, TrialRow.ordered_at, TrialRow.is_own)
    made = made.where(TrialRow.node_id == node.node_id, IS_PREDICTED).order_by(*_own_first(TrialRow))
    trial = made.limit(_MOST_OF_A_NODE).lateral().c
    machine = (types.machine_type, node.machine)
    turn = func.row_number().over(partition_by=machine, order_by=_own_first(trial)).label("turn")
    of = select(types.machine_type, node.machine, node.node_id, *trial, turn).subquery().c
    number = func.row_number().over(
        partition_by=of.machine_type, order_by=(of.is_own.is_(False), of.turn, *_own_first(of))
    )
    is_own = of.is_own.is_not(False).label("is_own")
    found = select(of.machine_type, of.machine, of.node_id, of.id, is_own, number.label("number")).subquery().c
    of_it = (TrialRow.node_id == found.node_id, TrialRow.id == found.id)
    # Of those that are taken alone is the summary opened, and none is looked for among all.
    predicted = select(TrialRow.summary["predicted"].cast(Text)).where(*of_it).scalar_subquery()
    statement = select(found.machine_type, found.machine, found.is_own, predicted).where(found.number <= most)
    return [tuple(row) for row in await session.execute(statement.order_by(found.number))]


async def nodes_with_trials(session: ReadSession, node_ids: Collection[UUID]) -> set[UUID]:
    """Those of some nodes of which trials are kept."""
    has_some = exists().where(TrialRow.node_id == NodeRow.id)
    return set((await session.scalars(select(NodeRow.id).where(NodeRow.id.in_(node_ids), has_some))).all())


async def get_trial(session: ReadSession, trial_id: UUID) -> TrialRow | None:
    """A trial with its document: of two nodes with one of that id it is the first that came, which none takes over."""
    statement = select(TrialRow).where(TrialRow.id == trial_id).order_by(TrialRow.stored_at).limit(1)
    return (await session.execute(statement)).scalar_one_or_none()
