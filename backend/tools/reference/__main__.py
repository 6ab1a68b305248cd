"""``python -m tools.reference``: write every generated page of docs, and what the product carries of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tools.reference import backtest, pages, problems, schemas, settings

REPOSITORY: Final = Path(__file__).resolve().parents[3]
GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    "docs/scenario.schema.json": schemas.scenario,
    "docs/trial.schema.json": schemas.trial,
    "docs/settings.md": settings.render,
    "docs/problems.md": problems.render,
    "docs/reference-findings.md": pages.findings_page,
    "docs/reference-lint.md": pages.rules_page,
    "docs/reference-artifacts.md": pages.artifacts_page,
    "docs/reference-metrics.md": pages.metrics_page,
    "docs/reference-webhooks.md": pages.webhooks_page,
    "docs/reference-csv.md": pages.csv_page,
    "backend/hugeplan/evidence/backtest.json": backtest.render,
    "backend/hugeplan/reference/explanations.json": pages.explanations,
    "backend/hugeplan/api/static/findings.html": pages.findings_html,
}

if __name__ == "__main__":
    for name, render in GENERATED.items():
        (REPOSITORY / name).write_text(render(), encoding="utf-8")
