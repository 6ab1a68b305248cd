"""Webhooks against a real receiver: signed, tried again after a refusal, each event once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import socket
import sys
import threading
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from support.reports import report
from support.service import Service, fields_of

from hugeplan.access.schemas import Role
from hugeplan.events import service as events
from hugeplan.events.delivery import Courier, body_of
from hugeplan.events.sending import ANSWER_BYTES, Outcome, Sender, _status, why_refused

LOOPBACK = (ip_network("127.0.0.0/8"),)
SENDER = Sender(LOOPBACK)


class Receiver(ThreadingHTTPServer):
    """A receiver that refuses the first ``refusals`` requests and keeps the rest."""

    def __init__(self) -> None:
        self.refusals = 0
        self.kept: list[tuple[dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.refusals:
            self.server.refusals -= 1
            self.send_response(503)
        else:
            self.server.kept.append((dict(self.headers), body))
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running receiver."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def deliver(service: Service, *, now: bool = False) -> None:
    """One round; ``now`` makes everything due."""
    if now:
        async with service.database.write() as session:
            await session.execute(text("UPDATE webhook_deliveries SET next_attempt_at = now()"))
    courier = Courier(service.database, SENDER.post)
    await courier.round()
    await courier.settle()


async def test_an_event_is_signed_tried_again_and_delivered_once(
    service: Service, admin: httpx.AsyncClient, receiver: Receiver
) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/hook"
    body = {"name": "pager", "url": url, "kinds": ["node_added"]}
    secret = (await admin.post("/api/v1/webhooks", json=body)).json()["secret"]
    receiver.refusals = 10**6
    agent = await service.client_as(Role.AGENT)
    assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    async with asyncio.timeout(20):
        while True:  # the service itself may be the one who tries first
            await deliver(service, now=True)
            (listed,) = (await admin.get("/api/v1/webhooks")).json()["items"]
            if listed["last_error"] is not None:
                break
    assert (listed["pending"], listed["last_error"]) == (1, "answered 503")
    assert "secret" not in listed
    receiver.refusals = 0
    for _ in range(3):
        await deliver(service, now=True)
    ((headers, sent),) = receiver.kept
    assert json.loads(sent)["kind"] == "node_added"
    seconds, digest = (part.partition("=")[2] for part in headers["Hugeplan-Signature"].split(","))
    assert digest == hmac.new(secret.encode(), f"{seconds}.".encode() + sent, hashlib.sha256).hexdigest()
    (listed,) = (await admin.get("/api/v1/webhooks")).json()["items"]
    assert (listed["pending"], listed["failed"]) == (0, 0)
    assert (await admin.delete(f"/api/v1/webhooks/{listed['id']}")).status_code == 204


async def test_slack_gets_text(service: Service, admin: httpx.AsyncClient, receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/hook"
    await admin.post("/api/v1/webhooks", json={"name": "chat", "url": url, "format": "slack", "kinds": ["node_added"]})
    agent = await service.client_as(Role.AGENT)
    await agent.post("/api/v1/reports", json=report())
    for _ in range(2):
        await deliver(service, now=True)
    ((_, sent),) = receiver.kept
    assert json.loads(sent) == {"text": "db-7: Reported for the first time.", "mrkdwn": False}


def test_slack_gets_no_mention_and_no_link_from_a_name() -> None:
    row: Any = SimpleNamespace(format="slack", node_name="<!channel>", text="&lt; <https://evil.example|Approve>")
    told = "&lt;!channel&gt;: &amp;lt; &lt;https:\u2060//evil.example|Approve&gt;"
    assert json.loads(body_of(row)) == {"text": told, "mrkdwn": False}


async def test_what_was_read_of_an_answer_is_not_parsed_anew() -> None:
    """Each byte comes by itself. An interim answer before them makes none dearer, and few are passed over."""
    calls: list[str] = []
    interim, final = b"HTTP/1.1 100 x\n\n", b"HTTP/1.1 200 x\n"

    async def status(answer: bytes) -> int | None:
        reader = asyncio.StreamReader(limit=ANSWER_BYTES)
        found = asyncio.create_task(_status(reader))
        calls.clear()
        sys.setprofile(lambda _, event, __: calls.append(event))
        try:
            for byte in answer:
                reader.feed_data(bytes([byte]))
                await asyncio.sleep(0)
        finally:
            sys.setprofile(None)
        with suppress(ValueError):
            return await found
        return None

    long = b"HTTP/1.1 103 x\n" + b"A: b\n" * 500 + b"\n" + final
    assert await status(long) == 200
    alone = len(calls)
    assert await status(interim * 7 + long) == 200
    assert len(calls) < 1.5 * alone
    assert await status(interim * 9 + final) is None


async def test_no_transaction_is_open_while_a_receiver_answers(service: Service, admin: httpx.AsyncClient) -> None:
    await admin.post("/api/v1/webhooks", json={"name": "slow", "url": "http://127.0.0.1:1/", "kinds": ["node_added"]})
    agent = await service.client_as(Role.AGENT)
    assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    held: list[int] = []

    async def receive(*_: object) -> Outcome:
        locks = (
            "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
            " WHERE c.relname = 'webhook_deliveries' AND l.pid <> pg_backend_pid()"
        )
        async with service.database.read() as session:
            held.append(int(await session.scalar(text(locks)) or 0))
        return Outcome(200, None)

    async with asyncio.timeout(20):
        # The service itself may hold a lock for a moment; what is held while the receiver answers is held each time.
        while 0 not in held and len(held) < 10:
            async with service.database.write() as session:
                again = "UPDATE webhook_deliveries SET next_attempt_at = now(), finished_at = NULL"
                await session.execute(text(again))
            courier = Courier(service.database, receive)
            await courier.round()
            await courier.settle()
    assert 0 in held


async def add_event(service: Service, kind: str = "node_added") -> None:
    async with service.database.write() as session:
        await session.execute(text("INSERT INTO events (at, kind, text) VALUES (now(), :kind, 'x')"), {"kind": kind})


async def until_kept(service: Service, receiver: Receiver, number: int) -> None:
    """Rounds with tasks that are left to themselves, as the service runs them."""
    courier = Courier(service.database, SENDER.post)
    try:
        async with asyncio.timeout(8):
            while len(receiver.kept) < number:
                await courier.round()
                await asyncio.sleep(0.02)
    finally:
        await courier.close()


BAD_URLS = (
    "http://[::1", "http://host:99999/", "http://" + "a" * 300 + ".example/", "http://\u2028/", "http://a..b/",
    "http://%00/", "http://xn--a\x7f/", "https:///path", "http://no-such-host.invalid/", "http://169.254.169.254/",
    "http://0/", "http://127.1:1/",
)  # fmt: skip


@pytest.mark.parametrize("url", BAD_URLS)
async def test_a_bad_url_ends_nothing(service: Service, admin: httpx.AsyncClient, receiver: Receiver, url: str) -> None:
    """Every receiver after it gets its events, and the bad one shows why it does not."""
    bad = await admin.post("/api/v1/webhooks", json={"name": "bad", "url": url})
    assert bad.status_code in {201, 422}
    good = f"http://127.0.0.1:{receiver.server_port}/hook"
    assert (await admin.post("/api/v1/webhooks", json={"name": "good", "url": good})).status_code == 201
    await add_event(service)
    await until_kept(service, receiver, 1)
    if bad.status_code == 201:
        async with asyncio.timeout(60):
            while True:
                listed = (await admin.get("/api/v1/webhooks")).json()["items"]
                (error,) = (item["last_error"] for item in listed if item["name"] == "bad")
                if error is not None:
                    break
                await asyncio.sleep(0.05)
        assert error.isprintable()


async def test_an_unknown_kind_of_event_ends_nothing(
    service: Service, admin: httpx.AsyncClient, receiver: Receiver
) -> None:
    """A newer replica of a rolling upgrade writes kinds that this one does not know."""
    url = f"http://127.0.0.1:{receiver.server_port}/hook"
    await admin.post("/api/v1/webhooks", json={"name": "all", "url": url})
    await add_event(service, "of_tomorrow")
    await add_event(service)
    await until_kept(service, receiver, 2)
    history = await admin.get("/api/v1/events/history")
    assert [item["kind"] for item in history.json()["items"]] == ["node_added"]
    stream = await admin.get("/api/v1/events?after=0")
    assert "node_added" in stream.text


class _Raw:
    """A receiver of plain bytes: ``answer`` writes what it likes for as long as it likes."""

    def __init__(self, answer: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> None:
        self._answer = answer
        self.written = 0

    async def __aenter__(self) -> _Raw:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                await self._answer(writer)
        finally:
            writer.close()

    async def flood(self, writer: asyncio.StreamWriter, block: bytes) -> None:
        while True:
            writer.write(block)
            self.written += len(block)
            await writer.drain()


async def test_of_an_answer_no_more_than_its_beginning_is_read() -> None:
    """A gigabyte of gzip: the status is taken, the rest is not asked for and not decoded."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000000000\r\n\r\n")
        await raw.flood(writer, b"\x1f\x8b" * 8192)

    raw = _Raw(answer)
    tracemalloc.start()
    try:
        async with raw:
            assert await SENDER.post(raw.url, b"{}", {}) == Outcome(200, None)
        assert tracemalloc.get_traced_memory()[1] < 2 * 1024**2
    finally:
        tracemalloc.stop()
    assert raw.written < 8 * 1024**2  # what the kernel took of it before the connection was broken off


