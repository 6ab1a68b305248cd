"""The ledger: where every byte of MemTotal goes, per NUMA node and in total.

A claim is memory that someone needs; the ledger places claims on NUMA nodes and calls the rest free. Claims of a
process bound to a node stay there. Unbound ones go where room is, because the kernel falls back to another node
before it gives up. The parts of a node sum to its MemTotal to the byte; a shortage shows as negative free memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hugeplan.planner.model import (
    MIB,
    Explanation,
    Ledger,
    LedgerKind,
    LedgerPart,
    NodeFacts,
    NumaNode,
    PoolPlan,
    Source,
    Term,
)
from hugeplan.planner.pages import page_label, split_exactly
from hugeplan.planner.units import format_bytes

STRUCT_PAGE_BYTES = 64
#: Kernel, slab and per-CPU memory where it was not measured: 2 % of MemTotal and 200 MiB.
KERNEL_DEFAULT_SHARE_PERCENT = 2
KERNEL_DEFAULT_FIXED_BYTES = 200 * MIB

_ORDER = {kind: index for index, kind in enumerate(LedgerKind)}


@dataclass(frozen=True, slots=True)
class Claim:
    """Memory that someone needs: bytes, bound to ``numa_node`` or (None) to wherever room is.

    ``numa_weights``: where an unbound claim lies now, in the order of the NUMA nodes; it stays there as far as there is
    room, because nothing moves memory that fits. ``within``: the NUMA nodes that an unbound one may lie on; empty: all.
    """

    kind: LedgerKind
    name: str
    bytes: int
    numa_node: int | None
    source: Source
    explanation: Explanation
    numa_weights: tuple[int, ...] | None = None
    within: tuple[int, ...] = ()


def default_kernel_bytes(mem_total_bytes: int) -> int:
    """Kernel memory assumed where nothing was measured: 2 % of MemTotal + 200 MiB, at most half of it."""
    return min(mem_total_bytes // 2, mem_total_bytes * KERNEL_DEFAULT_SHARE_PERCENT // 100 + KERNEL_DEFAULT_FIXED_BYTES)


def kernel_bytes(node: NodeFacts) -> tuple[int, Source]:
    """The kernel's own memory: what the facts say, else the stated default."""
    if node.kernel_used_bytes is not None:
        return node.kernel_used_bytes, node.kernel_used_source
    return default_kernel_bytes(node.mem_total_bytes), Source.ASSUMED


def struct_page_bytes(node: NodeFacts) -> int:
    """Bytes of struct page for all of memory without HVO: 64 bytes a base page. Outside MemTotal.

    Source: Documentation/mm/vmemmap_dedup.rst; 1.5625 % with 4K pages.
    """
    return node.mem_total_bytes // node.base_page_bytes * STRUCT_PAGE_BYTES


def hvo_returned_bytes(pages: int, page_bytes: int, base_page_bytes: int) -> int:
    """Bytes that HVO gives back for ``pages`` huge pages: all their struct pages but one base page each.

    Source: vmemmap_dedup.rst. A 512 GiB pool returns 7.000 GiB as 2M pages and 7.998 GiB as 1G pages.
    """
    vmemmap_bytes = page_bytes // base_page_bytes * STRUCT_PAGE_BYTES
    return pages * max(0, vmemmap_bytes - base_page_bytes)


_KERNEL_BASIS = {
    Source.MEASURED: "unreclaimable slab, kernel stacks and per-CPU memory of the sample",
    Source.ASSUMED: "stated default",
}


def kernel_claims(node: NodeFacts) -> tuple[Claim, ...]:
    """The kernel's memory on each NUMA node, in proportion to the node's memory."""
    total, source = kernel_bytes(node)
    explanation = Explanation(
        "2 % of MemTotal + 200 MiB" if source is Source.ASSUMED else "kernel used",
        (
            Term("MemTotal", format_bytes(node.mem_total_bytes), Source.GIVEN),
            Term("kernel", format_bytes(total), source),
        ),
        _KERNEL_BASIS.get(source, "as given"),
    )
    shares = split_exactly(total, [numa.mem_total_bytes for numa in node.numa])
    return tuple(
        Claim(LedgerKind.KERNEL, "kernel and slab", share, numa.id, source, explanation)
        for numa, share in zip(node.numa, shares, strict=True)
    )


def build_ledger(node: NodeFacts, claims: Iterable[Claim], pools: Sequence[PoolPlan]) -> Ledger:
    """All of MemTotal as parts: pools and bound claims where they are, unbound claims where room is, the rest free."""
    claims = tuple(claims)
    room, shares = _placed(node, claims, pools)
    parts = list(_pool_parts(pools))
    parts += [
        _part(claim, claim.numa_node, claim.bytes) for claim in claims if claim.numa_node is not None and claim.bytes
    ]
    for claim, of in shares:
        parts += [_part(claim, numa_id, share) for numa_id, share in of.items() if share]
    parts.extend(_free_parts(node, room))
    parts.sort(key=lambda part: (part.numa_node, _ORDER[part.kind]))
    return Ledger(mem_total_bytes=node.mem_total_bytes, parts=tuple(parts), struct_page_bytes=struct_page_bytes(node))


def free_under(node: NodeFacts, claims: Iterable[Claim], pools: Sequence[PoolPlan]) -> dict[int, int]:
    """What the ledger of the same claims and pools leaves free on each NUMA node; its parts are not made."""
    return _placed(node, claims, pools)[0]


