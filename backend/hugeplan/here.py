"""Which hosts of URLs are this machine: what is for them is no proxy's to hear."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from hugeplan.planner.host_names import is_here_by_name

_HOSTS: Final = Path("/etc/hosts")
_MOST_HOSTS_BYTES: Final = 1 << 20


def is_here(host: str) -> bool:
    """Whether who connects to an address or a name, as it is spelled, reaches this machine. No name server is asked."""
    try:
        name = host.encode("idna").decode("ascii").lower().rstrip(".").partition("%")[0]
        return _is_own(str(socket.getaddrinfo(name, None, flags=socket.AI_NUMERICHOST)[0][4][0]))
    except socket.gaierror:
        own = socket.gethostname().lower()
        return is_here_by_name(name) or name in {own, own.partition(".")[0]} or _is_own_by_hosts(name)
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
