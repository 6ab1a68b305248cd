"""``hugeplan backup FILE``: the whole database in one file, as pg_dump's custom format. Writes go on meanwhile.

``-`` is standard output: from a container, ``hugeplan backup - > FILE`` writes on the machine outside.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings

OPTIONS: Final = ("--format=custom", "--no-owner")


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
        postgres_programs.run(settings, "pg_dump", *OPTIONS, output=sys.stdout.buffer)
        return 0
    if target.exists():
        raise InputError(f"{target} is there already; give another name")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    before = os.umask(0o077)
    try:
        postgres_programs.run(settings, "pg_dump", *OPTIONS, f"--file={unfinished}")
        unfinished.rename(target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}") from error
    finally:
        os.umask(before)
        unfinished.unlink(missing_ok=True)
    print(f"{target}: {target.stat().st_size} bytes")
    return 0
