"""Whether a report that came again says what is stored under its id: found out beside everybody else's reports."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from hugeplan.db.session import Database
from hugeplan.documents.sealed import DamagedBlockError
from hugeplan.errors import ConflictError, FieldProblem
from hugeplan.fleet import read_back
from hugeplan.fleet.ingest.batch import SentAgainError
from hugeplan.fleet.ingest.incoming import Incoming, is_same_content
from hugeplan.fleet.schemas import ReportReceipt
from hugeplan.shares import InFlight, Line

MOST: Final = 20
"""That wait at a time, of which one credential has one: a full block takes a fifth of a second."""


class SentAgain(InFlight):
    """The reports of one process of the service that came again in other bytes, or are sealed; one at a time."""

    def __init__(self, database: Database) -> None:
        super().__init__("reports that came again")
        self._database = database
        self._line = Line()

    async def answer(
        self, incoming: Incoming, found: SentAgainError, *, whose: str, address: str, read: Callable[[int], None]
    ) -> ReportReceipt:
        """The receipt of a report that says the same; ``read`` is told how many octets had to be read.

        ConflictError for another one, RateLimitedError and UnavailableError while too many wait.
        """
        self.take_of(whose, 1, 1, MOST, each=address)
        try:
            async with self._line.turn(whose, address):
                is_same = await self._is_same(incoming, found, read)
        finally:
            self.give_back(whose, 1, address)
        if is_same:
            return found.receipt
        raise ConflictError(
            f"Another report with the id {incoming.report_id} is stored.",
            [FieldProblem(field="report_id", value=str(incoming.report_id), expected="an id of its own")],
        )

    async def _is_same(self, incoming: Incoming, found: SentAgainError, read: Callable[[int], None]) -> bool:
        node_id, document = found.receipt.node_id, None
        async with self._database.read() as session:
            with suppress(DamagedBlockError, zlib.error):  # as if it were no longer kept
                document = await read_back.get_document(
                    session, node_id, incoming.report_id, block_start_at=found.block_start_at, read=read
                )
        return await asyncio.to_thread(is_same_content, incoming, found.content_sha256, document)
