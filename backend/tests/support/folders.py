"""Folders that another user may enter, such as the one PostgreSQL runs as when the tests are run by root."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
