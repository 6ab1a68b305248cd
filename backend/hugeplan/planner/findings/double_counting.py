"""Is memory counted twice: a database that is also a workload, or a pool inside a workload's figure?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hugeplan.planner.demand import engine_named
from hugeplan.planner.findings.base import FindingInputs, attention, given, ok, unknown
from hugeplan.planner.model import EVERYTHING_IN_USE, DatabaseInstance, Finding, named
from hugeplan.planner.observation.told_apart import perhaps_twice
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import format_bytes

CODE = "double_counting"
#: Of a database's name that is looked for as a part: names are anybody's, and so is how many lengths they have.
_MOST_WORDS = 32


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each workload that carries the name of a database or of its engine, else one for the node."""
    databases = inputs.request.databases
    names = _by_words(databases) if inputs.request.tenants else {}
    sizes = sorted({len(part) for part in names if len(part) <= _MOST_WORDS})
    found = False
    for tenant in inputs.request.tenants:
        if tenant.name == EVERYTHING_IN_USE and names:
            found = True
            title = "Whether databases are part of what is in use was not read"
            reason = (
                f"{tenant.name} is all memory that the host has in use; what of it"
                f" {named((d.name for d in databases), ' and ')} hold today comes beside it once more."
            )
            fix = "Take what runs already out of that workload, or report the node with the agent."
            yield unknown(CODE, tenant.name, title, reason, fix, evidence=(given("workload", tenant.name),))
            continue
        words = _words(tenant.name)
        parts = (words[start : start + size] for start in range(len(words)) for size in sizes)
        alike = names.get(words) or next((names[part] for part in parts if part in names), None)
        if alike is None or tenant.kind == "page_cache":
            continue
        found = True
        twin = names.get(words)
        if twin is None:
            title = f"Whether memory of {alike} is counted twice is not known"
            reason = f"A part of the name {tenant.name} is that of the database {alike} or of its engine."
            fix = "Take it out of the workloads if it is the database, else give it another name."
            yield unknown(CODE, tenant.name, title, reason, fix, evidence=(given("workload", tenant.name),))
            continue
        reason = f"The workload {tenant.name} looks like the database {twin}: its memory would be in the ledger twice."
        fix = "Take it out of the workloads; its connections and page tables are counted by its engine's rule."
        evidence = (given("workload", tenant.name), given("database", twin))
        yield attention(CODE, tenant.name, f"Memory of {twin} may be counted twice", reason, fix, evidence=evidence)
    twice = {} if found else perhaps_twice(inputs.request, inputs.instances, inputs.ledger)
    if twice:
        who = named(twice, " and ")
        yield unknown(
            CODE,
            inputs.node.name,
            f"Whether memory of {who} is counted twice is not known",
            f"It was not read which of the observed memory is theirs: up to {format_bytes(sum(twice.values()))} may be"
            " in the ledger with the databases and among the workloads.",
            "Report the node with the agent, or set runs_as and the settings that the server runs with.",
        )
    elif not found and databases and inputs.request.tenants:
        yield ok(
            CODE,
            inputs.node.name,
            "No workload looks like a database",
            "No workload is named like a database or its engine.",
        )


def _by_words(databases: Sequence[DatabaseInstance]) -> dict[tuple[str, ...], str]:
    """A database by the words of its own name and of what its engine is called; its own name goes first."""
    engines = ((engine_named(d.engine), d.name) for d in databases)
    called = {_words(word): name for e, name in engines for word in (e.name, e.title, *e.aliases)}
    return called | {_words(d.name): d.name for d in databases}


@remembered(4096)
def _words(name: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z0-9]+", name.lower()))
