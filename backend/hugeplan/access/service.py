"""Credentials: making, checking and ending them.

Secrets are 256 random bits, so one round of SHA-256 protects them as well as a slow hash would: there is
nothing to guess (docs/adr/0004). A secret leaves this module once, when it is made.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from hugeplan.access import machines, repository
from hugeplan.access.schemas import EnrolmentLimits, Role, Session, Token, TokenCreate, TokenCreated, TokenRevoked
from hugeplan.api.pagination import Page, decode_time_cursor, page_of
from hugeplan.db.locks import LockOfOne, lock_one
from hugeplan.db.models import Machine
from hugeplan.db.models import Token as TokenRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import (
    ConflictError,
    FieldProblem,
    ForbiddenError,
    NotFoundError,
    RateLimitedError,
    UnauthenticatedError,
    invalid_input,
)

TOKEN_PREFIX = "hp_"  # noqa: S105 - a prefix, so that a leaked token is recognised by scanners
FRESH_LOGIN = timedelta(minutes=15)
"""How long after a login a browser session may make a credential that outlives it."""
LINKS_PER_HOUR = 20
"""Tokens of one line. Each of them is a row, and a line of the audit log."""
_LASTING: Final = frozenset({Role.AGENT, Role.ENROLMENT})
"""Endless whatever end they have: an agent's token renews itself, and what an enrolment token enrols has no end."""
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
    """Who a request is. ``csrf_token``, ``session_id`` and ``logged_in_at`` are set for browser sessions only.

    ``line_id``: by what all that is bounded is counted, the same for all that came of one token by rotation.
    ``expires_at``: when the credential ends, ``token_expires_at``: the token behind it. ``is_person``: an OpenID one.
    """

    token_id: UUID
    name: str
    role: Role
    machine_id: str | None
    expires_at: datetime | None
    line_id: UUID
    session_id: UUID | None = None
    csrf_token: str | None = None
    logged_in_at: datetime | None = None
    token_expires_at: datetime | None = None
    is_person: bool = False


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
        actor = actor_of(token, browser_session.expires_at, browser_session.id, csrf_token)
        return replace(actor, logged_in_at=browser_session.logged_in_at)
    row = await repository.token_by_secret(session, secret_sha256, now)
    if row is None:
        raise wrong_credential(credential)
    return actor_of(row, row.expires_at)


def stored_role(text: str) -> Role:
    """A token's role. ForbiddenError for one that only a later version of the service knows: it allows nothing here."""
    try:
        return Role(text)
    except ValueError as error:
        raise ForbiddenError(f"This version of hugeplan does not know the role {text} of this token.") from error


def actor_of(
    token: TokenRow, expires_at: datetime | None, session_id: UUID | None = None, csrf_token: str | None = None
) -> Actor:
    return Actor(
        token_id=token.id,
        name=token.name,
        role=stored_role(token.role),
        machine_id=token.machine_id,
        expires_at=expires_at,
        line_id=token.line_id,
        session_id=session_id,
        csrf_token=csrf_token,
        token_expires_at=token.expires_at,
        is_person=token.oidc_subject is not None,
    )


def latest_end(actor: Actor, now: datetime) -> datetime | None:
    """Until when a credential that ``actor`` makes may be good; None: for ever.

    Whoever finds an open browser or a token that ends soon must not make a longer life of it. A session may when its
    person has just shown the token; a person of a provider never, since the provider may turn the person away.
    """
    if actor.session_id is None:
        return actor.expires_at
    is_fresh = actor.logged_in_at is not None and now - actor.logged_in_at <= FRESH_LOGIN
    return actor.token_expires_at if is_fresh and not actor.is_person else actor.expires_at


def _refuse_longer(actor: Actor, role: Role, ends_at: datetime | None) -> None:
    """Raise ForbiddenError for a credential that would be good for longer than ``actor`` may make one."""
    now = datetime.now(UTC)
    latest = latest_end(actor, now)
    if latest is None or (ends_at is not None and ends_at <= latest and role not in _LASTING):
        return
    if role in _LASTING:
        raise ForbiddenError(
            "An agent's token renews itself, and what an enrolment token enrols has no end: log in again, or use an"
            " administrator's token that has no end either.",
            [FieldProblem(field="role", value=role, expected="viewer, planner, approver or admin")],
        )
    seconds = max(0, int((latest - now).total_seconds()))
    again = " or log in again" if actor.session_id is not None and not actor.is_person else ""
    raise ForbiddenError(
        f"The new token may not outlive the credential that makes it: give expires_in_seconds of at most {seconds}"
        f"{again}. A browser session may make a longer one within {int(FRESH_LOGIN.total_seconds()) // 60} minutes of"
        " its login.",
        [FieldProblem(field="expires_in_seconds", value=None, expected=f"at most {seconds}")],
    )


