"""Reading what ``hugeplan plan --json`` or the service wrote: a plan, and where it is there the request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hugeplan.artifacts import Artifact
from hugeplan.cli import InputError
from hugeplan.cli.files import read_text
from hugeplan.documents import plans
from hugeplan.planner.model import Plan, PlanRequest


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan on disk. ``request`` is None in documents of the service; ``artifacts`` are the files stored in it."""

    plan: Plan
    request: PlanRequest | None
    artifacts: tuple[Artifact, ...]


def read_plan(path: str) -> PlanDocument:
    """The document at ``path``, ``-`` for standard input. InputError, in one line, for anything else."""
    try:
        document = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    if not isinstance(document, dict) or not isinstance(document.get("plan"), dict):
        raise InputError(f"{path}: not a plan; write one with hugeplan plan ... --json > plan.json")
    try:
        return PlanDocument(
            plan=plans.read_plan(document["plan"], document.get("schema_version", 1)),
            request=None
            if document.get("request") is None
            else _adapter(PlanRequest).validate_python(document["request"]),
            artifacts=tuple(_adapter(Artifact).validate_python(item) for item in document.get("artifacts") or ()),
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: not a plan of this version: {field}: {first['msg']}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: not a plan of this version: {error}") from error


@lru_cache(maxsize=4)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
