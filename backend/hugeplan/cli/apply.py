"""``hugeplan apply plan.json``: the run-time part of a plan on this node, with a way back at every moment."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from hugeplan.artifacts import withheld
from hugeplan.cli import EXIT_FAILED, EXIT_WRONG_INPUT, InputError
from hugeplan.cli.apply_journal import (
    Change,
    Journal,
    boot_id,
    first_count,
    forget_in_force,
    only_one,
    pools_held,
    read_journal,
    without_end,
    write_in_force,
    write_journal,
)
from hugeplan.cli.apply_steps import check_node, check_room, grow_and_shrink, guarded, place, restore
from hugeplan.cli.node_now import observe
from hugeplan.cli.plan_document import PlanDocument, read_plan
from hugeplan.cli.pool_files import PoolError, PoolFiles
from hugeplan.cli.verify import verdict_text
from hugeplan.planner.model import Plan
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes
from hugeplan.proof import verify
from hugeplan.proof.causes import Cause
from hugeplan.proof.holders import holders
from hugeplan.proof.verdict import Outcome
from hugeplan.signals import handled, ignore

EXIT_UNDECIDED: Final = 3
EXIT_OTHER_WRONG: Final = 4
EXIT_NOT_RESTORED: Final = 5
EXIT_NEXT_STEP: Final = 6
EPILOG: Final = """\
exit status:
  0  the planned pools are allocated and the plan is in force
  1  the pools were not reached (or the run was interrupted); the previous counts are back
  2  wrong input, not root, or not confirmed; the plan changed nothing
  3  the planned pools are allocated; whether a database uses them could not be observed
  4  the planned pools are allocated; verify found something else wrong
  5  the previous counts could not be restored in full; the journal and the message say which counts are allocated
  6  the planned pools are allocated; next, install the plan's file for the database and restart it (or start it)
  74 the output could not be written; --status says where the counts stand

