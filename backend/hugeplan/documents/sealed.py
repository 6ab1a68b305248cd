"""Many documents of one node in one block: consecutive reports are nearly equal, so each costs little beside the first.

Each is read back byte for byte. A block is a version and behind it streams of columns (hugeplan.documents.columns),
compressed by zstd (RFC 8878) with their like: low octets of numbers are anything, high ones are nearly always small,
and one code for them all takes a tenth more than one for each kind. Of the second version all streams are one frame,
and the first one is a frame of the documents after each other.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, groupby, repeat
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec
import zstandard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hugeplan.documents.columns import Apart
    from hugeplan.documents.numbers import Changes

_VERSION: Final = b"\x03"
_SECOND: Final = b"\x02"
_TEXT: Final = 255
_LEVELS: Final = (13, 11)
"""Of blocks whose documents have up to, and more than, _LARGE_BYTES: half of the time, and 2 % more bytes."""
_LARGE_BYTES: Final = 6 << 20
ID_BYTES: Final = 36
"""Of an id as text."""
_FASTER: Final = 6, 1 << 20
"""The level of blocks with a frame of more than this, and of plain ones: higher ones have tables of up to 32 MiB."""
_ALONE_BYTES: Final = 1 << 20, 1 << 16
"""Of a document that has a block of its own, and of one that is kept in more than a third of its bytes. It is not taken
apart: that takes twenty times as much memory, and saves little.
"""
_LARGEST: Final = 10
"""How many times as large as its documents a block may be before zstd: nine octets for a number of one digit, and its
place in the header."""
_LEAST_BYTES: Final = 1 << 16
_LARGEST_BYTES: Final = 1 << 27
"""Of a block whose documents' sizes are not known."""
_block = msgspec.msgpack.Decoder(tuple[memoryview, dict[int, memoryview]])
_plan = msgspec.msgpack.Decoder(tuple[bytes, list[int]])


class DamagedBlockError(Exception):
    """A block that cannot be read back."""


def seal(documents: Sequence[bytes | Changes], ids: Sequence[UUID] = ()) -> bytes:
    """The block of documents in this order, each as it came or as its numbers. Of each the id is left out where it
    stands in it.
    """
    return seal_sized(documents, ids)[0]


def seal_sized(documents: Sequence[bytes | Changes], ids: Sequence[UUID] = ()) -> tuple[bytes, list[int]]:
    """The same, and the bytes of each document as it came."""
    from hugeplan.documents.columns import pack_columns  # noqa: PLC0415 - NumPy is not loaded before it is needed

    if len(documents) == 1 and isinstance(documents[0], bytes) and len(documents[0]) > _ALONE_BYTES[1]:
        plain = zstandard.ZstdCompressor(level=_FASTER[0], write_checksum=True).compress(documents[0])
        return plain, [len(documents[0])]  # the first version of a block
    apart, places = _apart(documents, ids)
    sizes = [size + ID_BYTES * (place >= 0) for size, place in zip(apart.sizes_bytes(), places, strict=True)]
    head = msgspec.json.encode(places)
    packed = pack_columns(apart)
    if sum(map(_size, packed)) > _LARGEST * sum(sizes):
        packed = pack_columns(apart, 0)  # so many small parts that their places take more than they are
    del apart
    streams: list[tuple[int, bytes]] = [(_TEXT, len(head).to_bytes(4, "little") + head)]
    for found in packed:
        streams += [(_TEXT, found)] if isinstance(found, bytes) else zip(_kinds(found), map(bytes, found), strict=True)
    of_kind: dict[int, list[bytes]] = defaultdict(list)
    for kind, stream in streams:
        of_kind[kind].append(stream)
    plan = msgspec.msgpack.encode((bytes(kind for kind, _ in streams), [len(stream) for _, stream in streams]))
    # One for all frames: its tables are megabytes.
    is_wild = max(sum(map(len, of_one)) for of_one in of_kind.values()) > _FASTER[1]
    level = _FASTER[0] if is_wild else _LEVELS[sum(sizes) > _LARGE_BYTES]
    compress = zstandard.ZstdCompressor(level=level, write_checksum=True).compress
    frames = {kind: compress(b"".join(of_one)) for kind, of_one in of_kind.items()}
    return _VERSION + msgspec.msgpack.encode((compress(plan), frames)), sizes


