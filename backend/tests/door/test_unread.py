"""Answers that nobody reads, bodies that never end, and streams: of each, one credential may have so much at a time."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import text
from support.reports import report
from support.server import MIB, Server, serving
from support.service import Service, assert_problem

from hugeplan import embedded
from hugeplan.access.dependencies import STREAM_CHECK_SECONDS
from hugeplan.api import bodies_in_flight
from hugeplan.api.bodies_in_flight import PART_BYTES, AnswersInFlight
from hugeplan.api.untaken import MIN_READ_BYTES
from hugeplan.cli.serving import UNREAD_IN_KERNEL_BYTES
from hugeplan.errors import RateLimitedError, UnavailableError

API = "/api/v1"
CONNECTIONS = 60
GZIP = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
LARGE = [letter * 900_000 for letter in "abcdefg"]


def database_of(postgres: embedded.EmbeddedPostgres, template: str) -> str:
    """The URL of a new one."""
    name = f"unread_{uuid.uuid4().hex}"
    postgres.ensure_database(name, template)
    return postgres.url(name)


@pytest.fixture
def server(postgres: embedded.EmbeddedPostgres, template: str, tmp_path: Path) -> Iterator[Server]:
    with serving(database_of(postgres, template), tmp_path) as running:
        yield running


def as_admin(server: Server) -> httpx.Client:
    """A client with the service's first credential."""
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=60)


def ask(server: Server, path: str, token: str | None = None) -> socket.socket:
    """Ask on a connection that takes little before it is read."""
    token = token or server.admin_token
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    opened.settimeout(20)
    opened.connect(("127.0.0.1", server.port))
    opened.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return opened


KEPT_CONNECTIONS = 6
POURED_BYTES = 64 * MIB
"""More than the kernel takes on both sides for who reads nothing."""


@pytest.fixture
def hasty(postgres: embedded.EmbeddedPostgres, template: str, tmp_path: Path) -> Iterator[Server]:
    """It waits a second for who reads nothing, and takes few connections of an address."""
    bounds = {"HUGEPLAN_WRITE_TIMEOUT_SECONDS": "1", "HUGEPLAN_CONNECTIONS_PER_ADDRESS": str(KEPT_CONNECTIONS)}
    with serving(database_of(postgres, template), tmp_path, **bounds) as running:
        yield running


def in_kernel(server: Server) -> list[int]:
    """Bytes that the kernel has of each connection of the service, and its client has not, closed ones too."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = [row for row in rows if int(row[1].partition(":")[2], 16) == server.port and row[3] != "0A"]  # listens
    return [size for row in ours if (size := int(row[4].partition(":")[0], 16))]


def open_answer(server: Server, takes_bytes: int = 2048) -> socket.socket:
    """Ask for what needs no credential, on a connection that ends with it."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, takes_bytes)
    opened.settimeout(20)
    opened.connect(("127.0.0.1", server.port))
    opened.sendall(b"GET /api/openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    return opened


def test_answers_that_nobody_reads_are_bounded_in_the_kernel(hasty: Server) -> None:
    """It kept them after their connections were closed: a stranger of one address pinned 760 MB."""
    with contextlib.ExitStack() as held:
        beginnings = []
        for _ in range(4 * KEPT_CONNECTIONS):
            opened = held.enter_context(open_answer(hasty))
            with contextlib.suppress(ConnectionResetError):
                beginnings.append(opened.recv(16)[9:12])
        assert beginnings.count(b"200") <= KEPT_CONNECTIONS + 1  # the service itself may have come before
        found = in_kernel(hasty)
        assert found
        assert max(found) <= UNREAD_IN_KERNEL_BYTES
        until = time.monotonic() + 20
        while left := in_kernel(hasty):
            assert time.monotonic() < until, left
            time.sleep(0.05)
        with open_answer(hasty) as opened:  # and so have their places
            assert opened.recv(16)[9:12] == b"200"


def test_a_closed_connection_waits_for_who_reads_slowly(hasty: Server) -> None:
    """The whole takes several times what one is given who reads nothing."""
    with open_answer(hasty, MIN_READ_BYTES) as opened:
        answer, began = b"", time.monotonic()
        while piece := opened.recv(2 * MIN_READ_BYTES):
            answer += piece
            time.sleep(max(0.0, began + len(answer) / (3 * MIN_READ_BYTES) - time.monotonic()))
        assert time.monotonic() - began > 3
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}\r\n".encode() in head.lower() + b"\r\n"


