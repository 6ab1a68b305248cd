"""Which object of the cluster makes an instance's pods, and so which one a patch is written for.

Exactly one file patches: the operator's object where one is known, else the StatefulSet where that and its container
are known. Where neither is, nothing is written that could be applied: an object named by a guess would be made anew,
or is another's.

A patch changes the pods of its object on every node, so all files that patch it say the same: :class:`Needs`.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from hugeplan.artifacts.base import Artifact, ChangesSize, GivesBack, one_line, slug, with_pool
from hugeplan.artifacts.order import change
from hugeplan.planner.memory.kubernetes import PodMemory, huge_page_limits, pod_memory
from hugeplan.planner.model import DatabaseInstance, InstancePlan, OperatorObject, Plan, PlanRequest
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.recognition.operators import RESOURCES, Owner, owner


def limits_field(found: OperatorObject) -> str:
    """Where the limits go in an operator's object, in words: its field where the table knows it."""
    row, _ = RESOURCES.get((found.group, found.kind), (None, None))
    field = None if row is None else row.limits_in
    return f"{field or 'the resources of the database container'} of {found.words}"


def settings_field(found: OperatorObject) -> str:
    """Where settings go in an operator's object, in words: its field where the table knows it."""
    row, _ = RESOURCES.get((found.group, found.kind), (None, None))
    field = () if row is None else row.option_file or row.parameters
    if row is not None and row.settings_words is not None:
        return f"{row.settings_words} of {found.words}"
    return f"{'.'.join(('spec', *field)) if field else 'the settings'} of {found.words}"


#: A value as kubectl's templates know it, in YAML; what starts with a brace would be read as JSON, without such commas.
_VALUE = (
    '{{define "v"}}{{$t := printf "%T" .}}{{if eq $t "float64"}}{{printf "%.0f" .}}'
    '{{else if eq $t "[]interface {}"}}[{{range .}}{{template "v" .}},{{end}}]'
    '{{else if eq $t "map[string]interface {}"}}{ {{range $k, $v := .}}{{printf "%q" $k}}: {{template "v" $v}},'
    '{{end}} }{{else}}{{printf "%#v" .}}{{end}}{{end}}# before the install{{"\\n"}}'
)


def saved_once(get: str, ours: Mapping[str, Any], *names: str | None, nulls: bool) -> tuple[str, str]:
    """Commands up to the next one, and their file: what stood in the fields of ``ours`` before the first install, as a
    patch of them. It lies beside the folders of the steps, as the next plan may give a step another folder.

    All else of the object stays as it is then. A field that was not there is null, which takes it away, or left out,
    which does where the fields' owner applies it. Used, the file goes, so that the next install saves anew. Until all
    of it is written it has another name: half of it would be the way back for good.
    """
    template = shlex.quote(_VALUE + _standing(ours, (), nulls=nulls))
    file = f"../{slug('/'.join(name or '' for name in names))}-fields-before.yaml"
    steps = (f"{get} -o go-template={template} > {file}.part", *(f"{word} {file}.part" for word in ("test -s", "sync")))
    return f"{{ test -s {file} || {{ {' && '.join(steps)} && mv {file}.part {file}; }}; }} &&\n", file


def _standing(ours: Any, at: tuple[str, ...], *, nulls: bool) -> str:
    if isinstance(ours, Mapping):
        return f"{{ {''.join(_field(key, value, (*at, key), nulls=nulls) for key, value in ours.items())}}}"
    if isinstance(ours, list) and "name" in ours[0]:
        fields = "".join(_field(key, value, (key,), nulls=nulls) for key, value in ours[0].items())
        is_it = f"{{{{if eq .name {_words([ours[0]['name']])}}}}}"
        return f"[{{{{range index . {_words(at)}}}}}{is_it}{{ {fields}}},{{{{end}}}}{{{{end}}}}]"
    return f'{{{{template "v" (index . {_words(at)})}}}}'


def _field(key: str, ours: Any, at: tuple[str, ...], *, nulls: bool) -> str:
    value, is_there = _standing(ours, at, nulls=nulls), f"{{{{if exists . {_words(at)}}}}}"
    if not nulls:
        return f'{is_there}"{key}": {value}, {{{{end}}}}'
    return f'"{key}": {value}, ' if isinstance(ours, Mapping) else f'"{key}": {is_there}{value}{{{{end}}}}, '


def _words(names: Iterable[str]) -> str:
    return " ".join(json.dumps(name, ensure_ascii=False) for name in names)


