"""Many nodes at once: each gets the plan that it would get alone, and a node that cannot be planned says why.

Nodes of a real fleet are alike in what they are and seldom in what runs on them. Each is planned by itself; only nodes
that ask the same question, name and time of the sample aside, share one answer within a job. Nodes with the same pools
are one group afterwards (docs/adr/0032).
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, is_dataclass, replace
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

from hugeplan.planner import model
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.ledger import free_bytes
from hugeplan.planner.model import MIB, Finding, NodeFacts, NodeSample, Plan, PlanRequest
from hugeplan.planner.plan import plan


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """One node's answer. ``plan`` is None where it cannot be planned; ``why_not`` is the sentence that says why.

    ``missing_pages`` are planned and not there, ``idle_pages`` there and not planned; None: unknown.
    """

    request: PlanRequest
    plan: Plan | None
    why_not: str | None = None
    free_bytes: int | None = None
    missing_pages: int | None = None
    idle_pages: int | None = None

    @property
    def fits(self) -> bool | None:
        """Whether the plan fits; None without a plan, or where sizes were not read."""
        return None if self.plan is None else self.plan.fits

    @property
    def pools(self) -> tuple[tuple[int, int, int], ...]:
        """NUMA node, page size and pages of each pool that has pages; nodes with the same pools are one group."""
        return (
            () if self.plan is None else tuple((p.numa_node, p.page_bytes, p.pages) for p in self.plan.pools if p.pages)
        )

    @property
    def group(self) -> Hashable:
        """What tells groups of nodes apart: the pools, and what each database gets of them."""
        if self.plan is None:
            return None
        return (self.pools, tuple((i.name, i.page_bytes, i.demand.pool_bytes) for i in self.plan.instances))


def plan_node(request: PlanRequest) -> NodePlan:
    """The plan of one node of many: what ``plan`` answers, or why it refuses."""
    try:
        found = plan(request)
    except PlannerError as error:
        return NodePlan(request=request, plan=None, why_not=str(error))
    missing, idle = _difference(found, request)
    return NodePlan(
        request=request, plan=found, free_bytes=free_bytes(found.ledger), missing_pages=missing, idle_pages=idle
    )


#: Answers that a job keeps. A fleet has some dozens of kinds of node; where all differ, more would only take memory.
KEPT_ANSWERS: Final = 256
#: Databases, pools, gains, findings and other parts of all these answers: some tens of megabytes, whatever was asked.
KEPT_PARTS: Final = 16_384
KEPT_BYTES: Final = 16 * MIB  # of questions
#: Stands for a node's name while its answer is worked out; a name has no character for private use.
_A_NODE: Final = "\ue000"


def _all_but(kind: type[Any], *left_out: str) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(field.name for field in fields(kind) if field.name not in left_out))


def _by_fields(kind: type[Any]) -> Callable[[Any], tuple[type[Any], tuple[Any]]]:
    """How a dataclass is written into a key: its class and its fields. By itself it looks its fields up each time."""
    values = _all_but(kind)
    return lambda each: (kind, (values(each),))


_BY_FIELDS: Final = {
    kind: _by_fields(kind) for kind in vars(model).values() if isinstance(kind, type) and is_dataclass(kind)
}
_OF_REQUEST: Final = _all_but(PlanRequest, "node", "sample")
_OF_NODE: Final = _all_but(NodeFacts, "name", "hardware")
_OF_SAMPLE: Final = _all_but(NodeSample, "taken_at_seconds")
_WORDS_OF_FINDING: Final = attrgetter("subject", "title", "reason", "fix")


class SharedPlans:
    """Plans the nodes of one job; nodes that ask the same question are answered once.

    The question is the whole request, to the last bit, but for the node's name and the time of its sample: nothing in a
    plan follows from these two, they are only written into it.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, _Answer] = OrderedDict()
        self._read: dict[tuple[int, ...], tuple[tuple[object, ...], bytes]] = {}
        self._parts = self._read_bytes = 0
        self.planned = 0

    def plan_node(self, request: PlanRequest) -> NodePlan:
        """What :func:`plan_node` answers."""
        key = self._key(request)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = _Answer(request)
            self._parts += answer.parts
            self.planned += 1
            while len(self._answers) > KEPT_ANSWERS or self._parts > KEPT_PARTS:
                self._parts -= self._answers.popitem(last=False)[1].parts
        else:
            self._answers.move_to_end(key)
        return answer.of(request)

    def _key(self, request: PlanRequest) -> bytes:
        """The question in bytes."""
        node, sample = request.node, request.sample
        own = (_OF_NODE(node), None if sample is None else _OF_SAMPLE(sample))
        return _in_bytes(own) + self._shared((node.hardware,)) + self._shared(_OF_REQUEST(request))

    def _shared(self, parts: tuple[object, ...]) -> bytes:
        """Parts in bytes that nodes share as objects, such as curves and databases: those are read once."""
        ids = tuple(map(id, parts))
        found = self._read.get(ids)
        if found is None:  # the objects are kept beside their bytes, so that no other ones get their ids
            if len(self._read) >= KEPT_ANSWERS or self._read_bytes > KEPT_BYTES:
                self._read.clear()
                self._read_bytes = 0
            found = self._read[ids] = (parts, _in_bytes(parts))
            self._read_bytes += len(found[1])
        return found[1]


def _in_bytes(parts: tuple[object, ...]) -> bytes:
    written: list[bytes] = []
    pickler = pickle.Pickler(SimpleNamespace(write=written.append))
    pickler.dispatch_table = _BY_FIELDS
    pickler.dump(parts)
    return b"".join(written)


class _Answer:
    """The answer to a question, and where the node's name is written in it."""

    def __init__(self, request: PlanRequest) -> None:
        sample = None if request.sample is None else replace(request.sample, taken_at_seconds=0.0)
        self._found = plan_node(replace(request, node=replace(request.node, name=_A_NODE), sample=sample))
        found = self._found.plan
        self._values = {} if found is None else _values_of(found)
        self.parts = sum(len(value) for value in self._values.values() if isinstance(value, tuple))
        self.parts += 0 if found is None else len(found.ledger.parts) // 8  # small ones, and few where nodes are usual
        self._named: list[tuple[int, dict[str, Any], list[tuple[str, str]]]] = []
        for index, finding in enumerate(() if found is None else found.findings):
            if _A_NODE in "".join(filter(None, _WORDS_OF_FINDING(finding))):
                values = _values_of(finding)
                named = [(at, text) for at, text in values.items() if isinstance(text, str) and _A_NODE in text]
                self._named.append((index, values, named))

    def of(self, request: PlanRequest) -> NodePlan:
        """The answer with the node's name and the time of its sample written into it."""
        name, answer, found = request.node.name, self._found, self._found.plan
        if found is None:
            return replace(answer, request=request, why_not=(answer.why_not or "").replace(_A_NODE, name))
        findings = list(found.findings)
        for index, values, named in self._named:
            findings[index] = Finding(**values | {at: text.replace(_A_NODE, name) for at, text in named})
        now = found.now
        if now is not None and request.sample is not None:
            now = replace(now, taken_at_seconds=request.sample.taken_at_seconds)
        headline = found.headline.replace(_A_NODE, name)
        own = self._values | {"node": name, "headline": headline, "findings": tuple(findings), "now": now}
        return NodePlan(
            request=request,
            plan=Plan(**own),
            free_bytes=answer.free_bytes,
            missing_pages=answer.missing_pages,
            idle_pages=answer.idle_pages,
        )


def _values_of(item: Plan | Finding) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in fields(item)}


def _difference(found: Plan, request: PlanRequest) -> tuple[int | None, int | None]:
    """Pages of the plan that do not stand, and standing pages beyond it; None where a NUMA node's pools are unknown."""
    if any(numa.pools is None for numa in request.node.numa):
        return None, None
    planned = {(p.numa_node, p.page_bytes): p.pages for p in found.pools if p.pages}
    present = {(numa.id, pool.page_bytes): pool.nr_hugepages for numa in request.node.numa for pool in numa.pools or ()}
    keys = planned.keys() | present.keys()
    missing = sum(max(0, planned.get(key, 0) - present.get(key, 0)) for key in keys)
    idle = sum(max(0, present.get(key, 0) - planned.get(key, 0)) for key in keys)
    return missing, idle
