"""Words of JSON Schema in which a collector declares what it fills. Types of this list are ``$defs`` of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

MAX_BYTES = 1 << 60
MAX_PAGES = 1 << 50
MAX_SMALL = (1 << 31) - 1
MAX_TEXT = 256
"""These are the service's own bounds: what the schema accepts, the service takes."""

SHARED: Mapping[str, Schema] = {
    "moment": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$"},
    "bytes": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_BYTES},
    "page_bytes": {"type": "integer", "minimum": 4096, "maximum": 1 << 44},
    "pages": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_PAGES},
    "numa_id": {"type": "integer", "minimum": 0, "maximum": 4095},
    "text": {"type": ["string", "null"], "maxLength": MAX_TEXT},
    "number": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_SMALL},
    "ticks": {"type": ["integer", "null"], "minimum": 0, "maximum": (1 << 63) - 1},
    "limited": {
        "type": ["boolean", "null"],
        "description": "true: the limit stands beside it; false: unlimited; null: unknown",
    },
    "unit_ref": {"type": ["string", "null"], "minLength": 1, "maxLength": 512, "description": "key of a unit"},
}
"""Types that several sections use, by their names in ``$defs``."""


def ref(name: str) -> Schema:
    """The type of that name in ``$defs``."""
    return {"$ref": f"#/$defs/{name}"}


MOMENT = ref("moment")
BYTES = ref("bytes")
PAGE_BYTES = ref("page_bytes")
PAGES = ref("pages")
NUMA_ID = ref("numa_id")
TEXT = ref("text")
NUMBER = ref("number")
TICKS = ref("ticks")
LIMITED = ref("limited")
UNIT_REF = ref("unit_ref")
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_PAGES}
PID: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_SMALL}
KNOWN_BYTES: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_BYTES}
BOOLEAN: Schema = {"type": "boolean"}


def about(schema: Schema, description: str) -> Schema:
    """The schema with a description."""
    return {**schema, "description": description}


def optional(schema: Schema) -> Schema:
    """The schema, or null for unknown."""
    return {"oneOf": [{"type": "null"}, schema]}


def number(at_most: float = 1e9) -> Schema:
    """A number with a fraction, or null."""
    return {"type": ["number", "null"], "minimum": 0, "maximum": at_most}


def text(at_most: int) -> Schema:
    """A text of another length than ``TEXT``, or null."""
    return {"type": ["string", "null"], "maxLength": at_most}


def array(items: Schema, at_most: int) -> Schema:
    """A list with a bound."""
    return {"type": "array", "maxItems": at_most, "items": items}


def record(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    """An object. Properties that are not named here are allowed: a newer agent may have them."""
    must = {"required": list(required)} if required else {}
    return {"type": "object", **must, "properties": properties}


def table(values: Schema) -> Schema:
    """An object whose names are free and whose values have one type."""
    return {"type": "object", "additionalProperties": values}
