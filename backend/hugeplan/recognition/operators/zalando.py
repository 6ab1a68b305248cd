"""Zalando's postgres-operator: ``postgresql`` with ``spec.postgresql.parameters``; pods run Spilo."""

from __future__ import annotations

from typing import Final

from hugeplan.planner.model import MIB
from hugeplan.recognition.base import CustomResource, Operator, Patch, PodView, Reading, label

#: Spilo gives shared_buffers a fifth of the memory on Kubernetes.
_SHARE: Final = 5


def defaults(pod: PodView) -> Reading:
    """What Spilo computes from the container's memory limit when it starts (configure_spilo.py)."""
    limit = next((one.memory_limit_bytes for one in pod.containers if one.name == "postgres"), None)
    if limit is None:
        return Reading(unknown=("shared_buffers and max_connections: Spilo computes them from the node's memory",))
    mebibytes = limit // MIB
    settings = {
        "shared_buffers": f"{mebibytes // _SHARE}MB",
        "max_connections": str(min(max(100, mebibytes // 30), 1000)),
    }
    return Reading.of("computed by Spilo from the memory limit", settings)


OPERATOR = Operator(
    name="Zalando postgres-operator",
    engine="postgresql",
    labels=("cluster-name",),  # can be changed in the operator's configuration
    is_server=lambda pod: label(pod, "application") == "spilo" or "spilo-role" in pod.labels,
    containers=frozenset({"postgres"}),
    defaults=defaults,
    resources=(
        CustomResource(
            group="acid.zalan.do",
            kind="postgresql",
            title="Zalando postgresql",
            resources=("resources",),
            parameters=("postgresql", "parameters"),
            version=("postgresql", "version"),
            replicas=("numberOfInstances",),
            texts_only=True,
            known_resources_only=True,
            patch=Patch(
                kind="zalando_postgresql",
                version="v1",
                plural="postgresqls",
                comments=("postgresql.version: left out, the object has it.",),
            ),
        ),
    ),
)
