"""Requests and responses about tokens, sessions and roles."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from hugeplan.api.schemas import JsonObject, MachineId, Name, RequestModel, ResponseModel
from hugeplan.documents.bounds import NameOfAny
from hugeplan.planner.printable import printable_name


class Role(StrEnum):
    """What a credential may do; each of viewer, planner, approver and admin includes the one before.

    ``agent`` may only post reports of one node; ``enrolment`` may only mint agent tokens.
    """

    AGENT = "agent"
    ENROLMENT = "enrolment"
    VIEWER = "viewer"
    PLANNER = "planner"
    APPROVER = "approver"
    ADMIN = "admin"


class SessionCreate(RequestModel):
    """A login with the token of a login link."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Session(ResponseModel):
    """Who is asking. ``csrf_token`` goes into the header X-CSRF-Token on every unsafe request of a browser
    session; it is null for requests that carry a bearer token.
    """

    role: Role
    name: str
    csrf_token: str | None
    expires_at: datetime | None


class EnrolmentLimits(RequestModel):
    """What an enrolment token may do: enrol so many new machines, and only those whose names match the pattern.

    ``name_pattern`` is a shell pattern: ``db-*`` or ``rack[0-9]-*``. Null is no limit.
    """

    max_enrolments: Annotated[int, Field(ge=1, le=10**6)] | None = None
    name_pattern: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = None


class TokenCreate(RequestModel):
    """A new credential. An agent token without ``machine_id`` binds to the first new machine that reports with it.

    ``limits`` are those of an enrolment token.
    """

    name: Name
    role: Role
    machine_id: MachineId | None = None
    expires_in_seconds: Annotated[int, Field(ge=60, le=10 * 366 * 86400)] | None = None
    limits: EnrolmentLimits | None = None


class Token(ResponseModel):
    """A credential, without its secret. ``enrolments`` counts the new machines that an enrolment token let in."""

    id: UUID
    name: str
    role: Role
    machine_id: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    replaces: UUID | None
    enrolments: int
    max_enrolments: int | None
    name_pattern: str | None


class TokenCreated(Token):
    """A new credential with its secret, which is shown only here."""

    token: str


class CloneHints(RequestModel):
    """Hashes of the firmware's ids and of permanent hardware addresses. Null is unknown."""

    dmi_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    mac_sha256: (
        Annotated[list[Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]], Field(max_length=256)] | None
    ) = None


class EnrolmentRequest(RequestModel):
    """A machine that asks for its own agent token, authenticated by an enrolment token.

    A machine that is known needs ``current_token``, its own agent token, or ``claim``, a random text that it kept when
    it asked for that token, or an approval, or must be recognised by the rest (docs/adr/0029). ``boot_id`` and
    ``clone_hints`` are those of its reports; they tell a clone from the machine whose id it has.
    """

    machine_id: MachineId
    node_name: Annotated[NameOfAny, AfterValidator(printable_name)]
    current_token: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    boot_id: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    clone_hints: CloneHints | None = None
    claim: Annotated[str, StringConstraints(min_length=32, max_length=256)] | None = None
    cpu_brand: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    mem_total_bytes: Annotated[int, Field(ge=1, le=2**60)] | None = None


class PendingEnrolment(ResponseModel):
    """A machine that asks to enrol again and was not let in. ``reason`` is what differs from what is known of it."""

    id: UUID
    machine_id: str
    node_machine_id: str
    node_name: str
    reason: str
    address: str | None
    token_name: str
    attempts: int
    first_asked_at: datetime
    last_asked_at: datetime
    decision: Literal["approved", "refused"] | None
    decided_by: str | None
    decided_at: datetime | None


class EnrolmentDecision(RequestModel):
    """An administrator's word on one request. An approval lets exactly its asker in, within a day."""

    decision: Literal["approved", "refused"]


class EnrolmentApprovalCreate(RequestModel):
    """Approval of one new enrolment of a known machine, or of one unbound token that reports for it."""

    machine_id: MachineId
    expires_in_seconds: Annotated[int, Field(ge=60, le=30 * 86400)] = 86400


class EnrolmentApproval(ResponseModel):
    """An approval that was not used yet."""

    machine_id: str
    approved_by: str
    expires_at: datetime


class TokenRotate(RequestModel):
    """A new secret in place of a token's. The old one stays good for ``overlap_seconds``, at most until it expires."""

    overlap_seconds: Annotated[int, Field(ge=0, le=30 * 86400)] = 3600


class LoginLink(ResponseModel):
    """A login for a browser that works once: /login#token=TOKEN."""

    token: str
    expires_at: datetime


class LoginMethods(ResponseModel):
    """How a browser may log in beside a token. ``oidc_url`` begins a login at the OpenID provider; null: none."""

    oidc_url: str | None


class BrowserSessionItem(ResponseModel):
    """A browser that is logged in. ``name`` and ``role`` are those of its token or person."""

    id: UUID
    token_id: UUID
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime
    address: str | None
    user_agent: str | None
    is_current: bool


class AuditEntry(ResponseModel):
    """A change: who made it, when, from where, what it was and what it was about. The log is never changed."""

    id: int
    at: datetime
    actor_id: UUID | None
    actor_name: str
    actor_role: str | None
    address: str | None
    action: str
    subject_kind: str
    subject_id: str
    detail: JsonObject


class TokenRevoked(ResponseModel):
    """The credential can no longer be used."""

    id: UUID
    status: Literal["revoked"]
