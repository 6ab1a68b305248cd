"""Tables of fleet plans: jobs, their groups of like nodes, and one line per node."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, SmallInteger, false, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base, JsonbObject, JsonObject


class FleetPlanRow(Base):
    """One job: a scenario over the nodes of a selector; None: each node as it runs. ``heartbeat_at`` tells a job that
    runs from an abandoned one. ``author_id`` is the credential, null in those of before; ``stored_bytes`` what it takes
    with its groups and nodes, once it has ended.
    """

    __tablename__ = "fleet_plans"
    __table_args__ = (
        CheckConstraint("status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="status"),
        Index(None, "created_at", "id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    created_at: Mapped[datetime]
    created_by: Mapped[str]
    status: Mapped[str]
    cancel_requested: Mapped[bool] = mapped_column(server_default=false())
    selector: Mapped[JsonbObject]
    scenario: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    model_version: Mapped[str]
    nodes_total: Mapped[int]
    nodes_done: Mapped[int]
    plans_computed: Mapped[int]
    started_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    error: Mapped[str | None]
    summary: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    author_id: Mapped[UUID | None]
    stored_bytes: Mapped[int] = mapped_column(server_default=text("0"))


class FleetPlanGroupRow(Base):
    """Nodes of one job that get the same pools and files, with the whole plan of the one with the least memory.

    ``files_key`` tells the files of groups apart; null where the plan does not fit, and in jobs of earlier versions.
    """

    __tablename__ = "fleet_plan_groups"

    fleet_plan_id: Mapped[UUID] = mapped_column(ForeignKey("fleet_plans.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    nodes: Mapped[int]
    machine_type: Mapped[str | None]
    headline: Mapped[str]
    pools: Mapped[list[JsonObject]] = mapped_column(JSONB)
    plan: Mapped[JsonObject] = mapped_column(JSON)
    files_key: Mapped[str | None]
    figures: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))


class FleetPlanNodeRow(Base):
    """One node's line of a job. ``position`` puts exceptions first; ``severity`` 2 is wrong, 1 attention, 0 fine."""

    __tablename__ = "fleet_plan_nodes"

    fleet_plan_id: Mapped[UUID] = mapped_column(ForeignKey("fleet_plans.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    node_id: Mapped[UUID]
    name: Mapped[str]
    severity: Mapped[int] = mapped_column(SmallInteger)
    exceptions: Mapped[list[str]] = mapped_column(JSONB)
    group_number: Mapped[int | None]
    mem_total_bytes: Mapped[int]
    locked_bytes: Mapped[int | None]
    free_bytes: Mapped[int | None]
    fits: Mapped[bool | None]
    missing_pages: Mapped[int | None]
    idle_pages: Mapped[int | None]
