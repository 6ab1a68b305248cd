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
            _keep_revocations(connection)
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(aside))


def end_logins(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """End what browsers hold: a backup also has the sessions that were logged out since."""
    for table in ("browser_sessions", "login_links", "oidc_logins"):
        if _exists(connection, f"public.{table}"):
            connection.execute(sql.SQL("DELETE FROM public.{}").format(sql.Identifier(table)))


def _keep_revocations(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """What was revoked or ended in the database that goes stays so in the one that takes its place, also where that
    does not know it: the environment's enrolment token and a provider's people would be made anew. The tokens of agents
    that enrolled again meanwhile come along: theirs before were revoked by that, and no agent is to wait for a person.
    """
    if not (_exists(connection, "public.tokens") and _exists(connection, f"{ASIDE}.tokens")):
        return
    connection.execute(
        sql.SQL(
            "UPDATE public.tokens t SET revoked_at = coalesce(t.revoked_at, b.revoked_at),"
            " expires_at = least(t.expires_at, b.expires_at) FROM {} b"
            " WHERE b.id = t.id AND (b.revoked_at IS NOT NULL OR b.expires_at IS NOT NULL)"
        ).format(sql.Identifier(ASIDE, "tokens"))
    )
    if _exists(connection, "public.machines") and _exists(connection, f"{ASIDE}.machines"):
        _copy_missing(connection, "machines", sql.SQL("TRUE"))
    before = sql.SQL("SELECT DISTINCT role FROM {}").format(sql.Identifier(ASIDE, "tokens"))
    for (role,) in connection.execute(before).fetchall():
        of_role = sql.SQL("role = {0} AND (role = 'agent' OR revoked_at IS NOT NULL)").format(sql.Literal(role))
        _copy_missing(connection, "tokens", of_role)


def _copy_missing(connection: psycopg.Connection[tuple[object, ...]], table: str, which: sql.Composable) -> None:
    """Rows that only the database that goes has, as far as the other has their columns and takes what they hold."""
    columns = connection.execute(
        "SELECT attname FROM pg_attribute a WHERE attrelid = %s::regclass AND attnum > 0"
        " AND NOT attisdropped AND EXISTS (SELECT FROM pg_attribute b WHERE b.attrelid = %s::regclass"
        " AND b.attname = a.attname AND NOT b.attisdropped)",
        (f"public.{table}", f"{ASIDE}.{table}"),
    ).fetchall()
    names = sql.SQL(", ").join(sql.Identifier(str(name)) for (name,) in columns)
    statement = sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} WHERE {3} ON CONFLICT DO NOTHING").format(
        sql.Identifier("public", table), names, sql.Identifier(ASIDE, table), which
    )
    # An older release has no role of a newer one, and what it does not know it does not let in.
    with suppress(psycopg.IntegrityError), connection.transaction():
        connection.execute(statement)


def _exists(connection: psycopg.Connection[tuple[object, ...]], table: str) -> bool:
    return connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() == (True,)
