"""What people change on a node: labels, the plan in force, and that it is gone."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from hugeplan.db.models import NodeRow
from hugeplan.db.session import WriteSession
from hugeplan.documents.decoding import convert
from hugeplan.documents.report import Sample
from hugeplan.errors import ConflictError, FieldProblem, NotFoundError, invalid_input
from hugeplan.events.records import Event, write_events
from hugeplan.fleet import repository
from hugeplan.fleet.findings.base import PlannedPool
from hugeplan.fleet.hardware_state import MeasuredState
from hugeplan.fleet.ingest.in_force import LABEL
from hugeplan.fleet.ingest.node_update import KeptFinding, Node
from hugeplan.fleet.overview_schemas import PlanInForceWrite
from hugeplan.fleet.present_names import called_otherwise
from hugeplan.fleet.service import unknown_node


async def set_labels(session: WriteSession, node_id: UUID, labels: dict[str, str]) -> None:
    """Write labels over the agent's; a label that is no longer written over keeps its value until the next report."""
    if LABEL in labels:
        expected = "no label that says which plan runs on the node: put an approved plan in force instead"
        raise invalid_input([FieldProblem(field=f"labels.{LABEL}", value=labels[LABEL], expected=expected)])
    node = await _locked(session, node_id)
    reported = {key: value for key, value in node.labels.items() if key not in node.labels_set}
    await repository.update_node(session, node_id, {"labels": reported | labels, "labels_set": labels})


async def delete_node(session: WriteSession, node_id: UUID, *, by: str) -> None:
    """Delete a node with everything that is stored of it. NotFoundError when it is gone already."""
    node = await _locked(session, node_id)
    await repository.delete_node(session, node_id)
    text = f"{node.name} was deleted by {by}."
    write_events(session, [Event(at=datetime.now(UTC), kind="node_deleted", node_name=node.name, text=text)])


async def require_approved(
    session: WriteSession, node_id: UUID, body: PlanInForceWrite, *, second_person: bool
) -> None:
    """ConflictError for a kept plan not approved for this node, and for pools where a second person is to approve."""
    plan_id = body.plan_id
    await repository.lock_node(session, node_id)  # before the plan, as reports do
    if second_person if plan_id is None else await repository.is_approved(session, plan_id, node_id) is False:
        raise ConflictError("Nobody approved this plan for this node: propose it and have it approved first.")


async def set_plan_in_force(
    session: WriteSession, node_id: UUID, body: PlanInForceWrite, *, by: str, source: str = "hand"
) -> None:
    """Put a plan in force and compare the node with it at once. ``source``: by hand, or because it was verified."""
    node = await _locked(session, node_id)
    pools = await _pools(session, node, body)
    now = datetime.now(UTC)
    await repository.put_plan_in_force(
        session, node_id, plan_id=body.plan_id, pools=msgspec.to_builtins(pools), source=source, since=now, by=by
    )
    text = f"A plan with {len(pools)} pools is in force on {node.name}, set by {by}."
    await _judge(session, node, tuple(pools), Event(at=now, kind="plan_in_force_set", text=text))


async def end_plan_in_force(session: WriteSession, node_id: UUID, *, by: str) -> None:
    """End the plan in force. NotFoundError when there is none."""
    node = await _locked(session, node_id)
    if not await repository.delete_plan_in_force(session, node_id):
        raise NotFoundError(f"There is no plan in force on node {node_id}.")
    text = f"No plan is in force on {node.name} any more, says {by}."
    await _judge(session, node, None, Event(at=datetime.now(UTC), kind="plan_in_force_ended", text=text))


async def _locked(session: WriteSession, node_id: UUID) -> NodeRow:
    node = await repository.lock_node(session, node_id)
    if node is None:
        raise unknown_node(node_id)
    return node


async def _pools(session: WriteSession, node: NodeRow, body: PlanInForceWrite) -> list[PlannedPool]:
    """The pools that are to be in force: those given, else those of the saved plan.

    ConflictError where that calls the node by another name.
    """
    if (body.plan_id is None) == (body.pools is None):
        raise invalid_input([FieldProblem(field="pools", value=None, expected="either plan_id or pools")])
    if body.pools is not None:
        keys = [(pool.numa_node, pool.page_bytes) for pool in body.pools]
        if len(set(keys)) != len(keys):
            expected = "each page size once per NUMA node"
            raise invalid_input([FieldProblem(field="pools", value=None, expected=expected)])
        return [PlannedPool(pool.page_bytes, pool.pages, pool.numa_node) for pool in body.pools]
    assert body.plan_id is not None
    plan = await repository.get_plan_pools(session, body.plan_id)
    if plan is None:
        raise NotFoundError(f"There is no plan {body.plan_id}.")
    name, planned = plan
    if name != node.name:
        raise ConflictError(called_otherwise(name, node.name))
    return [PlannedPool(pool["page_bytes"], pool["pages"], pool["numa_node"]) for pool in planned]


async def _judge(session: WriteSession, row: NodeRow, planned: tuple[PlannedPool, ...] | None, event: Event) -> None:
    """Compare a node with another plan by its newest report, and write what follows."""
    found = await repository.get_node_with_state(session, row.id)
    assert found is not None
    state = found[1]
    node = Node(
        id=row.id,
        name=row.name,
        is_new=False,
        sampled_at=row.sampled_at,
        labels_set=row.labels_set,
        measured=MeasuredState(),
        findings=msgspec.convert(state.findings, list[KeptFinding]),
        planned=planned,
    )
    event.node_id, event.node_name = row.id, row.name
    node.events.append(event)
    node.judge_plan(planned, convert(Sample, state.sample), event.at)
    await repository.update_node(session, row.id, node.columns)
    rows, counted = (msgspec.to_builtins(found) for found in (node.findings, node.counted_findings()))
    await repository.replace_findings(session, row.id, rows, counted)
    write_events(session, node.events)
