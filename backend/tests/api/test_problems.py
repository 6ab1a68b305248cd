"""Every error is a problem document: its type is stable, its field is named, and no trace leaves the service."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from support.reports import report
from support.service import PROBLEMS, Service, assert_problem, fields_of

from hugeplan.access.schemas import Role
from hugeplan.api import problems

MANY = {f"k{number}": 1 for number in range(49_000)}
JSON = {"Content-Type": "application/json"}


class TestRouting:
    @pytest.mark.parametrize("path", ["/api", "/api/", "/api/v1", "/api/v1/nothing", "/api/v2/nodes", "/api/v1/nodes/"])
    async def test_unknown_api_path_is_404(self, service: Service, path: str) -> None:
        assert_problem(await service.client().get(path), 404, "not-found")

    @pytest.mark.parametrize(
        ("method", "path"), [("PUT", "/api/v1/nodes"), ("DELETE", "/healthz"), ("POST", "/some/page")]
    )
    async def test_wrong_method_is_405_with_allow(self, service: Service, method: str, path: str) -> None:
        answer = await service.client().request(method, path)
        assert_problem(answer, 405, "method-not-allowed")
        assert "GET" in answer.headers["allow"]

    async def test_wrong_id_names_the_parameter(self, viewer: httpx.AsyncClient) -> None:
        problem = assert_problem(await viewer.get("/api/v1/nodes/not-an-id"), 422, "invalid-input")
        assert fields_of(problem) == ["node_id"]
        assert problem["detail"] == "node_id: expected a valid UUID, got not-an-id."

    @pytest.mark.parametrize(
        ("name", "detail"),
        [
            ("", "name: expected at least 1 character, got nothing."),
            ("n" * 254, f"name: expected at most 253 characters, got {'n' * 117}...."),
        ],
    )
    async def test_a_length_is_said_in_plain_words(self, planner: httpx.AsyncClient, name: str, detail: str) -> None:
        body = {"name": name, "scenario": {"schema_version": 1}}
        problem = assert_problem(await planner.post("/api/v1/scenarios", json=body), 422, "invalid-input")
        assert problem["detail"] == detail

    @pytest.mark.parametrize(("query", "field"), [("limit=0", "limit"), ("limit=501", "limit"), ("limit=x", "limit")])
    async def test_wrong_query_names_the_parameter(self, viewer: httpx.AsyncClient, query: str, field: str) -> None:
        problem = assert_problem(await viewer.get(f"/api/v1/nodes?{query}"), 422, "invalid-input")
        assert fields_of(problem) == [field]

    @pytest.mark.parametrize(
        "cursor", ["x", "%00", "W10", "WyJhIl0", "bnVsbA", "WzEsMl0", "é", "W10=" * 100, "WyJcdWQ4MDAiLCJhIl0"]
    )
    @pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/scenarios"])
    async def test_foreign_cursor_is_422(self, viewer: httpx.AsyncClient, path: str, cursor: str) -> None:
        answer = await viewer.get(path, params={"cursor": cursor})
        assert fields_of(assert_problem(answer, 422, "invalid-input")) == ["cursor"]

    async def test_nul_in_a_search_is_422(self, viewer: httpx.AsyncClient) -> None:
        assert fields_of(assert_problem(await viewer.get("/api/v1/nodes?q=a%00b"), 422, "invalid-input")) == ["q"]


class TestBodies:
    URL = "/api/v1/plans/preview"

    @pytest.mark.parametrize("body", [b"", b"{", b"nope", b"\xff\xfe{}", b'{"a":1,}', b"[" * 100_000, b'{"a": 01}'])
    async def test_body_that_is_not_json(self, viewer: httpx.AsyncClient, body: bytes) -> None:
        assert_problem(await viewer.post(self.URL, content=body, headers=JSON), 422, "invalid-input")

    @pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"text"'])
    async def test_body_that_is_no_object(self, viewer: httpx.AsyncClient, body: bytes) -> None:
        assert_problem(await viewer.post(self.URL, content=body, headers=JSON), 422, "invalid-input")

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "/scenarios", MANY),
            ("POST", "/plans", MANY),
            ("POST", "/plans/preview", MANY),
            ("POST", "/lint", MANY),
            ("POST", "/fleet/plan", MANY),
            ("POST", "/fleet/plan", {"selector": MANY}),
            ("POST", "/imports/scenarios", MANY),
            ("POST", "/imports/scenarios", {"source": "a", "scenarios": [dict.fromkeys(list(MANY)[:99], 1)] * 490}),
            ("POST", "/trials", MANY),
            ("POST", "/trials", {"page_sizes": [{"blocks": [{"pairs": [{}] * 200}] * 100}]}),
            ("PUT", f"/nodes/{UUID(int=1)}/labels", {"labels": MANY}),
            ("PUT", f"/nodes/{UUID(int=1)}/plan-in-force", MANY),
            ("POST", "/reports", report() | {"labels": MANY}),
        ],
    )
    async def test_a_body_of_wrong_fields_costs_little(
        self, planner: httpx.AsyncClient, agent: httpx.AsyncClient, method: str, path: str, body: Any
    ) -> None:
        client = agent if path == "/reports" else planner
        content = json.dumps(body)
        begun = time.thread_time()
        answer = await client.request(method, f"/api/v1{path}", content=content, headers=JSON)
        spent = time.thread_time() - begun
        detail = assert_problem(answer, 422, "invalid-input")["detail"]
        assert detail.startswith("body: expected at most 2000 wrong fields, of which 50 are named, got 4")
        assert spent < 0.25, f"{spent:.3f} s"

    async def test_a_body_of_few_wrong_fields_says_how_many(self, planner: httpx.AsyncClient) -> None:
        body = {"source": "a", "scenarios": [{"name": 1}] * 100}
        problem = assert_problem(await planner.post("/api/v1/imports/scenarios", json=body), 422, "invalid-input")
        assert fields_of(problem)[:2] == ["scenarios[0].name", "scenarios[0].scenario"]
        assert len(problem["errors"]) == 50
        assert "(199 more)" in problem["detail"]

    async def test_too_deep(self, viewer: httpx.AsyncClient) -> None:
        body = b'{"scenario":' * 40 + b"1" + b"}" * 40
        problem = assert_problem(await viewer.post(self.URL, content=body, headers=JSON), 422, "invalid-input")
        assert "32 levels" in problem["detail"]

    async def test_too_many_elements_name_the_field(self, viewer: httpx.AsyncClient) -> None:
        body = json.dumps({"scenario": {"tenants": [0] * 100_001}})
        problem = assert_problem(await viewer.post(self.URL, content=body, headers=JSON), 422, "invalid-input")
        assert fields_of(problem) == ["scenario.tenants"]

    async def test_integer_of_many_digits(self, viewer: httpx.AsyncClient) -> None:
        body = b'{"scenario": {"policy": {"slack_min_pages": ' + b"9" * 6000 + b"}}}"
        assert_problem(await viewer.post(self.URL, content=body, headers=JSON), 422, "invalid-input")

    async def test_too_large_is_413(self, viewer: httpx.AsyncClient) -> None:
        body = b'{"scenario": "' + b"x" * (8 * 1024**2) + b'"}'
        problem = assert_problem(await viewer.post(self.URL, content=body, headers=JSON), 413, "body-too-large")
        assert fields_of(problem) == ["body"]

    async def test_too_large_without_a_declared_length_is_413(self, viewer: httpx.AsyncClient) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(9):
                yield b"x" * 1024**2

        assert_problem(await viewer.post(self.URL, content=chunks(), headers=JSON), 413, "body-too-large")

    @pytest.mark.parametrize("media_type", ["text/plain", "application/xml", "multipart/form-data", ""])
    async def test_other_media_type_is_415(self, viewer: httpx.AsyncClient, media_type: str) -> None:
        answer = await viewer.post(self.URL, content=b"{}", headers={"Content-Type": media_type})
        assert_problem(answer, 415, "unsupported-media-type")

    async def test_compressed_body_is_415(self, viewer: httpx.AsyncClient) -> None:
        answer = await viewer.post(self.URL, content=b"{}", headers=JSON | {"Content-Encoding": "br"})
        assert_problem(answer, 415, "unsupported-media-type")

    async def test_unknown_field_is_named(self, viewer: httpx.AsyncClient) -> None:
        answer = await viewer.post(self.URL, json={"scenario": {}, "scenaro": 1})
        assert "scenaro" in fields_of(assert_problem(answer, 422, "invalid-input"))


class TestInternalErrors:
    @pytest.mark.parametrize(
        "case",
        [
            ("/api/v1/nodes", "hugeplan.fleet.service.list_nodes_json"),
            ("/api/v1/reports", "hugeplan.fleet.ingest.writer.ReportWriter.store"),
        ],
    )
    async def test_unexpected_error_is_500_without_its_trace(
        self, service: Service, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str]
    ) -> None:
        path, broken = case

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("secret of the house")

        monkeypatch.setattr(broken, fail)
        method, role = ("GET", Role.VIEWER) if path == "/api/v1/nodes" else ("POST", Role.AGENT)
        client = await service.client_as(role)
        with caplog.at_level(logging.ERROR):
            answer = await client.request(method, path, json=report())
        problem = assert_problem(answer, 500, "internal")
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert "secret of the house" in caplog.text


def test_every_problem_type_is_unique_and_stable() -> None:
    kinds = [*problems.PROBLEM_TYPES.values(), problems.INTERNAL]
    assert len({kind.slug for kind in kinds}) == len(kinds)
    assert {kind.slug for kind in kinds} == {
        "body-timeout",
        "body-too-large",
        "conflict",
        "csrf",
        "document-damaged",
        "forbidden",
        "internal",
        "invalid-input",
        "not-found",
        "plan-does-not-fit",
        "plan-fit-unknown",
        "precondition-failed",
        "precondition-required",
        "rate-limited",
        "unauthenticated",
        "unavailable",
        "unsupported-media-type",
    }
    assert PROBLEMS == problems.TYPE_BASE
