"""``hugeplan token``: credentials, made and ended directly in the database."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from hugeplan.access import audit, logins, service
from hugeplan.access.schemas import EnrolmentLimits, Role
from hugeplan.api.pagination import Page
from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings
from hugeplan.db.alone import is_unavailable
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database, WriteSession
from hugeplan.errors import ConflictError, ForbiddenError, NotFoundError
from hugeplan.planner.printable import one_line
from hugeplan.settings import Settings

Action = Callable[[WriteSession, argparse.Namespace, Settings], Awaitable[str]]
"""Does something in one transaction, and says what it did."""

_DAY_SECONDS = 86400
_PAGE = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``token``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make a token and print it once")
    create.add_argument("--role", choices=[role.value for role in Role], required=True)
    create.add_argument("--name", required=True, help="what it is for; shown in the list of tokens")
    create.add_argument("--machine-id", help="the machine an agent token reports for (default: the first that uses it)")
    create.add_argument("--expires-in-days", type=int, metavar="N", help="default: never")
    create.add_argument("--count", type=int, metavar="N", help="of an enrolment token: most machines (default: any)")
    create.add_argument("--name-pattern", metavar="PATTERN", help="of an enrolment token: names; '*' takes dots")
    actions.add_parser("list", help="usable tokens, without their secrets")
    revoke = actions.add_parser("revoke", help="end a token, those before and after it by rotation, and their sessions")
    revoke.add_argument("id", type=uuid)
    rotate = actions.add_parser("rotate", help="print a new secret; the old one stays good for a while")
    rotate.add_argument("id", type=uuid)
    rotate.add_argument("--overlap-seconds", type=int, default=3600, metavar="N", help="default: 3600")
    link = actions.add_parser("login-link", help="print a login for a browser that works once, with a token's rights")
    link.add_argument("id", type=uuid, nargs="?", help="default: an administrator's token for the server's operator")


def uuid(text: str) -> UUID:
    """The id of a token or of a machine that asks, as their lists have it."""
    try:
        return UUID(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not valid; expected an id of the list") from error


async def _create(session: WriteSession, arguments: argparse.Namespace, _: Settings) -> str:
    days = arguments.expires_in_days
    created = await service.mint(
        session,
        name=arguments.name,
        role=Role(arguments.role),
        machine_id=arguments.machine_id,
        expires_in=None if days is None else timedelta(seconds=days * _DAY_SECONDS),
        limits=EnrolmentLimits(max_enrolments=arguments.count, name_pattern=arguments.name_pattern),
    )
    await note(session, "token", "tokens_create", "tokens", created.id)
    return created.token


async def _list(session: WriteSession, _: argparse.Namespace, __: Settings) -> str:
    ask = partial(service.list_tokens, session, include_revoked=False)
    lines = await listed(ask, lambda t: f"{t.id}  {t.role:<9}  {t.expires_at or 'never ends'}  {one_line(t.name, 80)}")
    return lines or "There is no usable token."


async def listed(ask: Callable[..., Awaitable[Page[Any]]], line: Callable[[Any], str]) -> str:
    """A line for each item of a list, from all of its pages."""
    page = await ask(limit=_PAGE, cursor=None)
    lines = [line(item) for item in page.items]
    while page.next_cursor is not None:
        page = await ask(limit=_PAGE, cursor=page.next_cursor)
        lines += [line(item) for item in page.items]
    return "\n".join(lines)


async def _revoke(session: WriteSession, arguments: argparse.Namespace, _: Settings) -> str:
    await service.revoke_token(session, arguments.id)
    await note(session, "token", "tokens_revoke", "tokens", arguments.id)
    return "Revoked."


async def _rotate(session: WriteSession, arguments: argparse.Namespace, _: Settings) -> str:
    made = await service.rotate_token(session, arguments.id, arguments.overlap_seconds, None)
    await note(session, "token", "tokens_rotate", "tokens", arguments.id)
    return made.token


async def _login_link(session: WriteSession, arguments: argparse.Namespace, settings: Settings) -> str:
    token_id = arguments.id or await service.operator_token_id(session)
    secret = (await logins.link_of(session, token_id)).secret
    await note(session, "token", "login_links_create", "tokens", token_id)
    return f"{settings.browser_url()}/login#token={secret}"


_ACTIONS: dict[str, Action] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
    "rotate": _rotate,
    "login-link": _login_link,
}


def user_name() -> str:
    """The user who runs the command; in a container it may have a number and no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return f"uid {os.getuid()}"


async def note(session: WriteSession, command: str, action: str, kind: str, subject: object, **detail: str) -> None:
    """Who has the database's password needs no token; the log says that it was a command, and whose."""
    name = f"hugeplan {command} ({user_name()})"
    await audit.record(
        session, actor=None, name=name, address=None, action=action, kind=kind, subject=str(subject), detail=detail
    )


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked and print its result."""
    if arguments.action == "create":
        _check_create(arguments)
    if arguments.action == "rotate" and not 0 <= arguments.overlap_seconds <= 30 * _DAY_SECONDS:
        raise InputError(f"--overlap-seconds: {arguments.overlap_seconds} is not valid; expected 0 to 30 days")
    return print_from_database(_ACTIONS[arguments.action], arguments)


def print_from_database(action: Action, arguments: argparse.Namespace) -> int:
    """Print what was done in the database. InputError: nothing was done, and why."""
    settings = load_settings()

    async def act() -> str:
        database = Database(create_engine(settings))
        try:
            async with database.write() as session:
                return await action(session, arguments, settings)
        finally:
            await database.dispose()

    try:
        print(asyncio.run(act()))
    except (NotFoundError, ForbiddenError, ConflictError) as error:
        raise InputError(str(error)) from error
    except (SQLAlchemyError, OSError) as error:
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        hint = postgres_programs.mending(reason) if is_unavailable(error) else "; run: hugeplan migrate"
        raise InputError(f"HUGEPLAN_DATABASE_URL: nothing was changed: {reason}{hint}") from error
    return 0


def _check_create(arguments: argparse.Namespace) -> None:
    if arguments.machine_id is not None and arguments.role != Role.AGENT:
        raise InputError(f"--machine-id: {arguments.machine_id!r} is not valid; expected none unless --role is agent")
    if arguments.role != Role.ENROLMENT:
        for flag, value in (("--count", arguments.count), ("--name-pattern", arguments.name_pattern)):
            if value is not None:
                raise InputError(f"{flag}: {value!r} is not valid; expected none unless --role is enrolment")
    if arguments.count is not None and not 1 <= arguments.count <= 10**6:
        raise InputError(f"--count: {arguments.count} is not valid; expected 1 to 1000000")
    if arguments.name_pattern is not None and not 1 <= len(arguments.name_pattern) <= 253:
        raise InputError("--name-pattern: expected 1 to 253 characters, such as 'db-*'")
    days = arguments.expires_in_days
    if days is not None and not 1 <= days <= 3660:
        raise InputError(f"--expires-in-days: {days} is not valid; expected 1 to 3660 days")
