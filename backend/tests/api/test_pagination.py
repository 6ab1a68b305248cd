"""Cursors: what goes in comes out, and pages cut at the limit."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.api.pagination import decode_cursor, decode_time_cursor, encode_cursor, page_of
from hugeplan.errors import InvalidInputError


@given(name=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), number=st.uuids())
def test_name_and_id_come_back(name: str, number: UUID) -> None:
    assert decode_cursor(encode_cursor(name, str(number)), str, UUID) == (name, number)


# Hypothesis takes bounds without a zone. Times that no clock shows are refused, see refuse_absurd_time.
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2199, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


@given(moment=TIMES, number=st.uuids())
def test_time_and_id_come_back(moment: datetime, number: UUID) -> None:
    cursor = encode_cursor(moment.isoformat(), str(number))
    assert decode_time_cursor(cursor) == (moment, number)


@pytest.mark.parametrize(
    "text", ["", "x", "é", "W10", "WyJhIl0", encode_cursor("now", "me"), encode_cursor("2026-01-01", "x")]
)
def test_foreign_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        decode_time_cursor(text)
    assert refused.value.errors[0].field == "cursor"


@pytest.mark.parametrize(("rows", "limit", "cut"), [(0, 3, False), (3, 3, False), (4, 3, True)])
def test_a_page_has_a_next_one_only_when_there_is_more(rows: int, limit: int, cut: bool) -> None:
    items, cursor = page_of(range(rows), limit, lambda row: (str(row), "x"), lambda row: row)
    assert items == list(range(min(rows, limit)))
    assert (cursor is not None) is cut
    if cursor is not None:
        assert decode_cursor(cursor, int, str) == (limit - 1, "x")
