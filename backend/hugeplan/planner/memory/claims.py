"""Claims of the node: what the kernel, the reservations and the workloads need of ordinary memory.

Two of them overlap by definition and are counted once: Kubernetes' systemReserved is meant to cover the kernel too
(Kubernetes documentation, "Reserve Compute Resources for System Daemons"), so only what it leaves after the kernel's
own memory is claimed beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.memory.kubernetes import NodeReserved
from hugeplan.planner.memory.ledger import Claim, kernel_bytes, kernel_claims
from hugeplan.planner.model import Explanation, LedgerKind, NodeFacts, PlanRequest, Source, Tenant, Term
from hugeplan.planner.observation.start import Start
from hugeplan.planner.pages import split_exactly
from hugeplan.planner.remembered import remembered
from hugeplan.planner.risk.forecast import HORIZON_DAYS, growth_bytes
from hugeplan.planner.risk.probability import tenant_bytes
from hugeplan.planner.units import format_bytes

POD_KINDS = ("pod", "container")
#: How the ledger's part ends that a growing tenant's forecast takes.
GROWTH = f": growth of {HORIZON_DAYS:g} days"


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims of a plan, and what is not known about them."""

    claims: tuple[Claim, ...]
    unknowns: tuple[str, ...]
    assumptions: tuple[str, ...]


def shared_claims(request: PlanRequest, reserved: NodeReserved, start: Start | None = None) -> Claims:
    """What does not depend on the page sizes: kernel, reservations, workloads. ``start``: the node as observed."""
    unknowns: list[str] = []
    assumptions: list[str] = []
    claims: list[Claim]
    if start is not None:
        claims = observed_claims(request.node, start, page_tables_bytes=start.page_tables_bytes)
        kernel = start.parts.kernel_bytes + start.parts.unaccounted_bytes
        assumptions += start.notes
    else:
        claims = list(kernel_claims(request.node))
        kernel, source = kernel_bytes(request.node)
        if source is Source.ASSUMED:
            assumptions.append(f"kernel and slab: {format_bytes(kernel)} (2 % of MemTotal + 200 MiB), not measured")
    claims += _reservation_claims(request, reserved, kernel, _daemon_bytes(request, start))
    named = (("kube-reserved", reserved.kube), ("system-reserved", reserved.system), ("eviction", reserved.eviction))
    for name, part in named:
        if part.source is Source.ASSUMED and (request.reservations.kubernetes or part.bytes):
            assumptions.append(f"{name}: {format_bytes(part.bytes)} ({part.reference})")
    for tenant in request.tenants:
        found = _tenant_claims(tenant, request.policy.risk, None if start is None else start.numa_weights)
        if not found:
            unknowns.append(f"memory of workload {tenant.name}: neither history nor request nor limit is given")
        claims += found
    return Claims(tuple(claims), tuple(unknowns), tuple(assumptions))


def observed_claims(node: NodeFacts, start: Start, *, page_tables_bytes: int) -> list[Claim]:
    """The kernel, what it does not account, and page tables, on each NUMA node in proportion to its memory in use."""
    parts = start.parts
    named = (
        (LedgerKind.KERNEL, "kernel and slab", parts.kernel_bytes, "SUnreclaim + KernelStack + SecPageTables + Percpu"),
        (LedgerKind.KERNEL, "not accounted by the kernel", parts.unaccounted_bytes, "MemTotal - all counted parts"),
        (LedgerKind.PAGE_TABLES, "page tables of what runs", page_tables_bytes, "PageTables - described databases'"),
    )
    return [
        Claim(kind, name, share, numa.id, Source.MEASURED, explanation)
        for kind, name, size, formula in named
        for explanation in (Explanation(formula, (), "/proc/meminfo of the sample"),)
        for numa, share in zip(node.numa, split_exactly(size, start.numa_weights), strict=True)
    ]


