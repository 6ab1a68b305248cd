"""Is memory counted twice: a database that is also a tenant, or a pool inside a tenant's figure?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, given, ok, unknown
from hugeplan.planner.model import EVERYTHING_IN_USE, Finding
from hugeplan.planner.observation.told_apart import perhaps_twice
from hugeplan.planner.units import format_bytes

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
    twice = {} if found else perhaps_twice(inputs.request, inputs.instances, inputs.ledger)
    if twice:
        who = " and ".join(twice)
        yield unknown(
            CODE,
            inputs.node.name,
            f"Whether memory of {who} is counted twice is not known",
            f"It was not read which of the observed memory is theirs: up to {format_bytes(sum(twice.values()))} may be"
            " in the ledger with the databases and among the workloads.",
            "Report the node with the agent, or set runs_as and the settings that the server runs with.",
        )
    elif not found and inputs.request.databases and inputs.request.tenants:
        yield ok(
            CODE,
            inputs.node.name,
            "No workload looks like a database",
            "No workload is named like a database or its engine.",
        )
