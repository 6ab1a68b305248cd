"""The SQLAlchemy engine over psycopg 3."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from hugeplan.db.connection import Connection, options_of
from hugeplan.db.turns import PoolInTurns
from hugeplan.settings import Settings

APPLICATION_NAME = "hugeplan"


def create_engine(settings: Settings) -> AsyncEngine:
    """An engine that connects lazily, so that the service starts while the database is away."""
    milliseconds = int(settings.statement_timeout_seconds * 1000)
    engine = create_async_engine(
        settings.sqlalchemy_url(),
        poolclass=PoolInTurns,
        pool_size=settings.database_pool_size,
        max_overflow=settings.database_pool_overflow,
        pool_timeout=settings.database_timeout_seconds,
        # A ping before use: after the database restarted, the first request must not fail on a dead connection.
        pool_pre_ping=True,
        hide_parameters=True,
        # Lists carry several documents per row; the standard library's decoder took a seventh of a list's time.
        json_deserializer=msgspec.json.decode,
        connect_args={
            **options_of(settings),
            "async_creator_fn": Connection.connect,
            "application_name": APPLICATION_NAME,
            # No transaction waits for anything but its statements: one that does is of a request that is stuck.
            "options": f"-c statement_timeout={milliseconds} -c TimeZone=UTC"
            f" -c idle_in_transaction_session_timeout={2 * milliseconds}",
        },
    )

    @event.listens_for(engine.sync_engine, "do_connect")
    def log_in_as_the_secret_says_now(_dialect: Any, _record: Any, _words: Any, parameters: dict[str, Any]) -> None:
        url = make_url(settings.sqlalchemy_url())
        parameters |= {name: value for name, value in (("user", url.username), ("password", url.password)) if value}

    return engine
