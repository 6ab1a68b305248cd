"""Folders that another user may enter, such as the one PostgreSQL runs as when the tests are run by root."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """A folder of its own below /tmp, removed with the block.

    Not below pytest's folder: whoever opens that to others finds it closed again as soon as another pytest starts, and
    a PostgreSQL that began with it open ends at its next checkpoint.
    """
    with tempfile.TemporaryDirectory(prefix="hp-test-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o711)
        yield folder


@contextmanager
def starts_of_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """User, working folder and ways to programs and libraries of each Python that begins meanwhile."""
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\necho "$(id -u) $(pwd) $PATH $LD_LIBRARY_PATH" >> {folder}/starts\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        yield lambda: (folder / "starts").read_text().splitlines()
