"""Is memory counted twice: a database that is also a tenant, or a pool inside a tenant's figure?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, given, ok, unknown
from hugeplan.planner.model import EVERYTHING_IN_USE, Finding

CODE = "double_counting"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each tenant that carries the name of a database or of its engine, else one for the node."""
    names = {instance.name.lower(): instance.name for instance in inputs.request.databases}
    engines = {instance.engine.lower(): instance.name for instance in inputs.request.databases}
    found = False
    for tenant in inputs.request.tenants:
        if tenant.name == EVERYTHING_IN_USE and names:
            found = True
            title = "Whether databases are part of what is in use was not read"
            reason = (
                f"{tenant.name} is all memory that the host has in use; what of it {' and '.join(names.values())} hold"
                " today comes beside it once more."
            )
            fix = "Take what runs already out of that workload, or report the node with the agent."
            yield unknown(CODE, tenant.name, title, reason, fix, evidence=(given("workload", tenant.name),))
            continue
        twin = names.get(tenant.name.lower()) or engines.get(tenant.name.lower())
        if twin is None or tenant.kind == "page_cache":
            continue
        found = True
        reason = f"The workload {tenant.name} looks like the database {twin}: its memory would be in the ledger twice."
        fix = "Take it out of the workloads; its connections and page tables are counted by its engine's rule."
        evidence = (given("workload", tenant.name), given("database", twin))
        yield attention(CODE, tenant.name, f"Memory of {twin} may be counted twice", reason, fix, evidence=evidence)
    if not found and inputs.request.databases and inputs.request.tenants:
        yield ok(
            CODE, inputs.node.name, "Memory is counted once", "No workload is named like a database or its engine."
        )
