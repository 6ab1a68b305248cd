"""``hugeplan trial postgresql`` and ``mariadb``: two private servers of this node's own programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from hugeplan.cli import InputError
from hugeplan.cli.files import decode_text, read_bytes
from hugeplan.cli.trial_document import About
from hugeplan.cli.trial_shape import Wanted, settings_of, wanted, whole
from hugeplan.documents.trial import TrialShape
from hugeplan.measuring import mariadb, postgresql, room
from hugeplan.measuring.mariadb_server import LARGEST_ROW_BYTES, MariadbError, find_server
from hugeplan.measuring.postgresql_server import ServerError, find_programs
from hugeplan.measuring.sysbench_clients import find_sysbench
from hugeplan.planner.demand import engine_named
from hugeplan.planner.model import GIB, MIB

MOST_DATA_BYTES: Final = 2 * GIB
_MOST_SQL_BYTES: Final = 256 * MIB
_LONGEST_ROW_BYTES: Final = {"postgresql": MIB, "mariadb": LARGEST_ROW_BYTES, "mysql": LARGEST_ROW_BYTES}
_Subject = postgresql.PostgresqlSubject | mariadb.MariadbSubject


def prepared(
    arguments: argparse.Namespace, arms: tuple[str, ...]
) -> Callable[[Path, Callable[[str], None]], tuple[_Subject, Callable[[datetime, int], About]]]:
    """The trial as the flags, a plan's instance or a running server say. InputError names what is wrong."""
    engine: str = arguments.kind
    like = wanted(arguments, engine)
    clients = whole(arguments.clients, like.clients, "--clients", 1, 1000)
    longest = _LONGEST_ROW_BYTES[engine]
    row_bytes = whole(arguments.row_bytes, min(like.row_bytes, longest), "--row-bytes", 1, longest)
    if arguments.data_gib is not None and not 0.01 <= arguments.data_gib <= 4096:
        raise InputError(f"--data-gib {arguments.data_gib:g}: give 0.01 to 4096")
    try:
        plan = (_postgresql if engine == "postgresql" else _mariadb)(arguments, like, clients, row_bytes)
    except (MariadbError, ServerError) as error:
        raise InputError(str(error)) from error
    is_script = isinstance(plan, postgresql.Plan) and plan.script is not None

    def make(folder: Path, say: Callable[[str], None]) -> tuple[_Subject, Callable[[datetime, int], About]]:
        subject: _Subject
        if isinstance(plan, postgresql.Plan):
            subject, programs = postgresql.PostgresqlSubject(plan, folder, say), plan.programs
        else:
            subject, programs = mariadb.MariadbSubject(plan, folder, say), plan.program.parent
        subject.prepare(arms)
        release = subject.release  # before the measurement, which is not lost with it
        say(f"{engine_named(engine).title} {release} of {programs}, {clients} clients")
        shape = TrialShape(
            operation_class="script" if is_script else "key_lookup",
            row_bytes=None if is_script else row_bytes,
            data_bytes=subject.data_bytes,
            pool_bytes=plan.pool_bytes,
            clients=clients,
        )
        return subject, lambda started, seed: About(engine, release, shape, started, seed)

    return make


def _data_bytes(arguments: argparse.Namespace, like: Wanted, most_bytes: int) -> int:
    """As asked for; else the working set, or 2 GiB, as far as two servers fit."""
    if arguments.data_gib is not None:
        return int(arguments.data_gib * GIB)
    return max(64 * MIB, min(most_bytes, like.working_set_bytes or MOST_DATA_BYTES))


def _postgresql(arguments: argparse.Namespace, like: Wanted, clients: int, row_bytes: int) -> postgresql.Plan:
    if arguments.schema and not arguments.script:
        raise InputError("--schema FILE needs --script FILE, which says what to run on it")
    # Both go to the server's user, and are read before anything is made.
    script, schema = (
        None if file is None else read_bytes(file, option, _MOST_SQL_BYTES)
        for option, file in (("--script", arguments.script), ("--schema", arguments.schema))
    )
    needed = ("initdb", "pg_ctl", "postgres", *(("pgbench",) if arguments.script else ()))
    return postgresql.Plan(
        programs=find_programs(like.programs, needed),
        data_bytes=_data_bytes(arguments, like, postgresql.largest_data_bytes(clients, room.headroom_bytes()[0])),
        row_bytes=row_bytes,
        clients=clients,
        settings=settings_of(arguments.set),
        script=None if script is None else decode_text(script, arguments.script),
        schema=schema,
    )


def _mariadb(arguments: argparse.Namespace, like: Wanted, clients: int, row_bytes: int) -> mariadb.Plan:
    return mariadb.Plan(
        program=find_server(like.programs, arguments.kind),
        engine=arguments.kind,
        sysbench=find_sysbench(),
        data_bytes=_data_bytes(arguments, like, mariadb.largest_data_bytes(clients, room.headroom_bytes()[0])),
        row_bytes=row_bytes,
        clients=clients,
        settings=settings_of(arguments.set),
    )
