"""Statements about tokens and browser sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, delete, exists, select, tuple_, update

from hugeplan.db.models import BrowserSession, Token
from hugeplan.db.session import ReadSession, WriteSession


def _usable(statement: Select[Token], now: datetime) -> Select[Token]:
    return statement.where(Token.revoked_at.is_(None), (Token.expires_at.is_(None)) | (Token.expires_at > now))


async def token_by_secret(session: ReadSession, secret_sha256: bytes, now: datetime) -> Token | None:
    """The usable token with this secret's hash."""
    statement = select(Token).where(Token.secret_sha256 == secret_sha256)
    token: Token | None = await session.scalar(_usable(statement, now))
    return token


async def usable_tokens(session: ReadSession, now: datetime, limit: int) -> Sequence[tuple[bytes, UUID, str]]:
    """Hash, id and role of usable tokens, the most recently used first."""
    statement = _usable(select(Token), now).order_by(Token.last_used_at.desc().nulls_last()).limit(limit)
    rows = await session.execute(statement.with_only_columns(Token.secret_sha256, Token.id, Token.role))
    return [(row[0], row[1], row[2]) for row in rows]


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
        .where(BrowserSession.secret_sha256 == secret_sha256, BrowserSession.expires_at > now)
        .where(Token.revoked_at.is_(None), (Token.expires_at.is_(None)) | (Token.expires_at > now))
    )
    row = (await session.execute(statement)).one_or_none()
    return None if row is None else (row[0], row[1])


async def list_tokens(
    session: ReadSession, *, include_revoked: bool, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[Token]:
    """Tokens, newest first, after a sort key."""
    statement = select(Token).order_by(Token.created_at.desc(), Token.id.desc()).limit(limit)
    if not include_revoked:
        statement = statement.where(Token.revoked_at.is_(None))
    if after is not None:
        statement = statement.where(tuple_(Token.created_at, Token.id) < after)
    return (await session.scalars(statement)).all()


async def has_admin(session: ReadSession, now: datetime) -> bool:
    """Whether a usable admin token exists."""
    statement = _usable(select(Token).where(Token.role == "admin"), now)
    return (await session.scalar(statement.limit(1))) is not None


async def add_token(session: WriteSession, token: Token) -> None:
    """Store a new token."""
    session.add(token)
    await session.flush()


async def add_session(session: WriteSession, browser_session: BrowserSession) -> None:
    """Store a new browser session."""
    session.add(browser_session)
    await session.flush()


async def delete_session(session: WriteSession, session_id: UUID) -> None:
    """Remove a browser session."""
    await session.execute(delete(BrowserSession).where(BrowserSession.id == session_id))


async def revoke(session: WriteSession, token_id: UUID, now: datetime) -> bool:
    """Revoke a token and end its sessions. False when there is no such usable token."""
    await session.execute(delete(BrowserSession).where(BrowserSession.token_id == token_id))
    statement = update(Token).where(Token.id == token_id, Token.revoked_at.is_(None)).values(revoked_at=now)
    return (await session.scalar(statement.returning(Token.id))) is not None


async def revoke_agents_of(session: WriteSession, machine_id: str, now: datetime) -> None:
    """Revoke all agent tokens of a machine."""
    statement = update(Token).where(Token.machine_id == machine_id, Token.revoked_at.is_(None))
    await session.execute(statement.values(revoked_at=now))


async def revoke_named(session: WriteSession, name: str, role: str, now: datetime) -> None:
    """Revoke all tokens with this name and role."""
    statement = update(Token).where(Token.name == name, Token.role == role, Token.revoked_at.is_(None))
    await session.execute(statement.values(revoked_at=now))


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
