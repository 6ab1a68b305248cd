"""Several clusters in one Prometheus: kept apart by the label that federation adds, or left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.client import Series

LABEL: Final = "cluster"


class Tables(Protocol):
    """Series by expression: of a whole server, or of one cluster."""

    def query(self, expression: str) -> list[Series]:
        """The newest point of every series."""

    def query_range(self, expression: str, start: float, end: float, step_seconds: float) -> list[Series]:
        """Points of every series."""


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
