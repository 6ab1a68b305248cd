"""A report kept as what has changed since another one of its node.

Consecutive reports are nearly equal. As a zstd frame (RFC 8878) with an earlier report as its dictionary, the
reference, a report takes a fifth of its gzip. Of a large one what changed is mostly numbers: kept as how much these are
more than those of the reference (hugeplan.documents.numbers) it takes half of its frame, and is sealed without its
text (docs/adr/0054). Before both stand a mark and the reference's id; JSON and gzip begin otherwise. Each report
refers to a whole document and never to another difference, so none is read through a chain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from uuid import UUID

import zstandard

from hugeplan.documents.kept import unpack, unpacked_bytes
from hugeplan.documents.sealed import DamagedBlockError, without_id

if TYPE_CHECKING:
    from hugeplan.documents.numbers import Base, Changes

_MARK: Final = b"\x01"
_NUMBERS: Final = b"\x02"
"""Behind the reference's id, before changes of numbers; a frame begins otherwise."""
_HEAD_BYTES: Final = 17
_LEVEL: Final = 6
SMALLEST_BYTES: Final = 1 << 10
"""Of a report that is kept like this."""
NUMBERS_FROM_BYTES: Final = 1 << 14
"""Of a report of which the changes of numbers are kept: one of a node with few processes takes little as a frame."""
NUMBERS_TO_BYTES: Final = 1 << 16
"""Of the same and its reference: one that consists of numbers costs as much as the worst frame."""
LARGEST_BYTES: Final = 1 << 18
"""Of the same, and of a reference: reading one report must stay cheap."""

REFERENCE_ID: Final = (
    "CASE WHEN substring(d.document FOR 1) = '\\x01'::bytea"
    " THEN CAST(encode(substring(d.document FROM 2 FOR 16), 'hex') AS uuid) END"
)
"""SQL: the reference of a row ``d`` of ``report_documents``; null where it is kept whole."""


def against(document: bytes, report_id: UUID, reference_id: UUID, reference: bytes) -> bytes:
    """The bytes to keep of a report's document, which is not empty, beside its reference. Both as they came."""
    if NUMBERS_FROM_BYTES <= len(document) <= NUMBERS_TO_BYTES and len(reference) <= NUMBERS_TO_BYTES:
        from hugeplan.documents.numbers import changes, is_dense  # noqa: PLC0415 - NumPy is loaded where it is needed

        (text, place), (base, _) = without_id(document, report_id), without_id(reference, reference_id)
        if not is_dense(text) and not is_dense(base):
            return b"".join((_MARK, reference_id.bytes, _NUMBERS, changes(text, place, base)))
    return b"".join((_MARK, reference_id.bytes, framed(document, reference)))


def reference_of(kept: bytes) -> UUID | None:
    """The id of the reference that a document is read with; None: it is kept whole."""
    return UUID(bytes=kept[1:_HEAD_BYTES]) if kept.startswith(_MARK) and len(kept) > _HEAD_BYTES else None


def restored(
    kept: bytes, reference_kept: bytes | None, report_id: UUID, told: Callable[[int], None] = lambda _: None
) -> bytes:
    """The document of a report as it came. ``reference_kept`` is its reference, packed (hugeplan.documents.kept); None:
    not found. ``told`` hears how many octets were read: a few that are kept may stand for thousands.

    DamagedBlockError, zlib.error when it cannot be read back.
    """
    document = document_of(read(kept, reference_kept), report_id)
    told(len(document) + unpacked_bytes(reference_kept or b""))
    return document


def read(kept: bytes, reference_kept: bytes | None) -> bytes | Changes:
    """A document as it came, or its numbers, of which ``document_of`` makes it. Parameters and errors as above."""
    if not kept.startswith(_MARK):
        return unpack(kept)
    reference_id = reference_of(kept)
    if reference_kept is None or reference_id is None:
        raise DamagedBlockError(f"it says what changed since report {reference_id}, which is not there")
    if not kept.startswith(_NUMBERS, _HEAD_BYTES):
        return unframed(kept[_HEAD_BYTES:], reference_kept, at_most=LARGEST_BYTES)
    from hugeplan.documents import numbers  # noqa: PLC0415

    return numbers.read(kept[_HEAD_BYTES + 1 :], _base(reference_id, reference_kept), LARGEST_BYTES)


def document_of(found: bytes | Changes, report_id: UUID) -> bytes:
    """The document as it came, of what ``read`` has read."""
    if isinstance(found, bytes):
        return found
    from hugeplan.documents.numbers import text_of  # noqa: PLC0415

    text, place = text_of(found), found.place
    return text if place < 0 else str(report_id).encode().join((text[:place], text[place:]))


@lru_cache(maxsize=4)
def _base(reference_id: UUID, reference_kept: bytes) -> Base:
    """Of a packed reference. Those of a node are read hundreds of times when it is sealed."""
    from hugeplan.documents.numbers import base_of  # noqa: PLC0415

    return base_of(without_id(unpack(reference_kept), reference_id)[0])


def unframed(frame: bytes, reference_kept: bytes, *, at_most: int) -> bytes:
    """The text in a frame whose dictionary is a packed text. DamagedBlockError."""
    return unframed_with(frame, _kept_dictionary(reference_kept), at_most)


def framed(text: bytes, base: bytes) -> bytes:
    """A text that is not empty as a frame whose dictionary is another one."""
    # A match of less than six bytes costs as much as the digits that it stands for.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, source_size=len(text), dict_size=len(base), write_checksum=True,
        strategy=zstandard.STRATEGY_LAZY2, min_match=6,
    )  # fmt: skip
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=dictionary(base)).compress(text)


def unframed_with(frame: bytes, base: zstandard.ZstdCompressionDict, at_most: int) -> bytes:
    """The text in a frame, of up to so many bytes. DamagedBlockError."""
    try:
        said = zstandard.get_frame_parameters(frame)
        # A frame that lost its checksum or says that it is empty would be read unchecked.
        if not said.has_checksum:
            raise DamagedBlockError("it says that it has no checksum")
        if not 0 < said.content_size <= at_most:
            raise DamagedBlockError(f"it says {said.content_size} bytes in place of 1 to {at_most}")
        return zstandard.ZstdDecompressor(dict_data=base).decompress(frame)
    except zstandard.ZstdError as error:
        raise DamagedBlockError(str(error)) from error


@lru_cache(maxsize=4)
def _kept_dictionary(reference_kept: bytes) -> zstandard.ZstdCompressionDict:
    """The same for frames."""
    return dictionary(unpack(reference_kept))


def dictionary(text: bytes) -> zstandard.ZstdCompressionDict:
    """A text as the dictionary of frames."""
    return zstandard.ZstdCompressionDict(text, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
