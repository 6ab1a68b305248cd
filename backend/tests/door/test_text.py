"""Text that a database, a log or an encoder may not hold, in every parameter of every operation."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest
from support.document import committed_document
from support.reports import report, run
from support.service import Service, assert_problem, fields_of

from hugeplan.access.schemas import Role

ID = "00000000-0000-4000-8000-000000000001"
STREAMS = {"/api/v1/events"}
# Percent-encoded: a NUL, other control characters, outside of the basic plane, a lone surrogate, not UTF-8, wildcards.
TEXTS = ("a%00b", "%F0%90%80%80%3D%00", "%01%1b%7f", "%ED%A0%80%ff", "%25_%5C")


def text_parameters() -> dict[str, list[str]]:
    """The names of the query parameters of each safe operation, by path."""
    paths = committed_document()["paths"]
    found = {
        path: [each["name"] for each in methods.get("get", {}).get("parameters", []) if each["in"] == "query"]
        for path, methods in paths.items()
    }
    return {path: names for path, names in found.items() if names and path not in STREAMS}


PARAMETERS = text_parameters()


@pytest.mark.parametrize("path", sorted(PARAMETERS))
async def test_no_text_of_a_query_is_an_internal_error(service: Service, path: str) -> None:
    client = await service.client_as(Role.ADMIN)
    address = path.partition("{")[0] + ID + path.rpartition("}")[2] if "{" in path else path
    for name in PARAMETERS[path]:
        extra = "" if "summary" not in path else "&by=label" if name == "label_key" else "&by=label&label_key=a"
        for text in TEXTS:
            answer = await client.get(f"{address}?{name}={text}{extra}")
            assert answer.status_code < 500, (name, text, answer.text)
            if "%00" in text and "{" not in path:
                problem = assert_problem(answer, 422, "invalid-input")
                assert fields_of(problem)
                assert all(field.startswith(name) for field in fields_of(problem))


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/api/v1/audit", ["2026-01-01T00:00:00+00:00", "9" * 30]),
        ("/api/v1/audit", ["0001-01-01T00:00:00+23:59", "1"]),
        ("/api/v1/audit", ["9999-12-31T23:59:59-23:59", "1"]),
        ("/api/v1/events/history", ["9" * 30, ""]),
        ("/api/v1/nodes?sort=mem_total_bytes", ["9" * 30, ID]),
        ("/api/v1/nodes?sort=last_report_at", ["0001-01-01T00:00:00+23:59", ID]),
        ("/api/v1/nodes", ["\ud800", ID]),
        ("/api/v1/fleet/groups", ["9" * 30, "a"]),
        ("/api/v1/scenarios", ["0001-01-01T00:00:00+23:59", ID]),
        ("/api/v1/tokens", ["9" * 5000, ID]),
    ],
)
async def test_a_made_up_cursor_is_422(service: Service, path: str, key: list[str]) -> None:
    client = await service.client_as(Role.ADMIN)
    cursor = base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")
    answer = await client.get(path, params=httpx.URL(f"http://x{path}").params.merge({"cursor": cursor}))
    assert fields_of(assert_problem(answer, 422, "invalid-input")) == ["cursor"]


class TestRunMark:
    @pytest.mark.parametrize(
        ("reason", "status"),
        [("fan broke \U00010000", 200), ("\x01\x1b\x7f", 200), ("a\0b", 422), ("\ud800", 422), ("x" * 4097, 422)],
    )
    async def test_any_reason_is_stored_or_refused(self, service: Service, reason: str, status: int) -> None:
        agent, planner = await service.client_as(Role.AGENT), await service.client_as(Role.PLANNER)
        stored = (await agent.post("/api/v1/reports", json=report(run=run()))).json()
        body: Any = json.dumps({"bad": True, "reason": reason})
        address = f"/api/v1/runs/{stored['run_id']}/mark"
        headers = {"Content-Type": "application/json", "Cookie": "hugeplan_session=j[b+7"}
        answer = await planner.put(address, content=body, headers=headers)
        assert answer.status_code == status, answer.text
        if status == 200:
            assert answer.json()["bad_reason"] == reason
        again = await planner.put(address, content=json.dumps({"bad": False}), headers=headers)
        assert again.status_code == 200, again.text
