"""Running uvicorn for ``serve`` and ``demo``."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import resource
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from hugeplan.api import logs
from hugeplan.api.connection import Connection
from hugeplan.cli import InputError, load
from hugeplan.settings import Settings

GRACE_SECONDS = 10
BACKLOG = 512
UNREAD_IN_KERNEL_BYTES = 256 * 1024
"""Of each connection, with the kernel's own part of it. 150 kB and more of an answer are under way at a time: a client
that is 100 ms away gets 1.5 MB/s. As many connections as an address may have (512) take 128 MiB.
"""


class Loop(asyncio.SelectorEventLoop):
    """asyncio's, which accepts all that wait, up to the backlog, in one round: everybody waited for it."""

    def _accept_connection(self, factory: Any, listening: Any, tls: Any, server: Any, _: int, *more: Any) -> None:
        super()._accept_connection(factory, listening, tls, server, 1, *more)  # type: ignore[misc]


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, opened before anything else is started. InputError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted connections inherit it. Without it an answer of two writes waits for the client's delayed ACK, 40 ms.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Inherited too: else the kernel takes up to 4 MB of what a client does not read (net.ipv4.tcp_wmem).
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_IN_KERNEL_BYTES // 2)  # it takes the double
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


def _config(app: FastAPI | str, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,
        loop="hugeplan.cli.serving:Loop",  # whose transports Connection knows
        backlog=BACKLOG,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        proxy_headers=False,
        **more,
    )


def serve(settings: Settings, listening: socket.socket, when_ready: Callable[[], None], workers: int = 1) -> None:
    """Serve until SIGINT or SIGTERM; requests in flight get GRACE_SECONDS to finish.

    Several workers are processes that a supervisor starts again when they die. Each reads its settings from the
    environment, and rate limits are for each. ``when_ready`` is called in a thread of its own once a request is
    answered. InputError when a worker cannot start.
    """
    logs.configure(settings)
    _allow_many_files()
    threading.Thread(target=_call_once_answered, args=(listening, when_ready), daemon=True).start()
    if workers == 1:
        uvicorn.Server(_config(application(settings))).run(sockets=[listening])
        return
    supervisor = Multiprocess(_config("hugeplan.cli.serving:application", factory=True, workers=workers), [listening])
    supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise InputError("a process of the service could not start; what it said is above")


def _call_once_answered(listening: socket.socket, when_ready: Callable[[], None]) -> None:
    """Ask until an answer comes. The socket listens before anybody serves: a request waits in its queue."""
    while True:
        with suppress(OSError, HTTPException), closing(HTTPConnection(*listening.getsockname()[:2])) as connection:
            connection.request("GET", "/healthz")
            connection.getresponse()
            break
        time.sleep(0.1)  # the worker that had the request has died
    when_ready()


def application(given: Settings | None = None) -> FastAPI:
    """The application; without settings that of a worker process, which reads its own."""
    settings = given or Settings()
    logs.configure(settings)
    Connection.configure(settings)
    # Here, and not above: who only looks after workers needs none of it.
    made: FastAPI = load("hugeplan.main").create_app(settings)
    Connection.end_streams = made.state.event_feed.end
    if given is None:
        made.state.fleet_plan_runner.share_ready_process(str(os.getppid()))
    # What is there now is most of the heap, and stays: no later look for cycles walks it. Documents are many small
    # objects without cycles. The usual thresholds would walk all of them several times each.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    return made
