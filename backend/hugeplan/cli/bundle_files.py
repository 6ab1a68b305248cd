"""Folders with the files of a plan: what one has of a bundle, whatever else lies there."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hugeplan.cli import InputError
from hugeplan.cli.files import MIB, led_by, read_there, write_file

if TYPE_CHECKING:
    from hugeplan.artifacts.bundle import BundleFile

#: 256 databases have 271 files of 1.8 MB, the README with a quarter of it.
_MOST_FILES, _MOST_OF_FILE, _MOST_OF_BUNDLE = 4000, 2 * MIB, 16 * MIB
_SHOWN = 3


def write_bundle(files: Sequence[BundleFile], folder: Path, option: str) -> None:
    """Write what differs; a file of an earlier bundle that the plan no longer has is named, not deleted."""
    known = {file.path for file in files}
    try:
        for file in files:
            write_file(folder / file.path, file.text.encode(), 0o755 if file.executable else 0o644)
        for path in _of_bundle(folder, []):
            if "/" in path and path not in known:
                sys.stderr.write(f"hugeplan: {folder / path}: not a file of this plan any more\n")
        if (owner := folder.stat().st_uid) != os.geteuid():
            sys.stderr.write(f"hugeplan: {folder} is of user {owner}: let root run none of its files\n")
    except OSError as error:
        raise InputError(f"{option} {folder}: {error.strerror}") from error


def read_bundle(folder: Path, option: str) -> list[BundleFile]:
    """A bundle that :func:`write_bundle` wrote, and what else has a name of one. InputError for more than one can hold.

    Root reads as it writes. What no bundle has is named on standard error.
    """
    from hugeplan.artifacts.bundle import BundleFile  # noqa: PLC0415

    others: list[str] = []
    found, left = [], _MOST_OF_BUNDLE
    try:
        for path in _of_bundle(folder, others):
            data = read_there(folder / path, most_bytes=min(left, _MOST_OF_FILE))
            if data is None:
                most = f"{_MOST_OF_FILE // MIB} MiB, or {_MOST_OF_BUNDLE // MIB} MiB with the files before it"
                raise InputError(f"{option} {folder / path}: it has more than {most}; no bundle has so much")
            left -= len(data)
            found.append(BundleFile(path, data.decode(errors="replace")))
    except OSError as error:
        raise InputError(f"{option} {folder}: {error.strerror}") from error
    if others:
        shown = ", ".join([*others[:_SHOWN], *(["..."] if len(others) > _SHOWN else [])])
        sys.stderr.write(f"hugeplan: {folder}: not read, as no bundle has such names: {shown}\n")
    return found


def _of_bundle(folder: Path, others: list[str]) -> list[str]:
    """The paths in a folder that a bundle's files can have, whatever lies there. OSError, InputError.

    Root looks as it writes. ``others`` gets the first names that no bundle has.
    """
    from hugeplan.artifacts.bundle import FILE_PATH, FOLDER_PATH  # noqa: PLC0415

    found, places = [], [""]
    for place in places:
        with led_by(folder / place), os.scandir(folder / place) as entries:
            for entry in entries:
                path = f"{place}{entry.name}"
                if FOLDER_PATH.fullmatch(path) and entry.is_dir(follow_symlinks=False):
                    places.append(f"{path}/")
                elif FILE_PATH.fullmatch(path):
                    found.append(path)
                elif len(others) <= _SHOWN:
                    others.append(path)
                if len(found) + len(places) > _MOST_FILES:
                    raise InputError(f"{folder} has more than {_MOST_FILES} names of a bundle's files; no bundle has")
    return sorted(found)


def write_none(folder: Path, node: str, reason: str, option: str) -> None:
    """Where an earlier plan's files lie in the folder of one that has none: the README forbids to install them."""
    from hugeplan.artifacts.bundle import TITLE, readme_of_none  # noqa: PLC0415

    if not folder.is_dir():
        return
    try:
        with led_by(folder):
            readme, left = folder / "README.md", sum("/" in path for path in _of_bundle(folder, []))
            if left and (read_there(readme) or b"").startswith(TITLE.encode()):
                write_file(readme, readme_of_none(node, reason).encode())
                sys.stderr.write(
                    f"hugeplan: {folder}: {left} files of an earlier plan stay for their ways back;"
                    " install none of them\n"
                )
    except OSError as error:
        raise InputError(f"{option} {folder}: {error.strerror}") from error
