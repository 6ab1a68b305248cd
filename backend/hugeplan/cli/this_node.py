"""``--node this``: facts and a sample of the machine the command runs on, by the agent's collectors.

The agent reads /proc, /sys and the cgroup tree; this module only turns what it found into what the planner takes, by
the same functions that read a stored report. Nothing is written.
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib import import_module

from hugeplan.cli import InputError
from hugeplan.documents.decoding import convert
from hugeplan.documents.report import Inventory, Sample
from hugeplan.fleet.facts import IncompleteReportError, node_facts
from hugeplan.fleet.observation import node_sample
from hugeplan.planner.model import HardwareFacts, NodeFacts, NodeSample


def observe(root: str = "/", hardware: HardwareFacts | None = None) -> tuple[NodeFacts, NodeSample]:
    """Facts and a sample of the machine whose /proc and /sys lie under ``root``.

    ``hardware`` from a tlbbench document replaces what /proc/cpuinfo and the catalogue say. InputError when the
    machine's memory cannot be read, or the agent's collectors are not installed.
    """
    try:
        collectors, host = import_module("hugeplan_agent.collectors"), import_module("hugeplan_agent.host")
    except ImportError as error:
        raise InputError(
            "--node this: the package hugeplan-agent is not installed; install it (pip install ./agent), or describe"
            " the node in a scenario file"
        ) from error
    collected = collectors.collect_all(host.Host(root))
    if not collected.sample.get("memory"):
        raise InputError("--node this: /proc/meminfo cannot be read; describe the node in a scenario file instead")
    inventory = convert(Inventory, collected.inventory)
    sample = convert(Sample, {"taken_at": datetime.now(UTC).isoformat(), **collected.sample})
    try:
        facts = node_facts(platform.node(), inventory, sample, measured=hardware)
    except IncompleteReportError as error:
        raise InputError(f"--node this: {error} Describe the node in a scenario file instead.") from error
    return facts, node_sample(inventory, sample, sample.processes)
