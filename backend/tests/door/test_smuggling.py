"""Where a request ends: a proxy before the service must never see it end elsewhere."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from support.server import Server, serving

from hugeplan import embedded

BEHIND = b"GET /api/v1/login-methods HTTP/1.1\r\nHost: x\r\n\r\n"
LENGTH = f"Content-Length: {len(BEHIND)}\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
UPGRADE = "Connection: Upgrade\r\nUpgrade: {}\r\n"


@pytest.fixture(scope="module")
def server(
    postgres: embedded.EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A service with a database of its own."""
    postgres.ensure_database("smuggling", template)
    environment = {"HUGEPLAN_REFUSALS_PER_MINUTE": "1000000", "HUGEPLAN_HEADER_TIMEOUT_SECONDS": "1"}
    with serving(postgres.url("smuggling"), tmp_path_factory.mktemp("smuggling"), **environment) as running:
        yield running


def answers(server: Server, *pieces: bytes) -> tuple[int, bytes]:
    """How many answers come to pieces, of which each but the first is sent after an answer or a moment without one."""
    got = b""
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (*pieces, b""):
            try:
                connection.sendall(piece)
                connection.settimeout(0.3 if piece else 2)
                while part := connection.recv(1 << 16):
                    got += part
            except (TimeoutError, ConnectionError):
                continue
    return got.count(b"HTTP/1.1 "), got


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("method", ["GET", "POST", "CONNECT"])
@pytest.mark.parametrize(
    "framing",
    [
        LENGTH,
        *(LENGTH + UPGRADE.format(name) for name in ("h2c", "websocket", "x")),
        *(CHUNKED + UPGRADE.format(name) for name in ("h2c", "websocket")),
        UPGRADE.format("h2c").replace("Upgrade\r", "keep-alive, upgrade\r", 1) + LENGTH,
        LENGTH + "Content-Length: 0\r\n",
        LENGTH + CHUNKED,
        CHUNKED + LENGTH,
        "Transfer-Encoding: xchunked\r\n" + LENGTH,
        "Transfer-Encoding: chunked, identity\r\n" + LENGTH,
        LENGTH.replace(":", " :"),
        "X: y\r\n " + LENGTH,
        LENGTH.replace(" ", " +"),
    ],
)
def test_a_body_is_no_request(server: Server, framing: str, method: str, is_padded: bool) -> None:
    """A proxy passes an Upgrade on with its body; the parser ended such a request at its head, and what followed ran
    with the next client's credential.
    """
    body = BEHIND
    if is_padded:  # blank lines before a request are skipped: wherever it is cut, what follows could begin one
        body = b"\r\n" * 20_000 + BEHIND
        framing = framing.replace(LENGTH[16:-2], str(len(body)))
    if CHUNKED in framing:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    head = f"{method} {'x:80' if method == 'CONNECT' else '/healthz'} HTTP/1.1\r\nHost: x\r\n{framing}\r\n".encode()
    for pieces in ((head, body), (head + body,)):
        count, got = answers(server, *pieces)
        assert count == 1, got
        assert b"oidc_url" not in got


def test_who_offers_another_protocol_gets_this_one_and_one_answer(server: Server) -> None:
    head = f"GET /healthz HTTP/1.1\r\nHost: x\r\n{UPGRADE.format('h2c')}\r\n".encode()
    for pieces in ((head,), (head, BEHIND), (head + BEHIND,)):
        count, got = answers(server, *pieces)
        assert (count, got[:15]) == (1, b"HTTP/1.1 200 OK"), got
        assert b"\r\nconnection: close\r\n" in got.lower()


def test_an_offer_with_a_body_is_told_what_to_do(server: Server) -> None:
    head = f"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n{UPGRADE.format('h2c')}\r\n".encode()
    assert b"without Upgrade" in answers(server, head + b"{}")[1]


EXPECT = "Expect: 100-continue\r\n"


def test_who_waits_for_a_go_ahead_and_is_answered_sends_the_next_request_elsewhere(server: Server) -> None:
    """It may send its body or not: a proxy took what came next for a request, and the service for that body."""
    head = f"POST /api/v1/reports HTTP/1.1\r\nHost: x\r\n{EXPECT}{LENGTH}\r\n".encode()
    for pieces in ((head, BEHIND), (head, BEHIND, BEHIND), (head + BEHIND + BEHIND,)):
        count, got = answers(server, *pieces)
        assert (count, got[:13]) == (1, b"HTTP/1.1 401 "), got
        assert b"\r\nconnection: close\r\n" in got.lower()


def test_a_go_ahead_is_given_to_whose_body_is_read(server: Server) -> None:
    head = f"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{EXPECT}"
    count, got = answers(server, f"{head}Content-Length: 2\r\n\r\n".encode(), b"{}")
    assert (count, got[:21], b"HTTP/1.1 422 " in got) == (2, b"HTTP/1.1 100 Continue", True)


@pytest.mark.parametrize("trailer", ["Connection: close", "Content-Length: 5", "Upgrade: h2c", "connection: upgrade"])
def test_a_trailer_that_is_for_a_head_ends_the_connection(server: Server, trailer: str) -> None:
    """The parser slept for good: behind a proxy the next client waited a minute for its answer."""
    for path, status in (("/healthz", (b"400", b"405")), ("/api/v1/session", (b"400", b"415"))):
        first = f"POST {path} HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n5\r\nhello\r\n".encode()
        last = f"0\r\n{trailer}\r\n\r\n".encode()
        for pieces in ((first + last, BEHIND), (first, last, BEHIND), (first + last + BEHIND,)):
            count, got = answers(server, *pieces)
            assert (count, got[9:12] in status) == (1, True), got
            with server.connect() as connection:
                connection.sendall(first + last)
                connection.settimeout(1.5)
                while connection.recv(1 << 16):
                    pass  # TimeoutError where it stays open


