"""Risk: the probability that ordinary memory runs out under a plan.

Workloads are random, everything else in the ledger is taken at its planned size. Page cache that something relies on is
a workload like the others: to lose it is to run out of memory for the one that needs it. A workload's copy is drawn
from its measured history (moved along its trend when it grows), else evenly between request and limit. The correlation
between replicas is unknown: they are taken as independent and as moving together, and the answer is the range between
the two. The likely value is the share of moments at which all workloads together were above the room, where all were
measured at the same times; else the middle.

What was not seen is in the upper end: the next of n + 1 values that come in any order exceeds the n seen with a
probability of 1 / (n + 1), whatever their distribution (Wilks, Annals of Mathematical Statistics 12, 1941, pages 91 to
96). What it may then come to is what requests and limits say, so that a history never makes a plan less sure than its
description. A request that nothing limits and nobody measured bounds nothing: its plan is not within any policy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.model import MemoryHistory, NumaRisk, Policy, Range, Risk, Tenant, named
from hugeplan.planner.remembered import remembered
from hugeplan.planner.risk.forecast import HORIZON_DAYS, trend
from hugeplan.planner.units import format_bytes

#: A workload with a request and no limit is taken to use up to this many per cent of its request.
NO_LIMIT_PERCENT = 120
_BINS_MIN = 1024
_BINS_PER_COPY = 8
_QUANTILES = 1024
_EVEN_VALUES = 513
_ROUNDING = 1e-9  # of a probability that equals the policy

Floats = NDArray[np.float64]

_ORDERS: Final = np.linspace(0.0, 1.0, _QUANTILES + 1)
"""Orders of the quantiles at which replicas that move together are summed."""


@dataclass(frozen=True, slots=True)
class CopyUse:
    """Possible bytes of one copy, sorted and equally likely; ``measured`` points behind them (0: assumed).

    ``series`` are the same values in the order of ``times``, for workloads that were measured together. ``quantiles``
    are the values at ``_ORDERS``.
    """

    values: Floats
    quantiles: Floats
    measured: int
    basis: str
    series: Floats | None = None
    times: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, values: Floats, measured: int, basis: str, series: Floats | None = None, times: tuple[float, ...] = ()
    ) -> CopyUse:
        """The use with its quantiles: linear between order statistics."""
        ranks = _ORDERS * (len(values) - 1)
        quantiles = values if len(values) == 1 else np.interp(ranks, np.arange(len(values)), values)
        return cls(values, quantiles, measured, basis, series, times)


@dataclass(frozen=True, slots=True)
class TenantDemand:
    """The workloads' summed demand: tail probabilities and quantiles, for independent and fully correlated replicas."""

    tenants: tuple[tuple[Tenant, CopyUse], ...]
    unknown: tuple[str, ...]
    fewest_points: int | None

    def probability_above(self, room_bytes: float) -> Range:
        """P(demand > room): independent and fully correlated replicas, widened for what was not seen."""
        return _widened(self.spread_above(room_bytes), self.unseen(room_bytes))

    def spread_above(self, room_bytes: float) -> Range:
        """P(demand > room) by what was seen or given alone."""
        independent = _independent_tail(self.tenants, room_bytes)
        joint = _joint_tail(self.tenants, room_bytes)
        low, high = min(independent, joint), max(independent, joint)
        together = _measured_tail(self.tenants, room_bytes)
        if together is None:
            return Range(low, (low + high) / 2, high)
        return Range(min(low, together), together, max(high, together))

    def unseen(self, room_bytes: float) -> float:
        """P(the next value exceeds all that were seen, and the demand then exceeds the room)."""
        if self.fewest_points is None:
            return 0.0
        if any(use.measured and tenant.limit_bytes is None for tenant, use in self.tenants):
            return 1.0 / (self.fewest_points + 1)
        described = tuple((tenant, _as_described(tenant, use)) for tenant, use in self.tenants)
        tails = _independent_tail(described, room_bytes), _joint_tail(described, room_bytes)
        return max(tails) / (self.fewest_points + 1)

    @property
    def is_measured_together(self) -> bool:
        """Whether all workloads that change were measured at the same times."""
        return _times_together(self.tenants) is not None

    @property
    def is_boundless(self) -> bool:
        """Whether a workload was never measured and has no limit: no room is certain to be enough."""
        return any(not use.measured and tenant.limit_bytes is None for tenant, use in self.tenants)

    def quantile_bytes(self, probability: float) -> int:
        """Demand that is exceeded with at most ``probability`` when replicas are fully correlated (the safe side)."""
        sums = _joint_quantiles(self.tenants)  # as :func:`_joint_tail` sees it, so that both agree
        return int(np.ceil(np.interp(1.0 - probability, _ORDERS, sums))) + 1

    def bound_to(self, numa_node: int) -> TenantDemand:
        """The part of the demand that is bound to one NUMA node."""
        own = tuple((tenant, use) for tenant, use in self.tenants if tenant.numa_node == numa_node)
        return TenantDemand(own, (), _fewest_points(own))


