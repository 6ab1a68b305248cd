"""Browser sessions: opened with a token or a login link, listed, and ended."""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hugeplan.access import repository
from hugeplan.access.schemas import BrowserSessionItem, LoginLink, Role, Session
from hugeplan.access.service import (
    Actor,
    Credential,
    actor_of,
    csrf_token_of,
    describe,
    hash_secret,
    stored_role,
    wrong_credential,
)
from hugeplan.api.pagination import Page, decode_time_cursor, page_of
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.db.models import BrowserSession, Token
from hugeplan.db.models import LoginLink as LoginLinkRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import FieldProblem, ForbiddenError, NotFoundError

LOGIN_LINK_PREFIX = "hpl_"
LOGIN_LINK_SECONDS = 15 * 60
BROWSER_ROLES = frozenset({Role.VIEWER, Role.PLANNER, Role.APPROVER, Role.ADMIN})
MAX_USER_AGENT = 256
LOGINS_PER_FAILED = 3
SESSIONS_PER_TOKEN = 100
"""Browsers that one token keeps logged in; the oldest is logged out for one more."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A new browser session and the secret of its cookie."""

    secret: str
    session: Session
    actor: Actor


@dataclass(frozen=True, slots=True)
class LoginLimit:
    """The buckets of logins: failed ones by address, good ones by token, since each leaves rows and a line."""

    limiter: RateLimiter
    address: str
    per_minute: int

    def spend(self) -> None:
        """Take one failed login; RateLimitedError when there were too many."""
        self.limiter.spend("login", self.address, self.per_minute)

    def spend_of(self, line_id: UUID) -> None:
        """Take one login or login link of a token's line; RateLimitedError when it had too many."""
        self.limiter.spend("logins of a token", str(line_id), LOGINS_PER_FAILED * self.per_minute)


@dataclass(frozen=True, slots=True)
class NewLink:
    """A login link's secret, shown once."""

    secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Browser:
    """Where a session is opened from, and for how long."""

    address: str | None
    user_agent: str | None
    hours: int


@dataclass(frozen=True, slots=True)
class Login:
    """A login that was judged good: when, when a token was shown for it, and until when it may last at most."""

    at: datetime
    logged_in_at: datetime
    ends_at: datetime | None = None


_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


async def create_login_link(session: WriteSession, token_id: UUID, maker: Actor | None = None) -> NewLink:
    """A login that works once, for LOGIN_LINK_SECONDS, in place of a token.

    Of a link that a browser session makes, the new session counts as logged in when the maker was, and ends with it.
    """
    is_session = maker is not None and maker.session_id is not None
    now = datetime.now(UTC)
    made = NewLink(LOGIN_LINK_PREFIX + secrets.token_urlsafe(32), now + timedelta(seconds=LOGIN_LINK_SECONDS))
    row = LoginLinkRow(
        secret_sha256=hash_secret(made.secret),
        token_id=token_id,
        created_at=now,
        expires_at=made.expires_at,
        logged_in_at=(maker.logged_in_at or _LONG_AGO) if maker is not None and is_session else None,
        sessions_end_at=maker.expires_at if maker is not None and is_session else None,
    )
    await repository.add(session, row)
    return made


async def link_of(session: WriteSession, token_id: UUID) -> NewLink:
    """A login link for any token that may log in. NotFoundError when it is not usable, ForbiddenError by its role."""
    row = await repository.usable_token(session, token_id, datetime.now(UTC))
    if row is None:
        raise NotFoundError(f"There is no usable token {token_id}.")
    if stored_role(row.role) not in BROWSER_ROLES:
        raise ForbiddenError(f"A token with the role {row.role} cannot log in.")
    return await create_login_link(session, row.id)


async def link_for(session: WriteSession, actor: Actor, limit: LoginLimit) -> LoginLink:
    """A login link for whoever asks."""
    if actor.role not in BROWSER_ROLES:
        raise ForbiddenError(f"A token with the role {actor.role} cannot log in.")
    limit.spend_of(actor.line_id)
    made = await create_login_link(session, actor.token_id, actor)
    return LoginLink(token=made.secret, expires_at=made.expires_at)


