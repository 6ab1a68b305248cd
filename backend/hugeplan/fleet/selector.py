"""Which nodes: the filter that lists, sums, fleet plans and the win matrix share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self

from fastapi import Depends, Query
from pydantic import Field, PrivateAttr
from sqlalchemy import ARRAY, ColumnElement, Text, Uuid, any_, cast, exists, func, select
from sqlalchemy.orm import aliased

from hugeplan.api.schemas import Label, RequestModel, Word
from hugeplan.db.models import NodeFindingRow, NodeRow
from hugeplan.db.session import ReadSession

STALE_AFTER = timedelta(minutes=15)
"""A node is stale without a report for this long: 15 reports at the agent's usual interval of a minute."""


def silence(last_report_at: datetime | None) -> str | None:
    """Since when a node is silent, for a person; None where it reports, or is gone."""
    if last_report_at is None or last_report_at >= datetime.now(UTC) - STALE_AFTER:
        return None
    return f"silent since {last_report_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


PlanState = Literal["match", "short", "idle", "drifted", "none"]


class NodeSelector(RequestModel):
    """Nodes that meet every condition that is given. Empty: all nodes. ``labels`` are ``key=value`` or ``key``."""

    q: Annotated[str, Field(max_length=253)] | None = Field(default=None, description="Part of the node's name")
    labels: list[Label] = Field(default=[], max_length=16, description="key=value, or key alone")
    machine_type: Label | None = None
    group: Word | None = Field(default=None, description="group_key of like nodes")
    architecture: Word | None = None
    finding: Word | None = Field(default=None, description="Code of a finding that holds")
    state: Literal["wrong", "attention"] | None = Field(
        default=None, description="Nodes with a finding in this state; with finding, that finding"
    )
    plan_state: PlanState | None = Field(default=None, description="The node beside its plan in force")
    stale: bool | None = None
    synthetic: bool | None = None
    _ids: str | None = PrivateAttr(None)

    async def once(self, session: ReadSession) -> Self:
        """The same nodes for several statements. All labels of the fleet are read for those that have one: once."""
        found = self.model_copy()
        if self.labels:
            ids = select(func.coalesce(func.string_agg(cast(NodeRow.id, Text), ","), ""))
            found._ids = await session.scalar(ids.where(*conditions(self)))  # one text: 20,000 values take 0.1 s here
        return found


async def _from_query(
    *,
    q: Annotated[str | None, Query(max_length=253, description="Part of the node's name")] = None,
    label: Annotated[list[Label], Query(max_length=16, description="key=value, or key alone; repeat for more")] = [],  # noqa: B006
    machine_type: Annotated[Label | None, Query(description="Processor and hypervisor")] = None,
    group: Annotated[Word | None, Query(description="group_key of like nodes")] = None,
    architecture: Annotated[Word | None, Query()] = None,
    finding: Annotated[Word | None, Query(description="Code of a finding that holds")] = None,
    state: Annotated[
        Literal["wrong", "attention"] | None,
        Query(description="Nodes with such a finding; with finding, that finding in this state"),
    ] = None,
    plan_state: Annotated[PlanState | None, Query(description="The node beside its plan in force")] = None,
    stale: Annotated[bool | None, Query(description="Whether the node stopped reporting")] = None,
    synthetic: Annotated[bool | None, Query(description="Whether the node is made up")] = None,
) -> NodeSelector:
    return NodeSelector(
        q=q,
        labels=label,
        machine_type=machine_type,
        group=group,
        architecture=architecture,
        finding=finding,
        state=state,
        plan_state=plan_state,
        stale=stale,
        synthetic=synthetic,
    )


Selected = Annotated[NodeSelector, Depends(_from_query)]


def conditions(selector: NodeSelector, now: datetime | None = None) -> list[ColumnElement[bool]]:
    """The conditions on ``nodes``."""
    if selector._ids is not None:
        return [NodeRow.id == any_(cast(func.string_to_array(selector._ids, ","), ARRAY(Uuid)))]
    found: list[ColumnElement[bool]] = []
    if selector.q:
        found.append(func.lower(NodeRow.name).contains(selector.q.lower(), autoescape=True))
    for label in selector.labels:
        key, separator, wanted_value = label.partition("=")
        found.append(NodeRow.labels.contains({key: wanted_value}) if separator else NodeRow.labels.has_key(key))
    for column, value in (
        (NodeRow.machine_type, selector.machine_type),
        (NodeRow.group_key, selector.group),
        (NodeRow.architecture, selector.architecture),
    ):
        if value is not None:
            found.append(column == value)
    if selector.synthetic is not None:
        found.append(NodeRow.synthetic.is_(selector.synthetic))
    if selector.finding is not None:
        # An alias: a statement that reads findings itself would make the subquery its own table.
        held = aliased(NodeFindingRow)
        wanted_finding = [held.node_id == NodeRow.id, held.code == selector.finding]
        if selector.state is not None:
            wanted_finding.append(held.state == selector.state)
        found.append(exists().where(*wanted_finding))
    elif selector.state is not None:
        found.append((NodeRow.findings_wrong if selector.state == "wrong" else NodeRow.findings_attention) > 0)
    if selector.plan_state is not None:
        wanted = selector.plan_state
        found.append(NodeRow.plan_state.is_(None) if wanted == "none" else NodeRow.plan_state == wanted)
    if selector.stale is not None:
        before = (now or datetime.now(UTC)) - STALE_AFTER
        found.append(NodeRow.last_report_at < before if selector.stale else NodeRow.last_report_at >= before)
    return found