def poured(opened: socket.socket, piece: bytes) -> int:
    """How much is taken on a connection before it takes no more for a second, or ends; POURED_BYTES are without end."""
    opened.settimeout(1)
    taken = 0
    with contextlib.suppress(OSError):
        while taken < POURED_BYTES:
            taken += opened.send(piece)
    return taken


CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"


@pytest.mark.parametrize(
    ("body", "piece"),
    [("Transfer-Encoding: chunked", CHUNK), ("Content-Length: 999999999", CHUNK), ("", b"\r\n" * 32768)],
)
def test_what_comes_while_a_stream_is_answered_is_not_read(server: Server, body: str, piece: bytes) -> None:
    """Who listened for the client's leaving read its body: one request took 0.8 s of processor time per second."""
    with server.connect() as opened:
        authorization = f"Authorization: Bearer {server.admin_token}\r\n"
        head = f"GET {API}/events HTTP/1.1\r\nHost: x\r\n{authorization}{body}".rstrip("\r\n")
        opened.sendall(f"{head}\r\n\r\n".encode())
        assert opened.recv(16)[9:12] == b"200"
        assert poured(opened, piece) < POURED_BYTES
    with as_admin(server) as admin:  # its leaving was seen, and the stream is over
        until = time.monotonic() + 20
        while "hugeplan_requests_in_progress 1.0" not in (text := admin.get("/metrics").text):
            assert time.monotonic() < until, [line for line in text.splitlines() if "in_progress" in line]
            time.sleep(0.05)


def test_blank_lines_between_requests_are_bounded(server: Server) -> None:
    """They were read for 10 s on each of hundreds of connections, and took others from 9 to 400 ms."""
    with server.connect() as opened:
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + b"\r\n" * 4096)
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        got = b""
        while got.count(b"HTTP/1.1 200 ") < 2 or not got.endswith(b"}"):
            got += (piece := opened.recv(1 << 16))
            assert piece, got
        assert poured(opened, b"\r\n" * 32768) < POURED_BYTES


@pytest.fixture
def with_events(postgres: embedded.EmbeddedPostgres, template: str) -> str:
    """A database whose events are some 12 MB."""
    url = database_of(postgres, template)
    with psycopg.connect(url) as connection:
        many = "SELECT now(), 'node_added', repeat('x', 1000) FROM generate_series(1, 12000)"
        connection.execute(f"INSERT INTO events (at, kind, text) {many}")
    return url


def test_an_export_that_is_read_steadily_goes_on(with_events: str, tmp_path: Path) -> None:
    """Found: as much waits for its client as before, whatever it took: what took longer than 20 s was broken off."""
    with (
        serving(with_events, tmp_path, HUGEPLAN_WRITE_TIMEOUT_SECONDS="1") as server,
        ask(server, f"{API}/events/history.csv") as opened,
    ):
        began, got = time.monotonic(), 0
        while (seconds := time.monotonic() - began) < 4:
            got += (count := len(opened.recv(8192)))
            assert count, "it ended"
            time.sleep(max(0.0, got / (16 * MIN_READ_BYTES) - seconds))


def test_an_export_ends_with_its_credential(with_events: str, tmp_path: Path) -> None:
    """It went on for hours, and told what was written since."""
    with serving(with_events, tmp_path) as server, as_admin(server) as admin:
        made = admin.post(f"{API}/tokens", json={"name": "v", "role": "viewer"}).json()
        with ask(server, f"{API}/events/history.csv", made["token"]) as opened:
            answer = opened.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
            assert admin.delete(f"{API}/tokens/{made['id']}").is_success
            time.sleep(STREAM_CHECK_SECONDS)  # what SECURITY.md promises
            with pytest.raises(ConnectionResetError):  # else it would be taken for whole
                while piece := opened.recv(65536):
                    answer += piece
            assert len(answer) < 2 * MIB
        (line,) = (line for line in server.log.read_text().splitlines() if "history.csv" in line)
        assert json.loads(line)["status"] == 401
        assert "Traceback" not in server.log.read_text()


