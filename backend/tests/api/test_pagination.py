"""Cursors: what goes in comes out, and pages cut at the limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hugeplan.api.csv_response import CredentialEndedError, CsvAnswer, Rows
from hugeplan.api.pagination import (
    MAX_LIMIT,
    READ_BYTES,
    Page,
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


def busy(seconds: float = 0.01) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def rounds_beside(work: Coroutine[object, object, object]) -> int:
    """How many rounds of the event loop others have while some work goes on."""
    rounds, task = 0, asyncio.ensure_future(work)
    while not task.done():
        rounds += 1
        await asyncio.sleep(0)
    await task
    return rounds


async def test_a_page_of_dear_items_lets_others_in_between() -> None:
    """Ten nodes of 4,096 pools took a fifth of a second in one go."""

    async def read(_after: str | None, rows: int) -> range:
        return range(min(rows, 10))

    def item(_: int) -> Part:
        busy()
        return Part()

    page = page_within(
        ReadSession(), read, limit=10, cursor=None, at_once=10, key=lambda row: (str(row), ""), item=item
    )
    assert await rounds_beside(page) >= 40


class Credential:
    """A check of a credential that ends after so many looks at it."""

    def __init__(self, good_looks: int) -> None:
        self.good_looks = good_looks

    async def has_ended(self) -> bool:
        """One look."""
        self.good_looks -= 1
        return self.good_looks < 0


class Sessions:
    """A database whose sessions nobody uses."""

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        """One of them."""
        yield


async def csv_of(is_one_page: bool, rows_of: Rows, *, pages: int = 2, good_looks: int = 10**6) -> Response:
    """An export of pages of ten."""

    async def more(_session: ReadSession, /, *, limit: int, cursor: str | None) -> Page[Part]:
        assert limit == MAX_LIMIT
        left = int(cursor or 0) - 1
        return Page(items=[Part()] * 10, next_cursor=str(left) if left else None)

    app = Starlette()
    app.state.database, app.state.credential_check = Sessions(), lambda _: Credential(good_looks)
    first = Page(items=[Part()] * 10, next_cursor=str(pages - 1))
    return await CsvAnswer(Request({"type": "http", "app": app}), is_one_page).of("list", ["a"], first, more, rows_of)


@pytest.mark.parametrize("is_one_page", [True, False])
async def test_a_page_of_csv_lets_others_in_between(is_one_page: bool) -> None:
    """One viewer in a loop over a page of labels took others from 4 to 131 ms."""

    def rows_of(_: Part) -> list[dict[str, object]]:
        busy()
        return [{"a": 1}]

    async def whole() -> None:
        answer = await csv_of(is_one_page, rows_of)
        if isinstance(answer, StreamingResponse):
            assert await anext(aiter(answer.body_iterator)) == "a\r\n" + "1\r\n" * 10
        else:
            assert answer.body == b"a\r\n" + b"1\r\n" * 10

    assert await rounds_beside(whole()) >= 40


async def test_an_export_ends_with_its_credential() -> None:
    """It went on for hours after the credential was revoked, and told what was written since."""
    rows = [{"a": "x" * 9_998}]  # a page is 100 kB, in two parts
    answer = await csv_of(False, lambda _: rows, pages=3)
    assert isinstance(answer, StreamingResponse)
    parts = [part async for part in answer.body_iterator]
    assert "".join(map(str, parts)) == "a\r\n" + ("x" * 9_998 + "\r\n") * 30
    assert len(parts) == 6
    answer = await csv_of(False, lambda _: rows, pages=3, good_looks=3)
    assert isinstance(answer, StreamingResponse)
    told = []
    with pytest.raises(CredentialEndedError):
        async for part in answer.body_iterator:
            told.append(part)
    assert told == parts[:3]
