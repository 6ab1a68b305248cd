"""A plan's size is bounded, however little a scenario says that means much of it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from hugeplan.errors import InvalidInputError
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
