"""What a container's huge page limit does to a database, by the report in docs/report.example.json."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hugeplan.documents.report import Inventory, Sample
from hugeplan.fleet.findings import NodeFinding, Observed, findings_of

GIB = 1024**3
EXAMPLE = json.loads((Path(__file__).parents[3] / "docs" / "report.example.json").read_text(encoding="utf-8"))
BASE = {"segments": [{"bytes": 17 * GIB, "backing": "base_pages", "page_bytes": 4096, "kind": "anonymous_shared"}]}


def found(**change: Any) -> dict[str, NodeFinding]:
    """The findings about the example's PostgreSQL, some of its fields changed, by code."""
    document = copy.deepcopy(EXAMPLE)
    database = document["sample"]["databases"][0]
    database.update(change)
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
    return {one.code: one for one in findings_of(observed) if one.subject == database["key"]}


def limit(counter: str, limit_bytes: int, usage_bytes: int = 0) -> dict[str, Any]:
    size = {"page_bytes": 2 * 1024**2, "limit_bytes": limit_bytes, "usage_bytes": usage_bytes}
    return {"counter": counter, "cgroup_path": "/pod", **size}


def test_the_examples_limit_is_a_time_bomb_with_half_of_its_cache_left() -> None:
    bomb = found()["time_bomb"]
    assert bomb.state == "wrong"
    assert bomb.title == "8 GiB of warm cache left before it fails", "limit 16 GiB, 8 GiB in use"
    assert "Bad address" in bomb.reason


@pytest.mark.parametrize(
    "limits",
    [[], None, [limit("usage", 17 * GIB)], [limit("reservation", GIB)]],
    ids=["unlimited", "unknown", "large enough", "the other counter"],
)
def test_no_bomb(limits: object) -> None:
    assert "time_bomb" not in found(hugetlb_limits=limits)


def test_a_reservation_limit_explains_a_fallback() -> None:
    fallen = found(**BASE, huge_pages_status="off", hugetlb_limits=[limit("reservation", GIB)])["silent_fallback"]
    assert fallen.title == "It fell back to base pages: its limit is 1 GiB, its segment 17 GiB"
    assert "huge_pages = on" in fallen.fix


def test_a_usage_limit_of_nothing_kills_initdb_where_pages_are_free() -> None:
    limits = [limit("usage", 0)]
    assert "SIGBUS" in found(**BASE, huge_pages_status="off", hugetlb_limits=limits)["initdb_bus_error"].reason
    both = [*limits, limit("reservation", 0)]
    assert "initdb_bus_error" not in found(**BASE, huge_pages_status="off", hugetlb_limits=both)
