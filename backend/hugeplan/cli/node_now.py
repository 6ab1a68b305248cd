"""This node at this moment, through the agent's collectors, which are a distribution of their own."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hugeplan.cli import InputError
from hugeplan.cli.page_files import without_process
from hugeplan.proof import Observation

NEEDED = (
    "pools",
    "numa",
    "thp",
    "cpu",
    "kernel",
    "boot",
    "tunables",
    "buddyinfo",
    "databases",
    "processes",
    "hugetlb_cgroups",
    "kubelet",
)


def observe(root: str = "/") -> Observation:
    """What the collectors see. InputError where the agent is not installed."""
    try:
        from hugeplan_agent.apart import Apart  # noqa: PLC0415 - an optional distribution
        from hugeplan_agent.collectors import COLLECTORS  # noqa: PLC0415
        from hugeplan_agent.errors import CollectError  # noqa: PLC0415
        from hugeplan_agent.host import Host  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "this command needs hugeplan-agent of the same release beside hugeplan (its extra is hugeplan[node])"
        ) from error
    pages: dict[str, Any] = {"huge_page_files": None, "sysv_segments": None}
    with Apart(root, {"pages": without_process}) as apart:
        found = apart.collect(Host(root), {name: COLLECTORS[name] for name in NEEDED})
        with suppress(CollectError):
            pages = apart.ask("pages")
    return Observation(found.inventory, {**found.sample, **pages})
