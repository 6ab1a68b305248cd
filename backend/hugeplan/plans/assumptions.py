"""Does a kept plan still hold with a newer sample? It is planned again with it, and the decisions are compared.

A fact that changed without changing the decision makes no plan stale: an hour later every node has other free memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hugeplan.planner.check import require_bounded
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import NodeFacts, NodeSample, Plan, PlanRequest
from hugeplan.planner.observation.databases import as_it_runs
from hugeplan.planner.pages import counted_pages, page_label
from hugeplan.planner.plan import plan
from hugeplan.planner.units import format_bytes

NAME: Final = "name"
_MOST: int = 12
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Changed:
    """One thing that changed, in words with units."""

    what: str
    was: str
    now: str


def renamed(was: str | None, now: str | None) -> tuple[Changed, ...]:
    """What its node's other name changes of a plan: its files would go to whoever has the name. Empty without one."""
    return () if now is None else (Changed(NAME, str(was), now),)


def changed(kept: PlanRequest, decided: Plan, facts: NodeFacts, sample: NodeSample) -> tuple[Changed, ...]:
    """What a newer sample changes of the decision, and the facts that changed with it. Empty where the plan holds."""
    newer = replace(kept, node=facts, sample=None if kept.sample is None else sample)
    try:
        require_bounded(newer)
        again = plan(newer)
    except PlannerError as error:
        decision: tuple[Changed, ...] = (Changed("plan", decided.headline, str(error)),)
    else:
        decision = tuple(_decision(decided, again))
    if not decision:
        return ()
    return (*decision, *_facts(kept.node, facts), *_databases(kept, facts, sample))[:_MOST]


def _decision(was: Plan, now: Plan) -> Iterator[Changed]:
    if was.fits != now.fits:
        yield Changed("plan", was.headline, now.headline)
    before, after = _planned(was), _planned(now)
    for numa, size in sorted(before.keys() | after.keys()):
        pages, again = before.get((numa, size), 0), after.get((numa, size), 0)
        if pages != again:
            what = f"planned pages on NUMA node {numa}"
            yield Changed(what, counted_pages(pages, size), counted_pages(again, size))


def _planned(found: Plan) -> dict[tuple[int, int], int]:
    return {(pool.numa_node, pool.page_bytes): pool.pages for pool in found.pools if pool.pages}


def _facts(was: NodeFacts, now: NodeFacts) -> Iterator[Changed]:
    yield from _different("NUMA node {}: memory", _memory(was), _memory(now))
    yield from _different("NUMA node {0[0]}: pages there", _standing(was), _standing(now))
    if was.default_huge_page_bytes != now.default_huge_page_bytes:
        sizes = (format_bytes(node.default_huge_page_bytes) for node in (was, now))
        yield Changed("default huge page size", *sizes)
    if was.kernel_release != now.kernel_release:
        yield Changed("kernel", str(was.kernel_release), str(now.kernel_release))
    yield from _different("trial of {0[0]} with {0[1]}", _trials(was), _trials(now))


def _trials(node: NodeFacts) -> dict[object, str]:
    """The newest trial of each engine and page size."""
    newest = ((trial.engine, page_label(trial.page_bytes)) for trial in node.trials)
    return dict(reversed(list(zip(newest, (trial.text for trial in node.trials), strict=True))))


def _memory(node: NodeFacts) -> dict[object, str]:
    return {numa.id: format_bytes(numa.mem_total_bytes) for numa in node.numa}


def _standing(node: NodeFacts) -> dict[object, str]:
    return {
        (numa.id, pool.page_bytes): counted_pages(pool.nr_hugepages, pool.page_bytes)
        for numa in node.numa
        for pool in numa.pools or ()
    }


def _databases(kept: PlanRequest, facts: NodeFacts, sample: NodeSample) -> Iterator[Changed]:
    """Databases that came, went, or were given another setting since."""
    if kept.sample is None:
        return
    before, after = _settings(kept.sample, kept.node), _settings(sample, facts)
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            yield Changed(f"database {name}", "runs" if name in before else _NONE, "runs" if name in after else _NONE)
        else:
            yield from _different(f"{name}: {{}}", before[name], after[name])


def _settings(sample: NodeSample, node: NodeFacts) -> dict[str, dict[object, str]]:
    instances = as_it_runs(sample, DemandContext.of_node(node))
    return {one.name: {key: str(value) for key, value in one.settings.items()} for one in instances}


def _different(title: str, was: Mapping[object, str], now: Mapping[object, str]) -> Iterator[Changed]:
    for key in sorted(was.keys() | now.keys(), key=str):
        if was.get(key) != now.get(key):
            yield Changed(title.format(key), was.get(key, _NONE), now.get(key, _NONE))
