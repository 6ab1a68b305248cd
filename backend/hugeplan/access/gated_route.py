"""The route of the API: credential, role and rate first, then the body, then the handler.

FastAPI reads a body before it asks the first dependency. So the roles that a handler's dependencies name are read off
its signature when the route is made, and judged here before the body is touched.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.dependencies.models import Dependant
from fastapi.responses import Response
from fastapi.routing import APIRoute

from hugeplan.access.connection_turns import ConnectionTurns
from hugeplan.access.gate import Admitted, Gate, address_key
from hugeplan.access.schemas import Role
from hugeplan.api.bodies_in_flight import PART_BYTES, REPORTS_OF_ONE, AnswersInFlight, BodiesInFlight, StrangersTurns
from hugeplan.api.body import BodyLimits, UnreadBody, keep_json, read_body, unless_gone
from hugeplan.api.dependencies import SAFE_METHODS, get_write_session
from hugeplan.api.loop_share import ROUND_SECONDS, LoopShare
from hugeplan.api.openapi import API_PREFIX, operation_id
from hugeplan.api.unread import Unread, is_unread
from hugeplan.errors import FieldProblem, invalid_input, shown
from hugeplan.shares import WAITING_OF_ONE, Turns, Waiting

PARSED_BODY_BYTES = 1024**2
PARSED_VALUES = 50_000
"""The largest body, and the most commas and opening brackets of one, that the service parses itself: more would hold up
others. Reports are taken in by a handler of their own."""
UNREAD_BODY_BYTES = 4 * 1024**2
"""The largest that the sandbox parses: more could not be planned within its limits."""
IMPORTS = 1
"""Imports that are kept at a time: something else may be written meanwhile."""
MACHINES = 4
"""Requests of agents that are no reports, and enrolments, that are worked on at a time, each; the others wait."""
MACHINES_OF_ONE = 2
"""Of one address, so that others find room."""
HEAD_SECONDS = ROUND_SECONDS / 4
"""What a request counts as that begins: four do in one round of the loop."""
OPEN_BODY_BYTES = 16 * 1024
"""The largest body of a request that needs no credential: a login."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What a gated route asks of its application, kept as ``app.state.intake``."""

    gate: Gate
    limits: BodyLimits
    connections: ConnectionTurns
    bodies: BodiesInFlight = field(default_factory=BodiesInFlight)
    bodies_of_agents: BodiesInFlight = field(default_factory=partial(BodiesInFlight, of_agents=True))
    bodies_of_reports: BodiesInFlight = field(default_factory=partial(BodiesInFlight, of_reports=True))
    strangers: StrangersTurns = field(default_factory=StrangersTurns)
    answers: AnswersInFlight = field(default_factory=AnswersInFlight)
    turns: Turns = field(default_factory=partial(Turns, waiting=WAITING_OF_ONE))
    turns_of_agents: Turns = field(default_factory=partial(Turns, 1, WAITING_OF_ONE))
    """Of each agent."""
    turns_of_addresses: Turns = field(default_factory=partial(Turns, MACHINES_OF_ONE))
    turns_of_roles: Turns = field(default_factory=partial(Turns, MACHINES))
    """Of all agents, and of all enrolment tokens: who has one of these has as many agents as it likes."""
    turns_of_imports: Turns = field(default_factory=partial(Turns, IMPORTS))
    """Of one credential, and of all where rows are kept: those of the same names wait for each other's."""
    reports_of_the_loop: LoopShare = field(default_factory=LoopShare)
    """Reports have a share of their own beside other bodies."""
    heads_of_the_loop: LoopShare = field(default_factory=LoopShare)
    """Requests that begin."""
    waiting_agents: Waiting = field(default_factory=Waiting)
    report_turns: Turns = field(default_factory=partial(Turns, REPORTS_OF_ONE, WAITING_OF_ONE))

    @asynccontextmanager
    async def turn_of(self, request: Request, *, is_import: bool = False) -> AsyncIterator[None]:
        """The time in which a handler may run for a credential, or for an address without one."""
        known: Admitted | None = getattr(request.state, "admitted", None)
        async with AsyncExitStack() as stack:
            async with unless_gone(request), AsyncExitStack() as waiting:
                if known is not None and known.is_machine:
                    waiting.enter_context(self.waiting_agents.one(known.line_id, address_key(request)))
                for turn in self._turns_of(request, known):
                    await stack.enter_async_context(turn)
                if is_import:
                    await stack.enter_async_context(self.turns_of_imports.turn(str(request.state.line_id)))
            request.state.turns = stack
            yield

    def _turns_of(self, request: Request, known: Admitted | None) -> Iterator[AbstractAsyncContextManager[None]]:
        """One's own first: what all share is not waited for, or held, behind one's own."""
        if known is None:
            yield self.strangers.brief_turn(f"bodies of {address_key(request)}")
        elif known.is_machine:
            address = address_key(request)
            own = self.turns_of_agents if known.role is Role.AGENT else self.turns
            yield own.turn(f"{known.line_id} at {address}")
            yield self.turns_of_addresses.turn(f"{known.role} at {address}")
            yield self.turns_of_roles.turn(known.role)
        else:
            yield self.turns.turn(known.line_id)

    async def begin(self, request: Request, known: Admitted | None) -> None:
        """Wait until a request may begin."""
        whose = address_key(request) if known is None or known.is_machine else known.line_id
        await self.heads_of_the_loop.wait(whose, HEAD_SECONDS)


