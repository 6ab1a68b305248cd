"""SQL Server on Linux in a container: its memory limit from MSSQL_MEMORY_LIMIT_MB."""

from __future__ import annotations

from hugeplan.recognition.base import ContainerEngine, ContainerView, Reading


def read(container: ContainerView) -> Reading:
    """The variable is the setting memory.memorylimitmb."""
    limit = container.environment.get("MSSQL_MEMORY_LIMIT_MB")
    return Reading.of("environment", {} if limit is None else {"memorylimitmb": limit})


ENGINE = ContainerEngine(
    engine="sqlserver",
    programs=frozenset({"sqlservr"}),
    images=frozenset({"mssql-server", "mssql-server-linux", "azure-sql-edge"}),
    read=read,
    main_setting="memorylimitmb",
)
