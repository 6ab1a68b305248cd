"""A plan's size and its time are bounded, however little a scenario says that means much of it."""

from __future__ import annotations

import json
import pickle
import struct
from typing import Any

import pytest

from hugeplan.errors import InvalidInputError
from hugeplan.planner import other_node
from hugeplan.sandbox.orders import Limits
from hugeplan.scenarios import work

GIB = 1024**3


def answer_of(name: str, *, keep: bool) -> bytes:
    """200 databases and 100 tenants on four NUMA nodes."""
    node = {"name": "n", "cpus": 64, "numa_nodes": [{"id": one, "memory": 64 * GIB} for one in range(4)]}
    one: dict[str, Any] = {"engine": "postgresql", "version": "17", "settings": {"shared_buffers": "64MB"}}
    databases = [{**one, "name": f"{number}{name}"} for number in range(200)]
    tenants = [{"name": f"{number}{name}", "request": "1Mi"} for number in range(100)]
    scenario = {"node": node, "databases": databases, "tenants": tenants}
    return work.compute(pickle.dumps((work.Question(scenario), work.Files(keep=keep))))


@pytest.mark.parametrize("keep", [False, True])
def test_a_plan_of_more_than_four_mebibytes_is_refused_with_what_makes_it_large(*, keep: bool) -> None:
    small = answer_of("d", keep=keep)
    assert small[:1] == work.DONE
    assert len(small) < work.MAX_ANSWER_BYTES
    with pytest.raises(InvalidInputError, match="shorter names"):
        answer_of("d" * 190, keep=keep)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_plan_that_does_not_fit_is_answered_where_no_time_is_left_to_try_others(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """On a busy machine the search for another node took what the answer needed: a what-if was refused."""
    tried = []

    def counted(request: Any) -> Any:
        tried.append(request)
        return plan_of(request)

    plan_of = other_node.plan
    monkeypatch.setattr(other_node, "plan", counted)
    database = {"name": "d", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "900GB"}}
    scenario = {"node": {"name": "n", "memory": 64 * GIB}, "databases": [database]}
    unfinished = work.compute(pickle.dumps((work.Question(scenario), work.Files())))
    assert unfinished[:1] == work.UNFINISHED
    used = struct.pack(">d", share * Limits().cpu_seconds)
    answer = json.loads(work.finish(pickle.dumps((unfinished[:1] + used + unfinished[9:], [])))[1:])
    assert answer["plan"]["headline"].startswith("Does not fit n: ")
    assert bool(tried) is (share == 0.0)
