"""Is a container's huge page limit smaller than what its database maps? Then it dies with SIGBUS or falls back."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import OnShortage
from hugeplan.planner.findings.base import Claim, Facts, FindingInputs, computed, given, ok, unknown, wrong
from hugeplan.planner.findings.container_limits import RESERVATION, USAGE, counter_of_kubelet, goes_off_as
from hugeplan.planner.findings.count_uncertain import COMPARE
from hugeplan.planner.memory.kubernetes import huge_page_limits
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

CODE = "pod_limit_below_segment"


def claims_of(inputs: FindingInputs) -> tuple[Claim, ...] | None:
    """Each instance with a pool on a Kubernetes node; None on other nodes."""
    if not inputs.request.reservations.kubernetes:
        return None
    kubelet = inputs.sample.kubelet if inputs.sample else None
    version = inputs.request.reservations.kubelet_version or (kubelet.version if kubelet else None)
    return tuple(
        Claim(
            subject=instance.name,
            engine=planned.engine,
            page_bytes=planned.demand.page_bytes,
            pages=planned.demand.pages,
            error_pages=planned.demand.error_pages,
            grant=huge_page_limits(planned, inputs.pools, inputs.instances),
            limit_bytes=instance.pod_hugepages_limit_bytes,
            counter=counter_of_kubelet(version),
            refuses_start=inputs.pool_uses[instance.name].on_shortage is OnShortage.REFUSE,
        )
        for instance, planned in inputs.with_pool
    )


def check(facts: Facts) -> Iterable[Finding]:
    """One finding for each claim."""
    for claim in facts.claims or ():
        yield _judged(claim)
        others = [name for name in claim.grant if name != next(iter(claim.grant))]
        if others and claim.limit_bytes is not None:
            title = "Whether the pod may use its smaller huge pages is not known"
            reason = f"Its smaller mappings take {' and '.join(others)}; what the pod may use of these is not given."
            yield unknown(CODE, claim.subject, title, reason, _fix(claim))


def _judged(claim: Claim) -> Finding:
    limit, name = claim.limit_bytes, claim.subject
    not_known = "Whether the pod may use the segment's pages is not known"
    if limit is None:
        return unknown(CODE, name, not_known, "The pod's huge page limit is not given.", _fix(claim))
    evidence = (
        computed("needed", format_bytes(next(iter(claim.grant.values())))),
        given("limit", format_bytes(limit)),
    )
    if limit < claim.pages * claim.page_bytes:
        allowed = f"its limit allows {limit // claim.page_bytes:,}" if limit else "it has no limit, so it may use none"
        what = f"It maps {claim.pages:,} pages of {page_label(claim.page_bytes)}, {allowed}"
        who = "The pod" if claim.cgroup is None else "It"
        title = f"{who} needs {claim.pages:,} huge pages, its limit allows {limit // claim.page_bytes:,}"
        if not limit:
            title = "It may use none of the node's huge pages"
        return wrong(CODE, name, title, f"{what}: {_consequence(claim)}.", _fix(claim), evidence=evidence)
    if limit % claim.page_bytes:
        why = f"The limit is not a whole number of {page_label(claim.page_bytes)} pages: the pod is refused."
        title = "The pod will be refused for its huge page limit"
        return wrong(CODE, name, title, why, _fix(claim), evidence=evidence)
    most = claim.pages + claim.error_pages
    if limit < most * claim.page_bytes:
        allows = f"The limit allows {limit // claim.page_bytes:,} pages of {page_label(claim.page_bytes)}"
        why = f"{allows}; the rule's count is {claim.pages:,}, at most {most:,}."
        fix = _fix(claim) if limit < next(iter(claim.grant.values())) else COMPARE
        return unknown(CODE, name, not_known, why, fix, evidence=evidence)
    title, why = "The pod may use all pages of the segment", "The limit covers the segment."
    return ok(CODE, name, title, why, evidence=evidence)


def _fix(claim: Claim) -> str:
    if claim.cgroup is not None:
        size = next(iter(claim.grant.values()))
        counter = f"{claim.counter} limit" if claim.counter else "limit"
        return (
            f"Raise the {counter} of {page_label(claim.page_bytes)} pages of the cgroup {claim.cgroup} to "
            f"{format_bytes(size)}, {size // claim.page_bytes:,} pages. Its service or container sets the limit."
        )
    wanted = ", ".join(f"{name}: {format_kubernetes_bytes(size)}" for name, size in claim.grant.items())
    return f"Set {wanted} as request and limit {claim.holder}."


def _consequence(claim: Claim) -> str:
    """What a short limit does: by the counter that holds it, or by either where that is not known."""
    refused = "the server does not start" if claim.refuses_start else "the server silently falls back to base pages"
    touched = goes_off_as(claim.engine) if claim.limit_bytes else "initdb or the server dies of a Bus error (SIGBUS)"
    by_counter = {RESERVATION: refused, USAGE: f"once its cache is warm, {touched}"}
    return by_counter.get(
        claim.counter or "", f"{refused}, or where only touched pages count, {touched} once its cache is warm"
    )
