"""Many documents of one node in one block: consecutive reports are nearly equal, so each costs little beside the first.

Each is read back byte for byte. zstd with a window that holds the whole block (RFC 8878).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import zstandard

_LEVEL: Final = 9
_WINDOW_LOG: Final = 26
"""64 MiB: more than an hour's documents of any node; a reader must grant as much memory."""


class DamagedBlockError(Exception):
    """A block that cannot be read back."""


def seal(documents: Sequence[bytes]) -> bytes:
    """The block of documents as they came, in this order."""
    whole = b"".join(documents)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, source_size=len(whole), window_log=_WINDOW_LOG, enable_ldm=True, write_checksum=True
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(whole)


def unseal(block: bytes, sizes_bytes: Sequence[int], number: int) -> bytes:
    """The document of this number, from 0. DamagedBlockError when the block is not what was sealed."""
    ends = list(accumulate(sizes_bytes))
    try:
        frame = zstandard.get_frame_parameters(block)
        # Before any memory is taken: what the frame says it holds is what was sealed.
        if frame.content_size != ends[-1]:
            raise DamagedBlockError(f"it says {frame.content_size} bytes in place of {ends[-1]}")
        whole = zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG).decompress(block)
    except zstandard.ZstdError as error:
        raise DamagedBlockError(str(error)) from error
    return whole[ends[number] - sizes_bytes[number] : ends[number]]
