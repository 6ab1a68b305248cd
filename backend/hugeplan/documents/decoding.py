"""Reading a document in one pass: the pydantic model that says what is right, compiled for msgspec.

``decode`` gives an object with the model's attributes (a msgspec struct, not an instance of the model). Whatever it
accepts the model accepts too, with the same values; what it does not accept is for the model to judge, which names
every wrong field and knows a few spellings more (a number as text). The tests compare the two.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import msgspec
from pydantic import AfterValidator, AwareDatetime, BaseModel, StringConstraints
from pydantic.fields import FieldInfo

T = TypeVar("T", bound=BaseModel)

_INT64_MAX = 2**63 - 1
_NOT_READ = (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(model: type[T], raw: bytes) -> T:
    """The document in ``raw``. pydantic's ValidationError when the model refuses it."""
    try:
        return cast(T, _decoder(model).decode(raw))
    except _NOT_READ:
        read = model.model_validate_json(raw)
        return cast(T, msgspec.convert(read.model_dump(), struct_of(model)))


def convert(model: type[T], content: Any) -> T:
    """The same for a document that was parsed before, or is kept as JSON in the database."""
    try:
        return cast(T, msgspec.convert(content, struct_of(model)))
    except _NOT_READ:
        read = model.model_validate(content)
        return cast(T, msgspec.convert(read.model_dump(), struct_of(model)))


def changed(document: T, **changes: Any) -> T:
    """A copy of a decoded document, or of a part of one, with some fields replaced."""
    return cast(T, msgspec.structs.replace(cast(Any, document), **changes))


def read_parsed(model: type[T], raw: bytes, content: Any) -> T:
    """``decode`` for a document that was parsed already: ``content`` is what ``raw`` spells."""
    try:
        return cast(T, msgspec.convert(content, struct_of(model)))
    except _NOT_READ:
        return decode(model, raw)


@cache
def _decoder(model: type[BaseModel]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct_of(model))


@cache
def struct_of(model: type[BaseModel]) -> type[msgspec.Struct]:
    """The struct with the fields, bounds and checks of a model."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    checks: list[Callable[[Any], None]] = []
    for name, info in model.model_fields.items():
        compiled, check = _compile(info.annotation, [info])
        if check is not None:
            checks.append(_on_field(name, check))
        fields.append((name, compiled) if info.is_required() else (name, compiled, info.default))
    for decorator in model.__pydantic_decorators__.model_validators.values():
        checks.append(getattr(model, decorator.cls_var_name))
    return msgspec.defstruct(
        model.__name__,
        fields,
        kw_only=True,
        # A document refers to nothing that refers to it, so the collector of cycles need not look at it.
        gc=False,
        # Whoever reads a document again, as after a deadlock, finds in it what came.
        frozen=True,
        namespace={"__post_init__": _all_of(checks)} if checks else None,
    )


def _all_of(checks: list[Callable[[Any], None]]) -> Callable[[Any], None]:
    def check(struct: Any) -> None:
        for one in checks:
            one(struct)

    return check


def _on_field(name: str, check: Callable[[Any], Any]) -> Callable[[Any], None]:
    def on(struct: Any) -> None:
        value = getattr(struct, name)
        if value is not None:
            check(value)

    return on


def _compile(annotation: Any, metadata: list[Any]) -> tuple[Any, Callable[[Any], Any] | None]:
    """The msgspec type of an annotation with its bounds, and the check of a value that msgspec cannot express."""
    if get_origin(annotation) is Annotated:
        inner, *own = get_args(annotation)
        return _compile(inner, [*own, *metadata])
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_compile(part, []) for part in get_args(annotation)]
        outer = _bounds(metadata)
        kinds = [
            Annotated[kind, msgspec.Meta(**outer)] if outer and kind is not type(None) else kind for kind, _ in parts
        ]
        checks = [check for _, check in parts if check is not None]
        return Union[tuple(kinds)], checks[0] if checks else None  # noqa: UP007 - made from a list
    kind, check = _plain(annotation)
    bounds = _bounds(metadata)
    if kind is float:
        bounds = {name: float(bound) if isinstance(bound, int) else bound for name, bound in bounds.items()}
    if kind is int and bounds.get("le", 0) > _INT64_MAX:
        check = _at_most(bounds.pop("le"))
    if annotation is AwareDatetime:
        bounds["tz"] = True
    for one in _all_metadata(metadata):
        if isinstance(one, AfterValidator):
            check = cast(Callable[[Any], Any], one.func)
    return (Annotated[kind, msgspec.Meta(**bounds)] if bounds else kind), check


def _plain(annotation: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    origin = get_origin(annotation)
    if origin is list:
        return list[_compile(get_args(annotation)[0], [])[0]], None  # type: ignore[misc]
    if origin is dict:
        key, value = (_compile(part, [])[0] for part in get_args(annotation))
        return dict[key, value], None  # type: ignore[valid-type]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return struct_of(annotation), None
    if annotation is AwareDatetime:
        return datetime, None
    return annotation, None


def _at_most(limit: int) -> Callable[[Any], None]:
    def check(value: int) -> None:
        if value > limit:
            raise ValueError(f"at most {limit}")

    return check


def _all_metadata(metadata: list[Any]) -> list[Any]:
    found: list[Any] = []
    for one in metadata:
        found += one.metadata if isinstance(one, FieldInfo) else [one]
    return found


def _bounds(metadata: list[Any]) -> dict[str, Any]:
    """The arguments of msgspec.Meta in pydantic's metadata."""
    bounds: dict[str, Any] = {}
    for one in _all_metadata(metadata):
        for name in ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern"):
            value = getattr(one, name, None)
            if value is not None:
                bounds[name] = value
        if isinstance(one, StringConstraints) and (one.strip_whitespace or one.to_lower or one.to_upper):
            raise TypeError("a constraint that changes the text cannot be compiled")
    if isinstance(bounds.get("pattern"), str):
        # Python's $ also matches before a last newline, pydantic's does not.
        bounds["pattern"] = bounds["pattern"].removesuffix("$") + r"\Z"
    return bounds
