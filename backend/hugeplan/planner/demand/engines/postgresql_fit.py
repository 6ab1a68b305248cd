"""shared_buffers that fill whole pages: how far to shrink or grow the pool so that no page is left half empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Final

from hugeplan.planner.demand.engines import postgresql_shmem as shmem
from hugeplan.planner.model import MIB, FitSuggestion
from hugeplan.planner.pages import counted_pages
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import format_postgresql_bytes


@remembered(4096)
def fit_suggestions(
    major: int, settings: shmem.ShmemSettings, page_bytes: int, *, capped: bool
) -> tuple[FitSuggestion, ...]:
    """shared_buffers, in whole megabytes, that fill whole pages: one step down and one up. None if little is lost."""
    segment_bytes = _segment_of_buffers(major, settings, capped=capped)
    size_bytes = segment_bytes(settings.shared_buffers)
    pages = size_bytes // page_bytes + 1
    waste = pages * page_bytes - size_bytes
    if waste < max(page_bytes // 8, size_bytes // 100):
        return ()
    down = _largest_buffers(segment_bytes, settings.shared_buffers, (pages - 1) * page_bytes)
    up = _largest_buffers(segment_bytes, settings.shared_buffers, pages * page_bytes)
    suggestions = []
    for direction, blocks, limit_pages in (("shrink", down, pages - 1), ("grow", up, pages)):
        if blocks is None or blocks == settings.shared_buffers:
            continue
        suggestions.append(
            FitSuggestion(
                setting="shared_buffers",
                value=format_postgresql_bytes(blocks * shmem.BLOCK_BYTES),
                direction=direction,
                waste_before_bytes=waste,
                waste_after_bytes=limit_pages * page_bytes - segment_bytes(blocks),
                reason=f"The whole segment then fills {counted_pages(limit_pages, page_bytes)}.",
            )
        )
    return tuple(suggestions)


_SMALLEST_FIT_MIB: Final = 16
_BLOCKS_PER_MIB: Final = MIB // shmem.BLOCK_BYTES


def _segment_of_buffers(major: int, settings: shmem.ShmemSettings, *, capped: bool) -> Callable[[int], int]:
    """Bytes of the segment as a function of shared_buffers in blocks, every other setting as it is."""
    beside = sum(shmem.terms_beside_buffers(major, settings).values()) + shmem.linear_bytes(major, settings)

    others = {field.name: getattr(settings, field.name) for field in fields(settings)}

    @cache
    def segment_bytes(blocks: int) -> int:
        candidate = shmem.ShmemSettings(**{**others, "shared_buffers": blocks})
        terms = shmem.terms_of_buffers(major, candidate, checkpoint_capped=capped)
        return shmem.rounded_segment_bytes(sum(terms.values()) + beside)

    return segment_bytes


def _largest_buffers(segment_bytes: Callable[[int], int], buffers: int, limit_bytes: int) -> int | None:
    """The most shared_buffers, in blocks of whole megabytes, whose segment stays below ``limit_bytes``.

    The segment grows with shared_buffers, so a bracket around a first guess and a binary search find it.
    ``buffers``: the shared_buffers that are set, in blocks.
    """

    def fits(megabytes: int) -> bool:
        # One model error below the limit, so that the suggestion holds on the real server.
        return segment_bytes(megabytes * _BLOCKS_PER_MIB) + shmem.MODEL_ERROR_BYTES < limit_bytes

    # What the segment has for each of its buffers hardly changes, so the guess is off by a megabyte or two.
    room = limit_bytes - shmem.MODEL_ERROR_BYTES - segment_bytes(buffers)
    low = high = max((buffers + room // shmem.MARGINAL_BYTES_PER_BUFFER) // _BLOCKS_PER_MIB, _SMALLEST_FIT_MIB)
    step = 1
    while not fits(low):
        if low == _SMALLEST_FIT_MIB:
            return None
        low, high, step = max(low - step, _SMALLEST_FIT_MIB), low, step * 2
    while fits(high):
        low, high, step = high, high + step, step * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * _BLOCKS_PER_MIB
