"""Is the probability that ordinary memory runs out within the policy?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, given, ok, unknown, wrong
from hugeplan.planner.model import Finding

CODE = "risk_above_policy"
_FIX = "Shrink a pool, move a tenant, lower limits, or accept a higher policy.risk."


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for the node."""
    risk, name = inputs.risk, inputs.node.name
    if risk.probability is None:
        yield unknown(
            CODE,
            name,
            "The risk that ordinary memory runs out is not known",
            f"It cannot be said: {risk.basis}.",
            "Give tenants a request, limit or history.",
        )
        return
    p = risk.probability
    evidence = (computed("probability", f"{p.likely:.2g} ({p.low:.2g} to {p.high:.2g})"), given("policy", risk.policy))
    if risk.meets_policy:
        yield ok(
            CODE,
            name,
            "Ordinary memory is safe enough by the policy",
            f"At most {p.high:.2g}, the policy allows {risk.policy:g}.",
            evidence=evidence,
        )
    elif risk.meets_policy is None:
        reason = f"Likely {p.likely:.2g}, but up to {p.high:.2g}: the policy of {risk.policy:g} is not surely met."
        yield attention(
            CODE, name, "Ordinary memory may run out more often than the policy allows", reason, _FIX, evidence=evidence
        )
    else:
        reason = f"Likely {p.likely:.2g}, above the policy of {risk.policy:g}: no plan with these pools meets it."
        worst = max(risk.numa_nodes, key=lambda node: node.probability.likely, default=None)
        if worst is not None and worst.probability.likely > risk.policy:
            reason += (
                f" NUMA node {worst.numa_node} alone runs out with {worst.probability.likely:.2g}: what is bound to it"
                " cannot use the others."
            )
        yield wrong(
            CODE, name, "Ordinary memory runs out more often than the policy allows", reason, _FIX, evidence=evidence
        )
