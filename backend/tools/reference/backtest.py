"""What the service answers of the backtest, computed here once."""

from __future__ import annotations

import json
from typing import Final

from hugeplan.evidence.published import run_backtest
from hugeplan.evidence.schemas import Backtest
from hugeplan.planner.evaluation.backtest import counts, counts_by_group

DECIMALS: Final = 4
"""Of percentages. What processors and libraries round differently is in no digit before it."""


def render() -> str:
    """backend/hugeplan/evidence/backtest.json."""
    rows = run_backtest()
    answer = Backtest(items=list(rows), counts=counts(rows), counts_by_group=counts_by_group(rows))
    rounded = json.loads(answer.model_dump_json(), parse_float=lambda digits: round(float(digits), DECIMALS))
    return json.dumps(rounded, indent=1, ensure_ascii=False) + "\n"
