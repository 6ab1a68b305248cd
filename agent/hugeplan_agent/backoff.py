"""When to try again. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime

BASE_SECONDS = 1.0
CAP_SECONDS = 300.0
MAX_RETRY_AFTER_SECONDS = 3600.0


def delay_seconds(failures: int, retry_after_seconds: float | None, uniform: Callable[[float, float], float]) -> float:
    """Seconds to wait after ``failures`` failures in a row (1 or more).

    Exponential with full jitter, so that thousands of agents do not return together; at least half the step, so that
    the wait does grow; never less than the server's Retry-After.
    """
    step = min(CAP_SECONDS, BASE_SECONDS * 2.0 ** min(failures - 1, 30))
    waited = uniform(step / 2, step)
    if retry_after_seconds is None:
        return waited
    return min(MAX_RETRY_AFTER_SECONDS, max(waited, retry_after_seconds + uniform(0, step / 2)))


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from a Retry-After header: a number or an HTTP date. None when it is absent or makes no sense."""
    if value is None:
        return None
    text = value.strip()
    if text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        return None
    return max(0.0, (moment - now).total_seconds())
