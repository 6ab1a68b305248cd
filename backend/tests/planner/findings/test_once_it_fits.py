"""A plan that does not fit tells nobody to carry it out; one that fits does."""

from __future__ import annotations

import re

import pytest
from support.any_scenario import Dice

from hugeplan.cli.plan_answer import plan_answer
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import State
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import ScenarioDocument, to_request

CARRIES_OUT = re.compile(
    r"Apply the |Reserve (the planned|[\d,]+ pages|at boot|this size)|nr_hugepages to the plan|Set hugepages-|"
    r"Set (huge_pages|large_pages|use_large_pages)|evictionSoft memory\.available|vm\.hugetlb_optimize"
)


@pytest.mark.parametrize("seed", range(250))
def test_what_does_not_fit_is_not_to_be_carried_out(seed: int) -> None:
    document = Dice(seed).scenario()
    if seed % 2:  # the dice seldom throw databases that are too large
        document["databases"] = [
            *document.get("databases", ()),
            {"name": "too large", "engine": "postgresql", "settings": {"shared_buffers": "64TB"}, "page_size": "2M"},
        ]
    try:
        found = plan(to_request(ScenarioDocument.model_validate(document)))
    except (PlannerError, ValueError):
        return
    told = [f.fix for f in found.findings if f.state is not State.OK and f.fix and CARRIES_OUT.search(f.fix)]
    if found.fits is False:
        assert [fix for fix in told if not fix.startswith("Once the plan fits: ")] == []
        assert not found.headline.startswith("Reserve ")
        assert "\nApply\n" not in plan_answer(found, ())
    else:
        assert [fix for fix in told if fix.startswith("Once the plan fits: ")] == []
    TOLD[found.fits] = TOLD.get(found.fits, 0) + len(told)


TOLD: dict[bool | None, int] = {}


def test_both_answers_were_asked() -> None:
    assert not TOLD or (TOLD[False] and TOLD[True])