def _placed(
    node: NodeFacts, claims: Iterable[Claim], pools: Sequence[PoolPlan]
) -> tuple[dict[int, int], list[tuple[Claim, dict[int, int]]]]:
    """Room that is left on each NUMA node, and where the unbound claims lie, in their order."""
    room = {numa.id: numa.mem_total_bytes for numa in node.numa}
    for pool in pools:
        room[pool.numa_node] -= (pool.demand_pages + pool.slack_pages) * pool.page_bytes
    floating: list[Claim] = []
    for claim in claims:
        if claim.numa_node is None:
            floating.append(claim)
        else:
            room[claim.numa_node] -= claim.bytes
    turns: Sequence[int] = range(len(floating))
    if len(room) > 1:
        turns = sorted(turns, key=lambda i: _turn(floating[i]))
    shares: dict[int, dict[int, int]] = {}
    for turn in turns:
        shares[turn] = placed = _place(floating[turn], node.numa, room)
        for numa_id, share in placed.items():
            room[numa_id] -= share
    return room, [(claim, shares[i]) for i, claim in enumerate(floating)]


def _turn(claim: Claim) -> tuple[object, ...]:
    """The order in which unbound claims are placed, whatever the order of workloads and databases: caches last."""
    last = claim.kind in {LedgerKind.PAGE_CACHE, LedgerKind.RECLAIMABLE}
    return (
        not claim.within,
        last,
        claim.kind is LedgerKind.RECLAIMABLE,
        claim.numa_weights is None,
        -claim.bytes,
        claim.kind,
        claim.name,
    )


def _place(claim: Claim, numa: Sequence[NumaNode], room: Mapping[int, int]) -> dict[int, int]:
    """Shares of an unbound claim: where it lies now as far as it fits, the rest where room is."""
    if claim.numa_weights is None:
        numa = [n for n in numa if n.id in claim.within] or numa
        return _by_room(claim.bytes, numa, room)
    wanted = split_exactly(claim.bytes, claim.numa_weights)
    stays = {n.id: min(size, max(0, room[n.id])) for n, size in zip(numa, wanted, strict=True)}
    rest = claim.bytes - sum(stays.values())
    if not rest:
        return stays
    moved = _by_room(rest, numa, {n.id: room[n.id] - stays[n.id] for n in numa})
    return {n.id: stays[n.id] + moved[n.id] for n in numa}


def _by_room(size: int, numa: Sequence[NumaNode], room: Mapping[int, int]) -> dict[int, int]:
    """Shares of ``size`` by room; where nothing has room, by memory, so that the shortage shows everywhere."""
    weights = [max(0, room[n.id]) for n in numa]
    if sum(weights) < size:
        inside = sum(weights)
        over = split_exactly(size - inside, [n.mem_total_bytes for n in numa])
        return {n.id: weight + extra for n, weight, extra in zip(numa, weights, over, strict=True)}
    shares = split_exactly(size, weights)
    return {n.id: share for n, share in zip(numa, shares, strict=True)}


def _part(claim: Claim, numa_id: int, size: int) -> LedgerPart:
    return LedgerPart(
        kind=claim.kind,
        name=claim.name,
        numa_node=numa_id,
        bytes=size,
        source=claim.source,
        explanation=claim.explanation,
    )


def _pool_parts(pools: Sequence[PoolPlan]) -> Iterable[LedgerPart]:
    for pool in pools:
        label = page_label(pool.page_bytes)
        for kind, pages, what in (
            (LedgerKind.POOL, pool.demand_pages, "demand"),
            (LedgerKind.POOL_SLACK, pool.slack_pages, "slack"),
        ):
            if pages == 0:
                continue
            yield LedgerPart(
                kind=kind,
                name=f"{label} pool" if kind is LedgerKind.POOL else f"{label} pool slack",
                numa_node=pool.numa_node,
                bytes=pages * pool.page_bytes,
                source=Source.COMPUTED,
                page_bytes=pool.page_bytes,
                explanation=Explanation(
                    f"{what} pages x page size",
                    (
                        Term(f"{what} pages", f"{pages:,}", Source.COMPUTED),
                        Term("page size", page_label(pool.page_bytes), Source.GIVEN),
                    ),
                    "Documentation/admin-guide/mm/hugetlbpage.rst",
                ),
            )


def _free_parts(node: NodeFacts, room: dict[int, int]) -> Iterable[LedgerPart]:
    explanation = Explanation("MemTotal - all other parts", (), "the ledger sums to MemTotal")
    for numa in node.numa:
        yield LedgerPart(
            kind=LedgerKind.FREE,
            name="free",
            numa_node=numa.id,
            bytes=room[numa.id],
            source=Source.COMPUTED,
            explanation=explanation,
        )


def free_bytes(ledger: Ledger, numa_node: int | None = None) -> int:
    """Free memory under the plan, on one NUMA node or in total; negative when the plan does not fit.

    For more than one NUMA node take :func:`free_bytes_by_node`: each call reads all parts.
    """
    by_node = free_bytes_by_node(ledger)
    return sum(by_node.values()) if numa_node is None else by_node.get(numa_node, 0)


def available_bytes(ledger: Ledger) -> int:
    """Free memory and what the kernel gives back before memory runs out, as MemAvailable counts it."""
    return free_bytes(ledger) + sum_bytes(ledger, LedgerKind.RECLAIMABLE)


def free_bytes_by_node(ledger: Ledger) -> dict[int, int]:
    """Free memory under the plan on each NUMA node, in one pass; negative where the plan does not fit."""
    free: dict[int, int] = {}
    for part in ledger.parts:
        if part.kind is LedgerKind.FREE:
            free[part.numa_node] = free.get(part.numa_node, 0) + part.bytes
    return free


def sum_bytes(ledger: Ledger, *kinds: LedgerKind) -> int:
    """Bytes of all parts of the given kinds."""
    return sum(part.bytes for part in ledger.parts if part.kind in kinds)
