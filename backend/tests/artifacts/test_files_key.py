"""Nodes with one key get the same files, their names aside: whatever differs in a file differs in the key."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from artifacts.samples import EVERYTHING, instance, request_of
from artifacts.test_files_pasted import observed
from support.any_scenario import Dice

from hugeplan.artifacts import files_key, render
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    GIB,
    MIB,
    GlobalPool,
    NodeSample,
    ObservedKubelet,
    PlanRequest,
)
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import ScenarioDocument, to_request

KUBELET = ObservedKubelet(
    version="v1.34.0", kube_reserved_bytes=GIB, system_reserved_bytes=GIB, eviction_hard_bytes=100 * MIB, source="api"
)
#: They lead to a choice of pages, which the plan has. Some values of them no plan is made of.
NO_FILE_READS = {"workload", "hardware", "trials", "type_trials"}


def on_kubelet(request: PlanRequest) -> PlanRequest:
    """A node whose reservations its kubelet tells."""
    sample = NodeSample(kubelet=KUBELET, pools=(GlobalPool(page_bytes=2 * MIB, nr_hugepages=20),))
    unknown = dict.fromkeys(("kube_reserved_bytes", "system_reserved_bytes", "eviction_hard_bytes"))
    given = replace(request.reservations, **unknown)
    return replace(request, sample=sample, reservations=given)


def requests() -> list[PlanRequest]:
    found = [observed(), *EVERYTHING, on_kubelet(EVERYTHING[1])]
    found.append(replace(request_of("mysql", kubernetes=True), databases=(instance("mysql", container="db"),)))
    for seed in range(60):
        try:
            found.append(to_request(ScenarioDocument.model_validate(Dice(seed).scenario())))
        except PlannerError:
            continue
    return found


def others(value: Any, rng: random.Random) -> Iterator[Any]:
    """``value`` with one leaf of it changed, each leaf in turn."""
    if isinstance(value, bool) or value is None:
        yield not value
        if value is None:
            yield from (2 * MIB, "changed")
    elif isinstance(value, float):
        yield value + 0.001
    elif isinstance(value, int):
        yield value + 1
        yield value * 2 + MIB
    elif type(value) is str:
        yield value + "x"
        yield "always" if value != "always" else "never"
        yield re.sub(r"\d+", lambda found: str(int(found[0]) + 1), value)
    elif isinstance(value, tuple):
        yield value[1:] if value else value
        for at, item in enumerate(value[:3]):
            yield from ((*value[:at], other, *value[at + 1 :]) for other in others(item, rng))
    elif isinstance(value, Mapping):
        yield from ({**value, key: other} for key, item in value.items() for other in others(item, rng))
    elif is_dataclass(value):
        for field in fields(value):
            if field.init and field.name not in NO_FILE_READS:
                yield from (replace(value, **{field.name: x}) for x in others(getattr(value, field.name), rng))


def files_of(request: PlanRequest) -> tuple[str | None, str] | None:
    """Key and files of a node of whatever name. None where it cannot be planned."""
    request = replace(request, node=replace(request.node, name="db-7"))
    try:
        found = plan(request)
        return files_key(found, request), repr(render(found, request))
    except (PlannerError, TypeError, ValueError, AttributeError, KeyError):  # of a value of another type, too
        return None


@pytest.mark.parametrize("number", range(len(REQUESTS := requests())))
def test_what_differs_in_a_file_differs_in_the_key(number: int) -> None:
    rng = random.Random(number)
    request = REQUESTS[number]
    before = files_of(request)
    if before is None or not before[0]:
        return
    changed = [
        replace(request, **{part: other})
        for part in ("node", "reservations", "databases", "policy", "sample")
        for other in others(getattr(request, part), rng)
    ]
    for other in rng.sample(changed, min(len(changed), 60)):
        after = files_of(other)
        if after is not None and after[0] == before[0]:
            assert after[1] == before[1]


@pytest.mark.parametrize("provider", [None, "gke", "aks", "eks"])
@pytest.mark.parametrize("engine", ["oracle", "generic", "postgresql", "mysql", "mariadb", "jvm"])
def test_nodes_of_one_kind_whose_memory_differs_by_some_kib_have_one_key(engine: str, provider: str | None) -> None:
    """As kernels and firmware of one machine type make it differ."""
    request = request_of(engine)
    if provider is not None:
        request = replace(request, reservations=replace(request.reservations, kubernetes=True, provider=provider))
    keys = set()
    for less in range(0, 12 * 4096, 4096):
        first, *rest = request.node.numa
        numa = (replace(first, mem_total_bytes=first.mem_total_bytes - 64 * MIB - less), *rest)
        one = replace(request, node=replace(request.node, numa=numa))
        keys.add(files_key(plan(one), one))
    assert len(keys) == 1
