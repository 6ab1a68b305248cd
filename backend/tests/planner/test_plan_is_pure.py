"""A plan depends on its request and on nothing else: not on what the process planned before, not on its neighbours."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import random
import re
from pathlib import Path

import numpy as np
import pytest
from support.any_scenario import Dice
from support.seeds import SEEDS

from hugeplan import planner
from hugeplan.planner import remembered
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.gain.translation import Floats, characteristic_times
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import ScenarioDocument, to_request

TARGETS, OTHERS = 24, 200


def document(seed: int, without: int = 0) -> ScenarioDocument:
    """A seed's scenario, if wanted without the first of its databases: the others may then be remembered."""
    found = Dice(seed).scenario()
    return ScenarioDocument.model_validate({**found, "databases": found["databases"][without:]})


def answer(seed: int, without: int = 0) -> str:
    """The plan of a seed's scenario with every digit of every number, or the field that is refused."""
    try:
        return json.dumps(dataclasses.asdict(plan(to_request(document(seed, without)))))
    except PlannerError as error:
        return str(error)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_plan_of_a_process_is_its_plan_after_two_hundred_others(seed: int) -> None:
    targets = [100 * seed + k for k in range(TARGETS)]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hugeplan.planner.plan", "hugeplan.scenario_file"])
    with context.Pool(1, maxtasksperchild=1) as pool:
        first = pool.map(answer, targets, chunksize=1)
    for other in range(OTHERS):
        answer(targets[-1] + 1 + other)
    for target in targets:
        answer(target, without=1)
    assert sum(found.startswith("{") for found in first) >= TARGETS // 2, seed
    assert [answer(target) for target in reversed(targets)] == first[::-1], seed


def system(rng: random.Random) -> tuple[list[float], list[float]]:
    """Rates and counts of the classes of one cache."""
    classes = range(rng.randrange(1, 40))
    return [10.0 ** rng.uniform(-9, 1) for _ in classes], [10.0 ** rng.uniform(0, 7) for _ in classes]


def filled(rows: list[list[float]], width: int) -> Floats:
    return np.array([[*row, *(0.0,) * (width - len(row))] for row in rows])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("caches", [1, 4])
def test_a_cache_is_solved_alone_as_beside_others(seed: int, caches: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        systems = [system(rng) for _ in range(rng.randrange(1, 12))]
        rates, counts = [list(of) for of in zip(*systems, strict=True)]
        capacities = np.array([[sum(held) * 10.0 ** rng.uniform(-4, 0.1) for _ in range(caches)] for held in counts])
        width = max(map(len, rates)) + rng.randrange(9)
        together = characteristic_times(filled(rates, width), filled(counts, width), capacities)
        alone = [
            characteristic_times(np.array([rate]), np.array([held]), capacity[np.newaxis])[0]
            for rate, held, capacity in zip(rates, counts, capacities, strict=True)
        ]
        assert together.tolist() == np.array(alone).tolist(), seed


def test_what_is_remembered_is_in_one_place_and_may_be_dropped_at_any_time() -> None:
    before = [answer(seed) for seed in range(6)]
    remembered.forget()
    assert [answer(seed) for seed in range(6)] == before
    sources = {file: file.read_text() for file in Path(planner.__file__).parent.rglob("*.py")}
    assert [file.name for file, text in sources.items() if "lru_cache" in text] == ["remembered.py"]
    module_state = re.compile(r"^_?[a-z]\w*(?:: [^=\n]+)? = (?:\{\}|\[\]|dict\(\)|list\(\)|set\(\))$", re.MULTILINE)
    assert {file.name: found for file, text in sources.items() if (found := module_state.findall(text))} == {}


def test_what_others_make_large_is_kept_by_size() -> None:
    latest: remembered.Latest[str, int] = remembered.Latest(10)
    for key in "ab":
        latest.keep(key, 1, 4)
    assert latest.get("a") == 1
    latest.keep("c", 1, 4)
    assert [latest.get(key) for key in "abc"] == [1, None, 1]
    latest.keep("a", 2, 11)  # in place of what is no longer so
    assert latest.get("a") is None
    latest.keep("d", 1, 6)
    assert [latest.get(key) for key in "cd"] == [1, 1]
    latest.keep("d", 2, 7)
    assert [latest.get(key) for key in "cd"] == [None, 2]