async def open_session(session: WriteSession, secret: str, browser: Browser, limit: LoginLimit) -> OpenedSession:
    """Log a browser in with a token or a login link. Failed attempts are limited; tokens of machines cannot log in."""
    now = datetime.now(UTC)
    row, logged_in_at, ends_at = None, None, None
    if secret.startswith(LOGIN_LINK_PREFIX):
        link = await repository.use_login_link(session, hash_secret(secret), now)
        if link is not None:
            token_id, logged_in_at, ends_at = link
            row = await repository.usable_token(session, token_id, now)
    else:
        row = await repository.token_by_secret(session, hash_secret(secret), now)
    if row is None:
        limit.spend()
        refused = wrong_credential(Credential(secret, is_session=False))
        expected = "a token of a viewer, planner or admin, or a login link that was not used yet"
        refused.errors = [FieldProblem(field="token", value=None, expected=expected)]
        raise refused
    if stored_role(row.role) not in BROWSER_ROLES:
        raise ForbiddenError(f"A token with the role {row.role} cannot log in.")
    limit.spend_of(row.line_id)
    return await open_for(session, row, browser, Login(now, logged_in_at or now, ends_at))


async def open_for(session: WriteSession, row: Token, browser: Browser, login: Login) -> OpenedSession:
    """A session of a token that was judged good."""
    now = login.at
    secret = secrets.token_urlsafe(32)
    expires_at = now + timedelta(hours=browser.hours)
    if row.expires_at is not None:
        expires_at = min(expires_at, row.expires_at)
    if login.ends_at is not None:
        expires_at = min(expires_at, login.ends_at)
    opened = BrowserSession(
        id=uuid.uuid4(),
        secret_sha256=hash_secret(secret),
        token_id=row.id,
        created_at=now,
        logged_in_at=login.logged_in_at,
        expires_at=expires_at,
        address=browser.address,
        user_agent=(browser.user_agent or "")[:MAX_USER_AGENT].replace("\0", "") or None,
    )
    await repository.touch(session, row.id, now)  # first: it locks the token, so that one login counts after the other
    await repository.end_oldest_sessions(session, row.line_id, SESSIONS_PER_TOKEN - 1)
    await repository.add(session, opened)
    actor = actor_of(row, expires_at, opened.id, csrf_token_of(secret))
    return OpenedSession(secret, describe(actor), actor)


async def close_session(session: WriteSession, actor: Actor) -> None:
    """Log out. A bearer token has no session to close, and nothing happens."""
    if actor.session_id is not None:
        await repository.delete_session(session, actor.session_id)


async def list_sessions(
    session: ReadSession, actor: Actor, *, limit: int, cursor: str | None
) -> Page[BrowserSessionItem]:
    """Sessions that have not ended, newest first: an administrator's list has everybody's, others see their own."""
    own = None if actor.role is Role.ADMIN else actor.token_id
    after = decode_time_cursor(cursor)
    rows = await repository.list_sessions(session, own=own, now=datetime.now(UTC), after=after, limit=limit + 1)

    def item(row: tuple[BrowserSession, Token]) -> BrowserSessionItem:
        opened, token = row
        return BrowserSessionItem(
            id=opened.id,
            token_id=token.id,
            name=token.name,
            role=Role(token.role),
            created_at=opened.created_at,
            expires_at=opened.expires_at,
            address=opened.address,
            user_agent=opened.user_agent,
            is_current=opened.id == actor.session_id,
        )

    items, next_cursor = page_of(rows, limit, lambda row: (row[0].created_at.isoformat(), str(row[0].id)), item)
    return Page(items=items, next_cursor=next_cursor)


async def end_session(session: WriteSession, actor: Actor, session_id: UUID) -> None:
    """End a session: any for an administrator, one's own for others. NotFoundError when there is none."""
    own = None if actor.role is Role.ADMIN else actor.token_id
    if not await repository.end_session(session, session_id, own=own):
        raise NotFoundError(f"There is no session {session_id}.")
