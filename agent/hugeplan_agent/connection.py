"""One connection to one server, kept open between requests: after an outage many reports share one TLS handshake.

http.client rather than urllib.request: it keeps connections and takes less memory.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import math
import re
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from hugeplan_agent.notify import watchdog_seconds

MAX_ANSWER_BYTES = 256 * 1024
WHOLE_ANSWER_TIMEOUTS = 3
"""A whole exchange may take so many times the timeout, which bounds each wait: a server may send a byte at a time."""
CUT_AGAIN_SECONDS = 0.5
"""A connection that is being opened cannot be cut yet."""
MAX_INTERIM_ANSWERS = 10

IDLE_ERRORS = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ConnectionAbortedError)
"""What a kept connection answers with when the server closed it meanwhile: the request is sent again on a new one."""

_NAMES = re.compile(r"(.+\.)?localhost[46]?(\.localdomain[46]?)?|ipv?6-(localhost|loopback)")
"""Also what Debian (ip6-), SUSE (ipv6-) and Red Hat (4 and 6) call this machine in /etc/hosts."""
_HOSTS = Path("/etc/hosts")
_MOST_HOSTS_BYTES = 1 << 20


@dataclass(frozen=True)
class Response:
    """Status, headers and at most MAX_ANSWER_BYTES of an answer."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


def is_loopback(server: str) -> bool:
    """Whether an address names this machine."""
    host = urllib.parse.urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_here(host: str) -> bool:
    """Whether who connects to an address or a name, as it is spelled, reaches this machine. No name server is asked."""
    try:
        name = host.encode("idna").decode("ascii").lower().rstrip(".").partition("%")[0]
        return _is_own(str(socket.getaddrinfo(name, None, flags=socket.AI_NUMERICHOST)[0][4][0]))
    except socket.gaierror:
        own = socket.gethostname().lower()
        return _NAMES.fullmatch(name) is not None or name in {own, own.partition(".")[0]} or _is_own_by_hosts(name)
    except ValueError:  # nothing connects to what is no name
        return False


