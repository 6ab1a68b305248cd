"""Memory samples of one node in one row: numbers that histories add up, and beside them what the samples say in full.

Both are blocks of JSON texts (hugeplan.documents.sealed). Histories unpack the numbers alone, lists the samples that
they show: one may have 4,096 pools. Samples that are sealed with their documents leave the second block to them: to
write it twice took a fifth of a node's day.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, groupby
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec

from hugeplan.db.models import SealedSamplesRow
from hugeplan.documents.bounds import Moment, adapter
from hugeplan.documents.decoding import convert, decode
from hugeplan.documents.report import NumaPool, SampleMemory
from hugeplan.documents.sealed import DamagedBlockError, seal, unseal_all, unseal_some, weight_bytes

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Numbers(msgspec.Struct, frozen=True, array_like=True):
    """What histories read of a sample. Bytes; None is unknown."""

    taken_at_microseconds: int
    mem_total_bytes: int
    mem_available_bytes: int | None
    page_tables_bytes: int | None
    anon_huge_pages_bytes: int | None
    hugetlb_bytes: int | None
    pool_idle_bytes: int | None
    anon_shmem_bytes: int | None

    @property
    def taken_at(self) -> datetime:
        """When the sample was taken."""
        return _EPOCH + self.taken_at_microseconds * _MICROSECOND


class Details(msgspec.Struct, frozen=True):
    """What a sample says in full: an object and a list of objects, as JSON."""

    memory: msgspec.Raw
    pools: msgspec.Raw


class Sample(NamedTuple):
    """A sample as lists show it, two parts as JSON: a page may end before they are read.

    ``read_bytes`` are those of the documents that were read for it.
    """

    taken_at: datetime
    report_id: UUID
    memory: str | msgspec.Raw
    pools: str | msgspec.Raw
    read_bytes: int = 0


class Said(msgspec.Struct):
    """What a report says of its sample, as far as it is kept, as it spells it."""

    taken_at: msgspec.Raw
    memory: msgspec.Raw
    pools: msgspec.Raw = msgspec.Raw(b"[]")


class _Report(msgspec.Struct):
    sample: Said


_IN_THE_ROW: Final = Numbers.__struct_fields__[1:-1]
_report = msgspec.json.Decoder(_Report)
_moment = msgspec.json.Decoder(datetime)
_numbers = msgspec.json.Decoder(Numbers)
_details = msgspec.json.Decoder(Details)


def microseconds(moment: datetime) -> int:
    """Since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def said_by(document: bytes) -> Said:
    """What a report's document says. MsgspecError."""
    said = _report.decode(document).sample
    return Said(said.taken_at.copy(), said.memory.copy(), said.pools.copy())  # without the rest of the document


def taken_at(document: bytes) -> datetime:
    """When a report's document says that its sample was taken. MsgspecError."""
    said = _report.decode(document).sample.taken_at
    try:
        return _moment.decode(said)
    except msgspec.ValidationError:  # one of the spellings that the model knows beside RFC 3339
        return cast(datetime, adapter(Moment).validate_json(bytes(said)))


def details_of(row: Any, said: Said | None) -> Details:
    """What a row of ``samples`` says in full, by itself or by its report's document.

    Without the document, what the row knows is left, and all else is unknown.
    """
    if row.memory is not None:
        return Details(msgspec.Raw(row.memory), msgspec.Raw(row.pools))
    if said is not None:
        return _in_full(said)
    known = {name: getattr(row, name) for name in _IN_THE_ROW if name != "pool_idle_bytes"}
    return Details(msgspec.Raw(msgspec.json.encode(known)), msgspec.Raw(b"[]"))


def _in_full(said: Said) -> Details:
    memory = decode(SampleMemory, bytes(said.memory))
    pools = [convert(NumaPool, pool) for pool in msgspec.json.decode(said.pools)]
    return Details(msgspec.Raw(msgspec.json.encode(memory)), msgspec.Raw(msgspec.json.encode(pools)))


def _anon_shmem_bytes(row: Any) -> int | None:
    """Of a row of ``samples``. The release before left it in its memory."""
    if row.anon_shmem_bytes is not None or row.memory is None:
        return cast("int | None", row.anon_shmem_bytes)
    memory = msgspec.json.decode(row.memory)
    anon, shmem = memory.get("anon_pages_bytes"), memory.get("shmem_bytes")
    return None if anon is None or shmem is None else anon + shmem


def sealed_numbers(rows: Sequence[Any]) -> bytes:
    """The column ``numbers`` of rows of ``samples``, in this order."""
    numbers = []
    for row in rows:
        in_row = {name: getattr(row, name) for name in _IN_THE_ROW}
        number = Numbers(microseconds(row.taken_at), anon_shmem_bytes=_anon_shmem_bytes(row), **in_row)
        numbers.append(msgspec.json.encode(number))
    return seal(numbers)


