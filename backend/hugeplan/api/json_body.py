"""Parsing a JSON body within bounds: size, nesting, lengths, numbers, characters and repeated keys.

A body that is fine is parsed by msgspec and walked once over its containers. Only a body that is not fine is read a
second time, by the standard library, to name the field: no path is built for a body that is accepted. A value that
PostgreSQL or JSON cannot hold (a NUL character, NaN, a number past 64 bits) is refused here, once.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import msgspec
import numpy as np

from hugeplan.errors import FieldProblem, invalid_input, shown
from hugeplan.settings import Settings

MAX_INTEGER = 2**64 - 1
MAX_KEY_CHARACTERS = 512
MAX_PATH_CHARACTERS = 1000
# What may hide a value that the walk over containers does not see: long numbers, NUL, an escaped colon. numpy looks at
# many bytes at a time: a pattern of digits costs more than parsing does.
_LONG_NUMBER = re.compile(rb"(?:\A|[:,\[\s-])[0-9]{19}")
_HIDING_ESCAPE = re.compile(rb"\\u00(?:00|3[aA])")
_FAR_EXPONENT = re.compile(rb"[0-9][eE][+-]?[0-9]{3,}\s*[,\]}]")
LONG_NUMBER_CHARACTERS = 64
_LONG_SPELLED = re.compile(rb"(?:\A|[:,\[\s])-?[0-9][0-9.eE+-]{%d,}" % (LONG_NUMBER_CHARACTERS - 1))
MOST_DEAR_NUMBERS = 1000
"""Numbers with exponents of three digits and more, or of 64 characters and more, whose zeros do what an exponent does:
msgspec takes ten microseconds for each, now and when it is read again, a hundred times what any other number takes."""
_LOOKED_THROUGH_BYTES = 128 * 1024
_SPELLS_NUMBERS = np.isin(np.arange(256), np.frombuffer(b"0123456789.eE+-", np.uint8))
_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
_CONTAINERS = frozenset({dict, list})


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """How large a JSON document may be. ``values`` bounds the commas and opening brackets of the whole body."""

    depth: int
    items: int
    string_characters: int
    values: int

    @classmethod
    def of(cls, settings: Settings) -> JsonLimits:
        """The limits of the settings."""
        return cls(
            settings.max_json_depth,
            settings.max_json_items,
            settings.max_json_string_characters,
            settings.max_json_values,
        )


def values_at_most(body: bytes) -> int:
    """How many commas and opening brackets stand in a body, or in a part of one."""
    found = np.frombuffer(body, np.uint8)
    # [ and { differ in one bit.
    return int(np.count_nonzero(found == ord(","))) + int(np.count_nonzero((found & 0xDF) == ord("[")))


class ValueCount:
    """Counts what will become values while a body arrives, so that a bomb is refused before it is whole.

    Commas and opening brackets are counted wherever they stand, also in strings: an upper bound that costs no parsing.
    """

    def __init__(self, limits: JsonLimits, instead: str = "") -> None:
        self._limit, self._instead = limits.values, instead
        self._count = 0

    def add(self, chunk: bytes) -> None:
        """Count a part of the body. InvalidInputError when there are too many."""
        self._count += values_at_most(chunk)
        if self._count > self._limit:
            _refuse("body", None, f"at most {self._limit} commas and opening brackets{self._instead}")


class _PastLimitError(Exception):
    pass


def parse_json(body: bytes, limits: JsonLimits) -> Any:
    """The document in ``body``, or InvalidInputError naming the first field that breaks a limit."""
    if _may_have_long_numbers(body) and _are_many(_LONG_SPELLED, body):
        _refuse("body", None, f"at most {MOST_DEAR_NUMBERS} numbers of {LONG_NUMBER_CHARACTERS} characters")
    if _may_have_far_exponents(body) and _are_many(_FAR_EXPONENT, body):
        _refuse("body", None, f"at most {MOST_DEAR_NUMBERS} numbers with exponents of three digits")
    try:
        document = _DECODER.decode(body)
        keys = _check_containers(document, limits.depth, limits.items) if type(document) in _CONTAINERS else 0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, _PastLimitError):
        return _explain(body, limits)
    if (
        (len(body) > (most := limits.string_characters) and (b"\\" in body or max(map(len, body.split(b'"'))) > most))
        or (_has_19_digits_in_a_row(body) and _LONG_NUMBER.search(body))
        or (b"\\" in body and _HIDING_ESCAPE.search(body))
        or (keys != _keys_at_most(body) and _colons(_encoded(document, len(body))) != _colons(body))
    ):
        return _explain(body, limits)
    return document


def _are_many(pattern: re.Pattern[bytes], body: bytes) -> bool:
    """Whether a pattern is found more than MOST_DEAR_NUMBERS times; it is looked for no further than that."""
    found = 0
    for at in range(0, len(body), _LOOKED_THROUGH_BYTES):  # others have the interpreter between two parts
        found += sum(1 for _ in islice(pattern.finditer(body, at, at + _LOOKED_THROUGH_BYTES), MOST_DEAR_NUMBERS + 1))
        if found > MOST_DEAR_NUMBERS:
            return True
    return False


def _may_have_long_numbers(body: bytes) -> bool:
    if len(body) < MOST_DEAR_NUMBERS * LONG_NUMBER_CHARACTERS:
        return False
    # Of so many characters in a row at least three are looked at one after the other: most bodies are judged by these.
    found = _SPELLS_NUMBERS[np.frombuffer(body, np.uint8)[:: LONG_NUMBER_CHARACTERS // 3]]
    if int(np.count_nonzero(found[:-2] & found[1:-1] & found[2:])) <= MOST_DEAR_NUMBERS:
        return False
    found = _SPELLS_NUMBERS[np.frombuffer(body, np.uint8)]
    for width in (1, 2, 4, 8, 16, 32):
        found = found[:-width] & found[width:]
    return int(np.count_nonzero(found)) > MOST_DEAR_NUMBERS


def _may_have_far_exponents(body: bytes) -> bool:
    if len(body) < MOST_DEAR_NUMBERS * len("1e100,"):
        return False
    spelled = np.frombuffer(body, np.uint8)
    letters, digits = (spelled[1:] | 0x20) == ord("e"), (spelled[:-1] - np.uint8(ord("0"))) < 10
    return int(np.count_nonzero(letters & digits)) > MOST_DEAR_NUMBERS


def _has_19_digits_in_a_row(body: bytes) -> bool:
    spelled = np.frombuffer(body, np.uint8)
    # Of 19 places in a row six are multiples of three: most bodies are judged by every third byte.
    third = (spelled[::3] - np.uint8(ord("0"))) < 10
    two = third[:-1] & third[1:]
    if not (two[:-4] & two[2:-2] & two[4:]).any():
        return False
    found = (spelled - np.uint8(ord("0"))) < 10
    for width in (1, 2, 4, 8, 3):  # a digit here and that many later: 2, 4, 8, 16, 19 digits from here on
        found = found[:-width] & found[width:]
    return bool(found.any())


def _keys_at_most(body: bytes) -> int | None:
    """How many keys stand in a body that is JSON, or more where a text begins with a colon. None: it cannot be told.

    A repeated key is lost in the document. As many keys there as here say that none is; anything else is looked into.
    """
    if b"\\" in body:
        return None  # a quote in a text, perhaps before a colon
    spelled = np.frombuffer(body, np.uint8)
    colons, before = spelled[1:] == ord(":"), spelled[:-1]
    if (colons & (before <= ord(" "))).any():
        return None  # a key may end before the space
    return int(np.count_nonzero(colons & (before == ord('"'))))


def _encoded(document: Any, size_bytes: int) -> bytearray:
    """The document as JSON again, into memory of about the right size: growing it costs as much as writing does."""
    spelled = bytearray(size_bytes)
    _ENCODER.encode_into(document, spelled)
    return spelled


def _colons(spelled: bytes | bytearray) -> int:
    return int(np.count_nonzero(np.frombuffer(spelled, np.uint8) == ord(":")))


def _check_containers(document: Any, depth: int, items: int) -> int:
    """Walk over the containers, one level after the other. How many keys they hold."""
    keys = 0
    level = [document]
    while level:
        if depth == 0:
            raise _PastLimitError
        depth -= 1
        below: list[Any] = []
        for container in level:
            if len(container) > items:
                raise _PastLimitError
            if type(container) is dict:
                keys += len(container)
            for member in container.values() if type(container) is dict else container:
                if type(member) in _CONTAINERS:
                    below.append(member)
        level = below
    return keys


# --- the second reading: what is wrong, and where -------------------------------------------------


def _refuse(field: str, value: object, expected: str) -> NoReturn:
    raise invalid_input([FieldProblem(field=field or "body", value=shown(value), expected=expected)])


class _NonFinite(float):
    """NaN or an infinity as JSON spelled it, kept until its path is known."""

    def __new__(cls, text: str) -> _NonFinite:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


class _Repeated(dict[str, Any]):
    """An object in which a key stands twice."""

    key: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    repeated = _Repeated(found)
    repeated.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return repeated


def _explain(body: bytes, limits: JsonLimits) -> Any:
    """Read the body slowly. The document when there is nothing wrong with it after all."""
    try:
        document = json.loads(body.decode("utf-8"), parse_constant=_NonFinite, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        _refuse("body", None, f"UTF-8 text (byte {error.start} is not)")
    except json.JSONDecodeError as error:
        _refuse("body", None, f"JSON ({error.msg.lower()} at line {error.lineno} column {error.colno})")
    except RecursionError:
        _refuse("body", None, f"nesting of at most {limits.depth} levels")
    except ValueError as error:
        # Python refuses to read an integer of thousands of digits.
        _refuse("body", None, f"numbers of at most 4300 digits ({error})"[:200])
    _check(document, limits)
    return document


Place = tuple["Place | None", str | int]
"""A member's key, with the place of its container: a path that is only written out for an error."""


