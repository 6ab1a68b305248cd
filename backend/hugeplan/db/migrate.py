"""Build and check databases with Alembic. There is no other way a table is made."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy import create_engine, pool, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from hugeplan.bundled import bundled
from hugeplan.db import models, replacement, server_release  # noqa: F401 - models fill Base.metadata
from hugeplan.db.base import Base

if TYPE_CHECKING:
    from alembic.config import Config

_REVISION = re.compile(r'^(down_)?revision = "([^"]+)"$', re.MULTILINE)
_TRIGGER = re.compile(r"CREATE TRIGGER (\w+)")
_ATTEMPTS = 5
"""Of an upgrade that waits for a reader which waits for it."""
_BOUND = "1h"
"""For each statement of an upgrade of what a restore brought, which may sleep."""


class MigrationsMissingError(Exception):
    """The folder of migrations cannot be found."""


class DatabaseEncodingError(Exception):
    """The database does not hold UTF-8, so names that agents report could not be stored or compared."""


def migrations_dir(configured: Path | None) -> Path:
    """The folder of the migrations: the configured one, else the wheel's or the checkout's."""
    folder = configured or bundled("migrations", "migrations")
    if not (folder / "env.py").is_file():
        raise MigrationsMissingError(f"No Alembic migrations in {folder}; set HUGEPLAN_MIGRATIONS_DIR to their folder.")
    return folder


def alembic_config(folder: Path) -> Config:
    """Alembic's configuration without an ini file."""
    from alembic.config import Config  # noqa: PLC0415 - a service that finds its database migrated needs no Alembic

    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


@cache
def _scripts(folder: Path) -> str:
    """All migrations of the folder. They are read once: a service runs the migrations it started with."""
    return "\n".join(script.read_text() for script in sorted(folder.glob("versions/*.py")))


@cache
def _revisions(folder: Path) -> list[tuple[str, str]]:
    """Each revision of the folder, after ``down_`` where another one is above it."""
    return _REVISION.findall(_scripts(folder))


def known_revisions(folder: Path) -> frozenset[str]:
    """All revisions of the folder."""
    return frozenset(name for is_below, name in _revisions(folder) if not is_below)


def head_revision(folder: Path) -> str:
    """The newest revision of the folder."""
    found = _revisions(folder)
    below = {name for is_below, name in found if is_below}
    heads: list[str] = [name for is_below, name in found if not is_below and name not in below]
    if len(heads) != 1:
        raise MigrationsMissingError(f"{folder} has the newest migrations {heads}; expected one.")
    return heads[0]


def behind(connection: psycopg.Connection[Any], folder: Path) -> str | None:
    """What is wrong with the database's migration, as a sentence's start; None at the newest one of the folder."""
    has_table = connection.execute("SELECT WHERE to_regclass('alembic_version') IS NOT NULL").rowcount
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if has_table else None
    found, head = row[0] if row else "none", head_revision(folder)
    return None if found == head else f"the database is at migration {found}, the service needs {head}"


def upgrade(url: str, folder: Path, revision: str = "head") -> str | None:
    """Bring the database at ``url`` to a revision. Safe to run from several processes at once.

    A restore that was cut off is ended first, so that no table is made beside what it put aside. Returns why what it
    was to replace came back; None where it did not. Raises DatabaseEncodingError for a database in another encoding
    than UTF-8, ServerReleaseError for a server that is too old.
    """
    require_suitable(url)
    with psycopg.connect(_libpq(url), autocommit=True) as connection:
        replacement.hold(connection)
        why = end_replacement(url, folder) if replacement.is_begun(connection) else None
        _upgrade(url, folder, revision)
    return why


def end_replacement(url: str, folder: Path) -> str | None:
    """What arrived is brought to the newest migration and stays, or what was put aside comes back, and the reason is
    returned. By whoever holds the replacement. Raises KeptAsideError.
    """
    from alembic.util import CommandError  # noqa: PLC0415 - as above

    arrived = _libpq(url)
    try:
        triggers = frozenset(_TRIGGER.findall(_scripts(folder)))
        why = replacement.take_over(arrived, known_revisions(folder), triggers)
        if why is None:
            _upgrade(url, folder, "head", _BOUND)
            _require_this_releases(url, folder)
            why = replacement.finish(arrived, head_revision(folder), Base.metadata.tables, triggers)
    except (psycopg.Error, SQLAlchemyError, CommandError) as error:
        why = str(getattr(error, "orig", error)).partition("\n")[0]
        why = f"the backup cannot be brought to the newest migration: {why}"
    except BaseException as error:
        replacement.give_back(arrived, str(error) or "it was interrupted")
        raise
    # With nothing aside it stands: the connection was lost just as the last step was done.
    return why if why is not None and replacement.give_back(arrived, why) else None


def _upgrade(url: str, folder: Path, revision: str, bound: str | None = None) -> None:
    from alembic import command  # noqa: PLC0415 - as above

    config = alembic_config(folder)
    engine = create_engine(url, poolclass=pool.NullPool)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with engine.connect() as connection:
                if bound:
                    connection.execute(text(f"SET statement_timeout = '{bound}'"))
                    connection.commit()
                config.attributes["connection"] = connection
                command.upgrade(config, revision)
        except OperationalError as error:
            if attempt == _ATTEMPTS or not isinstance(error.orig, psycopg.errors.DeadlockDetected):
                raise
        else:
            return


def _require_this_releases(url: str, folder: Path) -> None:
    """Raise CommandError where tables lack what this release's have. An operator's own indexes may be there, too."""
    from alembic import command  # noqa: PLC0415 - as above
    from alembic.util.exc import AutogenerateDiffsDetected, CommandError  # noqa: PLC0415 - as above

    config = alembic_config(folder)
    with create_engine(url, poolclass=pool.NullPool).connect() as connection:
        connection.execute(text(f"SET statement_timeout = '{_BOUND}'"))
        connection.commit()
        config.attributes["connection"] = connection
        try:
            command.check(config)
        except AutogenerateDiffsDetected as found:
            # A change of a column is a list of tuples; of those only another type is one that no reader can bear.
            changes = [change for each in found.diffs for change in (each if isinstance(each, list) else [each])]
            lacks = [
                f"{change[0]} {change[2] if len(change) > 3 else getattr(change[-1], 'name', '')}"
                for change in changes
                if change[0].startswith("add_") or change[0] == "modify_type"
            ]
            if lacks:
                raise CommandError(f"its tables are not this release's ({', '.join(sorted(lacks)[:3])})") from found


def require_suitable(url: str) -> None:
    """Raise ServerReleaseError or DatabaseEncodingError unless the database at ``url`` can be used.

    Its server is new enough, and it is in UTF-8: psycopg reads SQL_ASCII as bytes.
    """
    with psycopg.connect(_libpq(url)) as connection:
        server_release.require_supported(connection.info.server_version)
        encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseEncodingError(
            f"the database's encoding is {encoding}; expected UTF8: "
            "CREATE DATABASE hugeplan ENCODING 'UTF8' TEMPLATE template0"
        )


def _libpq(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


async def current_revision(engine: AsyncEngine) -> str | None:
    """The revision the database is at; None when no migration ran."""
    async with engine.connect() as connection:
        has_table = await connection.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL"))
        if not has_table:
            return None
        revision: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
        return revision
