"""May the running server allocate where the plan puts its pages?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, ok, wrong
from hugeplan.planner.model import Finding, named
from hugeplan.planner.observation.databases import may_allocate_on

CODE = "numa_node_not_allowed"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with huge pages whose server may allocate on some NUMA nodes only."""
    for instance, planned in inputs.with_pool:
        allowed = may_allocate_on(inputs.request.server(planned.runs_as), inputs.node)
        if not allowed:
            continue
        may, has = (f"NUMA node{'s' * (len(ids) > 1)} {named(map(str, ids))}" for ids in (allowed, planned.numa_nodes))
        reason = f"By its cpuset and memory policy its server may allocate on {may} only; its pages are on {has}."
        fix = "Set numa_node to one of its nodes, or change NUMAPolicy, AllowedMemoryNodes, numactl or cpuset.mems."
        if set(planned.numa_nodes) <= set(allowed):
            yield ok(CODE, instance.name, "Its pages lie where its server may allocate", reason)
        elif instance.numa_node is None:
            yield wrong(CODE, instance.name, "Some pages lie where its server may not allocate", reason, fix)
        else:
            yield wrong(CODE, instance.name, "All pages lie where its server may not allocate", reason, fix)
