"""Token buckets in memory: a bound for each process, not for the fleet of replicas.

A replica forgets its buckets when it restarts. That is enough here: the limits protect the service
from loops and from guessing, and a guess of a 256-bit token is hopeless at any rate.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable

from hugeplan.errors import RateLimitedError

MAX_BUCKETS = 50_000
"""Of each kind: addresses, which anybody can have many of, push out no credential's."""


class RateLimiter:
    """One bucket for each (kind, key). A bucket holds a minute's worth, or ``most``, and refills evenly."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: defaultdict[str, OrderedDict[str, tuple[float, float]]] = defaultdict(OrderedDict)

    def _level(self, kind: str, key: str, per_minute: int, most: int) -> float:
        level, at = self._buckets[kind].get(key, (float(most), self._clock()))
        return min(float(most), level + (self._clock() - at) * per_minute / 60)

    def refuse_exhausted(self, kind: str, key: str, per_minute: int, most: int = 0) -> float:
        """The requests that are left in the bucket. RateLimitedError for less than one."""
        level = self._level(kind, key, per_minute, most or per_minute)
        if level < 1:
            seconds = math.ceil((1 - level) * 60 / per_minute)
            raise RateLimitedError(
                f"More than {per_minute} a minute. Try again in {seconds} s.", headers={"Retry-After": str(seconds)}
            )
        return level

    def spend(self, kind: str, key: str, per_minute: int, most: int = 0) -> None:
        """Take one request from the bucket, or raise RateLimitedError."""
        self._set(kind, key, self.refuse_exhausted(kind, key, per_minute, most) - 1)

    def _set(self, kind: str, key: str, level: float) -> None:
        buckets = self._buckets[kind]
        buckets[key] = (level, self._clock())
        buckets.move_to_end(key)
        while len(buckets) > MAX_BUCKETS:
            buckets.popitem(last=False)

    def spend_bytes(self, key: str, size: int, per_day: int) -> None:
        """Take bytes that stay from a day's worth, or raise RateLimitedError: who sends them keeps them and waits."""
        full, level = float(per_day), self._bytes_left(key, per_day)
        if level < size:
            seconds = math.ceil(min(86400.0, (size - level) * 86400 / full))
            raise RateLimitedError(
                f"More than {per_day} bytes to keep a day. Try again in {seconds} s.",
                headers={"Retry-After": str(seconds)},
            )
        self.owe_bytes(key, size, per_day)

    def _bytes_left(self, key: str, per_day: int) -> float:
        level, at = self._buckets["bytes"].get(key, (float(per_day), self._clock()))
        return min(float(per_day), level + (self._clock() - at) * per_day / 86400)

    def owe_bytes(self, key: str, size: int, per_day: int) -> None:
        """Take bytes that are kept already, also where nothing is left: what comes next waits for them."""
        self._set("bytes", key, self._bytes_left(key, per_day) - size)
