"""Whom is believed of nodes and their pods: any program that is scraped may tell of both.

Of one node one job is believed, of those that tell of its memory the one that tells of the most nodes; what others add
is left out. Nothing shows that it is not a stranger that tells of the most. So jobs that tell of a node's memory have
to tell the same of it, and of its pods where they tell of pods there: else the node is left out. So have all jobs that
tell of its pods where the believed one tells of none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.client import Series
from hugeplan.inventory.prometheus.clusters import LABEL, Tables
from hugeplan.planner.model import named

#: What the job of the exporter of kube_ series is mostly named.
EXPORTER: Final = "kube-state-metrics"
#: What a node has one of, in ``kube_node_info``.
_OF_ONE: Final = ("system_uuid", "provider_id", "internal_ip", "kernel_version", "kubelet_version")
_OF_NODE: Final = ("node", "resource", *_OF_ONE)
_OF_POD: Final = ("namespace", "pod", "node", "container", "image", "resource", "phase")
_NOTED: Final = 20

Teller = tuple[str, str]
PodKey = tuple[str, str]
Fact = tuple[str | float | None, ...]


def teller_of(one: Series) -> Teller:
    """The job and the instance that tell of a series."""
    return one.labels.get("job", ""), one.labels.get("instance", "")


def key_of(one: Series) -> PodKey:
    """Namespace and name of a series' pod."""
    return one.labels.get("namespace", ""), one.labels.get("pod", "")


def has_ended(one: Series) -> bool:
    """Whether the pod of a phase holds no memory any more."""
    return one.labels.get("phase") in {"Succeeded", "Failed"}


def _fact(one: Series, labels: Iterable[str]) -> Fact:
    return (*(one.labels.get(label) for label in labels), one.value)


def sizes_told(tables: Tables) -> list[Series]:
    """The series of nodes' memory that say a size."""
    return [one for one in tables.query(queries.CAPACITY) if one.labels.get("resource") == "memory" and one.value > 0]


def ranks(tables: Tables) -> dict[str, tuple[int, bool, bool, bool]]:
    """How well each job that tells of nodes' memory tells that it is kube-state-metrics."""
    nodes: dict[str, set[tuple[str | None, ...]]] = {}
    for one in sizes_told(tables):
        nodes.setdefault(teller_of(one)[0], set()).add((one.labels.get(LABEL), one.labels.get("node")))
    of_pods = {teller_of(one)[0] for one in tables.query(queries.PODS)}
    return {job: (len(told), job in of_pods, EXPORTER in job, "/" not in job) for job, told in nodes.items()}


