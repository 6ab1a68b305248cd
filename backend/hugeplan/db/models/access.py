"""Tables of credentials. Only hashes of secrets are stored."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, LargeBinary, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.schema import FetchedValue

from hugeplan.db.base import Base, JsonbObject

#: Agents' tokens without an end, of which a line has one.
IS_IN_FORCE = text("role = 'agent' AND expires_at IS NULL AND revoked_at IS NULL")


class Token(Base):
    """A credential. ``secret_sha256`` is the SHA-256 of a random 256-bit secret (docs/adr/0004)."""

    __tablename__ = "tokens"
    __table_args__ = (
        CheckConstraint("role IN ('agent', 'enrolment', 'viewer', 'planner', 'approver', 'admin')", name="role"),
        CheckConstraint("octet_length(secret_sha256) = 32", name="secret_sha256"),
        CheckConstraint("machine_id IS NULL OR role = 'agent'", name="machine_id"),
        Index(None, "created_at", "id"),
        Index(None, "machine_id"),
        Index(None, "line_id", "created_at"),
        Index("ix_tokens_in_force", "created_at", postgresql_where=IS_IN_FORCE),
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
    # The token that this one took over from; both are good until the older one expires.
    replaces: Mapped[UUID | None]
    # The first token of its line, which all have that came of it by rotation; a trigger fills it in.
    line_id: Mapped[UUID] = mapped_column(server_default=FetchedValue())
    # A person of an OpenID provider, as issuer and subject; such a row has a secret that nobody knows.
    oidc_subject: Mapped[str | None] = mapped_column(unique=True)
    # Of an enrolment token: how many machines it has enrolled, how many it may, and what their names look like.
    enrolments: Mapped[int] = mapped_column(server_default=text("0"))
    max_enrolments: Mapped[int | None]
    name_pattern: Mapped[str | None]
    # Of an agent token: the hash of what its machine made up before it asked, so that a lost answer can be asked again.
    claim_sha256: Mapped[bytes | None] = mapped_column(LargeBinary)


class BrowserSession(Base):
    """A browser's login, opened with a token and ended with it."""

    __tablename__ = "browser_sessions"
    __table_args__ = (CheckConstraint("octet_length(secret_sha256) = 32", name="secret_sha256"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    secret_sha256: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    token_id: Mapped[UUID] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    # When a token was last shown; a session that a link made has its maker's. None: of an older version, long ago.
    logged_in_at: Mapped[datetime | None]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    address: Mapped[str | None]
    user_agent: Mapped[str | None]


class LoginLink(Base):
    """A login that may be opened once, soon, for a token. Deleted when it is used."""

    __tablename__ = "login_links"
    __table_args__ = (CheckConstraint("octet_length(secret_sha256) = 32", name="secret_sha256"),)

    secret_sha256: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    token_id: Mapped[UUID] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    # Of a link that a browser session made: its login, and its end. The new session is neither fresher nor longer.
    logged_in_at: Mapped[datetime | None]
    sessions_end_at: Mapped[datetime | None]


class OidcLogin(Base):
    """A login that was sent to the OpenID provider and has not come back yet. Deleted when it does."""

    __tablename__ = "oidc_logins"

    state_sha256: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    nonce: Mapped[str]
    code_verifier: Mapped[str]
    expires_at: Mapped[datetime]


class EnrolmentApproval(Base):
    """An administrator's yes to one new enrolment of a known machine. Deleted when it is used."""

    __tablename__ = "enrolment_approvals"

    machine_id: Mapped[str] = mapped_column(primary_key=True)
    approved_by: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class EnrolmentRequestRow(Base):
    """A machine that asked to enrol again and was not let in. ``decision`` is an administrator's: approved, refused.

    ``claim_sha256`` tells one asker from another: an approval is for the one that holds the claim. Deleted when the
    machine enrols.
    """

    __tablename__ = "enrolment_requests"
    __table_args__ = (
        CheckConstraint("decision IN ('approved', 'refused')", name="decision"),
        UniqueConstraint("node_machine_id", "claim_sha256", postgresql_nulls_not_distinct=True),
        Index(None, "first_asked_at", "id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    node_machine_id: Mapped[str]
    machine_id: Mapped[str]
    claim_sha256: Mapped[bytes | None] = mapped_column(LargeBinary)
    node_name: Mapped[str]
    reason: Mapped[str]
    address: Mapped[str | None]
    token_name: Mapped[str]
    attempts: Mapped[int]
    first_asked_at: Mapped[datetime]
    last_asked_at: Mapped[datetime]
    decision: Mapped[str | None]
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None]


class Machine(Base):
    """A machine that has enrolled or reported, told from its clones. ``machine_id`` is what its agent says;
    ``node_machine_id`` is what its node has: the same for the first of a kind, with an addition for a clone.
    Hashes of the firmware's ids and of hardware addresses; null is unknown.
    """

    __tablename__ = "machines"
    __table_args__ = (Index(None, "machine_id"),)

    node_machine_id: Mapped[str] = mapped_column(primary_key=True)
    machine_id: Mapped[str]
    dmi_sha256: Mapped[str | None]
    mac_sha256: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    boot_id: Mapped[str | None]
    former_boot_ids: Mapped[list[str]] = mapped_column(ARRAY(Text))
    # When the first sample of the present boot was taken, by the machine's clock.
    boot_since: Mapped[datetime | None]
    boots_interleaved: Mapped[bool]
    first_seen_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]


class AuditEvent(Base):
    """A change that somebody made. The table has a trigger that refuses to change or delete a row."""

    __tablename__ = "audit_events"
    __table_args__ = (
        Index(None, "at", "id"),
        Index(None, "subject_id", "at", "id"),
        Index(None, "actor_name", "at", "id"),
        Index(None, "action", "at", "id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    at: Mapped[datetime]
    actor_id: Mapped[UUID | None]
    actor_name: Mapped[str]
    actor_role: Mapped[str | None]
    address: Mapped[str | None]
    action: Mapped[str]
    subject_kind: Mapped[str]
    subject_id: Mapped[str]
    detail: Mapped[JsonbObject]
