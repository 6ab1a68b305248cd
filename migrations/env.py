"""Alembic's entry: one transaction, one lock, bounded waits, for the service, the CLI and the tests alike."""

from __future__ import annotations

from typing import Any

from alembic import context
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, pool, text

from hugeplan.db import models  # noqa: F401 - fills Base.metadata
from hugeplan.db.base import PARTITIONED_TABLES, Base
from hugeplan.db.locks import AdvisoryLock
from hugeplan.settings import Settings

config = context.config

LOCKED_FIRST = ("nodes", "samples")
"""What whoever stores reports locks before any other table, in this order. An upgrade changes many tables in one
transaction: begun elsewhere, it would hold what a report waits for and wait for what the report holds."""


def is_partition(name: str) -> bool:
    """Whether a table is a partition, which maintenance makes and drops, not a migration."""
    return any(name.startswith(f"{table}_") for table in PARTITIONED_TABLES)


def include_name(name: str | None, kind: str, _parents: Any) -> bool:
    """Leave partitions out of the comparison with the models."""
    return not (kind == "table" and name is not None and is_partition(name))


def run(connection: Connection) -> None:
    """Migrate over an open connection, in one transaction."""
    connection.execute(text("SET lock_timeout = '10s'"))
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": int(AdvisoryLock.MIGRATION)})
    connection.commit()
    try:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            include_name=include_name,
            compare_type=True,
            compare_server_default=True,
        )
        with context.begin_transaction():
            if context.get_context().get_current_revision() != ScriptDirectory.from_config(config).get_current_head():
                for table in LOCKED_FIRST:
                    if connection.scalar(text("SELECT to_regclass(:table)"), {"table": table}) is not None:
                        connection.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
            context.run_migrations()
    finally:
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": int(AdvisoryLock.MIGRATION)})
        connection.commit()


def main() -> None:
    """Take the connection of ``hugeplan.db.migrate``, or open one for the alembic command."""
    connection = config.attributes.get("connection")
    if connection is not None:
        run(connection)
        return
    url = config.attributes.get("url") or Settings().sqlalchemy_url()
    engine = create_engine(url, poolclass=pool.NullPool)
    with engine.connect() as opened:
        run(opened)


main()
