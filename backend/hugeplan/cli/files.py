"""Reading files that a user names: every failure is one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hugeplan.cli import InputError

if TYPE_CHECKING:
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


def read_document(path: str) -> TlbbenchDocument:
    """A tlbbench document of schema_version 1 on disk."""
    # Its models take a quarter of a second to build, and most commands read none.
    from pydantic import ValidationError  # noqa: PLC0415

    from hugeplan.documents.tlbbench import TlbbenchDocument  # noqa: PLC0415

    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not a tlbbench document: {error.msg}") from error
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
