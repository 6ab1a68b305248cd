"""SAP HANA: column stores in hdbindexserver processes; the limits stand in global.ini."""

from __future__ import annotations

import re

from hugeplan_agent.collectors.engines.base import Engine, Facts, Server, Settings, plain_lines

SETTINGS = frozenset({"global_allocation_limit", "allocationlimit", "basepath_shared", "use_large_pages"})
SID = re.compile(r"/usr/sap/([A-Z][A-Z0-9]{2})/")


def describe(server: Server) -> Facts:
    settings = Settings(SETTINGS, complete=True)
    sid = SID.search(server.executable or "") or SID.search(server.folder() or "")
    if sid is None:
        settings.missing("its SID is not known to this user")
    else:
        path = f"/usr/sap/{sid[1]}/SYS/global/hdb/custom/config/global.ini"
        for line in plain_lines(server.try_read(path, settings) or "", settings):
            name, _, value = line.partition("=")
            settings.put(name.strip().lower(), value.strip(), "global.ini")
    return Facts(settings, instance=sid[1] if sid else None)


ENGINE = Engine("sap_hana", frozenset({"hdbindexserver"}), describe)
