"""CloudNativePG and EDB Postgres for Kubernetes: ``Cluster`` with ``spec.postgresql.parameters``.

The operator adds settings of its own under the user's and refuses ``huge_pages`` in the resource, so the server's
default ``try`` holds (cloudnative-pg pkg/postgres/configuration.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label, text_map
from hugeplan.recognition.engines import postgresql
from hugeplan.recognition.images import parse_image

_GROUPS: Final = (("postgresql.cnpg.io", "Cluster"), ("postgresql.k8s.enterprisedb.io", "Cluster"))
_DEFAULTS: Final = {"max_worker_processes": "32", "max_replication_slots": "32"}


def references(pod: PodView) -> Sequence[Reference]:
    """The label that the operator puts on every instance's pod."""
    name = label(pod, "cnpg.io/cluster", "k8s.enterprisedb.io/cluster")
    if name is None or "cnpg.io/poolerName" in pod.labels:
        return ()
    return [Reference(group, kind, name) for group, kind in _GROUPS]


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """Parameters and the image of the Cluster."""
    parameters = text_map(inside(resource, "spec", "postgresql", "parameters"))
    image = inside(resource, "spec", "imageName")
    version = None
    if isinstance(image, str):
        parsed = parse_image(image)
        version = postgresql.version_of_image(parsed.name, parsed.tag or "")
    major = inside(resource, "spec", "imageCatalogRef", "major")
    return Reading.of(
        "Cluster spec.postgresql.parameters", parameters, version=version or (str(major) if major else None)
    )


def defaults(pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """What the operator writes under the user's parameters."""
    return Reading.of("CloudNativePG default", _DEFAULTS)


OPERATOR = Operator(
    name="CloudNativePG",
    engine="postgresql",
    labels=(
        "cnpg.io/cluster",
        "k8s.enterprisedb.io/cluster",
    ),
    references=references,
    containers=frozenset({"postgres"}),
    read=read,
    defaults=defaults,
    resources=_GROUPS,
    limits_in="spec.resources",
)
