"""A report kept as what has changed since another one of its node.

Consecutive reports are nearly equal. As a zstd frame (RFC 8878) with an earlier report as its dictionary, the
reference, a report takes a fifth of its gzip. Before the frame stand a mark and the reference's id; JSON and gzip begin
otherwise. Each report refers to a whole document and never to another difference, so none is read through a chain.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from uuid import UUID

import zstandard

from hugeplan.documents.kept import unpack
from hugeplan.documents.sealed import DamagedBlockError

_MARK: Final = b"\x01"
_HEAD_BYTES: Final = 17
_LEVEL: Final = 6
SMALLEST_BYTES: Final = 1 << 10
"""Of a report that is kept like this."""
LARGEST_BYTES: Final = 1 << 18
"""Of the same, and of a reference: reading one report must stay cheap."""

REFERENCE_ID: Final = (
    "CASE WHEN substring(d.document FOR 1) = '\\x01'::bytea"
    " THEN CAST(encode(substring(d.document FROM 2 FOR 16), 'hex') AS uuid) END"
)
"""SQL: the reference of a row ``d`` of ``report_documents``; null where it is kept whole."""


def against(document: bytes, reference_id: UUID, reference: bytes) -> bytes:
    """The bytes to keep of a document that is not empty, beside its reference. Both as they came."""
    # A match of less than six bytes costs as much as the digits that it stands for.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, source_size=len(document), dict_size=len(reference), write_checksum=True,
        strategy=zstandard.STRATEGY_LAZY2, min_match=6,
    )  # fmt: skip
    compressor = zstandard.ZstdCompressor(compression_params=parameters, dict_data=_dictionary(reference))
    return b"".join((_MARK, reference_id.bytes, compressor.compress(document)))


def reference_of(kept: bytes) -> UUID | None:
    """The id of the reference that a document is read with; None: it is kept whole."""
    return UUID(bytes=kept[1:_HEAD_BYTES]) if kept.startswith(_MARK) and len(kept) > _HEAD_BYTES else None


def restored(kept: bytes, reference_kept: bytes | None) -> bytes:
    """The document as it came. ``reference_kept`` is its reference, packed (hugeplan.documents.kept); None: not found.

    DamagedBlockError, zlib.error when it cannot be read back.
    """
    if not kept.startswith(_MARK):
        return unpack(kept)
    if reference_kept is None:
        raise DamagedBlockError(f"it says what changed since report {reference_of(kept)}, which is not there")
    return unframed(kept[_HEAD_BYTES:], reference_kept, at_most=LARGEST_BYTES)


def unframed(frame: bytes, reference_kept: bytes, *, at_most: int) -> bytes:
    """The text in a frame whose dictionary is a packed text. DamagedBlockError."""
    try:
        said = zstandard.get_frame_parameters(frame)
        # A frame that lost its checksum or says that it is empty would be read unchecked.
        if not said.has_checksum:
            raise DamagedBlockError("it says that it has no checksum")
        if not 0 < said.content_size <= at_most:
            raise DamagedBlockError(f"it says {said.content_size} bytes in place of 1 to {at_most}")
        return zstandard.ZstdDecompressor(dict_data=_kept_dictionary(reference_kept)).decompress(frame)
    except zstandard.ZstdError as error:
        raise DamagedBlockError(str(error)) from error


@lru_cache(maxsize=4)
def _kept_dictionary(reference_kept: bytes) -> zstandard.ZstdCompressionDict:
    """Of a packed reference. Those of a node are read hundreds of times when it is sealed."""
    return _dictionary(unpack(reference_kept))


def _dictionary(reference: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(reference, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
