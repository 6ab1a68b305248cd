"""``hugeplan verify plan.json``: is the plan in force on this node? Reads only."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Final

from hugeplan.cli import EXIT_FAILED, InputError
from hugeplan.cli.files import read_json
from hugeplan.cli.node_now import observe
from hugeplan.cli.plan_document import read_plan
from hugeplan.planner.model import State, subject_words
from hugeplan.planner.printable import one_line
from hugeplan.proof import Observation, Verdict, verify
from hugeplan.proof.causes import Cause
from hugeplan.proof.verdict import Outcome

EXIT_UNDECIDED: Final = 3
#: One exit status per cause, so that a script can go on where a person would.
EXIT_OF: Final = {
    Cause.IN_FORCE: 0,
    Cause.OTHER: EXIT_FAILED,
    Cause.NOT_OBSERVED: EXIT_UNDECIDED,
    Cause.NOT_RESERVED: 10,
    Cause.SHORT: 11,
    Cause.LOWERED: 12,
    Cause.NOT_RUNNING: 13,
    Cause.NOT_RESTARTED: 14,
    Cause.HELD: 15,
    Cause.OTHER_SIZE: 16,
    Cause.LIMIT: 17,
    Cause.KUBELET: 18,
}
_MARKS: Final = {State.OK: "ok", State.ATTENTION: "attention", State.WRONG: "WRONG", State.UNKNOWN: "?"}
EPILOG: Final = """\
exit status:
   0  the plan is in force
   1  something else is wrong
   2  wrong input
   3  something essential could not be observed (a pool, or the pages of a database that this user may not read)
  10  a pool is not reserved: run hugeplan apply, or install the plan's file and reboot
  11  a pool is short: the kernel gave less
  12  a pool was lowered under a running server
  13  the pools are allocated, a planned database does not run: install its file and start it
  14  the pools are allocated, a database runs on base pages or with other settings: install its file and restart it
  15  the pools are allocated, others hold their pages
  16  a database runs on pages of another size
  17  a limit of its container or service is below a database's segment
  18  the kubelet was not restarted
Where several are true, the first to be mended counts: pools before limits, limits before databases.

Run it as root, so that the mappings of the databases can be read. Nothing is changed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``verify``."""
    parser.add_argument("plan", metavar="PLAN", help="what hugeplan plan --json wrote, or a saved plan of the service")
    parser.add_argument("--report", metavar="FILE", help="check this report of the agent instead of this node")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the checks; the exit status is the verdict."""
    document = read_plan(arguments.plan)
    observed = observe() if arguments.report is None else _report(arguments.report)
    found = verify(document.plan, observed)
    if arguments.json:
        answer = {"digest": document.digest} | asdict(found)
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(verdict_text(document.name, found))
    return exit_status(found)


def exit_status(found: Verdict) -> int:
    """By its cause, as the help says."""
    return EXIT_OF[found.cause]


def verdict_text(name: str, found: Verdict) -> str:
    """One line per check, with reason and fix where something is to be done; ``name`` is the plan's."""
    lines = []
    for finding in found.findings:
        lines.append(f"{_MARKS[finding.state]:>9}  {subject_words(finding.subject)}: {finding.title}")
        if finding.state is not State.OK:
            lines.append(f"           {finding.reason}")
            if finding.fix:
                lines.append(f"           fix: {finding.fix}")
    said = {
        Outcome.IN_FORCE: f"The {name} is in force.",
        Outcome.NOT_IN_FORCE: f"The {name} is not in force.",
        Outcome.UNDECIDED: f"The {name} is not in force."
        if found.cause is Cause.NOT_RUNNING
        else f"Whether the {name} is in force cannot be decided.",
    }[found.outcome]
    if found.next_step is not None:
        said = f"{said.removesuffix('.')} yet. Next: {found.next_step}"
    return "\n".join(map(one_line, [*lines, said, ""]))


def _report(path: str) -> Observation:
    report = read_json(path, "a report", "--report")
    if not isinstance(report, dict) or not all(isinstance(report.get(k), dict) for k in ("inventory", "sample")):
        raise InputError(f"{path}: not a report: it has no inventory and sample")
    return Observation(report["inventory"], report["sample"])
