"""Credentials: making, checking and ending them.

Secrets are 256 random bits, so one round of SHA-256 protects them as well as a slow hash would: there is
nothing to guess (docs/adr/0004). A secret leaves this module once, when it is made.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hugeplan.access import repository
from hugeplan.access.schemas import EnrolmentRequest, Role, Session, Token, TokenCreate, TokenCreated, TokenRevoked
from hugeplan.api.pagination import Page, decode_time_cursor, page_of
from hugeplan.api.problems import (
    FieldProblem,
    ForbiddenError,
    NotFoundError,
    UnauthenticatedError,
    invalid_input,
)
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.db.models import BrowserSession
from hugeplan.db.models import Token as TokenRow
from hugeplan.db.session import ReadSession, WriteSession

TOKEN_PREFIX = "hp_"  # noqa: S105 - a prefix, so that a leaked token is recognised by scanners
_BROWSER_ROLES = frozenset({Role.VIEWER, Role.PLANNER, Role.ADMIN})
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="hugeplan"'}


class MissingCredentialError(UnauthenticatedError):
    """The request has no credential."""


class WrongCredentialError(UnauthenticatedError):
    """The request has a credential that is unknown, expired or revoked."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request showed: a bearer token, or the secret of a session cookie."""

    secret: str
    is_session: bool


