"""``hugeplan token create``: a credential, made directly in the database."""

from __future__ import annotations

import argparse
import asyncio
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError

from hugeplan.access import service
from hugeplan.access.schemas import Role
from hugeplan.api.problems import is_unavailable
from hugeplan.cli import InputError
from hugeplan.cli.service_settings import load_settings
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings

_DAY_SECONDS = 86400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``token``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make a token and print it once")
    create.add_argument("--role", choices=[role.value for role in Role], required=True)
    create.add_argument("--name", required=True, help="what it is for; shown in the list of tokens")
    create.add_argument("--machine-id", help="the machine an agent token reports for (default: the first that uses it)")
    create.add_argument("--expires-in-days", type=int, metavar="N", help="default: never")


async def _create(settings: Settings, arguments: argparse.Namespace) -> str:
    database = Database(create_engine(settings))
    days = arguments.expires_in_days
    try:
        async with database.write() as session:
            created = await service.mint(
                session,
                name=arguments.name,
                role=Role(arguments.role),
                machine_id=arguments.machine_id,
                expires_in=None if days is None else timedelta(seconds=days * _DAY_SECONDS),
            )
            return created.token
    finally:
        await database.dispose()


def run(arguments: argparse.Namespace) -> int:
    """Make a token and print it."""
    if arguments.machine_id is not None and arguments.role != Role.AGENT:
        raise InputError(f"--machine-id: {arguments.machine_id!r} is not valid; expected none unless --role is agent")
    days = arguments.expires_in_days
    if days is not None and not 1 <= days <= 3660:
        raise InputError(f"--expires-in-days: {days} is not valid; expected 1 to 3660 days")
    try:
        print(asyncio.run(_create(load_settings(), arguments)))
    except (SQLAlchemyError, OSError) as error:
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        hint = "" if is_unavailable(error) else "; run: hugeplan migrate"
        raise InputError(f"HUGEPLAN_DATABASE_URL: the token was not made: {reason}{hint}") from error
    return 0
