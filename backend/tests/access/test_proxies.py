"""Behind a proxy: whose request it is, and that one who guesses keeps no other out."""

from __future__ import annotations

import timeit
from collections.abc import AsyncIterator
from ipaddress import ip_network

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text
from support.service import Service

from hugeplan.access import bootstrap
from hugeplan.access.schemas import Role
from hugeplan.api.forwarded import Proxies, limit_key
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.main import create_app
from hugeplan.settings import Settings

PROXY = ("10.0.0.0/8", "fd00::/8")


def client_of(peer: str, *values: str, header: str = "x-forwarded-for", trusted: tuple[str, ...] = PROXY) -> str:
    settings = Settings(trusted_proxies=tuple(map(ip_network, trusted)), trusted_proxy_header=header)
    headers = [(header.encode(), value.encode("latin-1")) for value in values]
    return Proxies(settings).client_of(peer, headers)


@pytest.mark.parametrize(
    ("peer", "values", "expected"),
    [
        ("10.0.0.1", ("192.0.2.9",), "192.0.2.9"),
        ("192.0.2.1", ("198.51.100.7",), "192.0.2.1"),  # no proxy of ours: its word counts nothing
        ("10.0.0.1", ("198.51.100.7, 192.0.2.9",), "192.0.2.9"),  # the client wrote the first itself
        ("10.0.0.1", ("198.51.100.7", "192.0.2.9"), "192.0.2.9"),  # as two lines
        ("10.0.0.1", ("192.0.2.9, 10.0.0.2",), "192.0.2.9"),  # two proxies
        ("10.0.0.1", ("10.0.0.3, 10.0.0.2",), "10.0.0.3"),  # a client in the proxies' network
        ("10.0.0.1", ("192.0.2.9:4711",), "192.0.2.9"),
        ("10.0.0.1", ("2001:db8::7",), "2001:db8::7"),
        ("10.0.0.1", ("[2001:db8::7]:443",), "2001:db8::7"),
        ("fd00::1", ("::ffff:192.0.2.9",), "192.0.2.9"),
        ("::ffff:10.0.0.1", ("192.0.2.9",), "192.0.2.9"),
        ("10.0.0.1", ("192.0.2.9, unknown",), "10.0.0.1"),
        ("10.0.0.1", ("192.0.2.9, x\x1b[2J",), "10.0.0.1"),
        ("10.0.0.1", ("",), "10.0.0.1"),
        ("10.0.0.1", (), "10.0.0.1"),
        ("10.0.0.1", ("," * 20_000 + "192.0.2.9",), "192.0.2.9"),
        ("unix", ("192.0.2.9",), "unix"),
    ],
)
def test_whose_request_it_is(peer: str, values: tuple[str, ...], expected: str) -> None:
    assert client_of(peer, *values) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("for=192.0.2.9", "192.0.2.9"),
        ('For="[2001:db8:cafe::17]:4711"', "2001:db8:cafe::17"),
        ("for=192.0.2.43;proto=http;by=203.0.113.43", "192.0.2.43"),
        ("proto=https;for=192.0.2.43", "192.0.2.43"),
        ("for=198.51.100.7, for=192.0.2.9", "192.0.2.9"),
        ("for=192.0.2.9, for=10.0.0.2;by=10.0.0.1", "192.0.2.9"),
        ("for=_hidden", "10.0.0.1"),
        ("for=unknown", "10.0.0.1"),
        ('for="192.0.2.9', "10.0.0.1"),
        ("before=192.0.2.9", "10.0.0.1"),
        ("192.0.2.9", "10.0.0.1"),
        # Of what a proxy quotes, nothing is its own word.
        ('for=192.0.2.9;host="x,for=198.51.100.7;y"', "192.0.2.9"),
        ('host="a;for=198.51.100.7;b";for=192.0.2.9', "192.0.2.9"),
        ('host="a\\";for=198.51.100.7;x=\\"b";for=192.0.2.9', "192.0.2.9"),
        # What the client left open, the proxy's own element ends.
        ('host="a, for=192.0.2.9', "192.0.2.9"),
        ("," * 30_000 + "for=192.0.2.9", "192.0.2.9"),
        ('x="' * 5_000 + ',for=192.0.2.9;by="_a"', "192.0.2.9"),
        ("for=192.0.2.9" + ";" * 5_000, "10.0.0.1"),
        (" " * 20_000 + "for=192.0.2.9" + "\t" * 20_000, "192.0.2.9"),
    ],
)
def test_the_header_of_rfc_7239(value: str, expected: str) -> None:
    assert client_of("10.0.0.1", value, header="forwarded") == expected


