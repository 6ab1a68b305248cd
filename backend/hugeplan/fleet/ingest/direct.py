"""Reports, directly: let in by the gate, read, stored and answered, without the machinery of a route's dependencies.

A fleet sends little else than reports. Finding their route and its dependencies took most of a report's time.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from fastapi import Request
from fastapi.responses import Response
from starlette.datastructures import State

from hugeplan.access.dependencies import forget_credential
from hugeplan.access.gate import Admitted, address_key
from hugeplan.access.gated_route import Intake
from hugeplan.access.machine_registry import MachineRegistry
from hugeplan.access.machines import Hints
from hugeplan.access.schemas import Role
from hugeplan.api.bodies_in_flight import LARGE_BYTES, PART_BYTES
from hugeplan.api.body import beside_loop, no_body, read_body, refuse_gone, unless_gone
from hugeplan.api.json_body import parse_json
from hugeplan.api.metrics import Metrics
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.documents.bounds import adapter
from hugeplan.errors import UnauthenticatedError
from hugeplan.fleet.ingest.again import SentAgain
from hugeplan.fleet.ingest.batch import SentAgainError
from hugeplan.fleet.ingest.incoming import Incoming, large_taken_over, read_report, taken_over
from hugeplan.fleet.ingest.large import is_large, read_beside
from hugeplan.fleet.ingest.reader import ReportReader
from hugeplan.fleet.ingest.writer import ReportWriter
from hugeplan.fleet.schemas import ReportReceipt
from hugeplan.sandbox.sandbox import Asker
from hugeplan.settings import Settings
from hugeplan.shares import WAITING_SECONDS, too_much

_AGENTS = frozenset({Role.AGENT})
LEAST_BYTES: Final = 3072
"""What a small report counts as in a day's worth, for its rows: by default that is one per second."""
MOST_PACKED: Final = 16
"""A report counts as at least this part of its length, however well it packs: sealing it costs what it is long."""


async def answer_report(request: Request) -> Response:
    """``reports_create`` without FastAPI, for a request whose credential is known."""
    intake: Intake = request.app.state.intake
    known = await intake.gate.admit(request, _AGENTS)
    address = address_key(request)
    async with AsyncExitStack() as turns:
        try:  # what waits for its turn is still packed, and with its client
            async with unless_gone(request), asyncio.timeout(WAITING_SECONDS):
                with intake.waiting_agents.one(known.line_id, address):
                    await turns.enter_async_context(intake.report_turns.turn(known.line_id))
        except TimeoutError as error:
            raise too_much("Too many reports of this credential wait.") from error
        with (
            intake.bodies_of_reports.body(known.line_id, PART_BYTES, address) as counted,
            intake.bodies_of_agents.body(known.line_id, LARGE_BYTES, address) as body,
        ):

            def add(count: int) -> None:
                counted.add(count)
                body.add(count)

            raw = await read_body(request, intake.limits, add)
            if not raw:
                raise no_body()
            is_beside = is_large(raw)
            async with body.turn(alone=is_beside):
                refuse_gone(request)
                incoming = await _read(request, raw, known, is_beside=is_beside)
            kept_bytes = max(LEAST_BYTES, len(incoming.document), len(raw) // MOST_PACKED)
            del raw  # its node may be locked for seconds: neither its bytes nor its turn are kept
            return await _store(request, incoming, known.line_id, kept_bytes)


async def _read(request: Request, raw: bytes, known: Admitted, *, is_beside: bool) -> Incoming:
    state: State = request.app.state
    limits, token_id = state.intake.limits, UUID(known.token_id)
    if is_beside:
        whose = Asker(known.line_id, is_agent=True, address=address_key(request))
        large = await read_beside(state.sandbox, raw, limits.json, whose=whose)
        return large_taken_over(large, token_id=token_id, now=datetime.now(UTC))

    reader: ReportReader = state.report_reader
    done = await reader.read(raw)
    if done is not None:
        return taken_over(done, token_id=token_id, now=datetime.now(UTC))

    def read() -> Incoming:
        return read_report(raw, parse_json(raw, limits.json), token_id=token_id, now=datetime.now(UTC))

    limits = replace(limits, of_the_loop=state.intake.reports_of_the_loop)
    return await beside_loop(request, len(raw), limits, read)


async def _store(request: Request, incoming: Incoming, whose: str, kept_bytes: int) -> Response:
    state = request.app.state
    writer: ReportWriter = state.report_writer
    metrics: Metrics = state.metrics
    settings: Settings = state.settings
    limiter: RateLimiter = state.rate_limiter
    limiter.spend_bytes(whose, kept_bytes, settings.report_bytes_per_day)

    def owe(size: int) -> None:
        limiter.owe_bytes(whose, size, settings.report_bytes_per_day)

    try:
        receipt = await writer.store(await _admit_machine(state.machines, incoming, whose, address_key(request)))
    except UnauthenticatedError:
        forget_credential(request)
        raise
    except SentAgainError as found:
        again: SentAgain = state.reports_again
        receipt = await again.answer(incoming, found, whose=whose, address=address_key(request), read=owe)
    if receipt._event_bytes:
        owe(receipt._event_bytes)
    metrics.count_report(created=receipt.created)
    content = adapter(ReportReceipt).dump_json(receipt)
    return Response(content, status_code=201 if receipt.created else 200, media_type="application/json")


async def _admit_machine(registry: MachineRegistry, incoming: Incoming, whose: str, address: str) -> Incoming:
    """The report, for the node of its machine: a clone has one of its own. ForbiddenError for another's token."""
    hints, machine_id = _hints_of(incoming), incoming.machine_id
    machine = await registry.admit(incoming.token_id, machine_id, hints, whose=whose, address=address)
    if machine.node_machine_id == incoming.machine_id and not machine.shares_machine_id:
        return incoming
    return replace(incoming, machine_id=machine.node_machine_id, shares_machine_id=machine.shares_machine_id)


def _hints_of(incoming: Incoming) -> Hints:
    """What tells this machine from a clone of it."""
    report = incoming.parsed
    if report is None:
        return Hints()
    hints = report.inventory.clone_hints
    return Hints(
        dmi_sha256=hints.dmi_sha256 if hints else None,
        mac_sha256=tuple(hints.mac_sha256) if hints and hints.mac_sha256 else None,
        boot_id=report.inventory.boot_id,
        taken_at=report.sample.taken_at,
    )
