"""Replacing every table, in steps that a kill or a full disk between any two of them cannot spoil.

What is replaced waits in a schema aside. What takes its place arrives in one transaction, so that the public schema is
either empty or whole, and ``settle`` knows from it alone which of the two stands: what is no database of hugeplan, or
one of a release that this one does not know, takes no place.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from itertools import product
from typing import Final

import psycopg
from psycopg import sql

from hugeplan.planner.printable import one_line

ASIDE: Final = "hugeplan_before"
"""The schema that holds what is being replaced."""


def begin(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Put everything aside; the public schema is empty then."""
    connection.execute(sql.SQL("ALTER SCHEMA public RENAME TO {}").format(sql.Identifier(ASIDE)))
    connection.execute("CREATE SCHEMA public")


def why_unknown(connection: psycopg.Connection[tuple[object, ...]], known: Collection[str]) -> str | None:
    """Why the public schema is none that this release can use, by its ``known`` migrations; None where it can."""
    found: list[str] = []
    with suppress(psycopg.ProgrammingError, psycopg.DataError), connection.transaction():
        rows = connection.execute("SELECT version_num FROM public.alembic_version LIMIT 3")
        found = [one_line(version, 80) for (version,) in rows]
    if not found:
        return "it is no backup of hugeplan: it has no migration"
    is_known = len(found) == 1 and found[0] in known
    return None if is_known else f"this release does not know its migration ({', '.join(found)})"


def settle(connection: psycopg.Connection[tuple[object, ...]], known: Collection[str]) -> None:
    """End a replacement, finished or cut off: what was put aside goes where a database of a ``known`` migration
    arrived, and comes back otherwise.

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
            if why_unknown(connection, known) is not None:
                connection.execute("DROP SCHEMA public CASCADE")
                connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO public").format(aside))
                return
            end_logins(connection)
            _keep_refusals(connection)
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(aside))


def end_logins(connection: psycopg.Connection[tuple[object, ...]]) -> None:
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
