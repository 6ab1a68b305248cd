"""Statements about tokens and browser sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from hugeplan.db.base import newest_first
from hugeplan.db.locks import LockOfOne, lock_one
from hugeplan.db.models import BrowserSession, EnrolmentApproval, LoginLink, Machine, OidcLogin, Token
from hugeplan.db.session import ReadSession, WriteSession


def _usable(now: datetime) -> ColumnElement[bool]:
    return and_(Token.revoked_at.is_(None), or_(Token.expires_at.is_(None), Token.expires_at > now))


async def token_by_secret(session: ReadSession, secret_sha256: bytes, now: datetime) -> Token | None:
    """The usable token with this secret's hash."""
    statement = select(Token).where(Token.secret_sha256 == secret_sha256)
    token: Token | None = await session.scalar(statement.where(_usable(now)))
    return token


async def usable_tokens(
    session: ReadSession, now: datetime, limit: int, since: datetime | None
) -> Sequence[tuple[bytes, UUID, UUID, str]]:
    """Hash, id, line and role of usable tokens made after ``since``, the most recently used first."""
    statement = select(Token).where(_usable(now)).order_by(Token.last_used_at.desc().nulls_last()).limit(limit)
    if since is not None:
        statement = statement.where(Token.created_at > since)
    columns = (Token.secret_sha256, Token.id, Token.line_id, Token.role)
    rows = await session.execute(statement.with_only_columns(*columns))
    return [(row[0], row[1], row[2], row[3]) for row in rows]


async def usable_sessions(
    session: ReadSession, now: datetime, limit: int, since: datetime | None
) -> Sequence[tuple[bytes, UUID, UUID, str]]:
    """Hash, token id, line and role of browser sessions opened after ``since`` that have not ended, newest first."""
    statement = (
        select(BrowserSession.secret_sha256, Token.id, Token.line_id, Token.role)
        .join(Token, Token.id == BrowserSession.token_id)
        .where(BrowserSession.expires_at > now, _usable(now))
        .order_by(BrowserSession.created_at.desc())
        .limit(limit)
    )
    if since is not None:
        statement = statement.where(BrowserSession.created_at > since)
    return [(row[0], row[1], row[2], row[3]) for row in await session.execute(statement)]


async def lock_line(session: WriteSession, token_id: UUID) -> UUID | None:
    """The line of a token, locked; None where there is no such token."""
    line_id: UUID | None = await session.scalar(select(Token.line_id).where(Token.id == token_id))
    if line_id is not None:
        await lock_one(session, LockOfOne.TOKEN_LINE, line_id)
    return line_id


async def count_made(session: ReadSession, line_id: UUID, since: datetime) -> int:
    """Tokens that a line got since then, revoked ones too."""
    statement = select(func.count()).where(Token.line_id == line_id, Token.created_at > since)
    return (await session.execute(statement)).scalar_one()


async def successor(session: ReadSession, token: Token) -> Token | None:
    """What a token was rotated to and is not revoked: one that was used, else the newest."""
    is_later = or_(Token.replaces == token.id, Token.created_at > token.created_at)
    statement = select(Token).where(Token.line_id == token.line_id, is_later, Token.revoked_at.is_(None)).limit(1)
    found: Token | None = await session.scalar(
        statement.order_by(Token.last_used_at.is_(None), Token.created_at.desc())
    )
    return found


async def usable_token(session: WriteSession, token_id: UUID, now: datetime) -> Token | None:
    """The usable token with this id, locked."""
    statement = select(Token).where(Token.id == token_id, _usable(now)).with_for_update()
    token: Token | None = await session.scalar(statement.execution_options(populate_existing=True))
    return token


async def is_known(session: ReadSession, secret_sha256: bytes) -> bool:
    """Whether a token with this secret's hash was ever made, usable or not."""
    return bool(await session.scalar(select(exists().where(Token.secret_sha256 == secret_sha256))))


async def session_by_secret(
    session: ReadSession, secret_sha256: bytes, now: datetime
) -> tuple[BrowserSession, Token] | None:
    """The usable browser session with this secret's hash, and its token."""
    statement = (
        select(BrowserSession, Token)
        .join(Token, Token.id == BrowserSession.token_id)
        .where(BrowserSession.secret_sha256 == secret_sha256, BrowserSession.expires_at > now, _usable(now))
    )
    row = (await session.execute(statement)).one_or_none()
    return None if row is None else (row[0], row[1])


