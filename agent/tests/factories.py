"""Small makers for tests."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from hugeplan_agent.spool import Bounds, Entry, Spool


def make_report(padding_bytes: int = 0, *, run: bool = False) -> dict[str, Any]:
    """Something of a report's outline, of any size."""
    return {
        "report_id": str(uuid.uuid4()),
        "run": {"schema_version": 1} if run else None,
        "padding": "x" * padding_bytes,
    }


def make_spool(folder: Path, max_bytes: int = 1 << 20, max_age_seconds: float = 3600.0) -> Spool:
    return Spool(folder, Bounds(max_bytes, max_age_seconds))


def waiting_ids(spool: Spool) -> list[str]:
    return [entry.report_id for entry in spool.entries()]


def add(spool: Spool, now_ms: int, padding_bytes: int = 0, *, run: bool = False) -> Entry:
    return spool.add(make_report(padding_bytes, run=run), now_ms)
