"""The short form of `make chaos`."""

from __future__ import annotations

from pathlib import Path

from tools.chaos import chaos


def test_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    assert chaos(tmp_path, server_kills=2, postgres_kills=2, seed=7) == 0
