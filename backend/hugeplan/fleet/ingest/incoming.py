"""A report as it arrived: read and checked, with everything made that needs no database."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from pydantic import ValidationError

from hugeplan.documents.decoding import convert, read_parsed
from hugeplan.documents.kept import pack, pack_around, unpack
from hugeplan.documents.report import Report
from hugeplan.errors import FieldProblem, from_validation, invalid_input
from hugeplan.hardware.curves import hardware_facts_of
from hugeplan.planner.model import HardwareFacts

SCHEMA_VERSION = 1
MAX_CLOCK_AHEAD = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Incoming:
    """One report on its way into the database.

    ``parsed`` is None for a report of a newer schema, which is kept and marked. ``content`` is the parsed JSON;
    ``document`` and ``run_document`` are packed bytes, ``facts`` what the run says of the hardware. ``taken_at`` is
    when the sample was taken, but not later than the arrival.
    """

    token_id: UUID
    received_at: datetime
    report_id: UUID
    machine_id: str
    schema_version: int
    parsed: Report | None
    document: bytes
    content: Any
    content_sha256: bytes
    run_id: UUID | None
    run_document: bytes | None
    taken_at: datetime
    clock_ahead_seconds: float | None
    shares_machine_id: bool = False
    facts: HardwareFacts | None = None


class _RunOnly(msgspec.Struct):
    run: msgspec.Raw


class _Envelope(msgspec.Struct):
    schema_version: int
    report_id: UUID
    machine_id: str


def read_report(raw: bytes, document: Any, *, token_id: UUID, now: datetime) -> Incoming:
    """The report in a checked body; ``document`` is the same body, parsed. InvalidInputError names what is wrong."""
    newer = _newer_schema(document)
    if newer is not None:
        return Incoming(
            token_id=token_id,
            received_at=now,
            report_id=newer.report_id,
            machine_id=newer.machine_id,
            schema_version=newer.schema_version,
            parsed=None,
            document=pack(raw),
            content=document,
            content_sha256=hashlib.sha256(raw).digest(),
            run_id=None,
            run_document=None,
            taken_at=now,
            clock_ahead_seconds=None,
        )
    try:
        report = read_parsed(Report, raw, document)
    except ValidationError as error:
        raise from_validation(error) from error
    _refuse_far_future(report, now)
    kept, run_document = _packed(raw, has_run=report.run is not None)
    return Incoming(
        token_id=token_id,
        received_at=now,
        report_id=report.report_id,
        machine_id=report.machine_id,
        schema_version=report.schema_version,
        parsed=report,
        document=kept,
        content=document,
        content_sha256=hashlib.sha256(raw).digest(),
        run_id=None if run_document is None else uuid.uuid4(),
        run_document=run_document,
        taken_at=min(report.sample.taken_at, now),
        clock_ahead_seconds=_ahead(report, now),
        facts=None if report.run is None else hardware_facts_of(report.run),
    )


def _packed(raw: bytes, *, has_run: bool) -> tuple[bytes, bytes | None]:
    """The report and its run as they are kept."""
    if not has_run:
        return pack(raw), None
    run = bytes(msgspec.json.decode(raw, type=_RunOnly).run)
    packed = pack(run)
    return pack_around(raw, run, packed), packed


def _newer_schema(document: Any) -> _Envelope | None:
    """The envelope of a report that only a later version of the service can read; None for any other document."""
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int) or not SCHEMA_VERSION < version < 2**15:
        return None
    try:
        return msgspec.convert(document, _Envelope)
    except msgspec.ValidationError:
        return None  # the model names what is wrong with it


def lenient(document: Any) -> Report | None:
    """A report of a newer schema read as one of this schema, if it can be: enough to know the node by."""
    try:
        return convert(Report, document | {"schema_version": SCHEMA_VERSION})
    except ValidationError:
        return None


def _refuse_far_future(report: Report, now: datetime) -> None:
    if report.sample.taken_at > now + MAX_CLOCK_AHEAD:
        expected = "a time that is not more than a day ahead of the server's clock"
        value = report.sample.taken_at.isoformat()
        raise invalid_input([FieldProblem(field="sample.taken_at", value=value, expected=expected)])


def _ahead(report: Report, now: datetime) -> float | None:
    ahead = (max(report.created_at, report.sample.taken_at) - now).total_seconds()
    return ahead if ahead > 0 else None


def is_same_content(incoming: Incoming, stored_sha256: bytes, stored: bytes | None) -> bool:
    """Whether a report that was stored with this id says what this one says. ``stored`` is its packed document.

    Documents that differ only in spelling or in the order of keys are the same. Earlier versions kept a hash of the
    content instead of one of the bytes, and a document may have been dropped when its time was over.
    """
    if stored_sha256 == incoming.content_sha256:
        return True
    if stored is not None:
        return _canonical(msgspec.json.decode(unpack(stored))) == _canonical(incoming.content)
    return stored_sha256 in _former_hashes(incoming.content)


def _canonical(document: Any) -> bytes:
    return msgspec.json.encode(document, order="sorted")


def _former_hashes(document: Any) -> tuple[bytes, bytes]:
    """The hashes of the content that earlier versions stored, the latest first."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(_canonical(document)).digest(), hashlib.sha256(canonical.encode()).digest()
