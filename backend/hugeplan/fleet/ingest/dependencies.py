"""What the route of reports asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Annotated
from uuid import UUID

import anyio.to_thread
from fastapi import Depends, Request

from hugeplan.api.body import JsonBody
from hugeplan.fleet.ingest.incoming import Incoming, read_report
from hugeplan.fleet.ingest.writer import ReportWriter

READ_BESIDE_LOOP_BYTES = 32 * 1024
"""A larger report is read in a thread: below, handing it over costs more than reading it."""


async def read_beside_loop(body: JsonBody, *, token_id: UUID) -> Incoming:
    """The report of a body. InvalidInputError names what is wrong with it."""
    read = partial(read_report, body.raw, body.document, token_id=token_id, now=datetime.now(UTC))
    return await anyio.to_thread.run_sync(read) if len(body.raw) > READ_BESIDE_LOOP_BYTES else read()


def get_report_writer(request: Request) -> ReportWriter:
    """The writer of this process."""
    writer: ReportWriter = request.app.state.report_writer
    return writer


CurrentReportWriter = Annotated[ReportWriter, Depends(get_report_writer)]
