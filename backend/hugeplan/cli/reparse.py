"""``hugeplan reparse``: today's parsers over stored runs and unread reports, while the service runs."""

from __future__ import annotations

import argparse
import asyncio
from typing import Final

from sqlalchemy.exc import OperationalError

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.fleet.reparse import Reparsed, reparse

_ENDED: Final = frozenset({"40001", "40P01", "55P03", "57014"})
"""SQLSTATE of deadlocks and timeouts (PostgreSQL, appendix A)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reparse`` takes its settings from the environment (docs/settings.md)."""


def run(_: argparse.Namespace) -> int:
    """Read every stored run again, and the reports that an earlier version could not read."""
    done = asyncio.run(_reparse())
    words = f"{done.runs} runs of {done.nodes} nodes read again, {done.reports} unread reports read"
    print(f"{words}, {done.unreadable} not readable", flush=True)
    return 0


async def _reparse() -> Reparsed:
    database = Database(create_engine(load_settings()))
    try:
        return await reparse(database)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) in _ENDED:
            raise InputError(f"{error.orig}: run it again; what was done stays done") from error
        raise InputError(f"HUGEPLAN_DATABASE_URL: {postgres_programs.unreachable(error.orig or error)}") from error
    finally:
        await database.dispose()
