"""K8ssandra's cass-operator: ``CassandraDatacenter`` with ``spec.config`` for the JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label
from hugeplan.recognition.engines.jvm import options_of

_GROUP: Final = ("cassandra.datastax.com", "CassandraDatacenter")
_SIZES: Final = {"max_heap_size": "-Xmx", "initial_heap_size": "-Xms"}


def references(pod: PodView) -> Sequence[Reference]:
    """The label with the data centre's name."""
    name = label(pod, "cassandra.datastax.com/datacenter")
    return [] if name is None else [Reference(*_GROUP, name)]


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
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
    references=references,
    containers=frozenset({"cassandra"}),
    read=read,
    resources=(_GROUP,),
)
