"""Cursors: what goes in comes out, and pages cut at the limit."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.api.pagination import (
    MAX_LIMIT,
    READ_BYTES,
    decode_cursor,
    decode_time_cursor,
    encode_cursor,
    page_of,
    page_within,
)
from hugeplan.api.schemas import ResponseModel
from hugeplan.db.session import ReadSession
from hugeplan.errors import InvalidInputError


class Part(ResponseModel):
    """An item of a list."""


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


@pytest.mark.parametrize(("read_bytes", "most"), [(0, MAX_LIMIT), (READ_BYTES // 4, 9)])
async def test_a_page_of_items_that_cannot_be_made_ends_and_the_next_goes_on(read_bytes: int, most: int) -> None:
    """It read on to the list's end, in one request."""
    seen: list[int] = []

    async def read(after: str | None, rows: int) -> list[int]:
        start = 0 if after is None else (decode_cursor(after, int, str) or (0, ""))[0] + 1
        return list(range(start, min(start + rows, 2000)))

    def item(row: int) -> Part:
        seen.append(row)
        if row < 1990:
            raise ValueError("damaged")
        return Part()

    pages, items, cursor = 0, 0, None
    while pages == 0 or cursor is not None:
        before = len(seen)
        found, cursor = await page_within(
            ReadSession(), read, limit=5, cursor=cursor, at_once=4, key=lambda row: (str(row), "x"), item=item,
            read_bytes=lambda _: read_bytes,
        )  # fmt: skip
        assert len(seen) - before <= most + 4
        pages, items = pages + 1, items + len(found)
    assert items == 10
    assert set(seen) == set(range(2000))
