"""Texts that differ in their numbers alone, as one text and columns of differences.

Reports of one node a minute apart say the same with other numbers. A general compressor spends six bytes to say that a
number changed; as a column of differences, divided by what they have in common (a page), it takes one or two. Each
text is read back byte for byte: every run of digits is a number with its leading zeros, everything else is the
skeleton.

A text is a sequence of parts, which begin at braces. Parts of one skeleton are compared with each other: the first of
its kind with the first in the text before, the second with the second. So a list that has grown by an entry, or a
number that is written in another form, costs that part and nothing else, and any bytes at all can be packed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

_LONGEST: Final = 18
"""Digits that an int64 holds; a longer run is several numbers after each other."""
_POWERS: Final = 10 ** np.arange(1, _LONGEST + 1, dtype=np.int64)
_ZERO: Final = ord("0")
_AT_ONCE_BYTES: Final = 1 << 18
"""Of texts that are taken apart together. For all at once the system maps memory, block by block, and takes it back."""
_ROW: Final = 1 << 14
"""Of numbers that are written together."""
_PADDING: Final = b" " * 16
"""Before the first text, so that there are eight octets before the end of every number."""
_PAIRS: Final = tuple(
    (np.uint64(mask), np.uint64((10**digits << shift) + 1), np.uint64(shift))
    for mask, digits, shift in ((0x0F0F0F0F0F0F0F0F, 1, 8), (0x00FF00FF00FF00FF, 2, 16), (0x0000FFFF0000FFFF, 4, 32))
)
_LAST: Final = np.array([-(1 << 64 - 8 * octets) % (1 << 64) for octets in range(9)], dtype=np.uint64)
"""The last so many octets of eight."""

Integers = NDArray[np.int64]
Octets = NDArray[np.uint8]


class _Cluster(msgspec.Struct, frozen=True):
    """Parts that the same texts have, with their numbers as one matrix, a row per text.

    ``skeletons`` are the numbers of the parts' skeletons. ``changing`` are the columns that are not the same in all
    rows, ``scales`` divide each one's differences, ``planes`` is how many octets they take.
    """

    skeletons: list[int]
    first_bytes: int
    changing: list[int]
    scales: list[int]
    planes: int


class _Header(msgspec.Struct, frozen=True):
    """What follows: the skeletons, and of each cluster its first row as text and its changes.

    ``sequences`` are the parts of texts in their order, each as its cluster and its place in it; ``texts`` says which
    sequence each text has.
    """

    skeleton_bytes: list[int]
    clusters: list[_Cluster]
    sequences: list[list[tuple[int, int]]]
    texts: list[int]


_header = msgspec.json.Decoder(_Header)


MOST_PARTS: Final = 64_000
"""Of all texts that are packed together: a part takes 300 octets of memory, and a text may consist of braces."""


def pack_columns(apart: Apart, most_parts: int = MOST_PARTS) -> list[bytes | Octets]:
    """All texts, as text and as rows of octets of one kind. ``unpack_columns`` reads them after each other.

    Braces after the first of ``most_parts`` begin no part of their own. Each form has one, however many there are.
    """
    forms = forms_of(apart.skeletons, most_parts)
    _, first_runs, lengths, values = apart
    numbers: dict[bytes, int] = {}
    headers: list[_Cluster] = []
    streams: list[bytes | Octets] = []
    places: dict[_PartKey, tuple[int, int]] = {}
    for of_forms, keys in _clusters(forms).items():
        members = np.concatenate([forms[form].members for form in of_forms])
        in_order = np.argsort(members)
        counts = [len(forms[form].members) for form in of_forms]
        runs: list[Integers] = []
        for place, key in enumerate(keys):
            places[key] = len(headers), place
            firsts = first_runs[members] + np.repeat([forms[form].parts[key] for form in of_forms], counts)
            runs.append(firsts[in_order, None] + np.arange(key[0].count(b"0")))
        of_cluster = np.hstack(runs)
        runs.clear()
        first = _row(lengths, values, of_cluster[0])
        which = [numbers.setdefault(skeleton, len(numbers)) for skeleton, _ in keys]
        some = values[of_cluster], lengths[of_cluster]
        del of_cluster
        header, changes = _changes(*some)
        headers.append(_Cluster(which, len(first), *header))
        streams += [first, changes]
    sequences = [[places[key] for key in form.parts] for form in forms]
    of_texts = np.zeros(len(apart.skeletons), dtype=np.int64)
    for number, form in enumerate(forms):
        of_texts[form.members] = number
    head = msgspec.json.encode(_Header([len(one) for one in numbers], headers, sequences, of_texts.tolist()))
    return [len(head).to_bytes(4, "little"), head, *numbers, *streams]


class Apart(NamedTuple):
    """Texts taken apart: the skeleton of each, the number of its first run, and lengths and values of all runs."""

    skeletons: list[bytes]
    first_runs: Integers
    lengths: Octets
    values: Integers

    def sizes_bytes(self) -> list[int]:
        """Of each text."""
        counts = np.diff(np.append(self.first_runs, self.lengths.size))
        # A text without numbers gets the first of the next one.
        digits = np.add.reduceat(np.append(self.lengths, np.uint8(0)), self.first_runs, dtype=np.int64) * (counts > 0)
        return [len(one) + more for one, more in zip(self.skeletons, (digits - counts).tolist(), strict=True)]


def taken_apart(texts: Sequence[bytes]) -> Apart:
    """Some texts at a time, taken apart."""
    at_once = 1 + _AT_ONCE_BYTES // (1 + max(map(len, texts), default=0))
    if len(texts) <= at_once:
        return _taken_apart(texts)
    return joined([_taken_apart(texts[at : at + at_once]) for at in range(0, len(texts), at_once)])


def joined(some: Sequence[Apart]) -> Apart:
    """Texts that were taken apart, after each other."""
    if len(some) == 1:
        return some[0]
    before = accumulate((one.values.size for one in some[:-1]), initial=0)
    first_runs = [one.first_runs + runs for one, runs in zip(some, before, strict=True)]
    lengths, values = np.concatenate([one.lengths for one in some]), np.concatenate([one.values for one in some])
    return Apart([skeleton for one in some for skeleton in one.skeletons], np.concatenate(first_runs), lengths, values)


def _taken_apart(texts: Sequence[bytes]) -> Apart:
    # A byte between them, so that no run of digits reaches from one into the next.
    whole = np.frombuffer(_PADDING + b" ".join([*texts, b""]), dtype=np.uint8)
    digits = (whole - _ZERO) < 10
    starts, lengths = _runs(digits)
    # Of each run one byte is kept.
    keep = ~digits
    keep[starts] = True
    zeroed = whole.copy()
    zeroed[starts] = _ZERO
    skeletons = zeroed[keep].tobytes()
    begins = np.cumsum([len(_PADDING), *(len(text) + 1 for text in texts)])
    first_runs = np.searchsorted(starts, begins)
    kept = begins - np.concatenate(([0], np.cumsum(lengths - 1)))[first_runs]
    of_texts = [skeletons[begin : end - 1] for begin, end in pairwise(kept.tolist())]
    values = _values(whole, starts + lengths, lengths)
    return Apart(of_texts, first_runs[:-1], lengths.astype(np.uint8), values)


_PartKey = tuple[bytes, int]
"""The skeleton of a part, and how many of it stand before it in its text."""


@dataclass(slots=True)
class _Form:
    """Texts of one skeleton: which, and their parts in order with the number of the first run in each."""

    members: list[int] = field(default_factory=list)
    parts: dict[_PartKey, int] = field(default_factory=dict)


def _row(lengths: Octets, values: Integers, which: Integers) -> bytes:
    """Numbers as text, some at a time: as objects they take fifteen times as much memory."""
    some = (which[at : at + _ROW] for at in range(0, which.size, _ROW))
    of_some = (zip(lengths[one].tolist(), values[one].tolist(), strict=True) for one in some)
    return b" ".join(b" ".join(b"%0*d" % number for number in one) for one in of_some)


def forms_of(skeletons: Sequence[bytes], most_parts: int) -> list[_Form]:
    """The forms of all texts."""
    found: dict[bytes, _Form] = defaultdict(_Form)
    for index, skeleton in enumerate(skeletons):
        found[skeleton].members.append(index)
    for skeleton, form in found.items():
        seen, run = Counter[bytes](), 0
        pieces = skeleton.split(b"{", most_parts // len(found))
        for part in [pieces[0], *(b"{" + one for one in pieces[1:])]:
            form.parts[part, seen[part]] = run
            seen[part] += 1
            run += part.count(b"0")
    return list(found.values())


def _clusters(forms: Sequence[_Form]) -> dict[tuple[int, ...], list[_PartKey]]:
    """The parts that the same forms have."""
    of_part: dict[_PartKey, list[int]] = defaultdict(list)
    for number, form in enumerate(forms):
        for key in form.parts:
            of_part[key].append(number)
    found: dict[tuple[int, ...], list[_PartKey]] = defaultdict(list)
    for key, numbers in of_part.items():
        found[tuple(numbers)].append(key)
    return found


def unpack_columns(packed: bytes | memoryview, wanted: Sequence[int] | None = None) -> list[bytes]:
    """All texts in their order, or those of some numbers. ValueError, IndexError: not what was packed."""
    at = 4 + int.from_bytes(packed[:4], "little")
    header = _header.decode(packed[4:at])
    ends = list(accumulate(header.skeleton_bytes, initial=at))
    at = ends[-1]
    clusters: list[dict[int, list[bytes]]] = []
    chosen = frozenset(range(len(header.texts)) if wanted is None else wanted)
    for cluster, members in zip(header.clusters, _members(header), strict=True):
        first = packed[at : at + cluster.first_bytes]
        at += cluster.first_bytes
        size = len(cluster.changing) * len(members) * (1 + cluster.planes)
        changes = packed[at : at + size]
        at += size
        if chosen.isdisjoint(members):
            clusters.append({})
            continue
        of_cluster = [bytes(packed[ends[one] : ends[one + 1]]) for one in cluster.skeletons]
        clusters.append(_texts(cluster, of_cluster, members, (bytes(first), changes), chosen))
    if at != len(packed):
        raise ValueError(f"{len(packed)} bytes in place of {at}")
    return [
        b"".join(clusters[cluster][index][place] for cluster, place in header.sequences[header.texts[index]])
        for index in (range(len(header.texts)) if wanted is None else wanted)
    ]


def _runs(is_digit: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Where runs of digits begin, and their lengths; none longer than _LONGEST. The ends are no digits."""
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    longer = np.flatnonzero(lengths > _LONGEST)
    if longer.size:
        more = -(-lengths[longer] // _LONGEST) - 1
        of_run = np.repeat(longer, more)
        offset = (1 + np.arange(of_run.size) - np.repeat(np.cumsum(more) - more, more)) * _LONGEST
        rest = np.minimum(_LONGEST, lengths[of_run] - offset)
        lengths[longer] = _LONGEST
        at = of_run + 1 + np.arange(of_run.size)
        is_old = np.ones(lengths.size + of_run.size, dtype=np.bool_)
        is_old[at] = False
        starts = _inserted(starts, starts[of_run] + offset, is_old, at)
        lengths = _inserted(lengths, rest, is_old, at)
    return starts, lengths


def _inserted(old: Integers, new: Integers, is_old: NDArray[np.bool_], at: Integers) -> Integers:
    """As ``numpy.insert``, in a third of its time."""
    found = np.empty(is_old.size, dtype=np.int64)
    found[is_old], found[at] = old, new
    return found


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
    words &= _LAST[lengths]
    for mask, factor, shift in _PAIRS:
        words &= mask
        words *= factor
        words >>= shift
    return words.view(np.int64)


def _changes(values: Integers, lengths: Octets) -> tuple[tuple[Any, ...], Octets]:
    """``changing``, ``scales`` and ``planes`` of a cluster, and its streams. One row per text."""
    changing = np.flatnonzero((values != values[:1]).any(axis=0) | (lengths != lengths[:1]).any(axis=0))
    values, lengths = values[:, changing].T, lengths[:, changing].T
    # In its place, as all that follows: each copy takes eight octets for each number.
    folded = np.zeros(values.shape, dtype="<i8")
    np.subtract(values[:, 1:], values[:, :-1], out=folded[:, 1:])
    scales = np.maximum(np.gcd.reduce(folded, axis=1), 1)
    folded //= scales[:, None]
    signs = folded >> 63
    folded <<= 1
    folded ^= signs
    del signs
    octets = folded.view(np.uint8).reshape(*folded.shape, 8)
    planes = -(-int(folded.max(initial=0)).bit_length() // 8)
    # Where it is not always the same, 0 is as many digits as the number has.
    others = np.flatnonzero((lengths != lengths[:, :1]).any(axis=1))
    said = np.ascontiguousarray(lengths)
    said[others] *= said[others] != digit_counts(values[others])
    streams = said, *(octets[:, :, plane] for plane in range(planes))
    return (changing.tolist(), scales.tolist(), planes), np.concatenate(streams)


def digit_counts(values: Integers) -> Integers:
    """How many digits numbers have."""
    return np.searchsorted(_POWERS, values, side="right") + 1


def _members(header: _Header) -> list[list[int]]:
    """The texts that have the parts of each cluster."""
    members: list[list[int]] = [[] for _ in header.clusters]
    of_sequences = [{cluster for cluster, _ in sequence} for sequence in header.sequences]
    for index, sequence in enumerate(header.texts):
        for cluster in of_sequences[sequence]:
            members[cluster].append(index)
    return members


def _texts(
    cluster: _Cluster,
    skeletons: Sequence[bytes],
    members: Sequence[int],
    streams_of: tuple[bytes, bytes | memoryview],
    chosen: Container[int],
) -> dict[int, list[bytes]]:
    """The parts of a cluster in each chosen text. ``streams_of``: its first row and its changes."""
    first, changes = streams_of
    streams = np.frombuffer(changes, dtype=np.uint8).reshape(1 + cluster.planes, len(cluster.changing), len(members))
    numbers = first.split(b" ") if first else []
    rows = [row for row, index in enumerate(members) if index in chosen]
    # Some columns at a time: all numbers of all texts take eight times as much memory as what is read, again and again.
    at_once = 1 + _ROW // len(members)
    values = np.empty((len(cluster.changing), len(rows)), dtype=np.int64)
    for at in range(0, len(values), at_once):
        some = slice(at, at + at_once)
        base = np.array([int(numbers[column]) for column in cluster.changing[some]], dtype=np.int64)
        scales = np.array(cluster.scales[some], dtype=np.int64)
        values[some] = (base[:, None] + np.cumsum(_changed(streams[1:, some]) * scales[:, None], axis=1))[:, rows]
    found, pieces = {}, [skeleton.split(b"0") for skeleton in skeletons]
    for number, row in enumerate(rows):
        changed = zip(cluster.changing, values[:, number].tolist(), streams[0, :, row].tolist(), strict=True)
        for column, value, length in changed:
            numbers[column] = b"%0*d" % (length, value)
        found[members[row]] = list(interleaved(pieces, numbers))
    return found


def _changed(planes: Octets) -> Integers:
    """The differences whose octets are these planes."""
    folded = np.zeros((*planes.shape[1:], 8), dtype=np.uint8)
    folded[:, :, : len(planes)] = np.moveaxis(planes, 0, -1)
    unsigned = folded.view("<u8").reshape(planes.shape[1:])
    return (unsigned >> np.uint64(1)).astype(np.int64) ^ -(unsigned & np.uint64(1)).astype(np.int64)


def interleaved(skeletons: Sequence[list[bytes]], numbers: Sequence[bytes]) -> Iterator[bytes]:
    at = 0
    for pieces in skeletons:
        count = len(pieces) - 1
        whole = [b""] * (2 * count + 1)
        whole[::2], whole[1::2] = pieces, numbers[at : at + count]
        at += count
        yield b"".join(whole)
