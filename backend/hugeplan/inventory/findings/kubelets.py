"""Which of a short limit's consequences a node's kubelet and runtime lead to.

Measured: kubelet 1.34 writes the pod's reservation counter (``hugetlb.<size>.rsvd.max``) as well, so a mapping that
does not fit is refused and the engine falls back or does not start. Where only the usage counter is set the mapping
succeeds and a later access fails. Versions serve to explain; what acts is what the cgroup's files hold.
"""

from __future__ import annotations

import re
from typing import Final

from hugeplan.inventory.model import FoundNode

_SEEN_RESERVING: Final = (1, 34)


def kubelet_minor(version: str | None) -> tuple[int, int] | None:
    """``(1, 34)`` of ``v1.34.2-gke.100``."""
    found = re.match(r"v?(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def limits_reservations(node: FoundNode) -> bool | None:
    """True where the node's kubelet is one that was seen to limit reservations; else not known."""
    minor = kubelet_minor(node.kubelet_version)
    return True if minor is not None and minor >= _SEEN_RESERVING else None


def described(node: FoundNode) -> str:
    """``kubelet v1.34.2, containerd://1.7.24``, for a reason."""
    parts = [f"kubelet {node.kubelet_version}" if node.kubelet_version else None, node.container_runtime]
    return ", ".join(part for part in parts if part) or "kubelet of unknown version"
