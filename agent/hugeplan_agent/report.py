"""The report document (schema_version 1; report_schema.py makes its JSON Schema, report.schema.json)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hugeplan_agent import __version__
from hugeplan_agent.collectors import Collected, failed
from hugeplan_agent.errors import CollectError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Identity:
    """Which node a report is about. ``synthetic`` marks trees that are not a machine: fixtures and examples."""

    machine_id: str
    node_name: str
    synthetic: bool = False


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def build(
    collected: Collected,
    identity: Identity,
    *,
    now: datetime,
    run: Mapping[str, Any] | None,
    spool: Mapping[str, int],
    hypervisor: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One report. ``run`` is a tlbbench document or None; ``spool`` counts what was dropped and refused before;
    ``hypervisor`` is what a run since this boot read from CPUID.

    Raises CollectError when the memory of the node is unknown: there is nothing worth sending then.
    """
    memory = collected.sample.get("memory")
    if not memory or not memory.get("mem_total_bytes"):
        reasons = failed(collected.results) or [
            f"{result['name']}: {result['reason']}" for result in collected.results if result["name"] == "meminfo"
        ]
        raise CollectError(f"the node's memory is unknown, so there is nothing to report ({'; '.join(reasons)})")
    if not collected.inventory.get("architecture"):
        raise CollectError(f"the node's processor is unknown ({'; '.join(failed(collected.results))})")
    moment = timestamp(now)
    return {
        "schema_version": SCHEMA_VERSION,
        "report_id": str(uuid.uuid4()),
        "agent_version": __version__,
        "created_at": moment,
        "machine_id": identity.machine_id,
        "node_name": identity.node_name,
        "synthetic": identity.synthetic,
        "inventory": with_hypervisor(collected.inventory, hypervisor or hypervisor_of(run)),
        "sample": {"taken_at": moment, **collected.sample},
        "run": run,
        "collectors": collected.results,
        "spool": dict(spool),
    }


def hypervisor_of(run: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The hypervisor as a run read it from CPUID; None when it says nothing."""
    environment = (run or {}).get("environment")
    found = environment.get("hypervisor") if isinstance(environment, dict) else None
    return found if isinstance(found, dict) else None


def with_hypervisor(inventory: Mapping[str, Any], seen: Mapping[str, Any] | None) -> dict[str, Any]:
    """The hypervisor's presence and name as the benchmark saw them, where the kernel's files do not tell."""
    merged = dict(inventory)
    if seen is None:
        return merged
    if merged.get("virtualised") is None:
        merged["virtualised"] = seen.get("present")
    if merged.get("hypervisor") is None and merged.get("virtualised"):
        merged["hypervisor"] = seen.get("name")
    return merged
