"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from hugeplan.lint.model import FileReport, Severity


def as_text(reports: Sequence[FileReport]) -> str:
    """Each file: what it is, what it will do, what is wrong, the rule, the fix; the totals last."""
    lines: list[str] = []
    for report in reports:
        if report.unreadable is not None:
            lines += [f"{report.source.name}: {report.unreadable}", ""]
            continue
        for reading in report.readings:
            lines.append(f"{report.source.name}: {reading.title}")
            lines += [f"  does: {effect}" for effect in reading.effects]
        for problem in report.problems:
            line = report.line_of(problem.position)
            lines += [
                f"  {report.source.name}:{line}: {problem.rule.severity}: {problem.message} [{problem.rule.id}]",
                f"      rule: {problem.rule.sentence} ({problem.rule.source})",
                f"      fix:  {problem.fix}" + (" (--fix writes it)" if problem.edits else ""),
            ]
        if not report.problems:
            lines.append("  ok: no rule is broken")
        lines.append("")
    lines.append(_totals(reports))
    return "\n".join(lines) + "\n"


def _totals(reports: Sequence[FileReport]) -> str:
    count = {s: sum(p.rule.severity is s for r in reports for p in r.problems) for s in Severity}
    unreadable = sum(report.unreadable is not None for report in reports)
    files = f"{len(reports)} file{'' if len(reports) == 1 else 's'}"
    text = f"{files}: {count[Severity.WRONG]} wrong, {count[Severity.ATTENTION]} for attention"
    text += f", {unreadable} not read" if unreadable else ""
    return text + ("; hugeplan explain RULE says what a rule means" if any(count.values()) else "")
