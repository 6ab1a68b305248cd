"""Pressure stall information: how long tasks waited for processors, memory and I/O."""

from __future__ import annotations

import re
from typing import Any

from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import COUNT, about, record, ref

RESOURCES = ("cpu", "memory", "io")
LINE = re.compile(r"(some|full) avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)")


def parse(text: str) -> dict[str, Any]:
    """One file of /proc/pressure. Source: Documentation/accounting/psi.rst of the kernel."""
    return {
        match[1]: {
            "avg10_percent": float(match[2]),
            "avg60_percent": float(match[3]),
            "avg300_percent": float(match[4]),
            "total_microseconds": int(match[5]),
        }
        for match in LINE.finditer(text)
    }


def read(host: Host, resource: str) -> dict[str, Any] | None:
    """The pressure on one resource; None where the kernel does not tell (psi=0 answers an error when read)."""
    return parse(host.read_optional(f"proc/pressure/{resource}") or "") or None


def collect(host: Host) -> Fragment:
    found = {resource: pressure for resource in RESOURCES if (pressure := read(host, resource))}
    if not found:
        raise NoData(f"{host.path('proc/pressure')} tells nothing: the kernel has no PSI, or it is off (psi=0)")
    return Fragment(sample={"pressure": found})


COLLECTOR = Collector(
    collect,
    sample={
        "pressure": about(
            record(
                {
                    "cpu": ref("pressure"),
                    "memory": ref("pressure"),
                    "io": ref("pressure"),
                }
            ),
            "Pressure stall information: /proc/pressure",
        )
    },
    definitions={
        "pressure": record({"some": ref("stall"), "full": ref("stall")}),
        "stall": {
            "type": ["object", "null"],
            "properties": {
                "avg10_percent": {"type": "number", "minimum": 0},
                "avg60_percent": {"type": "number", "minimum": 0},
                "avg300_percent": {"type": "number", "minimum": 0},
                "total_microseconds": COUNT,
            },
        },
    },
)
