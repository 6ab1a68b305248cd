"""How documents are kept: as gzip where that is smaller, else as they came. Both are read back byte for byte."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = zlib.MAX_WBITS | 16
_COMPRESS_FROM_BYTES = 1024
_LEVEL = 1
_BEGINNING_BYTES = 64


def _fast() -> Callable[[bytes, int, int], bytes] | None:
    """isal's gzip, the same format several times as fast, where there is a wheel of it for the processor."""
    try:
        compress: Callable[[bytes, int, int], bytes] = importlib.import_module("isal.isal_zlib").compress
    except ImportError:
        return None
    return compress


_FAST = _fast()


def pack(document: bytes) -> bytes:
    """The bytes to keep. A JSON document never begins with gzip's magic number, so they tell what they are."""
    if len(document) < _COMPRESS_FROM_BYTES:
        return document
    packed = _gzip(document)
    return packed if len(packed) < len(document) else document


def pack_around(document: bytes, part: bytes, packed_part: bytes) -> bytes:
    """The bytes to keep of a document of which a part is packed already, so that the part is compressed once.

    They are three gzip members after each other, which together are one gzip file.
    """
    # Looking for the whole of a large part costs as much as compressing it; its beginning is found at once.
    at = document.find(part[:_BEGINNING_BYTES])
    if at < 0 or not document.startswith(part, at) or not packed_part.startswith(_GZIP_MAGIC):
        return pack(document)
    return b"".join((_gzip(document[:at]), packed_part, _gzip(document[at + len(part) :])))


def unpack(kept: bytes) -> bytes:
    """The document as it came. zlib.error when it is damaged."""
    if not kept.startswith(_GZIP_MAGIC):
        return kept
    parts = []
    while kept:
        member = zlib.decompressobj(_GZIP_WBITS)
        parts.append(member.decompress(kept))
        if not member.eof:
            raise zlib.error("the gzip stream is cut off")
        kept = member.unused_data
    return b"".join(parts)


def unpacked_bytes(kept: bytes) -> int:
    """How large a document is that ``pack`` has packed, without unpacking it: gzip ends with that."""
    return int.from_bytes(kept[-4:], "little") if kept.startswith(_GZIP_MAGIC) else len(kept)


def _gzip(data: bytes) -> bytes:
    if _FAST is not None:
        return _FAST(data, _LEVEL, _GZIP_WBITS)
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    return compressor.compress(data) + compressor.flush()