@dataclass(frozen=True, slots=True)
class Actor:
    """Who a request is. ``csrf_token`` and ``session_id`` are set for browser sessions only."""

    token_id: UUID
    name: str
    role: Role
    machine_id: str | None
    expires_at: datetime | None
    session_id: UUID | None = None
    csrf_token: str | None = None


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A new browser session and the secret of its cookie."""

    secret: str
    session: Session


@dataclass(frozen=True, slots=True)
class LoginLimit:
    """The bucket that a failed login draws from."""

    limiter: RateLimiter
    address: str
    per_minute: int

    def spend(self) -> None:
        """Take one failed login; RateLimitedError when there were too many."""
        self.limiter.spend("login", self.address, self.per_minute)


def new_secret() -> str:
    """A fresh token: the prefix and 256 random bits."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> bytes:
    """SHA-256 of a secret, 32 bytes."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def csrf_token_of(session_secret: str) -> str:
    """The CSRF token of a session: derived from its secret, so that it needs no storage and ends with it."""
    return hmac.new(session_secret.encode("utf-8", "surrogatepass"), b"csrf", hashlib.sha256).hexdigest()


def is_same_secret(given: str, expected: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def no_credential() -> MissingCredentialError:
    """The refusal of a request without a credential."""
    return MissingCredentialError("Send Authorization: Bearer TOKEN, or log in.", headers=_CHALLENGE)


def wrong_credential(credential: Credential) -> WrongCredentialError:
    """The refusal of a credential that is not good."""
    if credential.is_session:
        return WrongCredentialError("This session has ended. Log in again.", headers=_CHALLENGE)
    return WrongCredentialError("This token is unknown, expired or revoked.", headers=_CHALLENGE)


async def authenticate(session: ReadSession, credential: Credential | None) -> Actor:
    """The actor behind a credential. MissingCredentialError or WrongCredentialError when there is none."""
    if credential is None:
        raise no_credential()
    now = datetime.now(UTC)
    secret_sha256 = hash_secret(credential.secret)
    if credential.is_session:
        found = await repository.session_by_secret(session, secret_sha256, now)
        if found is None:
            raise wrong_credential(credential)
        browser_session, token = found
        csrf_token = csrf_token_of(credential.secret)
        return _actor(token, browser_session.expires_at, browser_session.id, csrf_token)
    row = await repository.token_by_secret(session, secret_sha256, now)
    if row is None:
        raise wrong_credential(credential)
    return _actor(row, row.expires_at)


def _actor(
    token: TokenRow, expires_at: datetime | None, session_id: UUID | None = None, csrf_token: str | None = None
) -> Actor:
    return Actor(
        token_id=token.id,
        name=token.name,
        role=Role(token.role),
        machine_id=token.machine_id,
        expires_at=expires_at,
        session_id=session_id,
        csrf_token=csrf_token,
    )


def describe(actor: Actor) -> Session:
    """The actor as it sees itself."""
    return Session(role=actor.role, name=actor.name, csrf_token=actor.csrf_token, expires_at=actor.expires_at)


async def open_session(session: WriteSession, token: str, hours: int, limit: LoginLimit) -> OpenedSession:
    """Log a browser in. Failed attempts are limited; tokens of machines cannot log in."""
    now = datetime.now(UTC)
    row = await repository.token_by_secret(session, hash_secret(token), now)
    if row is None:
        limit.spend()
        raise WrongCredentialError(
            "This token is unknown, expired or revoked.",
            [FieldProblem(field="token", value=None, expected="a token of a viewer, planner or admin")],
            _CHALLENGE,
        )
    if Role(row.role) not in _BROWSER_ROLES:
        raise ForbiddenError(f"A token with the role {row.role} cannot log in.")
    secret = secrets.token_urlsafe(32)
    expires_at = now + timedelta(hours=hours)
    if row.expires_at is not None:
        expires_at = min(expires_at, row.expires_at)
    opened = BrowserSession(
        id=uuid.uuid4(), secret_sha256=hash_secret(secret), token_id=row.id, created_at=now, expires_at=expires_at
    )
    await repository.add_session(session, opened)
    await repository.touch(session, row.id, now)
    return OpenedSession(secret, describe(_actor(row, expires_at, opened.id, csrf_token_of(secret))))


async def close_session(session: WriteSession, actor: Actor) -> None:
    """Log out. A bearer token has no session to close, and nothing happens."""
    if actor.session_id is not None:
        await repository.delete_session(session, actor.session_id)


async def create_token(session: WriteSession, body: TokenCreate) -> TokenCreated:
    """Make a credential."""
    if body.machine_id is not None and body.role is not Role.AGENT:
        problem = FieldProblem(field="machine_id", value=body.machine_id, expected="null unless role is agent")
        raise invalid_input([problem])
    expires_in = None if body.expires_in_seconds is None else timedelta(seconds=body.expires_in_seconds)
    return await mint(session, name=body.name, role=body.role, machine_id=body.machine_id, expires_in=expires_in)


async def mint(
    session: WriteSession,
    *,
    name: str,
    role: Role,
    machine_id: str | None = None,
    expires_in: timedelta | None = None,
    secret: str | None = None,
) -> TokenCreated:
    """Store a credential and return it with its secret, a fresh one unless given."""
    now = datetime.now(UTC)
    chosen = secret or new_secret()
    row = TokenRow(
        id=uuid.uuid4(),
        name=name,
        role=role.value,
        secret_sha256=hash_secret(chosen),
        machine_id=machine_id,
        created_at=now,
        expires_at=None if expires_in is None else now + expires_in,
    )
    await repository.add_token(session, row)
    return TokenCreated(**_token(row).model_dump(), token=chosen)


def _token(row: TokenRow) -> Token:
    return Token.model_validate(row)


async def list_tokens(session: ReadSession, *, include_revoked: bool, limit: int, cursor: str | None) -> Page[Token]:
    """Credentials, newest first."""
    after = decode_time_cursor(cursor)
    rows = await repository.list_tokens(session, include_revoked=include_revoked, after=after, limit=limit + 1)
    items, next_cursor = page_of(rows, limit, lambda row: (row.created_at.isoformat(), str(row.id)), _token)
    return Page(items=items, next_cursor=next_cursor)


async def revoke_token(session: WriteSession, token_id: UUID) -> TokenRevoked:
    """Revoke a credential."""
    if not await repository.revoke(session, token_id, datetime.now(UTC)):
        raise NotFoundError(f"There is no usable token {token_id}.")
    return TokenRevoked(id=token_id, status="revoked")


async def enrol(session: WriteSession, body: EnrolmentRequest) -> TokenCreated:
    """Mint the agent token of a machine, ending its former ones."""
    await repository.revoke_agents_of(session, body.machine_id, datetime.now(UTC))
    return await mint(session, name=body.node_name, role=Role.AGENT, machine_id=body.machine_id)


async def authorise_report(session: WriteSession, actor: Actor, machine_id: str) -> None:
    """Allow an agent to report only for its own machine; an unbound token binds to the first one it names."""
    bound = actor.machine_id
    if bound is None:
        bound = await repository.bind_machine(session, actor.token_id, machine_id)
    if bound != machine_id:
        raise ForbiddenError(
            "This agent token belongs to another machine. Enrol this machine, or use its own token.",
            [FieldProblem(field="machine_id", value=machine_id, expected="the machine the token was enrolled for")],
        )
    await repository.touch(session, actor.token_id, datetime.now(UTC))
