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
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(aside))