def _check(document: Any, limits: JsonLimits) -> None:
    """Walk the document without recursion."""
    stack: list[tuple[Place | None, Any, int]] = [(None, document, 1)]
    while stack:
        place, value, depth = stack.pop()
        if isinstance(value, dict | list):
            if depth > limits.depth:
                _refuse(_path(place), None, f"nesting of at most {limits.depth} levels")
            if len(value) > limits.items:
                _refuse(_path(place), f"{len(value)} elements", f"at most {limits.items} elements")
            if isinstance(value, _Repeated):
                _refuse(_path((place, value.key)), None, "a key that occurs once in its object")
            members = value.items() if isinstance(value, dict) else enumerate(value)
            for key, member in members:
                if isinstance(key, str):
                    _check_text((place, key), key, MAX_KEY_CHARACTERS)
                stack.append(((place, key), member, depth + 1))
        else:
            _check_scalar(place, value, limits)


def _path(place: Place | None) -> str:
    """A place as people write it: ``databases[0].settings``."""
    keys: list[str | int] = []
    while place is not None:
        place, key = place
        keys.append(key)
    path = ""
    for key in reversed(keys):
        text = f"[{key}]" if isinstance(key, int) else str(shown(key))
        path += text if isinstance(key, int) or not path else f".{text}"
        if len(path) > MAX_PATH_CHARACTERS:
            return path[:MAX_PATH_CHARACTERS] + "..."
    return path


def _check_scalar(place: Place | None, value: Any, limits: JsonLimits) -> None:
    if isinstance(value, str):
        _check_text(place, value, limits.string_characters)
    elif isinstance(value, float):
        if not math.isfinite(value):
            _refuse(_path(place), getattr(value, "text", "a number too large"), "a finite number")
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        digits = len(str(value))
        _refuse(_path(place), f"an integer of {digits} digits", "an integer of at most 64 bits")


def _check_text(place: Place | None, text: str, limit: int) -> None:
    if len(text) > limit:
        _refuse(_path(place), f"{len(text)} characters", f"at most {limit} characters")
    if "\0" in text:
        _refuse(_path(place), text, "text without NUL characters")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            _refuse(_path(place), text, "text without lone surrogates")
