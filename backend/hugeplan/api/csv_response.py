"""Lists as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import Response


class CsvResponse(Response):
    """A list as CSV."""

    media_type = "text/csv"


async def _is_csv(request: Request) -> bool:
    return request.url.path.endswith(".csv")


#: A handler with two routes, the list's and the same with .csv, asks which of them was taken.
AsCsv = Annotated[bool, Depends(_is_csv)]
# A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_response(
    name: str, columns: Sequence[str], rows: Iterable[dict[str, Any]], next_cursor: str | None
) -> Response:
    """The columns of the rows as CSV. The next page's cursor is in the header X-Next-Cursor."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in columns])
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    if next_cursor is not None:
        headers["X-Next-Cursor"] = next_cursor
    return CsvResponse(text.getvalue(), headers=headers)


def _cell(value: Any) -> Any:
    """Null is an empty cell; a list is joined; text that would be a formula is quoted."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "; ".join(str(_cell(part)) for part in value)
    if isinstance(value, dict):
        return "; ".join(f"{key}={_cell(part)}" for key, part in value.items())
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value
