"""Did the kernel give every pool what the plan asks for, per NUMA node; has it surplus pages; is it idle?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import attention, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding, Plan, PoolPlan
from hugeplan.planner.pages import counted_pages, page_label
from hugeplan.planner.units import format_bytes
from hugeplan.proof.causes import Cause, because
from hugeplan.proof.holders import holders
from hugeplan.proof.observation import Observation

COUNT = "verify_pool"
"""Has the kernel allocated the pages of each planned pool, on its NUMA node?"""
OVERCOMMIT = "verify_overcommit"
"""May a pool grow beyond its count? Those pages are taken from everybody else."""
IDLE = "verify_pool_idle"
"""Are there allocated pages that nothing maps or has reserved?"""
ROOM = "verify_fragmentation"
"""Where a pool is short: can the kernel make the missing pages now?"""


def subject_of(pool: PoolPlan) -> str:
    """``2M on NUMA node 0``."""
    return f"{page_label(pool.page_bytes)} on NUMA node {pool.numa_node}"


def real_pages(observed: Observation, pool: PoolPlan) -> int | None:
    """Allocated pages without surplus pages; None: unknown. A size that is not there has none."""
    found = observed.pool(pool.numa_node, pool.page_bytes)
    if found is None:
        return 0 if observed.knows("pools") else None
    count = found.get("nr_hugepages")
    return None if count is None else int(count) - int(found.get("surplus_hugepages") or 0)


def _lent_to_users(observed: Observation, pool: PoolPlan) -> int:
    """Pages beyond the pool's count that are in use because it was lowered; none where the kernel may lend any."""
    found, whole = observed.pool(pool.numa_node, pool.page_bytes), observed.global_pool(pool.page_bytes)
    may_lend = (whole or {}).get("nr_overcommit_hugepages")
    return 0 if may_lend or found is None else int(found.get("surplus_hugepages") or 0)


