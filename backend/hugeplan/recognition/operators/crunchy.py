"""Crunchy PGO: ``PostgresCluster`` with ``spec.config.parameters`` and Patroni's dynamic configuration.

The operator sets ``huge_pages`` to ``try`` where the pod asks for huge pages and to ``off`` where it does not, so its
value follows the pod's limit and is not a choice of the user's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hugeplan.recognition.base import CustomResource, Operator, Patch, PodView, Reading, inside, label, text_map

LABELS: Final = ("postgres-operator.crunchydata.com/cluster",)
NOTE: Final = "the operator sets huge_pages = off until the instance's resources ask for huge pages, then try"
RESOURCE: Final = CustomResource(
    group="postgres-operator.crunchydata.com",
    kind="PostgresCluster",
    title="Crunchy PostgresCluster",
    sets=("instances",),
    set_label="postgres-operator.crunchydata.com/instance-set",
    resources=("resources",),
    parameters=("patroni", "dynamicConfiguration", "postgresql", "parameters"),
    version=("postgresVersion",),
    replicas=("replicas",),
    patch=Patch(
        kind="crunchy_cluster",
        version="v1beta1",
        plural="postgresclusters",
        comments=("Crunchy sets huge_pages itself, to try or off, from the limits: its own value is replaced here.",),
    ),
)


def is_instance(pod: PodView) -> bool:
    """Instance pods have the label of their instance as well; pgBackRest and pgBouncer pods do not."""
    return label(pod, "postgres-operator.crunchydata.com/instance") is not None


def is_percona(pod: PodView) -> bool:
    """Percona's operator builds on Crunchy's, so that its pods carry the same labels."""
    return "pgv2.percona.com/version" in pod.labels or any("percona" in one.image for one in pod.containers)


def read(resource: Mapping[str, Any], _: PodView) -> Reading:
    """``spec.config.parameters`` go before Patroni's dynamic configuration, as the operator merges them."""
    patroni = text_map(inside(resource, "spec", *RESOURCE.parameters))
    own = text_map(inside(resource, "spec", "config", "parameters"))
    version = inside(resource, "spec", "postgresVersion")
    strong = Reading.of("spec.config.parameters", own, version=None if version is None else str(version), notes=(NOTE,))
    return strong.over(Reading.of("spec.patroni.dynamicConfiguration", patroni))


OPERATOR = Operator(
    name="Crunchy PGO",
    engine="postgresql",
    labels=LABELS,
    is_server=lambda pod: is_instance(pod) and not is_percona(pod),
    containers=frozenset({"database"}),
    resources=(RESOURCE,),
    read=read,
    switches_huge_pages=True,
)
