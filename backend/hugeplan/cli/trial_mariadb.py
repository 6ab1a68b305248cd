"""``hugeplan trial mariadb``: two private servers of this node's own program, asked by sysbench."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from hugeplan.cli import InputError
from hugeplan.cli.trial_document import About
from hugeplan.cli.trial_shape import settings_of, wanted, whole
from hugeplan.documents.trial import TrialShape
from hugeplan.measuring import mariadb, room
from hugeplan.measuring.mariadb_server import LARGEST_ROW_BYTES, MariadbError, find_server, find_sysbench
from hugeplan.planner.model import GIB, MIB

MOST_DATA_BYTES = 2 * GIB


def prepared(
    arguments: argparse.Namespace, arms: tuple[str, ...]
) -> Callable[[Path, Callable[[str], None]], tuple[mariadb.MariadbSubject, Callable[[datetime, int], About]]]:
    """The trial as the flags, a plan's instance or a running server say. InputError names what is wrong."""
    like = wanted(arguments, "mariadb")
    clients = whole(arguments.clients, like.clients, "--clients", 1, 1000)
    row_bytes = whole(arguments.row_bytes, min(like.row_bytes, LARGEST_ROW_BYTES), "--row-bytes", 1, LARGEST_ROW_BYTES)
    if arguments.data_gib is not None and not 0.01 <= arguments.data_gib <= 4096:
        raise InputError(f"--data-gib {arguments.data_gib:g}: give 0.01 to 4096")
    fits = mariadb.largest_data_bytes(clients, room.headroom_bytes()[0])
    asked = int(arguments.data_gib * GIB) if arguments.data_gib is not None else None
    try:
        plan = mariadb.Plan(
            program=find_server(like.programs),
            sysbench=find_sysbench(),
            data_bytes=asked or max(64 * MIB, min(fits, like.working_set_bytes or MOST_DATA_BYTES)),
            row_bytes=row_bytes,
            clients=clients,
            settings=settings_of(arguments.set),
        )
    except MariadbError as error:
        raise InputError(str(error)) from error

    def make(
        folder: Path, say: Callable[[str], None]
    ) -> tuple[mariadb.MariadbSubject, Callable[[datetime, int], About]]:
        subject = mariadb.MariadbSubject(plan, folder, say)
        subject.prepare(arms)
        say(f"MariaDB {subject.release} of {plan.program.parent}, {clients} clients")
        shape = TrialShape(
            operation_class="key_lookup",
            row_bytes=row_bytes,
            data_bytes=subject.data_bytes,
            pool_bytes=plan.pool_bytes,
            clients=clients,
        )
        return subject, lambda started, seed: About("mariadb", subject.release, shape, started, seed)

    return make