class Believed:
    """The series of one cluster that are believed. What was left out is kept for :meth:`note`."""

    def __init__(self, tables: Tables) -> None:
        self.all = tables
        self._left: dict[str, set[str]] = {}
        #: Who tells of each node's memory, and the job that is believed of it.
        self._tellers: dict[str, set[Teller]] = {}
        for one in sizes_told(tables):
            self._tellers.setdefault(one.labels.get("node", ""), set()).add(teller_of(one))
        rank = ranks(tables)
        self._jobs = {node: max((rank[job], job) for job, _ in tellers)[1] for node, tellers in self._tellers.items()}
        #: By job: whose pods its nodes have, its own where it tells of any.
        self._of_pods: dict[str, str] = {}
        pods: dict[str, dict[str, set[PodKey]]] = {}
        for one in tables.query(queries.PODS):
            if (lead := self._jobs.get(one.labels.get("node", ""))) is not None:
                pods.setdefault(lead, {}).setdefault(teller_of(one)[0], set()).add(key_of(one))
        for lead, of in pods.items():  # one pod has as many series as who tells of it wants
            best = max((EXPORTER in job, "/" not in job, len(keys), job) for job, keys in of.items())[-1]
            self._of_pods[lead] = lead if lead in of else best
        self._pods: dict[PodKey, set[Teller]] = {}
        for one in tables.query(queries.PODS):
            if self._is_believed(queries.PODS, one):
                self._pods.setdefault(key_of(one), set()).add(teller_of(one))

    def _is_believed(self, expression: str, one: Series) -> bool:
        teller, node = teller_of(one), one.labels.get("node", "")
        if expression == queries.PODS:
            return node in self._jobs and teller[0] == self._of_pods.get(self._jobs[node])
        if expression.startswith("kube_node_"):  # of a node without a size nothing is planned
            return node not in self._jobs or (teller[0] == self._jobs[node] and teller in self._tellers[node])
        return teller in self._pods.get(key_of(one), ())

    def query(self, expression: str) -> list[Series]:
        """The newest point of every series of nodes and pods that is believed."""
        found = self.all.query(expression)
        own = [one for one in found if self._is_believed(expression, one)]
        if len(own) < len(found):
            labels = _OF_NODE if expression.startswith("kube_node_") else _OF_POD
            said = {_fact(one, labels) for one in own}
            for one in found:
                if _fact(one, labels) not in said and (of := self._subject(expression, one)):
                    self._left.setdefault(teller_of(one)[0], set()).add(of)
        return own

    def _subject(self, expression: str, one: Series) -> str | None:
        """What a series that is left out is about; None where nothing is planned of it, whoever says it."""
        node, pod = one.labels.get("node", ""), key_of(one)
        if expression == queries.PODS:
            return f"{node} (pod {'/'.join(pod)})" if node in self._jobs else None
        if expression.startswith("kube_node_"):
            return node
        return f"pod {'/'.join(pod)}" if pod in self._pods else None

    def note(self, notes: list[str]) -> None:
        """What was left out of the answers so far, and nodes whose job tells of no pods."""
        for job, subjects in sorted(self._left.items()):
            why = "other programs tell of the memory or the pods there"
            notes.append(f"what job {job or 'without a name'} says of {named(sorted(subjects))} is left out: {why}")
        for lead, job in sorted(self._of_pods.items()):
            if job != lead:
                notes.append(f"pods are those that job {job} tells of: job {lead or 'without a name'} tells of none")

    def contradicted(self, notes: list[str]) -> set[str]:
        """Names of which two things are said: two machines, or one and a stranger. None is planned, a note says so.

        Some may be what any program says that the server asks, also of a cluster that it has made up.
        """
        said: dict[tuple[str, ...], set[object]] = {}
        resources: dict[tuple[str, str], dict[Teller, set[str]]] = {}
        for table in (queries.NODE_INFO, queries.CAPACITY, queries.ALLOCATABLE):
            for one in self.all.query(table):
                node, teller = one.labels.get("node", ""), teller_of(one)
                if teller not in self._tellers.get(node, {teller}):
                    continue
                if table == queries.NODE_INFO:
                    for label in ("node", *_OF_ONE):
                        if one.labels.get(label):
                            said.setdefault((node, label), set()).add(one.labels[label])
                else:
                    resource = one.labels.get("resource", "")
                    said.setdefault((node, table, resource), set()).add(one.value)
                    resources.setdefault((node, table), {}).setdefault(teller, set()).add(resource)
        nodes = {node for node, *_ in said}
        twice = {node for (node, *_), found in said.items() if len(found) > 1}
        twice |= {node for (node, _), by in resources.items() if len({frozenset(told) for told in by.values()}) > 1}
        twice |= self._of_differing_pods()
        if twice and len(twice) == len(nodes):
            notes.append(
                f"{len(twice)} nodes are two machines under one name, {min(twice)} for one, so this server holds"
                " several clusters, or a program that it asks tells of nodes that are not its own; give the series of"
                f" each cluster the label {LABEL}, or ask its own server"
            )
        why = "the series say different things of"
        notes += [f"node {name} is left out: {why} it" for name in sorted(twice)[:_NOTED]]
        if len(twice) > _NOTED:
            notes.append(f"{len(twice) - _NOTED} more nodes are left out: {why} them")
        return twice

    def _of_differing_pods(self) -> set[str]:
        """Nodes of whose memory two jobs tell, and not the same of the pods there; so too where pods are another job's.

        Of those any job that tells of a pod there counts, and the silence of the one that is believed.
        """
        jobs = {node: {job for job, _ in tellers} for node, tellers in self._tellers.items()}
        lent = {node: self._of_pods[lead] for node, lead in self._jobs.items() if self._of_pods.get(lead, lead) != lead}
        if not lent and all(len(told) == 1 for told in jobs.values()):
            return set()
        told: dict[str, dict[str, set[Fact]]] = {node: {job: set()} for node, job in lent.items()}
        at: dict[tuple[str, PodKey], set[str]] = {}
        for one in self.all.query(queries.PODS):
            job, node = teller_of(one)[0], one.labels.get("node", "")
            if node in lent or job in jobs.get(node, ()):
                at.setdefault((job, key_of(one)), set()).add(node)
                told.setdefault(node, {}).setdefault(job, set()).add(_fact(one, _OF_POD))
        for table in (queries.CONTAINERS, queries.REQUESTS, queries.LIMITS, queries.PHASES):
            for one in self.all.query(table):
                job = teller_of(one)[0]
                if table != queries.PHASES or has_ended(one):
                    for node in at.get((job, key_of(one)), ()):
                        told[node][job].add((table, *_fact(one, _OF_POD)))
        return {node for node, by in told.items() if len({frozenset(facts) for facts in by.values()}) > 1}
