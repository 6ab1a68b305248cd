"""Running uvicorn for ``serve`` and ``demo``."""

from __future__ import annotations

import errno
import gc
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from hugeplan.api import logs
from hugeplan.api.connection import Connection
from hugeplan.cli import InputError
from hugeplan.main import create_app
from hugeplan.settings import Settings

GRACE_SECONDS = 10
BACKLOG = 512


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, opened before anything else is started. InputError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted connections inherit it. Without it an answer of two writes waits for the client's delayed ACK, 40 ms.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        opened.bind((host, port))
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} of {host} is in use; stop what uses it, or set HUGEPLAN_PORT to another port"
            ) from error
        raise InputError(f"cannot listen on {host} port {port}: {error.strerror}; see HUGEPLAN_HOST") from error
    return opened


def _allow_many_files() -> None:
    """Raise the soft limit of open files to the hard one: the usual 1024 is fewer than the connections we may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, when_ready: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._when_ready = when_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call ``when_ready``."""
        await super().startup(sockets=sockets)
        if self.started:
            await self._when_ready()
            _tame_collector()


def _tame_collector() -> None:
    """Leave what was made at the start out of every later look for cycles: it is most of the heap, and stays.

    Documents are many small objects without cycles. The usual thresholds would walk all of them several times each.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _config(app: FastAPI | str, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        proxy_headers=False,
        **more,
    )


def serve(settings: Settings, listening: socket.socket, when_ready: Callable[[], Awaitable[None]]) -> None:
    """Serve until SIGINT or SIGTERM; requests in flight get GRACE_SECONDS to finish."""
    logs.configure(settings)
    _allow_many_files()
    Connection.configure(settings)
    app = create_app(settings)
    Connection.end_streams = app.state.event_feed.end
    _Server(_config(app), when_ready).run(sockets=[listening])


def serve_with_workers(settings: Settings, listening: socket.socket, workers: int) -> None:
    """Serve with several processes, which a supervisor starts again when they die, until SIGINT or SIGTERM.

    Each reads its settings from the environment. Rate limits are for each process.
    """
    logs.configure(settings)
    _allow_many_files()
    config = _config("hugeplan.cli.serving:application", factory=True, workers=workers)
    Multiprocess(config, sockets=[listening]).run()


def application() -> FastAPI:
    """The application of a worker process."""
    settings = Settings()
    logs.configure(settings)
    Connection.configure(settings)
    made = create_app(settings)
    Connection.end_streams = made.state.event_feed.end
    made.state.fleet_plan_runner.share_ready_process(str(os.getppid()))
    _tame_collector()
    return made
