"""Huge page words of a kernel command line, read in the order and with the rules of mm/hugetlb.c (Linux 6.x).

``hugepagesz=`` names the size of the ``hugepages=`` that follows. A ``hugepages=`` before any size means the default
size and beats a later count for it. A second ``hugepages=`` in a row, a size given twice, an unsupported size and
its count, an unknown NUMA node, and a mix of plain and per-node counts are ignored with a line in the kernel log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hugeplan.planner.errors import UnitError
from hugeplan.planner.units import parse_page_size


@dataclass(frozen=True, slots=True)
class Ignored:
    """A word that the kernel drops, and why."""

    word: str
    reason: str


@dataclass(frozen=True, slots=True)
class BootPools:
    """What the kernel reserves at boot: size -> node -> pages (node None: spread over all nodes)."""

    default_page_bytes: int
    pools: Mapping[int, Mapping[int | None, int]]
    ignored: tuple[Ignored, ...]


@dataclass(slots=True)
class _Parser:
    sizes: Sequence[int]
    nodes: Sequence[int]
    default_bytes: int
    pools: dict[int, dict[int | None, int]] = field(default_factory=dict)
    ignored: list[Ignored] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    first_counts: dict[int | None, int] | None = None
    current: int | None = None
    valid: bool = True
    last_target: object = None
    default_given: bool = False

    def default_hugepagesz(self, word: str, value: str) -> None:
        self.valid = False
        if self.default_given:
            self.drop(word, "default_hugepagesz= is given twice")
            return
        size = self.size_of(value)
        if size is None:
            self.drop(word, "the processor or kernel does not have this size")
            return
        self.default_given, self.valid = True, True
        self.default_bytes = self.current = size
        if size not in self.known:
            self.known.append(size)
        if self.first_counts is not None:
            self.pools[size] = self.first_counts
            self.first_counts = None

    def hugepagesz(self, word: str, value: str) -> None:
        self.valid = False
        size = self.size_of(value)
        if size is None:
            self.drop(word, "the processor or kernel does not have this size")
            return
        if size in self.known:
            is_empty_default = self.default_given and size == self.default_bytes and size not in self.pools
            if not is_empty_default:
                self.drop(word, "this size is given twice")
                return
        else:
            self.known.append(size)
        self.current, self.valid = size, True

    def hugepages(self, word: str, value: str) -> None:
        if not self.valid:
            self.drop(word, "the size before it was ignored")
            self.valid = True
            return
        target: object = self.current if self.known else "default"
        if target == self.last_target:
            self.drop(word, "a second hugepages= without a size between them")
            return
        counts = self.counts_of(value)
        if counts is None:
            self.drop(word, "not a count, or a NUMA node that is not there, or plain and per-node counts mixed")
            return
        if self.known:
            assert self.current is not None
            self.pools[self.current] = counts
        else:
            self.first_counts = counts
        self.last_target = target

    def size_of(self, value: str) -> int | None:
        try:
            size = parse_page_size(value, "hugepagesz")
        except UnitError:
            return None
        return size if size in self.sizes else None

    def counts_of(self, value: str) -> dict[int | None, int] | None:
        if value.isdecimal():
            return {None: int(value)}
        counts: dict[int | None, int] = {}
        for part in value.split(","):
            node, separator, count = part.partition(":")
            if not separator or not node.isdecimal() or not count.isdecimal() or int(node) not in self.nodes:
                return None
            counts[int(node)] = int(count)
        return counts

    def drop(self, word: str, reason: str) -> None:
        self.ignored.append(Ignored(word, reason))

    def finish(self) -> None:
        """The kernel's default size takes a leading hugepages=, over any later count."""
        if self.first_counts is None:
            return
        later = self.pools.get(self.default_bytes)
        if later is not None:
            words = f"hugepages={_written(later)}"
            self.drop(words, "a hugepages= before any size already set the default size's count, and it wins")
        self.pools[self.default_bytes] = self.first_counts


def _written(counts: Mapping[int | None, int]) -> str:
    return ",".join(str(count) if node is None else f"{node}:{count}" for node, count in counts.items())


def boot_pools(
    command_line: str, sizes: Sequence[int], default_page_bytes: int, nodes: Sequence[int] = (0,)
) -> BootPools:
    """The pools that a command line reserves on a machine with these huge page sizes, default size and NUMA nodes."""
    parser = _Parser(sizes=sizes, nodes=nodes, default_bytes=default_page_bytes)
    actions = {
        "default_hugepagesz": parser.default_hugepagesz,
        "hugepagesz": parser.hugepagesz,
        "hugepages": parser.hugepages,
    }
    for word in command_line.split():
        name, _, value = word.partition("=")
        if name in actions:
            actions[name](word, value)
    parser.finish()
    return BootPools(parser.default_bytes, parser.pools, tuple(parser.ignored))
