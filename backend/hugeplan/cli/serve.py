"""``hugeplan serve``: the service over the database of HUGEPLAN_DATABASE_URL."""

from __future__ import annotations

import argparse

from sqlalchemy.exc import SQLAlchemyError

from hugeplan.access import bootstrap
from hugeplan.api.problems import is_unavailable
from hugeplan.cli.service_settings import load_settings
from hugeplan.cli.serving import bind, serve
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``serve`` takes its settings from the environment (docs/settings.md)."""


async def show_first_admin(settings: Settings) -> None:
    """Print the first admin token where there is none yet, or why it cannot be made now. The service serves anyway."""
    database = Database(create_engine(settings))
    try:
        secret = await bootstrap.create_first_admin(database)
    except (SQLAlchemyError, OSError) as error:
        cause = "cannot be reached yet" if is_unavailable(error) else "is not migrated; run: hugeplan migrate"
        print(f"The database {cause}. For a token later: hugeplan token create --role admin --name NAME", flush=True)
        return
    finally:
        await database.dispose()
    if secret is not None:
        print(f"First admin token, shown only now: {secret}", flush=True)


def run(_: argparse.Namespace) -> int:
    """Serve until stopped."""
    settings = load_settings()
    listening = bind(settings.host, settings.port)

    async def when_ready() -> None:
        await show_first_admin(settings)
        print(f"hugeplan answers on http://{settings.host}:{settings.port}", flush=True)

    serve(settings, listening, when_ready)
    return 0
