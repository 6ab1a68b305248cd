"""Two versions side by side: what a later one stored does not stop this one."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import httpx
import pytest_asyncio
from sqlalchemy import text
from support.service import Service, assert_problem

SECRET = "a-later-version" * 2


@pytest_asyncio.fixture
async def later(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose token has a role that this version does not know; the later version's migration allows it."""
    async with service.database.write() as session:
        await session.execute(text("ALTER TABLE tokens DROP CONSTRAINT ck_tokens_role"))
        await session.execute(
            text(
                "INSERT INTO tokens (id, name, role, secret_sha256, created_at)"
                " VALUES (gen_random_uuid(), 'later', 'auditor', :secret, now())"
            ),
            {"secret": hashlib.sha256(SECRET.encode()).digest()},
        )
    yield service.client(SECRET)
    async with service.database.write() as session:
        await session.execute(text("DELETE FROM tokens WHERE role = 'auditor'"))
        known = "'agent', 'enrolment', 'viewer', 'planner', 'approver', 'admin'"
        await session.execute(text(f"ALTER TABLE tokens ADD CONSTRAINT ck_tokens_role CHECK (role IN ({known}))"))


async def test_a_role_of_a_later_version_allows_nothing_and_breaks_nothing(
    service: Service, later: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    await service.app.state.intake.gate.load()
    problem = assert_problem(await later.get("/api/v1/nodes"), 403, "forbidden")
    assert "does not know the role auditor" in problem["detail"]
    assert_problem(await later.post("/api/v1/session", json={"token": SECRET}), 403, "forbidden")
    assert (await viewer.get("/api/v1/nodes")).status_code == 200
