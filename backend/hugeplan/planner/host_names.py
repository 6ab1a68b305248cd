"""When two names are one host's: for whose a name is in the fleet, and for which machine a plan is."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_HERE: Final = re.compile(r"(.+\.)?localhost[46]?(\.localdomain[46]?)?|ipv?6-(localhost|loopback)")
"""Also what Debian (ip6-), SUSE (ipv6-) and Red Hat (4 and 6) call this machine in /etc/hosts."""


def is_one_host(one: str, other: str) -> bool:
    """Whether both may be names of one host: letters of either case, and one of them may lack the domain.

    Where both have a domain they differ by it. The first part of an address is no name, and neither is that of a name
    with a space, as a machine is shown by whose name is another's.
    """
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short == long or _parts(long)[1] == short


class HostNames(Generic[T]):
    """Things by names of hosts, found by each name that :func:`is_one_host` takes for theirs."""

    def __init__(self) -> None:
        self._whole: dict[str, list[T]] = {}
        self._first: dict[str, list[T]] = {}

    def add(self, name: str, thing: T) -> None:
        """Keep ``thing`` under ``name``."""
        whole, first = _parts(name)
        self._whole.setdefault(whole, []).append(thing)
        if first is not None:
            self._first.setdefault(first, []).append(thing)

    def of(self, name: str) -> list[T]:
        """What may be of the host that is called ``name``."""
        whole, first = _parts(name)
        bare = self._whole.get(first, ()) if first is not None else ()
        return [*self._whole.get(whole, ()), *bare, *self._first.get(whole, ())]


def _parts(name: str) -> tuple[str, str | None]:
    """A name without its letters' case, and the part before its domain."""
    whole = name.lower()
    first, dot, _ = whole.partition(".")
    return whole, first if dot and not first.isdecimal() and " " not in whole else None


def is_loopback(host: str) -> bool:
    """Whether an address or a name is this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_here_by_name(name: str) -> bool:
    """Whether resolvers lead ``name``, in small letters, to the machine that asks, whichever that is."""
    return _HERE.fullmatch(name) is not None
