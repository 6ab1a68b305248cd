"""A report as it arrived: read and checked, with everything made that needs no database."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from pydantic import ValidationError

from hugeplan.api.json_body import values_at_most
from hugeplan.documents.against import LARGEST_BYTES
from hugeplan.documents.decoding import changed, convert, read_parsed
from hugeplan.documents.kept import pack, pack_around, unpack
from hugeplan.documents.report import Report
from hugeplan.errors import from_validation
from hugeplan.fleet.ingest.read_run import ReadRun, read_run

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Incoming:
    """One report on its way into the database.

    ``parsed`` is None for a report of a newer schema, which is kept and marked. ``document`` is all of the report as
    it is kept; ``parsed`` and ``content``, the parsed JSON, may come without the run, which is read into ``run``.
    ``is_small``: it can be read again at any time, and costs little. ``raw``: as it came, if so and at hand.
    ``taken_at`` is when the sample was taken, but not later than the arrival: which of two clocks is wrong is not known
    here, and a report that was refused would be put aside by its agent for good.
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
    run: ReadRun | None
    taken_at: datetime
    clock_ahead_seconds: float | None
    is_small: bool = False
    raw: bytes = b""
    shares_machine_id: bool = False

    @property
    def run_id(self) -> UUID | None:
        """The id of the run in the report."""
        return None if self.run is None else self.run.id


class ReadReport(msgspec.Struct, frozen=True):
    """A report with a run, read and checked: plain data that a process beside the service makes.

    ``rest`` is the report's JSON without its run; ``document`` is all of it as it is kept.
    """

    rest: bytes
    document: bytes
    content_sha256: bytes
    run: ReadRun
    is_small: bool


class _Envelope(msgspec.Struct, frozen=True):
    schema_version: int
    report_id: UUID
    machine_id: str


class ReadLarge(msgspec.Struct, frozen=True):
    """A large report, read and checked by a process beside the service, without the members that nobody knows.

    ``known`` is JSON of what the models know of it without its run, null where they know nothing; ``envelope`` is there
    for a report of a newer schema.
    """

    known: bytes
    document: bytes
    content_sha256: bytes
    run: ReadRun | None
    envelope: _Envelope | None


class _RunOnly(msgspec.Struct):
    run: msgspec.Raw


def read_report(raw: bytes, document: Any, *, token_id: UUID, now: datetime) -> Incoming:
    """The report in a checked body; ``document`` is the same body, parsed. InvalidInputError names what is wrong."""
    newer = _newer_schema(document)
    if newer is not None:
        return _incoming(newer, document, pack(raw), hashlib.sha256(raw).digest(), token_id=token_id, now=now)
    report = _checked(raw, document)
    kept, run = _kept(raw, report, now)
    sha256, small = hashlib.sha256(raw).digest(), len(raw) <= LARGEST_BYTES
    return _incoming(report, document, kept, sha256, run, is_small=small, raw=raw * small, token_id=token_id, now=now)


def read_with_run(raw: bytes, document: Any, now: datetime) -> ReadReport | None:
    """A report with a run as plain data; None where it has none, or is of a newer schema. Errors as ``read_report``."""
    if _newer_schema(document) is not None:
        return None
    kept, run = _kept(raw, _checked(raw, document), now)
    if run is None:
        return None
    rest = msgspec.json.encode({name: value for name, value in document.items() if name != "run"})
    return ReadReport(rest, kept, hashlib.sha256(raw).digest(), run, len(raw) <= LARGEST_BYTES)


def read_large(raw: bytes, document: Any, now: datetime) -> ReadLarge:
    """A report as plain data, as small as what is known of it. Errors as ``read_report``."""
    sha256, newer = hashlib.sha256(raw).digest(), _newer_schema(document)
    if newer is not None:
        return ReadLarge(msgspec.json.encode(lenient(document)), pack(raw), sha256, None, newer)
    report = _checked(raw, document)
    kept, run = _kept(raw, report, now)
    return ReadLarge(msgspec.json.encode(changed(report, run=None)), kept, sha256, run, None)


