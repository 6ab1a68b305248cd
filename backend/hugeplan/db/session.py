"""Sessions. One request is one transaction: it is committed at the edge, and repositories only flush.

Reads and writes have different types, so that a function shows in its signature which one it needs. A
ReadSession of a safe request runs in a READ ONLY transaction, which PostgreSQL enforces.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from hugeplan.db.alone import UNKNOWN, is_unavailable
from hugeplan.errors import RETRY_AFTER_SECONDS, UnavailableError


class ReadSession(AsyncSession):
    """A session for statements that change nothing."""

    async def release(self) -> None:
        """Give the connection back before long work that needs none; the next statement begins a new transaction.

        What was read stays as it was. Nothing may have been written before: it would be committed here.
        """
        await self.commit()


class Transactions(Session):
    """What is under a WriteSession: a type of its own, so that parts of the service hear of its commits."""


class WriteSession(ReadSession):
    """A session that may also change rows.

    ``before_commit``: what is checked in the transaction when all is written; what a check raises stores nothing.
    """

    sync_session_class = Transactions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.before_commit: list[Callable[[], Awaitable[None]]] = []

    async def commit(self) -> None:
        """UnavailableError where PostgreSQL does not say whether it did: nobody is told that nothing was stored."""
        await self.flush()
        try:
            await super().commit()
        except DBAPIError as error:
            if not is_unavailable(error) or getattr(error.orig, "sqlstate", None) is not None:
                raise
            raise UnavailableError(UNKNOWN, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}) from error


class Database:
    """The engine and the two ways to open a transaction on it."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._read_engine = engine.execution_options(postgresql_readonly=True)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[ReadSession]:
        """A READ ONLY transaction."""
        async with ReadSession(self._read_engine, expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteSession]:
        """A transaction, committed when the block ends well and rolled back when it raises."""
        async with WriteSession(self.engine, expire_on_commit=False) as session:
            yield session
            for check in session.before_commit:
                await check()
            await session.commit()

    async def dispose(self) -> None:
        """Close all connections."""
        await self.engine.dispose()
