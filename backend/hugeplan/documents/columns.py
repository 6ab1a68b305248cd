"""Texts that differ in their numbers alone, as one text and columns of differences.

Reports of one node a minute apart say the same with other numbers. A general compressor spends six bytes to say that a
number changed; as a column of differences, divided by what they have in common (a page), it takes one or two. Each
text is read back byte for byte: every run of digits is a number with its leading zeros, everything else is the
skeleton. Texts of another skeleton are groups of their own, so that any bytes at all can be packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

_LONGEST: Final = 18
"""Digits that an int64 holds; a longer run is several numbers after each other."""
_ZERO: Final = ord("0")
_PADDING: Final = b" " * 16
"""Before the first text, so that there are eight octets before the end of every number."""
_PAIRS: Final = tuple(
    (np.uint64(mask), np.uint64((10**digits << shift) + 1), np.uint64(shift))
    for mask, digits, shift in ((0x0F0F0F0F0F0F0F0F, 1, 8), (0x00FF00FF00FF00FF, 2, 16), (0x0000FFFF0000FFFF, 4, 32))
)

Integers = NDArray[np.int64]
Octets = NDArray[np.uint8]


class _Group(msgspec.Struct, frozen=True):
    """Texts of one skeleton. ``changing`` are the columns that are not the same in all of them.

    Lengths are of the streams that follow the header, in this order. ``scales`` divide each column's differences;
    ``planes`` is how many octets each of them takes.
    """

    members: list[int]
    skeleton_bytes: int
    first_bytes: int
    changing: list[int]
    scales: list[int]
    planes: int


_header = msgspec.json.Decoder(list[_Group])


def pack_columns(texts: Sequence[bytes]) -> bytes:
    """All texts, to be compressed."""
    # A byte between them, so that no run of digits reaches from one into the next.
    whole = np.frombuffer(_PADDING + b" ".join([*texts, b""]), dtype=np.uint8)
    digits = (whole - _ZERO) < 10
    starts, lengths = _runs(digits)
    keep = ~digits
    keep[starts] = True
    skeletons = whole[keep]
    skeletons[(skeletons - _ZERO) < 10] = _ZERO
    values = _values(whole, starts + lengths, lengths)
    after = np.cumsum([len(_PADDING), *(len(text) + 1 for text in texts)])
    counts = np.searchsorted(starts, after)
    # Of each run one byte is kept.
    kept = (after - np.concatenate(([0], np.cumsum(lengths - 1)))[counts]).tolist()
    groups: dict[bytes, list[int]] = {}
    for index in range(len(texts)):
        groups.setdefault(skeletons[kept[index] : kept[index + 1] - 1].tobytes(), []).append(index)
    headers, streams = [], []
    for skeleton, members in groups.items():
        runs = np.concatenate([np.arange(counts[index], counts[index + 1]) for index in members])
        runs = runs.reshape(len(members), -1)
        first = b" ".join(
            b"%0*d" % pair for pair in zip(lengths[runs[0]].tolist(), values[runs[0]].tolist(), strict=True)
        )
        header, parts = _changes(values[runs], lengths[runs])
        headers.append(_Group(members, len(skeleton), len(first), *header))
        streams += [skeleton, first, *parts]
    head = msgspec.json.encode(headers)
    return b"".join((len(head).to_bytes(4, "little"), head, *streams))


def unpack_columns(packed: bytes, number: int | None = None) -> list[bytes]:
    """All texts in their order, or the one of this number alone. ValueError: not what was packed."""
    at = 4 + int.from_bytes(packed[:4], "little")
    found: dict[int, bytes] = {}
    for group in _header.decode(packed[4:at]):
        skeleton = packed[at : at + group.skeleton_bytes]
        at += group.skeleton_bytes
        first = packed[at : at + group.first_bytes]
        at += group.first_bytes
        cells = len(group.changing) * len(group.members)
        if number is None or number in group.members:
            changes = packed[at : at + cells * (1 + group.planes)]
            found |= _texts(group, skeleton, first, changes, number)
        at += cells * (1 + group.planes)
    if at != len(packed):
        raise ValueError(f"{len(packed)} bytes in place of {at}")
    return [found[index] for index in ([number] if number is not None else range(len(found)))]


def _runs(is_digit: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Where runs of digits begin, and their lengths; none longer than _LONGEST. The ends are no digits."""
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    if lengths.size and lengths.max() > _LONGEST:
        pieces = -(-lengths // _LONGEST)
        of_run = np.repeat(np.arange(lengths.size), pieces)
        offset = (np.arange(of_run.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * _LONGEST
        starts, lengths = starts[of_run] + offset, np.minimum(_LONGEST, lengths[of_run] - offset)
    return starts, lengths


def _values(whole: Octets, ends: Integers, lengths: Integers) -> Integers:
    """The numbers that end before ``ends``."""
    values = _eight_digits(whole, ends, np.minimum(lengths, 8))
    for place in (8, 16):
        longer = np.flatnonzero(lengths > place)
        if longer.size:
            digits = np.minimum(lengths[longer] - place, 8)
            values[longer] += _eight_digits(whole, ends[longer] - place, digits) * 10**place
    return values


def _eight_digits(whole: Octets, ends: Integers, lengths: Integers) -> Integers:
    """The numbers of up to eight digits before ``ends``, all digits of a number at once.

    The eight octets before the end are one integer, its last digit on top. Neighbours are added in pairs, three times.
    """
    words = np.ndarray((whole.size - 7,), dtype="<u8", buffer=whole, strides=(1,))[ends - 8]
    words &= ~np.uint64(0) << (64 - 8 * lengths).astype(np.uint64)
    for mask, factor, shift in _PAIRS:
        words = ((words & mask) * factor) >> shift
    return words.astype(np.int64)


def _changes(values: Integers, lengths: Integers) -> tuple[tuple[Any, ...], list[bytes]]:
    """``changing``, ``scales`` and ``planes`` of a group, and its streams. One row per text."""
    changing = np.flatnonzero((values != values[:1]).any(axis=0) | (lengths != lengths[:1]).any(axis=0))
    values, lengths = values[:, changing].T, lengths[:, changing].T
    differences = np.diff(values, axis=1, prepend=values[:, :1])
    scales = np.maximum(np.gcd.reduce(differences, axis=1), 1)
    scaled = differences // scales[:, None]
    folded = np.ascontiguousarray((scaled << 1) ^ (scaled >> 63), dtype="<i8")
    octets = folded.view(np.uint8).reshape(*folded.shape, 8)
    planes = -(-int(folded.max(initial=0)).bit_length() // 8)
    header = (changing.tolist(), scales.tolist(), planes)
    return header, [lengths.astype(np.uint8).tobytes(), *(octets[:, :, plane].tobytes() for plane in range(planes))]


def _texts(group: _Group, skeleton: bytes, first: bytes, changes: bytes, number: int | None) -> dict[int, bytes]:
    """The texts of a group by number."""
    shape = (len(group.changing), len(group.members))
    streams = np.frombuffer(changes, dtype=np.uint8).reshape(1 + group.planes, *shape)
    folded = np.zeros((*shape, 8), dtype=np.uint8)
    folded[:, :, : group.planes] = np.moveaxis(streams[1:], 0, -1)
    unsigned = folded.view("<u8").reshape(shape)
    scaled = (unsigned >> np.uint64(1)).astype(np.int64) ^ -(unsigned & np.uint64(1)).astype(np.int64)
    numbers = first.split(b" ") if first else []
    base = np.array([int(numbers[column]) for column in group.changing], dtype=np.int64)
    values = base[:, None] + np.cumsum(scaled * np.array(group.scales, dtype=np.int64)[:, None], axis=1)
    parts = skeleton.split(b"0")
    whole = [b""] * (2 * len(parts) - 1)
    whole[::2], whole[1::2] = parts, numbers
    places = [2 * column + 1 for column in group.changing]
    found = {}
    for row, index in enumerate(group.members):
        if number in (None, index):
            for place, value, length in zip(places, values[:, row].tolist(), streams[0, :, row].tolist(), strict=True):
                whole[place] = b"%0*d" % (length, value)
            found[index] = b"".join(whole)
    return found
