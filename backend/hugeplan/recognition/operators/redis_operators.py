"""Redis operators: Spotahome's ``RedisFailover`` and Opstree's ``Redis``, ``RedisCluster`` and ``RedisReplication``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import CustomResource, Operator, PodView, Reading, Reference, inside, label
from hugeplan.recognition.config_files import redis_conf

_FAILOVER: Final = ("databases.spotahome.com", "RedisFailover")
_OPSTREE: Final = tuple(
    (group, kind)
    for group in ("redis.redis.opstreelabs.in", "redis.opstreelabs.in")
    for kind in ("Redis", "RedisCluster", "RedisReplication")
)


def references(pod: PodView) -> Sequence[Reference]:
    """Spotahome's and Opstree's labels."""
    name = label(pod, "redisfailovers.databases.spotahome.com/name")
    if name is not None:
        component = label(pod, "app.kubernetes.io/component", "component")
        return [] if component == "sentinel" else [Reference(*_FAILOVER, name)]
    if "redis_setup_type" not in pod.labels:
        return ()
    owner = label(pod, "app") or ""
    names = dict.fromkeys((owner, owner.removesuffix("-leader"), owner.removesuffix("-follower")))
    return [Reference(group, kind, name) for group, kind in _OPSTREE for name in names]


def read(resource: Mapping[str, Any], _: PodView) -> Reading:
    """``customConfig`` holds lines of redis.conf."""
    lines = inside(resource, "spec", "redis", "customConfig")
    text = "\n".join(str(line) for line in lines) if isinstance(lines, Sequence) and not isinstance(lines, str) else ""
    settings = {name: value for name, value in redis_conf(text).items() if name == "maxmemory"}
    return Reading.of(f"{resource.get('kind')} spec.redis.customConfig", settings)


OPERATOR = Operator(
    name="Redis operator",
    engine="redis",
    labels=("redisfailovers.databases.spotahome.com/name", "redis_setup_type"),
    references=references,
    containers=frozenset({"redis"}),
    read=read,
    resources=tuple(CustomResource(group=group, kind=kind) for group, kind in (_FAILOVER, *_OPSTREE)),
)