def sealed_rows(
    node_id: UUID,
    rows: Sequence[Any],
    in_full: Callable[[], Iterable[Details]],
    most_bytes: int,
    beside: Sequence[UUID] = (),
) -> list[SealedSamplesRow]:
    """Rows of samples in their order as one, or as some where their pools weigh more than ``most_bytes``, or they are
    further apart than a day: a row is kept for as long as the day that it begins in.

    ``beside``: the reports of the row of ``sealed_documents`` that says all of them.
    """
    if not rows:
        return []
    is_short = rows[-1].taken_at - rows[0].taken_at <= timedelta(days=1)
    if is_short and beside:
        return [_sealed_row(node_id, rows, (), beside)]
    details = list(in_full())
    sizes = accumulate(weight_bytes(bytes(one.pools)) for one in details)
    found = []
    for _, group in groupby(
        zip(rows, details, sizes, strict=True),
        key=lambda one: (is_short or one[0].taken_at.astimezone(UTC).date(), one[2] // most_bytes),
    ):
        together, of_them, _ = zip(*group, strict=True)
        found.append(_sealed_row(node_id, together, of_them))
    return found


def _sealed_row(
    node_id: UUID, rows: Sequence[Any], details: Sequence[Details], beside: Sequence[UUID] = ()
) -> SealedSamplesRow:
    ids = [one.report_id for one in rows]
    return SealedSamplesRow(
        node_id=node_id, start_at=rows[0].taken_at, first_report_id=(beside or ids)[0], end_at=rows[-1].taken_at,
        report_ids=[] if ids == beside else ids, numbers=sealed_numbers(rows),
        details=seal([msgspec.json.encode(one) for one in details]) if details else b"",
    )  # fmt: skip


def read_numbers(blocks: Iterable[bytes], start: datetime, end: datetime | None = None) -> list[Numbers]:
    """The samples of blocks from ``start`` to before ``end``. DamagedBlockError."""
    first, last = microseconds(start), None if end is None else microseconds(end)
    return [
        found
        for block in blocks
        for found in _decoded(_numbers, block)
        if first <= found.taken_at_microseconds and (last is None or found.taken_at_microseconds < last)
    ]


SampleKey = tuple[datetime, UUID]
"""When a sample was taken, and its report."""


SortKey = tuple[int, bytes]
"""The same, in microseconds since 1970 and as 16 octets: what is compared thousands of times."""


def sort_key(key: SampleKey) -> SortKey:
    """The key of a sample, to be compared."""
    return microseconds(key[0]), key[1].bytes


def moment_of(key: SortKey) -> datetime:
    """When the sample of a key was taken."""
    return _EPOCH + key[0] * _MICROSECOND


class Block(NamedTuple):
    """A row of ``sealed_samples``, and the row of ``sealed_documents`` that says it unless it ``is_in_full``.

    ``numbers`` is null where all its samples have one time. Ids are as PostgreSQL sends an array of them.
    """

    node_id: UUID
    start_at: datetime
    first_report_id: UUID
    end_at: datetime
    numbers: bytes | None
    is_in_full: bool
    ids: bytes
    documents: Any


def _octets_of(ids: bytes) -> list[bytes]:
    """Ids of an array: each has four octets before it, that say its length, and the first 20 more."""
    return [ids[at : at + 16] for at in range(24, len(ids), 20)]


def keys_of(block: Block) -> list[SortKey]:
    """The keys of a block's samples, in its order; none where its documents went. DamagedBlockError."""
    if not block.is_in_full and block.documents is None:
        return []
    of_documents = [] if block.is_in_full else _octets_of(block.documents.ids)
    ids = _octets_of(block.ids) or of_documents
    numbers = _decoded(_numbers, block.numbers) if block.numbers is not None else ()
    times = [one.taken_at_microseconds for one in numbers] or [microseconds(block.end_at)] * len(ids)
    if len(times) != len(ids) or (not block.is_in_full and set(ids) != set(of_documents)):
        raise DamagedBlockError(f"{len(times)} samples of {len(ids)} reports")
    return list(zip(times, ids, strict=True))


def said_in(block: Block, kept: bytes, keys: Sequence[SortKey]) -> dict[SortKey, Details | Said]:
    """What some samples of a block say, of its details or its documents. DamagedBlockError."""
    try:
        if block.is_in_full:
            places = dict(zip(keys_of(block), itertools.count(), strict=False))
            return dict(zip(keys, _decoded(_details, kept, [places[key] for key in keys]), strict=True))
        ids = [UUID(bytes=one) for one in _octets_of(block.documents.ids)]
        numbers = [ids.index(UUID(bytes=report_id)) for _, report_id in keys]
        texts = unseal_some(kept, block.documents.sizes_bytes, numbers, ids)
        return {key: said_by(text) for key, text in zip(keys, texts, strict=True)}
    except (msgspec.MsgspecError, ValueError) as error:
        raise DamagedBlockError(str(error)) from error


def sample_of(key: SortKey, said: Details | Said) -> Sample:
    """A sample as lists show it. DamagedBlockError."""
    try:
        details = _in_full(said) if isinstance(said, Said) else said
    except (msgspec.MsgspecError, ValueError) as error:
        raise DamagedBlockError(str(error)) from error
    return Sample(moment_of(key), UUID(bytes=key[1]), details.memory, details.pools)


def _decoded(decoder: Any, block: bytes, wanted: Sequence[int] | None = None) -> list[Any]:
    try:
        return [decoder.decode(text) for text in unseal_all(block, wanted)]
    except msgspec.MsgspecError as error:
        raise DamagedBlockError(str(error)) from error
