"""Trials: a narrow row for lists, the document beside it."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import ForeignKey, Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base, JsonObject

IS_PREDICTED: Final = text("coalesce(summary -> 'predicted', '{}') <> '{}'")
"""Whether a trial has predictions, as its index has it: it is told without opening the summary."""
_OWN_FIRST: Final = (text("(is_own IS FALSE)"), text("ordered_at DESC"), text("id DESC"))


class TrialRow(Base):
    """One ``hugeplan trial`` of a node. ``summary`` is the document without its blocks, ``document`` all of it.

    ``ordered_at`` is ``started_at``, but never later than the arrival: a wrong clock does not stay newest for ever.
    ``is_own``: its node's agent sent it; null: not known.
    """

    __tablename__ = "trials"
    __table_args__ = (
        Index(None, "id"),
        Index(None, "ordered_at", "id"),
        Index(None, "node_id", "ordered_at", "id"),
        Index("ix_trials_predicted", "node_id", "ordered_at", "id", postgresql_where=IS_PREDICTED),
        Index("ix_trials_own_predicted", "node_id", *_OWN_FIRST, postgresql_where=IS_PREDICTED),
    )

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    started_at: Mapped[datetime]
    ordered_at: Mapped[datetime]
    stored_at: Mapped[datetime]
    content_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    summary: Mapped[JsonObject] = mapped_column(JSONB)
    document: Mapped[bytes] = mapped_column(LargeBinary)
    is_own: Mapped[bool | None]
