"""One figure of the service's benchmark, as bench/planner.py prints its own, and the table for people."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Figure = dict[str, Any]


def figure(name: str, seconds: float, budget: float | None, **rest: Any) -> Figure:
    """One line of the result. Wall time of both sides of a ratio is judged, so it stands for processor time too."""
    return {
        "name": name,
        "seconds": round(seconds, 6),
        "cpu_seconds": round(seconds, 6),
        "budget_seconds": None if budget is None else round(budget, 6),
        **rest,
    }


def is_missed(found: Figure) -> bool:
    """Whether a figure is past its bar."""
    return found["budget_seconds"] is not None and found["cpu_seconds"] > found["budget_seconds"]


def table(found: Sequence[Figure]) -> str:
    """A line per figure: the verdict, p50 and p95 or the time, the bar, and the rest."""
    lines = [f"{'':7} {'p50 ms':>9} {'p95 ms':>9} {'bar ms':>9}"]
    for item in found:
        bar = item["budget_seconds"]
        verdict = "" if bar is None else "missed" if is_missed(item) else "kept"
        more = ", ".join(
            f"{name} {value}"
            for name, value in item.items()
            if name not in {"name", "seconds", "cpu_seconds", "budget_seconds", "median_seconds", "summary"}
        )
        times = [item.get("median_seconds"), item["seconds"], bar]
        shown = " ".join(f"{'' if value is None else format(1000 * value, '.2f'):>9}" for value in times)
        lines.append(f"{verdict:7} {shown}  {item['name']}{f' ({more})' if more else ''}")
    return "\n".join(lines)


def processor_seconds(pid: int) -> float:
    """Processor time of a process and of those that it started, such as the one that reads runs."""
    total = 0
    for one in (pid, *_started_by(pid)):
        fields = Path(f"/proc/{one}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def resident_bytes_of_all(pid: int) -> int:
    """The same with the processes that it started. What they share counts for each."""
    return sum(map(resident_bytes, (pid, *_started_by(pid))))


def _started_by(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found
