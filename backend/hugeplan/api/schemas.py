"""Bases of request and response models. The bounded types are those of the documents (hugeplan.documents.bounds)."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from hugeplan.documents.bounds import (
    MAX_BYTES,
    MAX_PAGES,
    ByteCount,
    DocumentModel,
    FiniteFloat,
    JsonObject,
    Label,
    Labels,
    MachineId,
    Moment,
    Name,
    Nanoseconds,
    PageBytes,
    PageCount,
    Seconds,
    SmallCount,
    Text,
    Word,
)
from hugeplan.errors import MOST_ERRORS, from_validation

__all__ = [
    "MAX_BYTES",
    "MAX_PAGES",
    "ByteCount",
    "DocumentModel",
    "FiniteFloat",
    "JsonObject",
    "Label",
    "Labels",
    "MachineId",
    "Moment",
    "Name",
    "Nanoseconds",
    "PageBytes",
    "PageCount",
    "RequestModel",
    "ResponseModel",
    "Seconds",
    "SmallCount",
    "Text",
    "Word",
    "fields_of",
]


PathNumber = Annotated[int, Path(ge=0, le=10**9)]
"""A number in an address; PostgreSQL has no larger ones to compare with."""


class RequestModel(BaseModel):
    """What a client sends: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _few_errors(cls, value: object, check: ModelWrapValidatorHandler[Self]) -> Self:
        """InvalidInputError for more errors than are looked at: FastAPI would make two objects of each."""
        try:
            return check(value)
        except ValidationError as error:
            if error.error_count() > MOST_ERRORS:
                raise from_validation(error) from None
            raise


class ResponseModel(BaseModel):
    """What the service answers: every field is present, so clients need no defaults."""

    model_config = ConfigDict(defer_build=True, extra="forbid", from_attributes=True)


def fields_of(model: type[BaseModel], row: Any, *others: str) -> dict[str, Any]:
    """The fields of a model that a row has under the same names: all but ``others``."""
    return {name: getattr(row, name) for name in model.model_fields if name not in others}
