"""The tutorials show what their commands print, and link to pages that explain the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tutorials import PAGES, replayed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_has_a_picture_that_is_there(page: Path) -> None:
    pictures = re.findall(r"!\[[^]]{20,}\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    assert pictures
    assert all((page.parent / name).is_file() for name in pictures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_its_commands_print(page: Path) -> None:
    now = replayed(page)
    assert "$ hugeplan" in now
    assert now == page.read_text(encoding="utf-8"), "run: .venv/bin/python deploy/docs/tutorials.py"
