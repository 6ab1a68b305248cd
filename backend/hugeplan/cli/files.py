"""Reading and writing files that a user names: every failure is one line."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hugeplan.cli import InputError
from hugeplan.unprivileged import require_own

if TYPE_CHECKING:
    from hugeplan.artifacts.bundle import BundleFile
    from hugeplan.documents.tlbbench import TlbbenchDocument
    from hugeplan.planner.model import HardwareFacts


def read_bytes(path: str) -> bytes:
    """A file's bytes, standard input's for ``-``. InputError when there is none.

    Large input is read as well, never mapped: a file that another process truncates ends the reader of a mapping with
    SIGBUS. 200 MB are read in 0.13 s.
    """
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def decode_text(data: bytes, path: str) -> str:
    """UTF-8 text with its line ends as the platform's text files have them; ``path`` is for the message."""
    try:
        return str(data, "utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8 text") from error


def read_text(path: str) -> str:
    """A file's text, standard input's for ``-``. InputError when there is none, or none in UTF-8."""
    return decode_text(read_bytes(path), path)


def read_json(path: str, what: str) -> Any:
    """What a file of JSON holds. InputError, in one line, where it is none."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not {what}: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or nesting without end
        raise InputError(f"{path}: not {what}: {str(error).partition(':')[0]}") from error


def read_document(path: str) -> TlbbenchDocument:
    """A tlbbench document of schema_version 1 on disk."""
    # Its models take a quarter of a second to build, and most commands read none.
    from pydantic import ValidationError  # noqa: PLC0415

    from hugeplan.documents.tlbbench import TlbbenchDocument  # noqa: PLC0415

    content = read_json(path, "a tlbbench document")
    if not isinstance(content, dict) or content.get("schema_version") != 1:
        raise InputError(f"{path}: not a tlbbench document with schema_version 1")
    try:
        return TlbbenchDocument.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the document"
        raise InputError(
            f"{path}: a tlbbench document with a wrong or missing field: {field}: {first['msg']}"
        ) from error


def read_run(path: str) -> HardwareFacts:
    """Hardware facts from a tlbbench document on disk."""
    from hugeplan.hardware.curves import hardware_facts_of  # noqa: PLC0415 - imports the document's models

    return hardware_facts_of(read_document(path))


def to_write(path: Path) -> Path:
    """A path in a folder that a user named. InputError where something else lies there (a FIFO waits for who reads it,
    and where a link leads is for whoever may write to the folder to say), or nobody may look."""
    try:
        is_other = path.is_symlink() or (path.exists() and not path.is_file())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if is_other:
        raise InputError(f"{path} is not a regular file; remove it, or give another folder")
    return path


def make_folder(folder: Path) -> None:
    """A folder and what is missing above it. Root judges each where everybody may make names (/tmp). InputError."""
    there = (above for above in folder.resolve().parents if above.exists())
    if os.geteuid() != 0 or not any(above.stat().st_mode & stat.S_IWOTH for above in there):
        folder.mkdir(parents=True, exist_ok=True)
        return
    try:
        require_own(folder, "Name another folder.", make=True)
    except PermissionError as error:
        raise InputError(str(error)) from error


def write_bundle(files: Sequence[BundleFile], folder: Path, option: str) -> None:
    """Write what differs; a file of an earlier bundle that the plan no longer has is named, not deleted."""
    known = {folder / file.path for file in files}
    try:
        for file in files:
            path = to_write(folder / file.path)
            make_folder(path.parent)
            if not path.exists() or path.read_bytes() != file.text.encode():
                path.write_bytes(file.text.encode())
            path.chmod(0o755 if file.executable else 0o644)
        for path in _of_steps(folder):
            if path not in known:
                sys.stderr.write(f"hugeplan: {path}: not a file of this plan any more\n")
    except OSError as error:
        raise InputError(f"{option} {folder}: {error.strerror}") from error


def write_none(folder: Path, node: str, reason: str, option: str) -> None:
    """Where an earlier plan's files lie in the folder of one that has none: the README forbids to install them."""
    from hugeplan.artifacts.bundle import TITLE, readme_of_none  # noqa: PLC0415

    try:
        readme, left = folder / "README.md", len(_of_steps(folder))
        if left and readme.is_file() and to_write(readme).read_bytes().startswith(TITLE.encode()):
            readme.write_bytes(readme_of_none(node, reason).encode())
            sys.stderr.write(
                f"hugeplan: {folder}: {left} files of an earlier plan stay for their ways back; install none of them\n"
            )
    except OSError as error:
        raise InputError(f"{option} {folder}: {error.strerror}") from error


def _of_steps(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*"))
    return [p for p in found if re.match(r"alternatives/|\d+-", p.relative_to(folder).as_posix()) and p.is_file()]
