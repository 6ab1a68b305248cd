"""The compiled reader against the model that it is compiled from."""

from __future__ import annotations

import copy
import json
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.reports import report, run

from hugeplan.documents.decoding import decode, struct_of
from hugeplan.documents.kept import pack, pack_around, unpack, unpacked_bytes
from hugeplan.documents.report import Report

WHOLE = report(run=run())
ODD: tuple[Any, ...] = (
    None, True, 0, 1, -1, 1.0, 0.5, -0.0, 1e300, 1e308, 2**31, 2**60, 2**60 + 1, 2**63, 2**64 - 1, 2**64, 10**30,
    "", "5", "x", "x" * 65, "x" * 257, "x" * 5000, "2026-11-20T12:00:00Z", "2026-11-20T12:00:00",
    "1066-01-01T00:00:00Z",
    "abcd\n", [], {}, [1], {"a": 1}, [None], "full", "0123456789abcdef0123456789abcdef",
)  # fmt: skip


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every value in a document."""
    found = [before] if before else []
    if isinstance(value, dict):
        for key, member in value.items():
            found += paths(member, (*before, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            found += paths(member, (*before, index))
    return found


PATHS = paths(WHOLE)


def changed(path: tuple[Any, ...], value: Any, *, absent: bool) -> dict[str, Any]:
    """The whole report with one value replaced or taken away."""
    document: dict[str, Any] = copy.deepcopy(WHOLE)
    at: Any = document
    for part in path[:-1]:
        at = at[part]
    if absent:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PATHS), st.sampled_from(ODD), st.booleans())
def test_it_accepts_what_the_model_accepts(path: tuple[Any, ...], value: Any, absent: bool) -> None:
    document = changed(path, value, absent=absent)
    raw = json.dumps(document).encode()
    try:
        expected = Report.model_validate_json(raw)
    except ValidationError:
        with pytest.raises(ValidationError):
            decode(Report, raw)
        return
    converted = msgspec.convert(expected.model_dump(), struct_of(Report))
    assert msgspec.to_builtins(decode(Report, raw)) == msgspec.to_builtins(converted)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PATHS), st.sampled_from(ODD), st.booleans())
def test_msgspec_alone_accepts_nothing_that_the_model_refuses(path: tuple[Any, ...], value: Any, absent: bool) -> None:
    raw = json.dumps(changed(path, value, absent=absent)).encode()
    try:
        msgspec.json.decode(raw, type=struct_of(Report))
    except (msgspec.ValidationError, msgspec.DecodeError):
        return
    Report.model_validate_json(raw)


def test_a_document_is_kept_byte_for_byte() -> None:
    for document in (b"{}", json.dumps(WHOLE, indent=3).encode(), bytes(range(32)) * 500, b""):
        assert unpack(pack(document)) == document
        assert unpacked_bytes(pack(document)) == len(document)
    assert len(pack(json.dumps(WHOLE).encode())) < 2000


def test_a_report_is_kept_around_its_packed_run() -> None:
    run = json.dumps(WHOLE).encode() * 2
    for before, after in ((b'{"run": ', b', "labels": {}}'), (b"", b"")):
        document = before + run + after
        kept = pack_around(document, run, pack(run))
        assert unpack(kept) == document
        with pytest.raises(zlib.error):
            unpack(kept[:-4])
    assert unpack(pack_around(b'{"run": {}}', b"{}", pack(b"{}"))) == b'{"run": {}}'
