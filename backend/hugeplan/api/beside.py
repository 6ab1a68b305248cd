"""A request's work in the sandbox: without a database connection, and only for as long as its client waits."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from hugeplan.api.dependencies import Reads
from hugeplan.db.session import ReadSession
from hugeplan.sandbox.orders import Limits
from hugeplan.sandbox.sandbox import LESS, Asker, Sandbox


class RequestSandbox:
    """The sandbox for one request."""

    def __init__(self, request: Request, session: ReadSession) -> None:
        self._request, self._session = request, session
        self._sandbox: Sandbox = request.app.state.sandbox
        self.used_seconds = 0.0

    async def work(
        self,
        job: str,
        payload: bytes,
        *,
        what: str,
        instead: str = LESS,
        limits: Limits | None = None,
        keep: bool = False,
    ) -> bytes:
        """``Sandbox.work``. The session's connection goes back to the pool first, so nothing may be written before.

        ``used_seconds`` is the processor time of all work of the request so far. ClientDisconnect when the client
        leaves, and the work ends.
        """
        await self._session.release()
        state = self._request.state
        whose = Asker(str(state.line_id), is_agent=state.is_agent)
        work = asyncio.create_task(
            self._sandbox.work(
                job, payload, whose=whose, what=what, instead=instead, limits=limits, keep=keep, spend=self._spend
            )
        )
        gone = asyncio.create_task(_until_gone(self._request))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientDisconnect
            return await work
        finally:
            work.cancel()
            gone.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    def _spend(self, seconds: float) -> None:
        self.used_seconds += seconds


async def _until_gone(request: Request) -> None:
    """Wait until the client has gone. Its body has been read, so nothing else can come."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _request_sandbox(request: Request, session: Reads) -> RequestSandbox:
    return RequestSandbox(request, session)


Beside = Annotated[RequestSandbox, Depends(_request_sandbox)]


def json_answer(content: bytes, status_code: int = 200) -> Response:
    """JSON that the sandbox has written."""
    return Response(content, status_code=status_code, media_type="application/json")
