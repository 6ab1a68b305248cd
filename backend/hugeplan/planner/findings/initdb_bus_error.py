"""Would a new PostgreSQL cluster die of a Bus error here? initdb tries huge pages whatever the settings say."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import Facts, measured, ok, unknown, wrong
from hugeplan.planner.findings.container_limits import FIX, free_pages, initdb_bus_error, limit_short_for_initdb
from hugeplan.planner.model import Finding, NodeSample, ObservedDatabase
from hugeplan.planner.units import format_bytes

CODE = "initdb_bus_error"


def check(facts: Facts) -> Iterable[Finding]:
    """One finding for each observed PostgreSQL under a hugetlb limit."""
    sample, default = facts.sample, facts.default_huge_page_bytes
    assert sample is not None
    assert default is not None
    for database in sample.databases or ():
        short = initdb_bus_error(database, sample, default)
        if short is None:
            if database.engine == "postgresql" and database.hugetlb_limits:
                yield _no_short_limit(database, sample, default)
            continue
        limit = format_bytes(short.limit.limit_bytes)
        yield wrong(
            CODE,
            database.key,
            "A new cluster in this container dies of a Bus error",
            f"The node has free huge pages, and the container may use {limit} of them: mapping succeeds, the first "
            "touch is SIGBUS. initdb tries huge pages even where the cluster's own settings say off, so a new replica "
            "or a restored volume does not start.",
            FIX + " Without huge pages: a reservation limit of 0 beside the usage limit, as kubelets of today set it.",
            evidence=(measured("limit (usage)", limit), measured("cgroup", short.limit.cgroup_path)),
        )


def _no_short_limit(database: ObservedDatabase, sample: NodeSample, default_page_bytes: int) -> Finding:
    """Why initdb does not die: its limits, or that there are no pages which it could map; unknown where neither is."""
    if not limit_short_for_initdb(database, default_page_bytes):
        reason = "Its limits let initdb have its huge pages, or refuse them when they are mapped."
        return ok(CODE, database.key, "A new cluster can be made in this container", reason)
    if free_pages(sample, default_page_bytes) is None:
        reason = "Its limit is below what initdb maps, and how many huge pages of the node are free is not known."
        return unknown(CODE, database.key, "Whether a new cluster can be made here is not known", reason, FIX)
    reason = "The node has no free huge pages for initdb, so it maps none; its limit would be too small for them."
    return ok(CODE, database.key, "A new cluster can be made while no page is free", reason)
