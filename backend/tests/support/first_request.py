"""``python -m support.first_request``: what the first request to a fresh process costs, for each path of the input.

Each line of the input is a path. For each a process of its own is forked from one that has the application and what
the service builds before it says that it is ready, and nothing else. It prints the status, the processor time of the
process and of those that it started, and the path.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Scope

from hugeplan import warm
from hugeplan.main import create_app
from hugeplan.settings import Settings
from tools.attack import processes

STREAM_SECONDS = 0.5
"""After so long the client of an answer that does not end leaves."""


def main() -> None:
    """Ask for each path."""
    token = sys.argv[1]
    app = create_app(Settings())
    warm._build()
    for path in sys.stdin.read().split():
        child = os.fork()
        if child == 0:
            try:
                status, own, helpers = asyncio.run(measured(app, path, token))
                print(status, f"{own:.4f}", f"{helpers:.2f}", path, flush=True)
            finally:
                os._exit(0)
        os.waitpid(child, 0)


async def measured(app: ASGIApp, path: str, token: str) -> tuple[int, float, float]:
    """Status, processor time of this process, and that of the processes below it. A connection is opened before."""
    await asked(app, "/readyz", token)
    begun = time.process_time()
    status = await asked(app, path, token)
    own = time.process_time() - begun
    used = os.times()
    return status, own, max(0.0, processes.cpu_seconds(os.getpid()) - used.user - used.system)


async def asked(app: ASGIApp, path: str, token: str) -> int:
    """The status of a GET. Its client leaves when the answer has ended, or after a while."""
    gone, status = asyncio.Event(), 0
    began = False

    async def receive() -> Message:
        nonlocal began
        if not began:
            began = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            asyncio.get_running_loop().call_later(STREAM_SECONDS, gone.set)
        elif not message.get("more_body"):
            gone.set()

    address = urlsplit(path)
    scope: Scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": address.path, "raw_path": address.path.encode(), "query_string": address.query.encode(),
        "root_path": "", "headers": [(b"host", b"x"), (b"authorization", f"Bearer {token}".encode())],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }  # fmt: skip
    await app(scope, receive, send)
    return status


if __name__ == "__main__":
    main()
