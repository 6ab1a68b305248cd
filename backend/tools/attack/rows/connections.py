"""Answers that nobody reads, heads without an end, and the API's own description."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from functools import partial

from hugeplan.access.schemas import Role
from tools.attack.rig import Attack, Target, WrongAnswerError, expect

UNREAD = 20
STRANGERS = 100
ENDLESS_BYTES = 100 << 20
SMALL_CHUNKS = b"1\r\n \r\n" * 20_000


def _request(running: Target, role: Role, path: str, *, receive_bytes: int | None = None) -> socket.socket:
    opened = running.connect(receive_bytes)
    token = running.tokens[role]
    opened.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return opened


def _unread_lists(running: Target) -> str:
    """Ask for lists and documents and read nothing; others are answered meanwhile."""
    paths = ("/api/v1/nodes.csv", "/api/openapi.json", "/api/v1/audit.csv", "/api/v1/events/history.csv")
    held = [_request(running, Role.ADMIN, paths[n % len(paths)], receive_bytes=2048) for n in range(UNREAD)]
    try:
        time.sleep(0.5)  # as long as they hold whatever they hold
        for _ in range(5):
            expect(running.ask(Role.VIEWER, "GET", "/nodes"), 200)
    finally:
        for each in held:
            each.close()
    return f"{UNREAD} unread"


def _openapi(running: Target) -> str:
    with running.client(None) as client:
        first = client.get("/api/openapi.json")
        again = client.get("/api/openapi.json", headers={"If-None-Match": first.headers.get("ETag", "")})
    if again.status_code != 304:
        raise WrongAnswerError(f"the same document again was answered {again.status_code}, expected 304")
    return "200, 304"


def _endless_head(running: Target) -> str:
    with running.connect() as opened:
        opened.sendall(b"GET /healthz HTTP/1.1\r\n")
        with suppress(OSError):
            for _ in range(200):
                opened.sendall(b"A: " + b"b" * 65_000 + b"\r\n")
        with suppress(OSError):
            status = opened.recv(1024)[9:12].decode()
            return status or "closed"
    return "closed"


def _many_headers(running: Target) -> str:
    with running.connect() as opened, suppress(OSError):
        opened.sendall(b"GET /healthz HTTP/1.1\r\n" + b"a:\r\n" * 60_000 + b"\r\n")
        return opened.recv(1024)[9:12].decode() or "closed"
    return "closed"


def _many_trailers(running: Target) -> str:
    """After the last chunk of a request that needs no body."""
    with running.connect() as opened, suppress(OSError):
        head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        opened.sendall(head + b"A:b\r\n" * 50_000 + b"\r\n")
        return opened.recv(1024)[9:12].decode() or "closed"
    return "closed"


def _heads_at_once(running: Target) -> str:
    """Thousands of requests in one piece on each of some connections, whose answers nobody reads."""
    held = [running.connect(2048) for _ in range(UNREAD)]
    try:
        for each in held:
            each.setblocking(False)
            with suppress(OSError):
                each.send(b"GET / HTTP/1.1\r\n\r\n" * 14_000)
        return expect(running.ask(Role.VIEWER, "GET", "/nodes"), 200)
    finally:
        for each in held:
            each.close()


def _strangers_at_once(running: Target) -> str:
    """A request with a large cookie on each of many connections of one address, as soon as all are open."""
    held = [running.connect() for _ in range(STRANGERS)]
    try:
        head = b"GET /api/v1/login-methods HTTP/1.1\r\nHost: x\r\nCookie: " + b"a;" * 15_000 + b"\r\n\r\n"
        for each in held:
            each.sendall(head)
        found = {each.recv(1024)[9:12].decode() for each in held}
    finally:
        for each in held:
            each.close()
    if found != {"200"}:
        raise WrongAnswerError(f"answered {sorted(found)}, expected 200")
    return "200"


def _wrong_bodies(running: Target) -> str:
    body = b"[" + b"{}," * 130_000 + b"{}]"
    headers = {"Content-Type": "application/json"}
    return expect(running.ask(Role.AGENT, "POST", "/reports", content=body, headers=headers), 422)


def _chunks(role: Role | None, path: str, parts: bytes, running: Target) -> str:
    """A body of chunks that never ends, for as long as anybody takes it."""
    credential = "" if role is None else f"Authorization: Bearer {running.tokens[role]}\r\n"
    with running.connect() as opened:
        opened.sendall(
            f"POST /api/v1{path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{credential}"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        sent, answer = 0, b""
        with suppress(OSError):
            while sent < ENDLESS_BYTES:
                opened.sendall(parts)
                sent += len(parts)
            raise WrongAnswerError(f"{sent >> 20} MiB were taken")
        with suppress(OSError):
            answer = opened.recv(1024)
        return answer[9:12].decode() or "closed"


def _preview_left(running: Target) -> str:
    """Seventeen previews whose clients do not wait for them."""
    body = b'{"scenario": {"node": {"memory": "64GiB"}}}'
    for _ in range(17):
        with running.connect() as opened:
            opened.sendall(
                b"POST /api/v1/plans/preview HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                + f"Authorization: Bearer {running.tokens[Role.VIEWER]}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
    expect(running.ask(Role.VIEWER, "GET", "/nodes"), 200)
    return "17 left"


ROWS = (
    Attack("connections: 20 lists that nobody reads", _unread_lists, requests=UNREAD + 5),
    Attack("connections: the OpenAPI document", _openapi, requests=2),
    Attack("connections: a head without an end", _endless_head),
    Attack("connections: 60,000 headers", _many_headers),
    Attack("connections: 50,000 trailers", _many_trailers),
    Attack("connections: 280,000 heads at once", _heads_at_once, requests=UNREAD),
    Attack("connections: 100 strangers at once", _strangers_at_once, requests=STRANGERS, at_once=True),
    Attack("connections: a report of 130,000 objects", _wrong_bodies),
    *(
        Attack(
            f"connections: small chunks to {path} of {role or 'a stranger'}", partial(_chunks, role, path, SMALL_CHUNKS)
        )
        for role, path in (
            (None, "/session"),
            (None, "/reports"),
            (Role.AGENT, "/reports"),
            (Role.PLANNER, "/imports/kubernetes"),
            (Role.VIEWER, "/lint"),
        )
    ),
    Attack(
        "connections: a chunk's size of zeros without an end",
        partial(_chunks, Role.AGENT, "/reports", b"0" * 120_000),
    ),
    Attack("connections: 17 previews whose clients leave", _preview_left, requests=18),
)
