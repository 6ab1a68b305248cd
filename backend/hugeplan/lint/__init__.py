"""The linter: what files about huge pages will really do, what is wrong with them, and the fixed file.

Pure: text in, data out. It reads nothing from disk and knows neither web nor database.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from hugeplan.lint.detect import read_source
from hugeplan.lint.engines_beside import BARE, MISSING, asks_for_pages, wanted
from hugeplan.lint.kinds.resources import NO_LIMIT
from hugeplan.lint.model import (
    Context,
    Edit,
    EngineFact,
    FileReport,
    LimitFact,
    Notes,
    Problem,
    Reading,
    Rule,
    Severity,
    Source,
)
from hugeplan.lint.pools_beside import boot_name, hugetlb_pool_bytes
from hugeplan.lint.together import default_size, together
from hugeplan.planner.units import format_bytes

_PASSES = 6

__all__ = ["Context", "FileReport", "Problem", "Reading", "Rule", "Severity", "Source", "lint"]


def lint(sources: Sequence[Source], context: Context | None = None) -> tuple[FileReport, ...]:
    """A report per file, in order. Files are also checked against each other."""
    where = Context() if context is None else context
    reports = _once(sources, where)
    ends = _fixed(sources, reports, where)
    where = default_size([end.readings for end in ends], where)
    return tuple(_weighed(report, end, where) for report, end in zip(reports, ends, strict=True))


def _weighed(report: FileReport, end: FileReport, context: Context) -> FileReport:
    """With the text of ``end``. The fixes say how much more it asks for, and are none where it breaks something new."""
    if report.source.text == end.source.text:
        return report
    before, after = (_asked_bytes(one.readings, context) for one in (report, end))
    known = {problem.rule.id for problem in report.problems}
    new = {problem.rule.id for problem in end.problems if problem.rule.severity is Severity.WRONG} - known
    if sum(after) > sum(before) and max(after) >= (context.mem_total_bytes or math.inf):
        new.add("memory")
    said = f" The file then asks for {format_bytes(max(after))} of huge pages, not for {format_bytes(max(before))}."
    said *= 20 * max(after) > 21 * max(before)
    said += f" --fix does not write it, because of {', '.join(sorted(new))}." * bool(new)
    edited = [
        [replace(p, fix=p.fix + said, edits=p.edits * (not new)) if p.edits else p for p in r.problems]
        for r in report.readings
    ]
    readings = tuple(replace(r, problems=tuple(p)) for r, p in zip(report.readings, edited, strict=True))
    return replace(report, readings=readings, fixed_text=None if new else end.source.text)


def _asked_bytes(readings: Sequence[Reading], context: Context) -> list[int]:
    """Bytes of huge pages that a file asks for: for its pools, for each engine and for each limit."""
    facts = [fact for reading in readings for fact in reading.facts]
    engines = [wanted(f, BARE, context) for f in facts if isinstance(f, EngineFact) and asks_for_pages(f)]
    limits = [sum(count for _, count in f.hugepages) for f in facts if isinstance(f, LimitFact)]
    pools = hugetlb_pool_bytes([""], [readings], [Notes()], context).values()
    return [sum(pools), *limits, *(size * demand.pages for size, demand in filter(None, engines))]


def _once(sources: Sequence[Source], context: Context) -> list[FileReport]:
    read = _read(sources, context)
    named = default_size([readings for readings, _ in read], context)
    if named is not context and len(sources) > 1:
        # A command line among the files says what the default size is, which the counts of the others are of.
        context, read = named, _read(sources, named)
    across = together([source.name for source in sources], [readings for readings, _ in read], context)
    reports = []
    for source, (readings, unreadable), more in zip(sources, read, across, strict=True):
        if more and readings:
            missing = {(one.subject, one.position) for one in more if one.rule is MISSING}
            readings = tuple(_without_smaller_limits(reading, missing) for reading in readings)  # noqa: PLW2901
            readings = (replace(readings[0], problems=(*readings[0].problems, *more)), *readings[1:])  # noqa: PLW2901
        reports.append(FileReport(source=source, readings=readings, unreadable=unreadable))
    return reports


def _without_smaller_limits(reading: Reading, missing: Collection[tuple[str, int]]) -> Reading:
    """Without the fix that writes a request's size as its limit where an engine beside it needs a larger one.

    ``missing``: name and place of the containers of which that is said.
    """
    small = {
        position
        for fact in reading.facts
        if isinstance(fact, LimitFact) and (fact.name, fact.position) in missing
        for _, _, position in fact.only_requested
    }
    kept = (one for one in reading.problems if one.rule is not NO_LIMIT or one.position not in small)
    return replace(reading, problems=tuple(kept)) if small else reading


def _read(sources: Sequence[Source], context: Context) -> list[tuple[tuple[Reading, ...], str | None]]:
    """The parts of each file, or why it cannot be read."""
    read: dict[int, tuple[tuple[Reading, ...], str | None]] = {}
    context = replace(context, tmpfiles={})
    for i, source in sorted(enumerate(sources), key=lambda one: boot_name(one[1].name)):
        try:
            read[i] = (read_source(source, context), None)
        except ValueError as error:
            read[i] = ((), str(error))
    return [read[i] for i in range(len(sources))]


def _fixed(sources: Sequence[Source], reports: Sequence[FileReport], context: Context) -> Sequence[FileReport]:
    """With all edits made; a fix may uncover the next problem, so it is repeated until nothing changes."""
    for _ in range(_PASSES):
        changed = [apply_edits(one.source.text, one.problems) for one in reports]
        if changed == [one.source.text for one in reports]:
            break
        reports = _once([Source(s.name, t) for s, t in zip(sources, changed, strict=True)], context)
    return reports


def apply_edits(text: str, problems: Sequence[Problem]) -> str:
    """``text`` with the edits of all problems; a problem whose edits meet those of an earlier one waits."""
    taken = _Taken(len(text))
    done: set[tuple[Edit, ...]] = set()
    for problem in problems:
        if not problem.edits or problem.edits in done:
            continue
        if any(taken.meets(edit) for edit in problem.edits):
            continue
        done.add(problem.edits)
        for edit in problem.edits:
            taken.add(edit)
    parts, end = [], 0
    for edit in sorted(taken.edits, key=lambda e: (e.start, e.end)):
        parts += [text[end : edit.start], edit.text]
        end = max(end, edit.end)
    return "".join([*parts, text[end:]])


class _Taken:
    """Edits that are made, and the places that they take: thousands of problems are compared with all before them."""

    def __init__(self, characters: int) -> None:
        self.edits: list[Edit] = []
        self._covered = bytearray(characters)
        self._starts: set[int] = set()
        self._insertions: set[int] = set()

    def add(self, edit: Edit) -> None:
        """Make an edit."""
        self.edits.append(edit)
        self._starts.add(edit.start)
        if edit.start == edit.end:
            self._insertions.add(edit.start)
        self._covered[edit.start : edit.end] = b"\1" * (edit.end - edit.start)

    def meets(self, edit: Edit) -> bool:
        """Whether it takes a place of one that is made; an insertion, whether it is where one begins."""
        if edit.start == edit.end:
            return edit.start in self._starts
        return edit.start in self._insertions or self._covered.find(1, edit.start, edit.end) >= 0