def test_what_a_client_writes_before_a_proxy_is_not_read() -> None:
    """30,000 commas took 9 ms per request, before its turn: 400 strangers held others up for seconds."""

    def seconds(header: str) -> float:
        proxies = Proxies(Settings(trusted_proxies=(ip_network("10.0.0.0/8"),), trusted_proxy_header=header))
        headers = [(header.encode(), b"," * 30_000 + b"for=192.0.2.9")]
        return min(timeit.repeat(lambda: proxies.client_of("10.0.0.1", headers), number=20, repeat=7))

    assert seconds("forwarded") < 8 * seconds("x-forwarded-for")


def test_only_the_configured_header_is_believed() -> None:
    """A proxy that writes one of them passes the other on as its client wrote it."""
    settings = Settings(trusted_proxies=(ip_network("10.0.0.0/8"),))
    headers = [(b"forwarded", b"for=198.51.100.7"), (b"x-forwarded-for", b"192.0.2.9")]
    assert Proxies(settings).client_of("10.0.0.1", headers) == "192.0.2.9"


def test_nothing_is_believed_unless_it_is_configured() -> None:
    assert not Proxies(Settings())
    assert client_of("10.0.0.1", "192.0.2.9", trusted=()) == "10.0.0.1"


def test_an_ipv6_host_counts_as_its_network() -> None:
    assert limit_key("2001:db8::1") == limit_key("2001:db8::ffff:2") != limit_key("2001:db8:0:1::1")
    assert limit_key("::ffff:192.0.2.9") == "192.0.2.9"
    assert limit_key("unknown") == "unknown"


@pytest.fixture
async def behind(settings: Settings) -> AsyncIterator[FastAPI]:
    """Another application over the same database, which trusts the address that its test client has."""
    own = settings.model_copy(update={"trusted_proxies": (ip_network("127.0.0.1/32"),), "logins_per_minute": 5})
    app = create_app(own)
    yield app
    await app.state.database.dispose()


def from_address(app: FastAPI, address: str, token: str | None = None) -> httpx.AsyncClient:
    headers = {"X-Forwarded-For": address} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://hugeplan.test", headers=headers)


async def guess(client: httpx.AsyncClient, times: int = 100) -> set[int]:
    wrong = [f"hp_{number:040d}" for number in range(times)]
    answers = [await client.post("/api/v1/session", json={"token": each}) for each in wrong]
    answers += [await client.get("/api/v1/nodes", headers={"Authorization": f"Bearer {each}"}) for each in wrong]
    return {answer.status_code for answer in answers}


async def test_one_who_guesses_behind_a_trusted_proxy_is_limited_alone(service: Service, behind: FastAPI) -> None:
    token = await service.token(Role.VIEWER)
    async with from_address(behind, "192.0.2.66") as bad, from_address(behind, "192.0.2.7") as good:
        assert 429 in await guess(bad)
        for wrong in range(3):
            assert (await good.post("/api/v1/session", json={"token": f"wrong{wrong}" * 8})).status_code == 401
        opened = await good.post("/api/v1/session", json={"token": token})
        assert opened.status_code == 201
    async with service.database.read() as session:
        assert await session.scalar(text("SELECT address FROM browser_sessions")) == "192.0.2.7"


async def test_without_the_setting_a_good_token_still_logs_in(service: Service, application: FastAPI) -> None:
    """All come from the proxy's address, whose failed logins are used up."""
    token = await service.token(Role.VIEWER)
    bad = service.client()
    assert 429 in await guess(bad)
    await application.state.intake.gate.load()  # what the service does every few seconds
    assert (await service.client().post("/api/v1/session", json={"token": token})).status_code == 201
    assert (await service.client(token).get("/api/v1/nodes")).status_code == 200
    assert (await bad.post("/api/v1/session", json={"token": "hp_" + "x" * 40})).status_code == 429


async def test_a_session_is_known_to_a_process_that_starts_during_a_flood(service: Service, settings: Settings) -> None:
    token = await service.token(Role.VIEWER)
    browser = service.client()
    assert (await browser.post("/api/v1/session", json={"token": token})).status_code == 201
    app = create_app(settings)
    app.state.rate_limiter = RateLimiter()
    await app.state.intake.gate.load()
    async with from_address(app, "x") as bad:
        for number in range(200):
            await bad.get("/api/v1/nodes", headers={"Cookie": f"hugeplan_session=wrong{number}"})
        secret = browser.cookies["hugeplan_session"]
        good = await bad.get("/api/v1/nodes", headers={"Cookie": f"hugeplan_session={secret}"})
        assert good.status_code == 200
    await app.state.database.dispose()


async def test_new_tokens_are_remembered_as_they_are_made(service: Service, application: FastAPI) -> None:
    assert bootstrap.REMEMBER_SECONDS <= 30
    gate = application.state.intake.gate
    await service.token(Role.VIEWER)
    known = len(gate._known)
    await gate.load()
    assert len(gate._known) >= known