async def list_tokens(
    session: ReadSession, *, include_revoked: bool, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[Token]:
    """Tokens, newest first, after a sort key."""
    statement = newest_first(select(Token), Token.created_at, Token.id, after=after, limit=limit)
    if not include_revoked:
        statement = statement.where(Token.revoked_at.is_(None))
    return (await session.scalars(statement)).all()


async def has_admin(session: ReadSession, now: datetime) -> bool:
    """Whether a usable admin token exists."""
    statement = select(Token.id).where(Token.role == "admin", _usable(now)).limit(1)
    return (await session.scalar(statement)) is not None


async def add(session: WriteSession, row: Token | BrowserSession | LoginLink | OidcLogin) -> None:
    """Store a new token, session or login."""
    session.add(row)
    await session.flush()


async def expire(session: WriteSession, token_id: UUID, at: datetime) -> None:
    """Let a token end at a time."""
    statement = update(Token).where(Token.id == token_id).values(expires_at=at)
    await session.execute(statement.execution_options(synchronize_session=False))


async def use_login_link(
    session: WriteSession, secret_sha256: bytes, now: datetime
) -> tuple[UUID, datetime | None, datetime | None] | None:
    """Token, login and latest end of an unused login link, which is used up by this."""
    statement = delete(LoginLink).where(LoginLink.secret_sha256 == secret_sha256, LoginLink.expires_at > now)
    what = statement.returning(LoginLink.token_id, LoginLink.logged_in_at, LoginLink.sessions_end_at)
    row = (await session.execute(what)).one_or_none()
    return None if row is None else (row[0], row[1], row[2])


async def end_oldest_sessions(session: WriteSession, line_id: UUID, keep: int) -> None:
    """End all sessions of a line of tokens but the newest ``keep``."""
    own = select(BrowserSession.id).join(Token, Token.id == BrowserSession.token_id).where(Token.line_id == line_id)
    old = own.order_by(BrowserSession.created_at.desc(), BrowserSession.id).offset(keep)
    await session.execute(delete(BrowserSession).where(BrowserSession.id.in_(old)))


async def use_oidc_login(session: WriteSession, state_sha256: bytes, now: datetime) -> tuple[str, str] | None:
    """Nonce and code verifier of a login that comes back, which is used up by this."""
    statement = delete(OidcLogin).where(OidcLogin.state_sha256 == state_sha256, OidcLogin.expires_at > now)
    row = (await session.execute(statement.returning(OidcLogin.nonce, OidcLogin.code_verifier))).one_or_none()
    return None if row is None else (row[0], row[1])


async def token_of_person(session: WriteSession, oidc_subject: str) -> Token | None:
    """The row of a provider's person, locked."""
    statement = select(Token).where(Token.oidc_subject == oidc_subject).with_for_update()
    token: Token | None = await session.scalar(statement)
    return token


async def list_sessions(
    session: ReadSession, *, own: UUID | None, now: datetime, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[tuple[BrowserSession, Token]]:
    """Sessions that have not ended, newest first; only those of the token ``own`` when it is given."""
    statement = (
        select(BrowserSession, Token)
        .join(Token, Token.id == BrowserSession.token_id)
        .where(BrowserSession.expires_at > now)
    )
    if own is not None:
        statement = statement.where(BrowserSession.token_id == own)
    statement = newest_first(statement, BrowserSession.created_at, BrowserSession.id, after=after, limit=limit)
    return [(row[0], row[1]) for row in await session.execute(statement)]


async def end_session(session: WriteSession, session_id: UUID, *, own: UUID | None) -> bool:
    """Remove a session, of the token ``own`` when it is given. False when there is no such session."""
    statement = delete(BrowserSession).where(BrowserSession.id == session_id)
    if own is not None:
        statement = statement.where(BrowserSession.token_id == own)
    return (await session.scalar(statement.returning(BrowserSession.id))) is not None


async def delete_session(session: WriteSession, session_id: UUID) -> None:
    """Remove a browser session."""
    await session.execute(delete(BrowserSession).where(BrowserSession.id == session_id))


async def revoke_line(session: WriteSession, line_id: UUID, now: datetime, *, but: UUID | None = None) -> bool:
    """Revoke the tokens of a line, all or all but one, and end their sessions. False where none was left to revoke."""
    of_line = and_(Token.line_id == line_id, Token.id.is_distinct_from(but), Token.revoked_at.is_(None))
    is_there = bool(await session.scalar(select(exists().where(of_line))))
    await session.execute(delete(BrowserSession).where(BrowserSession.token_id.in_(select(Token.id).where(of_line))))
    statement = update(Token).where(of_line).values(revoked_at=now)
    await session.execute(statement.execution_options(synchronize_session=False))
    return is_there


async def count_agents_of(session: ReadSession, machine_id: str, since: datetime) -> int:
    """Agent tokens that a machine got since then, revoked ones too."""
    statement = select(func.count()).where(Token.machine_id == machine_id, Token.created_at > since)
    return (await session.execute(statement)).scalar_one()


async def revoke_agents_of(session: WriteSession, machine_id: str, now: datetime) -> UUID | None:
    """Revoke all agent tokens of a machine; the line of one of them."""
    statement = update(Token).where(Token.machine_id == machine_id, Token.revoked_at.is_(None))
    return (await session.scalars(statement.values(revoked_at=now).returning(Token.line_id))).first()


async def revoke_named(session: WriteSession, name: str, role: str, now: datetime) -> None:
    """Revoke all tokens with this name and role."""
    statement = update(Token).where(Token.name == name, Token.role == role, Token.revoked_at.is_(None))
    await session.execute(statement.values(revoked_at=now))


async def usable_named(session: ReadSession, name: str, role: str, now: datetime) -> UUID | None:
    """The newest usable token with this name and role."""
    statement = (
        select(Token.id)
        .where(Token.name == name, Token.role == role, _usable(now))
        .order_by(Token.created_at.desc())
        .limit(1)
    )
    return (await session.scalars(statement)).first()


async def machines_of_named(session: ReadSession, name: str, role: str) -> Sequence[str]:
    """The machines that usable tokens with this name and role are bound to."""
    statement = select(Token.machine_id).where(Token.name == name, Token.role == role, Token.revoked_at.is_(None))
    return [machine_id for machine_id in await session.scalars(statement) if machine_id is not None]


async def is_machine_known(session: ReadSession, machine_id: str) -> bool:
    """Whether this machine has enrolled or reported."""
    is_seen = exists().where(Machine.machine_id == machine_id)
    return await has_token(session, machine_id) or bool(await session.scalar(select(is_seen)))


async def has_token(session: ReadSession, node_machine_id: str) -> bool:
    """Whether a machine ever got an agent token of its own, usable or not."""
    return bool(await session.scalar(select(exists().where(Token.machine_id == node_machine_id))))


async def machines_with(session: ReadSession, machine_id: str) -> Sequence[Machine]:
    """The machines that say they have this id, the oldest first."""
    statement = select(Machine).where(Machine.machine_id == machine_id).order_by(Machine.first_seen_at)
    return (await session.scalars(statement)).all()


async def approve_enrolment(
    session: WriteSession, machine_id: str, approved_by: str, now: datetime, expires_at: datetime
) -> None:
    """Keep an approval; a later one replaces it."""
    values = {"approved_by": approved_by, "created_at": now, "expires_at": expires_at}
    statement = insert(EnrolmentApproval).values(machine_id=machine_id, **values)
    await session.execute(statement.on_conflict_do_update(index_elements=["machine_id"], set_=values))


async def use_approval(session: WriteSession, machine_id: str, now: datetime) -> bool:
    """Use up the yes to an enrolment. False when there is none."""
    statement = delete(EnrolmentApproval).where(
        EnrolmentApproval.machine_id == machine_id, EnrolmentApproval.expires_at > now
    )
    return (await session.scalar(statement.returning(EnrolmentApproval.machine_id))) is not None


async def bound_machine(session: ReadSession, token_id: UUID) -> str | None:
    """The machine that a token, or else another one of its line, is bound to at this moment."""
    line = select(Token.line_id).where(Token.id == token_id).scalar_subquery()
    statement = select(Token.machine_id).where(Token.line_id == line, Token.machine_id.is_not(None))
    bound: str | None = await session.scalar(statement.order_by(Token.id != token_id).limit(1))
    return bound


async def bind_machine(session: WriteSession, token_id: UUID, machine_id: str) -> str | None:
    """Bind an unbound agent token to a machine; the machine it is bound to afterwards."""
    unbound = update(Token).where(Token.id == token_id, Token.machine_id.is_(None)).values(machine_id=machine_id)
    await session.execute(unbound.execution_options(synchronize_session=False))
    bound: str | None = await session.scalar(select(Token.machine_id).where(Token.id == token_id))
    return bound


async def touch(session: WriteSession, token_id: UUID, now: datetime) -> None:
    """Note that a token was used."""
    statement = update(Token).where(Token.id == token_id).values(last_used_at=now)
    await session.execute(statement.execution_options(synchronize_session=False))
