"""The role of dashboards: it reads everything but credentials, and nothing else. Granted anew after each migration.

Partitions need no grant of their own: who reads by the parent table needs the parent's alone.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import sql

READER: Final = "hugeplan_reader"
SECRET_TABLES: Final = ("tokens", "browser_sessions", "login_links", "oidc_logins", "enrolment_requests", "webhooks")


def grant_reading(database_url: str) -> bool:
    """Let the reader read, where an administrator has made the role. Whether there is one. Raises psycopg.Error."""
    with psycopg.connect(database_url) as connection:
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (READER,)).rowcount == 0:
            return False
        role = sql.Identifier(READER)
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role))
        connection.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}").format(role))
        for table in SECRET_TABLES:
            connection.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(sql.Identifier(table), role))
    return True
