"""How what a node's newest report says is kept: in full now and then, and between by what has changed since.

The next report says nearly the same. Written in full, it was half of the write-ahead log of a report, for
PostgreSQL writes each new value whole. So ``node_states`` holds a base, written with the columns that SQL reads, and
``newest_kept``: the newest state as a zstd frame (RFC 8878) with the base as its dictionary, a sixth of the size.

A replica of an earlier version writes the columns alone, and always ``processes_kept``. So ``newest_kept`` counts only
while that is null, and what such a replica reads is the state when the base was written.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec
import zstandard

from hugeplan.documents.kept import pack, unpack
from hugeplan.documents.report import CollectorResult, Inventory, ProcessMemory, Sample
from hugeplan.fleet.processes import keep_processes

_LEVEL: Final = 6
_LARGEST_BYTES: Final = 1 << 26
_LARGEST_WITH_BASE_BYTES: Final = 1 << 18
"""Of a state, and of a base. Each report of the node reads its base, so a large one would make all of them dear."""
_WORTH: Final = 0.5
"""A new base is written where what has changed takes more than this part of it."""


class Newest(msgspec.Struct, frozen=True):
    """What the newest report says, each as JSON."""

    inventory: msgspec.Raw
    sample: msgspec.Raw
    collectors: msgspec.Raw
    processes: msgspec.Raw


class StateColumns(Protocol):
    """A row of ``node_states``, or the part of it that says which form counts."""

    @property
    def processes_kept(self) -> bytes | None: ...
    @property
    def base_kept(self) -> bytes | None: ...
    @property
    def newest_kept(self) -> bytes | None: ...


_newest = msgspec.json.Decoder(Newest)


def columns_of(
    base_kept: bytes | None,
    *,
    inventory: Inventory,
    sample: Sample,
    collectors: Sequence[CollectorResult],
    processes: Sequence[ProcessMemory],
) -> tuple[dict[str, Any], bytes]:
    """The columns of ``node_states`` to be written, and the base that is there from then on.

    Columns that are not named keep their values. ``base_kept`` is the base that is there now. ``sample`` is without its
    processes.
    """
    whole = msgspec.json.encode(
        {"inventory": inventory, "sample": sample, "collectors": collectors, "processes": processes}
    )
    # A base that is damaged stops no report: a new one is written.
    with suppress(zlib.error):
        if base_kept and len(base_kept) <= _LARGEST_WITH_BASE_BYTES >= len(whole):
            compressor = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_dictionary(base_kept), write_checksum=True)
            changes = compressor.compress(whole)
            if len(changes) <= _WORTH * len(base_kept):
                return {"newest_kept": _spelled(changes), "processes_kept": None}, base_kept
    # Empty: no base. Null would leave the one before in the row.
    base_kept = pack(whole) if len(whole) <= _LARGEST_WITH_BASE_BYTES else b""
    return {
        "inventory": inventory,
        "sample": sample,
        "collectors": collectors,
        "processes_kept": keep_processes(processes),
        "base_kept": _spelled(base_kept),
        "newest_kept": None,
    }, base_kept


def newest_of(row: StateColumns) -> Newest | None:
    """What a row keeps beside its columns; None where the columns are the newest themselves.

    ValueError when it is damaged.
    """
    if row.processes_kept is not None or row.newest_kept is None or not row.base_kept:
        return None
    try:
        said = zstandard.get_frame_parameters(row.newest_kept)
        if said.content_size > _LARGEST_BYTES or not said.has_checksum:
            raise ValueError("the newest state of a node says that it is too large, or has no checksum")
        decompressor = zstandard.ZstdDecompressor(dict_data=_dictionary(row.base_kept))
        return _newest.decode(decompressor.decompress(row.newest_kept))
    except (zlib.error, zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise ValueError(f"the newest state of a node cannot be read back: {error}") from error


def _dictionary(base_kept: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(unpack(base_kept), dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _spelled(kept: bytes) -> str:
    """As PostgreSQL spells bytea."""
    return "\\x" + kept.hex()
