"""Elastic Cloud on Kubernetes: the heap follows ES_JAVA_OPTS or the container's memory, both in the pod itself."""

from __future__ import annotations

from hugeplan.recognition.base import CustomResource, Operator

OPERATOR = Operator(
    name="Elastic Cloud on Kubernetes",
    engine="jvm",
    labels=("elasticsearch.k8s.elastic.co/cluster-name",),
    containers=frozenset({"elasticsearch"}),
    resources=(CustomResource(group="elasticsearch.k8s.elastic.co", kind="Elasticsearch"),),
)
