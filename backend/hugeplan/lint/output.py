"""Reports as text, as JSON, and as SARIF 2.1.0, which code hosts show beside the lines of a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from hugeplan.lint.model import FileReport, Problem, Severity
from hugeplan.planner.printable import one_line

_LEVEL: Final = {Severity.WRONG: "error", Severity.ATTENTION: "warning"}
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(reports: Sequence[FileReport], version: str) -> dict[str, Any]:
    """One run; the rules that were broken are in its driver."""
    rules = {problem.rule.id: problem.rule for report in reports for problem in report.problems}
    order = sorted(rules)
    driver = {
        "name": "hugeplan lint",
        "version": version,
        "rules": [
            {
                "id": rule_id,
                "shortDescription": {"text": rules[rule_id].sentence},
                "help": {"text": f"Source: {rules[rule_id].source}. More: hugeplan explain {rule_id}"},
                "defaultConfiguration": {"level": _LEVEL[rules[rule_id].severity]},
            }
            for rule_id in order
        ],
    }
    results = [_result(r, problem, order.index(problem.rule.id)) for r in reports for problem in r.problems]
    unread = [_unread(report) for report in reports if report.unreadable is not None]
    invocation = {"executionSuccessful": not unread, "toolExecutionNotifications": unread}
    run = {
        "tool": {"driver": driver}, "invocations": [invocation], "results": results, "columnKind": "unicodeCodePoints",
    }  # fmt: skip
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _unread(report: FileReport) -> dict[str, Any]:
    """A file that could not be read, or is of no known kind: no result, so that the log is not taken for clean."""
    place = {"physicalLocation": {"artifactLocation": {"uri": _uri(report)}}}
    return {"level": "error", "message": {"text": report.unreadable}, "locations": [place]}


def _uri(report: FileReport) -> str:
    return quote(report.source.name.replace("\\", "/"), safe="/:@")


def _result(report: FileReport, problem: Problem, rule_index: int) -> dict[str, Any]:
    text = report.source.text
    column = problem.position - (text.rfind("\n", 0, problem.position) + 1) + 1
    artifact = {"uri": _uri(report)}
    region = {"startLine": report.line_of(problem.position), "startColumn": column}
    result: dict[str, Any] = {
        "ruleId": problem.rule.id,
        "ruleIndex": rule_index,
        "level": _LEVEL[problem.rule.severity],
        "message": {"text": f"{problem.message} {problem.fix}"},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
    }
    if problem.edits:
        replacements = [
            {
                "deletedRegion": {"charOffset": edit.start, "charLength": edit.end - edit.start},
                "insertedContent": {"text": edit.text},
            }
            for edit in problem.edits
        ]
        change = {"artifactLocation": artifact, "replacements": replacements}
        result["fixes"] = [{"description": {"text": problem.fix}, "artifactChanges": [change]}]
    return result


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
    return "\n".join(map(one_line, lines)) + "\n"


def _totals(reports: Sequence[FileReport]) -> str:
    count = {s: sum(p.rule.severity is s for r in reports for p in r.problems) for s in Severity}
    unreadable = sum(report.unreadable is not None for report in reports)
    files = f"{len(reports)} file{'' if len(reports) == 1 else 's'}"
    text = f"{files}: {count[Severity.WRONG]} wrong, {count[Severity.ATTENTION]} for attention"
    text += f", {unreadable} not read" if unreadable else ""
    return text + ("; hugeplan explain RULE says what a rule means" if any(count.values()) else "")
