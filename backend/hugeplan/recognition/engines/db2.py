"""IBM Db2 in a container."""

from __future__ import annotations

from hugeplan.recognition.base import NOTHING, ContainerEngine, ContainerView, Reading


def read(container: ContainerView) -> Reading:  # noqa: ARG001 - one shape for all engines
    """Db2 keeps its configuration in its instance directory: a pod specification says nothing of it."""
    return NOTHING


ENGINE = ContainerEngine(
    engine="db2",
    programs=frozenset({"db2sysc"}),
    images=frozenset({"db2", "db2_community", "db2u"}),
    read=read,
    main_setting="database_memory",
)
