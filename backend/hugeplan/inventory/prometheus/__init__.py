"""Inventory from a Prometheus server: node_exporter and kube-state-metrics, with history for the risk."""

from __future__ import annotations

from hugeplan.inventory.prometheus.build import read_prometheus

__all__ = ["read_prometheus"]
