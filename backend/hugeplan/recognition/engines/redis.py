"""Redis and Valkey in a container: ``redis-server --maxmemory 2gb`` and mounted redis.conf files."""

from __future__ import annotations

from hugeplan.formats.command_line import expand, long_options
from hugeplan.recognition.base import ContainerEngine, ContainerView, Reading
from hugeplan.recognition.config_files import redis_conf

_READ = frozenset({"maxmemory"})


def read(container: ContainerView) -> Reading:
    """Only ``maxmemory`` says how much memory the server takes."""
    files: dict[str, str] = {}
    sources: dict[str, str] = {}
    for file in container.files:
        if file.path.endswith(".conf"):
            found = {name: value for name, value in redis_conf(file.text).items() if name in _READ}
            files |= found
            sources |= dict.fromkeys(found, file.source)
    options = {
        name: expanded
        for name, value in long_options(container.words)
        if name in _READ and value is not None and (expanded := expand(value, container.environment)) is not None
    }
    return Reading.of("arguments", options).over(Reading(settings=files, sources=sources))


ENGINE = ContainerEngine(
    engine="redis",
    programs=frozenset({"redis-server", "valkey-server"}),
    images=frozenset({"redis", "valkey", "redis-cluster", "redis-stack-server", "redis-stack", "valkey-cluster"}),
    read=read,
    main_setting="maxmemory",
    is_server=lambda words: "--sentinel" not in words,
)
