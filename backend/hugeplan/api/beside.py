"""A request's work beside the event loop, without a database connection: in the sandbox, only for as long as its
client waits, or in the process's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from hugeplan.api.body import address_of, refuse_gone
from hugeplan.api.dependencies import Reads
from hugeplan.db.session import ReadSession
from hugeplan.sandbox.orders import Limits
from hugeplan.sandbox.sandbox import LESS, Asker, Sandbox
from hugeplan.shares import Turns

T = TypeVar("T")

_THREAD: Final = ThreadPoolExecutor(1, "beside")
"""One after the other: several threads would take the interpreter from the event loop."""
_IN_LINE: Final = Turns(1)


class RequestSandbox:
    """The sandbox and the thread for one request."""

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
        whose = Asker(str(state.line_id), is_agent=state.is_agent, address=address_of(self._request))
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

    @asynccontextmanager
    async def in_line(self) -> AsyncIterator[None]:
        """The request's turn to read a large document and to have ``thread`` work on it: of each credential one is in
        line, so that nobody waits for all that another asks. Nothing that all share is held while a document is read.
        """
        await self._session.release()
        async with _IN_LINE.turn(str(self._request.state.line_id)):
            refuse_gone(self._request)
            yield

    async def turn_to_keep(self) -> None:
        """Wait until no other import keeps anything, for the rest of the request. What is of one's own comes before."""
        turns = self._request.app.state.intake.turns_of_imports
        await self._request.state.turns.enter_async_context(turns.turn("all"))

    async def thread(self, work: Callable[..., T], *given: Any) -> T:
        """The result of work that takes longer than others are to wait, in a thread. The session's connection goes back
        to the pool first, so nothing may be written before.
        """
        await self._session.release()
        refuse_gone(self._request)
        return await asyncio.get_running_loop().run_in_executor(_THREAD, work, *given)

    def _spend(self, seconds: float) -> None:
        self.used_seconds += seconds


async def _until_gone(request: Request) -> None:
    """Wait until the client has gone. What it may send still is not read."""
    request.scope["state"]["reads_no_more"] = True
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _request_sandbox(request: Request, session: Reads) -> RequestSandbox:
    return RequestSandbox(request, session)


Beside = Annotated[RequestSandbox, Depends(_request_sandbox)]


def json_answer(content: bytes, status_code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON that was written beside the event loop."""
    return Response(content, status_code=status_code, headers=headers, media_type="application/json")
