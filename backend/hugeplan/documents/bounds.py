"""Bounded types of documents, requests and responses.

The bounds keep absurd numbers out: they are far above any machine, and below what PostgreSQL's
``bigint`` and JavaScript-free clients can hold, so that a value which passes here never fails later.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

MAX_BYTES = 2**60
"""1 EiB: no node has more memory; leaves room for sums within a signed 64-bit integer."""

MAX_PAGES = 2**50
"""Pages of any size: 2**50 base pages of 4 KiB are 4 EiB."""


MAX_OFFSET = timedelta(hours=15, minutes=59)


def refuse_absurd_time(value: datetime) -> datetime:
    """``value``, or ValueError for a year that no clock of a working machine shows, or an offset that no place has.

    PostgreSQL refuses offsets from 16 hours on.
    """
    if not 2000 <= value.year <= 2199:
        raise ValueError("a time between the years 2000 and 2199")
    if abs(value.utcoffset() or timedelta()) > MAX_OFFSET:
        raise ValueError("a time with an offset of at most 15:59")
    return value


def refuse_unprintable(value: str) -> str:
    """``value``, or ValueError where it would not be shown on one line, as it is."""
    if not value.isprintable():
        raise ValueError("one line of printable characters")
    return value


ByteCount = Annotated[int, Field(ge=0, le=MAX_BYTES)]
PageCount = Annotated[int, Field(ge=0, le=MAX_PAGES)]
PageBytes = Annotated[int, Field(ge=1, le=2**44, description="A page size in bytes")]
SmallCount = Annotated[int, Field(ge=0, le=2**31 - 1)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Nanoseconds = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
FiniteFloat = Annotated[float, Field(ge=-1e300, le=1e300, allow_inf_nan=False)]
NameOfAny = Annotated[str, StringConstraints(min_length=1, max_length=253)]
"""As an agent says it; it is stored ``printable``."""
Name = Annotated[NameOfAny, AfterValidator(refuse_unprintable)]
Word = Annotated[str, StringConstraints(max_length=64)]
Label = Annotated[str, StringConstraints(max_length=256)]
MAX_LABELS_BYTES = 4096


def _refuse_long(labels: dict[str, str]) -> dict[str, str]:
    """Whoever chooses nodes by a label reads all labels of the fleet."""
    if sum(len(word.encode()) for label in labels.items() for word in label) > MAX_LABELS_BYTES:
        raise ValueError(f"labels of at most {MAX_LABELS_BYTES} bytes in all")
    return labels


Labels = Annotated[dict[Word, Label], Field(max_length=64), AfterValidator(_refuse_long)]
Text = Annotated[str, StringConstraints(max_length=4096)]
MachineId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{3,127}$")]
Moment = Annotated[AwareDatetime, AfterValidator(refuse_absurd_time)]
JsonObject = dict[str, Any]
T = TypeVar("T")


@cache
def adapter(kind: type[T]) -> TypeAdapter[T]:
    """What validates and dumps a type: one for all, built when it is first used."""
    return TypeAdapter(kind)


class DocumentModel(BaseModel):
    """Part of an agent's document: read leniently (extra fields are kept in the raw document only),
    answered completely (an absent field becomes null, which means unknown).
    """

    model_config = ConfigDict(defer_build=True, extra="ignore", json_schema_serialization_defaults_required=True)
