"""The part of a report that one collector fills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fragment:
    """Entries for the report's ``inventory`` and ``sample``, and a note when something was left out."""

    inventory: Mapping[str, Any] = field(default_factory=dict)
    sample: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None