The journal is /var/lib/hugeplan/apply.json. A run that is killed is rolled back by its guard process. Where that is
killed too, --roll-back does it, or the next run shows what was left and goes on from there. A run that restores what it
found leaves the plan before in force. What a killed measurement left is given back first. --status says in which state
the node is. Only the run-time part is done: counts do not survive a reboot. For that install one of the plan's files
(hugeplan artifacts).
"""


class _InterruptedError(Exception):
    """SIGTERM, SIGINT or SIGHUP."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``apply``."""
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="what hugeplan plan --json wrote")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    parser.add_argument("--force", action="store_true", help="apply a plan that does not fit, or made for another node")
    parser.add_argument("--roll-back", action="store_true", help="restore the counts that the last run found")
    parser.add_argument("--status", action="store_true", help="say what the last run did and where the counts stand")
    parser.add_argument("--no-verify", action="store_true", help="stop after the pools")
    parser.add_argument("--root", default="/", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Apply, roll back or say the status; the exit status is documented in the help."""
    root = Path(arguments.root)
    try:
        if arguments.status:
            return _status(root)
        if not arguments.roll_back and arguments.plan is None:
            raise InputError("give a plan, or --roll-back or --status")
        if arguments.dry_run:
            return _apply(_document(arguments), root, arguments)
        if root == Path("/") and os.geteuid() != 0:
            raise InputError("writing pools needs root; --dry-run shows what would change")
        with only_one(root), pools_held(root):
            if arguments.roll_back:
                return _roll_back(root)
            return _apply(_document(arguments), root, arguments)
    except PoolError as error:
        sys.stderr.write(f"hugeplan apply: {error}\n")
        return EXIT_FAILED


def _document(arguments: argparse.Namespace) -> PlanDocument:
    found = read_plan(arguments.plan)
    reason = withheld(found.plan)
    if reason is not None and not arguments.force:
        raise InputError(
            reason.replace("no file is handed out", "it is not applied") + " --force applies it all the same."
        )
    return found


def changes_of(plan: Plan, files: PoolFiles, former: Journal | None) -> tuple[Change, ...]:
    """Every pool of the plan with its count now, as planned or not, and those that runs without an end left: these stay
    as they are, and --roll-back knows them.
    """
    left = {(c.numa_node, c.page_bytes): -1 for run in without_end(former) for c in run.changes}
    changes = []
    for pool, pages in (left | {(pool.numa_node, pool.page_bytes): pool.pages for pool in plan.pools}).items():
        now = files.counts(*pool).pages
        change = Change(*pool, now, now if pages < 0 else pages)
        if pages >= 0 or first_count(former, change) != now:
            changes.append(change)
    return tuple(changes)


def _shown(changes: tuple[Change, ...], former: Journal | None) -> str:
    lines = []
    for c in changes:
        delta, first = (c.wanted - c.before) * c.page_bytes, first_count(former, c)
        what = "as it is" if not delta else f"{'+' if delta > 0 else '-'}{format_bytes(abs(delta))}"
        if first != c.before:
            what += f"; --roll-back then gives {first}, as before an earlier run"
        lines.append(
            f"  NUMA node {c.numa_node}  {page_label(c.page_bytes):>4}  {c.before} -> {c.wanted} pages  ({what})"
        )
    return "\n".join(lines) or "  the plan has no pool"


def _apply(document: PlanDocument, root: Path, arguments: argparse.Namespace) -> int:
    other = check_node(root, document.plan.node)
    if other is not None and not arguments.force:
        raise InputError(f"{other}; it is not applied. --force applies it all the same.")
    files, former = PoolFiles(root), None
    with suppress(PoolError) if arguments.dry_run else nullcontext():  # only root may read it
        former = read_journal(root)
    changes = changes_of(document.plan, files, former)
    print(f"{document.name}:\n{_shown(changes, former)}", flush=True)
    check_room(root, changes)
    if arguments.dry_run:
        return 0
    if all(c.before == c.wanted for c in changes) and not any(without_end(former)):
        print("The pools are as planned already.")
        _note(write_in_force, root, asdict(document))
        return _verified(document, arguments)
    if not arguments.yes and not _confirmed():
        return EXIT_WRONG_INPUT
    kept = None if former is None or former.state == "restored" else former
    journal = Journal("applying", boot_id(root), document.headline, changes, kept)
    applied = tuple(replace(c, before=first_count(former, c)) for c in changes)
    with guarded(root, journal) as done, handled(_interrupt):
        try:
            write_journal(root, journal)
            grow_and_shrink(files, changes, lambda line: print(line, flush=True))
            write_journal(root, replace(journal, state="applied", changes=applied, former=None))
        except (_InterruptedError, PoolError, OSError, KeyboardInterrupt) as error:
            failed = restore(root, journal)
            done()
            return _said(getattr(error, "strerror", None) or str(error) or "interrupted", failed)
        done()
    _note(write_in_force, root, asdict(document))
    return _verified(document, arguments)


def _note(how: Callable[..., None], *what: object) -> None:
    """The status is of the counts, which are written: what fails now is only said."""
    try:
        how(*what)
    except PoolError as error:
        sys.stderr.write(f"hugeplan apply: which plan is in force could not be noted: {error}\n")


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        sys.stderr.write("hugeplan apply: there is no terminal to confirm on; give --yes\n")
        return False
    try:
        return input("Write these counts? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _said(reason: str, failed: list[str]) -> int:
    if failed:
        sys.stderr.write(f"hugeplan apply: {reason}; not all counts are back: {'; '.join(failed)}\n")
        return EXIT_NOT_RESTORED
    sys.stderr.write(f"hugeplan apply: {reason}; the previous counts are back\n")
    return EXIT_FAILED


def _verified(document: PlanDocument, arguments: argparse.Namespace) -> int:
    if arguments.no_verify:
        return 0
    try:
        found = verify(document.plan, observe(arguments.root))
    except (Exception, KeyboardInterrupt) as error:
        sys.stderr.write(
            f"hugeplan apply: whether the plan is in force could not be observed: {str(error) or 'stopped'}\n"
        )
        return EXIT_UNDECIDED
    sys.stdout.write("\n" + verdict_text(document.name, found))
    if found.cause in {Cause.NOT_RUNNING, Cause.NOT_RESTARTED}:
        return EXIT_NEXT_STEP
    return {Outcome.IN_FORCE: 0, Outcome.UNDECIDED: EXIT_UNDECIDED, Outcome.NOT_IN_FORCE: EXIT_OTHER_WRONG}[
        found.outcome
    ]


def _roll_back(root: Path) -> int:
    journal = read_journal(root)
    if journal is None:
        raise InputError("there is no run of this boot to roll back")
    if journal.state == "restored":
        print("The last run is rolled back already.")
        return 0
    failed = restore(root, journal)
    if journal.former is None:
        _note(forget_in_force, root)
    for change in journal.changes:
        now = PoolFiles(root).counts(change.numa_node, change.page_bytes).pages
        print(f"NUMA node {change.numa_node}, pages of {page_label(change.page_bytes)}: {now}")
    if not failed:
        if journal.former is not None:
            print(f"That run ({journal.plan}) is rolled back; the one before stands ({journal.former.plan}).")
        return 0
    for size in sorted({change.page_bytes for change in journal.changes}):
        users = ""
        with suppress(Exception):  # what is said, and the status, is of the counts that are not back
            users = holders(observe(str(root)), size).said()
        if users:
            sys.stderr.write(f"hugeplan apply: pages of {page_label(size)} are in use by {users}\n")
    sys.stderr.write("hugeplan apply: stop or restart what uses them without huge pages, then roll back again\n")
    return _said("rolled back in part", failed)


def _status(root: Path) -> int:
    """``new``, ``old`` or ``between``, and the last run's own words."""
    journal = read_journal(root)
    if journal is None:
        print("none: hugeplan apply did not run since this boot")
        return 0
    where = place(PoolFiles(root), journal.changes)
    words = {
        "applying": "a run is at work, or came to no end: hugeplan apply --roll-back ends it",
        "applied": "the plan was applied",
        "restoring": "the previous counts are being restored, or could not be in full",
        "restored": "the previous counts were restored",
    }
    print(f"{where}: {words[journal.state]} ({journal.plan})")
    return 0


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    ignore()  # a second signal must not stop the way back
    raise _InterruptedError(f"stopped by {signal.Signals(number).name}")
