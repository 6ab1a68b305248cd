"""The report as one JSON-ready object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hugeplan.lint.model import FileReport, Severity


def as_json(reports: Sequence[FileReport]) -> dict[str, Any]:
    """``{"files": [...], "wrong": n, "attention": n}``; lines count from 1."""
    return {
        "files": [_file(report) for report in reports],
        "wrong": sum(p.rule.severity is Severity.WRONG for r in reports for p in r.problems),
        "attention": sum(p.rule.severity is Severity.ATTENTION for r in reports for p in r.problems),
    }


def _file(report: FileReport) -> dict[str, Any]:
    return {
        "name": report.source.name,
        "unreadable": report.unreadable,
        "parts": [
            {"kind": reading.kind, "title": reading.title, "effects": list(reading.effects)}
            for reading in report.readings
        ],
        "problems": [
            {
                "rule": problem.rule.id,
                "severity": problem.rule.severity.value,
                "line": report.line_of(problem.position),
                "subject": problem.subject,
                "message": problem.message,
                "sentence": problem.rule.sentence,
                "source": problem.rule.source,
                "fix": problem.fix,
                "fixable": bool(problem.edits),
            }
            for problem in report.problems
        ],
        "fixed_text": report.fixed_text,
    }
