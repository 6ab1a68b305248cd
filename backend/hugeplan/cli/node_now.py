"""This node at this moment, through the agent's collectors, which are a distribution of their own."""

from __future__ import annotations

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
        from hugeplan_agent.collectors import COLLECTORS, collect_all  # noqa: PLC0415 - an optional distribution
        from hugeplan_agent.host import Host  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "this command needs hugeplan-agent of the same release beside hugeplan (its extra is hugeplan[node])"
        ) from error
    found = collect_all(Host(root), {name: COLLECTORS[name] for name in NEEDED})
    return Observation(found.inventory, {**found.sample, **without_process(root)})
