"""Replacing every table, in steps that a kill or a full disk between any two of them cannot spoil.

What is replaced waits in a schema aside. What takes its place arrives in one transaction, so that the public schema is
either empty or whole, and ``settle`` knows from it alone which of the two stands.
"""

from __future__ import annotations

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
            _keep_revocations(connection)
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(aside))


def end_logins(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """End what browsers hold: a backup also has the sessions that were logged out since."""
    for table in ("browser_sessions", "login_links", "oidc_logins"):
        if _exists(connection, f"public.{table}"):
            connection.execute(sql.SQL("DELETE FROM public.{}").format(sql.Identifier(table)))


def _keep_revocations(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """What was revoked or ended in the database that goes stays so in the one that takes its place, also where that
    does not know it: the environment's enrolment token and a provider's people would be made anew.
    """
    if not (_exists(connection, "public.tokens") and _exists(connection, f"{ASIDE}.tokens")):
        return
    before = sql.Identifier(ASIDE, "tokens")
    connection.execute(
        sql.SQL(
            "UPDATE public.tokens t SET revoked_at = coalesce(t.revoked_at, b.revoked_at),"
            " expires_at = least(t.expires_at, b.expires_at) FROM {} b"
            " WHERE b.id = t.id AND (b.revoked_at IS NOT NULL OR b.expires_at IS NOT NULL)"
        ).format(before)
    )
    columns = connection.execute(
        "SELECT attname FROM pg_attribute a WHERE attrelid = 'public.tokens'::regclass AND attnum > 0"
        " AND NOT attisdropped AND EXISTS (SELECT FROM pg_attribute b WHERE b.attrelid = %s::regclass"
        " AND b.attname = a.attname AND NOT b.attisdropped)",
        (f"{ASIDE}.tokens",),
    ).fetchall()
    names = sql.SQL(", ").join(sql.Identifier(str(name)) for (name,) in columns)
    statement = (
        "INSERT INTO public.tokens ({0}) SELECT {0} FROM {1} WHERE revoked_at IS NOT NULL ON CONFLICT DO NOTHING"
    )
    connection.execute(sql.SQL(statement).format(names, before))


def _exists(connection: psycopg.Connection[tuple[object, ...]], table: str) -> bool:
    return connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() == (True,)
