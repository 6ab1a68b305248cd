"""Operations: is the process alive, is the service ready, what has it served."""

from __future__ import annotations

import asyncio
from typing import Literal

import anyio.to_thread
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response

from hugeplan.api.dependencies import CurrentDatabase, CurrentSettings
from hugeplan.api.metrics import CONTENT_TYPE, Metrics
from hugeplan.api.problems import RETRY_AFTER_SECONDS, UnavailableError
from hugeplan.api.schemas import ResponseModel
from hugeplan.db import migrate

router = APIRouter(tags=["operations"])


class Health(ResponseModel):
    """The process answers."""

    status: Literal["ok"]


class Readiness(ResponseModel):
    """The database answers and is at the newest migration."""

    status: Literal["ready"]
    revision: str


@router.get("/healthz")
async def health_get() -> Health:
    """Whether the process answers. Touches nothing else, so that a slow database does not restart it."""
    return Health(status="ok")


@router.get("/readyz")
async def readiness_get(database: CurrentDatabase, settings: CurrentSettings) -> Readiness:
    """Whether requests can be served: the database answers and its migrations are at head."""
    folder = migrate.migrations_dir(settings.migrations_dir)
    head = await anyio.to_thread.run_sync(migrate.head_revision, folder)
    try:
        # A database that hangs is as little use as one that is away.
        async with asyncio.timeout(settings.database_timeout_seconds):
            revision = await migrate.current_revision(database.engine)
    except TimeoutError as error:
        raise _not_ready("The database does not answer in time.") from error
    if revision != head:
        raise _not_ready(
            f"The database is at migration {revision or 'none'}, the service needs {head}. Run: hugeplan migrate"
        )
    return Readiness(status="ready", revision=head)


def _not_ready(detail: str) -> UnavailableError:
    return UnavailableError(detail, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


def render_metrics(request: Request) -> Response:
    """The metrics of this process."""
    metrics: Metrics = request.app.state.metrics
    pool = request.app.state.database.engine.pool
    metrics.database_connections_in_use.set(pool.checkedout())
    return Response(metrics.render(), media_type=CONTENT_TYPE)


def install(app: FastAPI) -> None:
    """Register the routes that need no credential."""
    app.include_router(router)
