"""Token buckets: what they let through, when they refill, and that they do not grow without bound."""

from __future__ import annotations

import pytest

from hugeplan.api import ratelimit
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.errors import RateLimitedError


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def passed(limiter: RateLimiter, tries: int, *, per_minute: int, key: str = "a") -> int:
    """How many of some requests pass."""
    count = 0
    for _ in range(tries):
        try:
            limiter.spend("token", key, per_minute)
        except RateLimitedError:
            continue
        count += 1
    return count


def test_a_minutes_worth_passes_at_once_and_then_refills_evenly() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    assert passed(limiter, 20, per_minute=6) == 6
    clock.seconds += 10
    assert passed(limiter, 20, per_minute=6) == 1
    clock.seconds += 3600
    assert passed(limiter, 20, per_minute=6) == 6


def test_keys_and_kinds_do_not_share() -> None:
    limiter = RateLimiter(Clock())
    assert passed(limiter, 5, per_minute=2, key="a") == 2
    assert passed(limiter, 5, per_minute=2, key="b") == 2
    limiter.spend("login", "a", 2)


@pytest.mark.parametrize("per_minute", [1, 7, 60, 1200])
def test_after_retry_after_one_request_passes(per_minute: int) -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    passed(limiter, per_minute, per_minute=per_minute)
    with pytest.raises(RateLimitedError) as refused:
        limiter.spend("token", "a", per_minute)
    clock.seconds += int(refused.value.headers["Retry-After"])
    limiter.spend("token", "a", per_minute)


def test_buckets_are_bounded_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratelimit, "MAX_BUCKETS", 3)
    limiter = RateLimiter(Clock())
    for key in "abcd":
        limiter.spend("token", key, 1)
    assert passed(limiter, 1, per_minute=1, key="d") == 0
    assert passed(limiter, 1, per_minute=1, key="a") == 1


def test_many_addresses_push_out_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratelimit, "MAX_BUCKETS", 3)
    limiter = RateLimiter(Clock())
    limiter.spend("token", "mine", 1)
    limiter.spend_bytes("mine", 1000, 1000)
    for key in "abcd":
        limiter.spend("address", key, 1)
    assert passed(limiter, 1, per_minute=1, key="mine") == 0
    with pytest.raises(RateLimitedError):
        limiter.spend_bytes("mine", 1, 1000)


def test_bytes_that_stay_have_a_day_to_refill() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    limiter.spend_bytes("a", 800, 1000)
    with pytest.raises(RateLimitedError) as refused:
        limiter.spend_bytes("a", 300, 1000)
    limiter.spend_bytes("b", 1000, 1000)
    clock.seconds += int(refused.value.headers["Retry-After"])
    limiter.spend_bytes("a", 300, 1000)