def copy_use(tenant: Tenant) -> CopyUse | None:
    """How much one copy of a workload may use; None when nothing is known of it."""
    if tenant.history is not None and tenant.history.used_bytes:
        return _from_history(tenant)
    return _described_use(tenant.request_bytes, tenant.limit_bytes)


def _described_use(request: int | None, limit: int | None) -> CopyUse | None:
    if request is None and limit is None:
        return None
    if request is None or limit == request:
        assert limit is not None
        return CopyUse.of(np.asarray([float(limit)]), 0, "always at its limit")
    high = limit if limit is not None else request * NO_LIMIT_PERCENT // 100
    basis = "evenly between request and limit"
    if limit is None:
        basis = f"no limit: request to {NO_LIMIT_PERCENT} % of it"
    return _even_use(request, high, basis)


def _as_described(tenant: Tenant, seen: CopyUse) -> CopyUse:
    """What one copy may use by its request and limit; what was seen where neither is given."""
    return _described_use(tenant.request_bytes, tenant.limit_bytes) or seen


@remembered(1024)
def _even_use(request: int, high: int, basis: str) -> CopyUse:
    """Remembered: the nodes of a fleet run pods of the same few requests and limits."""
    return CopyUse.of(np.linspace(request, high, _EVEN_VALUES), 0, basis)


def _from_history(tenant: Tenant) -> CopyUse:
    assert tenant.history is not None
    return _use_of(tenant.history, tenant.limit_bytes)


@remembered(256)
def _use_of(history: MemoryHistory, limit_bytes: int | None) -> CopyUse:
    """Remembered: a history stays while the rest of a scenario changes. Nothing grows above its limit."""
    values = np.asarray(history.used_bytes, dtype=np.float64)
    found = trend(history) if values.min() < values.max() else None
    basis = f"{len(values)} measured points"
    if found is not None and found.is_growing:
        values = np.asarray(found.residuals_bytes) + found.level_bytes
        values = values + found.growth_bytes_per_day.likely * HORIZON_DAYS
        if limit_bytes is not None:
            values = np.minimum(values, max((limit_bytes, *history.used_bytes)))
        basis += f", moved along their growth by {HORIZON_DAYS:g} days"
    values = np.maximum(values, 0.0)
    return CopyUse.of(np.sort(values), len(values), basis, values, history.times_seconds)


def tenant_demand(tenants: Sequence[Tenant]) -> TenantDemand:
    """The demand of all pods and services, and of the page cache that something relies on."""
    known: list[tuple[Tenant, CopyUse]] = []
    unknown: list[str] = []
    for tenant in tenants:
        if tenant.count == 0:
            continue
        use = copy_use(tenant)
        if use is None:
            unknown.append(tenant.name)
        else:
            known.append((tenant, use))
    return TenantDemand(tuple(known), tuple(unknown), _fewest_points(known))


def _fewest_points(tenants: Sequence[tuple[Tenant, CopyUse]]) -> int | None:
    """The fewest values that stand behind one of the measured workloads; None where none was measured."""
    measured = [(tenant, use) for tenant, use in tenants if use.measured]
    moving = [use.measured for tenant, use in measured if not _stands(tenant, use)]
    return min(moving or [use.measured for _, use in measured], default=None)


def _widened(found: Range, unseen: float) -> Range:
    """With the next value among those that were seen, or above all of them."""
    return Range(found.low, found.likely, min(1.0, found.high + (1.0 - found.high) * unseen))


def _stands(tenant: Tenant, use: CopyUse) -> bool:
    """An observed workload at the value it has now: the history of the whole node is with another one."""
    return tenant.observed is not None and use.measured == 1


