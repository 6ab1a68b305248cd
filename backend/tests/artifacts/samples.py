"""Requests that together render every kind of artifact."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hugeplan.artifacts import Artifact, installer, render
from hugeplan.artifacts.base import INSTALLER
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    OperatorObject,
    Plan,
    PlanRequest,
    Policy,
    Pool,
    Reservations,
)
from hugeplan.planner.plan import plan
from hugeplan.recognition.operators import RESOURCES

SETTINGS = {
    "postgresql": {"shared_buffers": "4GB", "max_connections": "100"},
    "mysql": {"innodb_buffer_pool_size": "4G"},
    "mariadb": {"innodb_buffer_pool_size": "4G"},
    "oracle": {"sga_max_size": "4G"},
    "db2": {"database_memory": "4G"},
    "jvm": {"Xmx": "4G"},
    "redis": {"maxmemory": "4gb"},
    "mongodb": {},
    "sqlserver": {},
    "generic": {"segment_size": "1GiB"},
}


def instance(engine: str, name: str | None = None, **fields: object) -> DatabaseInstance:
    if engine == "generic":
        fields |= {"pool_min_bytes": GIB, "pool_max_bytes": 2 * GIB}
    version = {"postgresql": "17", "mysql": "8.4"}.get(engine)
    return DatabaseInstance(
        name=name or engine, engine=engine, version=version, connections=50, settings=SETTINGS[engine], **fields
    )


def request_of(
    *engines: str, name: str = "db-7", nodes: int = 2, reserve_at: str = "boot", **reservations: object
) -> PlanRequest:
    pools = (
        Pool(page_bytes=2 * MIB, nr_hugepages=10, free_hugepages=10),
        Pool(page_bytes=GIB, nr_hugepages=0, free_hugepages=0),
    )
    numa = tuple(NumaNode(id=i, mem_total_bytes=64 * GIB, pools=pools) for i in range(nodes))
    node = NodeFacts(name=name, numa=numa, kernel_used_bytes=GIB, thp_enabled="always", hvo_enabled=False)
    return PlanRequest(
        node=node,
        databases=tuple(instance(engine) for engine in engines),
        reservations=Reservations(**reservations),
        policy=Policy(reserve_at=reserve_at),
    )


def rendered(request: PlanRequest) -> tuple[Plan, dict[str, Artifact]]:
    found = plan(request)
    return found, {artifact.kind: artifact for artifact in render(found, request)}


#: An object of each operator with a patch, by the patch's kind.
OBJECTS = {
    row.patch.kind: OperatorObject(
        group=row.group, kind=row.kind, namespace="hugeplan", name=operator.engine,
        instance_set="one" if row.sets else None,
    )
    for (row, operator) in reversed(RESOURCES.values())
    if row.patch is not None
}  # fmt: skip


def operated(kind: str) -> PlanRequest:
    """A database that an operator runs, on a Kubernetes node."""
    engine = OBJECTS[kind].name
    request = request_of(engine, kubernetes=True, kube_reserved_bytes=GIB)
    return replace(request, databases=(instance(engine, operator_object=OBJECTS[kind]),))


def in_stateful_set(request: PlanRequest) -> PlanRequest:
    """The request with databases whose StatefulSet and container have the engine's name."""
    known = (replace(d, stateful_set=f"hugeplan/{d.engine}", container=d.engine) for d in request.databases)
    return replace(request, databases=tuple(known))


def of_patroni() -> PlanRequest:
    """A PostgreSQL that runs in Patroni's service."""
    running = ObservedDatabase(key="here", engine="postgresql", unit="systemd:patroni.service")
    own = (instance("postgresql", runs_as=running.key),)
    return replace(request_of("postgresql"), databases=own, sample=NodeSample(databases=(running,)))


def of_two_redis() -> PlanRequest:
    """A Redis of the usual service, and one of a service of its own."""
    running = tuple(
        ObservedDatabase(key=name, engine="redis", unit=f"systemd:{name}.service", port=port)
        for name, port in (("redis-server", 6379), ("queue", 6380))
    )
    own = tuple(instance("redis", name=one.key, runs_as=one.key) for one in running)
    return replace(request_of("redis"), databases=own, sample=NodeSample(databases=running))


EVERYTHING = (
    request_of("postgresql", "oracle", "db2", "jvm", "redis", "sqlserver", "generic", kubernetes=False),
    request_of(
        "postgresql", kubernetes=True, memory_manager_static=True,
        kube_reserved_bytes=GIB, system_reserved_bytes=GIB, eviction_hard_bytes=100 * MIB,
    ),
    in_stateful_set(request_of("mysql", kubernetes=True, provider="eks")),
    request_of("mariadb", kubernetes=True, provider="gke"),
    request_of("mysql", "mariadb", nodes=1, reserve_at="runtime"),
    of_patroni(),
    of_two_redis(),
    *(operated(kind) for kind in OBJECTS),
)  # fmt: skip


def loaded(text: str) -> list[Any]:
    """YAML as its readers load it; ``!unsafe`` is Ansible's."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!unsafe", Loader.construct_scalar)
    return list(yaml.load_all(text, Loader))


@cache
def _program() -> Path:
    """The installer, in a folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="hugeplan-file-"))
    atexit.register(shutil.rmtree, folder)
    (folder / "hugeplan-file").write_text(installer.text())
    for path in (folder, folder / "hugeplan-file"):
        path.chmod(0o755)
    return folder / "hugeplan-file"


def here(commands: str) -> str:
    """Commands that call the installer where the tests have it."""
    return commands.replace(INSTALLER, str(_program()))
