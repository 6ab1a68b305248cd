"""Cursor pagination with a total order.

A cursor is the sort key of the last item of a page, as opaque text. Every list sorts by a unique key,
so that pages neither repeat nor lose items while rows are added.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Generic, TypeVar
from uuid import UUID

from fastapi import Query, Response

from hugeplan.api.loop_share import let_others
from hugeplan.api.schemas import ResponseModel
from hugeplan.db.alone import alone
from hugeplan.db.session import ReadSession
from hugeplan.documents.bounds import refuse_absurd_time
from hugeplan.errors import FieldProblem, invalid_input, shown

MAX_LIMIT = 500
PAGE_BYTES = 1024**2
"""About what a page of items from outside may have as JSON: it ends before the item that would exceed this."""
READ_BYTES = 6 * PAGE_BYTES
"""About what is read of documents for a page: one may be kept in a few octets, and say nothing that is answered."""
HOLD_SECONDS = 0.02
"""Of processor time, after which a list gives its connection back, and others come in between."""
R = TypeVar("R")
T = TypeVar("T")
First = TypeVar("First")
Second = TypeVar("Second")

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="The largest number of items to answer")]
Cursor = Annotated[str | None, Query(max_length=1024, description="next_cursor of the page before")]


class Page(ResponseModel, Generic[T]):
    """A part of a list; ``next_cursor`` is null on its last page."""

    items: list[T]
    next_cursor: str | None


def encode_cursor(*key: str) -> str:
    """The sort key as opaque URL-safe text."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def decode_cursor(
    cursor: str | None, first: Callable[[str], First], second: Callable[[str], Second]
) -> tuple[First, Second] | None:
    """The sort key of a cursor, each part through its parser; None on a first page.

    Raises InvalidInputError for text that is not a cursor of this list.
    """
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(parts, list) or "\0" in "".join(parts):
            raise ValueError("not a list of text")
        "".join(parts).encode()  # PostgreSQL holds no lone surrogate
        first_text, second_text = parts
        key = first(first_text), second(second_text)
        for part in key:
            _refuse_absurd(part)
        return key
    except (ValueError, TypeError, RecursionError) as error:
        problem = FieldProblem(field="cursor", value=shown(cursor), expected="next_cursor of an earlier answer")
        raise invalid_input([problem]) from error


def count(text: str) -> int:
    """A whole number that is counted in 32 bits by PostgreSQL; a reader of a cursor's part."""
    found = int(text)
    if not 0 <= found < 2**31:
        raise ValueError("a count")
    return found


def _refuse_absurd(part: object) -> None:
    """ValueError for what no row has as its key, and no column could hold."""
    if isinstance(part, int) and not -(2**63) <= part < 2**63:
        raise ValueError("an integer of at most 64 bits")
    if isinstance(part, datetime):
        refuse_absurd_time(part)


def decode_time_cursor(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The cursor of a list sorted by time and id."""
    return decode_cursor(cursor, aware_time, UUID)


def aware_time(text: str) -> datetime:
    """A cursor's time. Raises ValueError without a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    return moment


def page_of(
    rows: Sequence[R], limit: int, key: Callable[[R], tuple[str, ...]], item: Callable[[R], T]
) -> tuple[list[T], str | None]:
    """Items and next cursor from ``limit + 1`` fetched rows."""
    next_cursor = encode_cursor(*key(rows[limit - 1])) if len(rows) > limit else None
    return [item(row) for row in rows[:limit]], next_cursor


async def page_within(
    session: ReadSession,
    read: Callable[[str | None, int], Awaitable[Sequence[R]]],
    *,
    limit: int,
    cursor: str | None,
    at_once: int,
    key: Callable[[R], tuple[str, ...]],
    item: Callable[[R], T],
    size: Callable[[R, T], int] | None = None,
    read_bytes: Callable[[R], int] = lambda _: 0,
    is_cut: Callable[[], bool] = lambda: False,
) -> tuple[list[T], str | None]:
    """Items and next cursor of a list whose rows may be large: at most ``limit``, and PAGE_BYTES and READ_BYTES but for
    the first.

    ``read`` gives so many rows after a cursor, ``at_once`` the number of rows that may be in memory together. A list of
    small rows tells nothing of the size of those after them, so the number does not grow. ``size``: bytes of an item,
    else those of its JSON; ``read_bytes``: of the documents that were read for it. An item that cannot be made is
    logged and left out: a page of those alone is empty, and has a cursor after MAX_LIMIT rows or READ_BYTES.
    ``is_cut``: the last read gave fewer rows than there are, and the page ends with them. The session's connection goes
    back in between, so nothing may have been written.
    """
    items: list[T] = []
    used, read_so_far, seen, last = 0, 0, 0, cursor
    held_since = time.thread_time()
    while True:
        if time.thread_time() - held_since > HOLD_SECONDS:
            await session.release()
            held_since = time.thread_time()
        wanted = min(limit - len(items), at_once)
        rows = await read(last, wanted + 1)
        since = time.thread_time()
        for row in rows[:wanted]:
            since = await let_others(since)
            with alone(f"item of a list, {key(row)}") as tried:
                made = item(row)
                used += _json_bytes(made) if size is None else size(row, made)
            read_so_far += read_bytes(row)
            if items and (used > PAGE_BYTES or read_so_far > READ_BYTES):
                return items, last
            if tried.why is None:
                items.append(made)
            last = encode_cursor(*key(row))
        seen += wanted
        if len(rows) <= wanted and not is_cut():
            return items, None
        if is_cut() or len(items) == limit or seen >= max(limit, MAX_LIMIT) or read_so_far > READ_BYTES:
            return items, last


def _json_bytes(item: object) -> int:
    assert isinstance(item, ResponseModel)
    return len(item.__pydantic_serializer__.to_json(item))


def json_response(found: ResponseModel) -> Response:
    """A model as the answer. Returned by itself, FastAPI would check it again field by field: most of a list's time.

    The route still names the model as its ``response_model``, for the description of the API.
    """
    return Response(found.model_dump_json(), media_type="application/json")
