"""How busy other work keeps the CPUs, from /proc/stat."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_SAMPLE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Ticks of all CPUs since boot: all of them, those with nothing to do, and those that the hypervisor kept."""

    total: int
    idle: int
    steal: int

    @classmethod
    def now(cls) -> Self:
        """This moment's; OSError or ValueError where /proc/stat does not tell."""
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        user, nice, system, idle, waiting, hard, soft, steal = (int(word) for word in words)
        return cls(user + nice + system + idle + waiting + hard + soft + steal, idle + waiting, steal)

    @classmethod
    def others_share(cls) -> float | None:
        """Share of CPU time that was not idle over the next moment, in which the caller must do nothing itself."""
        try:
            before = cls.now()
            time.sleep(_SAMPLE_SECONDS)
            after = cls.now()
        except (OSError, ValueError):
            return None
        return 1.0 - (after.idle - before.idle) / max(1, after.total - before.total)
