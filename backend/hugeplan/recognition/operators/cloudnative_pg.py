"""CloudNativePG and EDB Postgres for Kubernetes.

Its webhook accepts shared_buffers up to the memory request or any huge page quantity.

The operator adds settings of its own under the user's and refuses ``huge_pages`` in the resource, so the server's
default ``try`` holds (cloudnative-pg pkg/postgres/configuration.go).
"""

from __future__ import annotations

from dataclasses import replace

from hugeplan.recognition.base import CustomResource, Operator, Patch, Reading

_CLUSTER = CustomResource(
    group="postgresql.cnpg.io",
    kind="Cluster",
    title="CloudNativePG Cluster",
    labels=("cnpg.io/cluster",),
    resources=("resources",),
    parameters=("postgresql", "parameters"),
    version=("imageCatalogRef", "major"),
    image=("imageName",),
    replicas=("instances",),
    texts_only=True,
    patch=Patch(
        kind="cloudnative_pg", version="v1", plural="clusters", comments=("Its initdb job runs with the same limits.",)
    ),
)
_DEFAULTS = Reading.of("CloudNativePG default", {"max_worker_processes": "32", "max_replication_slots": "32"})

OPERATOR = Operator(
    name="CloudNativePG",
    engine="postgresql",
    labels=("cnpg.io/cluster", "k8s.enterprisedb.io/cluster"),
    is_server=lambda pod: "cnpg.io/poolerName" not in pod.labels,
    containers=frozenset({"postgres"}),
    resources=(
        _CLUSTER,
        replace(
            _CLUSTER,
            group="postgresql.k8s.enterprisedb.io",
            title="EDB Postgres Cluster",
            labels=("k8s.enterprisedb.io/cluster",),
        ),
    ),
    defaults=lambda _: _DEFAULTS,
)
