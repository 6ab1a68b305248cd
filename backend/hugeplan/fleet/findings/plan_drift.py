"""The pools beside the plan in force: short, idle, or something else than planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hugeplan.documents.report import GlobalPool, NumaPool, Sample
from hugeplan.fleet.findings.base import NodeFinding, Observed, PlannedPool, attention, wrong
from hugeplan.planner.pages import page_label

CODE = "plan_drift"
_INSTALL = "Run hugeplan apply on the node, or install the plan's files and reboot it."
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


def found_in(planned: Sequence[PlannedPool], sample: Sample, *, is_new: bool = False) -> Iterable[NodeFinding]:
    """The same for any plan beside a sample. ``is_new``: the plan was put in force after the sample, so pages that are
    missing are no fault yet but what is to be done next.
    """
    for numa, size, wanted, actual in differences(planned, sample):
        where = "" if numa is None else f" on NUMA node {numa}"
        subject = f"{page_label(size)} pool{where}"
        reason = f"The plan in force has {wanted:,} pages of {page_label(size)}{where}, the node has {actual:,}."
        if actual < wanted:
            if is_new:
                fix = f"{_INSTALL} The node's next report says whether they are there."
                yield attention(CODE, subject, "The plan is to be installed", reason, fix)
            else:
                fix = f"{_INSTALL} On a node that runs, fragmentation may keep the kernel from finding the pages."
                yield wrong(CODE, subject, "Pages of the plan are missing", reason, fix)
        else:
            fix = "Give the pages back, or change the plan."
            yield attention(CODE, subject, "More pages than planned", reason, fix)
