"""The request body as it came, beside its checked document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from hugeplan.api.json_guard import require_body


@dataclass(frozen=True, slots=True)
class JsonBody:
    """The bytes of a body and the document they spell; the guard has checked its limits."""

    raw: bytes
    document: Any


def get_raw_json(request: Request) -> JsonBody:
    """The body of this request; InvalidInputError when there is none."""
    raw: bytes = request.state.json_body
    require_body(raw)
    return JsonBody(raw=raw, document=request.state.json_document)


RawJson = Annotated[JsonBody, Depends(get_raw_json)]
