"""Field types of the scenario document: quantities as people write them, kept as whole numbers.

Memory takes IEC sizes (``64GiB``) and Kubernetes' binary ones (``512Mi``), since people copy from both; they never
mean different things. Kubernetes' decimal sizes (``8G`` = 8 x 10^9) are taken only where the kubelet or a pod spec
is described. ``GB`` is refused outside engine settings, because it means two things.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from hugeplan.planner.errors import UnitError
from hugeplan.planner.units import parse_fraction, parse_iec_bytes, parse_kubernetes_bytes, parse_page_size

MEMORY_EXPECTED = "a size such as 64GiB, 512MiB, 512Mi or a whole number of bytes"
QUANTITY_EXPECTED = "a size such as 512Mi, 2Gi, 8GiB or a whole number of bytes"

_BINARY_KUBERNETES = re.compile(r"[KMGTPE]i\s*$")
_IEC = re.compile(r"iB\s*$")


#: Bare numbers from 1 up to this are no size that anybody means: 6 is 6 GiB without its unit.
_BARE_MAX = 1023


def _refuse_bare(value: Any, expected: str) -> None:
    """Refuse a small number without a unit, naming what was perhaps meant."""
    raw = str(value).strip()
    if not isinstance(value, bool) and len(raw) <= 4 and raw.isdecimal() and 0 < int(raw) <= _BARE_MAX:
        raise UnitError("size", value, f"{expected}; did you mean {int(raw)}GiB?")


def parse_memory(value: Any) -> int:
    """Bytes of an IEC or binary Kubernetes size; the loader puts the field's name into the error."""
    _refuse_bare(value, MEMORY_EXPECTED)
    if type(value) is int and value >= 0:  # most of them by far: a history has thousands
        return value
    if isinstance(value, str) and _BINARY_KUBERNETES.search(value):
        return parse_kubernetes_bytes(value, "size")
    try:
        return parse_iec_bytes(value, "size")
    except UnitError as error:
        raise UnitError("size", value, MEMORY_EXPECTED) from error


def parse_quantity(value: Any) -> int:
    """Bytes of a Kubernetes quantity (``512Mi``, decimal ``8G``) or an IEC size."""
    if type(value) is int and value >= 0:  # most of them by far: a history has thousands
        return value
    if isinstance(value, str):
        _refuse_bare(value, QUANTITY_EXPECTED)
        if _IEC.search(value):
            return parse_iec_bytes(value, "size")
    try:
        return parse_kubernetes_bytes(value, "size")
    except UnitError as error:
        raise UnitError("size", value, QUANTITY_EXPECTED) from error


def _parse_page(value: Any) -> int:
    return parse_page_size(value, "page_size")


def parse_page_choice(value: Any) -> int | None:
    """None for auto, 0 for none, else bytes of the page size."""
    if value is None or value == "auto":
        return None
    if value == "none" or (value == 0 and not isinstance(value, bool)):
        return 0
    try:
        return parse_page_size(value, "page_size")
    except UnitError as error:
        raise UnitError("page_size", value, "auto, none, or a page size such as 2MiB or 1GiB") from error


def _parse_share(value: Any) -> float:
    return parse_fraction(value, "share")


def _verbatim(value: Any) -> Any:
    """Text as an engine would read it: numbers and booleans of JSON become what a configuration file says."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


def _size_schema(description: str, pattern: str) -> dict[str, Any]:
    return {
        "description": description,
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": pattern}],
    }


_NUMBER = r"^\s*[0-9]+(\.[0-9]+)?([eE][0-9]+)?\s*"
_BYTES = Field(ge=0, le=2**62)

Memory = Annotated[
    int,
    _BYTES,
    BeforeValidator(parse_memory),
    WithJsonSchema(_size_schema(MEMORY_EXPECTED, _NUMBER + r"(B|[KMGTP]iB|[KMGTPE]i)?\s*$"), mode="validation"),
]
"""Bytes, written 64GiB or 512Mi."""

KubernetesQuantity = Annotated[
    int,
    _BYTES,
    BeforeValidator(parse_quantity),
    WithJsonSchema(_size_schema(QUANTITY_EXPECTED, _NUMBER + r"([KMGTP]iB|[KMGTPE]i?|k)?\s*$"), mode="validation"),
]
"""Bytes, written as Kubernetes takes them."""

_PAGE_PATTERN = _NUMBER + r"([kKmMgG]([iI]?[bB])?)?\s*$"

PageSize = Annotated[
    int,
    Field(ge=1024, le=2**40),
    BeforeValidator(_parse_page),
    WithJsonSchema(_size_schema("a page size such as 4KiB, 2MiB or 1GiB", _PAGE_PATTERN), mode="validation"),
]
"""Bytes of one page, a power of two."""

PageChoice = Annotated[
    int | None,
    BeforeValidator(parse_page_choice),
    WithJsonSchema(
        {
            "description": "auto lets the planner choose, none forbids huge pages, else the page size to use",
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^(auto|none)$|" + _PAGE_PATTERN},
                {"type": "null"},
            ],
        },
        mode="validation",
    ),
]
"""None: the planner chooses; 0: no huge pages; else bytes of one page."""

Share = Annotated[
    float,
    Field(ge=0, le=1),
    BeforeValidator(_parse_share),
    WithJsonSchema(
        {
            "description": "a share such as 1% or 0.01",
            "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": r"^[0-9.]+\s*%?$"}],
        },
        mode="validation",
    ),
]
"""A fraction from 0 to 1, written 1% or 0.01."""

Verbatim = Annotated[
    str,
    Field(max_length=2000),
    BeforeValidator(_verbatim),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}, mode="validation"),
]
"""Text kept as the engine spells it; a number or boolean of JSON is taken as its text."""