def _apart(documents: Sequence[bytes | Changes], ids: Sequence[UUID]) -> tuple[Apart, list[int]]:
    """All documents taken apart, and of each the place of its id."""
    from hugeplan.documents.columns import joined, taken_apart  # noqa: PLC0415 - NumPy is not loaded
    from hugeplan.documents.numbers import apart_of  # noqa: PLC0415 - before it is needed

    some, places = [], []
    with_ids = zip(documents, ids or repeat(None), strict=False)
    for _, group in groupby(with_ids, key=lambda one: isinstance(one[0], bytes)):
        alike = list(group)
        texts = [without_id(one, report_id) for one, report_id in alike if isinstance(one, bytes)]
        changes = [one for one, _ in alike if not isinstance(one, bytes)]
        places += [place for _, place in texts] + [one.place for one in changes]
        some.append(taken_apart([text for text, _ in texts]) if texts else apart_of(changes))
    return joined(some or [taken_apart([])]), places


def without_id(document: bytes, report_id: UUID | None) -> tuple[bytes, int]:
    """A document without the id of its report, and where this stood; -1: it is not there."""
    place = -1 if report_id is None else document.find(str(report_id).encode())
    return (document, place) if place < 0 else (document[:place] + document[place + ID_BYTES :], place)


def weight_bytes(document: bytes, kept_bytes: int = 0) -> int:
    """What a document counts for where memory is bounded: four thirds of its bytes, or eight for each number if that is
    more; 8 MiB where it has a block of its own.
    """
    import numpy as np  # noqa: PLC0415 - not before it is needed

    if len(document) > _ALONE_BYTES[3 * kept_bytes > len(document)]:
        return 8 << 20
    is_digit = (np.frombuffer(document, np.uint8) - np.uint8(ord("0"))) < 10
    return max(len(document) * 4 // 3, 8 * int(np.count_nonzero(is_digit[1:] & ~is_digit[:-1])))


def _size(stream: bytes | NDArray[np.uint8]) -> int:
    return len(stream) if isinstance(stream, bytes) else stream.size


def _kinds(streams: NDArray[np.uint8]) -> list[int]:
    """How many bits an octet of each stream takes, and whether most take any."""
    tops, counts = streams.max(axis=1, initial=0).tolist(), (streams != 0).sum(axis=1).tolist()
    return [2 * top.bit_length() + (2 * count > streams.shape[1]) for top, count in zip(tops, counts, strict=True)]


def cost_of(block: bytes) -> int:
    """What reading a block takes, in blocks whose texts have few forms, rounded up; 1 of a damaged one."""
    try:
        if not block.startswith(_VERSION):
            size = zstandard.get_frame_parameters(memoryview(block)[block.startswith(_SECOND) :]).content_size
            return 1 + size // 2**15  # of an earlier version
        kinds, _ = _plan.decode(_decompressed(_block.decode(memoryview(block)[1:])[0], _LARGEST_BYTES))
        return 1 + kinds.count(_TEXT) // 16  # a form has two or more
    except (ValueError, zstandard.ZstdError, msgspec.MsgspecError):
        return 1


def unseal(block: bytes, sizes_bytes: Sequence[int], number: int, ids: Sequence[UUID] = ()) -> bytes:
    """The document of this number, from 0. DamagedBlockError when the block is not what was sealed."""
    return unseal_some(block, sizes_bytes, [number], ids)[0]


def unseal_some(
    block: bytes, sizes_bytes: Sequence[int], wanted: Sequence[int], ids: Sequence[UUID] = ()
) -> list[bytes]:
    """The documents of some numbers. DamagedBlockError."""
    if not block.startswith((_VERSION, _SECOND)):
        ends = list(accumulate(sizes_bytes))
        whole = _unpacked(block, ends[-1])
        if len(whole) != ends[-1]:
            raise DamagedBlockError(f"{len(whole)} bytes in place of {ends[-1]}")
        return [bytes(whole[ends[number] - sizes_bytes[number] : ends[number]]) for number in wanted]
    found = _texts(_unpacked(block, _LEAST_BYTES + _LARGEST * sum(sizes_bytes)), wanted, ids)
    for number, text in zip(wanted, found, strict=True):
        if len(text) != sizes_bytes[number]:
            raise DamagedBlockError(f"document {number} has {len(text)} bytes in place of {sizes_bytes[number]}")
    return found


def unseal_all(block: bytes, wanted: Sequence[int] | None = None) -> list[bytes]:
    """All documents of a block that was sealed without ids, or those of some numbers. DamagedBlockError."""
    return _texts(_unpacked(block, _LARGEST_BYTES), wanted, ())


def _texts(packed: bytes | memoryview, wanted: Sequence[int] | None, ids: Sequence[UUID]) -> list[bytes]:
    from hugeplan.documents.columns import unpack_columns  # noqa: PLC0415

    at = 4 + int.from_bytes(packed[:4], "little")
    try:
        places = msgspec.json.decode(packed[4:at], type=list[int])
        texts = unpack_columns(memoryview(packed)[at:], wanted)
        indexes = range(len(texts)) if wanted is None else wanted
        return [
            text if places[index] < 0 else str(ids[index]).encode().join((text[: places[index]], text[places[index] :]))
            for index, text in zip(indexes, texts, strict=True)
        ]
    except (ValueError, IndexError, KeyError, OverflowError, msgspec.MsgspecError) as error:
        raise DamagedBlockError(str(error)) from error


def _unpacked(block: bytes, at_most: int) -> bytes | memoryview:
    """The streams of a block after each other, of up to so many octets; of the first version its documents."""
    try:
        if not block.startswith(_VERSION):
            return _decompressed(memoryview(block)[block.startswith(_SECOND) :], at_most)
        packed, frames = _block.decode(memoryview(block)[1:])
        kinds, sizes = _plan.decode(_decompressed(packed, at_most))
        if min(sizes) < 0 or sum(sizes) > at_most:
            raise ValueError(f"it says {sum(sizes)} bytes in place of at most {at_most}")
        if len(frames) != len(set(kinds)):
            raise ValueError(f"it has {len(frames)} frames in place of {len(set(kinds))}")
        # Neither unpacked whole nor joined: nothing is held beside what is found.
        unpack = zstandard.ZstdDecompressor
        streams = {kind: io.BufferedReader(unpack().stream_reader(frame)) for kind, frame in frames.items()}
        found = io.BytesIO()
        found.writelines(streams[kind].read(size) for kind, size in zip(kinds, sizes, strict=True))
        # The checksum of a frame is looked at behind its last octet.
        if found.tell() != sum(sizes) or any(stream.read(1) for stream in streams.values()):
            raise ValueError(f"its frames do not hold the {sum(sizes)} bytes of its plan")
        return found.getbuffer()
    except (ValueError, KeyError, OverflowError, zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise DamagedBlockError(str(error)) from error


def _decompressed(frame: bytes | memoryview, at_most: int) -> bytes:
    """What a frame holds. What it says it holds is checked before any memory is taken. ValueError, ZstdError."""
    size = zstandard.get_frame_parameters(frame).content_size
    if size > at_most:
        raise ValueError(f"it says {size} bytes in place of at most {at_most}")
    return zstandard.ZstdDecompressor().decompress(frame)
