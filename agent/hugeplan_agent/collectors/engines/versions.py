"""Which version a server is, without a login and without running its program: what is running is never executed.

Each function gives the version and its source, or None twice. Sources are asked from the surest to the vaguest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from hugeplan_agent.collectors.engines.base import Server, Settings
from hugeplan_agent.errors import NoData

Known = tuple["str | None", "str | None"]
UNKNOWN: Known = (None, None)

MAX_PROGRAM_BYTES = 512 * 1024 * 1024
_VERSION = re.compile(r"(?<![\d.])(\d{1,4}(?:\.\d{1,3}){1,3})")
_NO_SETTINGS: frozenset[str] = frozenset()


def of_program(server: Server, text: re.Pattern[bytes]) -> Known:
    """The constant in the running program's file that ``text`` matches; read once in the server's life.

    ``/proc/PID/exe`` is the file that runs, also where a package has replaced it since.
    """
    kept = server.host.kept("versions of programs")
    if server.main.key not in kept:
        if len(kept) > 1024:
            kept.clear()
        try:
            found = server.host.find_bytes(f"proc/{server.main.pid}/exe", text, MAX_PROGRAM_BYTES)
        except (NoData, OSError):
            found = None
        kept[server.main.key] = None if found is None else found.decode("ascii", errors="replace")
    found_text: str | None = kept[server.main.key]
    return UNKNOWN if found_text is None else (found_text, "executable")


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
        except (ValueError, KeyError, IndexError, TypeError):
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
