"""Which version a server is, without a login and without running its program: what is running is never executed.

Each function gives the version and its source, or None twice. Sources are asked from the surest to the vaguest.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hugeplan_agent.collectors.engines.base import Server, Settings
from hugeplan_agent.collectors.foreign import foreign
from hugeplan_agent.errors import NoData

Known = tuple["str | None", "str | None"]
UNKNOWN: Known = (None, None)

MAX_PROGRAM_BYTES = 512 * 1024 * 1024
MAX_KEPT = 1024
MAX_FOUND_BYTES = 128
SEARCHED_BYTES = 1024 * 1024
"""A large file is searched in pieces of this size, so that the agent stays small."""
MAX_MARKS = 64
"""Of a piece. A program has a few; one that was made to have more has no version."""
_VERSION = re.compile(r"(?<![\d.])(\d{1,4}(?:\.\d{1,3}){1,3})")
_NO_SETTINGS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Constant:
    """A constant in a program's file: the bytes that are looked for, and what group 1 of the pattern around them is.

    Bytes are found ten times as fast as a pattern.
    """

    mark: bytes
    pattern: re.Pattern[bytes]


@dataclass
class _Search:
    """How far a file was searched, in which observations as well."""

    offset: int = 0
    is_done: bool = False
    found: str | None = None


def of_program(server: Server, constant: Constant) -> Known:
    """The constant in the running program's file; a file is searched once, in as many observations as it takes.

    ``/proc/PID/exe`` is the file that runs, also where a package has replaced it since.
    """
    name = f"proc/{server.main.pid}/exe"
    try:
        with server.host.look(name):
            return _of_file(server, server.host.open_regular(name), constant)
    except (NoData, OSError):
        return UNKNOWN


def _of_file(server: Server, descriptor: int, constant: Constant) -> Known:
    """The same of a file that is open, and closed here. Raises OSError."""
    try:
        said = os.fstat(descriptor)
        kept = server.host.kept("versions of programs")
        if len(kept) > MAX_KEPT:
            kept.clear()
        # A file that somebody has written to since is another one.
        identity = (said.st_dev, said.st_ino, said.st_size, said.st_mtime_ns, said.st_ctime_ns, constant.mark)
        search: _Search = kept.setdefault(identity, _Search())
        if not search.is_done:
            _search_on(search, descriptor, constant, server, is_roots=said.st_uid == 0)
    finally:
        os.close(descriptor)
    server.is_unfinished |= not search.is_done
    return UNKNOWN if search.found is None else (search.found, "executable")


def _search_on(search: _Search, descriptor: int, constant: Constant, server: Server, *, is_roots: bool) -> None:
    """Search a file from where it was left, as far as there is room. Raises OSError."""
    room, account = foreign(server.host), server.main.account
    while not search.is_done and room.may_search(account, is_roots=is_roots):
        piece = os.pread(descriptor, SEARCHED_BYTES, search.offset)
        room.search(account, len(piece), is_roots=is_roots)
        search.found = _find(piece, constant)
        # The next piece begins with the end of this one, where the constant may begin.
        search.offset += max(len(piece) - MAX_FOUND_BYTES, 0)
        is_end = len(piece) < SEARCHED_BYTES or search.offset >= MAX_PROGRAM_BYTES
        search.is_done = search.found is not None or is_end


def _find(piece: bytes, constant: Constant) -> str | None:
    at = piece.find(constant.mark)
    for _ in range(MAX_MARKS):
        if at < 0:
            return None
        match = constant.pattern.search(piece, max(0, at - MAX_FOUND_BYTES), at + MAX_FOUND_BYTES)
        if match:
            return match[1].decode("ascii", errors="replace")
        at = piece.find(constant.mark, at + 1)
    return None


def of_image(server: Server, names: Sequence[str]) -> Known:
    """A variable that an image's makers set beside the program, such as ``MYSQL_VERSION=8.4.3-1.el9``."""
    variables = server.environment(names)
    for name in names:
        match = _VERSION.search(variables.get(name, ""))
        if match:
            return match[1], name
    return UNKNOWN


def of_data(server: Server, folder: str | None, names: Sequence[str]) -> Known:
    """The version that a server noted in its data folder when it last upgraded it.

    ``mysql_upgrade_info`` and ``mariadb_upgrade_info`` hold one line; ``mysql_upgrade_history`` is JSON, newest last.
    """
    for name in names if folder else ():
        text = server.try_read(f"{folder}/{name}", Settings(_NO_SETTINGS)) or ""
        try:
            history = json.loads(text)["upgrade_history"]
            text = str(history[-1]["version"])
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            text = text.lstrip()[:64]
        match = _VERSION.match(text)
        if match:
            return match[1], name
    return UNKNOWN


def of_release_file(server: Server) -> Known:
    """``JAVA_VERSION`` of the file ``release`` of the runtime that the program belongs to."""
    home = (server.executable or "").rpartition("/bin/")[0]
    for folder in (home, home.removesuffix("/jre")) if home else ():
        text = server.try_read(f"{folder}/release", Settings(_NO_SETTINGS)) or ""
        match = re.search(r'^JAVA_VERSION="(?:1\.(?=8))?(\d+(?:\.\d+){0,3})', text, re.MULTILINE)
        if match:
            return match[1], "release"
    return UNKNOWN


def first(*known: Known) -> Known:
    """The first that is known."""
    return next((one for one in known if one[0] is not None), UNKNOWN)
