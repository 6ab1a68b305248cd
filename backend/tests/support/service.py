"""A running service for a test: the application over its own database, and clients with each role."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
from fastapi import FastAPI
from sqlalchemy import delete, text

from hugeplan.access import service as access
from hugeplan.access.schemas import Role
from hugeplan.db.models import (
    EnrolmentApproval,
    EnrolmentRequestRow,
    EventRow,
    FleetPlanRow,
    Machine,
    NodeRow,
    PlanRow,
    ReportDocumentRow,
    SampleRow,
    ScenarioRow,
    SealedDocumentsRow,
    SealedSamplesRow,
    Token,
    WebhookRow,
)
from hugeplan.db.session import Database, ReadSession

BASE_URL = "http://hugeplan.test"
PROBLEMS = "https://hugeplan.dev/problems/"


@dataclass
class Service:
    """The application under test. Clients share its transport and differ in their credential."""

    app: FastAPI
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    @property
    def database(self) -> Database:
        """The application's database."""
        database: Database = self.app.state.database
        return database

    def client(self, token: str | None = None, *, address: str = "127.0.0.1") -> httpx.AsyncClient:
        """A client with a bearer token, or with none, at an address."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False, client=(address, 123))
        client = httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=headers)
        self.clients.append(client)
        return client

    async def empty(self) -> None:
        """Delete all rows. They are few, so deleting is quicker than truncating; the rest goes by cascade."""
        async with self.database.write() as session:
            for table in (
                NodeRow,
                Token,
                PlanRow,
                ScenarioRow,
                SampleRow,
                ReportDocumentRow,
                SealedDocumentsRow,
                SealedSamplesRow,
                EventRow,
                FleetPlanRow,
                WebhookRow,
                Machine,
                EnrolmentApproval,
                EnrolmentRequestRow,
            ):
                await session.execute(delete(table))

    async def listens(self, hours: float = 48) -> None:
        """As if it had heard agents for so long without a gap."""
        since = "INSERT INTO listening VALUES (true, now() - make_interval(mins => :m), now())"
        same = "ON CONFLICT (is_one) DO UPDATE SET since = excluded.since, until = excluded.until"
        async with self.database.write() as session:
            await session.execute(text(f"{since} {same}"), {"m": 60 * hours})

    async def token(self, role: Role, *, machine_id: str | None = None, expires_in: timedelta | None = None) -> str:
        """A new token of a role."""
        async with self.database.write() as session:
            made = await access.mint(
                session, name=f"test {role}", role=role, machine_id=machine_id, expires_in=expires_in
            )
        return made.token

    async def client_as_for(self, role: Role, expires_in: timedelta) -> httpx.AsyncClient:
        """A client with a fresh token that ends soon."""
        return self.client(await self.token(role, expires_in=expires_in))

    async def client_as(
        self, role: Role, *, machine_id: str | None = None, address: str = "127.0.0.1"
    ) -> httpx.AsyncClient:
        """A client with a fresh token of a role."""
        return self.client(await self.token(role, machine_id=machine_id), address=address)


async def somebody_waits(session: ReadSession) -> None:
    """Come back once another connection to the same database waits for a lock."""
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(30):
        while await session.scalar(text(waits)) is None:
            await session.execute(text("SELECT pg_stat_clear_snapshot(), pg_sleep(0.01)"))


def assert_problem(response: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """The problem document of an error response, after its shape was checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["type"] == PROBLEMS + slug
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"] == response.headers["x-request-id"]
    assert problem["instance"] == response.request.url.path
    assert problem.keys() <= {"type", "title", "status", "detail", "instance", "request_id", "errors"}
    assert all(error.keys() == {"field", "value", "expected"} for error in problem.get("errors", []))
    return problem


def fields_of(problem: dict[str, Any]) -> list[str]:
    """The names of the fields a problem complains about."""
    return [error["field"] for error in problem.get("errors", [])]
