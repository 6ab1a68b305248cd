"""The backtest's headline counts huge-page results alone, tolerance and wide ranges apart, and it adds up."""

from __future__ import annotations

from pathlib import Path

from hugeplan.evidence.published import published_results, run_backtest
from hugeplan.planner.evaluation.backtest import TOLERANCE_POINTS, WIDE_POINTS, headline, published_range
from hugeplan.planner.gain.translation_saving import NATIVE_BOUND

ROOT = Path(__file__).parents[4]


def test_it_counts_huge_page_results_and_adds_up() -> None:
    rows = run_backtest()
    found = headline(rows)
    mine = [r for r in rows if r.group in {"database_huge_pages", "memory_access"}]
    assert found.results == len(mine) == found.inside + found.by_tolerance + found.outside
    assert found.outside == sum(r.status in {"outside", "unexplained"} for r in mine)
    assert found.databases_inside <= found.databases < found.results
    assert 0 < found.wide <= found.inside + found.by_tolerance


def test_a_row_is_inside_only_where_the_published_figure_lies_in_the_range() -> None:
    """The tolerance is a status of its own: a point beside the range is not in it."""
    rows = [r for r in run_backtest() if r.predicted_percent is not None]
    for r in rows:
        published, predicted = published_range(r.published), r.predicted_percent
        assert published is not None
        assert predicted is not None
        beside = max(predicted.low - published[1], published[0] - predicted.high)
        expected = {"inside"} if beside <= 0 else {"by_tolerance"} if beside <= TOLERANCE_POINTS else None
        assert r.status in (expected or {"outside", "unexplained"}), r.id
        assert r.is_wide == (predicted.high - predicted.low > WIDE_POINTS), r.id
    assert any(r.status == "by_tolerance" for r in rows)


def test_no_published_share_of_cycles_refutes_the_bound() -> None:
    """What large pages saved of all cycles is a gain by translation alone: the bound on bare metal is at least that."""
    shares = [item for item in published_results()["items"] if item["metric"] == "percent cycles in TLB misses"]
    assert shares
    for item in shares:
        if isinstance(item["value_a"], float) and isinstance(item["value_b"], float):
            assert (100 - item["value_b"]) / (100 - item["value_a"]) <= NATIVE_BOUND, item["id"]


def test_the_page_of_results_gives_the_headline_and_no_sum_with_buffer_pools() -> None:
    found = headline(run_backtest())
    text = " ".join((ROOT / "docs/model-results.md").read_text(encoding="utf-8").split())
    assert (
        f"{found.inside} of {found.results} published results of huge pages lie in the predicted range,"
        f" {found.by_tolerance} more within a point of it and {found.outside} outside"
    ) in text
    assert f"Of {found.databases} with databases {found.databases_inside} lie inside" in text
    assert f"{found.wide} of the ranges that hold are over 50 points wide" in text
