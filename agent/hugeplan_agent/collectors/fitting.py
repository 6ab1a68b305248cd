"""What a service would refuse, or has no room for, is left out entry by entry: else it refuses the whole report.

What the node's users write (settings, names of cgroups, files and programs) goes into a report. Its schema is as strict
as the service, and a report stays below 2 MiB, a quarter of what a service takes.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Optional

from hugeplan_agent.fragment import Fragment
from hugeplan_agent.schema import Schema

KIB = 1024
SHARES = {
    "units": 512 * KIB,
    "databases": 640 * KIB,
    "processes": 160 * KIB,
    "hugetlb_cgroups": 1280 * KIB,
    "kubelet": 64 * KIB,
}
"""Bytes of JSON of each section that users have a part in, as far as those before it leave room."""
ALL_BYTES = 1856 * KIB
"""Of these sections together. A mapped emoji is 12 bytes, a control character 6."""

MARK_BYTES = 16
"""Together the sections have no more than 123,000 of the 150,000."""

STAYING_PART = 16
"""Of the room: what one owner's entries that stay may take of it before those of others that do not."""

Types = Mapping[str, Schema]
Refusal = Optional[str]


@dataclass
class Room:
    """What is left of a report in this observation."""

    left: int = ALL_BYTES

    def fit(self, name: str, value: Any, schema: Schema, types: Types, found: Fragment) -> tuple[Any, str]:
        """A section as far as a service takes it, None for nothing, and what was left out in words.

        Of a list each entry stands for itself, and whose are the most bytes loses first; ``owners`` and ``stays`` of
        the fragment are in its order.
        """
        if not isinstance(value, list) or "items" not in schema:
            reason = refusal(value, schema, types)
            if reason is None and _size(value) > SHARES.get(name, ALL_BYTES):
                reason = "it is too large"
            return (value, "") if reason is None else (None, f"{name} is left out: {reason}")
        owners = found.owners.get(name, ())
        whose = zip_longest(value, owners if len(owners) == len(value) else (), found.stays.get(name, ()))
        reasons = [refusal(entry, schema["items"], types) for entry in value]
        notes = [f"{len(why)} {name} are left out: {why[0]}" for why in [list(filter(None, reasons))] if why]
        good = [one for one, reason in zip(whose, reasons) if reason is None]
        kept = within(good, min(SHARES[name], self.left)) if name in SHARES else [entry for entry, *_ in good]
        kept = kept[: schema["maxItems"]]
        if name in SHARES:
            self.left -= sum(map(_size, kept))
        if len(kept) < len(good):
            notes.append(f"{len(good) - len(kept)} {name} are left out for want of room: of whom the most is written")
        return kept, "; ".join(notes)


def within(entries: Sequence[tuple[Any, Hashable, bool | None]], room_bytes: int) -> list[Any]:
    """The entries that fit, in their order. Those that stay come first, as far as their owner's are a small part of
    the room; then each owner's come in the order of the bytes that it has used up by then."""
    sizes = [_size(entry) for entry, *_ in entries]
    used: Counter[Hashable] = Counter()
    ranked = []
    for at in sorted(range(len(entries)), key=lambda at: not entries[at][2]):
        _, owner, stays = entries[at]
        used[owner] += sizes[at]
        ranked.append((not stays or used[owner] > room_bytes // STAYING_PART, used[owner], at))
    kept = set()
    for *_, at in sorted(ranked):
        if sizes[at] <= room_bytes:
            room_bytes -= sizes[at]
            kept.add(at)
    return [entry for at, (entry, *_) in enumerate(entries) if at in kept]


def _size(value: Any) -> int:
    """Its bytes; or, where they are more, its commas and opening brackets, of which a service takes a number, too."""
    text = json.dumps(value, separators=(",", ":"))
    return max(len(text) + 1, MARK_BYTES * sum(map(text.count, ",[{")))


def refusal(value: Any, schema: Schema, types: Types, place: str = "") -> Refusal:
    """Why a value is not of a schema, in words; None: it is. Knows the words of JSON Schema that schema.py has."""
    while "$ref" in schema:
        schema = types[schema["$ref"].rpartition("/")[2]]
    if "oneOf" in schema:
        return None if value is None else refusal(value, schema["oneOf"][1], types, place)
    if "enum" in schema:
        return None if value in schema["enum"] else f"{place}: not one of its words"
    kinds = schema["type"]
    if value is None:
        return None if "null" in kinds else f"{place}: null"
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if isinstance(value, _OF_KIND[kind]) and isinstance(value, bool) == (kind == "boolean"):
            check = _CHECKS.get(kind)
            return check(value, schema, types, place) if check else None
    return f"{place}: not a {kinds}"


def _of_text(value: str, schema: Schema, _: Types, place: str) -> Refusal:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return f"{place}: a text of {len(value)} characters, not of {_range(schema, 'Length')}"
    return None if re.search(schema.get("pattern", ""), value) else f"{place}: a text of another form"


def _of_number(value: float, schema: Schema, _: Types, place: str) -> Refusal:
    is_one = schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
    return None if is_one and abs(value) != math.inf else f"{place}: not a number of {_range(schema, 'imum')}"


def _of_list(value: Sequence[Any], schema: Schema, types: Types, place: str) -> Refusal:
    if len(value) > schema.get("maxItems", len(value)):
        return f"{place}: {len(value)} entries, not {_range(schema, 'Items')}"
    return next(filter(None, (refusal(item, schema["items"], types, place) for item in value)), None)


def _of_table(value: Mapping[str, Any], schema: Schema, types: Types, place: str) -> Refusal:
    if len(value) > schema.get("maxProperties", len(value)):
        return f"{place}: {len(value)} entries, not {_range(schema, 'Properties')}"
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return f"{place} {missing[0]}: missing"
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, member in value.items():
        one = known.get(name, others)
        why = refusal(member, one, types, f"{place} {name[:64]}".strip()) if one else None
        if why is not None:
            return why
    return None


def _range(schema: Schema, what: str) -> str:
    return f"{schema.get('min' + what, 0)} to {schema.get('max' + what)}"


_OF_KIND: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": (list, tuple),
    "object": Mapping,
    "null": type(None),
}
_CHECKS: Mapping[str, Callable[[Any, Schema, Types, str], Refusal]] = {
    "string": _of_text,
    "integer": _of_number,
    "number": _of_number,
    "array": _of_list,
    "object": _of_table,
}
