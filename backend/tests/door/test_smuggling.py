"""Where a request ends: a proxy before the service must never see it end elsewhere."""

from __future__ import annotations

import socket
from collections.abc import Iterator

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
