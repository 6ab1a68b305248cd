"""Whatever a client sends, it gets an answer that the document describes: never a 500, always a problem document.

Requests are made from the service's own OpenAPI document: right shapes with wrong values, and plain nonsense.
"""

from __future__ import annotations

import json
import os
import string
import uuid
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reports import report, run
from support.service import Service

from hugeplan.access.schemas import Role

JSON = {"Content-Type": "application/json"}
# `make test` asks the same questions each time; HUGEPLAN_FUZZ_EXAMPLES=2000 asks that many new ones.
EXAMPLES = os.environ.get("HUGEPLAN_FUZZ_EXAMPLES")
# Each request is judged on its own answer, so examples may share the service.
RELAXED = settings(
    max_examples=int(EXAMPLES or 60),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

nasty_text = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", "\0", "'; DROP TABLE nodes; --", "../../etc/passwd", "\u202e", "💥" * 50, "NaN", "1e999", "{}"]
    ),
)
nasty_numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 1e308, -0.0, 1e-320]),
)
nasty = st.recursive(
    st.one_of(st.none(), st.booleans(), nasty_numbers, nasty_text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(nasty_text, inner, max_size=4)),
    max_leaves=8,
)


def judge(answer: httpx.Response) -> None:
    """An answer is a success, or a problem that is the client's."""
    assert answer.status_code < 500, (answer.request.method, answer.request.url, answer.text)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == answer.status_code
        assert all(error["field"] and error["expected"] for error in problem.get("errors", []))


def paths_of(document: Any, prefix: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a document."""
    found = [prefix] if prefix else []
    members = document.items() if isinstance(document, dict) else enumerate(document)
    for key, member in members:
        if isinstance(member, dict | list):
            found += paths_of(member, (*prefix, key))
        else:
            found.append((*prefix, key))
    return found


def replaced(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of a document with one place replaced."""
    copy = json.loads(json.dumps(document))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


SCENARIO = {
    "schema_version": 1,
    "node": {
        "name": "n",
        "arch": "x86_64",
        "cpus": 8,
        "numa_nodes": [
            {"id": 0, "memory": "32GiB", "pools": [{"page_size": "2MiB", "nr_hugepages": 512, "free": 512}]}
        ],
        "hardware": {"cpu": {"vendor": "AuthenticAMD", "family": 26, "model": 2}, "virtualised": True},
    },
    "reservations": {"kubernetes": True, "provider": "gke", "max_pods": 110},
    "tenants": [
        {"name": "app", "count": 4, "request": "1Gi", "limit": "2Gi", "history": {"times": [1], "used": ["1Gi"]}}
    ],
    "databases": [
        {
            "name": "main",
            "engine": "postgresql",
            "version": "17",
            "settings": {"shared_buffers": "8GB", "max_connections": "200"},
            "connections": 200,
            "weight": 1,
            "pool_range": {"min": "4GiB", "max": "16GiB"},
            "workload": {
                "row_bytes": 128,
                "working_set": "6GiB",
                "zipf_s": 0.99,
                "active_connections": 8,
                "operations_per_second_per_busy_core": 21000,
                "operation": "key_lookup",
                "benefit": [{"pool": "5GiB", "throughput": 1234}],
            },
        }
    ],
    "policy": {"slack": "1%", "risk": "1%", "page_sizes": ["2MiB", "1GiB"], "reserve_at": "boot"},
}
REPORT = report(run=run())


@pytest.fixture(scope="module")
async def clients(application: Any) -> Any:
    """Clients that live as long as the module, because hypothesis calls a test many times."""
    service = Service(application)
    yield {role: await service.client_as(role) for role in (Role.AGENT, Role.ADMIN)}
    for client in service.clients:
        await client.aclose()
    await service.empty()


async def read_everything(client: httpx.AsyncClient, receipt: dict[str, Any]) -> None:
    """What was accepted can be read back everywhere, and planned for."""
    node = f"/api/v1/nodes/{receipt['node_id']}"
    for path in ("/api/v1/nodes", node, f"{node}/samples", f"{node}/runs", f"{node}/processes"):
        assert (await client.get(path)).status_code == 200, path
    if receipt["run_id"] is not None:
        assert (await client.get(f"/api/v1/runs/{receipt['run_id']}")).status_code == 200
    scenario = {"databases": SCENARIO["databases"], "tenants": SCENARIO["tenants"]}
    judge(await client.post("/api/v1/plans/preview", json={"node_id": receipt["node_id"], "scenario": scenario}))


class TestBodies:
    @RELAXED
    @given(data=st.data())
    async def test_report_with_one_wrong_place_is_refused_or_readable(
        self, clients: dict[Role, httpx.AsyncClient], data: st.DataObject
    ) -> None:
        fresh = REPORT | {"report_id": str(uuid.uuid4())}
        document = replaced(fresh, data.draw(st.sampled_from(paths_of(REPORT))), data.draw(nasty))
        answer = await clients[Role.AGENT].post("/api/v1/reports", content=json.dumps(document), headers=JSON)
        judge(answer)
        if answer.status_code == 201:
            await read_everything(clients[Role.ADMIN], answer.json())

    @RELAXED
    @given(data=st.data())
    async def test_preview_with_one_wrong_place(
        self, clients: dict[Role, httpx.AsyncClient], data: st.DataObject
    ) -> None:
        document = replaced(SCENARIO, data.draw(st.sampled_from(paths_of(SCENARIO))), data.draw(nasty))
        body = json.dumps({"scenario": document})
        judge(await clients[Role.ADMIN].post("/api/v1/plans/preview", content=body, headers=JSON))

    @RELAXED
    @given(body=st.one_of(st.binary(max_size=60), nasty.map(lambda value: json.dumps(value).encode())))
    async def test_nonsense_everywhere(self, clients: dict[Role, httpx.AsyncClient], body: bytes) -> None:
        for path in ("/api/v1/scenarios", "/api/v1/plans/preview", "/api/v1/tokens", "/api/v1/enrolments"):
            judge(await clients[Role.ADMIN].post(path, content=body, headers=JSON))
        judge(await clients[Role.AGENT].post("/api/v1/reports", content=body, headers=JSON))


class TestAddresses:
    @RELAXED
    @given(parts=st.lists(st.text(string.printable, max_size=12), max_size=4))
    async def test_any_path(self, clients: dict[Role, httpx.AsyncClient], parts: list[str]) -> None:
        path = "/api/v1/" + "/".join(quote(part, safe="") for part in parts)
        judge(await clients[Role.ADMIN].get(path))

    @RELAXED
    @given(data=st.data())
    async def test_any_parameter_of_any_route(
        self, clients: dict[Role, httpx.AsyncClient], application: Any, data: st.DataObject
    ) -> None:
        document = application.openapi()
        path = data.draw(st.sampled_from([p for p in document["paths"] if "get" in document["paths"][p]]))
        query = []
        for parameter in document["paths"][path]["get"].get("parameters", []):
            value = data.draw(nasty_text)
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", quote(value, safe="") or "x")
            else:
                query.append((parameter["name"], value.encode("utf-8", "replace")))
        judge(await clients[Role.ADMIN].get(path, params=httpx.QueryParams([(k, v.decode()) for k, v in query])))
