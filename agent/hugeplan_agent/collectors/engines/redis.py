"""Redis and Valkey: memory of one process; huge pages hurt them when they fork."""

from __future__ import annotations

import re

from hugeplan_agent.collectors.engines import versions
from hugeplan_agent.collectors.engines.base import Engine, Facts, Server, Settings, plain_lines, port_number

SETTINGS = frozenset(
    ["activedefrag", "appendonly", "disable-thp", "io-threads", "maxclients", "maxmemory", "maxmemory-policy", "save"]
)
FILES = ("/etc/redis/redis.conf", "/etc/redis.conf", "/etc/valkey/valkey.conf", "/usr/local/etc/redis/redis.conf")


def describe(server: Server) -> Facts:
    settings = Settings(SETTINGS)
    # The server replaces its arguments by a title such as "redis-server *:6379", so its file is known by place only.
    for path in FILES:
        text = server.try_read(path, settings)
        for line in plain_lines(text or "", settings, "#"):
            name, _, value = line.partition(" ")
            settings.put(name.lower(), value.strip().strip('"'), path.rpartition("/")[2])
    settings.missing("it may have been started with another file, and CONFIG SET leaves no trace")
    title = " ".join(server.arguments)
    port = re.search(r":(\d{1,5})(?:\s|$)", title)
    product = "valkey" if server.main.name.startswith("valkey") else None
    version, source = versions.of_image(server, ["VALKEY_VERSION" if product else "REDIS_VERSION"])
    return Facts(
        settings,
        version=version,
        version_source=source,
        port=port_number(port[1]) if port else None,
        product=product,
    )


ENGINE = Engine("redis", frozenset({"redis-server", "valkey-server"}), describe)
