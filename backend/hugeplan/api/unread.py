"""Bodies that the sandbox parses and checks: the service passes their bytes on.

A route declares such a body with ``unread(Model)``, so that the OpenAPI document has its model. Its handler gets an
Unread, and the sandbox's job calls ``read``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from hugeplan.api.json_body import JsonLimits, parse_json
from hugeplan.errors import from_validation

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Unread(Generic[M]):
    """The bytes of a body, uncompressed, and the limits of its JSON. It can be pickled."""

    raw: bytes
    limits: JsonLimits

    def read(self, model: type[M]) -> M:
        """The body as its model. InvalidInputError names the field that is wrong."""
        document = parse_json(self.raw, self.limits)
        try:
            return model.model_validate(document)
        except ValidationError as error:
            raise from_validation(error) from error

    def glance(self, name: str, kind: TypeAdapter[Any]) -> Any:
        """One member, found without building the others; None where it is absent or wrong, which ``read`` refuses."""
        only = msgspec.defstruct("Only", [(name, msgspec.Raw, msgspec.Raw(b"null"))])
        try:
            return kind.validate_json(bytes(getattr(msgspec.json.decode(self.raw, type=only), name)))
        except (msgspec.DecodeError, UnicodeDecodeError, ValidationError, RecursionError):
            return None


class _IsUnread:
    """Marks the type of a body that is not parsed."""


def unread(model: type[M]) -> Any:
    """The annotation of a body of this model that is not parsed."""

    def as_it_came(value: object, check: ValidatorFunctionWrapHandler) -> object:
        return value if isinstance(value, Unread) else check(value)

    return Annotated[model, WrapValidator(as_it_came), _IsUnread()]


def is_unread(metadata: list[Any]) -> bool:
    """Whether a body's annotation is one of ``unread``."""
    return any(isinstance(one, _IsUnread) for one in metadata)
