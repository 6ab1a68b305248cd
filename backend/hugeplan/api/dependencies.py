"""What handlers ask for: settings and the request's one database session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from hugeplan.db.session import Database, ReadSession, WriteSession
from hugeplan.settings import Settings

# Every dependency is a coroutine, because FastAPI hands a plain function to a thread: several hops per request.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


async def get_settings(request: Request) -> Settings:
    """The settings the application was created with."""
    settings: Settings = request.app.state.settings
    return settings


async def get_database(request: Request) -> Database:
    """The application's database."""
    database: Database = request.app.state.database
    return database


async def _request_session(request: Request) -> AsyncIterator[ReadSession]:
    """The request's only session: read-only for safe methods, committed after the handler for the others."""
    database: Database = request.app.state.database
    if request.method in SAFE_METHODS:
        async with database.read() as session:
            yield session
    else:
        async with database.write() as session:
            yield session
            # The audit row is part of the change: both are stored, or neither.
            await request.app.state.record_change(session, request)


# Function scope: the commit happens before the response is sent, so that a failed commit is an error response.
_RequestSession = Annotated[ReadSession, Depends(_request_session, scope="function")]


async def get_read_session(session: _RequestSession) -> ReadSession:
    """The request's session, for reading."""
    return session


async def give_back(session: _RequestSession) -> None:
    """Give the request's connection back, when it is known who asks: the handler waits for work with one of its own."""
    await session.release()


async def get_write_session(session: _RequestSession) -> WriteSession:
    """The request's session, for writing; only unsafe methods have one."""
    if not isinstance(session, WriteSession):
        raise TypeError("a safe request must not ask for a write session")
    return session


CurrentSettings = Annotated[Settings, Depends(get_settings)]
CurrentDatabase = Annotated[Database, Depends(get_database)]
Reads = Annotated[ReadSession, Depends(get_read_session, scope="function")]
Writes = Annotated[WriteSession, Depends(get_write_session, scope="function")]
