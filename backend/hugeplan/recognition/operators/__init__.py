"""The table of operators: a file of this folder is one, with all that recognition, linter and patches know."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from hugeplan.recognition.base import CustomResource, Operator

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
