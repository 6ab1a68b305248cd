"""Transparent huge pages: the selected word of each policy file."""

from __future__ import annotations

from hugeplan_agent.collectors.keyvalue import parse_selected
from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import record, text

FOLDER = "sys/kernel/mm/transparent_hugepage"
FILES = ("enabled", "defrag", "shmem_enabled")


def collect(host: Host) -> Fragment:
    texts = {name: host.read_optional(f"{FOLDER}/{name}") for name in FILES}
    if texts["enabled"] is None:
        raise NoData(f"{host.path(FOLDER)}/enabled does not exist: the kernel has no transparent huge pages")
    words = {name: parse_selected(text) if text is not None else None for name, text in texts.items()}
    return Fragment({"thp": words})


COLLECTOR = Collector(
    collect,
    inventory={
        "thp": record(
            {
                "enabled": text(64),
                "defrag": text(64),
                "shmem_enabled": text(64),
            }
        )
    },
)