def tenant_bytes(tenant: Tenant, probability: float) -> int | None:
    """Set aside in the ledger for all replicas: the history's (1 - probability) quantile, else request, else limit."""
    if tenant.history is not None and tenant.history.used_bytes:
        if len(tenant.history.used_bytes) == 1:
            return tenant.count * max(0, tenant.history.used_bytes[0])
        return tenant.count * math.ceil(_quantile_above(_from_history(tenant).values, 1.0 - probability))
    per_copy = tenant.limit_bytes if tenant.request_bytes is None else tenant.request_bytes
    return None if per_copy is None else tenant.count * per_copy


def _quantile_above(values: Floats, order: float) -> float:
    """The quantile of sorted values that is one of them: ``numpy.quantile`` with ``method="higher"``, to the bit.

    numpy takes longer to choose its method than to find the value, and a plan asks for each of its workloads.
    """
    return float(values[math.ceil((len(values) - 1) * order)])


def risk_of(
    demand: TenantDemand,
    room_bytes: int,
    policy: Policy,
    room_by_node: Mapping[int, int] | None = None,
    *,
    known: bool = False,
) -> Risk:
    """P(workloads need more than ``room_bytes``), the memory left for them by pools and everything else.

    ``room_by_node``: what each NUMA node leaves for the workloads bound to it; a node can run out by itself, however
    much is free elsewhere. How the nodes go together is unknown, so the sum of all is the upper bound.
    ``known``: the node was observed, so that no workloads means none; else it means that nobody said.
    """
    nodes = numa_risks(demand, room_by_node or {})
    if demand.unknown:
        names = named(demand.unknown)
        return Risk(probability=None, policy=policy.risk, meets_policy=None, basis=f"nothing is known of {names}")
    if not demand.tenants and not known and room_bytes >= 0 and not nodes:
        return Risk(
            probability=None,
            policy=policy.risk,
            meets_policy=None,
            basis="no other workload is described and none was observed: what else needs memory is not known",
        )
    if not demand.tenants:
        probability = 0.0 if room_bytes >= 0 and not nodes else 1.0
        return Risk(
            probability=Range(probability, probability, probability),
            policy=policy.risk,
            meets_policy=probability <= policy.risk,
            basis="no other workloads: only the ledger's fixed parts count",
            numa_nodes=nodes,
        )
    found = _together(demand, room_bytes, nodes)
    meets: bool | None = None
    if found.high <= policy.risk + _ROUNDING:
        meets = None if demand.is_boundless else True
    elif found.low > policy.risk + _ROUNDING:
        meets = False
    basis = _basis(demand)
    bound = "".join(
        f"; NUMA node {node.numa_node}: {node.probability.likely:.2g}, what is bound to it against"
        f" {format_bytes(node.room_bytes)} of its room"
        for node in nodes
    )
    return Risk(
        probability=found,
        policy=policy.risk,
        meets_policy=meets,
        basis=f"workloads against {format_bytes(room_bytes)} of room; {basis}; "
        f"from independent to fully correlated replicas{bound}",
        numa_nodes=nodes,
    )


def _basis(demand: TenantDemand) -> str:
    """Where each workload's demand comes from; observed workloads, which come from one sample, together."""
    parts = [f"{tenant.name} x {tenant.count}: {use.basis}" for tenant, use in demand.tenants if not tenant.observed]
    observed = [(tenant, use) for tenant, use in demand.tenants if tenant.observed]
    if observed:
        told = (tenant for tenant, use in observed if use.values[0] < use.values[-1])
        changing = next(told, observed[-1][0])
        noun = "workload" if len(observed) == 1 else "workloads"
        parts.append(f"{len(observed)} observed {noun}: {changing.observed}")
    return "; ".join(parts)


def numa_risks(demand: TenantDemand, room_by_node: Mapping[int, int]) -> tuple[NumaRisk, ...]:
    """Every NUMA node with workloads bound to it, or whose fixed parts alone do not fit. None where there is one."""
    if len(room_by_node) < 2:
        return ()
    found = []
    for numa_node, room in sorted(room_by_node.items()):
        own = demand.bound_to(numa_node)
        if own.tenants:
            found.append(NumaRisk(numa_node=numa_node, room_bytes=room, probability=own.probability_above(float(room))))
        elif room < 0:
            found.append(NumaRisk(numa_node=numa_node, room_bytes=room, probability=Range(1.0, 1.0, 1.0)))
    return tuple(found)


