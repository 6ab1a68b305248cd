"""What each instance claims of ordinary memory at the page size chosen for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hugeplan.planner.choice.candidates import InstanceCandidates
from hugeplan.planner.choice.page_size_candidate import Candidate
from hugeplan.planner.memory.claims import Claims
from hugeplan.planner.memory.connections import ConnectionMemory, connection_memory
from hugeplan.planner.memory.ledger import Claim
from hugeplan.planner.model import Demand, Explanation, LedgerKind, NodeFacts, Source, Term
from hugeplan.planner.pages import page_label
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import format_bytes


def instance_claims(instance_candidates: InstanceCandidates, candidate: Candidate, node: NodeFacts) -> Claims:
    """What one instance needs of ordinary memory at the chosen size; its page cache is best effort: page_cache_wish."""
    name, numa_node = instance_candidates.instance.name, instance_candidates.instance.numa_node
    demand = candidate.demand
    claims: list[Claim] = []
    unknowns: list[str] = []
    if not candidate.is_pool and demand.segment_bytes:
        claims.append(_base_pages_claim(name, numa_node, demand, node))
    if candidate.left_on_base_bytes:
        claims.append(_left_on_base_claim(name, numa_node, candidate, node))
    private = private_claim(instance_candidates)
    if private is not None:
        claims.append(private)
    elif demand.segment_bytes:
        what = "connections" if demand.connections is None else "private memory of a connection"
        unknowns.append(f"{name}: {what}")
    fixed = fixed_claim(instance_candidates)
    if fixed is not None:
        claims.append(fixed)
    elif not demand.wants_pool:
        unknowns.append(f"{name}: its memory")
    claims.append(_tables_claim(name, numa_node, candidate))
    within = instance_candidates.instance.within
    return Claims(tuple(replace(claim, within=within) for claim in claims), tuple(unknowns), ())


def _base_pages_claim(name: str, numa_node: int | None, demand: Demand, node: NodeFacts) -> Claim:
    return Claim(
        kind=LedgerKind.ENGINE_PRIVATE,
        name=f"{name}: memory on {page_label(node.base_page_bytes)} pages",
        bytes=demand.segment_bytes,
        numa_node=numa_node,
        source=Source.COMPUTED,
        explanation=Explanation(
            "sum of the engine's segments",
            tuple(term for segment in demand.segments for term in segment.explanation.inputs),
            "no pool is planned for this instance",
        ),
    )


def _left_on_base_claim(name: str, numa_node: int | None, candidate: Candidate, node: NodeFacts) -> Claim:
    planned, on_base = {part.page_bytes for part in candidate.smaller}, candidate.demand.on_base_bytes
    return Claim(
        kind=LedgerKind.ENGINE_PRIVATE,
        name=f"{name}: smaller mappings on {page_label(node.base_page_bytes)} pages",
        bytes=candidate.left_on_base_bytes,
        numa_node=numa_node,
        source=Source.COMPUTED,
        explanation=Explanation(
            "sum of the mappings too small for the pool's pages, rounded up to the smaller huge pages",
            (
                *(
                    Term(f"pages of {page_label(size)}", str(pages), Source.COMPUTED)
                    for size, pages in candidate.demand.also_pages
                    if size not in planned
                ),
                *((Term("on base pages", format_bytes(on_base), Source.COMPUTED),) if on_base else ()),
            ),
            "no pool of that size may be planned, or no huge page divides the mapping",
        ),
    )


def private_claim(instance_candidates: InstanceCandidates) -> Claim | None:
    """Base-page memory of all connections, whatever the segment is mapped with; None when it is not known."""
    instance = instance_candidates.instance
    found = connection_memory(instance_candidates.base_demand, instance.workload)
    return None if found is None else _connections_claim(instance.name, instance.numa_node, found)


@remembered(1024)
def _connections_claim(name: str, numa_node: int | None, found: ConnectionMemory) -> Claim:
    """Remembered: a plan asks for each of its instances several times."""
    idle = found.connections - found.active
    return Claim(
        kind=LedgerKind.ENGINE_PRIVATE,
        name=f"{name}: connections",
        bytes=found.certain_bytes,
        numa_node=numa_node,
        source=Source.COMPUTED,
        explanation=Explanation(
            "active connections x private memory of one + idle ones x a fresh one's"
            if idle
            else "connections x private memory of one",
            (
                Term("connections", str(found.active), Source.GIVEN),
                *((Term("idle connections", str(idle), Source.GIVEN),) if idle else ()),
                Term("private memory of one", format_bytes(found.per_connection_bytes), Source.ASSUMED),
            ),
            "the engine's rule",
        ),
    )


def fixed_claim(instance_candidates: InstanceCandidates) -> Claim | None:
    """Base-page memory that no connection causes, such as Redis' data or Oracle's PGA; None when it is not known."""
    size = instance_candidates.base_demand.private_fixed_bytes
    if size is None:
        return None
    return _outside_claim(instance_candidates.instance.name, instance_candidates.instance.numa_node, size)


@remembered(1024)
def _outside_claim(name: str, numa_node: int | None, size: int) -> Claim:
    return Claim(
        kind=LedgerKind.ENGINE_PRIVATE,
        name=f"{name}: memory outside pools",
        bytes=size,
        numa_node=numa_node,
        source=Source.COMPUTED,
        explanation=Explanation(
            "the engine's memory setting, or its default for this node",
            (Term("memory", format_bytes(size), Source.COMPUTED),),
            "the engine's rule",
        ),
    )


def _tables_claim(name: str, numa_node: int | None, candidate: Candidate) -> Claim:
    demand, tables = candidate.demand, candidate.tables
    return Claim(
        kind=LedgerKind.PAGE_TABLES,
        name=f"{name}: page tables",
        bytes=candidate.page_tables_bytes,
        numa_node=numa_node,
        source=Source.COMPUTED,
        explanation=Explanation(
            "processes x tables of every level over the segment",
            (
                Term("processes", str(tables.processes), Source.GIVEN),
                Term("touched by each", f"{100 * tables.touched_fraction:.3g} %", Source.ASSUMED),
                Term("segment", format_bytes(demand.segment_bytes), Source.COMPUTED),
                Term("page size", page_label(candidate.page_bytes), Source.COMPUTED),
            ),
            "every process has touched that share of the segment; active connections where they are known",
        ),
    )


def page_cache_demands(
    candidates: Sequence[tuple[InstanceCandidates, Candidate]],
) -> list[tuple[InstanceCandidates, int]]:
    """Page cache that engines count on, in bytes: granted from what is free, never at the cost of anything else."""
    return [(p, size) for p, c in candidates if (size := c.demand.page_cache_bytes)]


def page_cache_claim(instance_candidates: InstanceCandidates, wanted: int, granted: int) -> Claim:
    """The granted part of an instance's page cache."""
    return Claim(
        kind=LedgerKind.PAGE_CACHE,
        name=f"{instance_candidates.instance.name}: page cache",
        bytes=granted,
        numa_node=None,
        source=Source.COMPUTED,
        explanation=Explanation(
            "min(what the engine counts on, free memory above the margin)",
            (
                Term("counted on", format_bytes(wanted), Source.COMPUTED),
                Term("granted", format_bytes(granted), Source.COMPUTED),
            ),
            "the engine's own setting for the page cache",
        ),
    )
