"""tmpfiles.d lines that write huge page counts into /sys or /proc."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeVar

from hugeplan.lint.kinds.lines import Line, lines_of, matches
from hugeplan.lint.kinds.sysctl import SHRUNK, count_of
from hugeplan.lint.kinds.sysctl import TWICE as TWICE_SET
from hugeplan.lint.kinds.sysfs_paths import THP_WORDS, thp_word
from hugeplan.lint.model import Context, Edit, Notes, PoolFact, Reading, Source, attention, wrong
from hugeplan.planner.memory.kernel_words import memparse
from hugeplan.planner.pages import counted_pages, page_label, sysfs_directory_name
from hugeplan.planner.units import format_bytes

KIND: Final = "tmpfiles"
_MAN: Final = "tmpfiles.d(5)"

TYPE: Final = wrong(
    "tmpfiles-type", "Only w, w+, f+ and F write to a file that exists; other types do not touch /sys.", _MAN
)
FIELDS: Final = wrong(
    "tmpfiles-argument", "The value is the seventh field: type path mode user group age argument.", _MAN
)
DIRECTORY: Final = wrong(
    "tmpfiles-size-directory",
    "A pool's directory is hugepages-<kB>kB, such as hugepages-2048kB or hugepages-1048576kB.",
    "Documentation/admin-guide/mm/hugetlbpage.rst",
)
READ_ONLY: Final = wrong(
    "tmpfiles-read-only",
    "Of a pool's files only nr_hugepages and nr_overcommit_hugepages set its size.",
    "Documentation/admin-guide/mm/hugetlbpage.rst",
)
COUNT: Final = wrong(
    "tmpfiles-not-a-count",
    "nr_hugepages in /sys takes a decimal number of pages.",
    "mm/hugetlb.c nr_hugepages_store(): kstrtoul",
)
NODE: Final = wrong(
    "tmpfiles-node-offline",
    "A NUMA node that is not online has no directory, so nothing is written.",
    "Documentation/admin-guide/mm/hugetlbpage.rst",
)
THP: Final = wrong(
    "tmpfiles-thp-value",
    "A switch of transparent huge pages takes one of the words that the file shows; the kernel refuses others.",
    "Documentation/admin-guide/mm/transhuge.rst",
)
PATH: Final = wrong(
    "tmpfiles-no-such-path",
    "systemd-tmpfiles writes to files that exist; the folder is transparent_hugepage.",
    "Documentation/admin-guide/mm/transhuge.rst",
)
TWICE: Final = wrong(
    "tmpfiles-path-twice",
    "systemd-tmpfiles takes the first line of a path over all files in the order of their names, and ignores others; "
    "of lines that are all w+ it takes each.",
    _MAN,
)
BOTH: Final = attention(
    "tmpfiles-node-and-total",
    "A total keeps what stands, and adds or frees the difference over the NUMA nodes in turn: beside it no count per "
    "node is sure.",
    "mm/hugetlb.c set_max_huge_pages()",
)
_PATH: Final = re.compile(
    r"/sys/(?:devices/system/node/node(?P<node>\d+)|kernel/mm)/hugepages/(?P<dir>[^/]+)/(?P<file>\w+)$"
)
_COUNTS: Final = ("nr_hugepages", "nr_hugepages_mempolicy")
_POOLS: Final = ("/proc/sys/vm/nr_hugepages", "/proc/sys/vm/nr_hugepages_mempolicy")
_SYSCTLS: Final = (*_POOLS, "/proc/sys/vm/nr_overcommit_hugepages")
_WRITES: Final = re.compile(r"w[+!\-=~^$]*|f[!\-=~^$]*\+[+!\-=~^$]*|F[!\-=~^$]*")
_FINDS, _OWNS = "wxXrRem", "wfFdDeQqvpLcbCxXrR"
"""Types whose path is a pattern, in a table of its own; and of those that own a path, the first line counts."""
_FILE = TypeVar("_FILE")
_LINE: Final = re.compile(r"^[a-zA-Z][+!\-=~^$]*+[ \t]++/\S", re.M)


def detects(source: Source) -> bool:
    """Lines of a type letter and a path, at least one of them about huge pages."""
    return bool(_LINE.search(source.text)) and "huge" in source.text


def read(source: Source, context: Context) -> Reading:
    """The counts that systemd-tmpfiles writes at boot."""
    notes = Notes()
    own: dict[tuple[bool, str], Notes] = {}
    for line in lines_of(source.text):
        fields = line.text.split(None, 6)
        if line.is_comment or len(fields) < 2:
            continue
        kind, argument = fields[0], fields[6] if len(fields) == 7 and fields[6] != "-" else ""
        # systemd-tmpfiles reads //, /./, a last / and quotes around a path as this does.
        path = re.sub(r"/(\.?/)+", "/", fields[1].strip("\"'") + "/").rstrip("/")
        key = (kind[0] in _FINDS, path)
        files = _files(path, context, is_pattern=key[0])
        if not files:
            continue
        owns = kind[0] in _OWNS and (argument or kind[0] != "w")
        adds = kind[0] == "w" and "+" in kind
        turn, is_open = context.tmpfiles.get(key, (len(context.tmpfiles), True))
        if owns and key in context.tmpfiles and not (adds and is_open):
            there = key in own
            said = f"{path} has a line already{'' if there else ' in a file before this one'}; this one is ignored."
            edit = Edit(line.start, line.end + 1 if line.end < len(source.text) else line.end, "")
            notes.problem(TWICE, line.start, path, said, "Keep one line per path.", *((edit,) if there else ()))
            continue
        inner = Notes()
        _one(line, fields, files, inner, context)
        if inner.problems:  # it writes nothing as it is
            inner.facts, inner.effects = [], []
        inner.facts = [
            replace(fact, turn=(key[0], turn)) if isinstance(fact, PoolFact) else fact for fact in inner.facts
        ]
        if owns:
            context.tmpfiles[key] = turn, adds
            _again(line, path, own.get(key), inner)
            own[key] = inner
        notes.take(inner)
    default = context.default_page_bytes or context.pmd_bytes
    pools = {(f.page_bytes or default, f.numa_node is None) for f in notes.facts if isinstance(f, PoolFact)}
    for size in sorted(size for size, is_total in pools if is_total and (size, False) in pools):
        directory = sysfs_directory_name(size)
        said = f"The total and counts per node are both written for {directory}."
        notes.problem(BOTH, 0, directory, said, "Write the counts per node only.")
    return notes.reading(KIND, "tmpfiles.d file")


def written(facts: Iterable[tuple[_FILE, PoolFact]]) -> list[tuple[_FILE, PoolFact]]:
    """What the lines of all files write, in systemd's order: f+ and F first, then by the first line of a path."""
    return sorted(facts, key=lambda one: one[1].turn)


