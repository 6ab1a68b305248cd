"""Pods as kube-state-metrics, cAdvisor and the exporters of databases tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hugeplan.inventory.kubernetes.nodes import pools_of
from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.believed import Believed, PodKey, has_ended, key_of, teller_of
from hugeplan.inventory.prometheus.client import Series
from hugeplan.inventory.prometheus.clusters import Tables
from hugeplan.inventory.prometheus.hosts import history_of
from hugeplan.planner.model import MemoryHistory, named


@dataclass(slots=True)
class Pod:
    """What metrics say of a pod's containers; ``doubtful`` where they say two things."""

    nodes: set[str] = field(default_factory=set)
    doubtful: bool = False
    images: dict[str, str] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    huge: dict[str, dict[int, int]] = field(default_factory=dict)

    def keep(self, held: dict[Any, Any], of: Any, said: Any) -> None:
        """Of two sizes the larger counts: whoever says the other takes nothing from the pod."""
        self.doubtful |= held.get(of, said) != said
        held[of] = max(held.get(of, said), said)


def resource_of(name: str) -> str:
    """kube-state-metrics writes ``hugepages_2Mi`` for ``hugepages-2Mi``."""
    return name.replace("hugepages_", "hugepages-", 1)


def largest(jobs: Sequence[Series]) -> tuple[MemoryHistory, bool]:
    """Of several jobs the largest use counts; where they differ by a quarter (True), the largest of all moments does.

    A stranger's many moments of little use would make the few moments of the own job improbable.
    """
    uses = [dict(zip(one.times, one.values, strict=True)) for one in jobs] if len(jobs) > 1 else []
    used = {at: max(use.get(at, 0) for use in uses) for at in sorted(set().union(*uses))}
    differ = any(use.get(at, 0) < most * 0.75 for use in uses for at, most in used.items())
    if differ:
        used = dict.fromkeys(used, max(used.values()))
    return history_of(Series({}, tuple(used), tuple(used.values())) if uses else jobs[0]), differ


def histories(series: Iterable[Series], notes: list[str]) -> dict[PodKey, MemoryHistory]:
    """By pod, the largest of all jobs."""
    told: dict[PodKey, list[Series]] = {}
    for one in series:
        told.setdefault(key_of(one), []).append(one)
    found = {key: largest(jobs) for key, jobs in told.items()}
    note_differing("pods", ("/".join(key) for key, (_, differ) in found.items() if differ), notes)
    return {key: history for key, (history, _) in found.items()}


def note_differing(of: str, names: Iterable[str], notes: list[str]) -> None:
    """A note of the pods or hosts of whose use jobs say different things."""
    if differing := sorted(names):
        notes.append(f"memory in use of {of} {named(differing)}: jobs of Prometheus differ, the largest counts")


def read_pods(tables: Believed) -> dict[tuple[str, PodKey], Pod]:
    """Pods that hold memory, with what their containers ask for, by the job that tells of them and their names."""
    phases: dict[tuple[str, PodKey], set[bool]] = {}
    for one in tables.query(queries.PHASES):
        phases.setdefault(_told(one), set()).add(has_ended(one))
    pods: dict[tuple[str, PodKey], Pod] = {}
    for one in tables.query(queries.PODS):
        ended = phases.get(_told(one), set())
        if ended != {True}:
            there = pods.setdefault(_told(one), Pod())
            there.nodes.add(one.labels["node"])
            there.doubtful = len(there.nodes) > 1 or len(ended) > 1
    for one in tables.query(queries.CONTAINERS):
        pod = pods.get(_told(one))
        if pod is not None:
            image = one.labels.get("image_spec") or one.labels.get("image", "")
            pod.keep(pod.images, one.labels.get("container", ""), image)
    for expression, field_name in ((queries.REQUESTS, "requests"), (queries.LIMITS, "limits")):
        for one in tables.query(expression):
            pod = pods.get(_told(one))
            if pod is None or one.value < 0:
                continue
            container, resource = one.labels.get("container", ""), resource_of(one.labels.get("resource", ""))
            if resource == "memory":
                pod.keep(getattr(pod, field_name), container, int(one.value))
            for size in pools_of({resource: int(one.value)}):
                pod.keep(pod.huge.setdefault(container, {}), size, int(one.value))
    return pods


def _told(one: Series) -> tuple[str, PodKey]:
    return teller_of(one)[0], key_of(one)


def exported_settings(tables: Tables) -> dict[tuple[PodKey, str], dict[str, str]]:
    """Settings that a database's exporter reports, by pod and engine; none where others alone report them.

    A scraped program may say any label that its target has not, and others below ``exported_*`` or by ``honorLabels``.
    Prometheus itself writes ``up``, with the target's own labels: a program is believed of its target's namespace. A
    setting with two values is not known.
    """
    names = "|".join(metric for metric, *_ in queries.SETTINGS)
    rows = {metric: (engine, setting, suffix) for metric, engine, setting, suffix in queries.SETTINGS}
    targets: dict[tuple[str | None, ...], set[str]] = {}
    for one in tables.query("up"):
        at = one.labels.get("job"), one.labels.get("instance")
        targets.setdefault(at, set()).add(one.labels.get("namespace", ""))
    found: dict[tuple[PodKey, str], dict[str, str]] = {}
    doubtful = set()
    for one in tables.query(f'{{__name__=~"{names}"}}'):
        if one.labels.get("__name__") not in rows:
            continue
        engine, setting, suffix = rows[one.labels["__name__"]]
        namespace = one.labels.get("namespace", "")
        key = ((namespace, one.labels.get("exported_pod") or one.labels.get("pod", "")), engine)
        value, known = f"{one.value:.0f}{suffix}", found.setdefault(key, {})
        at = one.labels.get("job"), one.labels.get("instance")
        if targets.get(at) != {namespace} or one.labels.get("exported_namespace", namespace) != namespace:
            continue
        if known.setdefault(setting, value) != value:
            doubtful.add((key, setting))
    for key, setting in doubtful:
        del found[key][setting]
    return found
