"""Would a new PostgreSQL cluster die of a Bus error here? initdb tries huge pages whatever the settings say."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import Facts, measured, ok, wrong
from hugeplan.planner.findings.container_limits import FIX, initdb_bus_error
from hugeplan.planner.model import Finding
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
                reason = "Its limits let initdb have its huge pages, or refuse them when they are mapped."
                yield ok(CODE, database.key, "A new cluster can be made in this container", reason)
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
