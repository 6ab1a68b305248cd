"""Image references: the name and tag that say which engine and version a container holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

#: Images around a database that are not its server.
_AROUND = re.compile(
    r"exporter|operator|backup|bouncer|pgpool|pgadmin|proxy|router|sentinel|haproxy|client|toolkit|metrics|monitor"
    r"|phpmyadmin|adminer|initcontainer|init-container|restore|fluent|agent|commander|insight|shell|migrat|upgrade"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Image:
    """``registry/path/name:tag``: name in lower case; tag None for a digest alone."""

    path: str
    name: str
    tag: str | None


@lru_cache(maxsize=8192)
def parse_image(reference: str) -> Image:
    """An image reference in its parts."""
    without_digest = reference.strip().partition("@")[0]
    head, _, last = without_digest.rpartition("/")
    name, _, tag = last.partition(":")
    return Image(path=head.lower(), name=name.lower(), tag=tag or None)


def is_around(image: Image) -> bool:
    """Whether the name says that this is a helper beside a database."""
    return _AROUND.search(image.name) is not None


def leading_version(text: str | None) -> str | None:
    """``16.4`` of ``16.4-alpine`` or ``v16.4``; None when the text starts with no number."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text or "")
    return found[1] if found else None


def any_version(text: str | None) -> str | None:
    """The first number in the text."""
    found = _NUMBER.search(text or "")
    return found[0] if found else None
