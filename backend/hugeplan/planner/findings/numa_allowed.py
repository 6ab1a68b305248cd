"""May the running server allocate where the plan puts its pages?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, ok, wrong
from hugeplan.planner.model import Finding, named

CODE = "numa_node_not_allowed"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with huge pages whose server may allocate on some NUMA nodes only."""
    for instance, planned in inputs.with_pool:
        allowed = instance.allowed_numa_nodes
        if not allowed:
            continue
        may, has = (f"NUMA node{'s' * (len(ids) > 1)} {named(map(str, ids))}" for ids in (allowed, planned.numa_nodes))
        reason = f"By its cpuset and memory policy its server may allocate on {may} only; its pages are on {has}."
        fix = (
            "Leave numa_node out, set it to one of its nodes, or change NUMAPolicy, AllowedMemoryNodes, numactl or"
            " cpuset.mems."
        )
        if set(planned.numa_nodes) <= set(allowed):
            yield ok(CODE, instance.name, "Its pages lie where its server may allocate", reason)
        else:
            yield wrong(CODE, instance.name, "All pages lie where its server may not allocate", reason, fix)
