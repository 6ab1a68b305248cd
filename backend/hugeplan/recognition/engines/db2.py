"""IBM Db2 in a container."""

from __future__ import annotations

from hugeplan.recognition.base import NOTHING, ContainerEngine, ContainerView, Reading
from hugeplan.recognition.images import leading_version


def read(container: ContainerView) -> Reading:  # noqa: ARG001 - one shape for all engines
    """Db2 keeps its configuration in its instance directory: a pod specification says nothing of it."""
    return NOTHING


def version_of_image(name: str, tag: str) -> str | None:  # noqa: ARG001 - one shape for all engines
    """``11.5`` of ``db2:11.5.8.0``."""
    return leading_version(tag)


ENGINE = ContainerEngine(
    engine="db2",
    programs=frozenset({"db2sysc"}),
    images=frozenset({"db2", "db2_community", "db2u"}),
    read=read,
    version_of_image=version_of_image,
    main_setting="database_memory",
)
