"""Is the probability that ordinary memory runs out within the policy?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, given, ok, unknown, wrong
from hugeplan.planner.model import Finding
from hugeplan.planner.sentences import risk_sentence
from hugeplan.planner.units import format_chance

CODE = "risk_above_policy"
_MEASURE = "Give the workloads limits, or let the agent measure them."
_FIX = "Shrink a pool, move a workload, lower limits, or accept a higher policy.risk."


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for the node."""
    risk, name = inputs.risk, inputs.node.name
    if risk.probability is None:
        yield unknown(
            CODE,
            name,
            "The risk that ordinary memory runs out is not known",
            f"It cannot be said: {risk.basis}.",
            "Give the workloads a request, a limit or a history.",
        )
        return
    p = risk.probability
    likely, low, high = (format_chance(share) for share in (p.likely, p.low, p.high))
    accepted = format_chance(risk.policy)
    evidence = (computed("probability", f"{likely} ({low} to {high})"), given("policy", accepted))
    if risk.meets_policy:
        title = "Ordinary memory is safe enough by the policy"
        yield ok(CODE, name, title, f"At most {high}, the policy accepts {accepted}.", evidence=evidence)
    elif risk.meets_policy is None:
        fix = _MEASURE if p.high <= risk.policy else _FIX
        yield attention(
            CODE, name, "Whether ordinary memory suffices is not sure", risk_sentence(risk), fix, evidence=evidence
        )
    else:
        reason = f"Likely {likely}, above the accepted {accepted}: no plan with these pools meets it."
        worst = max(risk.numa_nodes, key=lambda node: node.probability.likely, default=None)
        if worst is not None and worst.probability.likely > risk.policy:
            reason += (
                f" NUMA node {worst.numa_node} alone runs out with {format_chance(worst.probability.likely)}: what is"
                " bound to it cannot use the others."
            )
        yield wrong(
            CODE, name, "Ordinary memory runs out more often than the policy allows", reason, _FIX, evidence=evidence
        )
