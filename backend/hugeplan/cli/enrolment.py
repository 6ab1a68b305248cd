"""``hugeplan enrolment``: machines that ask to enrol again and were not recognised, directly in the database."""

from __future__ import annotations

import argparse
import textwrap
from functools import partial

from hugeplan.access import enrolment_repository, enrolments
from hugeplan.access.schemas import EnrolmentDecision, PendingEnrolment
from hugeplan.cli.token import listed, note, print_from_database, user_name, uuid
from hugeplan.db.session import WriteSession
from hugeplan.planner.printable import one_line
from hugeplan.settings import Settings

_DECISIONS = {"approve": enrolments.APPROVED, "refuse": enrolments.REFUSED}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``enrolment``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="machines that ask, and why they were not let in")
    approve = actions.add_parser("approve", help="let exactly this asker in; it asks again by itself")
    refuse = actions.add_parser("refuse", help="turn this asker away until it is approved")
    for decision in (approve, refuse):
        decision.add_argument("id", type=uuid, help="of hugeplan enrolment list")


def _lines(asked: PendingEnrolment, known: str | None) -> str:
    """The known machine that an approval lets the asker be stands first; all else is what the asker says."""
    state = f"{asked.decision} by {one_line(asked.decided_by, 80)}" if asked.decision else "waits"
    lines = (
        f"{asked.id}  {one_line(known or 'without a name', 80)}  {state}",
        f"    machine {asked.node_machine_id}, asked {asked.attempts} times from"
        f" {one_line(asked.address or 'an unknown address', 80)}, last {asked.last_asked_at:%Y-%m-%d %H:%M:%S}Z",
        f"    calls itself {one_line(asked.node_name, 60)}",
        # What the asker says is in it: further lines are two columns further in.
        *textwrap.wrap(one_line(asked.reason, 500), 78, initial_indent=" " * 4, subsequent_indent=" " * 6),
    )
    return "\n".join(lines)


async def _list(session: WriteSession, *_: object) -> str:
    known = await enrolment_repository.known_names(session)
    ask = partial(enrolments.list_pending, session)
    lines = await listed(ask, lambda asked: _lines(asked, known.get(asked.node_machine_id)))
    return lines or "No machine waits for a decision."


async def _decide(session: WriteSession, arguments: argparse.Namespace, _: Settings) -> str:
    who = f"hugeplan enrolment ({user_name()})"
    word = EnrolmentDecision.model_validate({"decision": _DECISIONS[arguments.action]})
    decided = await enrolments.decide(session, who, arguments.id, word)
    machine = decided.node_machine_id
    await note(session, "enrolment", "enrolment_requests_decide", "machine", machine, decision=word.decision)
    known = (await enrolment_repository.known_names(session)).get(machine)
    return f"{one_line(known or 'The machine without a name', 80)} (machine {machine}) is {word.decision}."


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked and print its result."""
    return print_from_database(_list if arguments.action == "list" else _decide, arguments)
