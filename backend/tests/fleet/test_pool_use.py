"""A pool that nothing uses is worse than one that is nearly full."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from hugeplan.documents.report import Inventory, Sample
from hugeplan.fleet.findings import Observed, findings_of

EXAMPLE = json.loads((Path(__file__).parents[3] / "docs" / "report.example.json").read_text(encoding="utf-8"))
PAGES = 16_384


def states(used_pages: int) -> dict[str, str]:
    """States of the findings about the 2M pool, by code."""
    document = copy.deepcopy(EXAMPLE)
    document["sample"]["global_pools"] = []
    for pool in document["sample"]["pools"]:
        if pool["page_bytes"] == 2 * 1024**2:
            pool |= {"nr_hugepages": PAGES, "free_hugepages": PAGES - used_pages, "resv_hugepages": 0}
    observed = Observed(
        name="db-7",
        inventory=Inventory.model_validate(document["inventory"]),
        sample=Sample.model_validate(document["sample"]),
        collectors=[],
        spool=None,
        clock_ahead_seconds=None,
        effective_granule_bytes=None,
        planned=None,
    )
    return {one.code: one.state for one in findings_of(observed) if one.subject == "2M pool"}


@pytest.mark.parametrize("used_pages", [PAGES * 96 // 100, PAGES])
def test_a_pool_in_use_is_no_finding(used_pages: int) -> None:
    assert states(used_pages) == {}


def test_an_empty_pool_is_a_finding() -> None:
    assert states(0) == {"pool_idle": "attention"}