def require_lasting(actor: Actor) -> None:
    """Raise ForbiddenError where ``actor`` may make no agent's token, as enrolling and approving an enrolment do."""
    if latest_end(actor, datetime.now(UTC)) is not None:
        raise ForbiddenError(
            "An agent's token has no end: log in again, or use an administrator's token that has no end either."
        )


def describe(actor: Actor) -> Session:
    """The actor as it sees itself."""
    return Session(role=actor.role, name=actor.name, csrf_token=actor.csrf_token, expires_at=actor.expires_at)


async def create_token(session: WriteSession, body: TokenCreate, actor: Actor) -> TokenCreated:
    """Make a credential. ForbiddenError for one that ``actor`` may not make so long."""
    if body.machine_id is not None and body.role is not Role.AGENT:
        problem = FieldProblem(field="machine_id", value=body.machine_id, expected="null unless role is agent")
        raise invalid_input([problem])
    if body.limits is not None and body.role is not Role.ENROLMENT:
        problem = FieldProblem(field="limits", value=None, expected="null unless role is enrolment")
        raise invalid_input([problem])
    expires_in = None if body.expires_in_seconds is None else timedelta(seconds=body.expires_in_seconds)
    _refuse_longer(actor, body.role, None if expires_in is None else datetime.now(UTC) + expires_in)
    return await mint(
        session, name=body.name, role=body.role, machine_id=body.machine_id, expires_in=expires_in, limits=body.limits
    )


async def mint(
    session: WriteSession,
    *,
    name: str,
    role: Role,
    machine_id: str | None = None,
    expires_in: timedelta | None = None,
    secret: str | None = None,
    replaces: UUID | None = None,
    claim_sha256: bytes | None = None,
    limits: EnrolmentLimits | None = None,
    enrolments: int = 0,
    line_id: UUID | None = None,
) -> TokenCreated:
    """Store a credential and return it with its secret, a fresh one unless given. ``line_id``: None for a new line."""
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
        replaces=replaces,
        line_id=line_id,
        claim_sha256=claim_sha256,
        enrolments=enrolments,
        max_enrolments=limits.max_enrolments if limits else None,
        name_pattern=limits.name_pattern if limits else None,
    )
    await repository.add(session, row)
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
    """Revoke a credential and all of its line: whoever had its secret may have rotated it."""
    line_id = await repository.lock_line(session, token_id)
    if line_id is None or not await repository.revoke_line(session, line_id, datetime.now(UTC)):
        raise NotFoundError(f"There is no usable token {token_id}.")
    return TokenRevoked(id=token_id, status="revoked")


async def _end_others(session: WriteSession, old: TokenRow, now: datetime) -> TokenRow | None:
    """End all of a token's line but itself; its former successor. ConflictError, RateLimitedError."""
    former = await repository.successor(session, old)
    if former is not None and former.last_used_at is not None:
        raise ConflictError(f"This token was rotated to {former.id}, which is in use. Rotate that one.")
    if await repository.count_made(session, old.line_id, now - timedelta(hours=1)) >= LINKS_PER_HOUR:
        raise RateLimitedError(
            f"{LINKS_PER_HOUR} tokens of one line were made within an hour, as many as may be. Rotate it later.",
            headers={"Retry-After": "3600"},
        )
    await repository.revoke_line(session, old.line_id, now, but=old.id)
    return former


