"""The report as SARIF 2.1.0, which code hosts show beside the lines of a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from hugeplan.lint.model import FileReport, Problem, Severity

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
