"""What a stranger can make the service do: nothing that costs memory or time, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import json
import os
import socket
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import httpx
import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from support.server import MIB, Server, serving
from uvicorn.server import ServerState

from hugeplan import embedded
from hugeplan.api.body import BodyLimits, read_body, unless_gone
from hugeplan.api.connection import PIECE_BYTES, Connection
from hugeplan.settings import Settings

JSON = {"Content-Type": "application/json"}
PREVIEW = "/api/v1/plans/preview"
ZEROS = 50_000
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


def bomb() -> bytes:
    """162 kB: thirty nested keys of 512 emoji, then zeros. Every zero has a path of 60 kB, if one is built."""
    return (('{"' + "😀" * 512 + '":') * 30 + "[" + "0," * ZEROS + "0]" + "}" * 30).encode()


def objects(count: int) -> bytes:
    """Three bytes an object."""
    return b"[" + b"{}," * count + b"{}]"


@pytest.fixture(scope="module")
def server(
    postgres: embedded.EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A service with short timeouts and a database of its own."""
    postgres.ensure_database("door", template)
    environment = {
        "HUGEPLAN_BODY_TIMEOUT_SECONDS": "0.5",
        "HUGEPLAN_HEADER_TIMEOUT_SECONDS": "0.5",
        "HUGEPLAN_REFUSALS_PER_MINUTE": "1000000",
        "HUGEPLAN_LOGINS_PER_MINUTE": "10000",
        "HUGEPLAN_CONNECTIONS_PER_ADDRESS": "50",
    }
    with serving(postgres.url("door"), tmp_path_factory.mktemp("door"), **environment) as running:
        yield running


@pytest.fixture
def admin(server: Server) -> Iterator[httpx.Client]:
    """A client that may do everything."""
    assert server.admin_token is not None
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:  # the first order starts the sandbox
        yield client