def _is_own(numbers: str) -> bool:
    try:
        address = ipaddress.ip_address(numbers.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _is_own_by_hosts(name: str) -> bool:
    """Whether /etc/hosts, in its first MiB, gives a name this machine's addresses and no other."""
    with suppress(OSError), _HOSTS.open("rb") as file:
        text = file.read(_MOST_HOSTS_BYTES).decode("utf-8", "replace").lower()
        lines = [line.partition("#")[0].split() for line in text.splitlines()]
        found = [words[0] for words in lines if any(word.rstrip(".") == name for word in words[1:])]
        return bool(found) and all(map(_is_own, found))
    return False


def is_bypassed(host: str, no_proxy: str) -> bool:
    """Whether ``no_proxy`` names the host: ``*``, a name, a domain (with or without dot), an address or a network."""
    for entry in (word.strip().lower() for word in no_proxy.split(",")):
        if not entry:
            continue
        if entry == "*" or host == entry.lstrip(".") or host.endswith(f".{entry.lstrip('*').lstrip('.')}"):
            return True
        try:
            if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            continue
    return False


def proxy_of(server: str, environment: Mapping[str, str]) -> str | None:
    """The proxy's address for a server, from the usual variables. A proxy leads out of the machine, never back."""
    parts = urllib.parse.urlsplit(server)
    if is_here(parts.hostname or ""):
        return None
    names = (f"{parts.scheme}_proxy", "all_proxy")
    # HTTP_PROXY in capitals is ignored: under CGI a client's header could set it.
    found = next((environment[name] for name in names if environment.get(name)), None) or (
        environment.get("HTTPS_PROXY") or environment.get("ALL_PROXY") if parts.scheme == "https" else None
    )
    no_proxy = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    if not found or is_bypassed((parts.hostname or "").lower(), no_proxy):
        return None
    return found if "://" in found else f"http://{found}"


class _Answer(http.client.HTTPResponse):
    """An answer before which a server may not send 100 Continue for ever."""

    _statuses = 0

    def _read_status(self) -> tuple[str, int, str]:
        self._statuses += 1
        if self._statuses > MAX_INTERIM_ANSWERS:
            raise http.client.HTTPException(f"more than {MAX_INTERIM_ANSWERS} interim answers")
        return super()._read_status()  # type: ignore[misc,no-any-return]  # private, and the only place to count


class _Deadline:
    """Ends an exchange that takes too long, whatever it is waiting for; ``has_passed`` says that it did."""

    def __init__(self, connection: Connection, seconds: float) -> None:
        self.has_passed = False
        self._connection, self._seconds = connection, seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Deadline:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        seconds = self._seconds
        while not self._is_over.wait(seconds):
            self.has_passed, seconds = True, CUT_AGAIN_SECONDS
            self._connection.cut()


class Connection:
    """Sends requests to ``server``. Not for several threads."""

    def __init__(self, server: str, timeout_seconds: float, ca_file: str | None, proxy: str | None) -> None:
        self._parts = urllib.parse.urlsplit(server)
        self._timeout_seconds = timeout_seconds
        self._proxy = urllib.parse.urlsplit(proxy) if proxy else None
        self._context = ssl.create_default_context(cafile=ca_file) if self._parts.scheme == "https" or ca_file else None
        self._open: http.client.HTTPConnection | None = None
        self._wire: socket.socket | None = None  # its own, as http.client has none while a TLS handshake goes on
        self._until = math.inf

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """POST a body. Raises OSError or http.client.HTTPException when there is no answer."""
        # The service manager ends an agent that it does not hear from; some requests are sent twice.
        seconds = min(WHOLE_ANSWER_TIMEOUTS * self._timeout_seconds, (watchdog_seconds() or math.inf) / 2)
        self._until = time.monotonic() + seconds
        with _Deadline(self, seconds) as deadline:
            try:
                return self._post_twice(path, body, headers, deadline)
            except (OSError, http.client.HTTPException):
                if deadline.has_passed:
                    raise TimeoutError(f"no whole answer within {seconds:g} s") from None
                raise

    def cut(self) -> None:
        """End what is under way, from another thread."""
        if (wire := self._wire) is not None:
            with suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)

    def _post_twice(self, path: str, body: bytes, headers: Mapping[str, str], deadline: _Deadline) -> Response:
        was_open = self._open is not None
        try:
            return self._post(path, body, headers)
        except IDLE_ERRORS:
            self.close()
            if not was_open or deadline.has_passed:
                raise
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        try:
            return self._post(path, body, headers)
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self) -> None:
        """End the connection; the next request opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Response:
        if self._open is None:
            self._open = self._make()
            self._open.connect()
            self._open.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        target = self._parts.path.rstrip("/") + path
        all_headers = dict(headers)
        if self._proxy is not None and self._parts.scheme == "http":
            target = f"http://{self._parts.netloc.rpartition('@')[2]}{target}"
            all_headers.update(self._proxy_headers())
        self._open.request("POST", target, body=body, headers=all_headers)
        with self._open.getresponse() as answer:
            content = answer.read(MAX_ANSWER_BYTES)
            response = Response(answer.status, answer.reason, dict(answer.headers.items()), content)
            if not answer.isclosed() or answer.will_close:
                self.close()
        return response

    def _make(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        is_tls = self._parts.scheme == "https"
        default = 443 if is_tls else 80
        to_host, to_port = host, port or default
        if self._proxy is not None:
            to_host, to_port = (
                self._proxy.hostname or "",
                self._proxy.port or (443 if self._proxy.scheme == "https" else 80),
            )
        made: http.client.HTTPConnection
        if is_tls:
            made = http.client.HTTPSConnection(to_host, to_port, timeout=self._timeout_seconds, context=self._context)
            if self._proxy is not None:
                made.set_tunnel(host, port or default, headers=self._proxy_headers())
        else:
            made = http.client.HTTPConnection(to_host, to_port, timeout=self._timeout_seconds)
        made.response_class = _Answer
        made._create_connection = self._reach  # type: ignore[attr-defined]  # private, and the only place
        return made

    def _reach(self, address: tuple[str, int], *_: object) -> socket.socket:
        """As socket.create_connection, but for the exchange's time, which all addresses of a name have together."""
        failed = OSError(f"{address[0]} has no address")
        for family, kind, protocol, _name, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            left = self._until - time.monotonic()
            if left <= 0:
                break
            with ExitStack() as on_error:
                try:
                    opened = on_error.enter_context(socket.socket(family, kind, protocol))
                    opened.settimeout(min(left, self._timeout_seconds))
                    opened.connect(place)
                except OSError as error:
                    failed = error
                    continue
                opened.settimeout(self._timeout_seconds)
                self._wire = opened.dup()
                on_error.pop_all()
                return opened
        raise failed

    def _proxy_headers(self) -> dict[str, str]:
        assert self._proxy is not None
        if self._proxy.username is None:
            return {}
        user = urllib.parse.unquote(self._proxy.username)
        password = urllib.parse.unquote(self._proxy.password or "")
        word = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        return {"Proxy-Authorization": f"Basic {word}"}
