"""``hugeplan enrolment``: machines that ask to enrol again and were not recognised, directly in the database."""

from __future__ import annotations

import argparse
from functools import partial

from hugeplan.access import enrolments
from hugeplan.access.schemas import EnrolmentDecision, PendingEnrolment
from hugeplan.cli.token import listed, note, print_from_database, user_name, uuid
from hugeplan.db.session import WriteSession
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


def _line(asked: PendingEnrolment) -> str:
    state = f"{asked.decision} by {asked.decided_by}" if asked.decision else "waits"
    where = asked.address or "an unknown address"
    return (
        f"{asked.id}  {asked.node_name}  {state}\n    machine {asked.node_machine_id}, asked {asked.attempts} times"
        f" from {where}, last {asked.last_asked_at:%Y-%m-%d %H:%M:%S}Z\n    {asked.reason}"
    )


async def _list(session: WriteSession, *_: object) -> str:
    return await listed(partial(enrolments.list_pending, session), _line) or "No machine waits for a decision."


async def _decide(session: WriteSession, arguments: argparse.Namespace, _: Settings) -> str:
    who = f"hugeplan enrolment ({user_name()})"
    word = EnrolmentDecision.model_validate({"decision": _DECISIONS[arguments.action]})
    decided = await enrolments.decide(session, who, arguments.id, word)
    machine = decided.node_machine_id
    await note(session, "enrolment", "enrolment_requests_decide", "machine", machine, decision=word.decision)
    return f"{decided.node_name} is {word.decision}."


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked and print its result."""
    return print_from_database(_list if arguments.action == "list" else _decide, arguments)
