"""From a tlbbench document to cases of the win matrix: latency curves and rows read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from hugeplan.hardware.curves import hardware_facts_of
from hugeplan.planner.evaluation.win_matrix import Timing, WinCase, cases_of, cases_of_curves

#: Rows read come as one rate without an interval: rates closer than twice this share are taken as equal.
ROW_RATE_FRACTION: Final = 0.01
_USABLE: Final = frozenset({None, "ok", "noisy", "fractured"})


def cases_of_run(document: Mapping[str, Any], machine: str) -> tuple[WinCase, ...]:
    """Every point of a run that was measured with two or more page sizes.

    A point is one layout at one footprint, or rows of one width read in one way by so many workers. Backings that
    were not granted are left out. Raises what a document with wrong fields raises (KeyError, TypeError, ValueError).
    """
    return (*cases_of_curves(machine, hardware_facts_of(document).curves), *_cases_of_rows(document, machine))


def _cases_of_rows(document: Mapping[str, Any], machine: str) -> tuple[WinCase, ...]:
    timings: dict[str, dict[str, Timing]] = defaultdict(dict)
    page_bytes: dict[str, int] = {}
    for row in (document.get("rows") or {}).get("measurements") or ():
        rate, size = row.get("rows_per_second"), row.get("page_bytes")
        if not rate or size is None or row.get("status") not in _USABLE:
            continue
        page_bytes[row["backing"]] = size
        ns = 1e9 / rate
        width, workers, segment = row.get("row_bytes"), row.get("workers"), row.get("segment_bytes")
        name = (
            f"rows of {width} bytes, {row.get('keys')} {row.get('read')}, {workers} {row.get('mode')}, {segment} bytes"
        )
        timings[name][row["backing"]] = Timing(ns, ns * (1 - ROW_RATE_FRACTION), ns * (1 + ROW_RATE_FRACTION))
    return cases_of(machine, timings, page_bytes)
