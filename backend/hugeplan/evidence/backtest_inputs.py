"""What the backtest needs from outside the planner: the published rows and the processor catalogue."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from hugeplan.evidence.published import published_results
from hugeplan.hardware import catalogue
from hugeplan.planner.evaluation.backtest import BacktestRow, backtest
from hugeplan.planner.model import EffectiveGranule, HardwareFacts


def hardware_of(
    catalogue_id: str | None, virtualised: bool | None, granule_bytes: int | None, page_bytes: int
) -> HardwareFacts:
    """Facts of a published system: its processor from the catalogue, its granule where the source measured it."""
    entry = catalogue.by_id(catalogue_id) if catalogue_id else None
    facts = (
        catalogue.hardware_facts(entry, virtualised=virtualised)
        if entry is not None
        else HardwareFacts(virtualised=virtualised)
    )
    if granule_bytes is None:
        return facts
    granule = EffectiveGranule(backing="large", page_bytes=page_bytes, granule_bytes=granule_bytes, status="fractured")
    return replace(facts, granules=(granule,))


@lru_cache(maxsize=1)
def run_backtest() -> tuple[BacktestRow, ...]:
    """The backtest over every published result. It depends on nothing but the code, so it is made once."""
    return backtest(published_results()["items"], hardware_of)
