"""Odd times, cursors and numbers at every route: a refusal, never an internal error."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.reports import report
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.api.json_body import JsonLimits, parse_json
from hugeplan.api.pagination import encode_cursor
from hugeplan.errors import InvalidInputError
from hugeplan.settings import Settings

TIMES = (
    "2026-11-20T12:00:00+23:59", "2026-11-20T12:00:00-23:59", "2000-01-01T00:00:00+23:59", "2199-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-14:00", "2026-11-20T12:00:00", "294277-01-01T00:00:00Z",
    "infinity", "2026-11-20T12:00:00.123456789Z", "1e400", "-1", "2026-11-20",
)  # fmt: skip
NUMBERS = ("-1", "0", "2147483648", "9223372036854775807", "9223372036854775808", "1" * 400, "1e9", "NaN", "０")
TEXTS = ("", "'", "\\", "%00", "\u2028", "a" * 1000, "=1", *(str(uuid.UUID(int=0)),))
GOOD_PLACES = (("2026-11-20T12:00:00+00:00", "0", "a"), (str(uuid.UUID(int=0)), "0"))
ODD_PLACES = (
    (*TIMES[:6], *NUMBERS[:5], "", "[]", "null", '["a"]'),
    ("9223372036854775807", "2147483648", "", "a", "00000000000000000000"),
)
CURSORS = tuple(
    encode_cursor(first, second)
    for firsts, seconds in ((ODD_PLACES[0], GOOD_PLACES[1]), (GOOD_PLACES[0], ODD_PLACES[1]), GOOD_PLACES)
    for first in firsts
    for second in seconds
)
"""One part odd at a time: a cursor of two odd parts is refused for the first of them."""


def values_of(parameter: dict[str, Any]) -> tuple[str, ...]:
    """Odd values of a parameter's own kind."""
    schema = str(parameter["schema"])
    if parameter["name"] == "cursor":
        return CURSORS
    return TIMES if "date-time" in schema else NUMBERS if "integer" in schema or "number" in schema else TEXTS


