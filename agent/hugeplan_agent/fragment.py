"""A collector and the part of a report that it fills."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hugeplan_agent.host import Host
from hugeplan_agent.schema import Schema


@dataclass(frozen=True)
class Fragment:
    """Entries for the report's ``inventory`` and ``sample``, and a note when something was left out.

    ``owners`` says of a list whose each of its entries is, where accounts share the room for it, and ``stays`` which of
    them are left out last.
    """

    inventory: Mapping[str, Any] = field(default_factory=dict)
    sample: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None
    owners: Mapping[str, Sequence[Hashable]] = field(default_factory=dict)
    stays: Mapping[str, Sequence[bool]] = field(default_factory=dict)


@dataclass(frozen=True)
class Collector:
    """What reads the machine, and the JSON Schema of each entry that it may fill: the published schema is made of them.

    ``definitions`` are types that several places refer to by name (``schema.ref``).
    """

    collect: Callable[[Host], Fragment]
    inventory: Mapping[str, Schema] = field(default_factory=dict)
    sample: Mapping[str, Schema] = field(default_factory=dict)
    definitions: Mapping[str, Schema] = field(default_factory=dict)
