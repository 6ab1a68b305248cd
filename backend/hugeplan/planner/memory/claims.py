"""Claims of the node: what the kernel, the reservations and the tenants need of ordinary memory.

Two of them overlap by definition and are counted once: Kubernetes' systemReserved is meant to cover the kernel too
(Kubernetes documentation, "Reserve Compute Resources for System Daemons"), so only what it leaves after the kernel's
own memory is claimed beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.memory.kubernetes import NodeReserved
from hugeplan.planner.memory.ledger import Claim, kernel_bytes, kernel_claims
from hugeplan.planner.model import Explanation, LedgerKind, PlanRequest, Source, Tenant, Term
from hugeplan.planner.risk.probability import tenant_bytes
from hugeplan.planner.units import format_bytes


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims of a plan, and what is not known about them."""

    claims: tuple[Claim, ...]
    unknowns: tuple[str, ...]
    assumptions: tuple[str, ...]


def shared_claims(request: PlanRequest, reserved: NodeReserved) -> Claims:
    """What does not depend on the page sizes: kernel, reservations, tenants."""
    unknowns: list[str] = []
    assumptions: list[str] = []
    claims: list[Claim] = list(kernel_claims(request.node))
    kernel, source = kernel_bytes(request.node)
    if source is Source.ASSUMED:
        assumptions.append(f"kernel and slab: {format_bytes(kernel)} (2 % of MemTotal + 200 MiB), not measured")
    claims += _reservation_claims(request, reserved, kernel)
    named = (("kube-reserved", reserved.kube), ("system-reserved", reserved.system), ("eviction", reserved.eviction))
    for name, part in named:
        if part.source is Source.ASSUMED and (request.reservations.kubernetes or part.bytes):
            assumptions.append(f"{name}: {format_bytes(part.bytes)} ({part.reference})")
    for tenant in request.tenants:
        claim = _tenant_claim(tenant, request.policy.risk)
        if claim is None:
            unknowns.append(f"memory of tenant {tenant.name}: neither history nor request nor limit is given")
        else:
            claims.append(claim)
    return Claims(tuple(claims), tuple(unknowns), tuple(assumptions))


def _reservation_claims(request: PlanRequest, reserved: NodeReserved, kernel: int) -> list[Claim]:
    system = reserved.system.bytes
    covered = min(system, kernel) if request.reservations.kubernetes else 0
    system_inputs = [Term("systemReserved", format_bytes(system), reserved.system.source)]
    if covered:
        system_inputs.append(Term("kernel, counted above", format_bytes(covered), Source.COMPUTED))
    parts = (
        (LedgerKind.KUBE_RESERVED, "kube-reserved", reserved.kube.bytes, reserved.kube, ()),
        (LedgerKind.SYSTEM_RESERVED, "system-reserved", system - covered, reserved.system, tuple(system_inputs)),
        (LedgerKind.EVICTION, "eviction threshold", reserved.eviction.bytes, reserved.eviction, ()),
    )
    return [
        Claim(
            kind=kind,
            name=name,
            bytes=size,
            numa_node=None,
            source=part.source,
            explanation=Explanation(
                "systemReserved - kernel" if kind is LedgerKind.SYSTEM_RESERVED and covered else name,
                inputs or (Term(name, format_bytes(part.bytes), part.source, part.reference),),
                part.reference,
            ),
        )
        for kind, name, size, part, inputs in parts
        if size
    ]


def _tenant_claim(tenant: Tenant, probability: float) -> Claim | None:
    size = tenant_bytes(tenant, probability)
    if size is None:
        return None
    measured = tenant.history is not None and bool(tenant.history.used_bytes)
    kind = LedgerKind.PAGE_CACHE if tenant.kind == "page_cache" else LedgerKind.TENANTS
    basis = "request" if tenant.request_bytes is not None else "limit"
    formula = f"count x {f'{1 - probability:.4g} quantile of the history' if measured else basis}"
    return Claim(
        kind=kind,
        name=tenant.name,
        bytes=size,
        numa_node=tenant.numa_node,
        source=Source.MEASURED if measured else Source.GIVEN,
        explanation=Explanation(
            formula,
            (
                Term("count", str(tenant.count), Source.GIVEN),
                Term("request", _or_unknown(tenant.request_bytes), Source.GIVEN),
                Term("limit", _or_unknown(tenant.limit_bytes), Source.GIVEN),
            ),
            "measured history" if measured else "planned at the request; what limits allow beyond it is in the risk",
        ),
    )


def _or_unknown(size: int | None) -> str:
    return "unknown" if size is None else format_bytes(size)