def calls(document: dict[str, Any], node_id: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each GET with one odd value at a time."""
    for path, operations in document["paths"].items():
        operation = operations.get("get")
        if operation is None or path in {"/api/v1/events", "/metrics"} or path.startswith("/api/v1/oidc"):
            continue
        parameters = operation.get("parameters", [])
        places = [parameter["name"] for parameter in parameters if parameter["in"] == "path"]
        plain = {name: node_id if name == "node_id" else str(uuid.UUID(int=1)) for name in places}
        address = path.format(**plain) if places else path
        for parameter in parameters:
            for value in values_of(parameter) if parameter["in"] == "query" else ():
                yield address, {parameter["name"]: value}
        for place in places:
            for value in ("'", "\u2028", "a" * 1000, NUMBERS[3], NUMBERS[4]):
                quoted = httpx.URL("http://x/").copy_with(path=f"/{value}").raw_path.decode()[1:].replace("/", "%2F")
                yield path.format(**(plain | {place: quoted})), {}


async def test_no_query_or_address_is_an_internal_error(service: Service, admin: httpx.AsyncClient) -> None:
    agent = await service.client_as(Role.AGENT)
    assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    node_id = (await admin.get("/api/v1/nodes")).json()["items"][0]["id"]
    wrong = []
    count = 0
    for path, query in calls(service.app.openapi(), node_id):
        answer = await admin.get(path, params=query)
        count += 1
        if answer.status_code >= 500:
            wrong.append((path, query, answer.status_code))
    assert count > 500
    assert wrong == [], wrong[:6]


@pytest.mark.parametrize("field", ["created_at", "taken_at"])
@pytest.mark.parametrize("moment", TIMES)
async def test_no_time_of_a_report_is_an_internal_error(agent: httpx.AsyncClient, field: str, moment: str) -> None:
    document = report()
    (document["sample"] if field == "taken_at" else document)[field] = moment
    assert (await agent.post("/api/v1/reports", json=document)).status_code in {201, 422}


async def test_a_wrong_role_is_told_so_before_its_rate(service: Service) -> None:
    """Whoever may not do a thing does not learn to come back in a minute for it."""
    agent = await service.client_as(Role.AGENT)
    limiter = service.app.state.rate_limiter
    most = service.app.state.settings.requests_per_minute
    assert_problem(await agent.get("/api/v1/nodes"), 403, "forbidden")
    buckets = limiter._buckets["token"]
    ((key, (_, at)),) = buckets.items()
    buckets[key] = (0.0, at + most)
    assert_problem(await agent.get("/api/v1/nodes"), 403, "forbidden")


async def test_two_hosts_are_refused(service: Service) -> None:
    headers = [("Host", "a.example"), ("Host", "b.example")]
    answer = await service.client().request("GET", "/healthz", headers=headers)
    assert_problem(answer, 400, "bad-request")


LONG = ("0." + "0" * 205 + "7" * 205 + "e-99", "7" * 200 + "0" * 90 + "e9", "-0." + "0" * 62 + "1")
FAR = ("1e308", "1.7976931348623157E+308", "-5e-324", "1e-0000300", "0e999", "2.5e290 ", "1e300\n")


@pytest.mark.parametrize("number", LONG)
def test_numbers_whose_zeros_do_what_an_exponent_does_are_refused(number: str) -> None:
    """19,900 of the first, some kB as gzip, held the interpreter for 0.25 s each time that they were read."""
    limits, body = JsonLimits.of(Settings()), f"[{','.join([number] * 19_900)}]".encode()
    began = time.process_time()
    with pytest.raises(InvalidInputError, match="numbers of 64 characters"):
        parse_json(body, limits)
    assert time.process_time() - began < 0.15


@pytest.mark.parametrize("number", [*FAR, "1e99", "1.7976931348623157", "0.5e-9", "18446744073709551615"])
def test_numbers_of_every_size_cost_about_the_same(number: str) -> None:
    """49,000 of 1e308 took half a second on the event loop: the decoder leaves its tables for each of them."""
    body, limits = f"[{','.join([number] * 49_000)}]".encode(), JsonLimits.of(Settings())
    taken = []
    for _ in range(3):  # what other tests left may be collected meanwhile
        began = time.process_time()
        if number in FAR:
            with pytest.raises(InvalidInputError, match="exponents of three digits"):
                parse_json(body, limits)
        else:
            assert len(parse_json(body, limits)) == 49_000
        taken.append(time.process_time() - began)
    assert min(taken) < 0.15


def test_a_few_far_numbers_and_many_texts_that_look_like_them_are_taken() -> None:
    document = {
        "far": [1e308, 5e-324] * 500,
        "hashes": [hashlib.sha256(str(number).encode()).hexdigest() for number in range(5_000)],
        "words": ["1e300"] * 5_000,
        "long": [0.1] * 1_000,
        "lists": [",".join(map(str, range(20)))] * 2_000,
        "digits": ["7" * 70] * 2_000,
    }
    long = "0.1" + "0" * 70
    for separators in ((",", ":"), (", ", ": ")):
        body = json.dumps(document, separators=separators).replace("0.1", long)
        assert parse_json(body.encode(), JsonLimits.of(Settings())) == document
        assert parse_json(json.dumps(document, separators=separators).encode(), JsonLimits.of(Settings())) == document


async def test_far_numbers_are_refused_at_the_door(service: Service) -> None:
    admin = await service.client_as(Role.ADMIN)
    body = b'{"name": "x", "role": "viewer", "x": [' + b"1e308," * 2_000 + b"1]}"
    answer = await admin.post("/api/v1/tokens", content=body, headers={"Content-Type": "application/json"})
    assert "exponents" in assert_problem(answer, 422, "invalid-input")["errors"][0]["expected"]