def large_taken_over(read: ReadLarge, *, token_id: UUID, now: datetime) -> Incoming:
    """The large report that another process has read."""
    known = msgspec.json.decode(read.known)
    if read.envelope is not None:
        content = {} if known is None else known
        return _incoming(read.envelope, content, read.document, read.content_sha256, token_id=token_id, now=now)
    report = read_parsed(Report, read.known, known)
    sha256 = read.content_sha256
    return _incoming(report, known, read.document, sha256, read.run, token_id=token_id, now=now)


def taken_over(read: ReadReport, *, token_id: UUID, now: datetime) -> Incoming:
    """The report that another process has read."""
    rest = msgspec.json.decode(read.rest)
    report = read_parsed(Report, read.rest, rest)
    sha256, small = read.content_sha256, read.is_small
    return _incoming(report, rest, read.document, sha256, read.run, is_small=small, token_id=token_id, now=now)


def _checked(raw: bytes, document: Any) -> Report:
    try:
        return read_parsed(Report, raw, document)
    except ValidationError as error:
        raise from_validation(error) from error


def _incoming(
    said: Report | _Envelope, content: Any, kept: bytes, sha256: bytes, run: ReadRun | None = None, *,
    is_small: bool = False, raw: bytes = b"", token_id: UUID, now: datetime,
) -> Incoming:  # fmt: skip
    parsed = None if isinstance(said, _Envelope) else said
    return Incoming(
        token_id=token_id,
        received_at=now,
        report_id=said.report_id,
        machine_id=said.machine_id,
        schema_version=said.schema_version,
        parsed=parsed,
        document=kept,
        content=content,
        content_sha256=sha256,
        run=run,
        taken_at=now if parsed is None else min(parsed.sample.taken_at, now),
        clock_ahead_seconds=None if parsed is None else _ahead(parsed, now),
        is_small=is_small,
        raw=raw,
    )


def _kept(raw: bytes, report: Report, now: datetime) -> tuple[bytes, ReadRun | None]:
    """The report as it is kept, and its run."""
    if report.run is None:
        return pack(raw), None
    run = bytes(msgspec.json.decode(raw, type=_RunOnly).run)
    packed = pack(run)
    return pack_around(raw, run, packed), read_run(report.run, packed, now)


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


def _ahead(report: Report, now: datetime) -> float | None:
    ahead = (max(report.created_at, report.sample.taken_at) - now).total_seconds()
    return ahead if ahead > 0 else None


MOST_COMPARED: Final = 5_000
"""Commas and opening brackets of a document that is compared value by value: 10 ms, and a batch has dozens."""


def is_same_content(incoming: Incoming, stored_sha256: bytes | None, stored: bytes | None) -> bool:
    """Whether a report that was stored with this id says what this one says. ``stored`` is its packed document.

    Documents that differ only in spelling or in the order of keys are the same. Earlier versions kept a hash of the
    content instead of one of the bytes, and a document may have been dropped when its time was over.
    ``stored_sha256`` is None of a sealed one; where its block is damaged, too, its id and its time are all that is
    known, and they are the same. Of more than MOST_COMPARED values, or LARGEST_BYTES, only the same bytes are the same.
    """
    if stored_sha256 == incoming.content_sha256 or (stored_sha256 is None and stored is None):
        return True
    sent, kept = unpack(incoming.document), b"" if stored is None else unpack(stored)
    if sent == kept or any(len(one) > LARGEST_BYTES or values_at_most(one) > MOST_COMPARED for one in (sent, kept)):
        return sent == kept
    content = msgspec.json.decode(sent)
    if stored is not None:
        return _canonical(msgspec.json.decode(kept)) == _canonical(content)
    return stored_sha256 in _former_hashes(content)


def _canonical(document: Any) -> bytes:
    return msgspec.json.encode(document, order="sorted")


def _former_hashes(document: Any) -> tuple[bytes, bytes]:
    """The hashes of the content that earlier versions stored, the latest first."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(_canonical(document)).digest(), hashlib.sha256(canonical.encode()).digest()
