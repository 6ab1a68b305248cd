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
                "help": {"text": f"Source: {rules[rule_id].source}"},
                "defaultConfiguration": {"level": _LEVEL[rules[rule_id].severity]},
            }
            for rule_id in order
        ],
    }
    results = [_result(r, problem, order.index(problem.rule.id)) for r in reports for problem in r.problems]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(report: FileReport, problem: Problem, rule_index: int) -> dict[str, Any]:
    text = report.source.text
    column = problem.position - (text.rfind("\n", 0, problem.position) + 1) + 1
    artifact = {"uri": quote(report.source.name.replace("\\", "/"), safe="/:@")}
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
