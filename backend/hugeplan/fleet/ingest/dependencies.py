"""What the route of reports asks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated
from uuid import UUID

import anyio.to_thread
from fastapi import Depends, Request

from hugeplan.access.machine_registry import MachineRegistry
from hugeplan.access.machines import Hints
from hugeplan.api.body import JsonBody
from hugeplan.fleet.ingest.incoming import Incoming, read_report
from hugeplan.fleet.ingest.writer import ReportWriter

READ_BESIDE_LOOP_BYTES = 32 * 1024
"""A larger report is read in a thread: below, handing it over costs more than reading it."""


async def read_beside_loop(body: JsonBody, *, token_id: UUID) -> Incoming:
    """The report of a body. InvalidInputError names what is wrong with it."""
    read = partial(read_report, body.raw, body.document, token_id=token_id, now=datetime.now(UTC))
    return await anyio.to_thread.run_sync(read) if len(body.raw) > READ_BESIDE_LOOP_BYTES else read()


async def admit_machine(request: Request, incoming: Incoming) -> Incoming:
    """The report, for the node of its machine: a clone has one of its own. ForbiddenError for another's token."""
    registry: MachineRegistry = request.app.state.machines
    machine = await registry.admit(incoming.token_id, incoming.machine_id, hints_of(incoming))
    return replace(incoming, machine_id=machine.node_machine_id, shares_machine_id=machine.shares_machine_id)


def hints_of(incoming: Incoming) -> Hints:
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


async def get_report_writer(request: Request) -> ReportWriter:
    """The writer of this process."""
    writer: ReportWriter = request.app.state.report_writer
    return writer


CurrentReportWriter = Annotated[ReportWriter, Depends(get_report_writer)]