@pytest.mark.parametrize(
    "block",
    [b"HTTP/1.1 100 Continue\r\n\r\n" * 100, b"x" * 4096, b"HTTP/1.1 100 Continue\r\nA: b\r\n", b"\r\n" * 2048],
    ids=["interim answers", "no HTTP", "endless headers", "empty lines"],
)
async def test_an_answer_without_a_status_is_a_failure(block: bytes) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        await raw.flood(writer, block)

    async with _Raw(answer) as raw:
        found = await SENDER.post(raw.url, b"{}", {})
    assert found.status is None
    assert found.error is not None
    assert raw.written < 8 * 1024**2


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n", 200), (b"HTTP/1.0 204\n", 204),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 x\r\n", 201),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 503 no\r\n", 503), (b"HTTP/1.1 302 x\r\n", 302),
    ],
)  # fmt: skip
async def test_the_status_of_an_answer(head: bytes, status: int) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        for at in range(len(head)):  # byte by byte
            writer.write(head[at : at + 1])
            await writer.drain()

    async with _Raw(answer) as raw:
        found = await SENDER.post(raw.url, b"{}", {})
    assert found.status == status
    assert (found.error is None) == (status < 300)


async def test_no_redirect_is_followed(receiver: Receiver) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        location = f"Location: http://127.0.0.1:{receiver.server_port}/\r\n"
        writer.write(b"HTTP/1.1 307 x\r\n" + location.encode() + b"\r\n")

    async with _Raw(answer) as raw:
        found = await SENDER.post(raw.url, b"{}", {})
    assert found.status == 307
    assert receiver.kept == []


