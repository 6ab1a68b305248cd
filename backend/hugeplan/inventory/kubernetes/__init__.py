"""Inventory from the API server's objects: ``kubectl get nodes,pods,pvc -A -o json``."""

from __future__ import annotations

from hugeplan.inventory.kubernetes.build import read_kubernetes
from hugeplan.inventory.kubernetes.documents import looks_like_kubernetes

__all__ = ["looks_like_kubernetes", "read_kubernetes"]