def _again(line: Line, path: str, before: Notes | None, now: Notes) -> None:
    """A second line of a path that writes another count."""
    counts = [{f.pages or 0 for f in one.facts if isinstance(f, PoolFact)} for one in (before or Notes(), now)]
    earlier, later = (max(pages, default=None) for pages in counts)
    if earlier is not None and later is not None and earlier != later:
        said = f"{path} is written again: {later} replaces {earlier}."
        now.problem(SHRUNK if 2 * later <= earlier else TWICE_SET, line.start, path, said, "Keep one line per path.")


def _plain(text: str) -> str:
    """With the escapes read that a count may have."""
    return re.sub(r"\\(?:x([0-9a-fA-F]{2})|n)", lambda found: chr(int(found[1], 16)) if found[1] else "\n", text)


def _files(path: str, context: Context, *, is_pattern: bool) -> list[str]:
    """The files about huge pages that a path names; one with wildcards, the pools that it matches."""
    if not re.search(r"[*?\[{]", path):
        return [path] if "huge" in path else []
    nodes = [f"/sys/devices/system/node/node{node}" for node in context.numa_nodes or (0,)]
    folders = [
        f"{top}/hugepages/{sysfs_directory_name(s)}" for top in ("/sys/kernel/mm", *nodes) for s in context.sizes
    ]
    known = [*_POOLS, *(f"{folder}/nr_hugepages" for folder in folders)]
    return [file for file in known if is_pattern and matches(path, file)]


def _one(line: Line, fields: list[str], files: list[str], notes: Notes, context: Context) -> None:
    kind, path = fields[0], fields[1]
    if not _WRITES.fullmatch(kind):
        said = f"Type {kind} does not write {path}."
        notes.rewrite(TYPE, (line.start, line.start + len(kind)), kind, said, "w", fix="Use type w.")
    found = _PATH.match(files[0])
    if files[0] in _SYSCTLS:
        _sysctl(line, fields, files[0], notes, context)
        return
    if path.startswith("/proc/sys/vm/") or "transparent" in path:
        _thp(line, fields, notes)
        return
    argument = fields[6] if len(fields) == 7 else None
    if argument is None:
        value = next((f for f in fields[2:] if f.isdecimal()), None)
        edits = () if value is None else (Edit(line.start, line.end, f"w {path} - - - - {value}"),)
        said = f"The line has {len(fields)} fields, so it writes nothing."
        fix = f"Write: w {path} - - - - {value or 'COUNT'}"
        notes.problem(FIELDS, line.start, line.text.strip(), said, fix, *edits)
        argument = value
    if found is None:
        if "hugepages" in path:
            said = f"{path} is not a pool's file."
            fix = "Use /sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages."
            notes.problem(DIRECTORY, line.start, path, said, fix)
        return
    if found["file"] not in {*_COUNTS, "nr_overcommit_hugepages", "demote", "demote_size"}:
        at = line.start + line.text.rindex(found["file"])
        said = f"{found['file']} cannot be written."
        fix = "Write nr_hugepages."
        notes.problem(READ_ONLY, line.start, path, said, fix, Edit(at, at + len(found["file"]), "nr_hugepages"))
        return
    if argument is None:
        return
    plain = _plain(argument.strip())
    if not re.fullmatch(r"\+?[0-9]{1,19}\n?", plain):
        digits = re.match(r"\d+", argument)
        at = line.start + line.text.rindex(argument)
        suffix = argument.strip()[len(digits[0]) :].strip() if digits else argument
        edits = (Edit(at, at + len(argument), digits[0]),) if digits and suffix.startswith("#") else ()
        said = f"{argument!r} is refused by the kernel{_NO_COMMENTS if edits else ''}."
        fix = f"Write {edits[0].text}." if edits else "Write a number of pages."
        notes.problem(COUNT, line.start, argument, said, fix, *edits)
        return
    for each in filter(None, map(_PATH.match, files)):
        _pool(line, each, int(plain), notes, context)


