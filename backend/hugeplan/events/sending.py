"""One HTTP POST to an address that a person typed in: bounded in time, bytes and places it may go.

Not a general client: no redirect is followed, no body is decoded, no connection is kept. At most ANSWER_BYTES of the
answer are read, whatever it says of its own length. The address is judged after the name is resolved and is the one
that is connected to, so a name that resolves differently a moment later leads nowhere else.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, urlsplit

from hugeplan.planner.printable import printable

ANSWER_BYTES: Final = 4096
TIMEOUT_SECONDS: Final = 10.0
MOST_ADDRESSES: Final = 4
MOST_INTERIM: Final = 8

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Where clouds answer their machines' credentials, beside link-local 169.254.169.254.
_METADATA: Final = tuple(map(ipaddress.ip_network, (
    "fd00:ec2::/32", "fd20:ce::/32", "fd00:c1::/32", "fd00:42::/32", "100.100.100.200", "168.63.129.16", "192.0.0.192",
)))  # fmt: skip
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
#: Where the IPv4 address stands in one of these depends on the length of the network's own prefix (RFC 6052, 8215).
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")


class RefusedError(ValueError):
    """The request is not made: its URL cannot be read, or its address is not allowed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended. ``error`` is None when the receiver took the event."""

    status: int | None
    error: str | None

    @property
    def is_of_receiver(self) -> bool:
        """Whether the receiver itself is away or busy, so that the next event would not fare better."""
        return self.error is not None and (self.status is None or self.status == 429 or self.status >= 500)


def why_refused(address: Address, allowed: Sequence[Network] = ()) -> str | None:
    """Why nothing is sent to an address: loopback, link-local, metadata and such. None where it may be.

    Private addresses are allowed: that is where the receivers of most installations are.
    """
    plain = _plain(address)
    if any(each in network for network in allowed for each in {address, plain} if each.version == network.version):
        return None
    named = (
        ("loopback", plain.is_loopback),
        ("link-local", plain.is_link_local),
        ("a cloud's metadata", any(plain in network for network in _METADATA)),
        ("translated by the local network", address in _LOCAL_NAT64),
        ("unspecified", plain.is_unspecified or (plain.version == 4 and plain.packed[0] == 0)),
        ("multicast", plain.is_multicast),
        ("reserved", plain.is_reserved or getattr(plain, "is_site_local", False)),
    )
    what = next((name for name, found in named if found), None)
    if what is None:
        return None
    return f"{address} is {what}: HUGEPLAN_WEBHOOK_ALLOWED_NETWORKS does not allow it"


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for: mapped, 6to4 or NAT64; else the address itself."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and (address in _NAT64 or int(address) >> 32 == 0):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        return address if int(address) in {0, 1} else inner
    return inner or address


@dataclass(frozen=True, slots=True)
class _Target:
    host: str
    port: int
    is_tls: bool
    path: str
    named: str
    """As the header Host has it."""


_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)


def target_of(url: str) -> _Target:
    """A URL taken apart. RefusedError says what a URL is that can be asked, and what is wrong with this one."""
    try:
        # urlsplit passes over control characters, so they are looked for in the URL as it was typed.
        if not url.isprintable() or " " in url:
            raise ValueError("a space or a character that is not printed")
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"}:
            raise ValueError("another scheme")
        if "@" in parts.netloc:
            raise ValueError("a user or password, which everybody who may list webhooks would read")
        host, port = _host(parts.hostname or "", is_bracketed="[" in parts.netloc), parts.port
        if port == 0:
            raise ValueError("port 0")
    except ValueError as error:  # UnicodeError is one
        raise RefusedError(
            f"http or https, a host and a port from 1 to 65535, as https://host.example/: {error}"
        ) from error
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    if parts.query:
        path += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    is_tls = parts.scheme == "https"
    usual = 443 if is_tls else 80
    named = f"[{host}]" if ":" in host else host
    return _Target(host, port or usual, is_tls, path, named if port in {None, usual} else f"{named}:{port}")


def _host(host: str, *, is_bracketed: bool) -> str:
    """A host name in ASCII, or an address. ValueError for what no resolver should be asked."""
    if is_bracketed:
        if "%" in host:
            raise ValueError("an address with a zone, which means another interface on each machine")
        return str(ipaddress.IPv6Address(host))
    if not 0 < len(host) <= 253:
        raise ValueError(f"a host of {len(host)} characters")
    name = host.encode("idna").decode("ascii")
    name.encode("ascii").decode("idna")  # what was typed in ASCII may be no encoding of anything
    labels = name.removesuffix(".").split(".")
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("a host that is no name")
    # Resolvers read 127.1, 2130706433 and 0x7f000001 as addresses; a person who reads them does not.
    return str(ipaddress.IPv4Address(name)) if _NUMBER.fullmatch(labels[-1]) else name


class Sender:
    """Sends, to addresses that are allowed. ``allowed``: networks that an administrator opened."""

    def __init__(self, allowed: Iterable[Network] = (), timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._allowed = tuple(allowed)
        self._timeout_seconds = timeout_seconds

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        """POST ``body``; what went wrong is in the outcome, whatever it was."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                status = await self._post(target_of(url), body, headers)
        except TimeoutError:
            return Outcome(None, f"no answer within {self._timeout_seconds:g} s")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            return Outcome(None, printable(f"{type(error).__name__}: {error}", 500))
        if 200 <= status < 300:
            return Outcome(status, None)
        return Outcome(status, f"answered {status}" + (" (redirects are not followed)" if 300 <= status < 400 else ""))

    async def _post(self, target: _Target, body: bytes, headers: Mapping[str, str]) -> int:
        reader, writer = await self._connect(target)
        try:
            lines = [f"POST {target.path} HTTP/1.1"]
            own = {"Host": target.named, **headers, "Content-Length": str(len(body)), "Connection": "close"}
            lines += [f"{name}: {value}" for name, value in own.items()]
            writer.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
            await writer.drain()
            return await _status(reader)
        finally:
            # Not closed in order: a receiver that reads and writes nothing would be waited for.
            writer.transport.abort()

    async def _connect(self, target: _Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        found = await _addresses(target.host, target.port)
        # One bad address of several is a name that somebody else steers.
        for each in found:
            why = why_refused(ipaddress.ip_address(str(each[4][0]).partition("%")[0]), self._allowed)
            if why is not None:
                raise RefusedError(why)
        failed = OSError(f"{target.host} has no address")
        for family, kind, protocol, _, where in found[:MOST_ADDRESSES]:
            opened = socket.socket(family, kind, protocol)
            try:
                opened.setblocking(False)
                # What waits unread is bounded too: a receiver may send for as long as the attempt lasts.
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * ANSWER_BYTES)
                await loop.sock_connect(opened, where)
                return await asyncio.open_connection(
                    sock=opened,
                    limit=ANSWER_BYTES,
                    ssl=_tls() if target.is_tls else None,
                    server_hostname=target.host if target.is_tls else None,
                )
            except OSError as error:
                opened.close()
                failed = error
            except BaseException:
                opened.close()
                raise
        raise failed


