"""Tables of runs and curves: one row a curve, its points as parallel arrays."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Double, ForeignKey, ForeignKeyConstraint, Index
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base, JsonDocument, JsonObject

_Doubles = ARRAY(Double)
_Integers = ARRAY(BigInteger)


class RunRow(Base):
    """One execution of tlbbench. ``document`` is the whole document, so that parsers can be rerun."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "id"), Index(None, "node_id", "started_at", "id"))

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    started_at: Mapped[datetime]
    stored_at: Mapped[datetime]
    command: Mapped[str]
    profile: Mapped[str | None]
    tool_version: Mapped[str]
    duration_seconds: Mapped[float | None] = mapped_column(Double)
    sections: Mapped[list[JsonObject]] = mapped_column(JSONB)
    document: Mapped[JsonDocument]


class CurveRow(Base):
    """One measured series. All arrays have the same length; null elements are unknown."""

    __tablename__ = "curves"
    __table_args__ = (
        ForeignKeyConstraint(["node_id", "run_id"], ["runs.node_id", "runs.id"], ondelete="CASCADE"),
        CheckConstraint(
            "cardinality(x) = cardinality(ns_p50) AND cardinality(x) = cardinality(ns_min)"
            " AND cardinality(x) = cardinality(ns_p10) AND cardinality(x) = cardinality(ns_p90)"
            " AND cardinality(x) = cardinality(ns_mad) AND cardinality(x) = cardinality(batches)"
            " AND cardinality(x) = cardinality(dropped)",
            name="lengths",
        ),
    )

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    section: Mapped[str]
    name: Mapped[str]
    x_name: Mapped[str]
    backing: Mapped[str]
    backing_kind: Mapped[str | None]
    page_bytes: Mapped[int | None]
    layout: Mapped[str | None]
    granted_fraction: Mapped[float | None] = mapped_column(Double)
    status: Mapped[str]
    reason: Mapped[str | None]
    x: Mapped[list[int]] = mapped_column(_Integers)
    ns_min: Mapped[list[float | None]] = mapped_column(_Doubles)
    ns_p10: Mapped[list[float | None]] = mapped_column(_Doubles)
    ns_p50: Mapped[list[float | None]] = mapped_column(_Doubles)
    ns_p90: Mapped[list[float | None]] = mapped_column(_Doubles)
    ns_mad: Mapped[list[float | None]] = mapped_column(_Doubles)
    batches: Mapped[list[int | None]] = mapped_column(_Integers)
    dropped: Mapped[list[int | None]] = mapped_column(_Integers)
