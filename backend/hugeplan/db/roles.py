"""Roles beside the one that owns the tables, granted anew after each migration. An administrator makes them.

The service's changes rows and nothing else (docs/adr/0047); the reader's, for dashboards, reads everything but
credentials. Partitions need no grant of their own: who reads by the parent table needs the parent's alone.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import sql

from hugeplan.db.locks import AdvisoryLock

SERVICE: Final = "hugeplan_service"
READER: Final = "hugeplan_reader"
SECRET_TABLES: Final = ("tokens", "browser_sessions", "login_links", "oidc_logins", "enrolment_requests", "webhooks")
_FUNCTIONS: Final = (
    "partitioned_table(text), make_partition(text, date, date), drop_partition(text, date), give_space_back(text, date)"
)
# Of our own alone: an extension's view or somebody else's table is not ours to grant. A default partition is reached by
# its own name, too; no other is.
_OURS: Final = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = ANY(%s) AND pg_has_role(c.relowner, 'USAGE')
    AND (NOT c.relispartition OR pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT')
"""


def grant(database_url: str) -> list[str]:
    """Grant what the roles need, to those that are there; what each may do now, as a sentence. Raises psycopg.Error."""
    said = []
    with psycopg.connect(database_url) as connection:
        # Two at once would change the same rows of the catalogue, which PostgreSQL refuses; so would maintenance.
        for lock in (AdvisoryLock.MIGRATION, AdvisoryLock.MAINTENANCE):
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (int(lock),))
        tables, sequences = _ours(connection, "r", "p"), _ours(connection, "S")
        if is_other(connection, SERVICE):
            for statement in (
                sql.SQL("GRANT USAGE ON SCHEMA public TO hugeplan_service"),
                sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO hugeplan_service").format(tables),
                sql.SQL("GRANT USAGE ON SEQUENCE {} TO hugeplan_service").format(sequences),
                sql.SQL("REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM hugeplan_service"),
                sql.SQL("REVOKE EXECUTE ON FUNCTION {} FROM PUBLIC").format(sql.SQL(_FUNCTIONS)),
                sql.SQL("GRANT EXECUTE ON FUNCTION {} TO hugeplan_service").format(sql.SQL(_FUNCTIONS)),
            ):
                connection.execute(statement)
            said.append(f"{SERVICE} may change rows and no table.")
        if is_other(connection, READER):
            secret = sql.SQL(", ").join(map(sql.Identifier, SECRET_TABLES))
            for statement in (
                sql.SQL("GRANT USAGE ON SCHEMA public TO hugeplan_reader"),
                sql.SQL("GRANT SELECT ON {} TO hugeplan_reader").format(tables),
                sql.SQL("REVOKE ALL ON {} FROM hugeplan_reader").format(secret),
            ):
                connection.execute(statement)
            said.append(f"{READER} may read everything but credentials.")
    return said


def _ours(connection: psycopg.Connection[tuple[object, ...]], *kinds: str) -> sql.Composed:
    found = connection.execute(_OURS, (list(kinds),)).fetchall()
    return sql.SQL(", ").join(sql.Identifier(str(name)) for (name,) in found)


def is_other(connection: psycopg.Connection[tuple[object, ...]], role: str) -> bool:
    """Whether there is such a role and it is not the one that is logged in."""
    found = connection.execute("SELECT FROM pg_roles WHERE rolname = %s AND rolname <> current_user", (role,))
    return found.rowcount == 1
