"""Prints the published JSON Schema of the report: ``make schemas`` writes it to report.schema.json.

The frame of the document stands here, every entry of ``inventory`` and ``sample`` at the collector that fills it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hugeplan_agent.collectors import COLLECTORS
from hugeplan_agent.fragment import Collector
from hugeplan_agent.report import SCHEMA_VERSION
from hugeplan_agent.schema import BOOLEAN, COUNT, MOMENT, SHARED, Schema, about, array, optional, record, ref, table

MAX_COLUMNS = 120

VERSION: Schema = {"const": SCHEMA_VERSION}

SPOOL_COUNTERS = (
    "pending",
    "pending_bytes",
    "rejected",
    "dropped_size",
    "dropped_age",
    "dropped_disk_full",
    "dropped_rejected",
)

FRAME: Mapping[str, Schema] = {
    "schema_version": VERSION,
    "report_id": about(
        {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
        "Made by the agent; the same id again is the same report",
    ),
    "agent_version": {"type": "string", "minLength": 1, "maxLength": 64},
    "created_at": MOMENT,
    "machine_id": about(
        {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{3,127}$"}, "Stable identity of the machine"
    ),
    "node_name": {"type": "string", "minLength": 1, "maxLength": 253},
    "synthetic": about(BOOLEAN, "True when this is an example, not a machine"),
    "inventory": ref("inventory"),
    "sample": ref("sample"),
    "run": about(
        optional(record({"schema_version": VERSION}, required=("schema_version",))),
        "A tlbbench document (agent/tlbbench/tlbbench.schema.json), or null",
    ),
    "collectors": array(ref("collector"), 256),
    "spool": about(
        {**table(COUNT), "required": list(SPOOL_COUNTERS)},
        "What waited, was refused or was given up before this report; pending and dropped count reports",
    ),
}

RESULT = record(
    {
        "name": {"type": "string", "minLength": 1, "maxLength": 64},
        "status": {"enum": ["ok", "failed", "no_data"]},
        "duration_seconds": {"type": "number", "minimum": 0, "maximum": 1e9},
        "reason": {"type": ["string", "null"], "maxLength": 1000},
    },
    required=("name", "status", "duration_seconds", "reason"),
)


def document(collectors: Mapping[str, Collector] = COLLECTORS) -> dict[str, Any]:
    """The schema. Raises ValueError when two collectors declare one entry, or one type."""
    inventory: dict[str, Schema] = {}
    sample: dict[str, Schema] = {"taken_at": MOMENT}
    definitions: dict[str, Schema] = {**SHARED, "collector": RESULT, "inventory": {}, "sample": {}}
    for name, collector in collectors.items():
        _add(name, inventory, collector.inventory)
        _add(name, sample, collector.sample)
        _add(name, definitions, collector.definitions)
    definitions["inventory"] = about(
        record(inventory, required=("architecture", "base_page_bytes")), "Changes only with the hardware or the boot"
    )
    definitions["sample"] = about(
        record(sample, required=("taken_at", "memory")),
        "The memory state at one moment. A list that is absent is unknown; an empty one is known to be empty",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://hugeplan.dev/schemas/report-{SCHEMA_VERSION}.json",
        "title": f"hugeplan report, version {SCHEMA_VERSION}",
        "description": "One document from an agent: inventory, a memory sample, and optionally a tlbbench run. null"
        " and an absent field mean unknown, never zero. Fields that a reader does not know are kept in the stored"
        " document.",
        **record(FRAME, required=[name for name in FRAME if name != "spool"]),
        "$defs": definitions,
    }


def _add(collector: str, into: dict[str, Schema], declared: Mapping[str, Schema]) -> None:
    taken = sorted(declared.keys() & into.keys())
    if taken:
        raise ValueError(f"the collector {collector} declares {', '.join(taken)}, which is declared already")
    into.update(declared)


def text(value: Any, indent: str = "", used: int = 0) -> str:
    """JSON with one line for each value that fits into one. ``used``: columns before and behind the value."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict) or not value or len(indent) + used + len(line) <= MAX_COLUMNS:
        return line
    deeper = indent + "  "
    entries = []
    for name, part in value.items():
        key = f"{json.dumps(name, ensure_ascii=False)}: "
        entries.append(f"{deeper}{key}{text(part, deeper, len(key) + 1)}")
    return "{\n" + ",\n".join(entries) + f"\n{indent}}}"


if __name__ == "__main__":
    print(text(document()))
