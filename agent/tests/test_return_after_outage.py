"""100,000 agents after an outage, in time-lapse: how many come back in the same second. The waits are real ones."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from hugeplan_agent.backoff import delay_seconds

AGENTS = 100_000
INTERVAL_SECONDS = 60.0
USUAL_PER_SECOND = AGENTS / INTERVAL_SECONDS


def returns(outage_seconds: float, retry_after_seconds: float | None) -> Counter[int]:
    """How many agents are first answered in each second after the outage; agents sample at any time of the minute.

    ``retry_after_seconds`` is what a service says that is up without its database; None: nobody answers.
    """
    generator = random.Random(7)
    found: Counter[int] = Counter()
    for _ in range(AGENTS):
        # The first report that cannot be sent, then one attempt after each wait (hugeplan_agent.service).
        at, failures = generator.uniform(0, INTERVAL_SECONDS), 0
        while at < outage_seconds:
            failures += 1
            at += delay_seconds(failures, retry_after_seconds, generator.uniform)
        found[int(at - outage_seconds)] += 1
    return found


@pytest.mark.parametrize(
    ("outage_seconds", "times_as_many"),
    [(5.0, 5.0), (30.0, 8.0), (120.0, 2.0), (600.0, 0.6), (3600.0, 0.5)],
)
@pytest.mark.parametrize("retry_after_seconds", [None, 5.0])
def test_no_second_sees_a_wave(outage_seconds: float, times_as_many: float, retry_after_seconds: float | None) -> None:
    """The busiest second beside the requests of a usual one. The longer nobody answered, the flatter: waits grow."""
    found = returns(outage_seconds, retry_after_seconds)
    assert sum(found.values()) == AGENTS
    assert max(found.values()) < times_as_many * USUAL_PER_SECOND
    # Nobody stays away: each is back within its longest wait and a minute.
    assert max(found) <= 300 + INTERVAL_SECONDS
