"""When to try again."""

from __future__ import annotations

import random
from datetime import datetime, timezone

import pytest

from hugeplan_agent.backoff import CAP_SECONDS, MAX_RETRY_AFTER_SECONDS, delay_seconds, parse_retry_after

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


def test_the_wait_grows_and_is_capped() -> None:
    longest = [delay_seconds(failures, None, lambda _low, high: high) for failures in range(1, 40)]
    assert longest[:4] == [1, 2, 4, 8]
    assert longest == sorted(longest)
    assert longest[-1] == CAP_SECONDS


def test_the_wait_is_spread_over_half_the_step() -> None:
    generator = random.Random(1)
    waits = [delay_seconds(5, None, generator.uniform) for _ in range(500)]
    assert min(waits) >= 8
    assert max(waits) <= 16
    assert max(waits) - min(waits) > 7


@pytest.mark.parametrize("failures", [1, 5, 12])
@pytest.mark.parametrize("asked", [0.0, 30.0, 1000.0])
def test_retry_after_is_never_undercut(failures: int, asked: float) -> None:
    generator = random.Random(2)
    assert all(delay_seconds(failures, asked, generator.uniform) >= asked for _ in range(100))


def test_an_absurd_retry_after_is_bounded() -> None:
    assert delay_seconds(1, 1e9, random.Random(3).uniform) == MAX_RETRY_AFTER_SECONDS


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("120", 120),
        (" 5 ", 5),
        ("Fri, 20 Nov 2026 12:00:30 GMT", 30),
        ("Fri, 20 Nov 2026 11:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
def test_retry_after_header(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds
