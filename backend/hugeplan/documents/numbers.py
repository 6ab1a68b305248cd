"""A text as what its numbers are more than those of another text, the base: most differ little, or not at all.

Both are taken apart (hugeplan.documents.columns). Of each number an octet says how many bits its difference takes, 0
where it is the same. The octets are deflated (RFC 1951), those that are probably alike beside each other. Behind them
stand the bits, of each difference without its first one, which is always 1.

A difference from a number of pages or KiB is one of pages or KiB. Where the skeleton is another one, it is a zstd frame
(RFC 8878) with the base's as its dictionary, and numbers are compared with those of the same part, or with 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from hugeplan.documents.against import dictionary, framed, unframed_with
from hugeplan.documents.columns import Apart, Integers, Octets, digit_counts, forms_of, interleaved, taken_apart
from hugeplan.documents.sealed import DamagedBlockError

_OTHER_LENGTH: Final = 0x80
"""In the octet of a number whose length is not the expected one: it stands behind all octets."""
_MOST_PARTS: Final = 2_000
_TEXT_PER_NUMBER: Final = 8
_TEXT_PER_PART: Final = 64
_AT_ONCE: Final = 1 << 16
"""Of numbers that are read together."""
_ONE: Final = np.uint64(1)
_ONE_DIGIT: Final = np.uint8(1)
_TOPS: Final = _ONE << np.arange(64, dtype=np.uint64)
_MOST_BITS: Final = np.uint64(63)

_Words = NDArray[np.uint64]
_body = msgspec.msgpack.Decoder(tuple[int, bytes | None, bytes])


class Base(NamedTuple):
    """A text that others are compared with."""

    skeleton: bytes
    lengths: Octets
    values: Integers
    checksum: int

    @property
    def weight_bytes(self) -> int:
        """What it counts for where memory is bounded."""
        return len(self.skeleton) + self.lengths.nbytes + self.values.nbytes


class Changes(NamedTuple):
    """What a text says beside its base. ``place`` is where something stood that was cut out, -1: nothing."""

    base: Base
    place: int
    skeleton: bytes
    octets: bytes
    bits: bytes

    @property
    def weight_bytes(self) -> int:
        """What it counts for where memory is bounded (hugeplan.documents.sealed), without its base."""
        if self.skeleton is self.base.skeleton:
            return 8 * self.base.values.size
        return len(self.skeleton) + 8 * self.skeleton.count(b"0")


def base_of(text: bytes) -> Base:
    """A text as one that others are compared with."""
    apart = taken_apart([text])
    return Base(apart.skeletons[0], apart.lengths, apart.values, zlib.crc32(text))


def is_dense(text: bytes) -> bool:
    """Whether a text has a number in less than 8 octets or a part in less than 64, and would be dear to read.

    Reports have one in 13, and one in 180.
    """
    octets = np.frombuffer(b" " + text, dtype=np.uint8)
    digits = (octets >= ord("0")) & (octets <= ord("9"))
    numbers = int(np.count_nonzero(digits[1:] > digits[:-1]))
    return max(_TEXT_PER_NUMBER * numbers, _TEXT_PER_PART * text.count(b"{")) > len(text)


def changes(text: bytes, place: int, base: bytes) -> bytes:
    """The bytes to keep of a text beside its base. ``place`` is kept with it."""
    (skeleton, base_skeleton), (_, begin), lengths, values = taken_apart([text, base])
    beside = _aligned(skeleton, Base(base_skeleton, lengths[begin:], values[begin:], 0))
    lengths, values = lengths[:begin], values[:begin]
    changed = np.flatnonzero(values != beside.values)
    bits, octets = _packed(values[changed], beside.values[changed])
    of_all = np.zeros(values.size, dtype=np.uint8)
    of_all[changed] = octets
    expected, of_base = beside.lengths.copy(), beside.lengths[changed]
    expected[changed] = _expected(values[changed], of_base > digit_counts(beside.values[changed]), of_base)
    other = np.flatnonzero(lengths != expected)
    of_all[other] |= _OTHER_LENGTH
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zlib.Z_RLE)
    deflated = deflate.compress(of_all[_order(beside)].tobytes() + lengths[other].tobytes())
    frame = None if skeleton == base_skeleton else framed(skeleton, base_skeleton)
    body = msgspec.msgpack.encode((place, frame, b"".join((deflated, deflate.flush(), bits))))
    return zlib.crc32(body, zlib.crc32(base)).to_bytes(4) + body


def read(kept: bytes, base: Base, at_most: int) -> Changes:
    """What ``changes`` kept beside this base, of a text of up to so many octets. DamagedBlockError."""
    if zlib.crc32(kept[4:], base.checksum).to_bytes(4) != kept[:4]:
        raise DamagedBlockError("its checksum is not that of these changes and their reference")
    try:
        place, frame, rest = _body.decode(kept[4:])
        skeleton = base.skeleton if frame is None else unframed_with(frame, dictionary(base.skeleton), at_most)
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        octets = inflate.decompress(rest, 2 * at_most + 1)
    except (msgspec.MsgspecError, zlib.error) as error:
        raise DamagedBlockError(str(error)) from error
    return Changes(base, place, skeleton, octets, inflate.unused_data)


def apart_of(some: Sequence[Changes]) -> Apart:
    """Texts in their order, taken apart, without their text."""
    counts = [one.base.values.size if one.skeleton is one.base.skeleton else one.skeleton.count(b"0") for one in some]
    ends = np.cumsum([0, *counts])
    lengths, values = np.empty(ends[-1], dtype=np.uint8), np.empty(ends[-1], dtype=np.int64)
    first = 0
    for _, group in groupby(some, key=lambda one: (id(one.base), one.skeleton)):
        alike = list(group)
        beside = _aligned(alike[0].skeleton, alike[0].base)
        at_once = 1 + _AT_ONCE // (1 + beside.values.size)
        for at in range(0, len(alike), at_once):
            part = alike[at : at + at_once]
            where = slice(ends[first], ends[first + len(part)])
            _read_apart(part, beside, lengths[where], values[where])
            first += len(part)
    return Apart([one.skeleton for one in some], ends[:-1], lengths, values)


def text_of(one: Changes) -> bytes:
    """The text."""
    (skeleton,), _, lengths, values = apart_of([one])
    numbers = str(values.tolist())[1:-1].encode().split(b", ")
    for place in np.flatnonzero(lengths != digit_counts(values)).tolist():
        numbers[place] = numbers[place].zfill(int(lengths[place]))
    return next(interleaved([skeleton.split(b"0")], numbers))


def _aligned(skeleton: bytes, base: Base) -> Base:
    """For each number of a skeleton the one that it is compared with."""
    if skeleton == base.skeleton:
        return base
    places = np.full(skeleton.count(b"0"), base.values.size)
    of_base = forms_of([base.skeleton], _MOST_PARTS)[0].parts
    for key, run in forms_of([skeleton], _MOST_PARTS)[0].parts.items():
        if key in of_base:
            count = key[0].count(b"0")
            places[run : run + count] = np.arange(of_base[key], of_base[key] + count)
    return Base(skeleton, np.append(base.lengths, _ONE_DIGIT)[places], np.append(base.values, 0)[places], base.checksum)


def _order(beside: Base) -> Integers:
    """The order of octets: those of one length and one name, as far as its length tells, are alike."""
    places = np.flatnonzero(np.frombuffer(beside.skeleton, dtype=np.uint8) == ord("0"))
    names = np.minimum(np.diff(places, prepend=-1), 255).astype(np.uint16)
    return np.argsort((beside.lengths >> _ONE_DIGIT).astype(np.uint16) << np.uint16(8) | names, kind="stable")


def _expected(values: Integers, padded: NDArray[np.bool_], of_base: Octets) -> Octets:
    """The lengths of changed numbers: as before where that one has leading zeros, else as many as it has digits."""
    natural = digit_counts(values).astype(np.uint8)
    return np.where(padded, np.maximum(of_base, natural), natural)


def _unit_bits(base: Integers) -> _Words:
    """How many bits at the end of a difference are nearly always 0."""
    bits: _Words = np.where(base & 1023, 0, np.where(base & 4095, 10, 12)).astype(np.uint64)
    bits *= base != 0
    return bits


def _packed(values: Integers, base: Integers) -> tuple[bytes, Octets]:
    """The bits of differences that are not 0, and how many each takes with its first."""
    if not values.size:
        return b"", np.zeros(0, dtype=np.uint8)
    differences, units = values - base, _unit_bits(base)
    whole = differences >> units.view(np.int64)
    left = (differences - (whole << units.view(np.int64))).view(np.uint64)
    words = ((whole << 1) ^ (whole >> 63)).view(np.uint64) | (left << _ONE) << (_MOST_BITS - units)
    octets = np.searchsorted(_TOPS, words, side="right")
    words ^= _TOPS[octets - 1]
    ends = np.cumsum(octets - 1)
    begins = ends - octets + 1
    packed = np.zeros(int(ends[-1]) // 64 + 2, dtype="<u8")
    at, within = begins >> 6, (begins & 63).view(np.uint64)
    np.bitwise_or.at(packed, at, words << within)
    np.bitwise_or.at(packed, at + 1, (words >> _ONE) >> (_MOST_BITS - within))
    return packed.tobytes()[: -(-int(ends[-1]) // 8)], octets.astype(np.uint8)


def _read_apart(some: Sequence[Changes], beside: Base, lengths: Octets, values: Integers) -> None:
    """Fill in the lengths and values of texts of one skeleton."""
    count = beside.values.size
    octets = np.empty((len(some), count), dtype=np.uint8)
    streams = np.frombuffer(b"".join(one.octets[:count] for one in some), dtype=np.uint8)
    octets[:, _order(beside)] = streams.reshape(octets.shape)
    bits = octets & ~np.uint8(_OTHER_LENGTH)
    changed = np.flatnonzero(bits != 0)
    counts = np.count_nonzero(bits, axis=1)
    columns = changed - np.repeat(np.arange(len(some)) * count, counts)
    widths = bits.ravel()[changed].astype(np.int64) - 1
    begins = np.cumsum(widths) - widths
    # The bits of each text begin with an octet of their own.
    before = np.append(begins, 0)[np.cumsum(counts) - counts]
    begins += np.repeat(8 * np.cumsum([0, *(len(one.bits) for one in some[:-1])]) - before, counts)
    differences = _differences(b"".join(one.bits for one in some), begins, widths, _unit_bits(beside.values)[columns])
    values.reshape(octets.shape)[:], lengths.reshape(octets.shape)[:] = beside.values, beside.lengths
    values[changed] += differences
    padded = (beside.lengths > digit_counts(beside.values))[columns]
    lengths[changed] = _expected(values[changed], padded, beside.lengths[columns])
    other = b"".join(one.octets[count:] for one in some)
    lengths[np.flatnonzero(octets >= _OTHER_LENGTH)] = np.frombuffer(other, dtype=np.uint8)


def _differences(bits: bytes, begins: Integers, widths: Integers, units: _Words) -> Integers:
    """The differences whose bits, but for the first of each, begin at ``begins``."""
    whole = np.frombuffer(bits + bytes(16), dtype=np.uint8)
    eight = np.ndarray((whole.size - 7,), dtype="<u8", buffer=whole, strides=(1,))
    at, within, width = begins >> 3, (begins & 7).view(np.uint64), widths.view(np.uint64)
    words = (eight[at] >> within) | (eight[at + 8] << _ONE) << (_MOST_BITS - within)
    words = (words & ((_ONE << width) - _ONE)) | (_ONE << width)
    left = (words >> _ONE) >> (_MOST_BITS - units)
    words ^= (left << _ONE) << (_MOST_BITS - units)
    folded = (words >> _ONE).view(np.int64) ^ -(words & _ONE).view(np.int64)
    differences: Integers = (folded << units.view(np.int64)) + left.view(np.int64)
    return differences
