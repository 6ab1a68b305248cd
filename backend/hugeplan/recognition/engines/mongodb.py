"""MongoDB in a container: ``mongod --wiredTigerCacheSizeGB`` and mounted mongod.conf files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hugeplan.formats.command_line import expand, long_options
from hugeplan.recognition.base import ContainerEngine, ContainerView, Reading, inside
from hugeplan.recognition.config_files import mongod_conf

CACHE: Final = "wiredTigerCacheSizeGB"
_PATH: Final = ("storage", "wiredTiger", "engineConfig", "cacheSizeGB")


def cache_size(configuration: Mapping[str, Any]) -> dict[str, str]:
    """The cache size of a mongod.conf, nested or with dots in its names."""
    found = inside(configuration, *_PATH)
    if found is None:
        found = configuration.get(".".join(_PATH))
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return {}
    return {CACHE: str(found)} if isinstance(found, str) or abs(found) < 2**63 else {}


def read(container: ContainerView) -> Reading:
    """Only the cache size says how much memory the server takes."""
    files: dict[str, str] = {}
    sources: dict[str, str] = {}
    for file in container.files:
        if "mongo" in file.path:
            found = cache_size(mongod_conf(file.text))
            files |= found
            sources |= dict.fromkeys(found, file.source)
    options: dict[str, str] = {}
    for name, value in long_options(container.words):
        expanded = expand(value, container.environment) if name == CACHE and value is not None else None
        if expanded is not None:
            options[CACHE] = expanded
    return Reading.of("arguments", options).over(Reading(settings=files, sources=sources))


ENGINE = ContainerEngine(
    engine="mongodb",
    programs=frozenset({"mongod"}),
    images=frozenset(
        {
            "mongo", "mongodb", "mongodb-community-server", "mongodb-enterprise-server", "percona-server-mongodb",
            "mongodb-sharded",
        }
    ),
    read=read,
    main_setting=CACHE,
)  # fmt: skip
