"""The backtest's headline counts huge-page results alone, tolerance and wide ranges apart, and it adds up."""

from __future__ import annotations

from hugeplan.evidence.published import run_backtest
from hugeplan.planner.evaluation.backtest import headline


def test_it_counts_huge_page_results_and_adds_up() -> None:
    rows = run_backtest()
    found = headline(rows)
    mine = [r for r in rows if r.group in {"database_huge_pages", "memory_access"} and r.status != "no_inputs"]
    assert found.results == len(mine) == found.inside + found.by_tolerance + found.outside
    assert found.outside >= sum(r.status in {"outside", "unexplained"} for r in mine)
    assert found.databases_inside <= found.databases < found.results
    assert 0 < found.wide <= found.inside + found.by_tolerance
