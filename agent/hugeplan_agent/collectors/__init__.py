"""One small file for each subject, and the table that names them all.

A collector is a function from a Host to the part of the report it fills, with the JSON Schema of that part. Its parser
is a pure function over text.
The runner times each one; a failure of one never stops the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hugeplan_agent.collectors import (
    boot,
    buddyinfo,
    cgroup,
    clone_hints,
    cpu,
    databases,
    hugetlb_cgroups,
    kernel,
    kubelet,
    meminfo,
    numa,
    pools,
    pressure,
    processes,
    thp,
    tunables,
    units,
    vmstat,
    watermarks,
)
from hugeplan_agent.collectors.fitting import Room
from hugeplan_agent.errors import CollectError, NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import MAX_BYTES, SHARED, Schema

COLLECTORS: Mapping[str, Collector] = {
    "meminfo": meminfo.COLLECTOR,
    "pools": pools.COLLECTOR,
    "numa": numa.COLLECTOR,
    "thp": thp.COLLECTOR,
    "cpu": cpu.COLLECTOR,
    "kernel": kernel.COLLECTOR,
    "boot": boot.COLLECTOR,
    "clone_hints": clone_hints.COLLECTOR,
    "cgroup": cgroup.COLLECTOR,
    "vmstat": vmstat.COLLECTOR,
    "watermarks": watermarks.COLLECTOR,
    "buddyinfo": buddyinfo.COLLECTOR,
    "pressure": pressure.COLLECTOR,
    "tunables": tunables.COLLECTOR,
    "units": units.COLLECTOR,
    "databases": databases.COLLECTOR,
    "processes": processes.COLLECTOR,
    "hugetlb_cgroups": hugetlb_cgroups.COLLECTOR,
    "kubelet": kubelet.COLLECTOR,
}

LOOKING = ("units", "databases", "processes", "hugetlb_cgroups", "kubelet")
"""Those that look into processes, or share what these found."""

MAX_REASON_CHARACTERS = 1000
"""A report with more is refused as a whole."""


@dataclass
class Collected:
    """The merged parts of all collectors, and how each of them ended."""

    inventory: dict[str, Any] = field(default_factory=dict)
    sample: dict[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)


def collect_all(
    host: Host, collectors: Mapping[str, Collector] = COLLECTORS, ask: Callable[[str], Any] | None = None
) -> Collected:
    """Run every collector. Status: ok, no_data (the machine has no such thing) or failed, with a reason.

    ``ask`` answers as ``collect_one`` for those that look into processes, or raises CollectError (apart.py).
    """
    collected = Collected()
    host.begin()
    for name in collectors:
        started = time.perf_counter()
        try:
            part = collect_one(host, name, collectors) if ask is None or name not in LOOKING else ask(name)
        except CollectError as error:
            part = {"status": "failed", "reason": describe(error)}
        collected.inventory.update(part.get("inventory", {}))
        collected.sample.update(part.get("sample", {}))
        seconds = round(time.perf_counter() - started, 6)
        result = {"status": part["status"], "duration_seconds": seconds, "reason": part["reason"]}
        collected.results.append({"name": name, **result})
    return collected


def collect_one(host: Host, name: str, collectors: Mapping[str, Collector] = COLLECTORS) -> dict[str, Any]:
    """What one collector found, as JSON can hold it, and how it ended."""
    try:
        found = collectors[name].collect(host)
        sample, notes = _fitting(host, found, collectors[name], types_of(collectors))
        reason = "; ".join(filter(None, [*notes, found.note]))[:MAX_REASON_CHARACTERS] or None
        return {"status": "ok", "reason": reason, "inventory": found.inventory, "sample": sample}
    except NoData as absence:
        return {"status": "no_data", "reason": str(absence)[:MAX_REASON_CHARACTERS]}
    except Exception as error:
        return {"status": "failed", "reason": describe(error)}


def types_of(collectors: Mapping[str, Collector]) -> dict[str, Schema]:
    """The types of the report's schema by their names in ``$defs``."""
    return {**SHARED, **{name: one for collector in collectors.values() for name, one in collector.definitions.items()}}


def _fitting(
    host: Host, found: Fragment, collector: Collector, types: Mapping[str, Schema]
) -> tuple[dict[str, Any], list[str]]:
    """The sections of the sample as far as a service takes them, and what was left out."""
    sample, notes = {}, []
    room = host.shared("report room", lambda _: Room())
    for name, value in found.sample.items():
        part, schema = bounded(value), collector.sample.get(name)
        if schema is not None:
            part, note = room.fit(name, part, schema, types, found)
            notes.append(note)
        if part is not None or value is None:
            sample[name] = part
    return sample, notes


def bounded(part: Any, name: str = "") -> Any:
    """The part with null, unknown, for every count of bytes that no machine has. A service refuses the whole report."""
    if isinstance(part, dict):
        return {key: bounded(value, key) for key, value in part.items()}
    if isinstance(part, list):
        return [bounded(item) for item in part]
    return None if name.endswith("bytes") and isinstance(part, int) and not 0 <= part <= MAX_BYTES else part


def describe(error: Exception) -> str:
    """One line about an exception, short enough for a report."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words[:500]


def failed(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each collector that failed."""
    return [f"{result['name']}: {result['reason']}" for result in results if result["status"] == "failed"]