_Found = list[tuple[Any, ...]]


async def _addresses(host: str, port: int) -> _Found:
    """What a name resolves to; OSError where it does not.

    In a thread of its own, which is left behind when the attempt's time is over: a name server that never answers would
    keep the loop's few threads, which also resolve the database's name, and the process that ends waits for those.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_Found] = loop.create_future()

    def settle(found: _Found, error: Exception | None) -> None:
        if answer.done():  # nobody waits any more
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def look_up() -> None:
        found: _Found = []
        failed = None
        try:
            found = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            failed = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, found, failed)

    threading.Thread(target=look_up, name="resolve a webhook", daemon=True).start()
    return await answer


async def _status(reader: asyncio.StreamReader) -> int:
    """The final status of the answer; at most MOST_INTERIM interim ones (100 Continue) are passed over.

    Each line is read once, however small its pieces. ValueError for what is no HTTP, and for ANSWER_BYTES without it.
    """
    left, passed, is_header = ANSWER_BYTES, 0, False
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            raise ValueError("the connection ended before an answer") from error
        except asyncio.LimitOverrunError:
            line = b"x" * ANSWER_BYTES
        left -= len(line)
        if left <= 0:
            raise ValueError(f"no status in the first {ANSWER_BYTES} bytes")
        if is_header:  # they end with an empty line, and another status follows
            is_header = line not in {b"\n", b"\r\n"}
            continue
        words = line.split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or len(words[1]) != 3 or not words[1].isdigit():
            raise ValueError(f"not an HTTP answer: {line[:40]!r}")
        if words[1] >= b"200":
            return int(words[1])
        passed, is_header = passed + 1, True
        if passed > MOST_INTERIM:
            raise ValueError(f"more than {MOST_INTERIM} interim answers")


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
