"""What the sandbox does with kept plans: plan them again with a newer sample. It needs no database."""

from __future__ import annotations

import pickle
from typing import Final

import msgspec
from pydantic import ValidationError

from hugeplan.documents.bounds import adapter
from hugeplan.documents.plans import read_plan
from hugeplan.planner.model import PlanRequest
from hugeplan.plans.assumptions import Changed, changed
from hugeplan.scenarios.work import prepare

__all__ = ["CHANGES", "changes", "prepare"]

CHANGES: Final = f"{__name__}:changes"


def changes(payload: bytes) -> bytes:
    """What a newer sample changes of a kept plan, as JSON. Nothing for a plan of another version of hugeplan."""
    request, plan, schema_version, facts, sample = pickle.loads(payload)  # noqa: S301 - the service wrote it
    found: tuple[Changed, ...] = ()
    try:
        kept, decided = adapter(PlanRequest).validate_python(request), read_plan(plan, schema_version)
    except (ValidationError, ValueError):
        return msgspec.json.encode(found)
    return msgspec.json.encode(changed(kept, decided, facts, sample))
