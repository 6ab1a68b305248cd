"""K8ssandra's cass-operator: ``CassandraDatacenter`` with ``spec.config`` for the JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hugeplan.recognition.base import CustomResource, Operator, PodView, Reading, inside
from hugeplan.recognition.engines.jvm import options_of

_SIZES: Final = {"max_heap_size": "-Xmx", "initial_heap_size": "-Xms"}


def read(resource: Mapping[str, Any], _: PodView) -> Reading:
    """Heap sizes and further options of every jvm section."""
    words: list[str] = []
    config = inside(resource, "spec", "config")
    for section, options in config.items() if isinstance(config, Mapping) else ():
        if not section.startswith("jvm-") or not isinstance(options, Mapping):
            continue
        words += [f"{_SIZES[name]}{value}" for name, value in options.items() if name in _SIZES]
        words += [str(word) for word in options.get("additional-jvm-opts") or ()]
    return Reading.of("CassandraDatacenter spec.config", options_of(words))


OPERATOR = Operator(
    name="cass-operator",
    engine="jvm",
    labels=("cassandra.datastax.com/datacenter",),
    containers=frozenset({"cassandra"}),
    read=read,
    resources=(CustomResource(group="cassandra.datastax.com", kind="CassandraDatacenter"),),
)
