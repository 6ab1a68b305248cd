"""Lists as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
import time
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import Depends, Request
from fastapi.responses import Response, StreamingResponse

from hugeplan.api.bodies_in_flight import PART_BYTES
from hugeplan.api.loop_share import let_others
from hugeplan.api.pagination import MAX_LIMIT, Page
from hugeplan.api.schemas import ResponseModel
from hugeplan.db.session import Database, ReadSession


class CsvResponse(Response):
    """A list as CSV."""

    media_type = "text/csv"


class CredentialEndedError(Exception):
    """Who is being answered may read no more: the answer is broken off, so that nobody takes it for whole."""


Rows = Callable[[Any], Iterable[dict[str, Any]]]


class ListPage(Protocol):
    """A list with its conditions: gives the page after a cursor."""

    def __call__(self, session: ReadSession, /, *, limit: int, cursor: str | None) -> Awaitable[Page[Any]]: ...


class CredentialCheck(Protocol):
    """Whether the credential of a request has ended since: of ``hugeplan.access``, which stands above this."""

    async def has_ended(self) -> bool:
        """Asked of the database now and then; cheap between."""


@dataclass(frozen=True, slots=True)
class CsvAnswer:
    """What a request for CSV gets: every row of the list, or the one page that ``limit`` or ``cursor`` asks for."""

    request: Request
    is_one_page: bool

    async def of(self, name: str, columns: Sequence[str], first: Page[Any], more: ListPage, rows_of: Rows) -> Response:
        """``first`` and, from ``more``, all pages after it. ``rows_of`` gives the rows of one item of a page."""
        rows = (row for item in first.items for row in rows_of(item))
        if self.is_one_page or first.next_cursor is None:
            return await csv_response(name, columns, rows, first.next_cursor)
        parts = self._parts(columns, rows, first.next_cursor, more, rows_of)
        return StreamingResponse(parts, media_type=CsvResponse.media_type, headers=_headers(name))

    async def _parts(
        self,
        columns: Sequence[str],
        rows: Iterable[dict[str, Any]],
        cursor: str | None,
        more: ListPage,
        rows_of: Rows,
    ) -> AsyncIterator[str]:
        database: Database = self.request.app.state.database
        check: CredentialCheck = self.request.app.state.credential_check(self.request)
        text = await _text(columns, rows, columns)
        while True:
            # Part by part: whoever reads slowly may take hours. A page may have no row, and many after it none.
            for at in range(0, len(text) or 1, PART_BYTES):
                if await check.has_ended():
                    raise CredentialEndedError
                yield text[at : at + PART_BYTES]
            if cursor is None:
                return
            # A transaction per page: while the client reads, or does not, nothing of the database is held. It has a
            # turn of its credential for its connection, so that others come in between.
            async with database.read() as session:
                page = await more(session, limit=MAX_LIMIT, cursor=cursor)
            text = await _text(columns, (row for item in page.items for row in rows_of(item)))
            cursor = page.next_cursor
            del page


def json_row(item: ResponseModel) -> list[dict[str, Any]]:
    """An item as one row, its values as in JSON."""
    return [item.model_dump(mode="json")]


async def _csv_answer(request: Request) -> CsvAnswer | None:
    if not request.url.path.endswith(".csv"):
        return None
    is_one_page = not {"limit", "cursor"}.isdisjoint(request.query_params)
    return CsvAnswer(request, is_one_page)


#: A handler with two routes, the list's and the same with .csv, asks which of them was taken: None is the list's.
AsCsv = Annotated[CsvAnswer | None, Depends(_csv_answer)]
# A spreadsheet takes a cell that begins with one of these for a formula, also with the typographic minus sign.
_FORMULA = "=+-@\N{MINUS SIGN}"
# One that separates by another character than the comma begins a new cell behind it, whatever is quoted. Looked for in
# a pass for each separator: the signs with their full-width and other forms, behind blanks, quotes and what is no text.
_BEHIND_SEPARATOR = [
    (
        separator,
        re.compile(
            f"[{separator}](?=[^\\w;,|\t-\r!#-/:-@\\[-`{{-~]*[-=+@\u2212\uff0b\uff0d\uff1d\uff20\ufb29\ufe62\ufe63\ufe66"
            "\ufe6b\u207a-\u207c\u208a-\u208c\u2a75\u2a76])"
        ),
    )
    for separator in ";,|\t\n\v\f\r"
]


async def csv_response(
    name: str, columns: Sequence[str], rows: Iterable[dict[str, Any]], next_cursor: str | None
) -> Response:
    """The columns of the rows as CSV. The next page's cursor is in the header X-Next-Cursor."""
    headers = _headers(name)
    if next_cursor is not None:
        headers["X-Next-Cursor"] = next_cursor
    return CsvResponse(await _text(columns, rows, columns), headers=headers)


def _headers(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}.csv"'}


async def _text(columns: Sequence[str], rows: Iterable[dict[str, Any]], *heads: Sequence[str]) -> str:
    """The rows as lines. A page of them may take a tenth of a second, so others come in between."""
    text, since = io.StringIO(), time.thread_time()
    writer = csv.writer(text)
    writer.writerows(heads)
    for row in rows:
        writer.writerow([cell(row.get(column)) for column in columns])
        since = await let_others(since)
    return text.getvalue()


def cell(value: Any) -> Any:
    """Null is an empty cell; a list is joined; text that would be a formula, or a part of it, gets an apostrophe."""
    if not isinstance(value, str | list | dict):
        return "" if value is None else value
    text = guarded = _joined(value)
    for separator, before_formula in _BEHIND_SEPARATOR:
        if separator in text:
            guarded = before_formula.sub(f"{separator}'", guarded)
    return f"'{guarded}" if not text[:1].isprintable() or _is_formula(text) else guarded


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(_joined, value))
    if isinstance(value, dict):
        return "; ".join(f"{key}={_joined(part)}" for key, part in value.items())
    return "" if value is None else str(value)


def _is_formula(text: str) -> bool:
    """Whether the first that is seen of a text begins a formula, also as a full-width or small form of the sign."""
    first = next((character for character in text if character.isprintable() and character not in ' "'), "")
    return unicodedata.normalize("NFKC", first)[:1] in _FORMULA if first else False
