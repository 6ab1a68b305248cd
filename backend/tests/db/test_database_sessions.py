"""One request is one transaction: reads cannot write, writes are stored whole or not at all."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from support.service import Service

COUNT = text("SELECT count(*) FROM scenarios")
INSERT = text(
    "INSERT INTO scenarios (id, name, version, document, created_at, updated_at)"
    " VALUES (gen_random_uuid(), 'x', :version, '{}', now(), now())"
)


async def test_read_session_refuses_writes(service: Service) -> None:
    with pytest.raises(DBAPIError, match="read-only transaction"):
        async with service.database.read() as session:
            await session.execute(INSERT, {"version": 1})


async def test_pooled_connection_is_writable_after_a_read(service: Service) -> None:
    for _ in range(3):
        async with service.database.read() as session:
            await session.execute(COUNT)
        async with service.database.write() as session:
            await session.execute(INSERT, {"version": 1})
    async with service.database.read() as session:
        assert await session.scalar(COUNT) == 3


async def test_error_rolls_everything_back(service: Service) -> None:
    with pytest.raises(DBAPIError, match="ck_scenarios_version"):
        async with service.database.write() as session:
            await session.execute(INSERT, {"version": 1})
            await session.execute(INSERT, {"version": 0})
    async with service.database.read() as session:
        assert await session.scalar(COUNT) == 0
