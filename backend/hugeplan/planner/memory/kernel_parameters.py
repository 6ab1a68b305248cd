"""Huge page words of a kernel command line, as a finding reads them: pools of the next boot, and what is ignored.

The replay itself, by kernel version, is in :mod:`kernel_replay`; the linter has its rules and fixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hugeplan.planner.memory.kernel_replay import Verdict, replay
from hugeplan.planner.memory.kernel_words import words_of

_REASONS: Final[Mapping[Verdict, str]] = {
    Verdict.AFTER_DASHES: "it is after --, where the kernel does not read",
    Verdict.DROPPED_LIMIT: "Linux 6.15 and later keep a limited number of these words",
    Verdict.NO_VALUE: "it has no value",
    Verdict.SIZE_UNSUPPORTED: "the processor or kernel does not have this size",
    Verdict.SIZE_TWICE: "this size is given twice",
    Verdict.DEFAULT_TWICE: "default_hugepagesz= is given twice",
    Verdict.COUNT_WITHOUT_SIZE: "the size before it was ignored",
    Verdict.COUNT_TWICE: "a second hugepages= without a size between them",
    Verdict.COUNT_INVALID: "not a count, or a NUMA node that is not there, or plain and per-node counts mixed",
    Verdict.COUNT_CUT: "not a plain count: the kernel reads only the digits in front",
    Verdict.COUNT_OVERRULED: "a hugepages= before any size already set the default size's count, and it wins",
    Verdict.CMA_SKIPS_BOOT: "hugetlb_cma= is set, so gigantic pages are not reserved at boot",
    Verdict.GIGANTIC_TOO_LATE: "before Linux 5.8 gigantic pages need a hugepagesz= of their own in front",
}


@dataclass(frozen=True, slots=True)
class Ignored:
    """A word that the kernel drops or reads otherwise than written, and why."""

    word: str
    reason: str


@dataclass(frozen=True, slots=True)
class BootPools:
    """What the kernel reserves at boot: size -> node -> pages (node None: spread over all nodes)."""

    default_page_bytes: int
    pools: Mapping[int, Mapping[int | None, int]]
    ignored: tuple[Ignored, ...]


def boot_pools(
    command_line: str,
    sizes: Sequence[int],
    default_page_bytes: int,
    nodes: Sequence[int] = (0,),
    *,
    kernel_release: str | None = None,
    arch: str = "x86_64",
) -> BootPools:
    """The pools that a command line reserves on a machine with these huge page sizes, default size and NUMA nodes.

    ``kernel_release`` such as ``5.14.0-427.el9``; None is read as the newest kernel.
    """
    boot = replay(
        words_of(command_line),
        sizes=sizes,
        pmd_bytes=default_page_bytes,
        version=kernel_version(kernel_release),
        arch=arch,
        online=nodes,
    )
    ignored = [Ignored(s.word.text, _REASONS[s.verdict]) for s in boot.steps if s.verdict is not Verdict.TAKEN]
    return BootPools(boot.default_page_bytes, boot.pools, tuple(ignored))


def after_writes(
    held: Mapping[int | None, int], writes: Iterable[tuple[int | None, int]], nodes: Sequence[int]
) -> dict[int | None, int]:
    """Pages by NUMA node once counts are written, each for one node or (None) for all of ``nodes``, which have memory.

    Under None: pages of all nodes that have no count of their own; which one has how many is not certain. What stands
    stays: a total adds or frees the difference in turn over the nodes, of which any may be the first. At boot it is
    not certain at all: newer kernels reserve by several threads, and each gives its odd page to the first node.
    Source: mm/hugetlb.c set_max_huge_pages(), hugetlb_pages_alloc_boot_node().
    """
    now, with_memory = dict(held), set(nodes)
    if now.get(None) == 0:
        del now[None]
        now = {**dict.fromkeys(nodes, 0), **now}
    for numa_node, pages in writes:
        if numa_node is None:
            now = _after_total(now, pages, nodes)
        elif numa_node in with_memory:
            open_nodes = len(with_memory.difference(now)) if None in now and numa_node not in now else 0
            if open_nodes:
                now[None] -= now[None] // open_nodes
            if open_nodes == 1:
                del now[None]
            now[numa_node] = pages
    return now


def _after_total(held: Mapping[int | None, int], pages: int, nodes: Sequence[int]) -> dict[int | None, int]:
    now = dict(held)
    if len(nodes) == 1 or not pages:
        return dict.fromkeys(nodes, pages)
    if None in now:  # how many pages stand is not certain, so neither is what is added or freed
        return {None: pages}
    left = pages - sum(now.values())
    while left:
        among = [node for node in nodes if left > 0 or now.get(node)]
        each = min([abs(left) // len(among), *(now[node] for node in among if left < 0)])
        if not each:
            return {None: pages}
        each *= 1 if left > 0 else -1
        now |= {node: now.get(node, 0) + each for node in among}
        left -= each * len(among)
    return now


def kernel_version(release: str | None) -> tuple[int, int] | None:
    """``5.14.0-427.el9`` as (5, 14); None where there is no release or it does not begin with a version."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})", release or "", re.ASCII)
    return None if found is None else (int(found[1]), int(found[2]))
