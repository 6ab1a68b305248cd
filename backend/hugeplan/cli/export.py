"""``hugeplan export``: what people made and what is known of the fleet, as JSON lines. No credential is in it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from psycopg import sql
from psycopg.rows import namedtuple_row

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings
from hugeplan.errors import DamagedError
from hugeplan.fleet.newest import EXPORTED, newest_of

TABLES: Final = {
    "nodes": "name, id",
    "node_states": "node_id",
    "node_findings": "node_id, code, subject",
    "plans_in_force": "node_id",
    "scenarios": "created_at, id",
    "scenario_versions": "scenario_id, version",
    "plans": "created_at, id",
    "fleet_plans": "created_at, id",
    "sample_days": "node_id, start_at",
    "events": "id",
    "audit_events": "id",
}
"""Tables without secrets and without bulk, with the order of their rows. The bulk is in a backup."""

_ROWS = 16
"""Rows of one fetch: a planner's scenario has up to 1 MB, and the command runs in the service's container."""


def _in_full(record: Any) -> dict[str, Any]:
    """A row of ``node_states`` with what the newest report says in place of how it is kept; ``damaged``: why not."""
    kept = ("processes_kept", "base_kept", "newest_kept", "newest_document")
    row = {name: value for name, value in record[0].items() if name not in kept}
    try:
        full = newest_of(record).in_full()
    except DamagedError as error:
        return row | {"damaged": str(error)}
    return row | full | {"processes": full["sample"].pop("processes")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``export``."""
    parser.add_argument(
        "--table", action="append", metavar="NAME", help=f"only this one of: {', '.join(TABLES)} (may be repeated)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print one object for each row: its table and its columns, all at one moment."""
    chosen = arguments.table or list(TABLES)
    for name in chosen:
        if name not in TABLES:
            raise InputError(f"--table: {name!r} is not valid; expected one of {', '.join(TABLES)}")
    with postgres_programs.connect(load_settings()) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name in chosen:
            query = sql.SQL("SELECT row_to_json(t) FROM {} t ORDER BY {}").format(
                sql.Identifier(name),
                sql.SQL(TABLES[name]),
            )
            with connection.cursor(name="export", row_factory=namedtuple_row) as cursor:
                cursor.itersize = _ROWS
                is_state = name == "node_states"
                for record in cursor.execute(EXPORTED.encode() if is_state else query):
                    row = _in_full(record) if is_state else record[0]
                    sys.stdout.write(json.dumps({"table": name, "row": row}, ensure_ascii=False) + "\n")
    return 0
