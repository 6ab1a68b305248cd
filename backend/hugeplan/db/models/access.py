"""Tables of credentials. Only hashes of secrets are stored."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base


class Token(Base):
    """A credential. ``secret_sha256`` is the SHA-256 of a random 256-bit secret (docs/adr/0004)."""

    __tablename__ = "tokens"
    __table_args__ = (
        CheckConstraint("role IN ('agent', 'enrolment', 'viewer', 'planner', 'admin')", name="role"),
        CheckConstraint("octet_length(secret_sha256) = 32", name="secret_sha256"),
        CheckConstraint("machine_id IS NULL OR role = 'agent'", name="machine_id"),
        Index(None, "created_at", "id"),
        Index(None, "machine_id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[str]
    secret_sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    machine_id: Mapped[str | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class BrowserSession(Base):
    """A browser's login, opened with a token and ended with it."""

    __tablename__ = "browser_sessions"
    __table_args__ = (CheckConstraint("octet_length(secret_sha256) = 32", name="secret_sha256"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    secret_sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    token_id: Mapped[UUID] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