def reclaimable_claim(start: Start, room_bytes: int, granted_bytes: int) -> Claim:
    """Page cache and slab that the kernel gives back: what was observed as far as the plan leaves room for it.

    ``granted_bytes`` of it are planned as page cache that an engine relies on.
    """
    parts = start.parts
    size = max(0, min(parts.reclaimable_bytes - granted_bytes, room_bytes))
    return Claim(
        kind=LedgerKind.RECLAIMABLE,
        name="page cache and reclaimable slab",
        bytes=size,
        numa_node=None,
        source=Source.MEASURED,
        explanation=Explanation(
            "min(Buffers + Cached - Shmem + SReclaimable, what the plan leaves)",
            (Term("observed", format_bytes(parts.reclaimable_bytes), Source.MEASURED),),
            "the kernel gives it back before memory runs out",
        ),
        numa_weights=start.numa_weights,
    )


def _daemon_bytes(request: PlanRequest, start: Start | None) -> int:
    """Observed memory of what is no pod: kube-reserved and system-reserved are meant for it, so it counts once."""
    if start is None or not request.reservations.kubernetes or not request.observed.include:
        return 0
    return sum(item.planned_bytes or 0 for item in start.observed if item.kind not in POD_KINDS)


def _reservation_claims(request: PlanRequest, reserved: NodeReserved, kernel: int, daemons: int) -> list[Claim]:
    """Reservations less what is claimed already: the kernel (systemReserved covers it) and observed daemons."""
    system, kube = reserved.system.bytes, reserved.kube.bytes
    covered = min(system, kernel) if request.reservations.kubernetes else 0
    system_inputs = [Term("systemReserved", format_bytes(system), reserved.system.source)]
    kube_inputs = [Term("kube-reserved", format_bytes(kube), reserved.kube.source, reserved.kube.reference)]
    if covered:
        system_inputs.append(Term("kernel, counted above", format_bytes(covered), Source.COMPUTED))
    in_kube = min(kube, daemons)
    in_system = min(system - covered, daemons - in_kube)
    if in_kube:
        kube_inputs.append(Term("daemons, counted as observed", format_bytes(in_kube), Source.MEASURED))
    if in_system:
        system_inputs.append(Term("daemons, counted as observed", format_bytes(in_system), Source.MEASURED))
    covered += in_system
    parts = (
        (LedgerKind.KUBE_RESERVED, "kube-reserved", kube - in_kube, reserved.kube, tuple(kube_inputs)),
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


def _tenant_claims(tenant: Tenant, probability: float, numa_weights: tuple[int, ...] | None) -> list[Claim]:
    """What a workload was measured or described to use, and by itself what it is expected to grow by: a forecast."""
    size = tenant_bytes(tenant, probability)
    if size is None:
        return []
    growth = min(size, growth_bytes(tenant))
    measured = tenant.history is not None and bool(tenant.history.used_bytes)
    kind = LedgerKind.PAGE_CACHE if tenant.kind == "page_cache" else LedgerKind.TENANTS
    basis = "request" if tenant.request_bytes is not None else "limit"
    formula = f"count x {_quantile_text(probability) if measured else basis}"
    weights = None if tenant.observed is None else numa_weights
    own = Claim(
        kind=kind,
        name=tenant.name,
        bytes=size - growth,
        numa_node=tenant.numa_node,
        source=Source.MEASURED if measured else Source.GIVEN,
        explanation=Explanation(
            formula,
            _terms_of(tenant.count, tenant.request_bytes, tenant.limit_bytes),
            tenant.observed
            or (
                "measured history" if measured else "planned at the request; what limits allow beyond it is in the risk"
            ),
        ),
        numa_weights=weights,
    )
    if not growth:
        return [own]
    ahead = Explanation(
        f"count x growth per day x {HORIZON_DAYS:g} days",
        (Term("growth", format_bytes(growth), Source.COMPUTED),),
        "a forecast from the trend of its history; the forecasts say until when there is room",
    )
    return [own, Claim(kind, tenant.name + GROWTH, growth, tenant.numa_node, Source.COMPUTED, ahead, weights)]


@remembered(64)
def _quantile_text(probability: float) -> str:
    return f"{1 - probability:.4g} quantile of the history"


@remembered(1024)
def _terms_of(count: int, request_bytes: int | None, limit_bytes: int | None) -> tuple[Term, ...]:
    return (
        Term("count", str(count), Source.GIVEN),
        Term("request", _or_unknown(request_bytes), Source.GIVEN),
        Term("limit", _or_unknown(limit_bytes), Source.GIVEN),
    )


def _or_unknown(size: int | None) -> str:
    return "unknown" if size is None else format_bytes(size)
