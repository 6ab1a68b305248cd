"""Operations: is the process alive, is the service ready, what has it served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Literal

import anyio.to_thread
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from pydantic import Field

from hugeplan.api.background import Supervisor
from hugeplan.api.metrics import CONTENT_TYPE, Metrics
from hugeplan.api.openapi import operation_id
from hugeplan.api.schemas import ResponseModel
from hugeplan.db import migrate
from hugeplan.db.session import Database
from hugeplan.errors import RETRY_AFTER_SECONDS, UnavailableError
from hugeplan.settings import Settings

GOOD_SECONDS = 0.25
"""How long a good answer of readiness holds."""

router = APIRouter(tags=["operations"], generate_unique_id_function=operation_id)


class Health(ResponseModel):
    """The process answers."""

    status: Literal["ok"]


class Readiness(ResponseModel):
    """The database answers and is at the newest migration. ``failing``: background work that begins anew in vain."""

    status: Literal["ready"]
    revision: str
    failing: list[str] = Field(default_factory=list)


@router.get("/healthz")
async def health_get() -> Health:
    """Whether the process answers. Touches nothing else, so that a slow database does not restart it."""
    return Health(status="ok")


@router.get("/readyz")
async def readiness_get(request: Request) -> Readiness:
    """Whether requests can be served: the database answers and its migrations are at head."""
    probe: ReadinessProbe = request.app.state.readiness
    return await probe.look()


async def answer_health(_: Request) -> Response:
    """``health_get`` without FastAPI: probes come often, and from anybody."""
    return Response(b'{"status":"ok"}', media_type="application/json")


async def answer_readiness(request: Request) -> Response:
    """``readiness_get`` without FastAPI."""
    return Response((await readiness_get(request)).model_dump_json(), media_type="application/json")


class ReadinessProbe:
    """Looks at the database for those who ask: together for all who ask at one time, and a good answer holds a moment.

    ``warm`` is done once before the first yes, so that no client waits for what the first requests build.
    """

    def __init__(
        self, database: Database, settings: Settings, warm: Callable[[], Awaitable[None]], background: Supervisor
    ) -> None:
        self._database, self._settings, self._warm = database, settings, warm
        self._background = background
        self._is_warm = False
        self._good_until = 0.0
        self._last: Readiness | None = None
        self._looking: asyncio.Task[Readiness] | None = None

    async def look(self) -> Readiness:
        """Ready, or UnavailableError."""
        if self._last is not None and time.monotonic() < self._good_until:
            return self._last
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="readiness")
        return await asyncio.shield(self._looking)

    async def _look(self) -> Readiness:
        if needed := self._background.needed_and_failing():
            raise _not_ready(f"Background work fails again and again: {', '.join(needed)}. The log says why.")
        found = await _readiness(self._database, self._settings)
        found.failing = self._background.failing()
        if not self._is_warm:
            await self._warm()
            self._is_warm = True
        self._last, self._good_until = found, time.monotonic() + GOOD_SECONDS
        return found


async def _readiness(database: Database, settings: Settings) -> Readiness:
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
    app.router.routes.extend(router.routes)