async def rotate_token(
    session: WriteSession, token_id: UUID, overlap_seconds: int, actor: Actor | None
) -> TokenCreated:
    """A new secret with the same rights. The old one stays good for the overlap, so that nothing is interrupted.

    A token has one successor. Whose answer was lost rotates again, which revokes the former successor; ConflictError
    where that one has reported or logged in. All others of the line end, so that two are good at a time.
    RateLimitedError past LINKS_PER_HOUR.
    The new one lives as long as the old one did, but no longer than ``actor`` may make one. An agent's own renewal is
    its way to go on reporting and buys it nothing else. ``actor`` None: a command on the server. ForbiddenError for a
    browser session of anybody but an administrator, and for an agent token of its own that is bound to no machine.
    """
    if actor is not None and actor.session_id is not None and actor.role is not Role.ADMIN:
        raise ForbiddenError(
            "A browser session does not renew its token, which others may share. Send the token itself in the header"
            " Authorization, or ask an administrator."
        )
    await repository.lock_line(session, token_id)
    now = datetime.now(UTC)
    old = await repository.usable_token(session, token_id, now)
    if old is None or old.oidc_subject is not None:
        raise NotFoundError(f"There is no usable token {token_id}.")
    is_for_enrolment = stored_role(old.role) is Role.ENROLMENT
    if is_for_enrolment and actor is not None and actor.role is not Role.ADMIN:
        raise ForbiddenError("An enrolment token does not renew itself. Let an administrator make another.")
    is_own = actor is not None and actor.token_id == old.id
    if is_own and old.role == Role.AGENT and old.machine_id is None:
        raise ForbiddenError(
            "An agent token that is bound to no machine does not renew itself. Send a report first, which binds it to"
            " its machine, or let an administrator rotate it (POST /api/v1/tokens/{id}/rotate)."
        )
    former = await _end_others(session, old, now)
    is_agents_own = actor is not None and actor.role is Role.AGENT and actor.session_id is None
    # One that was rotated ends with its overlap: that bounds what it makes itself, and no life that another gives.
    is_bounded = is_own and not is_agents_own
    like = former if former is not None and not is_bounded else old
    expires_in = None if like.expires_at is None else like.expires_at - like.created_at
    if actor is not None and not is_agents_own:
        latest = latest_end(actor, now)
        if latest is not None and expires_in is not None:
            expires_in = min(expires_in, latest - now)
        _refuse_longer(actor, stored_role(old.role), None if expires_in is None else now + expires_in)
    made = await mint(
        session,
        name=old.name,
        role=stored_role(old.role),
        machine_id=old.machine_id,
        expires_in=expires_in,
        replaces=old.id,
        claim_sha256=old.claim_sha256,
        limits=EnrolmentLimits(max_enrolments=old.max_enrolments, name_pattern=old.name_pattern),
        enrolments=old.enrolments,
    )
    # Two enrolment tokens would enrol what is left of one twice.
    ends_at = now if is_for_enrolment else now + timedelta(seconds=overlap_seconds)
    await repository.expire(session, old.id, ends_at if old.expires_at is None else min(ends_at, old.expires_at))
    return made


async def admit_machine(session: WriteSession, token_id: UUID, machine_id: str, hints: machines.Hints) -> Machine:
    """The machine whose node a report is about, when this agent token may report for it; else ForbiddenError.

    An unbound token binds to the machine of its line, else to the first machine it names, unless that machine is known:
    then an administrator's yes is needed. A clone reports with the token that was cloned with it, and gets a node of
    its own; once it has a token of its own, with that one alone, also when that was revoked.
    """
    now = datetime.now(UTC)
    await lock_one(session, LockOfOne.MACHINE, machine_id)
    bound = await repository.bound_machine(session, token_id)
    if bound is None:
        # Nobody rotates it meanwhile, and no other one of its line is bound.
        await repository.lock_line(session, token_id)
        bound = await repository.bound_machine(session, token_id)
    if bound is None:
        is_known = await repository.is_machine_known(session, machine_id)
        if is_known and not await repository.use_approval(session, machine_id, now):
            raise ForbiddenError(
                "This agent token is bound to no machine, and the machine is known already. Use its own token, enrol"
                " it, or let an administrator approve it (POST /api/v1/enrolments/approvals).",
                [FieldProblem(field="machine_id", value=machine_id, expected="a machine that is not known yet")],
            )
    elif bound.partition(machines.CLONE_MARK)[0] != machine_id and bound != machine_id:
        raise _other_machine(machine_id)
    machine = await machines.resolve(session, machine_id, hints, now)
    bound = await repository.bind_machine(session, token_id, bound or machine.node_machine_id)
    if bound != machine.node_machine_id and (
        bound != machine_id or await repository.has_token(session, machine.node_machine_id)
    ):
        raise _other_machine(machine_id)
    return machine


def _other_machine(machine_id: str) -> ForbiddenError:
    return ForbiddenError(
        "This agent token belongs to another machine. Enrol this machine, or use its own token.",
        [FieldProblem(field="machine_id", value=machine_id, expected="the machine the token was enrolled for")],
    )


#: The token behind the login links of whoever may reach the database.
OPERATOR_NAME = "operator of the server"


async def operator_token_id(session: WriteSession) -> UUID:
    """The administrator's token of the server's operator, made when there is no usable one. Its secret is not kept."""
    found = await repository.usable_named(session, OPERATOR_NAME, Role.ADMIN.value, datetime.now(UTC))
    return found or (await mint(session, name=OPERATOR_NAME, role=Role.ADMIN)).id
