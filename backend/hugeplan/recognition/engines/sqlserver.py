"""SQL Server on Linux in a container: its memory limit from MSSQL_MEMORY_LIMIT_MB."""

from __future__ import annotations

from hugeplan.recognition.base import ContainerEngine, ContainerView, Reading
from hugeplan.recognition.images import leading_version


def read(container: ContainerView) -> Reading:
    """The variable is the setting memory.memorylimitmb."""
    limit = container.environment.get("MSSQL_MEMORY_LIMIT_MB")
    return Reading.of("environment", {} if limit is None else {"memorylimitmb": limit})


def version_of_image(name: str, tag: str) -> str | None:  # noqa: ARG001 - one shape for all engines
    """``2022`` of ``server:2022-latest``."""
    return leading_version(tag)


ENGINE = ContainerEngine(
    engine="sqlserver",
    programs=frozenset({"sqlservr"}),
    images=frozenset({"mssql-server", "mssql-server-linux", "azure-sql-edge"}),
    read=read,
    version_of_image=version_of_image,
    main_setting="memorylimitmb",
)
