"""Answers that are models already."""

from __future__ import annotations

from fastapi import Response

from hugeplan.api.schemas import ResponseModel


def json_response(found: ResponseModel) -> Response:
    """A model as the answer. Returned by itself, FastAPI would check it again field by field: most of a list's time.

    The route still names the model as its ``response_model``, for the description of the API.
    """
    return Response(found.model_dump_json(), media_type="application/json")
