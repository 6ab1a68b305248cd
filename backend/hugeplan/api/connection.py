"""One client's connection: how long a head may take and how large it may be, and what becomes of an unread body.

uvicorn's own protocol waits for a head for ever, takes any number of headers, reads 64 kB to 320 kB of a body that
nobody asks for, does not see meanwhile that its client leaves, and reads on for as long as a refused body comes. These
are bounded here, and how many connections one address may hold.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hugeplan.api.forwarded import Proxies, limit_key
from hugeplan.api.untaken import MIN_READ_BYTES, acknowledged_bytes, reset_at_close, when_taken
from hugeplan.settings import Settings

MAX_HEAD_BYTES = 32 * 1024
MAX_AHEAD = 8
"""Requests that wait on a connection whose client has not had its answer. Browsers and proxies send none, and a piece
of 256 kB has 14,000.
"""
NETWORK_HAS = 2
"""So many times the connections of an address are those of an IPv6 /64: of one who takes all its addresses, or of a
subnet of many machines. With eight times as many, requests from one such network held up others for ten seconds.
"""
DISCARD_SECONDS = 2.0
DISCARD_AFTER_LOGIN_SECONDS = 30.0
DISCARD_BYTES = 256 * 1024
"""How much of a refused body is read and dropped, so that its sender finds the answer. More is not worth it."""
SMALL_PARTS_BYTES = 64 * 1024
"""How much of a body may be what tells its chunks apart, and a sixteenth of it beside. A part by itself counts for
PART_COST_BYTES: a chunk of one byte costs as much as one of some thousands.
"""
PART_COST_BYTES = 32
PIECE_BYTES = 16 * 1024
"""How much is read and parsed at a time. asyncio takes 256 kB of each connection in one round of the loop."""
LEAVING_SECONDS = 1.0
"""So often a connection of which nothing is read is asked whether its client is still there."""
TCP_ESTABLISHED = 1
"""linux/include/net/tcp_states.h"""
MAX_FIELDS = 128
"""Headers and trailers of a request. Browsers and proxies send some thirty."""

_OF_HEADS = frozenset({b"connection", b"content-length", b"transfer-encoding", b"upgrade"})
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 27\r\nConnection: close\r\n\r\nThe headers are too large.\n"
)


_HAS_BODY = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 38\r\nConnection: close\r\n\r\nSend what has a body without Upgrade.\n"
)


class _EndError(Exception):
    """Ends the parser in the middle of a piece; the client is answered 400 and the connection closed."""


class _LastAnswer:
    """Where a connection's last answer is written. uvicorn closes behind it, and what is unread of the request would
    take the answer with it: the connection closes later.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle, self._transport = cycle, cycle.transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        """Close behind an answer that was broken off."""
        if not self._cycle.response_complete:
            self._transport.close()


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with bounds, which are those of the process."""

    header_timeout_seconds = 10.0
    write_timeout_seconds = 20.0
    connections_per_address = 512
    proxies: ClassVar[Proxies | None] = None
    open_by_address: ClassVar[Counter[str]] = Counter()
    end_streams: ClassVar[Callable[[], Coroutine[Any, Any, None]] | None] = None
    """Ends the answers that would go on for as long as their clients listen."""
    _ending: ClassVar[asyncio.Task[None] | None] = None

    @classmethod
    def configure(cls, settings: Settings) -> None:
        """Take the bounds of the settings, for all connections of this process."""
        cls.header_timeout_seconds = settings.header_timeout_seconds
        cls.write_timeout_seconds = settings.write_timeout_seconds
        cls.connections_per_address = settings.connections_per_address
        cls.proxies = Proxies(settings)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._deadline: asyncio.TimerHandle | None = None
        self._reading_until: asyncio.TimerHandle | None = None
        self._taken_bytes = 0
        self._head_bytes = 0
        self._head_tail = b""
        self._is_in_head = True
        self._is_body_complete = True
        self._discarded_bytes = 0
        self._between_bytes = self._body_bytes = self._fields = self._blank_bytes = 0
        self._is_dropped = self._is_last = self._has_cycle = False
        self._refusal: bytes | None = None
        self._parts: list[bytes] = []
        self._counts: dict[str, int] = {}
        self._last_cycle: object = None
        self._at_work: RequestResponseCycle | None = None
        self._is_reset = self._is_asked = False
        self._leaving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or close it when its address has too many."""
        super().connection_made(transport)
        setattr(transport, "max_size", PIECE_BYTES)  # noqa: B010 - of asyncio's own, which no type knows
        address = self.client[0] if self.client else ""
        self._counts = {limit_key(address): NETWORK_HAS * self.connections_per_address}
        self._counts[address] = self.connections_per_address
        self.open_by_address.update(self._counts.keys())
        is_proxy = self.client is not None and self.proxies is not None and self.proxies.is_trusted(self.client[0])
        if any(self.open_by_address[key] > most for key, most in self._counts.items()) and not is_proxy:
            transport.abort()
            return
        self._close_after(self.header_timeout_seconds)

    def shutdown(self) -> None:
        """The server stops: end streams, and let other answers be finished."""
        if Connection._ending is None and Connection.end_streams is not None:
            Connection._ending = self.loop.create_task(Connection.end_streams())
        super().shutdown()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        async def answered(scope: Any, receive: Any, send: Any) -> None:
            async def starting(message: Any) -> None:
                # HAProxy 2.6 sends other clients' requests on a connection whose last request is not all sent.
                if message["type"] == "http.response.start" and cycle.more_body:
                    self._is_answered_last(cycle)
                await send(message)

            async def coming() -> Any:
                # Who listens for the client's leaving beside its answer would read a body without end.
                if not cycle.response_started and not scope["state"].get("reads_no_more"):
                    self._is_asked = True
                    try:
                        return await receive()
                    finally:
                        self._is_asked = False
                while not (cycle.disconnected or cycle.response_complete):
                    await cycle.message_event.wait()
                    cycle.message_event.clear()
                return {"type": "http.disconnect"}

            await app(scope, coming, starting)
            if cycle.response_started and not cycle.response_complete and not cycle.disconnected:
                cycle.disconnected = True  # or uvicorn says that the application failed
                self._drop()

        self._at_work = cycle
        super()._start_asgi_task(cycle, answered)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and tell the request at work, which may wait for its turn.

        uvicorn tells the one that came last, which may stand behind it and never begins.
        """
        if (cycle := self._at_work) is not None:
            state = cycle.scope.setdefault("state", {})
            state["is_gone"], cycle.disconnected = True, not cycle.response_complete
            cycle.message_event.set()
            if "leaves" in state:
                state["leaves"].reschedule(self.loop.time())
        self._cancel_deadline()
        for timer in (self._reading_until, self._leaving):
            if timer is not None:
                timer.cancel()
        if self._is_reset or (opened := self.transport.get_extra_info("socket")) is None:
            self._give_place_back()
        else:
            when_taken(opened, self.write_timeout_seconds, self._give_place_back)
        super().connection_lost(exc)

    def _give_place_back(self) -> None:
        """Count this connection among those of its address no more."""
        for key in self._counts:
            self.open_by_address[key] -= 1
            if self.open_by_address[key] <= 0:
                del self.open_by_address[key]

    def _drop(self) -> None:
        """End the connection, with what its client has not read."""
        self._is_reset = True
        with suppress(OSError):
            reset_at_close(self.transport.get_extra_info("socket"))
        self.transport.abort()

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered. What it read before this answer has no part in it."""
        super().pause_writing()
        if self._reading_until is not None:
            self._reading_until.cancel()
            self._reading_until = None
        self._expect_reading()

    def _expect_reading(self) -> None:
        """End the connection unless its client takes what waits for it, or some of it in each piece of time.

        The answer to a request that nobody reads would be kept for ever otherwise, with the connection.
        """
        if self._reading_until is None:
            self._taken_bytes = self._taken()
            self._reading_until = self.loop.call_later(self.write_timeout_seconds, self._see_reading)

    def _see_reading(self) -> None:
        self._reading_until = None
        unread = self.transport.get_write_buffer_size()
        if unread and self._taken() - self._taken_bytes < MIN_READ_BYTES:
            self._drop()
        elif unread:
            self._expect_reading()

    def _taken(self) -> int:
        """What the client has taken so far: how much waits for it says nothing where more is written."""
        opened = self.transport.get_extra_info("socket")
        acknowledged = None if opened is None else acknowledged_bytes(opened)
        return -self.transport.get_write_buffer_size() if acknowledged is None else acknowledged

    def _see_leaving(self) -> None:
        """End the connection of a client that has left while nothing is read of it: asyncio tells who reads alone."""
        self._leaving = None
        if self.flow.read_paused and not self.transport.is_closing():
            try:
                asked = self.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
            except OSError:
                return  # no TCP
            if asked[0] == TCP_ESTABLISHED:
                self._leaving = self.loop.call_later(LEAVING_SECONDS, self._see_leaving)
            else:
                self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse a piece at a time, and none after the connection is to close."""
        for at in range(0, len(data), PIECE_BYTES):
            if not self.transport.is_closing():
                self._parse(data[at : at + PIECE_BYTES])
        if self.flow.read_paused and self._leaving is None:
            self._leaving = self.loop.call_later(LEAVING_SECONDS, self._see_leaving)

    def _parse(self, data: bytes) -> None:
        """Count what belongs to a head, or to a body that nobody reads any more."""
        if self._is_last or (self._is_dropped and not self.cycle.response_complete):
            self._discarded_bytes += len(data)
            if self._refusal is None or self._discarded_bytes > DISCARD_BYTES:
                self.flow.pause_reading()
            return
        if (
            not self._is_in_head
            and self.cycle is not None
            and self.cycle.response_complete
            and not self._is_body_complete
        ):
            self._discarded_bytes += len(data)
            if self._discarded_bytes > self._state("discard_bytes", DISCARD_BYTES):
                self.transport.close()
            if self._is_dropped or self.transport.is_closing():
                return
        if self._is_in_head and self._is_head_too_large(data):
            self._refusal = _TOO_LARGE
            self.send_400_response("")
            return
        if not self._is_in_head:
            self._between_bytes += len(data) + PART_COST_BYTES
        super().data_received(data)
        self._pass_on()
        if self._is_body_complete and not self._is_in_head:
            self._see_blank_lines(len(data))
        between = self._between_bytes - self._body_bytes
        is_in_body = not self._is_in_head and not self._is_body_complete
        if is_in_body and between > SMALL_PARTS_BYTES + self._body_bytes // 16:
            self._drop_the_rest()
        if self._is_in_head:
            self._head_bytes += len(data)
            self._head_tail = data[-3:]

    def _see_blank_lines(self, count: int) -> None:
        """Lines that begin no request, and end uvicorn's own wait for one: so many as a head may have, in its time."""
        self._blank_bytes += count
        if self._blank_bytes > MAX_HEAD_BYTES:
            self._refusal = _TOO_LARGE
            self.send_400_response("")
        elif self.cycle.response_complete and not self._deadline:
            self._close_after(self.header_timeout_seconds)

    def _is_head_too_large(self, data: bytes) -> bool:
        """Whether a head goes on past what one may have: seen before it is parsed, which costs more than its bytes."""
        if self._head_bytes + len(data) <= MAX_HEAD_BYTES or self.transport.is_closing():
            return False
        end = (self._head_tail + data[: MAX_HEAD_BYTES + 4]).find(b"\r\n\r\n")
        return end < 0 or self._head_bytes + end > MAX_HEAD_BYTES

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer: those are no headers (RFC 9110, 6.5.1), no proxy's word, and nobody reads them.

        The parser alone would take ``Connection`` there as one, and nothing that follows as a request.
        """
        self._fields += 1
        if self._fields > MAX_FIELDS or (not self._is_in_head and name.lower() in _OF_HEADS):
            raise _EndError
        if self._is_in_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """A part of the body. Adding each to what waits to be read would copy that each time."""
        self._parts.append(body)

    def _pass_on(self) -> None:
        if self._parts:
            body, self._parts = b"".join(self._parts), []
            self._body_bytes += len(body)
            if self.cycle.response_complete:
                return
            self.cycle.scope["state"]["body_bytes"] = self._body_bytes
            self.cycle.body += body
            # Less wakes nobody before the body is whole: hundreds may be woken in one round, for a byte each.
            if is_piece := len(self.cycle.body) >= PIECE_BYTES:
                self.cycle.message_event.set()
            if is_piece or not self._is_asked:
                self.flow.pause_reading()  # until it is asked for

    def _drop_the_rest(self) -> None:
        """Parse no more of a body that is mostly what tells its parts apart; who reads it refuses it."""
        self._is_dropped = True
        if self.pipeline:
            self._close()
        elif self.cycle.response_complete:
            self._close_after(DISCARD_SECONDS)
        else:
            self.cycle.scope.setdefault("state", {})["is_in_small_parts"] = True
            self.cycle.body += b" "  # wakes who waits
            self.cycle.message_event.set()

    def on_message_begin(self) -> None:
        """A head begins."""
        if self._last_cycle is not None or len(self.pipeline) >= MAX_AHEAD:
            raise _EndError
        super().on_message_begin()
        self._has_cycle = False
        self._is_in_head, self._is_body_complete = True, False
        self._head_bytes = self._discarded_bytes = self._between_bytes = self._body_bytes = self._fields = 0
        self._head_tail, self._blank_bytes = b"", 0
        self._expect_head()

    def _expect_head(self) -> None:
        """End the connection unless the head comes in time, in which we read."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(
            self.header_timeout_seconds, lambda: self._expect_head() if self.flow.read_paused else self._close()
        )

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._is_in_head = False
        self._cancel_deadline()
        before = self.cycle
        if self.parser.should_upgrade():
            self._take_no_more()
        super().on_headers_complete()
        self._has_cycle = self.cycle is not before
        # Who expects "100 Continue" and gets an answer sends its body or not, and nobody knows which.
        is_last = self._is_last or self.expect_100_continue
        if self._has_cycle and (is_last or not self.cycle.keep_alive):
            self._is_answered_last(self.cycle)

    def _is_answered_last(self, cycle: RequestResponseCycle) -> None:
        """The answer says that it is the connection's last one."""
        if self._last_cycle is not cycle:
            cycle.keep_alive = False
            cycle.transport = _LastAnswer(cycle)  # type: ignore[assignment]
            self._last_cycle = cycle

    def _take_no_more(self) -> None:
        """A request offers another protocol, which we do not speak. The parser takes all that follows for that.

        To a proxy it is the request's body, and what would begin a request in it is nobody's (RFC 9110, 7.8).
        """
        self._is_last = True
        names = {name for name, value in self.headers if value != b"0"}
        if not names.isdisjoint({b"content-length", b"transfer-encoding"}):
            self._refusal = _HAS_BODY
            raise _EndError

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, where it is its turn and it has no answer, and end the connection."""
        self._is_last = True
        if self._has_cycle and not self._is_body_complete:
            if self.pipeline or self.cycle.response_started:
                self.transport.close()
            else:
                super().send_400_response(msg)
        elif self.cycle is not None and not self.cycle.response_complete:
            self._is_body_complete, self._last_cycle = True, self.cycle
            self._cancel_deadline()
        elif self._refusal is None:
            super().send_400_response(msg)
        else:  # what comes is dropped for a while, so that the client finds the answer
            self.transport.write(self._refusal)
            self._close_after(DISCARD_SECONDS)

    def on_message_complete(self) -> None:
        """The body is whole."""
        self._is_body_complete = True
        self._pass_on()
        super().on_message_complete()
        if not self.parser.should_keep_alive():
            self._last_cycle = self.cycle
        if not self.pipeline:
            self.flow.resume_reading()  # so that it is seen at once when the client leaves
        if self.cycle is not None and self.cycle.response_complete:
            self._cancel_deadline()
            self._close_if_last()

    def on_response_complete(self) -> None:
        """The answer is out. When its request is not all in, read on for a while, so that the client can read it."""
        has_next = bool(self.pipeline)
        if not has_next:
            self.cycle.body = bytearray()  # of a request that was refused by its head
        if self.transport.get_write_buffer_size():
            self._expect_reading()
        super().on_response_complete()
        if has_next or self.transport.is_closing():
            return
        if self._is_body_complete:
            self._close_if_last()
        else:
            is_known = self._state("discard_bytes", 0) > 0
            self._close_after(DISCARD_AFTER_LOGIN_SECONDS if is_known else DISCARD_SECONDS)

    def _close_if_last(self) -> None:
        """Close when the client has said that this request is its last."""
        if self._last_cycle is self.cycle:
            self._close()

    def _state(self, name: str, default: int) -> int:
        state: dict[str, Any] = self.cycle.scope.get("state") or {}
        return int(state.get(name, default))

    def _close_after(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(seconds, self._close)

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