def refuse_nul(request: Request, parameters: frozenset[str]) -> None:
    """InvalidInputError for a query parameter with a NUL character, which PostgreSQL cannot hold.

    Bodies are checked where they are parsed (``hugeplan.api.json_body``). Other bytes that are no text cannot come
    here: Starlette replaces what is not UTF-8.
    """
    if b"%00" not in request.scope["query_string"]:
        return
    for name, value in request.query_params.multi_items():
        if name in parameters and "\0" in value:
            raise invalid_input([FieldProblem(field=name, value=shown(value), expected="text without NUL characters")])


def _calls(dependant: Dependant) -> Iterator[Any]:
    for inner in dependant.dependencies:
        yield inner.call
        yield from _calls(inner)


def _query_parameters(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _query_parameters(inner)


class GatedRoute(APIRoute):
    """A route that reads no body of a request which it would refuse by its head."""

    def allowed_roles(self) -> frozenset[Role] | None:
        """The roles that may call this; None when it needs no credential."""
        found = [call.allowed_roles for call in _calls(self.dependant) if hasattr(call, "allowed_roles")]
        return frozenset.intersection(*found) if found else None

    def reads_body(self) -> bool:
        """Whether the handler takes a body."""
        return self.body_field is not None or self.leaves_body_unread()

    def leaves_body_unread(self) -> bool:
        """Whether the body is parsed in the sandbox, and may be larger."""
        declared = self.body_field is not None and is_unread(self.body_field.field_info.metadata)
        return declared or any(isinstance(call, UnreadBody) for call in _calls(self.dependant))

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, behind the gate."""
        handle = super().get_route_handler()
        allowed, reads_body = self.allowed_roles(), self.reads_body()
        # What has a session to write with has a line in the audit log; but not reports.
        is_change = get_write_session in _calls(self.dependant) and allowed != frozenset({Role.AGENT})
        unread = self.leaves_body_unread()
        instead = "".join(f"; {call.instead}" for call in _calls(self.dependant) if isinstance(call, UnreadBody))
        parameters = frozenset(_query_parameters(self.dependant))
        is_import = self.path.startswith(f"{API_PREFIX}/imports/")

        async def gated(request: Request) -> Response:
            intake: Intake = request.app.state.intake
            limits = intake.limits
            if allowed is None:
                limits = replace(limits, max_bytes=min(limits.max_bytes, OPEN_BODY_BYTES))
            else:
                known = await intake.gate.admit(request, allowed)
                intake.connections.begin(request, known, is_import=is_import)
                if is_change and request.method not in SAFE_METHODS:
                    intake.answers.require_room(request.state.line_id)
                    intake.gate.count_change(request)
                    request.state.is_change = True
            refuse_nul(request, parameters)
            if not reads_body and allowed is None:
                return await handle(request)
            if not reads_body:
                async with intake.turn_of(request):
                    return await handle(request)
            is_agent = getattr(request.state, "is_agent", False)
            bodies, each = (intake.bodies_of_agents, address_key(request)) if is_agent else (intake.bodies, None)
            with bodies.body(getattr(request.state, "line_id", ""), PART_BYTES, each) as counted:
                try:
                    if unread:
                        limits = replace(limits, max_bytes=min(limits.max_bytes, UNREAD_BODY_BYTES), instead=instead)
                    else:
                        limits = limits.at_most(PARSED_BODY_BYTES, PARSED_VALUES)
                    body = request.state.json_body = await read_body(request, limits, counted.add)
                    # A turn is for the work: who waits for the rest of a body has none, and what is whole waits for
                    # one. Without it all would be parsed at once, or wait for one lock with a connection each.
                    async with intake.turn_of(request, is_import=is_import):
                        if unread:
                            # FastAPI reads the body again through these two, where Starlette keeps what was read.
                            setattr(request, "_body", body)  # noqa: B010
                            setattr(request, "_json", Unread(body, limits.json))  # noqa: B010
                        else:
                            await keep_json(request, body, limits)
                        return await handle(request)
                finally:
                    request.state.json_body = b""  # a connection that waits keeps the state of its last request

        return gated


def api_router(tag: str, *, below: str = "") -> APIRouter:
    """A router of the API. Its routes know their whole paths and are added to an application as they are.

    What FastAPI includes it builds once more, on the event loop, when the first request comes.
    """
    return APIRouter(
        prefix=API_PREFIX + below, tags=[tag], route_class=GatedRoute, generate_unique_id_function=operation_id
    )
