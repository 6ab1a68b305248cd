"""Crunchy PGO: ``PostgresCluster`` with ``spec.config.parameters`` and Patroni's dynamic configuration.

The operator sets ``huge_pages`` to ``try`` where the pod asks for huge pages and to ``off`` where it does not, so its
value follows the pod's limit and is not a choice of the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label, text_map

_GROUP: Final = ("postgres-operator.crunchydata.com", "PostgresCluster")
NOTE: Final = "the operator sets huge_pages = off until the instance's resources ask for huge pages, then try"


def parameters_of(resource: Mapping[str, Any]) -> Reading:
    """``spec.config.parameters`` go before Patroni's dynamic configuration, as the operator merges them."""
    patroni = text_map(inside(resource, "spec", "patroni", "dynamicConfiguration", "postgresql", "parameters"))
    own = text_map(inside(resource, "spec", "config", "parameters"))
    version = inside(resource, "spec", "postgresVersion")
    strong = Reading.of("spec.config.parameters", own, version=None if version is None else str(version), notes=(NOTE,))
    return strong.over(Reading.of("spec.patroni.dynamicConfiguration", patroni))


def references(pod: PodView) -> Sequence[Reference]:
    """Instance pods have the label of their instance as well; pgBackRest and pgBouncer pods do not."""
    name = label(pod, "postgres-operator.crunchydata.com/cluster")
    if name is None or label(pod, "postgres-operator.crunchydata.com/instance") is None:
        return ()
    return [Reference(*_GROUP, name)]


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """The cluster's parameters and version."""
    return parameters_of(resource)


OPERATOR = Operator(
    name="Crunchy PGO",
    engine="postgresql",
    labels=("postgres-operator.crunchydata.com/cluster",),
    references=references,
    containers=frozenset({"database"}),
    read=read,
    resources=(_GROUP,),
    limits_in="spec.instances[].resources",
)
