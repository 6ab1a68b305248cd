"""Tables of webhooks and of what was sent to them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base


class WebhookRow(Base):
    """A receiver of events. ``secret`` signs what is sent, so it is kept as it is.

    ``last_event_id`` is the last event that was queued for it.
    """

    __tablename__ = "webhooks"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    url: Mapped[str]
    secret: Mapped[str]
    format: Mapped[str]
    kinds: Mapped[list[str]] = mapped_column(JSONB)
    last_event_id: Mapped[int]
    created_at: Mapped[datetime]
    created_by: Mapped[str]


class WebhookDeliveryRow(Base):
    """One event on its way to one receiver. ``finished_at`` with ``delivered`` false: given up. Low turns go first."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index(None, "webhook_id", "next_attempt_at", postgresql_where=text("finished_at IS NULL")),
        Index(None, "webhook_id", "turn", "event_id", postgresql_where=text("finished_at IS NULL")),
        Index(None, "finished_at"),
        Index(None, "webhook_id", "attempts", postgresql_where=text("NOT delivered")),
    )

    webhook_id: Mapped[UUID] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True)
    event_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempts: Mapped[int]
    turn: Mapped[int] = mapped_column(server_default=text("0"))
    next_attempt_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    delivered: Mapped[bool]
    last_status: Mapped[int | None]
    last_error: Mapped[str | None]
