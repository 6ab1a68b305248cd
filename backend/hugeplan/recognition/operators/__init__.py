"""The table of operators: a file of this folder is one, with all that recognition, linter and patches know."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from hugeplan.planner.model import DatabaseInstance, OperatorObject
from hugeplan.recognition.base import CustomResource, Operator, Patch

#: By the names of their files. What claims a pod never depends on the order.
OPERATORS: Final[tuple[Operator, ...]] = tuple(
    import_module(f"{__name__}.{module.name}").OPERATOR for module in iter_modules(__path__)
)

#: Labels that only one operator sets. The others are common: their operators are also seen by a container.
OWN_LABELS: Final = frozenset(name for operator in OPERATORS for name in operator.labels) - {
    "app",
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
}

#: Container names that an operator gives to its engine.
CONTAINER_NAMES: Final = frozenset(name for operator in OPERATORS for name in operator.containers)

#: The operators that a label may stand for.
BY_LABEL: Final = {
    name: tuple(operator for operator in OPERATORS if name in operator.labels)
    for name in {name for operator in OPERATORS for name in operator.labels}
}

#: Custom resources that say something of a database, with their operator, by (group, kind).
RESOURCES: Final[dict[tuple[str, str], tuple[CustomResource, Operator]]] = {
    (row.group, row.kind): (row, operator) for operator in OPERATORS for row in operator.resources
}

#: An operator's object, or a StatefulSet and the name of a container in it.
Owner = OperatorObject | tuple[str, str]


def patched(instance: DatabaseInstance) -> tuple[OperatorObject, CustomResource, Patch] | None:
    """The operator's object of an instance and how it is patched.

    None where the object is not known, where the table has no patch for its kind, and where it holds several sets and
    the instance's is not known: a patch that names a set which is not there makes one.
    """
    found = instance.operator_object
    row, operator = (None, None) if found is None else RESOURCES.get((found.group, found.kind), (None, None))
    if found is None or row is None or operator is None or row.patch is None or operator.engine != instance.engine:
        return None
    return None if row.sets and found.instance_set is None else (found, row, row.patch)


def owner(instance: DatabaseInstance) -> Owner | None:
    """What the patch for an instance changes; None where none is written."""
    if instance.operator_object is not None:
        return instance.operator_object if patched(instance) else None
    return (instance.stateful_set, instance.container) if instance.stateful_set and instance.container else None