def test_blank_lines_keep_no_connection(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        got = b""
        while not got.endswith(b"}"):  # head and body may come apart
            got += connection.recv(1 << 16) or b"}"
        assert got.startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"\r\n")
        connection.settimeout(10)
        assert connection.recv(1) == b""


@pytest.mark.parametrize("rest", [b"zz\r\n", b"0\r\nConnection: close\r\n\r\n", b"0\r\nx y: z\r\n\r\n"])
def test_what_was_answered_is_not_answered_again(server: Server, rest: bytes) -> None:
    head = f"POST /api/v1/reports HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n5\r\nhello\r\n".encode()
    count, got = answers(server, head, rest, BEHIND)
    assert (count, got[:13]) == (1, b"HTTP/1.1 401 "), got


def test_what_is_no_request_waits_for_the_answers_before_it(server: Server) -> None:
    count, got = answers(server, b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n")
    assert (count, got[:13]) == (1, b"HTTP/1.1 200 "), got


OFFER = UPGRADE.format("h2c")
NO_PATH = ("CONNECT x:80", "GET http://x", "GET http://x:999999/")


@pytest.mark.parametrize("line", NO_PATH)
@pytest.mark.parametrize("more", ["", OFFER])
def test_an_address_without_a_path_is_answered_and_its_connection_ends(server: Server, line: str, more: str) -> None:
    for before in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"):
        with server.connect() as connection:
            connection.settimeout(8)
            connection.sendall(before)
            got = b""
            while before and b"ok" not in got:
                got += connection.recv(1 << 16)
            connection.sendall(f"{line} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
            while part := connection.recv(1 << 16):
                got += part
            assert got.count(b"HTTP/1.1 ") == got.count(b"HTTP/1.1 200 ") + 1
            assert b"HTTP/1.1 400 " in got


@pytest.mark.parametrize(
    "last",
    [
        f"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n{OFFER}\r\n".encode(),
        b"GET http://x:999999/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 40_000,
    ],
)
def test_earlier_answers_are_not_lost_to_what_is_refused(server: Server, last: bytes) -> None:
    get = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    for count in (1, 3):
        _, got = answers(server, get * count + last)  # a long head comes in pieces, perhaps when its turn has come
        assert [got[at + 9 : at + 12] for at in range(len(got)) if got.startswith(b"HTTP/1.1 ", at)][:count] == [
            b"200"
        ] * count, got


def test_a_stream_goes_on_beside_what_is_refused(server: Server) -> None:
    key = f"Authorization: Bearer {server.admin_token}"
    stream = f"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n{key}\r\n\r\n".encode()
    post = f"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n{OFFER}\r\n".encode()
    for behind in (post, b"GET / HTTP/1.1\r\nX y: z\r\n\r\n"):
        with server.connect() as connection:
            connection.sendall(stream)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
            connection.sendall(behind)
            connection.settimeout(2)  # the head's time is one second
            with pytest.raises(TimeoutError):
                while connection.recv(1 << 16):
                    pass


def test_too_small_parts_end_their_connection(server: Server) -> None:
    """The next request was read and thrown away: the answer had said that its connection stays."""
    head = f"POST /api/v1/plans/preview HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.admin_token}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with server.connect() as connection, suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(head.encode())
        answer = b""
        for _ in range(6_000):
            connection.sendall(b"1\r\n \r\n")
            if select.select([connection], [], [], 0.0003)[0]:
                answer = connection.recv(65536)
                break
        assert answer.startswith(b"HTTP/1.1 413 "), answer
        assert b"connection: close\r\n" in answer.lower()


def test_what_to_do_is_told_before_a_large_body(server: Server) -> None:
    head = f"POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n{OFFER}\r\n".encode()
    for _ in range(20):
        with server.connect() as connection:
            connection.sendall(head)
            for _ in range(20):
                connection.sendall(b" " * 10_000)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("start", "length", "status"),
    [
        ("POST /api/v1/reports", 5_000, b"401"),
        ("POST /api/v1/session", 400_000, b"413"),
        ("POST /api/v1/session", 5_000, b"415"),
        ("POST /healthz", 5_000, b"405"),
        ("GET /api/v1/login-methods", 5_000, b"200"),
    ],
)
def test_an_answer_before_its_body_is_in_is_the_last(server: Server, start: str, length: int, status: bytes) -> None:
    """HAProxy 2.6 sent the next client's request on such a connection, where it was read as the rest of the body."""
    head = f"{start} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
    body = (b"\r\n" * length)[: length - len(BEHIND)] + BEHIND
    for pieces in ((head, body, BEHIND), (head + body[:99], body[99:] + BEHIND), (head, BEHIND)):
        count, got = answers(server, *pieces)
        assert (count, got[9:12]) == (1, status), got
        assert b"\r\nconnection: close\r\n" in got.lower()
    count, got = answers(server, head + body + BEHIND) if length < 16_000 else (2, b"\r\n\r\n")
    assert count == 2, "who sends all at once keeps the connection"
