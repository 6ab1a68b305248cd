"""What the kubelet sets aside, from its configuration."""

from __future__ import annotations

from typing import Any

import pytest

from hugeplan.formats.kubelet import eviction_hard_bytes, provider_of, reserved_bytes

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("config", "kube", "eviction"),
    [
        ({}, 0, 100 * MIB),
        ({"kubeReserved": {"cpu": "1"}}, 0, 100 * MIB),
        ({"kubeReserved": {"memory": "1Gi"}}, GIB, 100 * MIB),
        ({"kubeReserved": {"memory": "1500m"}}, 2, 100 * MIB),
        ({"kubeReserved": {"memory": "much"}}, None, 100 * MIB),
        ({"evictionHard": {"memory.available": "5%"}}, 0, 32 * GIB // 20),
        ({"evictionHard": {"memory.available": "750Mi"}}, 0, 750 * MIB),
        ({"evictionHard": {"nodefs.available": "10%"}}, 0, 0),
        ({"evictionHard": {"nodefs.available": "10%"}, "mergeDefaultEvictionSettings": True}, 0, 100 * MIB),
        ({"evictionHard": {"memory.available": "x%"}}, 0, None),
        ({"evictionHard": {"memory.available": " 2.5% "}}, 0, 32 * GIB // 40),
        ({"evictionHard": {"memory.available": "101%"}}, 0, None),
        *(({"evictionHard": {"memory.available": f"1e{sign}2000000000%"}}, 0, None) for sign in ("", "-")),
        ({"evictionHard": {"memory.available": "1" * 1_000_000 + "%"}}, 0, None),
        ({"kubeReserved": "1Gi", "evictionHard": []}, None, None),
    ],
)
def test_reservations(config: dict[str, Any], kube: int | None, eviction: int | None) -> None:
    assert reserved_bytes(config, "kubeReserved") == kube
    assert eviction_hard_bytes(config, 32 * GIB) == eviction


def test_a_provider_is_told_by_its_own_labels() -> None:
    assert provider_of({"kubernetes.azure.com/cluster": "x"}) == "aks"
    assert provider_of({"eks.amazonaws.com/nodegroup": "x", "provider": "GKE"}) == "gke"
    assert provider_of({"provider": "racks"}) is None
