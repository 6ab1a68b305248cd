"""Elastic Cloud on Kubernetes: ``Elasticsearch``; the heap follows ES_JAVA_OPTS or the container's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, label

_GROUP: Final = ("elasticsearch.k8s.elastic.co", "Elasticsearch")


def references(pod: PodView) -> Sequence[Reference]:
    """The label with the cluster's name."""
    name = label(pod, "elasticsearch.k8s.elastic.co/cluster-name")
    return [] if name is None else [Reference(*_GROUP, name)]


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """Options are in the pod itself."""
    return Reading()


OPERATOR = Operator(
    name="Elastic Cloud on Kubernetes",
    engine="jvm",
    labels=("elasticsearch.k8s.elastic.co/cluster-name",),
    references=references,
    containers=frozenset({"elasticsearch"}),
    read=read,
    resources=(_GROUP,),
)
