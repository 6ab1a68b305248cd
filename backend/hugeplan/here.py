"""Which hosts of URLs are this machine: what is for them is no proxy's to hear."""

from __future__ import annotations

import ipaddress
import socket


def is_here(host: str) -> bool:
    """Whether who connects to an address or a name, as it is spelled, reaches this machine. No name is looked up."""
    try:
        name = host.encode("idna").decode("ascii").lower().rstrip(".").partition("%")[0]
        numbers = str(socket.getaddrinfo(name, None, flags=socket.AI_NUMERICHOST)[0][4][0])
    except socket.gaierror:
        own = socket.gethostname().lower()
        return f".{name}".endswith((".localhost", ".localhost.localdomain")) or name in {own, own.partition(".")[0]}
    except ValueError:  # nothing connects to what is no name
        return False
    address = ipaddress.ip_address(numbers)
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified
