"""Which objects of a cluster files may patch: one answer for the folders of nodes and for their scenarios.

A patch of an object changes its pods on every node. Where one of these nodes has no huge pages for its pod, the update
of the object waits at that pod for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from hugeplan.artifacts import refused, withheld
from hugeplan.artifacts.owners import Needs, maker, objects
from hugeplan.inventory.answer import FleetAnswer, NodeAnswer
from hugeplan.inventory.model import FoundDatabase, FoundNode
from hugeplan.inventory.scenario import Json, scenario_document
from hugeplan.recognition.operators import Owner

#: An object and the name of a container in its pods: another one beside it may take no huge pages on any node.
_Container = tuple[str, str | None]
_KEPT: Final = "has huge pages and keeps them: its scenario has no object that a file could patch"


def needs_of_objects(nodes: Iterable[NodeAnswer]) -> dict[Owner, Needs]:
    """What the pods of each object need on these nodes."""
    return objects((node.plan, node.request) for node in nodes if node.plan is not None)


def reasons(found: FleetAnswer, *, force: bool) -> list[str | None]:
    """Why each node has no file; None: it has. None has that shares an object with a node without pages for its pod."""
    first = [node.node.facts.name for node in found.nodes]  # the node whose own reason is the reason for all in a row
    of_objects = needs_of_objects(found.nodes)
    reasons = [_own_reason(node, of_objects, force=force) for node in found.nodes]
    if force:
        return reasons
    lacking = {name: (node, node) for name, node in _nowhere(found).items()}
    with_pages: dict[_Container, list[int]] = {}
    for index, (node, reason) in enumerate(zip(found.nodes, reasons, strict=True)):
        for name, _, size in _pods(node, reason):
            if size is None:
                lacking[name] = (node.node.facts.name, first[index])
            else:
                with_pages.setdefault(name, []).append(index)
    waiting = deque(sorted(lacking, key=str))
    while waiting:  # each pod is looked at once
        name = waiting.popleft()
        other, source = lacking[name]
        for index in with_pages.pop(name, ()):
            if reasons[index] is not None:
                continue
            node, first[index] = found.nodes[index], source
            why = "" if other == source else f" (see {source})"
            where = f"{name[0]} has a pod on {other}, too, which gets no file or no pool for it{why}"
            reasons[index] = f"{where}, so no file is handed out without force."
            for held, _, _ in _pods(node, reasons[index]):
                if held not in lacking:
                    lacking[held] = (node.node.facts.name, source)
                    waiting.append(held)
    return reasons


def scenarios(found: FleetAnswer) -> tuple[list[tuple[FoundNode, Json]], list[str]]:
    """The scenario of each node, and notes on them.

    A scenario knows one node. So a database is planned on base pages where another node has none for a pod of its
    object, or cannot take the pod as the patches of all nodes together make it. One that has huge pages keeps them.
    """
    of_objects = needs_of_objects(found.nodes)
    lacking = {name: {node} for name, node in _nowhere(found).items()}
    free = []  # what a scenario by itself would hand out a file for
    for node in found.nodes:
        own, reason = _own_reason(node), _own_reason(node, of_objects)
        for name, _, size in _pods(node, reason):
            if size is None:
                lacking.setdefault(name, set()).add(node.node.facts.name)
        free += [(node.node.facts.name, name, one) for name, one, size in _pods(node, own) if size is not None]
    without: set[int] = set()
    notes = []
    is_new = True
    while is_new:
        held = [(where, name, one, others) for where, name, one in free
                if id(one) not in without and (others := lacking.get(name, set()) - {where})]  # fmt: skip
        for where, name, one, others in held:
            without.add(id(one))
            lacking[name].add(where)
            how = _KEPT if one.huge_pages_limit_bytes else "is planned on base pages (page_size 0) in its scenario"
            notes.append(
                f"{where}: {one.instance.name} {how}, as {min(others)} has no huge pages for a pod of its object"
            )
        is_new = bool(held)
    documents = []
    for answered in found.nodes:
        databases = tuple(_scenarios_own(one, without) for one in answered.node.databases)
        one_node = replace(answered.node, databases=databases)
        documents.append((one_node, scenario_document(one_node, answered.plan)))
    return documents, notes


def _scenarios_own(one: FoundDatabase, without: set[int]) -> FoundDatabase:
    """A pod that has huge pages would need memory on base pages that no file gives it, so it loses its object alone."""
    if id(one) not in without:
        return one
    if one.huge_pages_limit_bytes:
        return replace(one, instance=replace(one.instance, stateful_set=None, operator_object=None))
    return replace(one, instance=replace(one.instance, page_bytes=0))


def _own_reason(
    node: NodeAnswer, of_objects: Mapping[Owner, Needs] | None = None, *, force: bool = False
) -> str | None:
    """Why a node has no file, but for what other nodes lack."""
    if node.plan is None:
        return "It is not planned."
    return refused(node.plan, node.request) or (None if force else withheld(node.plan, node.request, of_objects))


def _pods(node: NodeAnswer, reason: str | None) -> Iterator[tuple[_Container, FoundDatabase, int | None]]:
    """The node's databases that an object makes, with their page size; None: no file, or no pool."""
    sizes: Sequence[int | None] = []
    if node.plan is not None and reason is None:
        sizes = [one.page_bytes for one in node.plan.instances][: len(node.node.databases)]
    for one, size in zip_longest(node.node.databases, sizes):
        name = _container(one)
        if name is not None:
            yield name, one, size


def _nowhere(found: FleetAnswer) -> dict[_Container, str]:
    """Those of databases that are in no plan, and the node of each."""
    return {name: one.node or "" for one in found.inventory.not_planned if (name := _container(one)) is not None}


def _container(one: FoundDatabase) -> _Container | None:
    name = maker(one.instance)
    return None if name is None else (name, one.instance.container)
