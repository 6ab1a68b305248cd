"""Whose request it is when it comes through a proxy: the client's address, as proxies that are trusted say it.

Off unless trusted proxies are configured. One header is believed, the configured one: a proxy passes the other on as
its client wrote it. It is read from its end, which the nearest proxy wrote; the first address that is no trusted proxy
is the client, and what stands before it is the client's own word.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from hugeplan.settings import Settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MOST_HOPS: Final = 20
MOST_CHARACTERS: Final = 4096
"""Of a header, from its end: what stands before is its client's own word, of any length."""
#: RFC 7239, section 4, backwards: elements with commas between them, pairs with semicolons; a value may be a quoted
#: string, which may hold both.
_PAIR: Final = re.compile(r'[ \t]*(?:("(?:[^"\\]|.\\)*"|[^\s"=;,]*)=([^\s"=;,]*)[ \t]*)?([;,]|$)')


class Proxies:
    """The proxies that a service believes. Without any, the peer is the client."""

    def __init__(self, settings: Settings) -> None:
        self._trusted = settings.trusted_proxies
        self._header = settings.trusted_proxy_header.encode("ascii")

    def __bool__(self) -> bool:
        return bool(self._trusted)

    def is_trusted(self, host: str) -> bool:
        """Whether a peer is one of them."""
        address = _address(host) if self._trusted else None
        return address is not None and self._is_proxy(address)

    def client_of(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The client's address: ``peer`` itself unless it is trusted and says otherwise."""
        if not self.is_trusted(peer):
            return peer
        lines = [value.decode("latin-1") for name, value in headers if name == self._header]
        found = peer
        for hop in _hops(self._header, lines):
            address = _address(hop)
            if address is None:
                return found  # "unknown", a hidden name, or nonsense: as far as a proxy was sure
            found = str(address)
            if not self._is_proxy(address):
                return found
        return found

    def _is_proxy(self, address: Address) -> bool:
        return any(address in network for network in self._trusted if network.version == address.version)


def _hops(header: bytes, lines: Sequence[str]) -> Iterable[str]:
    """The addresses of a header, the nearest first; at most MOST_HOPS."""
    text = ",".join(lines).rstrip()[-MOST_CHARACTERS:]
    if header == b"x-forwarded-for":
        return [element.strip() for element in text.split(",")[::-1][:MOST_HOPS]]
    return islice(_hops_of_pairs(text[::-1]), MOST_HOPS)


def _hops_of_pairs(backwards: str) -> Iterator[str]:
    """What ``for`` is in each element, empty without one, up to what cannot be read."""
    own, at, ends = "", 0, ""
    while at < len(backwards) or ends:
        found = _PAIR.match(backwards, at)
        if found is None:
            return
        value, name, ends = found[1], found[2], found[3]
        if name is not None and name.lower() == "rof":
            own = value[::-1].strip('"')
        if ends != ";":
            yield own
            own = ""
        at = found.end()


def _address(text: str) -> Address | None:
    """An address with or without brackets and port; an IPv4 one that is mapped into IPv6 is IPv4."""
    host = text.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found


def limit_key(host: str) -> str:
    """What a rate limit counts an address by: an IPv6 host has a whole /64, so it counts as one."""
    address = _address(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return host if address is None else str(address)
