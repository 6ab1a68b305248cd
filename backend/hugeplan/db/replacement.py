"""Replacing every table, in steps that a kill or a full disk between any two of them cannot spoil.

What is replaced waits in a schema aside. What takes its place arrives in one transaction, so that the public schema is
either empty or whole, and ``settle`` knows from it alone which of the two stands.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import psycopg
from psycopg import sql

ASIDE: Final = "hugeplan_before"
"""The schema that holds what is being replaced."""


def begin(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Put everything aside; the public schema is empty then."""
    connection.execute(sql.SQL("ALTER SCHEMA public RENAME TO {}").format(sql.Identifier(ASIDE)))
    connection.execute("CREATE SCHEMA public")


def settle(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """End a replacement, finished or cut off: what was put aside comes back where nothing arrived, and goes otherwise.

    A transaction that still fills the public schema is waited for: PostgreSQL drops no schema under it.
    """
    if connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (ASIDE,)).fetchone() is None:
        return
    aside = sql.Identifier(ASIDE)
    try:
        with connection.transaction():
            connection.execute("DROP SCHEMA IF EXISTS public")  # refused while it holds anything
            connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO public").format(aside))
    except psycopg.errors.DependentObjectsStillExist:
        with connection.transaction():
            end_logins(connection)
            _keep_refusals(connection)
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(aside))


def end_logins(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """End browsers' logins and what lets in once: a backup also has what was logged out of or used up since."""
    once = dict.fromkeys(("browser_sessions", "login_links", "oidc_logins", "enrolment_approvals"), "TRUE")
    for table, which in (once | {"enrolment_requests": "decision IS DISTINCT FROM 'refused'"}).items():
        with suppress(psycopg.errors.UndefinedTable), connection.transaction():
            connection.execute(sql.SQL("DELETE FROM public.{} WHERE {}").format(sql.Identifier(table), sql.SQL(which)))


def _keep_refusals(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """What was revoked, ended, used up or refused in the database that goes stays so in the one that takes its place,
    also where that does not know it: the environment's enrolment token and a provider's people would be made anew. The
    tokens of agents that enrolled again meanwhile come along: theirs before were revoked by that, and no agent is to
    wait for a person.
    """
    aside = sql.Identifier(ASIDE, "tokens")
    stricter = {"revoked_at": "least", "expires_at": "least", "machine_id": "least", "enrolments": "greatest"}
    for name, word in stricter.items():
        # Where a release has no such column or table, there is nothing to keep.
        with suppress(psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable), connection.transaction():
            change = "UPDATE public.tokens t SET {0} = {1}(t.{0}, b.{0}) FROM {2} b WHERE b.id = t.id"
            connection.execute(sql.SQL(change).format(sql.Identifier(name), sql.SQL(word), aside))
    _copy_missing(connection, "machines", "TRUE")
    for role in ("agent", "enrolment", "viewer", "planner", "approver", "admin"):
        _copy_missing(connection, "tokens", f"role = '{role}' AND (role = 'agent' OR revoked_at IS NOT NULL)")
    _copy_missing(connection, "enrolment_requests", "decision = 'refused'")


def _copy_missing(connection: psycopg.Connection[tuple[object, ...]], table: str, which: str) -> None:
    """Rows that only the database that goes has, as far as the other has their columns and takes what they hold."""
    # An older release has no role of a newer one, and what it does not know it does not let in.
    with suppress(psycopg.IntegrityError, psycopg.errors.UndefinedTable), connection.transaction():
        columns = connection.execute(
            "SELECT attname FROM pg_attribute a WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped AND EXISTS (SELECT FROM pg_attribute b WHERE b.attrelid = %s::regclass"
            " AND b.attname = a.attname AND NOT b.attisdropped)",
            (f"public.{table}", f"{ASIDE}.{table}"),
        ).fetchall()
        names = sql.SQL(", ").join(sql.Identifier(str(name)) for (name,) in columns)
        statement = sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} WHERE {3} ON CONFLICT DO NOTHING")
        tables = sql.Identifier("public", table), sql.Identifier(ASIDE, table)
        connection.execute(statement.format(tables[0], names, tables[1], sql.SQL(which)))
