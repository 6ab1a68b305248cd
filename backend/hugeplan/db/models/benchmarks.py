"""Tables of runs: a narrow row for lists and choices, the document beside it, and what it says of page sizes."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import Double, ForeignKey, ForeignKeyConstraint, Index, LargeBinary, SmallInteger, false
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base, JsonObject


class RunRow(Base):
    """One execution of tlbbench.

    ``document`` is the whole document as it came (gzip, or plain text in rows of before), so that parsers can be rerun.
    ``ordered_at`` is ``started_at``, but never later than the arrival: a wrong clock does not stay newest for ever.
    A ``*_rank`` is 2 where that section is complete, 1 where it is there, 0 where it is not.
    """

    __tablename__ = "runs"
    __table_args__ = (Index(None, "id"), Index(None, "node_id", "ordered_at", "id"), Index(None, "ordered_at", "id"))

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    started_at: Mapped[datetime]
    stored_at: Mapped[datetime]
    ordered_at: Mapped[datetime]
    command: Mapped[str]
    profile: Mapped[str | None]
    tool_version: Mapped[str]
    duration_seconds: Mapped[float | None] = mapped_column(Double)
    geometry_rank: Mapped[int] = mapped_column(SmallInteger)
    latency_rank: Mapped[int] = mapped_column(SmallInteger)
    pressure_rank: Mapped[int] = mapped_column(SmallInteger)
    bad: Mapped[bool] = mapped_column(server_default=false())
    bad_reason: Mapped[str | None]
    sections: Mapped[list[JsonObject]] = mapped_column(JSONB)
    document: Mapped[bytes] = mapped_column(LargeBinary)


class RunWinsRow(Base):
    """How one backing did in the cases of one run: the sums that the win matrix of any set of runs is made of.

    ``wins`` counts cases won with intervals apart, ``lowest`` those with the smallest median, ``log_sum`` adds
    ln(time / time with base pages) over the ``log_count`` cases that have both. The backing ``tie`` counts in ``wins``.
    """

    __tablename__ = "run_wins"
    __table_args__ = (ForeignKeyConstraint(["node_id", "run_id"], ["runs.node_id", "runs.id"], ondelete="CASCADE"),)

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    backing: Mapped[str] = mapped_column(primary_key=True)
    cases: Mapped[int]
    wins: Mapped[int]
    lowest: Mapped[int]
    log_sum: Mapped[float] = mapped_column(Double)
    log_count: Mapped[int]
