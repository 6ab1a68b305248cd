"""Many documents of one node in one block: consecutive reports are nearly equal, so each costs little beside the first.

Each is read back byte for byte. A block is a zstd frame (RFC 8878) around columns (hugeplan.documents.columns), before
it a version; the former kind of block begins with zstd's magic number and holds the documents after each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final
from uuid import UUID

import msgspec
import zstandard

_LEVEL: Final = 9
_VERSION: Final = b"\x02"
_FORMER_WINDOW_LOG: Final = 26
_ID_LENGTH: Final = 36
_LARGEST: Final = 10
"""How many times as large as its documents a block may be before zstd: nine octets for a number of one digit, and its
place in the header."""
_LEAST_BYTES: Final = 1 << 16
_LARGEST_BYTES: Final = 1 << 26
"""Of a block whose documents' sizes are not known."""


class DamagedBlockError(Exception):
    """A block that cannot be read back."""


def seal(documents: Sequence[bytes], ids: Sequence[UUID] = ()) -> bytes:
    """The block of documents as they came, in this order. Of each the id is left out where it stands in it."""
    from hugeplan.documents.columns import pack_columns  # noqa: PLC0415 - NumPy is not loaded before it is needed

    places, texts = [], []
    for index, document in enumerate(documents):
        place = document.find(str(ids[index]).encode()) if ids else -1
        places.append(place)
        texts.append(document if place < 0 else document[:place] + document[place + _ID_LENGTH :])
    head = msgspec.json.encode(places)
    packed = b"".join((len(head).to_bytes(4, "little"), head, pack_columns(texts)))
    return _VERSION + zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(packed)


def unseal(block: bytes, sizes_bytes: Sequence[int], number: int, ids: Sequence[UUID] = ()) -> bytes:
    """The document of this number, from 0. DamagedBlockError when the block is not what was sealed."""
    if block.startswith(_VERSION):
        return _unsealed(block, sizes_bytes, number, ids)
    ends = list(accumulate(sizes_bytes))
    whole = _decompressed(block, exactly=ends[-1])
    return whole[ends[number] - sizes_bytes[number] : ends[number]]


def unseal_all(block: bytes, wanted: Sequence[int] | None = None) -> list[bytes]:
    """All documents of a block that was sealed without ids, or those of some numbers. DamagedBlockError."""
    return _texts(_decompressed(block[1:], at_most=_LARGEST_BYTES), wanted, ())


def _unsealed(block: bytes, sizes_bytes: Sequence[int], number: int, ids: Sequence[UUID]) -> bytes:
    packed = _decompressed(block[1:], at_most=_LEAST_BYTES + _LARGEST * sum(sizes_bytes))
    (found,) = _texts(packed, [number], ids)
    if len(found) != sizes_bytes[number]:
        raise DamagedBlockError(f"document {number} has {len(found)} bytes in place of {sizes_bytes[number]}")
    return found


def _texts(packed: bytes, wanted: Sequence[int] | None, ids: Sequence[UUID]) -> list[bytes]:
    from hugeplan.documents.columns import unpack_columns  # noqa: PLC0415

    at = 4 + int.from_bytes(packed[:4], "little")
    try:
        places = msgspec.json.decode(packed[4:at], type=list[int])
        texts = unpack_columns(packed[at:], wanted)
        indexes = range(len(texts)) if wanted is None else wanted
        return [
            text if places[index] < 0 else str(ids[index]).encode().join((text[: places[index]], text[places[index] :]))
            for index, text in zip(indexes, texts, strict=True)
        ]
    except (ValueError, IndexError, KeyError, OverflowError, msgspec.MsgspecError) as error:
        raise DamagedBlockError(str(error)) from error


def _decompressed(frame: bytes, *, exactly: int | None = None, at_most: int = 0) -> bytes:
    """What a frame holds. What it says it holds is checked before any memory is taken."""
    try:
        size = zstandard.get_frame_parameters(frame).content_size
        if size != exactly if exactly is not None else size > at_most:
            raise DamagedBlockError(f"it says {size} bytes in place of {at_most if exactly is None else exactly}")
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << _FORMER_WINDOW_LOG)
        return decompressor.decompress(frame)
    except zstandard.ZstdError as error:
        raise DamagedBlockError(str(error)) from error
