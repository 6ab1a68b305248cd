"""Requests and responses about tokens, sessions and roles."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from hugeplan.api.schemas import MachineId, Name, RequestModel, ResponseModel


class Role(StrEnum):
    """What a credential may do; each of viewer, planner and admin includes the one before.

    ``agent`` may only post reports of one node; ``enrolment`` may only mint agent tokens.
    """

    AGENT = "agent"
    ENROLMENT = "enrolment"
    VIEWER = "viewer"
    PLANNER = "planner"
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


class TokenCreate(RequestModel):
    """A new credential. An agent token without ``machine_id`` binds to the first machine that reports with it."""

    name: Name
    role: Role
    machine_id: MachineId | None = None
    expires_in_seconds: Annotated[int, Field(ge=60, le=10 * 366 * 86400)] | None = None


class Token(ResponseModel):
    """A credential, without its secret."""

    id: UUID
    name: str
    role: Role
    machine_id: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class TokenCreated(Token):
    """A new credential with its secret, which is shown only here."""

    token: str


class EnrolmentRequest(RequestModel):
    """A machine that asks for its own agent token, authenticated by an enrolment token."""

    machine_id: MachineId
    node_name: Name


class TokenRevoked(ResponseModel):
    """The credential can no longer be used."""

    id: UUID
    status: Literal["revoked"]
