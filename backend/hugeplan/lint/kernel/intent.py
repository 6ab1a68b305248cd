"""What the author of a command line most likely meant, written in the order that every kernel understands.

Nothing is guessed where two readings are equal: then there is no fix, and the message says what to decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hugeplan.planner.memory.kernel_replay import HUGETLB_NAMES
from hugeplan.planner.memory.kernel_words import Word, memparse
from hugeplan.planner.model import KIB
from hugeplan.planner.pages import page_label


@dataclass(slots=True)
class _Reader:
    sizes: Sequence[int]
    online: Sequence[int] | None
    default: int | None = None
    current: int | None = None
    bad_size: bool = False
    pairs: dict[int | None, str] = field(default_factory=dict)
    order: list[int | None] = field(default_factory=list)
    lone_sizes: set[int] = field(default_factory=set)
    has_lost_count: bool = False
    #: The default size whose count was written in front of every size.
    led: int | None = None

    def size(self, value: str) -> int | None:
        """A supported size; a bare number is tried as kB, the way sysfs names its directories."""
        size = memparse(value)
        candidates = (size, size * KIB if value.isdecimal() else 0)
        return next((c for c in candidates if c in self.sizes), None)

    def count(self, value: str, size: int | None) -> str | None:
        """The count as the kernel takes it; a size such as ``8G`` becomes pages, offline nodes are left out."""
        if value.isdecimal():
            return str(int(value))
        if re.fullmatch(r"0[xX][0-9a-fA-F]+", value):
            return str(int(value, 16))
        in_bytes = re.fullmatch(r"(\d+)([kKmMgGtT])(?:i?[bB])?", value)
        if in_bytes and size:
            wanted = memparse(in_bytes[1] + in_bytes[2])
            return str(-(-wanted // size))
        parts = [part.partition(":") for part in value.split(",")]
        if any(not s or not n.isdecimal() or not c.isdecimal() for n, s, c in parts):
            return None
        kept = [(n, c) for n, _, c in parts if self.online is None or int(n) in self.online]
        return ",".join(f"{int(n)}:{int(c)}" for n, c in kept) or None


def intended_words(
    words: Sequence[Word], sizes: Sequence[int], online: Sequence[int] | None, pmd_bytes: int
) -> str | None:
    """The huge page words that were meant, in order; None where that cannot be told.

    Of two counts behind one size the one stays that the kernel uses today. ``pmd_bytes`` is the usual default size.
    """
    own = [word for word in words if word.name in HUGETLB_NAMES and word.value]
    reader = _Reader(sizes=sizes, online=online)
    kinds = "".join({"hugepages": "c", "hugepagesz": "s"}.get(word.name, "") for word in own)
    if re.fullmatch(r"s{2,}c{2,}", kinds):
        return None  # a program sorted the words: which count belongs to which size is lost
    if re.fullmatch(r"(cs)+", kinds):
        own = _swapped(own)
    own = _orphans_joined(own)
    for word in own:
        if not _read(reader, word):
            return None
    if reader.has_lost_count and reader.lone_sizes:
        return None  # a count without a size and a size without a count: whether they belong together is open
    if None in reader.pairs and reader.order != [None]:
        # A leading count beats a later one for the default size (hugetlb_init).
        count = reader.pairs.pop(None)
        reader.order = [pmd_bytes, *(size for size in reader.order if size not in {None, pmd_bytes})]
        reader.pairs[pmd_bytes] = count
    return _written(reader)


def _swapped(own: list[Word]) -> list[Word]:
    """Counts written before their sizes, the other way round."""
    rest = [word for word in own if word.name != "default_hugepagesz"]
    turned = [word for i in range(0, len(rest), 2) for word in (rest[i + 1], rest[i])]
    return [*(word for word in own if word.name == "default_hugepagesz"), *turned]


def _orphans_joined(own: list[Word]) -> list[Word]:
    """A second count in a row and the size behind it, which has no count of its own, belong together."""
    found = list(own)
    for i in range(1, len(found) - 1):
        names = [word.name for word in found[i - 1 : i + 3]]
        is_third = i > 1 and found[i - 2].name == "hugepages"
        if names[:3] == ["hugepages", "hugepages", "hugepagesz"] and names[3:] != ["hugepages"] and not is_third:
            found[i], found[i + 1] = found[i + 1], found[i]
    return found


def _read(reader: _Reader, word: Word) -> bool:
    value = word.value or ""
    if word.name == "hugepagesz" and (named := reader.size(value)) is not None:
        reader.lone_sizes.add(named)
    if word.name == "hugepages":
        reader.lone_sizes.discard(reader.current or 0)
        if reader.bad_size:
            reader.bad_size = False
            return value == "0"  # pages that somebody counted on: of which other size is not told
        count = reader.count(value, reader.current)
        if count is None:
            return False
        if reader.current not in reader.pairs:
            reader.pairs[reader.current] = count
            reader.order.append(reader.current)
        else:
            reader.has_lost_count = True
            # Without a size in front of the one, and with it in front of the other: which was meant is not told.
            return reader.current != reader.led or reader.pairs[reader.current] == count
        return True
    size = reader.size(value)
    reader.bad_size = size is None
    if size is not None:
        reader.current = size
        if word.name == "default_hugepagesz" and reader.default is None:
            reader.default = size
            if None in reader.pairs:  # a leading count belongs to the default size
                reader.pairs[size] = reader.pairs.pop(None)
                reader.led = size
                reader.order = [size if s is None else s for s in reader.order]
    return True


def _written(reader: _Reader) -> str | None:
    words = [] if reader.default is None else [f"default_hugepagesz={page_label(reader.default)}"]
    for size in reader.order:
        count = reader.pairs[size]
        if size is None:
            words.insert(0, f"hugepages={count}")
        else:
            words += [f"hugepagesz={page_label(size)}", f"hugepages={count}"]
    return " ".join(words) or None
