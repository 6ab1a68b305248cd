"""MongoDB: WiredTiger's cache in one process; the settings stand in a YAML file of a few fixed keys."""

from __future__ import annotations

from hugeplan_agent.collectors.engines import versions
from hugeplan_agent.collectors.engines.base import Engine, Facts, Server, Settings, option_pairs, port_number
from hugeplan_agent.collectors.simple_yaml import leaves

SETTINGS = frozenset(
    {"wiredTigerCacheSizeGB", "storage.wiredTiger.engineConfig.cacheSizeGB", "net.maxIncomingConnections", "net.port"}
)


def describe(server: Server) -> Facts:
    settings = Settings(SETTINGS, complete=True)
    options = dict(option_pairs(server.arguments[1:]))
    short = [after for word, after in zip(server.arguments, server.arguments[1:]) if word == "-f"]
    path = options.get("config") or (short[0] if short else None)
    if path:
        text = server.try_read(path, settings, must_exist=True)
        for name, value in leaves(text or "").items():
            settings.put(name, value, path.rpartition("/")[2][:64])
    for name, given in options.items():
        settings.put(name, given or "", "command line")
    port = port_number(options.get("port") or settings.value("net.port"))
    settings.found.pop("net.port", None)
    version, source = versions.of_image(server, ["MONGO_VERSION"])
    return Facts(settings, version=version, version_source=source, port=port)


ENGINE = Engine("mongodb", frozenset({"mongod"}), describe)
