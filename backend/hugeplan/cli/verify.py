"""``hugeplan verify plan.json``: is the plan in force on this node? Reads only."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Final

from hugeplan.cli import EXIT_FAILED, InputError
from hugeplan.cli.files import read_text
from hugeplan.cli.node_now import observe
from hugeplan.cli.plan_document import read_plan
from hugeplan.planner.model import Plan, State
from hugeplan.proof import Observation, Verdict, verify
from hugeplan.proof.verdict import Outcome

EXIT_UNDECIDED: Final = 3
_MARKS: Final = {State.OK: "ok", State.ATTENTION: "attention", State.WRONG: "WRONG", State.UNKNOWN: "?"}
_EPILOG: Final = """\
exit status: 0 the plan is in force, 1 something is wrong, 3 something essential could not be observed (a pool, or the
pages of a planned database that does not run or may not be read), 2 wrong input

Run it as root, so that the mappings of the databases can be read. Nothing is changed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``verify``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("plan", metavar="PLAN", help="what hugeplan plan --json wrote, or a saved plan of the service")
    parser.add_argument("--report", metavar="FILE", help="check this report of the agent instead of this node")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the checks; the exit status is the verdict."""
    document = read_plan(arguments.plan)
    observed = observe() if arguments.report is None else _report(arguments.report)
    found = verify(document.plan, observed)
    if arguments.json:
        print(json.dumps(asdict(found), indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(verdict_text(document.plan, found))
    return exit_status(found)


def exit_status(found: Verdict) -> int:
    """0, 1 or 3, as the help says."""
    return {Outcome.IN_FORCE: 0, Outcome.NOT_IN_FORCE: EXIT_FAILED, Outcome.UNDECIDED: EXIT_UNDECIDED}[found.outcome]


def verdict_text(plan: Plan, found: Verdict) -> str:
    """One line per check, with reason and fix where something is to be done."""
    lines = []
    for finding in found.findings:
        lines.append(f"{_MARKS[finding.state]:>9}  {finding.subject}: {finding.title}")
        if finding.state is not State.OK:
            lines.append(f"           {finding.reason}")
            if finding.fix:
                lines.append(f"           fix: {finding.fix}")
    said = {
        Outcome.IN_FORCE: f"The plan of {plan.node} is in force.",
        Outcome.NOT_IN_FORCE: f"The plan of {plan.node} is not in force.",
        Outcome.UNDECIDED: f"Whether the plan of {plan.node} is in force cannot be decided.",
    }[found.outcome]
    return "\n".join([*lines, said, ""])


def _report(path: str) -> Observation:
    try:
        report = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not a report: {error.msg}") from error
    if not isinstance(report, dict) or not all(isinstance(report.get(k), dict) for k in ("inventory", "sample")):
        raise InputError(f"{path}: not a report: it has no inventory and sample")
    return Observation(report["inventory"], report["sample"])
