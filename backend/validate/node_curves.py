"""The node's own curves, measured by tlbbench before anything is predicted."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.hardware.curves import hardware_facts_of
from hugeplan.planner.model import HardwareFacts

GEOMETRY_ATTEMPTS = 4
EXCLUSIVE = ("nice", "-n", "-20")


class CurvesError(Exception):
    """No curves are available; the message says why."""


def measure_curves(tlbbench: Path, save_to: Path, *, max_memory_bytes: int, profile: str) -> HardwareFacts:
    """Measure geometry, then latency, keep both as one document, and read it."""
    if not tlbbench.exists():
        raise CurvesError(f"{tlbbench} is not built (make agent)")
    document = _measure(tlbbench, "geometry", max_memory_bytes, profile)
    document["latency"] = _measure(tlbbench, "latency", max_memory_bytes, profile).get("latency")
    save_to.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return read_curves(save_to)


def measure_pressure(tlbbench: Path, save_to: Path, *, max_memory_bytes: int, exclusive: bool = False) -> HardwareFacts:
    """Geometry, and of the latencies those that a prediction rests on: plain pairs and accesses under pressure.

    ``exclusive``: at the highest ordinary priority, so that other work hardly interrupts it.
    """
    before = EXCLUSIVE if exclusive else ()
    if not tlbbench.exists():
        raise CurvesError(f"{tlbbench} is not built (make agent)")
    for _ in range(GEOMETRY_ATTEMPTS):
        document = _measure(tlbbench, "geometry", max_memory_bytes, "quick", "--keep-priority", before=before)
        if hardware_facts_of(TlbbenchDocument.model_validate(document)).granules:
            break  # else other work disturbed the sweep and the effective page size is missing
    chosen = ("--curves", "line_per_page,pressure", "--page-sizes", "4K,2M", "--keep-priority")
    latency = _measure(tlbbench, "latency", max_memory_bytes, "full", *chosen, "--time-limit", "120", before=before)
    document["latency"] = latency.get("latency")
    save_to.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return read_curves(save_to)


def _measure(
    tlbbench: Path, command: str, max_memory_bytes: int, profile: str, *more: str, before: Sequence[str] = ()
) -> dict[str, Any]:
    options = ["--profile", profile, "--json", "--reserve", "--max-memory", str(max_memory_bytes), *more]
    done = subprocess.run([*before, str(tlbbench), command, *options], stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if done.returncode not in (0, 3):
        raise CurvesError(f"tlbbench {command} ended with status {done.returncode}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def read_curves(path: Path) -> HardwareFacts:
    """Hardware facts of a saved tlbbench document."""
    return hardware_facts_of(TlbbenchDocument.model_validate_json(path.read_bytes()))
