"""Which methods an address has: for Allow on 405 and on OPTIONS."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import compile_path

SAFE = frozenset({"GET", "HEAD"})


class Methods:
    """The methods of each address. Any other address outside the API is a page, to be read."""

    def __init__(self, routes: Iterable[tuple[str, Iterable[str]]]) -> None:
        """``routes`` are path templates with their methods; a template may come more than once."""
        by_path: dict[str, set[str]] = {}
        for template, methods in routes:
            by_path.setdefault(template, set()).update(methods)
        self._paths = [(compile_path(template)[0], methods) for template, methods in by_path.items()]

    def at(self, path: str) -> str:
        """The methods at a path as an Allow header has them; empty when there is nothing in the API."""
        found: set[str] = set()
        for pattern, methods in self._paths:
            if pattern.match(path):
                found |= methods
        if not found and not path.startswith("/api/"):
            found = set(SAFE)
        return ", ".join(sorted(found | {"OPTIONS"})) if found else ""