def head(method: str, path: str, length: int, *headers: str) -> bytes:
    """The head of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode()


def answered(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of the answer on a connection."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.read()


class TestStrangers:
    @pytest.mark.parametrize("credential", [(), ("Authorization: Bearer hp_forged",), ("Cookie: hugeplan_session=x",)])
    @pytest.mark.parametrize("path", [PREVIEW, "/api/v1/reports", "/api/v1/tokens"])
    def test_is_refused_before_its_body_comes(self, server: Server, path: str, credential: tuple[str, ...]) -> None:
        with server.connect() as connection:
            connection.sendall(head("POST", path, 8 * MIB, *credential))
            assert answered(connection)[0] == 401

    @pytest.mark.parametrize(("path", "status"), [("/api/v1/nothing", 404), ("/nothing", 405), ("/api/v1/nodes", 405)])
    def test_an_address_without_a_reader_reads_no_body(self, server: Server, path: str, status: int) -> None:
        with server.connect() as connection:
            connection.sendall(head("POST", path, 8 * MIB))
            assert answered(connection)[0] == status

    def test_bombs_cost_neither_memory_nor_time(self, server: Server) -> None:

        def cost(body: bytes) -> float:
            """Processor time of the service, the least of three tries."""
            tries, answers = [], 0
            for _ in range(3):
                before = server.cpu_seconds()
                for _ in range(10):
                    # Who goes on sending may find the connection closed before the answer is read.
                    with contextlib.suppress(httpx.TransportError):
                        assert client.post(PREVIEW, content=body, headers=JSON).status_code == 401
                        answers += 1
                tries.append(server.cpu_seconds() - before)
            assert answers
            return min(tries)

        bombs = (bomb(), objects(80_000))
        with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
            plain = [cost(b" " * len(body)) for body in bombs]  # what is loaded once is loaded
            before = server.status_bytes("VmHWM")
            for body, seconds in zip(bombs, plain, strict=True):
                assert cost(body) <= 2 * seconds + 5 * TICK_SECONDS
            assert server.status_bytes("VmHWM") - before < 4 * MIB

    def test_a_login_takes_no_large_body(self, server: Server) -> None:
        answer = httpx.post(server.url + "/api/v1/session", content=bomb(), headers=JSON)
        assert answer.status_code == 413

    def test_a_body_without_an_end_in_tiny_parts_ends(self, server: Server) -> None:
        for credential in ([], [f"Authorization: Bearer {server.admin_token}"]):
            for parts in (b"1\r\n \r\n" * 10_000, b"0" * 60_000, b"1;" + b"x" * 60_000 + b"\r\n \r\n"):
                with server.connect() as connection:
                    path = "/api/v1/session" if not credential else PREVIEW
                    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *credential]
                    connection.sendall("\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]).encode())
                    with pytest.raises((BrokenPipeError, ConnectionResetError)):
                        for _ in range(2_000):
                            connection.sendall(parts)

    def test_a_refused_upload_ends(self, server: Server) -> None:
        with server.connect() as connection:
            connection.sendall(head("POST", PREVIEW, 8 * MIB))
            assert answered(connection)[0] == 401
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                for _ in range(8 * 1024):
                    connection.sendall(b"x" * 1024)

    def test_trailers_are_no_headers_and_only_a_few(self, server: Server) -> None:
        """A proxy that passes them on had them taken for its own word; each cost memory while its connection stayed."""
        head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        before = server.status_bytes("VmHWM")
        for trailers, status in ((b"X-Request-ID: forged\r\n", 200), (b"A:b\r\n" * 40_000, 400)):
            for part in (1, 1 << 20):  # with the head, and after it
                with server.connect() as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall((head + trailers + b"\r\n")[: len(head) * part])
                    connection.sendall((head + trailers + b"\r\n")[len(head) * part :])
                    text = connection.recv(65_536)
                    # The head alone may be answered before there are trailers.
                    assert text.split()[1].decode() in ({"200", str(status)} if part == 1 else {str(status)})
                    assert b"forged" not in text
        held = []
        for _ in range(40):
            held.append(server.connect())
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                held[-1].sendall(head + b"A:b\r\n" * 12_000)  # without an end
        assert httpx.get(server.url + "/healthz", trust_env=False).status_code == 200
        for each in held:
            each.close()
        assert server.status_bytes("VmHWM") - before < 16 * MIB

    @pytest.mark.parametrize(
        "parts", [b"1\r\n \r\n" * 40_000, b"0\r\n" + b"A:b\r\n" * 50_000], ids=["chunks", "trailers"]
    )
    def test_a_body_of_tiny_parts_costs_no_more_than_another(self, server: Server, parts: bytes) -> None:
        head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

        def cost(body: bytes) -> float:
            before = server.cpu_seconds()
            for _ in range(100):
                with server.connect() as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(head + body)
                    connection.recv(100)
            return server.cpu_seconds() - before

        plain = b"%x\r\n%b\r\n" % (len(parts), b" " * len(parts))
        assert min(cost(parts) - 2 * cost(plain) for _ in range(3)) < 0.35


class TestKnownClients:
    def test_a_bomb_is_refused_cheaply_and_its_field_is_named(self, server: Server, admin: httpx.Client) -> None:
        admin.post(PREVIEW, content=bomb(), headers=JSON)
        before = server.status_bytes("VmHWM")
        deep = ('{"' + "k" * 500 + '":') * 30 + "[" + "0," * ZEROS + "1e999]" + "}" * 30
        answer = admin.post(PREVIEW, content=deep.encode(), headers=JSON)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["expected"] == "a finite number"
        assert len(answer.json()["errors"][0]["field"]) < 1100
        assert server.status_bytes("VmHWM") - before < 32 * MIB

    def test_objects_beyond_count_are_refused_while_they_come(self, server: Server, admin: httpx.Client) -> None:
        admin.post(PREVIEW, content=objects(1000), headers=JSON)
        before = server.status_bytes("VmHWM")
        answer = admin.post(PREVIEW, content=objects(1_300_000), headers=JSON)
        assert answer.status_code == 422
        assert "150000 commas and opening brackets" in answer.text
        assert server.status_bytes("VmHWM") - before < 32 * MIB

    @pytest.mark.parametrize("is_declared", [True, False])
    def test_a_too_large_body_gets_a_413_that_can_be_read(self, server: Server, is_declared: bool) -> None:
        body = b'{"a": "' + b"x" * (9 * MIB) + b'"}'
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        headers = JSON | {"Authorization": f"Bearer {server.admin_token}", "Connection": "close"}
        # It sends all of the body before it reads, as most clients do.
        parts = body if is_declared else iter([body[i : i + MIB] for i in range(0, len(body), MIB)])
        connection.request("POST", PREVIEW, body=parts, headers=headers, encode_chunked=not is_declared)
        answer = connection.getresponse()
        problem = json.loads(answer.read())
        assert answer.status == 413
        assert problem["detail"] == f"The body may have at most {4 * MIB} bytes."
        connection.close()

    @pytest.mark.parametrize(
        ("part", "number", "status"), [(1, 9_000, 201), (100, 9_000, 201), (1_500, 600, 201), (1, 200_000, 413)]
    )
    def test_a_body_in_many_chunks_is_read_and_one_in_tiny_ones_gets_an_answer(
        self, server: Server, part: int, number: int, status: int
    ) -> None:
        text = b'{"name": "chunks", "role": "viewer"}'
        body = b"".join(b"%x\r\n%b\r\n" % (part, b" " * part) for _ in range(number))
        body += b"%x\r\n%b\r\n0\r\n\r\n" % (len(text), text)
        with server.connect() as connection:
            lines = ["POST /api/v1/tokens HTTP/1.1", "Host: x", "Content-Type: application/json"]
            lines += [f"Authorization: Bearer {server.admin_token}", "Transfer-Encoding: chunked", "", ""]
            connection.sendall("\r\n".join(lines).encode())
            connection.sendall(body)
            found, answer = answered(connection)
        assert found == status
        assert status == 201 or b"parts of at least 1024 bytes" in answer

    @pytest.mark.parametrize(
        "text",
        [
            '{"a": 1, "a": 2}',
            '{"x": {"b": ":", "b": 2}}',
            '{"x": [{"\\u0061": 1, "a": 1}]}',
            '{"a": 1, "a" : 2}',  # counted by what stands before a colon
            '{"a"\n: 1, "b": ":c", "a": 2}',
            '[{"a": "b"}, {"": 1, "": ":"}]',
        ],
    )
    def test_repeated_keys_are_refused(self, admin: httpx.Client, text: str) -> None:
        answer = admin.post(PREVIEW, content=text, headers=JSON)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["expected"] == "a key that occurs once in its object"

    def test_colons_and_escapes_in_text_are_no_repeated_keys(self, admin: httpx.Client) -> None:
        text = '{"name": "a:b\\u003a::", "scenario": {"schema_version": 1, "node": {"name": "{\\"a\\":1,\\"a\\":2}"}}}'
        answer = admin.post("/api/v1/scenarios", content=text, headers=JSON)
        assert "stands once" not in answer.text

    def test_gzip_is_read_and_a_gzip_bomb_is_413(self, server: Server, admin: httpx.Client) -> None:
        packed = JSON | {"Content-Encoding": "gzip"}
        body = json.dumps({"name": "packed", "role": "viewer"}).encode()
        assert admin.post("/api/v1/tokens", content=gzip.compress(body), headers=packed).status_code == 201
        before = server.status_bytes("VmHWM")
        zeros = gzip.compress(b'"' + b"0" * (64 * MIB) + b'"', 1)
        assert admin.post("/api/v1/tokens", content=zeros, headers=packed).status_code == 413
        assert server.status_bytes("VmHWM") - before < 24 * MIB
        for broken in (gzip.compress(body)[:-3], body, gzip.compress(body) + b"more"):
            assert admin.post("/api/v1/tokens", content=broken, headers=packed).status_code == 422


class TestTime:
    def test_a_body_that_does_not_come_is_408(self, server: Server) -> None:
        seconds = []
        for _ in range(3):
            begun = time.monotonic()
            with server.connect() as connection:
                connection.sendall(head("POST", PREVIEW, 100, f"Authorization: Bearer {server.admin_token}") + b"{")
                status, body = answered(connection)
            seconds.append(time.monotonic() - begun)
            assert (status, json.loads(body)["type"].rpartition("/")[2]) == (408, "body-timeout")
        assert min(seconds) < Settings.model_fields["body_timeout_seconds"].default, "the setting counts"

    def test_a_body_that_drips_is_408(self, server: Server) -> None:
        with server.connect(0.05) as connection:
            connection.sendall(head("POST", PREVIEW, 10**6, f"Authorization: Bearer {server.admin_token}"))
            for _ in range(200):
                connection.sendall(b" ")
                try:
                    first = connection.recv(1, socket.MSG_PEEK)
                except TimeoutError:
                    continue
                assert first == b"H"
                assert answered(connection)[0] == 408
                return
        raise AssertionError("the body was waited for")

    @pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
    def test_a_head_that_does_not_come_closes_the_connection(self, server: Server, sent: bytes) -> None:
        with server.connect(5) as connection:
            connection.sendall(sent)
            assert connection.recv(1) == b""

    def test_endless_headers_are_431(self, server: Server) -> None:
        with server.connect() as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"a" * 33_000)
            assert answered(connection)[0] == 431

    def test_thousands_of_heads_at_once_are_not_queued(self, server: Server) -> None:
        """One piece of 256 kB took 15 MB and 0.1 s of everybody."""
        with server.connect() as connection, contextlib.suppress(OSError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 4000)
            answers = b""
            while more := connection.recv(65536):
                answers += more
        assert answers.startswith(b"HTTP/1.1 200 ")
        assert answers.count(b"HTTP/1.1 ") == answers.count(b"HTTP/1.1 200 ") < 20

    def test_a_few_heads_at_once_are_answered_in_order(self, server: Server) -> None:
        with server.connect() as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 8)
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answers = b""
            while more := connection.recv(65536):
                answers += more
        assert answers.count(b"HTTP/1.1 200 ") == 9

    def test_one_address_holds_so_many_connections(self, server: Server) -> None:
        held = [server.connect() for _ in range(50)]
        try:
            with server.connect(5) as extra, pytest.raises(ConnectionResetError):
                extra.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                if extra.recv(1) == b"":
                    raise ConnectionResetError
        finally:
            for connection in held:
                connection.close()

    def test_an_upload_cut_short_leaves_no_error(self, server: Server) -> None:
        with server.connect() as connection:
            connection.sendall(head("POST", PREVIEW, 100, f"Authorization: Bearer {server.admin_token}") + b"{")
        deadline = time.monotonic() + 10
        while '"status": 499' not in server.log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert '"level": "error"' not in server.log.read_text()

    def test_keep_alive_requests_do_not_wait_for_a_delayed_ack(self, server: Server) -> None:
        """Each would take 40 ms more than one on a connection of its own, which has nothing to wait for."""

        def ask(connection: http.client.HTTPConnection) -> float:
            begun = time.perf_counter()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return time.perf_counter() - begun

        kept, fresh = [], []
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as same:
            for _ in range(60):
                kept.append(ask(same))
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as own:
                    fresh.append(ask(own))
        assert statistics.median(kept) < 2 * statistics.median(fresh) + 0.01


async def test_one_machine_of_a_network_does_not_shut_out_the_others() -> None:
    """Clouds give a /64 to a subnet; one who takes all of its addresses has twice the connections of one."""
    configured = uvicorn.Config(lambda *_: None, http=Connection, ws="none", log_config=None)
    configured.load()
    made: list[tuple[Connection, MagicMock]] = []

    def refused(address: str, count: int) -> int:
        for _ in range(count):
            transport = MagicMock()
            transport.get_extra_info.side_effect = {"peername": (address, 4000), "sockname": ("::1", 80)}.get
            connection = Connection(config=configured, server_state=ServerState(), app_state={})
            connection.connection_made(transport)
            made.append((connection, transport))
        return sum(transport.abort.called for _, transport in made[-count:])

    before = Connection.open_by_address.copy()
    most = Connection.connections_per_address
    assert refused("2001:db8::1", most + 5) == 5
    assert refused("2001:db8::2", most - 5) == 0
    assert sum(refused(f"2001:db8::{number:x}", most) for number in range(3, 11)) > 0
    assert refused("10.0.0.1", most) == refused("10.0.0.2", 1) == 0
    for connection, _ in made:
        connection.connection_lost(None)
    assert Connection.open_by_address == before


@pytest.mark.parametrize(
    "behind", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n?\r\n\r\n"]
)
async def test_who_leaves_ends_what_waits_also_behind_a_later_request(behind: bytes) -> None:
    """uvicorn tells the request that came last: the one at work was worked off for nobody, and events were sent on."""
    ended = asyncio.get_running_loop().create_future()

    async def application(scope: Any, receive: Any, _: Any) -> None:
        assert (await receive())["type"] == "http.request"
        with pytest.raises(ClientDisconnect):
            async with unless_gone(Request(scope, receive)):
                await asyncio.Event().wait()
        ended.set_result(await receive())

    configured = uvicorn.Config(application, http=Connection, ws="none", log_config=None)
    configured.load()
    transport = MagicMock()
    transport.get_extra_info.side_effect = {"peername": ("10.0.0.1", 4000), "sockname": ("::1", 80)}.get
    transport.is_closing.return_value = False
    connection = Connection(config=configured, server_state=ServerState(), app_state={})
    connection.connection_made(transport)
    connection.data_received(b"GET /waits HTTP/1.1\r\nHost: x\r\n\r\n" + behind)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not ended.done()
    connection.connection_lost(None)
    assert await asyncio.wait_for(ended, 5) == {"type": "http.disconnect"}


@pytest.mark.parametrize("behind", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
@pytest.mark.parametrize("size", [0, 20_000, 1_000_000])
async def test_little_is_read_of_what_nobody_asks_for_and_who_leaves_is_seen_all_the_same(
    size: int, behind: bytes
) -> None:
    """uvicorn read up to 320 kB of each body, and with its reading ended it saw no client leave: 10 agents, each with
    64 connections at a time, held 1.5 GiB."""
    begun, ended = asyncio.Event(), asyncio.Event()
    made: list[Connection] = []

    async def application(scope: Any, receive: Any, _: Any) -> None:
        begun.set()
        with pytest.raises(ClientDisconnect):
            async with unless_gone(Request(scope, receive)):
                await asyncio.Event().wait()
        ended.set()

    def protocol() -> Connection:
        made.append(Connection(config=configured, server_state=ServerState(), app_state={}))
        return made[0]

    configured = uvicorn.Config(application, http=Connection, ws="none", log_config=None)
    configured.load()
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(20), await loop.create_server(protocol, "127.0.0.1", 0) as listening:
        _, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(head("POST", "/waits", size) + b" " * size + behind)
        await begun.wait()
        while not (made[0].flow.read_paused or made[0]._is_body_complete):
            await asyncio.sleep(0.01)
        assert len(made[0].cycle.body) <= 2 * PIECE_BYTES
        # Its network tells at once, whatever the service has not read.
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, (1).to_bytes(4, "little") + bytes(4)
        )
        writer.transport.abort()
        await ended.wait()


async def test_small_pieces_of_a_body_wake_nobody_and_buy_their_time_all_the_same() -> None:
    """Of 500 connections that sent byte after byte each had its task woken in one round: others waited for 0.5 s."""
    got, asked = asyncio.get_running_loop().create_future(), 0

    async def application(scope: Any, receive: Any, _: Any) -> None:
        async def counted() -> Any:
            nonlocal asked
            asked += 1
            return await receive()

        got.set_result(await read_body(Request(scope, counted), limits))
        await receive()

    limits = replace(BodyLimits.of(Settings()), patience_seconds=0.0, min_bytes_per_second=1)
    configured = uvicorn.Config(application, http=Connection, ws="none", log_config=None)
    configured.load()
    transport = MagicMock()
    transport.get_extra_info.side_effect = {"peername": ("10.0.0.1", 4000), "sockname": ("::1", 80)}.get
    transport.is_closing.return_value = False
    connection = Connection(config=configured, server_state=ServerState(), app_state={})
    connection.connection_made(transport)
    connection.data_received(head("POST", "/takes", 360) + b" " * 60)
    assert connection.flow.read_paused, "nobody asks for it yet"
    for _ in range(300):
        for _ in range(3):
            await asyncio.sleep(0)
        assert not got.done()
        assert not connection.flow.read_paused
        connection.data_received(b" ")
    assert await asyncio.wait_for(got, 20) == b" " * 360
    assert asked == 2, "once more when the first bytes were to have come"
    connection.connection_lost(None)


async def test_a_body_that_is_asked_for_comes_whole() -> None:
    """In pieces, of which each is read when the one before it was taken."""
    got = asyncio.get_running_loop().create_future()

    async def application(_: Any, receive: Any, send: Any) -> None:
        pieces = [await receive()]
        while pieces[-1]["more_body"]:
            await asyncio.sleep(0)
            pieces.append(await receive())
        got.set_result([piece["body"] for piece in pieces])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    configured = uvicorn.Config(application, http=Connection, ws="none", log_config=None)
    configured.load()
    loop, sent = asyncio.get_running_loop(), os.urandom(1_000_000)
    made = lambda: Connection(config=configured, server_state=ServerState(), app_state={})  # noqa: E731
    async with asyncio.timeout(20), await loop.create_server(made, "127.0.0.1", 0) as listening:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(head("POST", "/takes", len(sent), "Connection: close") + sent)
        pieces = await got
        assert b"".join(pieces) == sent
        assert max(map(len, pieces)) <= 2 * PIECE_BYTES
        assert b" 204 " in await reader.read()
        writer.close()
        await writer.wait_closed()
