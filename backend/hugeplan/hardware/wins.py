"""From a tlbbench document to cases of the win matrix: latency curves and rows read."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.hardware.curves import hardware_facts_of
from hugeplan.planner.evaluation.win_matrix import Timing, WinCase, cases_of, cases_of_curves
from hugeplan.planner.model import HardwareFacts

#: Rows read come as one rate without an interval: rates closer than twice this share are taken as equal.
ROW_RATE_FRACTION: Final = 0.01
_USABLE: Final = frozenset({None, "ok", "noisy", "fractured"})


def cases_of_run(document: TlbbenchDocument, machine: str, facts: HardwareFacts | None = None) -> tuple[WinCase, ...]:
    """Every point of a run that was measured with two or more page sizes.

    A point is one layout at one footprint, or rows of one width read in one way by so many workers. Backings that
    were not granted are left out. ``facts`` are those of the document, where they were made before.
    """
    curves = (facts or hardware_facts_of(document)).curves
    return (*cases_of_curves(machine, curves), *_cases_of_rows(document, machine))


def _cases_of_rows(document: TlbbenchDocument, machine: str) -> tuple[WinCase, ...]:
    timings: dict[tuple[object, ...], dict[str, Timing]] = defaultdict(dict)
    page_bytes: dict[str, int] = {}
    for row in document.rows.measurements if document.rows else ():
        rate, size = row.rows_per_second, row.page_bytes
        if not rate or size is None or row.status not in _USABLE:
            continue
        page_bytes[row.backing] = size
        ns = 1e9 / rate
        case = (row.row_bytes, row.keys, row.read, row.workers, row.mode, row.segment_bytes)
        timings[case][row.backing] = Timing(ns, ns * (1 - ROW_RATE_FRACTION), ns * (1 + ROW_RATE_FRACTION))
    named = {
        f"rows of {row_bytes} bytes, {keys} {read}, {workers} {mode}, {segment_bytes} bytes": own
        for (row_bytes, keys, read, workers, mode, segment_bytes), own in timings.items()
        if len(own) >= 2
    }
    return cases_of(machine, named, page_bytes)
