"""``hugeplan backup FILE``: the whole database in one file, as pg_dump's custom format. Writes go on meanwhile.

``-`` is standard output: from a container, ``hugeplan backup - > FILE`` writes on the machine outside.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.files import require_not_led
from hugeplan.cli.service_settings import load_settings
from hugeplan.db import replacement
from hugeplan.settings import Settings

OPTIONS: Final = ("--format=custom", "--no-owner")
UNFINISHED: Final = ".hugeplan-backup"
"""How the name of a file ends that is not whole yet. It is locked while its backup runs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``backup``."""
    parser.add_argument("file", type=Path, help="the file to write, which must not be there yet; - is standard output")


def run(arguments: argparse.Namespace) -> int:
    """Write the file, whole or not at all, readable by its owner only: it holds the hashes of all credentials."""
    settings = load_settings()
    target: Path = arguments.file
    if str(target) == "-":
        if sys.stdout.isatty():
            raise InputError("-: a backup is no text for a terminal; write it to a file: hugeplan backup - > FILE")
        _dump(settings, "standard output", output=sys.stdout.buffer)
        return 0
    if target.exists():
        raise InputError(f"{target} is there already; give another name")
    try:
        require_not_led(target.parent)
        _remove_what_kills_left(target.parent)
        with _unfinished(target) as (path, held):
            # As a file: through its standard output pg_dump writes one twice over. Not by its name, where another
            # user's may lie by now.
            # Opened once more: a pg_dump that outlives us holds no lock.
            with Path(f"/proc/self/fd/{held}").open("rb+") as file:
                _dump(settings, str(target), f"--file=/proc/self/fd/{file.fileno()}", held=file.fileno())
            path.rename(target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}") from error
    print(f"{target}: {target.stat().st_size} bytes")
    return 0


def _dump(
    settings: Settings, name: str, *options: str, output: IO[bytes] | None = None, held: int | None = None
) -> None:
    with postgres_programs.connect(settings) as connection:
        if (why := replacement.why_no_backup(connection)) is not None:
            raise InputError(f"HUGEPLAN_DATABASE_URL: nothing was written: {why}")
    try:
        postgres_programs.run(settings, "pg_dump", *OPTIONS, *options, output=output, held=held)
    except InputError as error:
        full = next((number for number in (errno.ENOSPC, errno.EDQUOT) if os.strerror(number) in str(error)), None)
        if full is None or "output file" not in str(error):  # the database's disk may be full, too
            raise
        raise InputError(
            f"{name} cannot be written whole: {os.strerror(full)}; make room, or write to another disk, then run"
            " hugeplan backup again"
        ) from OSError(full, os.strerror(full))


@contextlib.contextmanager
def _unfinished(target: Path) -> Iterator[tuple[Path, int]]:
    """A new file beside the target and its descriptor, locked, and removed unless it became the target."""
    path = target.with_name(f".{target.name}.{os.getpid()}{UNFINISHED}")
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # another backup removed it before it was locked
    try:
        yield path, descriptor
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_what_kills_left(folder: Path) -> None:
    """Remove the files of backups that were killed: nobody holds their lock. What is no file is nobody's backup."""
    for path in folder.glob(f".*{UNFINISHED}"):
        with contextlib.suppress(OSError), os.fdopen(os.open(path, os.O_NONBLOCK | os.O_NOFOLLOW)) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
