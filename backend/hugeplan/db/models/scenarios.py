"""Tables of saved scenarios and plans."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base, JsonDocument, JsonObject


class ScenarioRow(Base):
    """A saved what-if input. ``version`` grows by one with each edit and is the ETag.

    ``is_gone``: somebody has deleted it; it is there until all that was made of it is gone, or refers to it no more.
    """

    __tablename__ = "scenarios"
    __table_args__ = (
        CheckConstraint("version > 0", name="version"),
        Index(None, "updated_at", "id"),
        Index(None, "id", postgresql_where=text("is_gone")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    node_id: Mapped[UUID | None] = mapped_column(ForeignKey("nodes.id", ondelete="SET NULL"), index=True)
    version: Mapped[int]
    document: Mapped[JsonDocument]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    is_gone: Mapped[bool] = mapped_column(server_default=text("false"))


class PlanRow(Base):
    """A kept plan. What it is never changes: inputs, result, files, and where they come from.

    ``scenario`` and ``request`` are all its inputs: the document, and what ``plan()`` took with the node's facts, from
    the sample of ``sampled_at`` and the run ``run_id``. ``schema_version`` is the form of ``plan``, ``model_version``
    the planner that computed it. ``digest`` is the SHA-256 of all of it (``hugeplan.documents.plan_digest``); null in
    plans of before. ``artifacts`` are the files without the line that names the digest.

    What was decided about it changes: ``state``, whose ``version`` is the ETag. ``in_force`` and what follows from it
    is written by a trigger of the table plans_in_force. ``stale`` says what a newer sample changed.
    """

    __tablename__ = "plans"
    __table_args__ = (
        CheckConstraint("state IN ('draft', 'proposed', 'approved', 'in_force', 'superseded')", name="state"),
        Index(None, "scenario_id", "created_at", "id"),
        Index(None, "node_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        Index(None, "fleet_plan_id", "node_id"),
        Index(None, "state", "created_at", "id"),
        Index(None, "author_id", postgresql_where=text("state IN ('draft', 'proposed')")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    scenario_id: Mapped[UUID | None] = mapped_column(ForeignKey("scenarios.id", ondelete="SET NULL"))
    scenario_version: Mapped[int | None]
    fleet_plan_id: Mapped[UUID | None] = mapped_column(ForeignKey("fleet_plans.id", ondelete="SET NULL"))
    node_id: Mapped[UUID | None]
    node_name: Mapped[str | None]
    created_at: Mapped[datetime]
    headline: Mapped[str]
    schema_version: Mapped[int] = mapped_column(server_default=text("1"))
    model_version: Mapped[str | None]
    author: Mapped[str | None]
    author_id: Mapped[UUID | None]
    sampled_at: Mapped[datetime | None]
    run_id: Mapped[UUID | None]
    run_at: Mapped[datetime | None]
    digest: Mapped[str | None]
    scenario: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    request: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    plan: Mapped[JsonDocument]
    verdict: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    artifacts: Mapped[list[JsonObject]] = mapped_column(JSON)

    version: Mapped[int] = mapped_column(server_default=text("1"))
    state: Mapped[str] = mapped_column(server_default=text("'draft'"))
    state_at: Mapped[datetime | None]
    proposed_by: Mapped[str | None]
    proposed_by_id: Mapped[UUID | None]
    proposed_at: Mapped[datetime | None]
    approved_by: Mapped[str | None]
    approved_by_id: Mapped[UUID | None]
    approved_at: Mapped[datetime | None]
    approval_ended_at: Mapped[datetime | None]
    replaces: Mapped[UUID | None]
    superseded_by: Mapped[UUID | None]
    stale: Mapped[list[JsonObject] | None] = mapped_column(JSONB(none_as_null=True))
    checked_sample_at: Mapped[datetime | None]


class ScenarioVersionRow(Base):
    """A version of a scenario as it was saved. Never changed."""

    __tablename__ = "scenario_versions"

    scenario_id: Mapped[UUID] = mapped_column(ForeignKey("scenarios.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    node_id: Mapped[UUID | None]
    document: Mapped[JsonDocument]
    saved_at: Mapped[datetime]
    saved_by: Mapped[str | None]