def _together(demand: TenantDemand, room_bytes: int, nodes: Sequence[NumaRisk]) -> Range:
    """P(the node or one of its NUMA nodes runs out): at least the largest, at most the sum.

    What was not seen counts once: the next values of all workloads, measured together, are one value more.
    """
    whole = demand.spread_above(room_bytes)
    parts = [whole, *(demand.bound_to(node.numa_node).spread_above(node.room_bytes) for node in nodes)]
    spread = Range(
        max(part.low for part in parts),
        max(part.likely for part in parts),
        min(1.0, sum(part.high for part in parts)),
    )
    unseen = [demand.unseen(room_bytes)]
    unseen += [demand.bound_to(node.numa_node).unseen(node.room_bytes) for node in nodes]
    return _widened(spread, max(unseen) if demand.is_measured_together else min(1.0, sum(unseen)))


def _independent_tail(tenants: Sequence[tuple[Tenant, CopyUse]], room_bytes: float) -> float:
    """P(sum > room) with every replica drawn on its own: the sums' spectrum is the product of the replicas' spectra."""
    base = float(sum(tenant.count * use.values[0] for tenant, use in tenants))
    span = float(sum(tenant.count * (use.values[-1] - use.values[0]) for tenant, use in tenants))
    if room_bytes < base:
        return 1.0
    if room_bytes >= base + span or span <= 0:
        return 0.0
    copies = sum(tenant.count for tenant, _ in tenants)
    count = 1 << (max(_BINS_MIN, _BINS_PER_COPY * copies) - 1).bit_length()
    width = span / (count - 1 - copies)  # each copy may round up by one bin
    spectrum = np.ones(count // 2 + 1, dtype=np.complex128)
    for tenant, use in tenants:
        if use.values[0] == use.values[-1]:
            continue  # one value: all of it is in ``base``, and its spectrum is 1 everywhere
        place = (use.values - use.values[0]) / width
        lower = np.floor(place).astype(np.int64)
        upper_share = place - lower
        bins = np.bincount(lower, weights=1.0 - upper_share, minlength=count)
        bins += np.bincount(np.minimum(lower + 1, count - 1), weights=upper_share, minlength=count)
        spectrum *= np.fft.rfft(bins / len(use.values)) ** tenant.count
    mass = np.maximum(np.fft.irfft(spectrum, count), 0.0)
    first = int(np.floor((room_bytes - base) / width)) + 1
    return float(min(1.0, mass[first:].sum()))


def _measured_tail(tenants: Sequence[tuple[Tenant, CopyUse]], room_bytes: float) -> float | None:
    """Share of the measured moments at which the sum is above the room; None unless all were measured together."""
    times = _times_together(tenants)
    if times is None:
        return None
    total = np.zeros(len(times))
    for tenant, use in tenants:
        assert use.series is not None
        total += tenant.count * use.series
    return float(np.mean(total > room_bytes))


def _times_together(tenants: Sequence[tuple[Tenant, CopyUse]]) -> tuple[float, ...] | None:
    """The times at which all workloads that change were measured; None where these are not the same, or none was."""
    moving = [use for tenant, use in tenants if not _stands(tenant, use)] or [use for _, use in tenants]
    times = moving[0].times if moving else ()
    return None if not times or any(use.series is None or use.times != times for use in moving) else times


def _joint_quantiles(tenants: Sequence[tuple[Tenant, CopyUse]]) -> Floats:
    """Quantiles, by ``_ORDERS``, of the sum when every replica is at its own quantile of the same order."""
    total = np.zeros(len(_ORDERS))
    for tenant, use in tenants:
        total += tenant.count * use.quantiles
    return total


def _joint_tail(tenants: Sequence[tuple[Tenant, CopyUse]], room_bytes: float) -> float:
    """P(sum > room) with fully correlated replicas."""
    sums = _joint_quantiles(tenants)
    if room_bytes >= sums[-1]:
        return 0.0
    if room_bytes < sums[0]:
        return 1.0
    return float(1.0 - np.interp(room_bytes, sums, _ORDERS))
