"""The pools beside the plan in force: short, idle, or something else than planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hugeplan.documents.report import GlobalPool, NumaPool, Sample
from hugeplan.fleet.findings.base import NodeFinding, Observed, PlannedPool, attention, wrong
from hugeplan.planner.pages import page_label

CODE = "plan_drift"
MATCH, SHORT, IDLE, DRIFTED = "match", "short", "idle", "drifted"


def actual_pages(pools: Sequence[NumaPool], totals: Sequence[GlobalPool]) -> dict[tuple[int | None, int], int]:
    """Pages by NUMA node and size; the node as a whole has None for its NUMA node."""
    found: dict[tuple[int | None, int], int] = {}
    for pool in pools:
        found[(pool.numa_node, pool.page_bytes)] = pool.nr_hugepages
        if not totals:
            found[(None, pool.page_bytes)] = found.get((None, pool.page_bytes), 0) + pool.nr_hugepages
    for total in totals:
        found[(None, total.page_bytes)] = total.nr_hugepages
    return found


def compared(
    planned: Sequence[PlannedPool], pools: Sequence[NumaPool], totals: Sequence[GlobalPool]
) -> list[tuple[int | None, int, int, int]]:
    """(NUMA node, page size, planned pages, actual pages) of each planned pool, and of sizes that no plan names."""
    actual = actual_pages(pools, totals)
    named = {(pool.numa_node, pool.page_bytes): pool.pages for pool in planned}
    sizes = {pool.page_bytes for pool in planned}
    rows = [(numa, size, pages, actual.get((numa, size), 0)) for (numa, size), pages in named.items()]
    rows += [
        (None, size, 0, pages) for (numa, size), pages in actual.items() if numa is None and size not in sizes and pages
    ]
    return rows


def differences(planned: Sequence[PlannedPool], sample: Sample) -> list[tuple[int | None, int, int, int]]:
    """The rows of :func:`compared` that differ."""
    return [row for row in compared(planned, sample.pools, sample.global_pools) if row[2] != row[3]]


def state_of(planned: Sequence[PlannedPool], sample: Sample) -> str:
    """``match``, ``short`` (pages are missing), ``idle`` (too many) or ``drifted`` (both)."""
    rows = differences(planned, sample)
    short = any(actual < wanted for _, _, wanted, actual in rows)
    idle = any(actual > wanted for _, _, wanted, actual in rows)
    if short and idle:
        return DRIFTED
    return SHORT if short else IDLE if idle else MATCH


def check(observed: Observed) -> Iterable[NodeFinding]:
    """One finding per pool that differs from the plan in force."""
    if observed.planned is not None:
        yield from found_in(observed.planned, observed.sample)


def found_in(planned: Sequence[PlannedPool], sample: Sample) -> Iterable[NodeFinding]:
    """The same for any plan beside a sample."""
    for numa, size, wanted, actual in differences(planned, sample):
        where = "" if numa is None else f" on NUMA node {numa}"
        subject = f"{page_label(size)} pool{where}"
        reason = f"The plan in force has {wanted} pages of {page_label(size)}{where}, the node has {actual}."
        if actual < wanted:
            fix = "Reserve the missing pages, best at boot: later, fragmentation may keep the kernel from finding them."
            yield wrong(CODE, subject, "Pages of the plan are missing", reason, fix)
        else:
            fix = "Give the pages back, or change the plan."
            yield attention(CODE, subject, "More pages than planned", reason, fix)
