"""Several clusters in one Prometheus: kept apart by the label that federation adds, or left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.client import Series

LABEL: Final = "cluster"
#: What a node has one of, in ``kube_node_info``.
_OF_ONE: Final = ("system_uuid", "provider_id", "internal_ip", "kernel_version", "kubelet_version")
_NOTED: Final = 20
#: What the job of the exporter of kube_ series is mostly named.
EXPORTER: Final = "kube-state-metrics"


class Tables(Protocol):
    """Series by expression: of a whole server, or of one cluster."""

    def query(self, expression: str) -> list[Series]:
        """The newest point of every series."""

    def query_range(self, expression: str, start: float, end: float, step_seconds: float) -> list[Series]:
        """Points of every series."""


@dataclass(frozen=True, slots=True)
class OwnSeries:
    """A server's series without what others say of a pod that kube-state-metrics has told of.

    Any program that is scraped may say any series, and who makes a Service may name its job: so a job is taken for
    kube-state-metrics only where it has told of every node. Of nodes all is kept: two that say different things of one
    contradict each other, whatever their names, and that node is left out.
    """

    tables: Tables

    def query(self, expression: str) -> list[Series]:
        """The newest point of every series that is believed."""
        found = self.tables.query(expression)
        if not expression.startswith("kube_") or expression.startswith("kube_node_"):
            return found
        nodes: dict[str, set[tuple[str | None, ...]]] = {}
        for one in self.tables.query(queries.CAPACITY):
            nodes.setdefault(one.labels.get("job", ""), set()).add((one.labels.get(LABEL), one.labels.get("node")))
        every = set().union(*nodes.values())
        jobs = {job for job, told in nodes.items() if EXPORTER in job and told == every}
        subjects = [tuple(one.labels.get(label) for label in (LABEL, "namespace", "pod")) for one in found]
        told = {subject for subject, one in zip(subjects, found, strict=True) if one.labels.get("job") in jobs}
        return [
            one
            for subject, one in zip(subjects, found, strict=True)
            if one.labels.get("job") in jobs or subject not in told
        ]

    def query_range(self, expression: str, start: float, end: float, step_seconds: float) -> list[Series]:
        """Points of every series."""
        return self.tables.query_range(expression, start, end, step_seconds)


@dataclass(frozen=True, slots=True)
class _ByCluster:
    """Answers of a server, each divided by the label once: any program that is asked may name a cluster of its own."""

    tables: Tables
    answers: dict[tuple[object, ...], dict[str, list[Series]]] = field(default_factory=dict)

    def of(self, name: str, asked: tuple[object, ...], ask: Callable[[], Iterable[Series]]) -> list[Series]:
        if asked not in self.answers:
            parts = self.answers[asked] = {}
            for one in ask():
                parts.setdefault(one.labels.get(LABEL, ""), []).append(one)
        return self.answers[asked].get(name, [])


@dataclass(frozen=True, slots=True)
class OfCluster:
    """The series of one cluster; ``name`` empty: those that name none."""

    all: _ByCluster
    name: str

    def query(self, expression: str) -> list[Series]:
        """The newest point of every series of the cluster."""
        return self.all.of(self.name, (expression,), lambda: self.all.tables.query(expression))

    def query_range(self, expression: str, start: float, end: float, step_seconds: float) -> list[Series]:
        """Points of every series of the cluster."""
        asked = (expression, start, end, step_seconds)
        return self.all.of(self.name, asked, lambda: self.all.tables.query_range(*asked))


def clusters_of(tables: Tables) -> list[tuple[str, Tables]]:
    """Each cluster with its series; all of them under no name where they name at most one cluster.

    Series that name none come last, so that exporters of nodes of which a cluster has told are not hosts again.
    """
    named = {one.labels.get(LABEL, "") for table in (queries.CAPACITY, queries.UNAME) for one in tables.query(table)}
    if len(named - {""}) < 2:
        return [("", tables)]
    divided = _ByCluster(tables)
    return [(name, OfCluster(divided, name)) for name in sorted(named, key=lambda name: (name == "", name))]


def mixed_nodes(tables: Tables, notes: list[str]) -> set[str]:
    """Names of which two things are said: two machines, or one and a stranger. Nothing is planned, a note says so.

    Some may be what any program says that the server asks, also of a cluster that it has made up.
    """
    said: dict[tuple[str, ...], set[object]] = {}
    for one in tables.query(queries.NODE_INFO):
        for label in ("node", *_OF_ONE):
            if one.labels.get(label):
                said.setdefault((one.labels.get("node", ""), label), set()).add(one.labels[label])
    for table in (queries.CAPACITY, queries.ALLOCATABLE):
        for one in tables.query(table):
            key = (one.labels.get("node", ""), table, one.labels.get("resource", ""))
            said.setdefault(key, set()).add(one.value)
    nodes = {node for node, *_ in said}
    twice = {node for (node, *_), found in said.items() if len(found) > 1}
    if twice and len(twice) == len(nodes):
        notes.append(
            f"{len(twice)} nodes are two machines under one name, {min(twice)} for one, so this server holds several"
            " clusters, or a program that it asks tells of nodes that are not its own; give the series of each cluster"
            f" the label {LABEL}, or ask its own server"
        )
    notes += [f"node {name} is left out: the series say different things of it" for name in sorted(twice)[:_NOTED]]
    if len(twice) > _NOTED:
        notes.append(f"{len(twice) - _NOTED} more nodes are left out: the series say different things of them")
    return twice
