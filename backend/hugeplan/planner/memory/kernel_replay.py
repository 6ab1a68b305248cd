"""What the kernel will really reserve: the huge page words of a command line, replayed by kernel version.

Three parsers exist (mm/hugetlb.c; hugepages_setup, hugepagesz_setup, default_hugepagesz_setup, hugetlb_init):

* before 5.8, ``default_hugepagesz=`` only names a size, and a size given twice leaves the previous one current;
* 5.8 to 5.15 reject a size given twice; ``hugepages=`` is one number, of which leading digits count;
* since 5.16 ``hugepages=`` also takes ``node:count`` pairs; an invalid list sets the count to 0;
* since 6.15 at most 2 * HUGE_MAX_HSTATE + 1 of these words are kept, five on x86-64, and later ones are dropped.

The state below has the names of the kernel's own variables, so that the two can be read side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from hugeplan.planner.memory.kernel_words import InvalidCountsError, Word, memparse, scan_count, scan_counts

#: HUGE_MAX_HSTATE by architecture (arch/*/include/asm/hugetlb.h and page.h).
MAX_HSTATES: Final[Mapping[str, int]] = {"x86_64": 2, "aarch64": 4, "ppc64le": 15, "riscv64": 3, "s390x": 2}
NEWEST: Final = (6, 18)
HUGETLB_NAMES: Final = frozenset({"hugepages", "hugepagesz", "default_hugepagesz"})


class Verdict(StrEnum):
    """What became of one word."""

    TAKEN = "taken"
    AFTER_DASHES = "after_dashes"
    DROPPED_LIMIT = "dropped_limit"
    NO_VALUE = "no_value"
    SIZE_UNSUPPORTED = "size_unsupported"
    SIZE_TWICE = "size_twice"
    DEFAULT_TWICE = "default_twice"
    COUNT_WITHOUT_SIZE = "count_without_size"
    COUNT_TWICE = "count_twice"
    COUNT_INVALID = "count_invalid"
    COUNT_OVERRULED = "count_overruled"
    COUNT_CUT = "count_cut"
    CMA_SKIPS_BOOT = "cma_skips_boot"
    GIGANTIC_TOO_LATE = "gigantic_too_late"


@dataclass(slots=True)
class Step:
    """One huge page word, what became of it, and the page size its count went to (None: the default size)."""

    word: Word
    verdict: Verdict = Verdict.TAKEN
    target_bytes: int | None = None
    pages: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Boot:
    """Pools after boot: page size -> NUMA node -> pages, node None for pages that the kernel spreads.

    The counts are what is asked for: a node short of memory gets fewer.
    """

    default_page_bytes: int
    pools: Mapping[int, Mapping[int | None, int]]
    steps: tuple[Step, ...]


@dataclass(slots=True)
class _Hstate:
    size: int
    max_huge_pages: int = 0
    node: dict[int, int] = field(default_factory=dict)
    last: Step | None = None


@dataclass(slots=True)
class _Kernel:
    """The static variables of mm/hugetlb.c during boot."""

    version: tuple[int, int]
    sizes: Sequence[int]
    pmd_bytes: int
    gigantic_from_bytes: int
    online: Sequence[int] | None
    hstates: dict[int, _Hstate] = field(default_factory=dict)
    parsed_hstate: _Hstate | None = None
    parsed_valid_hugepagesz: bool = True
    parsed_default: int | None = None
    default_max: int = 0
    default_node: dict[int, int] = field(default_factory=dict)
    default_step: Step | None = None
    last_mhp: object = None
    cma_bytes: int = 0
    cma_only: bool = False

    def add_hstate(self, size: int) -> _Hstate:
        """hugetlb_add_hstate: a new size becomes the current one, a known size changes nothing."""
        if size not in self.hstates:
            self.hstates[size] = self.parsed_hstate = _Hstate(size)
        return self.hstates[size]

    def supported(self, value: str) -> int | None:
        size = memparse(value)
        return size if size in self.sizes else None

    # --- the three handlers ---------------------------------------------------------------------

    def hugepagesz(self, step: Step, value: str) -> None:
        new = self.version >= (5, 8)
        if new:
            self.parsed_valid_hugepagesz = False
        size = self.supported(value)
        if size is None:
            step.verdict = Verdict.SIZE_UNSUPPORTED
            self.parsed_valid_hugepagesz = False
            return
        step.target_bytes = size
        known = self.hstates.get(size)
        if known is not None:
            is_empty_default = size == self.parsed_default and not known.max_huge_pages
            if not new or not is_empty_default:
                step.verdict = Verdict.SIZE_TWICE
                return
            self.parsed_hstate = known
        else:
            self.add_hstate(size)
        if new:
            self.parsed_valid_hugepagesz = True

    def default_hugepagesz(self, step: Step, value: str) -> None:
        if self.version < (5, 8):
            self.parsed_default = memparse(value)  # checked at the end of boot only
            step.target_bytes = self.parsed_default
            return
        self.parsed_valid_hugepagesz = False
        if self.parsed_default is not None:
            step.verdict = Verdict.DEFAULT_TWICE
            return
        size = self.supported(value)
        if size is None:
            step.verdict = Verdict.SIZE_UNSUPPORTED
            return
        step.target_bytes = size
        state = self.add_hstate(size)
        self.parsed_valid_hugepagesz = True
        self.parsed_default = size
        if self.default_max and self.default_step is not None:
            if state.max_huge_pages and state.last is not None:
                state.last.verdict = Verdict.COUNT_OVERRULED
            state.max_huge_pages, state.node = self.default_max, dict(self.default_node)
            state.last = self.default_step
            self.default_step.target_bytes = size
            self.default_max, self.default_node = 0, {}

    def hugepages(self, step: Step, value: str) -> None:
        if not self.parsed_valid_hugepagesz:
            step.verdict = Verdict.COUNT_WITHOUT_SIZE
            self.parsed_valid_hugepagesz = True
            return
        target = self.parsed_hstate if self.hstates else None
        key: object = "default" if target is None else target.size
        if key == self.last_mhp:
            step.verdict = Verdict.COUNT_TWICE
            return
        step.target_bytes = None if target is None else target.size
        counts = self.counts_of(step, value)
        if counts is None:
            self.store(target, 0, {}, step)
            return
        plain, by_node = counts
        if by_node is not None:
            present = self.default_max if target is None else target.max_huge_pages
            self.store(target, present + sum(by_node.values()), by_node, step)
        elif plain is not None:
            self.store(target, plain, None, step)
        self.last_mhp = key

    def store(self, target: _Hstate | None, pages: int, by_node: dict[int, int] | None, step: Step) -> None:
        if target is None:
            self.default_max, self.default_step = pages, step
            if by_node is not None:
                self.default_node = by_node
            return
        if target.last is not None and target.last is not step and target.max_huge_pages:
            target.last.verdict = Verdict.COUNT_OVERRULED
        target.max_huge_pages, target.last = pages, step
        if by_node is not None:
            target.node = by_node

    def counts_of(self, step: Step, value: str) -> tuple[int | None, dict[int, int] | None] | None:
        """(count, None) or (None, counts per node); None for what the kernel calls invalid."""
        if self.version < (5, 16):
            scanned = scan_count(value)
            step.pages = 0 if scanned is None else scanned[0]
            if scanned is None or scanned[1] != len(value):
                step.verdict = Verdict.COUNT_INVALID if scanned is None else Verdict.COUNT_CUT
            return step.pages, None
        try:
            counts = scan_counts(value, self.online)
        except InvalidCountsError as error:
            step.verdict, step.note, step.pages = Verdict.COUNT_INVALID, str(error), 0
            return None
        if counts.rest:
            step.verdict, step.note = Verdict.COUNT_CUT, counts.rest
        if counts.by_node:
            step.pages = sum(counts.by_node.values())
            return None, counts.by_node
        if counts.plain is None:  # ``hugepages=`` without a value leaves the count as it is
            step.verdict = Verdict.NO_VALUE
        step.pages = counts.plain
        return counts.plain, None

    # --- the end of boot ------------------------------------------------------------------------

    def finish(self, steps: list[Step]) -> int:
        """hugetlb_init: the default size, and a leading count that belongs to it."""
        default = self.pmd_bytes
        if self.version < (5, 8):
            wanted = self.parsed_default
            # Runtime gigantic pages add their size before hugetlb_init on kernels built for them.
            if wanted is not None and wanted in self.sizes:
                default = wanted
            elif wanted is not None:
                for step in steps:
                    if step.word.name == "default_hugepagesz":
                        step.verdict = Verdict.SIZE_UNSUPPORTED
        elif self.parsed_default is not None:
            default = self.parsed_default
        state = self.add_hstate(default)
        if self.default_max and self.default_step is not None:
            self.leading_count(state, self.default_step)
        return default

    def leading_count(self, state: _Hstate, step: Step) -> None:
        step.target_bytes = state.size
        if self.version < (5, 8):
            if state.max_huge_pages:
                step.verdict = Verdict.COUNT_OVERRULED
                return
            if state.size >= self.gigantic_from_bytes:
                step.verdict = Verdict.GIGANTIC_TOO_LATE
                return
            state.max_huge_pages = self.default_max
            return
        if state.max_huge_pages and state.last is not None:
            state.last.verdict = Verdict.COUNT_OVERRULED
        state.max_huge_pages, state.node = self.default_max, dict(self.default_node)


def replay(
    words: Sequence[Word],
    *,
    sizes: Sequence[int],
    pmd_bytes: int,
    version: tuple[int, int] | None = None,
    arch: str = "x86_64",
    online: Sequence[int] | None = None,
) -> Boot:
    """The pools that these words reserve on a kernel of ``version`` (None: the newest known).

    ``sizes`` are the huge page sizes of the processor, ``pmd_bytes`` the default one, ``online`` the NUMA nodes (None:
    unknown, any is taken to be online).
    """
    kernel = _Kernel(
        version=NEWEST if version is None else version,
        sizes=sizes,
        pmd_bytes=pmd_bytes,
        gigantic_from_bytes=pmd_bytes * 2 if pmd_bytes else 0,
        online=online,
    )
    handlers = {
        "hugepagesz": kernel.hugepagesz,
        "default_hugepagesz": kernel.default_hugepagesz,
        "hugepages": kernel.hugepages,
    }
    room = 2 * MAX_HSTATES.get(arch, 1) + 1 if kernel.version >= (6, 15) else None
    steps: list[Step] = []
    ended = False
    for word in words:
        if word.name == "--":
            ended = True
        elif word.name == "hugetlb_cma" and word.value and not ended:
            kernel.cma_bytes = _cma_bytes(word.value, kernel.version)
        elif word.name == "hugetlb_cma_only" and not ended:
            kernel.cma_only = kernel.version >= (6, 15) and word.value in {"1", "y", "Y", "on", "true"}
        elif word.name in HUGETLB_NAMES:
            step = Step(word)
            steps.append(step)
            if ended:
                step.verdict = Verdict.AFTER_DASHES
            elif word.value is None:
                step.verdict = Verdict.NO_VALUE
            elif room == 0:
                step.verdict = Verdict.DROPPED_LIMIT
            else:
                room = None if room is None else room - 1
                handlers[word.name](step, word.value)
    default = kernel.finish(steps)
    return Boot(default, _pools(kernel, steps), tuple(steps))


def _pools(kernel: _Kernel, steps: Sequence[Step]) -> dict[int, dict[int | None, int]]:
    pools: dict[int, dict[int | None, int]] = {}
    for size, state in sorted(kernel.hstates.items()):
        skips = kernel.cma_bytes and not kernel.cma_only
        if skips and size >= kernel.gigantic_from_bytes and state.max_huge_pages:
            for step in steps:
                if step.word.name == "hugepages" and step.target_bytes == size and step.verdict is Verdict.TAKEN:
                    step.verdict = Verdict.CMA_SKIPS_BOOT
            continue
        by_node = {node: pages for node, pages in state.node.items() if pages}
        if by_node:
            pools[size] = dict(sorted(by_node.items()))
        elif state.max_huge_pages:
            pools[size] = {None: state.max_huge_pages}
    return pools


def _cma_bytes(value: str, version: tuple[int, int]) -> int:
    """Bytes that hugetlb_cma= asks for; sizes per node are read since Linux 5.16, before only the leading size is."""
    if version < (5, 16):
        return memparse(value)
    total = 0
    for part in value.split(","):
        _, separator, size = part.partition(":")
        total += memparse(size if separator else part)
    return total
