"""Which managed Kubernetes a node belongs to, by the labels that only its nodes carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
