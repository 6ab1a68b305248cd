"""Files of huge pages below /sys and /proc: whether a path can exist, and which one was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_POOL_FILES: Final = (
    "nr_hugepages", "nr_hugepages_mempolicy", "nr_overcommit_hugepages", "free_hugepages", "resv_hugepages",
    "surplus_hugepages", "demote", "demote_size",
)  # fmt: skip
_THP: Final = "/sys/kernel/mm/transparent_hugepage"
_THP_FILES: Final = ("enabled", "defrag", "shmem_enabled", "use_zero_page", "hpage_pmd_size", "khugepaged")
_SYSCTLS: Final = (
    "nr_hugepages", "nr_overcommit_hugepages", "nr_hugepages_mempolicy", "hugetlb_shm_group",
    "hugetlb_optimize_vmemmap",
)  # fmt: skip
#: Paths about huge pages in any text; RHEL 6 had a folder of its own.
_PATH: Final = re.compile(r"/(?:sys/kernel/mm|sys/devices/system/node|proc/sys/vm)/[\w./-]{0,120}?huge[\w./-]{0,120}")


#: Words that a file of transparent huge pages takes.
THP_WORDS: Final = {
    f"{_THP}/enabled": ("always", "madvise", "never"),
    f"{_THP}/defrag": ("always", "defer", "defer+madvise", "madvise", "never"),
}
_ECHO: Final = re.compile(
    rf"echo[ \t]+(?:-n[ \t]+)?([\"']?)(?P<word>[^\s\"'>]+)\1[ \t]*>[ \t]*(?P<path>{_THP}/[a-z_]{{1,20}})"
)


class WrongPath(NamedTuple):
    """A path that no kernel has, where it stands, and the one that was meant; None where that cannot be told."""

    path: str
    start: int
    meant: str | None


def wrong_paths(text: str) -> Iterator[WrongPath]:
    """Each path of ``text`` that cannot exist. The folder of a size is left to those who know the machine."""
    for found in _PATH.finditer(text):
        path = found[0].rstrip("./")
        if "redhat_transparent" in path:
            yield WrongPath(path, found.start(), path.replace("redhat_transparent", "transparent"))
            continue
        if not (known := _known(path)) or path in known:
            continue
        near = next(iter(difflib.get_close_matches(path, known, n=1, cutoff=0.8)), None)
        yield WrongPath(path, found.start(), near)


class WrongWord(NamedTuple):
    """A word that a file of transparent huge pages refuses, where it stands, its file, and the one that was meant."""

    word: str
    start: int
    path: str
    meant: str | None


def wrong_words(text: str) -> Iterator[WrongWord]:
    """Each word that a command of ``text`` writes into a file of transparent huge pages and that the kernel refuses."""
    for found in _ECHO.finditer(text):
        words = THP_WORDS.get(found["path"], ())
        word = found["word"]
        if words and word not in words and "$" not in word:
            yield WrongWord(word, found.start("word"), found["path"], thp_word(word, words))


def thp_word(word: str, words: tuple[str, ...]) -> str | None:
    """The word of a switch of transparent huge pages that was meant; None where it cannot be told."""
    plain = {"off": "never", "0": "never", "no": "never", "none": "never", "on": "always", "1": "always"}.get(
        word.lower(), word.lower()
    )
    return plain if plain in words else next(iter(difflib.get_close_matches(plain, words, n=1)), None)


def _known(path: str) -> tuple[str, ...]:
    """All paths that this one may stand for; empty where it is right as far as can be told."""
    if path.startswith("/proc/"):
        return tuple(f"/proc/sys/vm/{name}" for name in _SYSCTLS)
    if "transparent" in path:
        if re.match(rf"{_THP}/(?:khugepaged|hugepages-\d+kB)(?:/|$)", path):
            return ()
        return tuple(f"{_THP}/{name}" for name in _THP_FILES)
    pool = re.match(r"(/sys/(?:kernel/mm|devices/system/node/node\d+)/hugepages/[^/]+)/", path)
    if pool is not None:
        return tuple(f"{pool[1]}/{name}" for name in _POOL_FILES)
    return ()