def check_counts(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding per planned pool."""
    for pool in plan.pools:
        real = real_pages(observed, pool)
        subject, planned = subject_of(pool), counted_pages(pool.pages, pool.page_bytes)
        if real is None:
            yield unknown(COUNT, subject, "The pool could not be read", "The observation has no pools.")
        elif (lent := _lent_to_users(observed, pool)) and real < pool.pages:
            yield wrong(
                COUNT,
                subject,
                f"The pool was lowered to {real:,} of {pool.pages:,} pages while its pages are in use",
                f"{lent:,} pages are surplus: they go as soon as they are free, and their user does not start again. "
                f"In use by {holders(observed, pool.page_bytes).said() or 'a process that was not read'}.",
                "Raise the pool to the planned count (hugeplan apply); find who lowered it (sysctl, tuned, a unit).",
                evidence=(measured("nr_hugepages", real), measured("surplus_hugepages", lent), because(Cause.LOWERED)),
            )
        elif not real and pool.pages:
            yield wrong(
                COUNT,
                subject,
                f"The pool is not reserved: it has none of {pool.pages:,} pages",
                f"{planned} are planned, {format_bytes(pool.pages * pool.page_bytes)}.",
                "hugeplan apply reserves it now; a reboot with the command line is sure.",
                evidence=(measured("nr_hugepages", real), because(Cause.NOT_RESERVED)),
            )
        elif real < pool.pages:
            yield wrong(
                COUNT,
                subject,
                f"The kernel gave {real:,} of {pool.pages:,} pages",
                f"{planned} are planned, {real} are allocated: {format_bytes((pool.pages - real) * pool.page_bytes)} "
                "are missing.",
                "hugeplan apply grows it step by step; a reboot with the command line is sure.",
                evidence=(measured("nr_hugepages", real), because(Cause.SHORT)),
            )
        elif real > pool.pages:
            title = f"{real - pool.pages:,} more pages than planned are allocated"
            reason = f"{planned} are planned, {real} are allocated: nobody else can use the difference."
            fix = "Find who reserves them (hugeplan lint /proc/cmdline /etc/sysctl.d/*.conf), or plan again."
            yield attention(COUNT, subject, title, reason, fix, evidence=(measured("nr_hugepages", real),))
        else:
            title = "The pool is as planned"
            yield ok(COUNT, subject, title, f"{planned} are allocated.", evidence=(measured("nr_hugepages", real),))


def check_overcommit(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding per page size: pages beyond the pool are taken from everybody else."""
    for size in sorted({pool.page_bytes for pool in plan.pools}):
        found, subject = observed.global_pool(size), page_label(size)
        over = None if found is None else found.get("nr_overcommit_hugepages")
        if over is None:
            title = "Whether the pool has surplus pages is not known"
            yield unknown(OVERCOMMIT, subject, title, "nr_overcommit_hugepages was not read.")
        elif over or (found or {}).get("surplus_hugepages"):
            lent = (found or {}).get("surplus_hugepages") or 0
            reason = (
                f"nr_overcommit_hugepages is {over}, {lent} surplus pages are in use now: a short pool goes unnoticed."
            )
            fix = "Set nr_overcommit_hugepages to 0 and reserve what is needed."
            yield attention(OVERCOMMIT, subject, f"The kernel may take {over:,} pages beyond the pool", reason, fix)
        else:
            yield ok(OVERCOMMIT, subject, "No page can be taken beyond the pool", "nr_overcommit_hugepages is 0.")


def check_idle(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding per page size: allocated pages that nothing maps or has reserved."""
    for size in sorted({pool.page_bytes for pool in plan.pools if pool.pages}):
        found, subject = observed.global_pool(size), page_label(size)
        counts = [None if found is None else found.get(k) for k in ("nr_hugepages", "free_hugepages", "resv_hugepages")]
        if any(count is None for count in counts):
            yield unknown(
                IDLE, subject, "Whether the pool is used is not known", "Its free or reserved pages were not read."
            )
            continue
        total, free, reserved = (int(count or 0) for count in counts)
        idle, used = free - reserved, total - free + reserved
        if not total:
            continue  # nothing stands: the count has its own finding
        demand = sum(pool.demand_pages for pool in plan.pools if pool.page_bytes == size)
        if used == 0:
            reason = f"All {counted_pages(total, size)} are free and none is reserved by a mapping."
            fix = "Start the database, and check that it asks for huge pages."
            evidence = (measured("free_hugepages", free), measured("resv_hugepages", reserved))
            yield attention(IDLE, subject, "Nothing uses the pool", reason, fix, evidence=evidence)
        elif used < demand * 9 // 10:
            reason = f"{used:,} pages are mapped or reserved, {demand:,} were planned to be."
            fix = "An engine fell back to base pages, is not running, is smaller than planned, or still grows."
            evidence = (measured("free_hugepages", free), measured("resv_hugepages", reserved))
            yield attention(IDLE, subject, f"{idle:,} of {total:,} pages are idle", reason, fix, evidence=evidence)
        else:
            yield ok(IDLE, subject, "The pool is used", f"{used:,} pages are mapped or reserved of {total:,}.")


def check_room(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """For pools that are short: can the kernel make the missing pages now?"""
    largest = observed.largest_block_bytes()
    for pool in plan.pools:
        real = real_pages(observed, pool)
        missing = 0 if real is None else pool.pages - real
        if missing <= 0:
            continue
        subject = subject_of(pool)
        if largest is None:
            yield unknown(
                ROOM, subject, "Whether the missing pages can be made is not known", "The free blocks were not read."
            )
        elif pool.page_bytes > largest:
            reason = (
                f"{page_label(pool.page_bytes)} is larger than the largest free block that the "
                f"kernel keeps, {format_bytes(largest)}."
            )
            fix = "Reserve them on the kernel command line and reboot, or set hugetlb_cma= there."
            yield attention(ROOM, subject, "Pages of this size are sure at boot only", reason, fix)
        else:
            blocks = observed.free_blocks(pool.numa_node, pool.page_bytes) or 0
            if blocks >= missing:
                reason = f"{blocks} free blocks of {page_label(pool.page_bytes)}, {missing:,} pages are missing."
                yield ok(ROOM, subject, "The missing pages can be made now", reason)
            else:
                title = f"{blocks} free blocks for {missing} missing pages"
                reason = "The kernel must compact memory for the rest, which may not succeed."
                fix = "hugeplan apply compacts between its steps; else reserve at boot."
                yield attention(ROOM, subject, title, reason, fix, evidence=(measured("free blocks", blocks),))
