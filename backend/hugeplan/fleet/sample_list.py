"""A node's samples as lists show them, newest first: those of its rows and those of its blocks, in one order.

The keys of many blocks are read, and what few of them say in full: a block may be one of thousands that hold the same
time, and its documents have megabytes. What a page reads is bounded, so it may end early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from heapq import nlargest
from itertools import accumulate
from typing import Any, Final
from uuid import UUID

from sqlalchemy import LargeBinary, case, func, select, tuple_

from hugeplan.api.pagination import READ_BYTES
from hugeplan.db.models import SampleRow, SealedDocumentsRow, SealedSamplesRow
from hugeplan.db.session import ReadSession
from hugeplan.documents.sealed import cost_of
from hugeplan.errors import FieldProblem, invalid_input
from hugeplan.fleet.read_back import SAMPLES, beside, block_of, said_of
from hugeplan.fleet.sealed_samples import (
    Block,
    Details,
    Said,
    Sample,
    SampleKey,
    SortKey,
    details_of,
    keys_of,
    moment_of,
    said_in,
    sample_of,
    sort_key,
)

_MOST_COST: Final = 400
"""Of the blocks whose keys one page looks at."""
_COST: Final = 5
"""Of a block that costs one; 1 where all its samples have one time, so that its numbers need not be read."""
_AT_ONCE: Final = 32
"""Blocks whose keys are read in one statement."""
_BLOCK_BYTES: Final = 1 << 16
"""What each block counts for beside its documents."""
_DETAILS_BYTES: Final = READ_BYTES // 3
"""What a block of samples that say everything themselves counts for."""
_COST_BYTES: Final = 1 << 13
"""What each block counts for by its cost, where that is more."""
_MOST_KEYS: Final = 1 << 15
"""Samples that are read of a block, times its cost."""

_ids = partial(func.array_send, type_=LargeBinary)
_IN_ORDER: Final = (SealedSamplesRow.end_at, SealedSamplesRow.start_at, SealedSamplesRow.first_report_id)
_OF_DOCUMENTS: Final = (
    SealedDocumentsRow.node_id,
    SealedDocumentsRow.start_at,
    SealedDocumentsRow.first_report_id,
    SealedDocumentsRow.sizes_bytes,
    _ids(SealedDocumentsRow.report_ids).label("ids"),
)


class SampleList:
    """What one page reads of a node's samples within [start, end). ``is_cut``: the last read ended before the last
    sample, though it gave fewer than it was asked for.
    """

    def __init__(
        self, session: ReadSession, node_id: UUID, *, start: datetime | None, end: datetime | None, limit: int
    ) -> None:
        """For a page of up to ``limit`` samples."""
        self._session, self._node_id, self._limit = session, node_id, limit + 1
        self._start, self._end = start, end
        self._planned: list[tuple[SortKey, Block | None]] | None = None
        self._is_all = self.is_cut = False
        self._read_bytes, self._is_spent = 0, False
        self._said: dict[SortKey, Details | Said] = {}

    async def read(self, after: SampleKey | None, count: int) -> list[Sample]:
        """The next ``count`` samples, or fewer. DamagedBlockError, InvalidInputError where too many blocks hold the
        same time.
        """
        while True:
            if self._planned is None:
                await self._plan(after)
            assert self._planned is not None
            if after is not None:
                self._planned = [one for one in self._planned if one[0] < sort_key(after)]
            wanted = self._planned[:count]
            found = await self._samples(wanted)
            self.is_cut = len(found) < count and (len(found) < len(self._planned) or not self._is_all)
            if found or not wanted or self._is_spent:
                return found
            self._planned = None  # sealed meanwhile, or gone

    async def _plan(self, after: SampleKey | None) -> None:
        """The keys of what follows, as many as a page has, and where each is. Fewer where that needs many blocks."""
        keys: dict[SortKey, Block | None] = {sort_key(key): None for key in await self._unsealed(after)}
        is_full, cost, last = len(keys) == self._limit, 0, None
        since = moment_of(min(keys)) if is_full else None
        bound = None if after is None else sort_key(after)
        many = 1
        while True:
            found = await self._blocks(after, since, last, many)
            each = (_COST * cost_of(one.numbers) if one.numbers else 1 for one in found)
            costs = list(accumulate(each, initial=cost))
            blocks = found[: sum(before <= _MOST_COST for before in costs[:-1])]
            within = self._start, self._end, bound
            # By their key, so that a sample that is sealed between the statements is there once. Beside the loop.
            keys |= await asyncio.to_thread(_keys_within, blocks, *within)
            keys = {key: keys[key] for key in nlargest(self._limit, keys)}
            self._is_all = len(blocks) == len(found) < many
            last = blocks[-1] if blocks else None
            safe = [key for key in keys if self._is_all or last is None or moment_of(key) > last.end_at]
            cost = costs[len(blocks)]
            if len(safe) == self._limit or self._is_all or cost > _MOST_COST:
                break
            many = min(2 * many, _AT_ONCE)
        if not safe and not self._is_all:
            assert last is not None
            at = last.end_at.isoformat()
            raise invalid_input(
                [FieldProblem(field="to", value=at, expected=f"another span: too many rows hold samples of {at}")]
            )
        self._planned = [(key, keys[key]) for key in safe]
        self._is_all = self._is_all and len(safe) < self._limit

    async def _unsealed(self, after: SampleKey | None) -> list[SampleKey]:
        at, report_id = SampleRow.taken_at, SampleRow.report_id
        statement = select(at, report_id).where(SampleRow.node_id == self._node_id)
        if self._start is not None:
            statement = statement.where(at >= self._start)
        if self._end is not None:
            statement = statement.where(at < self._end)
        if after is not None:
            # The plain bound lets PostgreSQL skip partitions, which it cannot do for a row comparison.
            statement = statement.where(at <= after[0], tuple_(at, report_id) < after)
        rows = await self._session.execute(statement.order_by(at.desc(), report_id.desc()).limit(self._limit))
        return [(row[0], row[1]) for row in rows]

    async def _blocks(
        self, after: SampleKey | None, since: datetime | None, last: Block | None, many: int
    ) -> list[Block]:
        """The next blocks that may hold what follows, in the order of their newest samples."""
        row = SealedSamplesRow
        statement = select(row).where(row.node_id == self._node_id)
        for earliest in (self._start, since):
            if earliest is not None:  # a row spans a day at most
                statement = statement.where(row.end_at >= earliest, row.start_at >= earliest - timedelta(days=1))
        if self._end is not None:
            statement = statement.where(row.start_at < self._end)
        if after is not None:
            statement = statement.where(row.start_at <= after[0])
        if last is not None:
            statement = statement.where(tuple_(*_IN_ORDER) < (last.end_at, last.start_at, last.first_report_id))
        # Chosen first: they are sorted, and the ids of all would be unpacked.
        of = statement.order_by(*(one.desc() for one in _IN_ORDER)).limit(many).subquery().c
        numbers = case((of.start_at < of.end_at, of.numbers)).label("numbers")
        is_in_full = (func.octet_length(of.details) > 0).label("is_in_full")
        key = of.node_id, of.start_at, of.first_report_id, of.end_at
        chosen = select(*key, numbers, is_in_full, _ids(of.report_ids).label("ids"))
        rows = (await self._session.execute(chosen.order_by(*(of[one.key].desc() for one in _IN_ORDER)))).all()
        theirs = await self._documents_of([one for one in rows if not one.is_in_full])
        return [Block._make((*one, theirs.get((one.start_at, one.first_report_id)))) for one in rows]

    async def _documents_of(self, samples: Sequence[Any]) -> dict[tuple[datetime, UUID], Any]:
        """The sealed documents of the same reports. None of them came before it was taken."""
        if not samples:
            return {}
        row, starts = SealedDocumentsRow, {(one.start_at, one.first_report_id) for one in samples}
        statement = select(*_OF_DOCUMENTS).where(
            row.node_id == self._node_id,
            row.start_at >= min(starts)[0],
            row.first_report_id.in_({first for _, first in starts}),
        )
        found: dict[tuple[datetime, UUID], Any] = {}
        for documents in await self._session.execute(statement.order_by(row.start_at)):
            for start, first in starts:
                if first == documents.first_report_id and start <= documents.start_at:
                    found.setdefault((start, first), documents)
        return found

    async def _samples(self, wanted: Sequence[tuple[SortKey, Block | None]]) -> list[Sample]:
        """What some samples say, up to the first that cannot be read within the bounds or is elsewhere by now."""
        rows = await self._rows([key for key, block in wanted if block is None])
        keys: list[SortKey] = []
        for key, block in wanted:
            if block is None and key in rows:
                self._read_bytes += rows[key].read_bytes
            elif block is not None and key not in self._said:
                cost = _BLOCK_BYTES + (_DETAILS_BYTES if block.documents is None else sum(block.documents.sizes_bytes))
                self._is_spent = 0 < self._read_bytes > READ_BYTES - cost
                if self._is_spent:
                    break
                self._read_bytes += max(cost, _COST_BYTES * await self._unseal(block))
            if key not in (rows if block is None else self._said):
                break
            keys.append(key)
        # Beside the loop: some of 4,096 pools each take a tenth of a second.
        return await asyncio.to_thread(lambda: [rows.get(key) or sample_of(key, self._said[key]) for key in keys])

    async def _rows(self, keys: Sequence[SortKey]) -> dict[SortKey, Sample]:
        if not keys:
            return {}
        pairs = [(moment_of(key), UUID(bytes=key[1])) for key in keys]
        statement = SAMPLES.where(
            SampleRow.node_id == self._node_id,
            SampleRow.taken_at.between(pairs[-1][0], pairs[0][0]),
            tuple_(SampleRow.taken_at, SampleRow.report_id).in_(pairs),
        )
        return await asyncio.to_thread(_listed, (await self._session.execute(statement)).all())

    async def _unseal(self, block: Block) -> int:
        """Keep what the planned samples of a block say, or the next of them where it costs much. Its cost."""
        keys = [key for key, of_key in self._planned or () if of_key is block]
        if block.documents is None:
            row = SealedSamplesRow
            its = tuple_(row.node_id, row.start_at, row.first_report_id) == tuple(block[:3])
            kept = await self._session.scalar(select(row.details).where(its))
        else:
            kept = await block_of(self._session, block.documents)
        if kept is None:
            return 0  # deleted meanwhile
        cost = cost_of(kept)
        self._said |= await beside(said_in, block, kept, keys[: max(1, _MOST_KEYS // cost)])
        return cost


def _keys_within(
    blocks: Iterable[Block], start: datetime | None, end: datetime | None, after: SortKey | None
) -> dict[SortKey, Block | None]:
    return {
        key: block
        for block in blocks
        for key in keys_of(block)
        if (after is None or key < after)
        and (start is None or moment_of(key) >= start)
        and (end is None or moment_of(key) < end)
    }


def _listed(rows: Sequence[Any]) -> dict[SortKey, Sample]:
    found = {}
    for row in rows:
        told: list[int] = []
        details = details_of(row, said_of(row, told.append))
        key = row.taken_at, row.report_id
        found[sort_key(key)] = Sample(*key, details.memory, details.pools, sum(told))
    return found
