"""Reports of very many values are read in the sandbox: parsing one holds up everybody for as long as it takes.

A report of a real node has a few thousand values. What comes back has the members that the models know, which are
bounded, so that what is left to do here is small; the document is kept as it came.
"""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Final

import msgspec
import numpy as np

from hugeplan.api.json_body import JsonLimits, parse_json, values_at_most
from hugeplan.documents.decoding import struct_of
from hugeplan.documents.report import Report
from hugeplan.fleet.ingest.incoming import ReadLarge, read_large
from hugeplan.hardware import catalogue
from hugeplan.sandbox.orders import Limits
from hugeplan.sandbox.sandbox import Asker, Sandbox

READ: Final = f"{__name__}:read"
MANY_VALUES: Final = 20_000
"""From so many commas and opening brackets on: about 25 ms of parsing and checking."""
LIMITS: Final = Limits(cpu_seconds=1.0, memory_bytes=128 * 1024**2)
"""Above what the limits of JSON let through: a report that is refused is put aside by its agent for good."""
_decode = msgspec.msgpack.Decoder(ReadLarge).decode


def is_large(raw: bytes) -> bool:
    """Whether a report has so many values, or numbers so long, that it is read in the sandbox."""
    return len(raw) > MANY_VALUES and (values_at_most(raw) > MANY_VALUES or _has_a_thousand_digits(raw))


def _has_a_thousand_digits(raw: bytes) -> bool:
    """Whether 1,024 digits stand in a row: Python takes a tenth of a millisecond for a number of four thousand."""
    # By every hundredth byte first, which most reports fail: of so many in a row at least eight are looked at.
    for step, widths in ((100, (1, 2, 4)), (1, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512))):
        found = (np.frombuffer(raw, np.uint8)[::step] - np.uint8(ord("0"))) < 10
        for width in widths:
            found = found[:-width] & found[width:]
        if not found.any():
            return False
    return True


async def read_beside(sandbox: Sandbox, raw: bytes, limits: JsonLimits, *, whose: Asker) -> ReadLarge:
    """What is read of a report. Errors as ``read_report``, and those of the sandbox where too much waits."""
    payload = pickle.dumps((raw, limits))
    return _decode(await sandbox.work(READ, payload, whose=whose, what="Reading this report", limits=LIMITS))


def prepare() -> None:
    """Load what reading needs, before the first fork."""
    struct_of(Report)
    catalogue.catalogue()


def read(payload: bytes) -> bytes:
    """The report, read."""
    raw, limits = pickle.loads(payload)  # noqa: S301 - the service wrote it
    return msgspec.msgpack.encode(read_large(raw, parse_json(raw, limits), datetime.now(UTC)))