def maker(instance: DatabaseInstance) -> str | None:
    """The object that makes the pods of a database, in words."""
    if instance.operator_object is not None:
        return instance.operator_object.words
    return None if instance.stateful_set is None else f"StatefulSet {instance.stateful_set}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What each container of an object gets, so that every one of its pods has enough.

    Attributes:
        least: bytes by resource that the largest takes.
        limits: the same with the error bar, of the pod whose node has the fewest pages for it. More for each than what
            the pools hold would let a pod wait for ever.
        nodes, pods: where its pods are, and which.
        shrinks: the nodes whose pods need fewer pages or change their size: a patch goes before their pools.
    """

    least: Mapping[str, int]
    limits: Mapping[str, int]
    memory: PodMemory
    nodes: tuple[str, ...]
    pods: tuple[tuple[DatabaseInstance, InstancePlan], ...]
    shrinks: tuple[str, ...] = ()

    @property
    def pages(self) -> dict[str, int]:
        """The huge page limits of a container, in bytes by resource."""
        return {name: max(size, self.limits[name]) for name, size in self.least.items()}

    @property
    def largest(self) -> tuple[DatabaseInstance, InstancePlan]:
        """The pod with the largest demand: it says the object's settings."""
        return max(self.pods, key=lambda one: _bytes_of(one[1]))

    def joined(self, other: Needs) -> Needs:
        """What both need."""
        names = [*dict.fromkeys((*self.least, *other.least))]
        return Needs(
            least={name: max(self.least.get(name, 0), other.least.get(name, 0)) for name in names},
            limits={name: min(one.limits[name] for one in (self, other) if name in one.limits) for name in names},
            memory=max(self.memory, other.memory, key=lambda one: (one.limit_bytes or 0, one.request_bytes or 0)),
            nodes=(*dict.fromkeys((*self.nodes, *other.nodes)),),
            pods=(*self.pods, *other.pods),
            shrinks=(*self.shrinks, *(node for node in other.shrinks if node not in self.nodes)),
        )


def _bytes_of(planned: InstancePlan) -> int:
    return planned.demand.pages * planned.demand.page_bytes


def needs(plan: Plan, instance: DatabaseInstance, planned: InstancePlan) -> Needs:
    """What the container of one instance needs."""
    limits = huge_page_limits(planned, plan.pools, plan.instances)
    return Needs(
        least={**limits, kubernetes_resource_name(planned.demand.page_bytes): _bytes_of(planned)},
        limits=limits,
        memory=pod_memory(plan, instance, planned),
        nodes=(plan.node,),
        pods=((instance, planned),),
    )


def objects(nodes: Iterable[tuple[Plan, PlanRequest]]) -> dict[Owner, Needs]:
    """What the containers of each object need that has pods on these nodes."""
    found: dict[Owner, list[Needs]] = {}
    for plan, request in nodes:
        for instance, planned in with_pool(plan, request) if request.reservations.kubernetes else ():
            own = owner(instance)
            if own is not None:
                shrinks = (plan.node,) if change(planned, request) else ()
                found.setdefault(own, []).append(replace(needs(plan, instance, planned), shrinks=shrinks))
    return {own: reduce(Needs.joined, each) for own, each in found.items()}


def without_room(plan: Plan, request: PlanRequest, of_objects: Mapping[Owner, Needs]) -> str | None:
    """Which object asks for more in its pods than a node's pools hold for them; None: none does."""
    if not of_objects:
        return None
    left = Counter[str]()
    for pool in plan.pools:
        left[kubernetes_resource_name(pool.page_bytes)] += (pool.pages - pool.held_pages) * pool.page_bytes
    larger: dict[str, str] = {}
    for instance, planned in with_pool(plan, request):
        own, key = needs(plan, instance, planned).pages, owner(instance)
        asked = own if key is None or key not in of_objects else of_objects[key].pages
        left.subtract(asked)
        larger |= {name: f"{maker(instance)} asks for {size // 2**20:,} MiB of {name} in each of its pods"
                   for name, size in asked.items() if size > own.get(name, 0)}  # fmt: skip
    return next((f"{why}, and {one_line(plan.node)} has no room for it" for name, why in larger.items()
                 if left[name] < 0), None)  # fmt: skip


def made_once(patch: Artifact, node: str, of_all: Needs) -> Artifact:
    """A patch with what it asks of other nodes; it is made, and taken back, from the folder of the first alone.

    What another folder would keep as the state before it is the patched object.
    """
    first, *more = of_all.nodes
    if not more:
        return patch
    # As on one node (order.py): a pod that asks for more pages than its node has is not taken.
    ahead, behind = (
        ", ".join(one_line(name) for name in of_all.nodes if name != node and (name in of_all.shrinks) is is_first)
        for is_first in (True, False)
    )
    orders = [ahead and f"it comes before the pools of {ahead}", behind and f"the pools of {behind} come first"]
    others = ", ".join(one_line(name) for name in of_all.nodes if name != node)
    summary = f"{patch.summary} Its pods on {others} start again, too: {', '.join(filter(None, orders))}."
    if node != first:
        where = f"# from the folder of {one_line(first)}, once for all nodes"
        is_first = "before" if isinstance(patch, (GivesBack, ChangesSize)) else "after"
        return replace(patch, summary=summary, install=f"{where}, {is_first} the pools of this one", rollback=where)
    before = [ahead and f"# before the pools of {ahead}", behind and f"# first the pools of {behind}"]
    back = [ahead and f"# after the pools of {ahead} are back", behind and f"# before the pools of {behind} go"]
    install, rollback = ("\n".join([*filter(None, notes), own])
                         for notes, own in ((before, patch.install), (back, patch.rollback)))  # fmt: skip
    return replace(patch, summary=summary, install=install, rollback=rollback)
