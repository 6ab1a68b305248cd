"""The table of operators: a file of this folder is one, with all that recognition, linter and patches know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

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

#: Kubernetes' DNS subdomain and DNS label (apimachinery pkg/util/validation).
SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_MOST_OF_A_NAME: Final = 253
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


def is_stateful_set(name: str) -> bool:
    """Whether Kubernetes takes ``name``, NAMESPACE/NAME or NAME, for one of a StatefulSet."""
    namespace, separator, own = name.rpartition("/")
    right = SUBDOMAIN.fullmatch(own) is not None and len(own) <= _MOST_OF_A_NAME
    return right and (not separator or LABEL.fullmatch(namespace) is not None)


def names_of_object(names: Mapping[str, Any]) -> list[tuple[str, str, bool, str]]:
    """The names of an operator's object, each with whether it has the form of its kind."""
    forms = {"group": SUBDOMAIN, "kind": _KIND, "namespace": LABEL, "name": SUBDOMAIN, "instance_set": LABEL}
    return [
        (f"{part} of an operator's object", name, is_right, "a name as Kubernetes spells it")
        for part, form in forms.items()
        if (name := names.get(part)) is not None
        for is_right in [len(name) <= _MOST_OF_A_NAME and form.fullmatch(name) is not None]
    ]


def with_sound_names(instance: DatabaseInstance) -> DatabaseInstance:
    """The instance without an owner that no file may name: a label may be any text, and no object has such a name."""
    own, made, container = instance.stateful_set, instance.operator_object, instance.container
    is_sound = made is not None and all(right for _, _, right, _ in names_of_object(asdict(made)))
    return replace(
        instance,
        stateful_set=own if own is not None and is_stateful_set(own) else None,
        operator_object=made if is_sound else None,
        container=container if container is not None and LABEL.fullmatch(container) else None,
    )
