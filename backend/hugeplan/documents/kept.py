"""How documents are kept: as gzip where that is smaller, else as they came. Both are read back byte for byte."""

from __future__ import annotations

import zlib

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = zlib.MAX_WBITS | 16
_COMPRESS_FROM_BYTES = 1024
_LEVEL = 1


def pack(document: bytes) -> bytes:
    """The bytes to keep. A JSON document never begins with gzip's magic number, so they tell what they are."""
    if len(document) < _COMPRESS_FROM_BYTES:
        return document
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    packed = compressor.compress(document) + compressor.flush()
    return packed if len(packed) < len(document) else document


def unpack(kept: bytes) -> bytes:
    """The document as it came. zlib.error when it is damaged."""
    return zlib.decompress(kept, _GZIP_WBITS) if kept.startswith(_GZIP_MAGIC) else kept
