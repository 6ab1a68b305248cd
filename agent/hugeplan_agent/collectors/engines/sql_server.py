"""SQL Server on Linux: mssql.conf says how much memory it may take."""

from __future__ import annotations

from hugeplan_agent.collectors.engines.base import MAX_VALUE_CHARACTERS, Engine, Facts, Server, Settings, plain_lines

SETTINGS = frozenset({"memory.memorylimitmb", "traceflag.traceflag", "control.alternatewritethrough"})
FILE = "/var/opt/mssql/mssql.conf"


def describe(server: Server) -> Facts:
    settings = Settings(SETTINGS, complete=True)
    section = ""
    for line in plain_lines(server.try_read(FILE, settings) or "", settings):
        if line.startswith("["):
            section = line.strip("[]").lower()[:MAX_VALUE_CHARACTERS]
            continue
        name, _, value = line.partition("=")
        settings.put(f"{section}.{name.strip().lower().rstrip('0123456789')}", value.strip(), "mssql.conf")
    settings.missing("max server memory is kept in its own catalogue")
    return Facts(settings)


ENGINE = Engine("sql_server", frozenset({"sqlservr"}), describe, has_child_processes=True)
