"""Responses and requests about events and webhooks."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Annotated, Literal
from uuid import UUID

from fastapi.sse import format_sse_event
from pydantic import AfterValidator, Field, StringConstraints

from hugeplan.api.schemas import Name, RequestModel, ResponseModel
from hugeplan.events.sending import target_of

EventKind = Literal[
    "node_added",
    "node_deleted",
    "run_added",
    "finding_opened",
    "finding_changed",
    "finding_closed",
    "plan_in_force_set",
    "plan_in_force_ended",
    "plan_verified",
    "plan_proposed",
    "plan_approved",
    "plan_withdrawn",
    "plan_stale",
    "fleet_plan_finished",
    "events_left_out",
]


class FleetEvent(ResponseModel):
    """A change. ``id`` rises in the order of commits. ``state`` and ``previous_state`` are set for findings."""

    id: int
    at: datetime
    kind: EventKind
    node_id: UUID | None
    node_name: str | None
    code: str | None
    subject: str | None
    state: Literal["wrong", "attention"] | None
    previous_state: Literal["wrong", "attention"] | None
    text: str

    @cached_property
    def as_sent(self) -> bytes:
        """The event as streams tell it: ``event`` is the kind, ``data`` the event. Written once for all listeners."""
        return format_sse_event(data_str=self.model_dump_json(), event=self.kind, id=str(self.id))


def _askable(url: str) -> str:
    target_of(url)
    return url


class WebhookWrite(RequestModel):
    """A receiver of events. ``format``: ``hugeplan`` sends the event as JSON, ``slack`` its text.

    ``kinds`` empty: all. What is sent is signed with a secret that is shown once.
    """

    name: Name
    url: Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://[^\s]+$"), AfterValidator(_askable)]
    format: Literal["hugeplan", "slack"] = "hugeplan"
    kinds: list[EventKind] = Field(default=[], max_length=16)


class Webhook(ResponseModel):
    """A receiver of events. ``pending`` are events on their way, ``failed`` those given up; 2,000 are counted."""

    id: UUID
    name: str
    url: str
    format: Literal["hugeplan", "slack"]
    kinds: list[EventKind]
    created_at: datetime
    created_by: str
    pending: int
    failed: int
    last_error: str | None


class WebhookCreated(Webhook):
    """A new receiver with its secret, which is not shown again."""

    secret: str
