"""The pods that databases run in: a pod's key is new with each pod, its namespace and name are what it is known by."""

from __future__ import annotations

import re

from hugeplan.planner.model import DatabaseInstance, NodeSample

_UNIT = re.compile(r"\w+@((?:pod|container):[^:#]*)")


def unit_of_key(key: str) -> str:
    """The pod or container in a server's key; nothing where it is in none."""
    found = _UNIT.match(key)
    return "" if found is None else found[1]


def pods_of(sample: NodeSample | None) -> dict[str, str]:
    """Namespace and name of the pod of each unit, by the unit's key, where the report says the name."""
    return {
        unit.key: "/".join(unit.name.split("/")[:2])
        for unit in (sample and sample.units) or ()
        if (unit.kind == "pod" or (unit.parent or "").startswith("pod:"))
        and "/" in unit.name
        and not unit.name.startswith("pod ")
    }


def made_by(instance: DatabaseInstance) -> str | None:
    """Its StatefulSet, or how the names of an operator's pods begin."""
    owner = instance.operator_object
    return instance.stateful_set or (None if owner is None else f"{owner.namespace}/{owner.name}-")
