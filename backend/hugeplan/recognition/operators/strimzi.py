"""Strimzi: ``Kafka``, ``KafkaNodePool`` and ``KafkaConnect`` with ``jvmOptions``.

Without ``-Xmx`` in the resource Strimzi sizes the heap from the container's memory when the container starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import CustomResource, Operator, PodView, Reading, Reference, inside, label
from hugeplan.recognition.engines.jvm import options_of

_GROUP: Final = "kafka.strimzi.io"
_PER_KIND: Final = {
    "Kafka": ("spec", "kafka"),
    "KafkaNodePool": ("spec",),
    "KafkaConnect": ("spec",),
    "KafkaMirrorMaker2": ("spec",),
    "KafkaBridge": ("spec",),
}


def references(pod: PodView) -> Sequence[Reference]:
    """The node pool first: its options go before the cluster's."""
    cluster, kind = label(pod, "strimzi.io/cluster"), label(pod, "strimzi.io/kind")
    if cluster is None or kind not in _PER_KIND:
        return ()
    pool = label(pod, "strimzi.io/pool-name")
    own = [Reference(_GROUP, kind, cluster)]
    return [Reference(_GROUP, "KafkaNodePool", pool), *own] if pool else own


def read(resource: Mapping[str, Any], _: PodView) -> Reading:
    """``jvmOptions``: ``-Xmx`` and ``-Xms`` by name, further options as a map ``-XX``."""
    kind = str(resource.get("kind", ""))
    options = inside(resource, *_PER_KIND.get(kind, ("spec",)), "jvmOptions")
    if not isinstance(options, Mapping):
        return Reading()
    words = [f"{name}{value}" for name, value in options.items() if name in {"-Xmx", "-Xms"}]
    further = options.get("-XX")
    if isinstance(further, Mapping):
        for name, value in further.items():
            text = str(value).lower()
            words.append(
                f"-XX:{'+' if text == 'true' else '-'}{name}" if text in {"true", "false"} else f"-XX:{name}={value}"
            )
    return Reading.of(f"{kind} jvmOptions", options_of(words))


OPERATOR = Operator(
    name="Strimzi",
    engine="jvm",
    labels=("strimzi.io/cluster",),
    references=references,
    containers=frozenset({"kafka"}),
    read=read,
    resources=tuple(CustomResource(group=_GROUP, kind=kind) for kind in _PER_KIND),
)
