"""The machine as files under one root, so that a captured tree or a mounted host reads like the running system."""

from __future__ import annotations

import re
from io import FileIO
from pathlib import Path

from hugeplan_agent.errors import NoData

MAX_FILE_BYTES = 8 * 1024 * 1024
"""No file of /proc or /sys that is read here comes near this; a captured tree might."""


CHUNK_BYTES = 64 * 1024
"""The kernel allocates a buffer of the size asked for when /proc/sys is read, so one large read fails there."""


def _read_bounded(file: FileIO) -> bytes:
    chunks: list[bytes] = []
    size_bytes = 0
    while size_bytes < MAX_FILE_BYTES and (chunk := file.read(CHUNK_BYTES)):
        chunks.append(chunk)
        size_bytes += len(chunk)
    return b"".join(chunks)


class Host:
    """Reads files of /proc, /sys and /etc below ``root``."""

    def __init__(self, root: str | Path = "/") -> None:
        self.root = Path(root)

    def path(self, name: str) -> Path:
        """The place of ``name`` (such as ``proc/meminfo``) on this machine."""
        return self.root / name

    def read(self, name: str) -> str:
        """The text of a file. Raises NoData when it does not exist, OSError when it cannot be read."""
        try:
            with self.path(name).open("rb", buffering=0) as file:
                return _read_bounded(file).decode("utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoData(f"{self.path(name)} does not exist") from error

    def read_optional(self, name: str) -> str | None:
        """The text of a file without the final newline, or None when it is absent or unreadable."""
        try:
            return self.read(name).rstrip("\n")
        except (NoData, OSError):
            return None

    def read_int(self, name: str) -> int | None:
        """The whole number in a file, or None when the file is absent, unreadable or holds none."""
        text = self.read_optional(name)
        try:
            return int(text.strip()) if text is not None else None
        except ValueError:
            return None

    def children(self, name: str, pattern: str) -> list[tuple[str, re.Match[str]]]:
        """Entries of a folder whose whole name matches, sorted by name. Raises NoData without the folder."""
        try:
            names = sorted(child.name for child in self.path(name).iterdir())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoData(f"{self.path(name)} does not exist") from error
        matches = ((child, re.fullmatch(pattern, child)) for child in names)
        return [(child, match) for child, match in matches if match]
