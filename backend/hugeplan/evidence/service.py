"""Published results and the backtest over them, read once."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import cache

from hugeplan.evidence.backtest_inputs import run_backtest
from hugeplan.evidence.published import published_results
from hugeplan.evidence.schemas import Backtest, BacktestRow, Evidence, PublishedResult
from hugeplan.planner.evaluation.backtest import counts, counts_by_group


@cache
def evidence() -> Evidence:
    """The published results, in the order of the file."""
    document = published_results()
    fields = PublishedResult.model_fields.keys()
    items = [PublishedResult.model_validate({name: row[name] for name in fields}) for row in document["items"]]
    return Evidence(about=document["about"], items=items, not_found=document["not_found"])


async def backtest() -> Backtest:
    """The model against the published results. The first call takes a moment; the answer never changes."""
    rows = await asyncio.to_thread(run_backtest)
    return Backtest(
        items=[BacktestRow.model_validate(asdict(row)) for row in rows],
        counts=counts(rows),
        counts_by_group=counts_by_group(rows),
    )