def test_large_answers_that_nobody_reads_are_bounded(server: Server) -> None:
    with as_admin(server) as admin:
        agent = admin.post(f"{API}/tokens", json={"name": "a", "role": "agent"}).json()["token"]
        headers = {"Authorization": f"Bearer {agent}"}
        sent = admin.post(f"{API}/reports", json=report() | {"unknown": LARGE}, headers=headers)
        assert sent.status_code == 201, sent.text
        path = f"{API}/nodes/{sent.json()['node_id']}/report"
        size = len(admin.get(path).content)
        assert size > 6 * MIB
        before = server.status_bytes("VmHWM")
        held = [ask(server, path) for _ in range(CONNECTIONS)]
        try:
            statuses = [opened.recv(16)[9:12] for opened in held]
            grown = server.status_bytes("VmHWM") - before
            assert set(statuses) == {b"200", b"429"}
            assert statuses.count(b"200") <= bodies_in_flight.BYTES_OF_ONE // size + 1
            assert grown < 64 * MIB, f"{grown / MIB:.0f} MiB for {CONNECTIONS} answers that nobody reads"
            assert admin.get(f"{API}/nodes").status_code == 200  # what is small is answered
        finally:
            for opened in held:
                opened.close()
        # What they held is given back when they leave.
        assert len(admin.get(path).content) == size


def test_large_bodies_that_never_end_are_bounded(server: Server) -> None:
    head = (
        f"POST {API}/plans/preview HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.admin_token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {4 * MIB}\r\n\r\n"
    ).encode()
    before = server.status_bytes("VmHWM")
    held = []
    try:
        for _ in range(CONNECTIONS):
            opened = server.connect(20)
            held.append(opened)
            with contextlib.suppress(OSError):  # what is refused may be closed
                opened.sendall(head + b'{"x": "' + b"x" * (3 * MIB))
        grown = server.status_bytes("VmHWM") - before
        refused = 0
        for opened in held:
            opened.settimeout(0.2)
            with contextlib.suppress(OSError):
                refused += opened.recv(16).startswith(b"HTTP/1.1 429")
        assert refused > CONNECTIONS / 2
        assert grown < 64 * MIB, f"{grown / MIB:.0f} MiB for {CONNECTIONS} bodies that never end"
        with as_admin(server) as admin:
            assert admin.get(f"{API}/nodes").status_code == 200
    finally:
        for opened in held:
            opened.close()


async def test_a_change_is_refused_before_it_is_made(service: Service, planner: httpx.AsyncClient) -> None:
    """A change whose answer cannot be given would have been made all the same."""
    body = {"name": "s", "scenario": {"node": {"memory": "1GiB"}}}
    assert (await planner.post(f"{API}/scenarios", json=body)).status_code == 201
    token = await newest_token(service)
    end = service.app.state.intake.answers.take(
        token, [(b"content-length", b"%d" % bodies_in_flight.BYTES_OF_ONE)], may_refuse=True
    )
    refused = assert_problem(await planner.post(f"{API}/scenarios", json=body), 429, "rate-limited")
    assert "unread answers" in refused["detail"]
    end()
    assert len((await planner.get(f"{API}/scenarios")).json()["items"]) == 1


async def newest_token(service: Service) -> str:
    """The id of the credential that was made last."""
    async with service.database.read() as session:
        found = await session.scalar(text("SELECT id FROM tokens ORDER BY created_at DESC LIMIT 1"))
    return str(found)


