"""A hugetlb usage limit that kills initdb with a Bus error: a new replica or a restored volume does not start."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, wrong
from hugeplan.fleet.observation import node_sample
from hugeplan.planner.findings.container_limits import FIX, initdb_bus_error
from hugeplan.planner.units import format_bytes

CODE = "initdb_bus_error"


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Each PostgreSQL whose container may use fewer huge pages than initdb tries, on a node that has them."""
    default = observed.inventory.default_huge_page_bytes
    if default is None or not observed.sample.databases:
        return
    sample = node_sample(observed.inventory, observed.sample, [])
    for database in sample.databases or ():
        short = initdb_bus_error(database, sample, default)
        if short is not None:
            yield wrong(
                CODE,
                database.key,
                "A new cluster in this container dies of a Bus error",
                f"The node has free huge pages and the cgroup {short.limit.cgroup_path} may use "
                f"{format_bytes(short.limit.limit_bytes)} of them: mapping succeeds, the first touch is SIGBUS. initdb "
                "tries huge pages even where the cluster's settings say off.",
                FIX,
            )
