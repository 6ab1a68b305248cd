"""``hugeplan export``: what people made and what is known of the fleet, as JSON lines. No credential is in it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from psycopg import sql

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings
from hugeplan.fleet.newest import newest_of
from hugeplan.fleet.processes import kept_processes

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

_ROWS = 500


@dataclass(frozen=True, slots=True)
class _Kept:
    """The packed columns of a row of ``node_states``."""

    processes_kept: bytes | None
    base_kept: bytes | None
    newest_kept: bytes | None


def _read_packed(row: dict[str, Any]) -> None:
    """Put what the newest report says in plain JSON in the place of what is packed."""
    spelled = {field.name: row.pop(field.name) for field in fields(_Kept)}
    kept = _Kept(**{name: None if text is None else bytes.fromhex(text[2:]) for name, text in spelled.items()})
    newest = newest_of(kept)
    if newest is None:
        row["processes"] = kept_processes(row["processes"], kept.processes_kept)
    else:
        row |= {name: json.loads(bytes(getattr(newest, name))) for name in newest.__struct_fields__}


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
            with connection.cursor(name="export") as cursor:
                cursor.itersize = _ROWS
                for record in cursor.execute(query):
                    row = cast("dict[str, Any]", record[0])
                    if name == "node_states":
                        _read_packed(row)
                    sys.stdout.write(json.dumps({"table": name, "row": row}, ensure_ascii=False) + "\n")
    return 0
