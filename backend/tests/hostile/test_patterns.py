"""No pattern goes back over what it read: twice the text takes about twice the time."""

from __future__ import annotations

import itertools
import time

import pytest
from hostile.patterns import UNITS, Found, all_patterns, hostile, literals

PATTERNS = list(all_patterns())
SIZES = (400, 1600, 6400)
NEGLIGIBLE_SECONDS = 0.002
"""A linear pattern reads 6,400 characters in a fraction of this."""
MOST_GROWTH = 8.0
"""Four times the text: a linear pattern takes four times as long, a quadratic one sixteen times."""


def seconds(found: Found, text: str | bytes, repeats: int = 1) -> float:
    """The shortest of some tries to use a pattern as the package does: what else the machine does only adds."""
    best, pattern = float("inf"), found.pattern
    for _ in range(repeats):
        begun = time.process_time()
        if not found.uses <= {"match", "fullmatch"}:
            for _ in pattern.finditer(text):
                pass
        if "match" in found.uses:
            pattern.match(text)
        if "fullmatch" in found.uses:
            pattern.fullmatch(text)
        best = min(best, time.process_time() - begun)
    return best


def test_there_are_patterns() -> None:
    assert len(PATTERNS) > 100


@pytest.mark.parametrize("found", PATTERNS, ids=lambda found: found.place)
def test_a_pattern_takes_time_in_proportion_to_its_text(found: Found) -> None:
    as_bytes = isinstance(found.pattern.pattern, bytes)
    for lead in literals(found.pattern):
        for unit in UNITS:
            for texts in zip(*(hostile(lead, unit, size) for size in SIZES), strict=True):
                judge(found, [text.encode() if as_bytes else text for text in texts], f"{lead!r} + {unit!r}")


def judge(found: Found, texts: list[str | bytes], what: str) -> None:
    """From the shortest text on, so that a bad pattern is seen before it takes minutes."""
    for small, large in itertools.pairwise(texts):
        if seconds(found, large) < NEGLIGIBLE_SECONDS:
            continue
        growth = seconds(found, large, 3) / seconds(found, small, 3)
        assert growth < MOST_GROWTH, f"{found.pattern.pattern!r} on {what}: {growth:.1f} times"
