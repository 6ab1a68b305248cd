"""Saved plans of other versions of hugeplan, read by this one.

A plan is kept as it was computed and never changed; what is needed to show it is done on each read. A field that a
later version added is unknown in an older plan (null); one that a later version took away is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, cast

import msgspec
from pydantic import ValidationError

from hugeplan.documents.bounds import JsonObject, adapter
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import Plan
from hugeplan.planner.units import format_bytes

SCHEMA_VERSION: Final = 2
MAX_BYTES: Final = 9 * 1024**2 // 2
"""A plan of 200 databases is 3.3 MiB, and its files 1 MiB; names of hundreds of characters stand in every part."""


def require_small(plan: bytes, most_bytes: int = MAX_BYTES) -> bytes:
    """A plan that the service answers or keeps, as JSON or compressed. PlannerError where it has more bytes."""
    if len(plan) > most_bytes:
        most = f"a plan of at most {format_bytes(most_bytes)}{'' if most_bytes >= MAX_BYTES else ' when compressed'}"
        expected = f"{most}: fewer NUMA nodes, workloads or databases, or shorter names"
        raise PlannerError("scenario", f"{len(plan)} bytes", expected)
    return plan


def _points_are_scores(document: JsonObject) -> JsonObject:
    """Version 1 named the parts of a candidate's score points."""
    instances: Any = document.get("instances")
    for instance in instances if isinstance(instances, list) else ():
        _rename(instance, "why_besides_points", "why_besides_score")
        for name in ("chosen", "runner_up") if isinstance(instance, dict) else ():
            for part in ("gain", "memory", "operation"):
                _rename(instance.get(name), f"{part}_points", f"{part}_score")
    return document


def _rename(holder: Any, old: str, new: str) -> None:
    """Rename a key where there is one. What is no object is refused when the plan is validated, with its place."""
    if isinstance(holder, dict) and old in holder:
        holder[new] = holder.pop(old)


UPGRADES: Final[Mapping[int, Callable[[JsonObject], JsonObject]]] = {1: _points_are_scores}
"""By version: what makes the next version's form of a plan, where a meaning changes. New or lost fields need none."""

_MAX_ROUNDS: Final = 20
_MISSING: Final = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
_EXTRA: Final = frozenset({"unexpected_keyword_argument", "extra_forbidden"})


def dump_plan(plan: Plan) -> JsonObject:
    """A plan as it is kept, in the form of SCHEMA_VERSION."""
    found: JsonObject = adapter(Plan).dump_python(plan, mode="json")
    return found


def read_plan(kept: JsonObject, version: int) -> Plan:
    """A kept plan. ValueError when this version cannot show it: it is of a newer one, or a field cannot be unknown."""
    if version > SCHEMA_VERSION:
        raise ValueError(f"the plan has the form {version}, this version of hugeplan reads up to {SCHEMA_VERSION}")
    document = kept if "fits" in kept else {**kept, "fits": kept_fit(kept)}
    for step in range(version, SCHEMA_VERSION):
        document = UPGRADES[step](copy.deepcopy(document))
    # A plan of this version; another one is mended below, which takes three times as long.
    with suppress(msgspec.ValidationError):
        return msgspec.convert(document, Plan)
    for _ in range(_MAX_ROUNDS):
        try:
            found: Plan = adapter(Plan).validate_python(document)
            return found
        except ValidationError as error:
            document = copy.deepcopy(document) if document is kept else document
            if not _mend(document, error):
                raise
    raise ValueError("the plan has too many fields of another version")


_NOT_VERIFIED: Final = {"ledger": {"mem_total_bytes": 0, "parts": []}, "gains": [], "findings": []}
"""Nine tenths of a large plan, which no verification looks at, with what stands in its place."""


def parts_to_verify(text: str) -> tuple[JsonObject, int]:
    """What verifying needs of a kept plan's JSON, for read_plan, and about how many bytes that has."""
    parts = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    used = {name: part for name, part in parts.items() if name not in _NOT_VERIFIED}
    size = 1024 + sum(len(bytes(part)) for part in used.values())
    document = {name: msgspec.json.decode(part) for name, part in used.items()} | _NOT_VERIFIED
    return document, size


def kept_fit(kept: Mapping[str, Any]) -> bool | None:
    """What a kept plan says of whether it fits; one of an older version says it by its findings."""
    if "fits" in kept:
        return cast("bool | None", kept["fits"])
    feasible = bool(kept.get("feasible", True))
    doubt = any(f.get("code") == "memory_fit" and f.get("state") == "unknown" for f in kept.get("findings") or ())
    return None if feasible and doubt else feasible


def _mend(document: JsonObject, error: ValidationError) -> bool:
    """Add what is missing as unknown and drop what is not known any more. False when something else is wrong."""
    for found in error.errors(include_url=False, include_context=False, include_input=False):
        *path, last = found["loc"]
        holder: Any = document
        for part in path:
            # A union's location names its member, which is no key of the document.
            leads_on = (
                isinstance(part, int) if isinstance(holder, list) else isinstance(holder, dict) and part in holder
            )
            if leads_on:
                holder = cast("Any", holder)[part]
        if not isinstance(holder, dict):
            return False
        if found["type"] in _MISSING and last not in holder:
            holder[last] = None
        elif found["type"] in _EXTRA:
            holder.pop(last, None)
        else:
            return False
    return True
