"""Kubernetes arithmetic against the documentation's, the kubelet tests' and issue threads' numbers."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.kubernetes import (
    Reserved,
    aks_kube_reserved_bytes,
    allocatable_memory_bytes,
    eks_kube_reserved_bytes,
    gke_huge_page_cap_bytes,
    gke_kube_reserved_bytes,
    kubernetes_view,
    phantom_eviction_bytes,
    reserved_memory,
    reserved_of_allocatable,
    resolve_reservations,
    tiered_reserve_bytes,
)
from hugeplan.planner.model import GIB, KIB, MIB, NodeFacts, NumaNode, ObservedKubelet, PoolPlan, Reservations, Source


class TestAllocatable:
    def test_documentation_example(self) -> None:
        reserved = 2 * GIB + 1 * GIB + 500 * MIB
        assert allocatable_memory_bytes(32 * GIB, reserved, 0) == 29196 * MIB

    def test_crunchydata_3126(self) -> None:
        assert allocatable_memory_bytes(16265276 * KIB, 100 * MIB, GIB) == 15114300 * KIB

    @pytest.mark.parametrize(("huge", "left"), [(1, 1023), (1025, 0)])
    def test_setters_test(self, huge: int, left: int) -> None:
        assert allocatable_memory_bytes(1024, 0, huge) == left

    def test_a_node_view_names_every_size(self) -> None:
        node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=32 * GIB),))
        pool = PoolPlan(
            numa_node=0, page_bytes=2 * MIB, demand_pages=500, slack_pages=12, pages=512, present_pages=None
        )
        given_ = Reservations(
            kubernetes=True, kube_reserved_bytes=2 * GIB, system_reserved_bytes=GIB, eviction_hard_bytes=500 * MIB
        )
        view = kubernetes_view(node, given_, [pool], resolve_reservations(given_, 32 * GIB))
        assert view.capacity == {"memory": 32 * GIB, "hugepages-2Mi": GIB, "hugepages-1Gi": 0}
        assert view.allocatable["memory"] == (29196 - 1024) * MIB
        assert view.phantom_eviction_bytes == GIB


class TestProviders:
    def test_gke_below_one_gib(self) -> None:
        assert gke_kube_reserved_bytes(GIB - 1) == 255 * MIB

    @pytest.mark.parametrize(
        ("mem_gib", "reserved_mib"),
        [(4, 1024), (8, 1024 + 819.2), (16, 1024 + 819.2 + 819.2), (128, 2662.4 + 0.06 * 112 * 1024)],
    )
    def test_tiers(self, mem_gib: int, reserved_mib: float) -> None:
        assert tiered_reserve_bytes(mem_gib * GIB) == pytest.approx(reserved_mib * MIB, abs=5)

    def test_aks_seven_gigabyte_node_reserves_34_percent(self) -> None:
        reserved = aks_kube_reserved_bytes(7 * GIB)
        assert reserved == pytest.approx(1.6 * GIB, abs=2)
        eviction = resolve_reservations(Reservations(kubernetes=True, provider="aks"), 7 * GIB).eviction.bytes
        # The documentation rounds 750Mi to 0.75 GB: (1.6 + 0.75) / 7 = 34 %.
        assert (reserved + eviction) / (7 * GIB) == pytest.approx(0.336, abs=0.004)

    @pytest.mark.parametrize(
        ("version", "kube", "eviction", "reference"),
        [
            ("v1.28.9", 2662 * MIB + 419430, 750 * MIB, "below 1.29"),
            ("v1.29.0", 650 * MIB, 100 * MIB, "since 1.29"),
            ("v1.34.2+k3s1", 650 * MIB, 100 * MIB, "since 1.29"),
            (None, 2662 * MIB + 419430, 750 * MIB, "unknown version"),
        ],
    )
    def test_aks_by_version(self, version: str | None, kube: int, eviction: int, reference: str) -> None:
        """8 GB and 30 pods: 650 MB since 1.29, as its documentation counts. The larger where the version is unknown."""
        wanted = Reservations(kubernetes=True, provider="aks", max_pods=30, kubelet_version=version)
        found = resolve_reservations(wanted, 16 * GIB)
        assert (found.kube.bytes, found.eviction.bytes) == (pytest.approx(kube, abs=MIB), eviction)
        assert reference in found.kube.reference

    def test_the_kubelets_own_figures_beat_every_formula(self) -> None:
        said = ObservedKubelet(
            version="v1.31.0", kube_reserved_bytes=3 * GIB, system_reserved_bytes=0, eviction_hard_bytes=GIB,
            reserved_bytes=9 * GIB, source="api",
        )  # fmt: skip
        wanted = Reservations(kubernetes=True, provider="gke")
        found = resolve_reservations(wanted, 64 * GIB, said)
        assert (found.kube.bytes, found.system.bytes, found.eviction.bytes) == (3 * GIB, 0, GIB)
        assert {part.source for part in (found.kube, found.system, found.eviction)} == {Source.MEASURED}
        assert "configuration (api)" in found.kube.reference
        given_ = dataclasses.replace(wanted, kube_reserved_bytes=5)
        assert resolve_reservations(given_, 64 * GIB, said).kube == Reserved(5, Source.GIVEN, "given")

    def test_where_only_allocatable_is_reported_the_sum_is_known(self) -> None:
        total = reserved_of_allocatable(
            {"memory": 64 * GIB, "hugepages-2Mi": 8 * GIB, "pods": 110}, {"memory": 52 * GIB}
        )
        assert total == 4 * GIB
        found = resolve_reservations(
            Reservations(kubernetes=True, provider="gke"), 64 * GIB, ObservedKubelet(reserved_bytes=total)
        )
        assert found.total_bytes == 4 * GIB
        assert "its parts are not" in found.kube.reference
        assert reserved_of_allocatable({"memory": GIB}, {"memory": 2 * GIB}) is None
        assert reserved_of_allocatable({"memory": GIB}, {}) is None

    def test_eks_seventeen_pods(self) -> None:
        assert eks_kube_reserved_bytes(17) == 442 * MIB

    def test_gke_caps(self) -> None:
        assert gke_huge_page_cap_bytes(8 * 10**9) == 4_800_000_000
        assert gke_huge_page_cap_bytes(32 * 10**9) == 25_600_000_000

    def test_given_beats_provider(self) -> None:
        reserved = resolve_reservations(
            Reservations(kubernetes=True, provider="gke", kube_reserved_bytes=5, eviction_hard_bytes=7), 64 * GIB
        )
        assert (reserved.kube.bytes, reserved.kube.source) == (5, Source.GIVEN)
        assert reserved.eviction.bytes == 7

    def test_unknown_provider_is_named(self) -> None:
        with pytest.raises(PlannerError, match=r"reservations.provider: 'oke' .* gke, eks, aks"):
            resolve_reservations(Reservations(kubernetes=True, provider="oke"), GIB)

    def test_without_kubernetes_nothing_is_reserved_for_it(self) -> None:
        reserved = resolve_reservations(Reservations(provider="gke", kube_reserved_bytes=GIB), 64 * GIB)
        assert reserved.total_bytes == 0


class TestMemoryManager:
    def test_documentation_equality(self) -> None:
        entries = reserved_memory(4 * GIB + GIB + 100 * MIB, {0: 3 * GIB, 1: 8 * GIB})
        assert entries == ({"numa_node": 0, "memory": 3 * GIB}, {"numa_node": 1, "memory": 2148 * MIB})
        assert sum(e["memory"] for e in entries) == 5220 * MIB

    def test_openshift_puts_everything_on_node_zero(self) -> None:
        assert reserved_memory(1100 * MIB, {0: 64 * GIB, 1: 64 * GIB}) == ({"numa_node": 0, "memory": 1100 * MIB},)

    @given(st.dictionaries(st.integers(0, 7), st.integers(-GIB, 8 * GIB), min_size=1), st.integers(0, 16 * GIB))
    def test_the_sum_is_exact_or_refused(self, room: dict[int, int], reserved: int) -> None:
        if reserved > sum(max(0, r) for r in room.values()):
            with pytest.raises(PlannerError, match="reservations"):
                reserved_memory(reserved, room)
            return
        entries = reserved_memory(reserved, room)
        assert sum(e["memory"] for e in entries) == reserved
        assert all(0 < e["memory"] <= room[e["numa_node"]] for e in entries)
        assert len({e["numa_node"] for e in entries}) == len(entries)


class TestPhantomEviction:
    def test_is_the_pool_unless_the_gate_is_on(self) -> None:
        assert phantom_eviction_bytes(GIB, hugepage_aware_eviction=False) == GIB
        assert phantom_eviction_bytes(GIB, hugepage_aware_eviction=None) == GIB
        assert phantom_eviction_bytes(GIB, hugepage_aware_eviction=True) == 0
