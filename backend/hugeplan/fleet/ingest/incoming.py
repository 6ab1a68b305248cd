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

from hugeplan.api import problems
from hugeplan.api.problems import FieldProblem, invalid_input
from hugeplan.documents.decoding import convert, decode
from hugeplan.documents.kept import pack, pack_around
from hugeplan.documents.report import Report

SCHEMA_VERSION = 1
MAX_CLOCK_AHEAD = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Incoming:
    """One report on its way into the database.

    ``parsed`` is None for a report of a newer schema, which is kept and marked. ``content`` is the parsed JSON;
    ``document`` and ``run_document`` are packed bytes. ``taken_at`` is when the sample was taken, but not later than
    the arrival.
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
            content_sha256=content_hash(document),
            run_id=None,
            run_document=None,
            taken_at=now,
            clock_ahead_seconds=None,
        )
    try:
        report = decode(Report, raw)
    except ValidationError as error:
        raise problems.from_validation(error) from error
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
        content_sha256=content_hash(document),
        run_id=None if run_document is None else uuid.uuid4(),
        run_document=run_document,
        taken_at=min(report.sample.taken_at, now),
        clock_ahead_seconds=_ahead(report, now),
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


def content_hash(document: Any) -> bytes:
    """SHA-256 of a document's content: equal for documents that differ only in spelling or order of keys."""
    return hashlib.sha256(msgspec.json.encode(document, order="sorted")).digest()


def former_content_hash(document: Any) -> bytes:
    """The hash that earlier versions stored: a report of before an upgrade that is sent again is known by it."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).digest()