async def test_a_large_answer_comes_whole(agent: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    """Around the size of a part and of some parts: no byte is lost or doubled."""
    base = len(json.dumps(report() | {"unknown": ""}).encode())
    for parts in (1, 2, 3):
        for off in (-1, 0, 1):
            document = report()
            document["unknown"] = "x" * (parts * PART_BYTES - base + off)
            raw = json.dumps(document).encode()
            sent = await agent.post(f"{API}/reports", content=raw, headers={"Content-Type": "application/json"})
            params = {"report_id": document["report_id"]}
            answer = await viewer.get(f"{API}/nodes/{sent.json()['node_id']}/report", params=params)
            assert answer.content == raw
            assert answer.headers["Content-Length"] == str(len(raw))


def test_streams_of_one_credential_are_bounded(server: Server) -> None:
    held = [ask(server, f"{API}/events") for _ in range(bodies_in_flight.STREAMS_OF_ONE)]
    try:
        assert {opened.recv(16)[9:12] for opened in held} == {b"200"}
        with ask(server, f"{API}/events") as opened:
            answer = opened.recv(4096)
            while not answer.endswith(b"}"):
                answer += opened.recv(4096)
        assert answer.startswith(b"HTTP/1.1 429")
        assert b"streams of events" in answer
        with as_admin(server) as admin:
            assert admin.get(f"{API}/nodes").status_code == 200
    finally:
        for opened in held:
            opened.close()
    until = time.monotonic() + 20  # those that left make room
    while True:
        with ask(server, f"{API}/events") as opened:
            if opened.recv(16)[9:12] == b"200":
                return
        assert time.monotonic() < until
        time.sleep(0.05)


def test_what_is_counted_is_given_back() -> None:
    found = AnswersInFlight()
    most = bodies_in_flight.BYTES_OF_ONE
    large, stream = [(b"content-length", b"%d" % most)], [(b"content-type", b"text/event-stream; charset=utf-8")]
    ends = [found.take(whose, large, may_refuse=True) for whose in "abc"]
    with pytest.raises(RateLimitedError, match="16 MiB of unread answers"):
        found.take("a", large, may_refuse=True)
    ends += [found.take("a", [(b"content-type", b"text/csv")], may_refuse=True) for _ in range(4)]  # an export
    with pytest.raises(RateLimitedError, match="16 MiB of unread exports"):
        found.take("a", [(b"content-type", b"text/csv")], may_refuse=True)
    with pytest.raises(UnavailableError):
        found.take("d", large, may_refuse=True)
    ends.append(found.take("d", large, may_refuse=False))  # a change that was made is answered
    ends.append(found.take("a", [(b"content-length", b"%d" % PART_BYTES)], may_refuse=True))
    ends.append(found.take("a", stream, may_refuse=True))
    for end in ends:
        end()
    assert not found._bytes._of_one
    assert not found._in_parts._of_one
    assert not found._streams._of_one


def test_refused_bodies_are_let_go(server: Server) -> None:
    """Whoever refuses them: the parser in its thread, a model, the writer of reports, the sandbox, a route."""
    known, small = report(), [text[:120_000] for text in LARGE]
    wrong: dict[str, list[dict[str, Any]]] = {
        "reports": [known | part for part in ({"machine_id": "?"}, {"\0": 1}, {"a": 1}, {"machine_id": "f" * 32})],
        "trials": [{}],
        "imports/kubernetes": [{"items": 1}],
        "scenarios": [{"name": 1}, {"\0": 1}],
        "lint": [{}],
    }
    before = 0
    with as_admin(server) as admin:
        headers = {}
        for role in ("agent", "planner"):
            token = admin.post(f"{API}/tokens", json={"name": role, "role": role}).json()["token"]
            headers[role] = GZIP | {"Authorization": f"Bearer {token}"}
        bodies = [
            (path, headers["agent" if path == "reports" else "planner"], packed(one | {"large": large}))
            for path, documents in wrong.items()
            for large in [LARGE if path == "reports" else small]
            for one in documents
        ]
        assert admin.post(f"{API}/reports", content=packed(known), headers=headers["agent"]).status_code == 201
        for count in range(10):
            for path, given, raw in bodies:
                assert 400 <= admin.post(f"{API}/{path}", content=raw, headers=given).status_code < 500
            before = before if count else server.status_bytes("VmRSS")
    grown = server.status_bytes("VmRSS") - before
    assert grown < 64 * MIB, f"{grown / MIB:.0f} MiB for refused bodies"


def test_a_connection_that_waits_holds_no_body(server: Server) -> None:
    raw, before = packed({"large": LARGE[:4]}), 0
    with contextlib.ExitStack() as held:
        for _ in range(30):
            client = held.enter_context(as_admin(server))
            assert client.post(f"{API}/lint", content=raw, headers=GZIP).status_code == 422
            before = before or server.status_bytes("VmRSS")
        grown = server.status_bytes("VmRSS") - before
    assert grown < 32 * MIB, f"{grown / MIB:.0f} MiB for connections whose requests are answered"


def packed(document: Any) -> bytes:
    return gzip.compress(json.dumps(document).encode(), 1)
