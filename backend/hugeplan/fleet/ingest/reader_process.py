"""The process that reads reports with runs: ``python -m hugeplan.fleet.ingest.reader_process LIMITS``.

Reports come on standard input and what was read of them goes to standard output, in their order, each behind its length
in four bytes. An empty answer says that the service reads this one itself, and finds the words for what is wrong with
it. LIMITS are those of JSON, as JSON. The process ends with its standard input, so it never outlives the service.
"""

from __future__ import annotations

import fcntl
import gc
import logging
import signal
import struct
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import BinaryIO, Final

import msgspec

from hugeplan.api.json_body import JsonLimits, parse_json
from hugeplan.documents.decoding import struct_of
from hugeplan.documents.report import Report
from hugeplan.errors import InvalidInputError
from hugeplan.fleet.ingest.incoming import read_with_run
from hugeplan.hardware import catalogue

LENGTH: Final = struct.Struct(">I")
READY: Final = b"\x06"
PIPE_BYTES: Final = 1024**2
"""Room for the reports of a few clients: a pipe has 64 KiB, so that each report would come in two parts."""

_encode = msgspec.msgpack.Encoder().encode


def answer(raw: bytes, limits: JsonLimits) -> bytes:
    """What is read of a report; nothing where the service is to read it itself."""
    try:
        read = read_with_run(raw, parse_json(raw, limits), datetime.now(UTC))
    except InvalidInputError:
        return b""
    except Exception:
        # The service reads it again, and answers with an error of its own if there is one.
        logging.getLogger(__name__).exception("a report was not read")
        return b""
    return b"" if read is None else _encode(read)


def serve(reports: BinaryIO, answers: BinaryIO, limits: JsonLimits) -> None:
    """Answer until the reports end."""
    while head := reports.read(LENGTH.size):
        (size,) = LENGTH.unpack(head)
        read = answer(reports.read(size), limits)
        answers.write(LENGTH.pack(len(read)) + read)
        answers.flush()


def main() -> None:
    """Serve standard input. Ctrl-C is for the service, which closes the input when it is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limits = msgspec.json.decode(sys.argv[1], type=JsonLimits)
    for pipe in (sys.stdin, sys.stdout):
        with suppress(OSError):  # it is no pipe, or this user has too many large ones
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    struct_of(Report)
    catalogue.catalogue()
    gc.collect()
    gc.freeze()  # What is there now stays; looking through it again and again takes a tenth of the time.
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    serve(sys.stdin.buffer, sys.stdout.buffer, limits)


if __name__ == "__main__":
    main()
