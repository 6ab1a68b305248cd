"""What a KubeletConfiguration sets aside, as the kubelet adds it up, and whose Kubernetes a node's labels name.

Source: kubernetes v1.34 pkg/kubelet/apis/config/v1beta1/defaults.go, pkg/kubelet/eviction/helpers.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from hugeplan.formats.quantities import parse_quantity

SIGNAL: Final = "memory.available"
DEFAULT_EVICTION: Final = "100Mi"
_PERCENT: Final = re.compile(r"\s{0,64}\+?(\d{1,3}(?:\.\d{0,18})?|\.\d{1,18})%\s{0,64}")
"""Without an exponent: a node's text says how many digits the number has that is computed."""


def reserved_bytes(config: Mapping[str, object], field: str) -> int | None:
    """Memory in ``kubeReserved`` or ``systemReserved``: 0 where the field or its memory is not there, None where it is
    not a quantity.
    """
    part = config.get(field)
    if part is None:
        return 0
    if not isinstance(part, Mapping):
        return None
    return _quantity(part.get("memory", 0))


def eviction_hard_bytes(config: Mapping[str, object], capacity_bytes: int) -> int | None:
    """The hard threshold of memory.available, also as a percentage of capacity; None where it cannot be read.

    Without ``evictionHard`` the kubelet's default holds; thresholds that leave memory.available out have none.
    """
    part = config.get("evictionHard")
    if part is None:
        return _quantity(DEFAULT_EVICTION)
    if not isinstance(part, Mapping):
        return None
    default = DEFAULT_EVICTION if config.get("mergeDefaultEvictionSettings") is True else 0
    value = part.get(SIGNAL, default)
    if isinstance(value, str) and (share := _PERCENT.fullmatch(value)):
        return int(Fraction(share[1]) * capacity_bytes / 100) if Fraction(share[1]) <= 100 else None
    return _quantity(value)


def _quantity(value: object) -> int | None:
    return parse_quantity(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


_LABELS: Final = {
    "cloud.google.com/gke-nodepool": "gke",
    "eks.amazonaws.com/nodegroup": "eks",
    "kubernetes.azure.com/cluster": "aks",
}


def provider_of(labels: Mapping[str, str]) -> str | None:
    """``gke``, ``eks`` or ``aks``; None where no label tells. The label ``provider``, which an agent may set, wins."""
    named = labels.get("provider", "").lower()
    if named in _LABELS.values():
        return named
    return next((provider for label, provider in _LABELS.items() if label in labels), None)
