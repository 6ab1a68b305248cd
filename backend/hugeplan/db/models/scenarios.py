"""Tables of saved scenarios and plans."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base, JsonDocument, JsonObject


class ScenarioRow(Base):
    """A saved what-if input. ``version`` grows by one with each edit and is the ETag."""

    __tablename__ = "scenarios"
    __table_args__ = (CheckConstraint("version > 0", name="version"), Index(None, "updated_at", "id"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    node_id: Mapped[UUID | None] = mapped_column(ForeignKey("nodes.id", ondelete="SET NULL"), index=True)
    version: Mapped[int]
    document: Mapped[JsonDocument]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class PlanRow(Base):
    """A plan as computed from one version of a scenario, with its files. Never changed.

    ``scenario`` and ``request`` are all its inputs: the document, and what ``plan()`` took with the node's facts.
    ``schema_version`` is the form of ``plan``, ``model_version`` the planner that computed it.
    """

    __tablename__ = "plans"
    __table_args__ = (Index(None, "scenario_id", "created_at", "id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    scenario_id: Mapped[UUID] = mapped_column(ForeignKey("scenarios.id", ondelete="CASCADE"))
    scenario_version: Mapped[int]
    node_id: Mapped[UUID | None]
    created_at: Mapped[datetime]
    headline: Mapped[str]
    schema_version: Mapped[int] = mapped_column(server_default=text("1"))
    model_version: Mapped[str | None]
    author: Mapped[str | None]
    scenario: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    request: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    plan: Mapped[JsonDocument]
    artifacts: Mapped[list[JsonObject]] = mapped_column(JSON)


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
