"""Requests made by schemathesis from the service's own document, with the rights of every role and of none.

No answer is 5xx, and each has a status and a body that the document declares. HUGEPLAN_FUZZ_EXAMPLES asks for more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from support.document import committed_document
from support.reports import report, run
from support.server import serving

from hugeplan import embedded
from hugeplan.access.schemas import Role

EXAMPLES = int(os.environ.get("HUGEPLAN_FUZZ_EXAMPLES", "4"))
# They hold the connection open until something happens.
STREAMS = {"/api/v1/events"}


def operations() -> list[tuple[str, str]]:
    """Method and path of every operation of the document."""
    paths = committed_document()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods if path not in STREAMS]


@dataclass(frozen=True)
class Target:
    """A running service, and the token of each role; the stranger has none."""

    url: str
    tokens: dict[str, str | None]
    schema: Any


@pytest.fixture(scope="module")
def target(
    postgres: embedded.EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    """A service with a node that has a run, and its document as schemathesis reads it."""
    postgres.ensure_database("schemathesis", template)
    unlimited = {
        "HUGEPLAN_REQUESTS_PER_MINUTE": "1000000",
        "HUGEPLAN_REFUSALS_PER_MINUTE": "1000000",
        "HUGEPLAN_LOGINS_PER_MINUTE": "10000",
    }
    with serving(postgres.url("schemathesis"), tmp_path_factory.mktemp("schemathesis"), **unlimited) as server:
        admin = {"Authorization": f"Bearer {server.admin_token}"}
        tokens: dict[str, str | None] = {"stranger": None, "admin": server.admin_token}
        for role in Role:
            if role is not Role.ADMIN:
                body = {"name": str(role), "role": str(role)}
                tokens[str(role)] = httpx.post(f"{server.url}/api/v1/tokens", json=body, headers=admin).json()["token"]
        agent = {"Authorization": f"Bearer {tokens['agent']}"}
        assert httpx.post(f"{server.url}/api/v1/reports", json=report(run=run()), headers=agent).status_code == 201
        document = httpx.get(f"{server.url}/api/openapi.json", timeout=60).json()
        assert document == committed_document()
        yield Target(server.url, tokens, schemathesis.openapi.from_dict(document))


@pytest.mark.parametrize(("method", "path"), operations(), ids=str)
def test_every_answer_is_declared(method: str, path: str, target: Target) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize="HUGEPLAN_FUZZ_EXAMPLES" not in os.environ,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=target.schema[path][method].as_strategy(), role=st.sampled_from(sorted(target.tokens)))
    def ask(case: Any, role: str) -> None:
        token = target.tokens[role]
        case.headers.pop("Authorization", None)
        given_headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            answer = case.call(base_url=target.url, headers=given_headers, timeout=60, allow_redirects=False)
        except (UnicodeError, ValueError):
            return  # nothing that can be sent
        assert answer.status_code < 500, (role, answer.text)
        case.validate_response(answer, checks=[status_code_conformance, response_schema_conformance])

    ask()