def _pool(line: Line, found: re.Match[str], pages: int, notes: Notes, context: Context) -> None:
    """What a count does to the pool of a path, where there is such a pool."""
    node = None if found["node"] is None else int(found["node"])
    if node is not None and context.numa_nodes is not None and node not in context.numa_nodes:
        online = ", ".join(str(one) for one in context.numa_nodes)
        notes.problem(NODE, line.start, found[0], f"NUMA node {node} is not online.", f"Use one of {online}.")
    size = _directory(line, found, notes, context)
    if size is not None and found["file"] in _COUNTS:
        where = "in all NUMA nodes together" if node is None else f"on NUMA node {node}"
        notes.effects.append(f"asks for {counted_pages(pages, size)} ({format_bytes(pages * size)}) {where}")
        notes.facts.append(PoolFact(pages=pages, page_bytes=size, numa_node=node))


_NO_COMMENTS: Final = ": tmpfiles.d has no comments behind a value, so all of it is written"


def _thp(line: Line, fields: list[str], notes: Notes) -> None:
    """The word for a switch of transparent huge pages."""
    words = THP_WORDS.get(fields[1])
    if words is None:
        near_path = next(iter(difflib.get_close_matches(fields[1], THP_WORDS, n=1, cutoff=0.9)), None)
        if near_path is not None:
            at = line.start + line.text.index(fields[1])
            said = f"There is no {fields[1]}, so nothing is written and the mode stays as it is."
            fix = f"Write {near_path}."
            notes.problem(PATH, line.start, fields[1], said, fix, Edit(at, at + len(fields[1]), near_path))
        return
    value = fields[6].strip() if len(fields) == 7 else ""
    if value in words:
        notes.effects.append(f"sets {fields[1].rsplit('/', 1)[1]} of transparent huge pages to {value}")
        return
    if not value:
        notes.problem(FIELDS, line.start, fields[1], "The line has no value, so it writes nothing.", "Write a value.")
        return
    meant = value.split("#", maxsplit=1)[0].strip()  # somebody wrote a comment behind it
    near = thp_word(meant, words)
    at = line.start + line.text.rindex(value)
    said = f"{value!r} is refused by the kernel{_NO_COMMENTS if meant != value else ''}."
    notes.rewrite(THP, (at, at + len(value)), value, said, near, otherwise=f"Write one of {', '.join(words)}.")


def _sysctl(line: Line, fields: list[str], file: str, notes: Notes, context: Context) -> None:
    """A count of the default page size, written where sysctl.d would write it."""
    argument = fields[6].strip() if len(fields) == 7 else ""
    pages = count_of(_plain(argument))
    if pages is None:
        said = f"{argument!r} is refused by the kernel." if argument else "The line has no value, so it writes nothing."
        notes.problem(
            COUNT if argument else FIELDS, line.start, argument or fields[1], said, "Write a number of pages."
        )
    elif file in _POOLS:
        size = context.default_page_bytes or context.pmd_bytes
        notes.effects.append(f"asks for {counted_pages(pages, size)} in all NUMA nodes together")
        notes.facts.append(PoolFact(pages=pages))


def _directory(line: Line, found: re.Match[str], notes: Notes, context: Context) -> int | None:
    name = found["dir"]
    exact = re.fullmatch(r"hugepages-(\d+)kB", name)
    size = int(exact[1]) * 1024 if exact else None
    if size in context.sizes:
        return size
    meant = _size_meant(name)
    at = line.start + line.text.rindex(f"{name}/")
    sizes = ", ".join(f"{sysfs_directory_name(s)} ({page_label(s)})" for s in context.sizes)
    usable = meant if meant in context.sizes else None
    right, said = usable and sysfs_directory_name(usable), f"There is no directory {name} on {context.arch}."
    notes.rewrite(DIRECTORY, (at, at + len(name)), name, said, right or None, otherwise=f"Use one of {sizes}.")
    return usable


def _size_meant(name: str) -> int | None:
    found = re.search(r"([1-9][0-9]*)\s*([kKmMgG]?)", name)
    return None if found is None else memparse(found[1] + found[2])
