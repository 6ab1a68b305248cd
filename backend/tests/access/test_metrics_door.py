"""Public metrics are for who comes directly: what an ingress passes on to everybody needs a credential."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.main import create_app
from hugeplan.settings import Settings


@pytest.fixture
async def public(settings: Settings, service: Service) -> AsyncIterator[Service]:
    """The service with HUGEPLAN_METRICS_PUBLIC, over the same database."""
    given = settings.model_dump() | {"metrics_public": True, "database_url": settings.database_url}
    app = create_app(Settings(**given))
    assert service.app is not app
    running = Service(app)
    yield running
    for client in running.clients:
        await client.aclose()
    await app.state.database.dispose()


async def test_who_comes_directly_reads_them(public: Service) -> None:
    answer = await public.client().get("/metrics")
    assert answer.status_code == 200
    assert "hugeplan_fleet_nodes" in answer.text


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
async def test_who_comes_by_a_proxy_needs_a_credential(public: Service, header: str) -> None:
    passed_on = {header: "203.0.113.7"}
    assert (await public.client().get("/metrics", headers=passed_on)).status_code == 401
    agent: httpx.AsyncClient = await public.client_as(Role.AGENT)
    assert (await agent.get("/metrics", headers=passed_on)).status_code == 403
    viewer = await public.client_as(Role.VIEWER)
    assert (await viewer.get("/metrics", headers=passed_on)).status_code == 200


async def test_a_credential_that_ended_reads_nothing_by_a_proxy(public: Service) -> None:
    """It was remembered as good, and nothing asked the database."""
    passed_on = {"X-Forwarded-For": "203.0.113.7"}
    viewer = await public.client_as(Role.VIEWER)
    assert (await viewer.get("/metrics", headers=passed_on)).status_code == 200
    remembered = dict(public.app.state.intake.gate._known)
    rotated = await viewer.post("/api/v1/token/rotate", json={"overlap_seconds": 0})
    assert rotated.status_code in {200, 201}
    public.app.state.intake.gate._known.update(remembered)  # as in another process of the service
    assert (await viewer.get("/metrics", headers=passed_on)).status_code == 401
