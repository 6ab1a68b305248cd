"""The linter: what files about huge pages will really do, what is wrong with them, and the fixed file.

Pure: text in, data out. It reads nothing from disk and knows neither web nor database.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hugeplan.lint.detect import read_source
from hugeplan.lint.engines_beside import MISSING
from hugeplan.lint.kinds.resources import NO_LIMIT
from hugeplan.lint.model import Context, Edit, FileReport, LimitFact, Problem, Reading, Rule, Severity, Source
from hugeplan.lint.together import default_size, together

_PASSES = 6

__all__ = ["Context", "FileReport", "Problem", "Reading", "Rule", "Severity", "Source", "lint"]


def lint(sources: Sequence[Source], context: Context | None = None) -> tuple[FileReport, ...]:
    """A report per file, in order. Files are also checked against each other."""
    where = Context() if context is None else context
    reports = _once(sources, where)
    texts = _fixed(sources, reports, where)
    return tuple(
        replace(report, fixed_text=text) if text != report.source.text else report
        for report, text in zip(reports, texts, strict=True)
    )


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
    read: list[tuple[tuple[Reading, ...], str | None]] = []
    for source in sources:
        try:
            read.append((read_source(source, context), None))
        except ValueError as error:
            read.append(((), str(error)))
    return read


def _fixed(sources: Sequence[Source], reports: Sequence[FileReport], context: Context) -> list[str]:
    """Texts with all edits made; a fix may uncover the next problem, so it is repeated until nothing changes."""
    texts = [source.text for source in sources]
    current = list(reports)
    for _ in range(_PASSES):
        changed = [apply_edits(text, report.problems) for text, report in zip(texts, current, strict=True)]
        if changed == texts:
            break
        texts = changed
        current = _once([Source(s.name, t) for s, t in zip(sources, texts, strict=True)], context)
    return texts


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
    for edit in sorted(taken.edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


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
