"""A collector and the part of a report that it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hugeplan_agent.host import Host
from hugeplan_agent.schema import Schema


@dataclass(frozen=True)
class Fragment:
    """Entries for the report's ``inventory`` and ``sample``, and a note when something was left out."""

    inventory: Mapping[str, Any] = field(default_factory=dict)
    sample: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None


@dataclass(frozen=True)
class Collector:
    """What reads the machine, and the JSON Schema of each entry that it may fill: the published schema is made of them.

    ``definitions`` are types that several places refer to by name (``schema.ref``).
    """

    collect: Callable[[Host], Fragment]
    inventory: Mapping[str, Schema] = field(default_factory=dict)
    sample: Mapping[str, Schema] = field(default_factory=dict)
    definitions: Mapping[str, Schema] = field(default_factory=dict)
