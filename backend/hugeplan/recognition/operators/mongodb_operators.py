"""MongoDB's Community operator and Percona's: ``MongoDBCommunity`` and ``PerconaServerMongoDB``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from hugeplan.recognition.base import CustomResource, Operator, PodView, Reading, Reference, inside, label
from hugeplan.recognition.config_files import mongod_conf
from hugeplan.recognition.engines.mongodb import cache_size
from hugeplan.recognition.images import leading_version, parse_image

_COMMUNITY: Final = ("mongodbcommunity.mongodb.com", "MongoDBCommunity")
_PERCONA: Final = ("psmdb.percona.com", "PerconaServerMongoDB")


def references(pod: PodView) -> Sequence[Reference]:
    """Percona's recommended labels; the Community operator's pods are named after a service ``NAME-svc``."""
    if label(pod, "app.kubernetes.io/name") == "percona-server-mongodb":
        name = label(pod, "app.kubernetes.io/instance")
        server = label(pod, "app.kubernetes.io/component") in {"mongod", "cfg", "nonVoting", "hidden", "arbiter"}
        return [Reference(*_PERCONA, name)] if name is not None and server else []
    service = label(pod, "app") or ""
    agent = any(container.name == "mongodb-agent" for container in pod.containers)
    return [Reference(*_COMMUNITY, service.removesuffix("-svc"))] if agent and service.endswith("-svc") else []


@lru_cache(maxsize=16)
def _cache_size_of(text: str) -> dict[str, str]:
    return cache_size(mongod_conf(text))


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:
    """The cache size and the version."""
    if resource.get("kind") == "MongoDBCommunity":
        found = inside(resource, "spec", "additionalMongodConfig")
        version = inside(resource, "spec", "version")
        settings = cache_size(found) if isinstance(found, Mapping) else {}
        source = "MongoDBCommunity spec.additionalMongodConfig"
        return Reading.of(source, settings, version=None if version is None else str(version))
    replset = label(pod, "app.kubernetes.io/replset")
    sets = inside(resource, "spec", "replsets") or ()
    own = next((one for one in sets if isinstance(one, Mapping) and one.get("name") in {replset, None}), None)
    text = inside(own, "configuration")
    image = inside(resource, "spec", "image")
    return Reading.of(
        "PerconaServerMongoDB spec.replsets configuration",
        _cache_size_of(text) if isinstance(text, str) else {},
        version=leading_version(parse_image(image).tag) if isinstance(image, str) else None,
    )


OPERATOR = Operator(
    name="MongoDB operator",
    engine="mongodb",
    labels=("app.kubernetes.io/name", "app"),
    references=references,
    containers=frozenset({"mongod", "mongodb-agent"}),
    read=read,
    read_labels=("app.kubernetes.io/replset",),
    resources=tuple(CustomResource(group=group, kind=kind) for group, kind in (_COMMUNITY, _PERCONA)),
)
