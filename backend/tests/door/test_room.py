"""What one credential may have kept is bounded in number, and the refusal names the limit and its setting."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, get_args

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import AwareDatetime
from support.service import Service, assert_problem
from trials.test_trials import known_node, trial

from hugeplan.documents.bounds import refuse_absurd_time
from hugeplan.main import ROUTERS

API = "/api/v1"
SCENARIO = {
    "node": {"name": "n", "memory": "64GiB"},
    "databases": [{"name": "a", "engine": "postgresql", "settings": {"shared_buffers": "1GB"}}],
}
Limit = Callable[..., None]
_TIMES: set[Any] = {datetime, AwareDatetime}


@pytest.fixture
def limit(service: Service) -> Iterator[Limit]:
    """Change settings of the running service for a test."""
    state = service.app.state
    before = state.settings

    def change(**values: int) -> None:
        state.settings = before.model_copy(update=values)

    yield change
    state.settings = before


async def kept(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post(f"{API}/plans", json={"scenario": SCENARIO})


async def test_scenarios_are_bounded_in_number(planner: httpx.AsyncClient, limit: Limit) -> None:
    limit(max_scenarios=2)
    saved = [await planner.post(f"{API}/scenarios", json={"name": f"s{n}", "scenario": SCENARIO}) for n in range(3)]
    assert [one.status_code for one in saved] == [201, 201, 409]
    text = json.dumps(SCENARIO)
    imported = [
        await planner.post(f"{API}/scenarios/import", json={"name": "y", "yaml": text}),
        await planner.post(
            f"{API}/imports/scenarios", json={"source": "x", "scenarios": [{"name": "z", "scenario": SCENARIO}]}
        ),
        await planner.post(f"{API}/imports/kubernetes?save=true", json={"kind": "List", "items": []}),
    ]
    for refused in (saved[2], *imported):
        assert "2 scenarios are kept" in assert_problem(refused, 409, "conflict")["detail"]
        assert "HUGEPLAN_MAX_SCENARIOS" in refused.text
    one = saved[0].json()
    await planner.delete(f"{API}/scenarios/{one['id']}", headers={"If-Match": saved[0].headers["ETag"]})
    assert (await planner.post(f"{API}/scenarios", json={"name": "s", "scenario": SCENARIO})).status_code == 201


async def test_open_plans_are_bounded_per_credential(
    planner: httpx.AsyncClient, admin: httpx.AsyncClient, limit: Limit
) -> None:
    limit(max_open_plans=1)
    scenario = (await planner.post(f"{API}/scenarios", json={"name": "s", "scenario": SCENARIO})).json()["id"]
    first = await kept(planner)
    assert first.status_code == 201
    for refused in (await kept(planner), await planner.post(f"{API}/scenarios/{scenario}/plans")):
        detail = assert_problem(refused, 409, "conflict")["detail"]
        assert "1 plans that are drafts or proposed" in detail
        assert "HUGEPLAN_MAX_OPEN_PLANS" in detail
    # Somebody else has a share of their own.
    assert (await kept(admin)).status_code == 201
    # One that is decided about makes room, and so does one that is deleted.
    url = f"{API}/plans/{first.json()['id']}"
    assert (await planner.post(f"{url}/propose", headers={"If-Match": "*"})).status_code == 200
    assert_problem(await kept(planner), 409, "conflict")
    assert (await admin.post(f"{url}/approve", headers={"If-Match": "*"})).status_code == 200
    assert (await kept(planner)).status_code == 201


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1970-01-01T00:00:00Z"])
async def test_a_trial_of_an_absurd_time_spoils_no_list(
    agent: httpx.AsyncClient, viewer: httpx.AsyncClient, at: str
) -> None:
    """PostgreSQL holds years that Python cannot read: once stored, the list was answered 500 for ever."""
    node_id = await known_node(agent)
    refused = await agent.post(f"{API}/trials", json=trial(started_at=at))
    assert "started_at" in assert_problem(refused, 422, "invalid-input")["detail"]
    assert (await viewer.get(f"{API}/nodes/{node_id}/trials")).json()["items"] == []


def test_no_document_from_outside_has_a_time_without_bounds() -> None:
    """Every time that a request's body may have is between 2000 and 2199, or no request can send it."""
    unbounded: list[str] = []

    def look(model: Any, path: str, seen: set[Any]) -> None:
        for name, field in getattr(model, "model_fields", {}).items():
            functions = [getattr(one, "func", None) for one in field.metadata]
            if _TIMES & {field.annotation, *get_args(field.annotation)} and refuse_absurd_time not in functions:
                unbounded.append(f"{path}.{name}")
            for inner in _models_in(field.annotation):
                if inner not in seen:
                    look(inner, f"{path}.{name}", seen | {inner})

    bodies = [route for router in ROUTERS for route in router.routes if getattr(route, "body_field", None) is not None]
    assert len(bodies) > 15
    for route in bodies:
        if isinstance(route, APIRoute) and route.body_field is not None:
            for model in _models_in(route.body_field.field_info.annotation):
                look(model, f"{route.path}: {model.__name__}", {model})
    assert unbounded == []


def _models_in(annotation: Any) -> list[Any]:
    """The models that an annotation names, however deep."""
    if hasattr(annotation, "model_fields"):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models_in(inner)]
