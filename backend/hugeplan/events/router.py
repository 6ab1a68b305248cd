"""Routes of events and webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Set
from contextlib import aclosing, suppress
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Depends, Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from hugeplan.access.dependencies import Admin, Viewer, while_good
from hugeplan.access.gated_route import api_router
from hugeplan.api.csv_response import AsCsv, CsvResponse, json_row
from hugeplan.api.dependencies import CurrentSettings, Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page
from hugeplan.api.schemas import Moment, Word
from hugeplan.events import service
from hugeplan.events.feed import QUIET_SECONDS, EventFeed
from hugeplan.events.schemas import EventKind, FleetEvent, Webhook, WebhookCreated, WebhookWrite

router = api_router("events")

MAX_EVENT_ID = 2**63 - 1
AT_ONCE = 25
"""Events of one write to a stream: less than the 64 kB of a text that no bound counts."""

AS_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "content": {
            "text/event-stream": {
                "itemSchema": {
                    "type": "object",
                    "properties": {
                        "data": {"type": "string"},
                        "event": {"type": "string"},
                        "id": {"type": "string"},
                        "retry": {"type": "integer", "minimum": 0},
                    },
                }
            }
        }
    }
}
"""What FastAPI says of a stream that it writes itself."""


class EventStream(StreamingResponse):
    """Server-sent events that are written here: FastAPI's own come one by one, through two queues each."""

    media_type = "text/event-stream"


Kinds = Annotated[list[EventKind], Query(alias="kind", max_length=16, description="Kinds of events; none: all")]


async def _feed(request: Request) -> EventFeed:
    feed: EventFeed = request.app.state.event_feed
    return feed


@router.get("/events", response_class=EventStream, responses=AS_STREAM)
async def events_stream(
    request: Request,
    actor: Viewer,
    feed: Annotated[EventFeed, Depends(_feed)],
    settings: CurrentSettings,
    *,
    kinds: Kinds = [],  # noqa: B006 - FastAPI copies it
    last_event_id: Annotated[
        int | None,
        Header(ge=0, le=MAX_EVENT_ID, description="Begin after this event; a browser sends it when it comes back"),
    ] = None,
    after: Annotated[
        int | None, Query(ge=0, le=MAX_EVENT_ID, description="Begin after this event; without it, from now on")
    ] = None,
) -> EventStream:
    """Changes as they happen, as server-sent events: ``event`` is the kind, ``data`` a FleetEvent."""
    listened = feed.listen(after if last_event_id is None else last_event_id, actor.line_id)
    told = _told(while_good(request, listened), frozenset(kinds), settings.event_stream_seconds)
    return EventStream(told, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})


async def _told(heard: AsyncGenerator[list[FleetEvent]], kinds: Set[str], seconds: float) -> AsyncIterator[bytes]:
    """Batches of events as the client gets them, some at a time: what it has not read takes little of the memory."""
    yield format_sse_event(comment="listening", retry=2000)
    clock = asyncio.get_running_loop().time
    told_at = clock()
    async with aclosing(heard) as batches:
        # A stream ends now and then, so that a balancer moves its client; the client comes back with its last id.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for batch in batches:
                    wanted = [event.as_sent for event in batch if not kinds or event.kind in kinds]
                    for first in range(0, len(wanted), AT_ONCE):
                        yield b"".join(wanted[first : first + AT_ONCE])
                    if wanted:
                        told_at = clock()
                    elif not batch or clock() - told_at > QUIET_SECONDS:  # others than these kinds may come all day
                        yield KEEPALIVE_COMMENT
                        told_at = clock()


@router.get("/events/history.csv", name="events_export", response_class=CsvResponse)
@router.get("/events/history", response_model=Page[FleetEvent])
async def events_list(
    _: Viewer,
    session: Reads,
    kinds: Kinds = [],  # noqa: B006
    *,
    node_id: UUID | None = None,
    code: Annotated[Word | None, Query(description="Code of a finding")] = None,
    since: Moment | None = None,
    synthetic: Annotated[bool | None, Query(description="Of made-up nodes; false: of all others")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_csv: AsCsv,
) -> Any:
    """Past changes, newest first. A page looks through 50,000: one with few or none may have a cursor."""
    listed = partial(service.list_events, kinds=kinds, node_id=node_id, code=code, since=since, synthetic=synthetic)
    page = await listed(session, limit=limit, cursor=cursor)
    if as_csv:
        return await as_csv.of("events", list(FleetEvent.model_fields), page, listed, json_row)
    return page


@router.get("/webhooks")
async def webhooks_list(_: Admin, session: Reads, limit: Limit = 50, cursor: Cursor = None) -> Page[Webhook]:
    """Receivers of events, newest first."""
    return await service.list_webhooks(session, limit=limit, cursor=cursor)


@router.post("/webhooks", status_code=201)
async def webhooks_create(actor: Admin, session: Writes, body: WebhookWrite) -> WebhookCreated:
    """Send events to a receiver, from now on. The secret that signs them is shown only in this answer."""
    return await service.create_webhook(session, body, created_by=actor.name)


@router.delete("/webhooks/{webhook_id}", status_code=204, response_class=Response)
async def webhooks_delete(_: Admin, session: Writes, webhook_id: UUID) -> None:
    """Stop sending to a receiver."""
    await service.delete_webhook(session, webhook_id)
