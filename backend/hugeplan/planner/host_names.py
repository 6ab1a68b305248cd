"""When two names are one host's: for whose a name is in the fleet, and for which machine a plan is."""

from __future__ import annotations


def is_one_host(one: str, other: str) -> bool:
    """Whether both may be names of one host: letters of either case, and one of them may lack the domain.

    Where both have a domain they differ by it, and the first part of an address is no name.
    """
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short == long or (long.partition(".")[0] == short and not short.isdecimal())