async def test_a_slow_receiver_keeps_no_other_waiting(
    service: Service, admin: httpx.AsyncClient, receiver: Receiver
) -> None:
    """It trickles, so that no single wait is long, and has the older event."""

    async def trickle(writer: asyncio.StreamWriter) -> None:
        for byte in b"HTTP/1.1 100 " * 1000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)

    async with _Raw(trickle) as raw:
        for number in range(25):
            await admin.post("/api/v1/webhooks", json={"name": f"slow {number}", "url": raw.url})
        good = f"http://127.0.0.1:{receiver.server_port}/hook"
        await admin.post("/api/v1/webhooks", json={"name": "good", "url": good})
        for _ in range(3):
            await add_event(service)
        await until_kept(service, receiver, 3)
        found = await Sender(LOOPBACK, timeout_seconds=0.3).post(raw.url, b"{}", {})
        assert found == Outcome(None, "no answer within 0.3 s")


async def test_so_many_receivers_take_few_connections_of_requests_and_another_is_refused(
    service: Service, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_WEBHOOKS", 40)
    hook = {"name": "hook", "url": "http://away.invalid/", "kinds": ["run_added"]}
    made = [(await admin.post("/api/v1/webhooks", json=hook)).status_code for _ in range(41)]
    assert made == [201] * 40 + [409]
    assert fields_of((await admin.post("/api/v1/webhooks", json=hook)).json()) == ["name"]
    async with service.database.write() as session:
        await session.execute(text("UPDATE webhooks SET kinds = '[]'"))
    pool: Any = service.database.engine.pool
    used: list[int] = []

    async def take(*_: object) -> Outcome:
        used.append(pool.checkedout())
        return Outcome(200, None)

    await add_event(service)
    courier = Courier(service.database, take)
    for _ in range(3):
        await courier.round()
        await courier.settle()
    assert max(used, default=0) <= 6  # with those of the service's own courier, which may be at work


async def test_a_receiver_that_is_away_is_asked_with_one_event_at_a_time(
    service: Service, admin: httpx.AsyncClient
) -> None:
    asked: list[str] = []

    async def away(url: str, *_: object) -> Outcome:
        asked.append(url)
        return Outcome(None, "away")

    await admin.post("/api/v1/webhooks", json={"name": "away", "url": "http://away.invalid/"})
    for _ in range(30):
        await add_event(service)
    courier = Courier(service.database, away)
    for _ in range(5):
        await courier.round()
        await courier.settle()
    assert len(asked) <= 1  # the service's own courier may have been first


ADDRESSES = {
    "127.0.0.1": False, "127.8.8.8": False, "::1": False, "::": False, "169.254.169.254": False,
    "fd00:ec2::23": False, "fd00:42::42": False, "64:ff9b:1:a9fe:a9:fe00:808:808": False,
    "fe80::1": False, "fd00:ec2::254": False, "fd20:ce::254": False, "fd00:c1::a9fe:a9fe": False,
    "100.100.100.200": False, "168.63.129.16": False, "224.0.0.1": False,
    "ff02::1": False, "255.255.255.255": False, "::ffff:127.0.0.1": False, "::ffff:169.254.169.254": False,
    "2002:7f00:1::": False, "2002:a9fe:a9fe::": False, "64:ff9b::169.254.169.254": False, "::127.0.0.1": False,
    "0.1.2.3": False, "0.0.0.0": False,  # noqa: S104
    "fec0::1": False, "192.0.0.192": False,
    "10.1.2.3": True, "192.168.1.1": True, "172.16.0.9": True, "fd12::1": True, "8.8.8.8": True, "2606:4700::1": True,
}  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_which_addresses_are_sent_to(address: str) -> None:
    assert (why_refused(ip_address(address)) is None) == ADDRESSES[address]


def test_an_administrator_may_open_a_network() -> None:
    opened = (ip_network("127.0.0.0/8"), ip_network("169.254.10.0/24"))
    assert why_refused(ip_address("127.0.0.1"), opened) is None
    assert why_refused(ip_address("::ffff:127.0.0.1"), opened) is None
    assert why_refused(ip_address("169.254.169.254"), opened) is not None
    assert why_refused(ip_address("::1"), opened) is not None


async def test_an_address_is_judged_when_it_is_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves to a good address first and to loopback then; and one with a bad address among good ones."""
    answers = [["192.0.2.7"], ["127.0.0.1"], ["192.0.2.7", "127.0.0.1"]]
    asked: list[str] = []

    def resolve(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        found = answers[min(len(asked) - 1, 2)]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port)) for place in found]

    monkeypatch.setattr("hugeplan.events.sending.socket.getaddrinfo", resolve)
    sender = Sender(timeout_seconds=0.2)
    url = f"http://rebinding.example:{receiver.server_port}/"
    for word in ("no answer|unreachable|Network", "loopback", "loopback"):
        found = await sender.post(url, b"{}", {})
        assert found.error is not None
        assert re.search(word, found.error), found.error
    assert len(asked) == 3  # once for each attempt: what was judged is what is connected to
    assert receiver.kept == []


async def test_a_name_server_that_never_answers_keeps_no_thread_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's few threads also resolve the database's name, and the process waits for them when it ends."""
    ended = threading.Event()

    def resolve(*_: object, **__: object) -> list[Any]:
        ended.wait(30)
        raise OSError("no name server")

    monkeypatch.setattr("hugeplan.events.sending.socket.getaddrinfo", resolve)
    try:
        sender = Sender(timeout_seconds=0.2)
        found = await asyncio.gather(*(sender.post(f"http://h{n}.example/", b"{}", {}) for n in range(40)))
        assert {outcome.error for outcome in found} == {"no answer within 0.2 s"}
        async with asyncio.timeout(5):
            assert await asyncio.get_running_loop().run_in_executor(None, lambda: 1) == 1
    finally:
        ended.set()


async def test_a_url_never_adds_a_header() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 204 x\r\n\r\n")
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for path in ("/a%0d%0aX-Evil:1", '/\N{LATIN SMALL LETTER E WITH ACUTE}"<>?q=%00&x=ü#frag', "?x"):
        assert (await SENDER.post(f"http://127.0.0.1:{port}{path}", b"{}", {})).error is None
    for path in ("/a\r\nX-Evil: 1", "/a b", "/a\tb", "/\u2028", "/\ud800"):
        assert (await SENDER.post(f"http://127.0.0.1:{port}{path}", b"{}", {})).status is None
    server.close()
    assert len(heads) == 3
    for head in heads:
        lines = head.decode("ascii").split("\r\n")
        assert re.fullmatch(r"POST /?[!-~]* HTTP/1\.1", lines[0])
        assert [line.partition(":")[0] for line in lines[1:-2]] == ["Host", "Content-Length", "Connection"]
    assert ANSWER_BYTES == 4096


@pytest.mark.parametrize(
    "url",
    [
        "http://", "https:///path", "http://:80/", "http://?q", "http://#x", "http://host:0/", "http://host:65536/",
        "http://host:-1/", "http://host:8x/", "http://host:\N{ARABIC-INDIC DIGIT THREE}/", "http://user@host/",
        "http://user:word@host/", "http://@host/", "http://host\\@other/", "http://host\\/", "http://a b/",
        "http://host/a b", "http://host/\t", "http://host/\n", "http://host/\r\nX: 1", "http://host/\x00", "\thttp://host/",
        "http://host/\u2028", "http://host/\u202e", "http://host/\ud800", "http://host\u200b/", "http://\u2028/",
        "http://a..b/", "http://.a/", "http://./", "http://-a.example/", "http://a-.example/", "http://a,b/",
        "http://%00/", "http://a%2eb/", "http://" + "a" * 64 + ".example/", "http://" + "a." * 130 + "a/",
        "http://" + "\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 62 + ".example/", "http://xn--a\x7f/",
        "http://xn--99999999999/", "http://\u0378.example/", "http://[::1", "http://::1/", "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/", "http://[v1.a]/", "http://[host]/", "http://[1.2.3.4]/", "http://0/",
        "http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://0x7f000001/", "http://1.2.3.256/",
        "http://01.2.3.4/", "ftp://host/", "HTTP//host", "javascript:alert(1)", "http:host", "//host/", "",
        "http://host/" + "a" * 2048,
    ],
)  # fmt: skip
async def test_a_url_that_can_reach_nobody_is_refused_when_it_is_set(service: Service, url: str) -> None:
    admin = await service.client_as(Role.ADMIN)
    body = json.dumps({"name": "bad", "url": url}).encode()
    answer = await admin.post("/api/v1/webhooks", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    if "\ud800" not in url:  # no JSON has it: refused before it has a field
        (problem,) = answer.json()["errors"]
        assert problem["field"] == "url"
        assert problem["expected"]


@pytest.mark.parametrize(
    "url",
    [
        "https://host", "https://host/", "http://host:65535/a?b=c#d", "http://host:/", "https://hooks.example.com./x",
        "http://\N{LATIN SMALL LETTER U WITH DIAERESIS}ber.example/\N{SNOWMAN}", "http://xn--ber-goa.example/",
        "http://10.0.0.1:8080/", "https://[2001:db8::1]:8443/x", "http://my_host.internal/", "http://1password.com/",
        "http://" + "a" * 63 + ".example/", "http://host/user@domain?to=a@b",
    ],
)  # fmt: skip
async def test_a_usual_url_is_taken(service: Service, url: str) -> None:
    admin = await service.client_as(Role.ADMIN)
    answer = await admin.post("/api/v1/webhooks", json={"name": "good", "url": url})
    assert answer.status_code == 201, answer.text
