"""The ledger sums to MemTotal to the byte, per NUMA node and in total, whatever is claimed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner.memory.ledger import (
    Claim,
    available_bytes,
    build_ledger,
    default_kernel_bytes,
    free_bytes,
    free_bytes_by_node,
    hvo_returned_bytes,
    kernel_claims,
    split_exactly,
    struct_page_bytes,
    sum_bytes,
)
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    Explanation,
    LedgerKind,
    NodeFacts,
    NumaNode,
    PoolPlan,
    Source,
)

WHY = Explanation("given", (), "test")


def node_of(*sizes: int, kernel: int | None = 0) -> NodeFacts:
    return NodeFacts(
        name="n",
        numa=tuple(NumaNode(id=i, mem_total_bytes=size) for i, size in enumerate(sizes)),
        kernel_used_bytes=kernel,
    )


def claim(size: int, numa_node: int | None) -> Claim:
    return Claim(LedgerKind.TENANTS, "t", size, numa_node, Source.GIVEN, WHY)


def pool(numa_node: int, page_bytes: int, demand: int, slack: int) -> PoolPlan:
    return PoolPlan(
        numa_node=numa_node, page_bytes=page_bytes, demand_pages=demand, slack_pages=slack, pages=demand + slack,
        present_pages=None,
    )  # fmt: skip


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[NodeFacts, list[Claim], list[PoolPlan]]:
    sizes = draw(st.lists(st.integers(GIB, 16 * GIB), min_size=1, max_size=4))
    node = node_of(*sizes, kernel=draw(st.one_of(st.none(), st.integers(0, GIB))))
    ids = st.integers(0, len(sizes) - 1)
    claims = draw(st.lists(st.builds(claim, st.integers(0, 8 * GIB), st.one_of(st.none(), ids)), max_size=6))
    pools = draw(
        st.lists(
            st.builds(pool, ids, st.sampled_from([2 * MIB, GIB]), st.integers(0, 9), st.integers(0, 2)), max_size=4
        )
    )
    return node, [*kernel_claims(node), *claims], pools


class TestSum:
    @given(ledgers())
    def test_per_node_and_in_total(self, case: tuple[NodeFacts, list[Claim], list[PoolPlan]]) -> None:
        node, claims, pools = case
        ledger = build_ledger(node, claims, pools)
        for numa in node.numa:
            assert sum(p.bytes for p in ledger.parts if p.numa_node == numa.id) == numa.mem_total_bytes
        assert sum(p.bytes for p in ledger.parts) == ledger.mem_total_bytes == node.mem_total_bytes
        assert all(p.bytes > 0 for p in ledger.parts if p.kind is not LedgerKind.FREE)

    @given(ledgers())
    def test_nothing_claimed_is_lost(self, case: tuple[NodeFacts, list[Claim], list[PoolPlan]]) -> None:
        node, claims, pools = case
        ledger = build_ledger(node, claims, pools)
        assert sum_bytes(ledger, LedgerKind.TENANTS, LedgerKind.KERNEL) == sum(c.bytes for c in claims)
        assert sum_bytes(ledger, LedgerKind.POOL, LedgerKind.POOL_SLACK) == sum(p.pages * p.page_bytes for p in pools)

    @given(ledgers())
    def test_free_is_negative_only_when_something_does_not_fit(
        self, case: tuple[NodeFacts, list[Claim], list[PoolPlan]]
    ) -> None:
        node, claims, pools = case
        ledger = build_ledger(node, claims, pools)
        room = {n.id: n.mem_total_bytes for n in node.numa}
        for p in pools:
            room[p.numa_node] -= p.pages * p.page_bytes
        for c in claims:
            if c.numa_node is not None:
                room[c.numa_node] -= c.bytes
        unbound = sum(c.bytes for c in claims if c.numa_node is None)
        bound_fit = all(r >= 0 for r in room.values())
        if bound_fit and unbound <= sum(room.values()):
            assert all(free_bytes(ledger, n.id) >= 0 for n in node.numa)
        else:
            assert any(free_bytes(ledger, n.id) < 0 for n in node.numa)

    @given(ledgers())
    def test_free_by_node_is_what_the_other_parts_leave(
        self, case: tuple[NodeFacts, list[Claim], list[PoolPlan]]
    ) -> None:
        node, claims, pools = case
        ledger = build_ledger(node, claims, pools)
        left = {n.id: n.mem_total_bytes for n in node.numa}
        for part in ledger.parts:
            if part.kind is not LedgerKind.FREE:
                left[part.numa_node] -= part.bytes
        assert free_bytes_by_node(ledger) == left
        assert free_bytes(ledger) == sum(left.values())

    def test_memory_stays_where_it_lies_as_far_as_it_fits_there(self) -> None:
        node = node_of(4 * GIB, 4 * GIB, 4 * GIB)
        lies = replace(claim(4 * GIB, None), numa_weights=(3, 1, 0))
        ledger = build_ledger(node, [claim(2 * GIB, 0), claim(3 * GIB, 2), lies], [])
        # Of 3 GiB on node 0 two fit beside what is bound there; the third goes by room: 3 GiB on node 1, 1 on node 2.
        assert free_bytes_by_node(ledger) == {0: 0, 1: 3 * GIB - 3 * GIB // 4, 2: GIB - GIB // 4}

    def test_unbound_memory_goes_where_room_is(self) -> None:
        node = node_of(32 * GIB, 32 * GIB)
        ledger = build_ledger(node, [claim(28 * GIB, 0), claim(10 * GIB, None)], [])
        assert free_bytes(ledger, 0) > 0
        assert free_bytes(ledger) == 26 * GIB


class TestSplit:
    @given(st.integers(0, 10**15), st.lists(st.integers(0, 10**12), min_size=1, max_size=16))
    def test_is_exact_and_proportional(self, total: int, weights: list[int]) -> None:
        shares = split_exactly(total, weights)
        assert sum(shares) == total
        whole = sum(weights)
        if whole:
            for share, weight in zip(shares, weights, strict=True):
                assert abs(share * whole - total * weight) < whole


class TestKernel:
    def test_assumed_when_not_measured(self) -> None:
        node = node_of(64 * GIB, kernel=None)
        found = kernel_claims(node)
        assert [c.source for c in found] == [Source.ASSUMED]
        assert found[0].bytes == default_kernel_bytes(64 * GIB) == 64 * GIB * 2 // 100 + 200 * MIB

    def test_at_most_half_of_a_small_machine_is_assumed(self) -> None:
        assert default_kernel_bytes(100 * MIB) == 50 * MIB

    def test_given_when_measured(self) -> None:
        assert [c.bytes for c in kernel_claims(node_of(GIB, 3 * GIB, kernel=400 * MIB))] == [100 * MIB, 300 * MIB]

    def test_a_measured_kernel_is_not_explained_as_a_share_of_memory(self) -> None:
        assumed = kernel_claims(node_of(64 * GIB, kernel=None))[0].explanation
        measured_node = replace(node_of(64 * GIB, kernel=400 * MIB), kernel_used_source=Source.MEASURED)
        measured = kernel_claims(measured_node)[0].explanation
        assert assumed is not None
        assert measured is not None
        assert "2 % of MemTotal" in assumed.formula
        assert "2 %" not in f"{measured.formula} {measured.reference}"
        assert measured.reference == "unreclaimable slab, kernel stacks and per-CPU memory of the sample"


class TestStructPages:
    def test_are_1_5625_percent_outside_memtotal(self) -> None:
        assert struct_page_bytes(node_of(64 * GIB)) == GIB

    @pytest.mark.parametrize(("page_bytes", "gib"), [(2 * MIB, 7.0), (GIB, 7.998)])
    def test_hvo_returns_of_a_512_gib_pool(self, page_bytes: int, gib: float) -> None:
        returned = hvo_returned_bytes(512 * GIB // page_bytes, page_bytes, 4 * KIB)
        assert returned / GIB == pytest.approx(gib, abs=0.0005)

    def test_no_return_where_struct_pages_fill_no_base_page(self) -> None:
        assert hvo_returned_bytes(10, 2 * MIB, 64 * KIB) == 0


def test_what_the_kernel_may_take_back_is_available_beside_what_is_free() -> None:
    cache = replace(claim(3 * GIB + 1, None), kind=LedgerKind.RECLAIMABLE)
    ledger = build_ledger(node_of(8 * GIB), [claim(GIB, 0), cache], [])
    assert available_bytes(ledger) == free_bytes(ledger) + 3 * GIB + 1 == 7 * GIB
