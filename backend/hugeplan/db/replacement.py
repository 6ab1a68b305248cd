"""Replacing every table, in steps that a kill or a full disk between any two of them cannot spoil.

What is replaced waits in a schema aside; of an empty database that schema is empty. What takes its place arrives in one
transaction, so that the public schema is either empty or whole. What is aside goes only when what arrived is a whole
database of hugeplan at this release's newest migration, and comes back otherwise: ``hugeplan.db.migrate`` has the
order. What arrived is SQL that somebody else wrote: none of our statements lasts longer than ``BOUND`` on it, and none
runs a trigger that no migration names, or a rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from typing import Final

import psycopg
from psycopg import sql

from hugeplan.db.locks import AdvisoryLock
from hugeplan.planner.printable import one_line

ASIDE: Final = "hugeplan_before"
"""The schema that holds what is being replaced."""
BOUND: Final = "10min"
RESTORING: Final = "pg_restore of hugeplan"
"""The name of who fills the public schema, as PostgreSQL knows it; not one of the service's."""


class KeptAsideError(Exception):
    """What was put aside could not come back yet."""


@contextmanager
def connect(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection of which no statement lasts, or waits, longer than ``BOUND``."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("SET statement_timeout = {}").format(BOUND))
        yield connection


def hold(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """One replacement at a time, for as long as the connection lasts: nobody ends one that still goes on."""
    connection.execute(sql.SQL("SET statement_timeout = {}; SET idle_session_timeout = 0").format(BOUND))
    connection.execute("SELECT pg_advisory_lock(%s)", (int(AdvisoryLock.REPLACEMENT),))


def is_begun(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    """Whether something is put aside."""
    return connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (ASIDE,)).rowcount == 1


def why_no_backup(connection: psycopg.Connection[tuple[object, ...]]) -> str | None:
    """Why no restore takes a dump of this database; None where it may."""
    if is_begun(connection):
        return "a restore was cut off there, or goes on; run hugeplan migrate first"
    return None if _migrations(connection) else "it is no database of hugeplan: it has no migration"


def is_empty(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    """Whether the public schema holds nothing. A transaction that still fills it is waited for: PostgreSQL drops no
    schema under it, nor one that holds anything, nor another owner's.
    """
    # Of one that is full the drop would first lock every table.
    held = "refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace('public') AND deptype = 'n'"
    if connection.execute(f"SELECT FROM pg_depend WHERE {held} LIMIT 1").rowcount:
        return False
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("DROP SCHEMA IF EXISTS public")
    except psycopg.errors.DependentObjectsStillExist:
        return False
    return True


def begin(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Put everything aside; the public schema is empty then. One that is empty already stays, with its rights."""
    with connection.transaction():
        if is_empty(connection):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(ASIDE)))
        else:
            connection.execute(sql.SQL("ALTER SCHEMA public RENAME TO {}").format(sql.Identifier(ASIDE)))
            connection.execute("CREATE SCHEMA public")


_END_RESTORING: Final = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name = %s
"""


def give_back(url: str, why: str) -> bool:
    """What was put aside comes back, and what arrived, or still arrives, goes. False where nothing is aside.

    PostgreSQL does not see that a pg_restore was killed while it runs what the backup told it to. KeptAsideError where
    it cannot come back for now.
    """
    try:
        with connect(url) as connection, connection.transaction():
            if not is_begun(connection):
                return False
            connection.execute(_END_RESTORING, (RESTORING,))
            connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
            connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO public").format(sql.Identifier(ASIDE)))
    except psycopg.Error as error:
        raise KeptAsideError(
            f"nothing is lost: {why}. What was there is kept aside; once the database answers: hugeplan migrate"
        ) from error
    return True


_RUNS: Final = """
SELECT format('the trigger %%I of %%s', tgname, tgrelid::regclass) FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
WHERE relnamespace = 'public'::regnamespace AND NOT tgisinternal AND tgname <> ALL(%s)
UNION ALL SELECT format('the rule %%I of %%s', rulename, ev_class::regclass)
FROM pg_rewrite JOIN pg_class c ON c.oid = ev_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
ORDER BY 1 LIMIT 3
"""


def take_over(url: str, known: Collection[str], triggers: Collection[str]) -> str | None:
    """End and refuse in what arrived what was ended or refused in what is aside. Why what arrived is none that this
    release can use, by its ``known`` migrations and their ``triggers``; None where it may be.
    """
    with connect(url) as connection, connection.transaction():
        if is_empty(connection):
            return "it is no backup of hugeplan: it is empty"
        if foreign := connection.execute(_RUNS, (list(triggers),)).fetchall():
            named = ", ".join(one_line(str(name), 160) for (name,) in foreign)
            return f"it has what no migration of hugeplan made and what would run here: {named}"
        found = _migrations(connection)
        if not found:
            return "it is no backup of hugeplan: it has no migration"
        if len(found) > 1 or found[0] not in known:
            return f"this release does not know its migration ({', '.join(found)})"
        _end_logins(connection)
        _keep_refusals(connection)
    return None


def _migrations(connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    is_table = "SELECT FROM pg_class WHERE oid = to_regclass('public.alembic_version') AND relkind = 'r'"
    with suppress(psycopg.ProgrammingError, psycopg.DataError), connection.transaction():
        if connection.execute(is_table).rowcount:
            rows = connection.execute("SELECT version_num FROM public.alembic_version LIMIT 3")
            return [one_line(version, 80) for (version,) in rows]
    return []


_LACKS: Final = """
SELECT name FROM unnest(%s::text[]) name WHERE NOT EXISTS
    (SELECT FROM pg_index WHERE indrelid = to_regclass(format('public.%%I', name)) AND indisprimary)
UNION ALL SELECT 'the trigger ' || name FROM unnest(%s::text[]) name WHERE NOT EXISTS
    (SELECT FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
    WHERE tgname = name AND tgenabled <> 'D' AND relnamespace = 'public'::regnamespace)
ORDER BY 1 LIMIT 3
"""
"""A table with its key: no view has one, nor has a table of a dump that ends before its keys."""


def finish(url: str, newest: str, tables: Collection[str], triggers: Collection[str]) -> str | None:
    """Drop what is aside, when what arrived is whole at the newest migration. Why it is not; None where it is."""
    with connect(url) as connection, connection.transaction():
        if (found := _migrations(connection)) != [newest]:
            return f"it is at migration {', '.join(found) or 'none'} and not at {newest}"
        if lacks := connection.execute(_LACKS, (list(tables), list(triggers))).fetchall():
            return f"it is no whole backup of hugeplan: it lacks {', '.join(str(name) for (name,) in lacks)}"
        connection.execute("SET LOCAL statement_timeout = 0")  # a backup of what goes may still run
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(ASIDE)))
    return None


def _end_logins(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """End browsers' logins and what lets in once: a backup also has what was logged out of or used up since."""
    once = dict.fromkeys(("browser_sessions", "login_links", "oidc_logins", "enrolment_approvals"), "TRUE")
    for table, which in (once | {"enrolment_requests": "decision IS DISTINCT FROM 'refused'"}).items():
        _change(connection, "DELETE FROM public.{} WHERE {}", sql.Identifier(table), sql.SQL(which))


def _keep_refusals(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """What was revoked, ended, used up or refused in the database that goes stays so in the one that takes its place,
    also where that does not know it: the environment's enrolment token and a provider's people would be made anew. The
    tokens of agents that enrolled again meanwhile come along: theirs before were revoked by that, and no agent is to
    wait for a person.
    """
    aside = sql.Identifier(ASIDE, "tokens")
    stricter = {"revoked_at": "least", "expires_at": "least", "machine_id": "least", "enrolments": "greatest"}
    same = "UPDATE public.tokens t SET {0} = {1}(t.{0}, b.{0}) FROM {2} b WHERE b.{3} = t.{3}"
    for (name, word), key in product(stricter.items(), ("secret_sha256", "oidc_subject")):
        _change(connection, same, sql.Identifier(name), sql.SQL(word), aside, sql.Identifier(key))
    line = (
        "UPDATE public.tokens SET revoked_at = now() WHERE revoked_at IS NULL AND line_id IN"
        " (SELECT line_id FROM {} GROUP BY line_id HAVING bool_and(revoked_at IS NOT NULL))"
    )
    _change(connection, line, aside)
    _copy_missing(connection, "machines", "TRUE")
    says_no = "(role = 'agent' OR revoked_at IS NOT NULL OR expires_at < now())"
    for role in ("agent", "enrolment", "viewer", "planner", "approver", "admin"):
        _copy_missing(connection, "tokens", f"role = '{role}' AND {says_no}")
    _copy_missing(connection, "tokens", "enrolments > 0")
    _copy_missing(connection, "enrolment_requests", "decision = 'refused'")


def _copy_missing(connection: psycopg.Connection[tuple[object, ...]], table: str, which: str) -> None:
    """Rows that only the database that goes has, as far as the other has their columns and takes what they hold."""
    columns = connection.execute(
        "SELECT attname FROM pg_attribute a WHERE attrelid = to_regclass(%s) AND attnum > 0"
        " AND NOT attisdropped AND EXISTS (SELECT FROM pg_attribute b WHERE b.attrelid = to_regclass(%s)"
        " AND b.attname = a.attname AND NOT b.attisdropped)",
        (f"public.{table}", f"{ASIDE}.{table}"),
    ).fetchall()
    names = sql.SQL(", ").join(sql.Identifier(str(name)) for (name,) in columns)
    insert = "INSERT INTO {0} ({1}) SELECT {1} FROM {2} WHERE {3} ON CONFLICT DO NOTHING"
    tables = sql.Identifier("public", table), sql.Identifier(ASIDE, table)
    if columns:
        _change(connection, insert, tables[0], names, tables[1], sql.SQL(which))


def _change(connection: psycopg.Connection[tuple[object, ...]], statement: str, *names: sql.Composable) -> None:
    """As far as both releases know of it: an older one has no role of a newer one, and lets in nobody by it."""
    unknown = psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable, psycopg.IntegrityError
    with suppress(*unknown), connection.transaction():
        connection.execute(sql.SQL(statement).format(*names))
