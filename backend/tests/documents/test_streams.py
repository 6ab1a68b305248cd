"""Octets of several kinds: each is compressed with its like, and what is damaged takes no memory."""

from __future__ import annotations

import random
import tracemalloc

import msgspec
import pytest
import zstandard

from hugeplan.documents.sealed import DamagedBlockError, seal, unseal_all


def test_kinds_are_compressed_apart() -> None:
    """Differences of 13 bits with their sign that may be anything, 200 in each of 360 texts, and a twentieth more."""
    chance = random.Random(1)
    texts = [b" ".join(b"%d" % (chance.getrandbits(12) + 10_000) for _ in range(200)) for _ in range(360)]
    assert len(seal(texts)) < 1.05 * 200 * 360 * 13 / 8
    assert unseal_all(seal(texts)) == texts


def block(kinds: bytes, sizes: list[int], frames: dict[int, bytes]) -> bytes:
    """A block with a plan of one's own."""
    compress = zstandard.ZstdCompressor(write_checksum=True).compress
    packed = {kind: compress(octets) for kind, octets in frames.items()}
    return b"\x03" + msgspec.msgpack.encode((compress(msgspec.msgpack.encode((kinds, sizes))), packed))


HEAD = b"\x02\0\0\0[]"


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x03",
        b"\x03\x90",
        block(b"", [], {}),
        block(b"\7", [1 << 40], {7: HEAD}),
        block(b"\7" * 2**10, [2**20] * 2**10, {7: HEAD}),
        block(b"\7\7", [len(HEAD) + 5, -5], {7: HEAD}),
        block(b"\7", [len(HEAD)], {8: HEAD}),
        block(b"\7", [len(HEAD) + 1], {7: HEAD}),
        block(b"\7", [len(HEAD) - 1], {7: HEAD}),
        block(b"\7\7", [len(HEAD)], {7: HEAD}),
        block(b"\7", [len(HEAD)], {7: HEAD, 8: b"\0" * (1 << 27)}),
    ],
)
def test_what_a_plan_says_is_bounded(damaged: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(DamagedBlockError):
        unseal_all(damaged)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
