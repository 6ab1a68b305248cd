"""Observed workloads: units of the sample, and "everything else", which together are all ordinary memory.

A unit claims its anonymous and shared memory. A database that the scenario describes is taken out of its unit with its
private and shared memory, because the plan counts it with the database. What no unit holds is "everything else", so
nothing is lost and nothing counts twice. The history of the whole node's ordinary memory goes into "everything else":
then the sum over all workloads has the quantile of the sum at common times, not the sum of quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hugeplan.planner.model import (
    MemoryHistory,
    NodeSample,
    ObservedDatabase,
    ObservedTenant,
    ObservedUnit,
    PlanRequest,
    Tenant,
)
from hugeplan.planner.model.words import IDLE_CONNECTION_BYTES
from hugeplan.planner.observation.databases import Match
from hugeplan.planner.pages import split_exactly
from hugeplan.planner.remembered import remembered
from hugeplan.planner.risk.probability import tenant_bytes
from hugeplan.planner.units import format_bytes

EVERYTHING_ELSE = "everything else"
SMALLER_UNITS = "smaller_units"
#: Units listed by themselves, the largest first; smaller ones are one workload, so that a plan stays readable and fast.
LISTED_UNITS = 16
SECONDS_PER_DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads:
    """Workloads to plan with, all workloads that were seen, and what the scenario's own workloads replace."""

    tenants: tuple[Tenant, ...]
    observed: tuple[ObservedTenant, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """One unit's part of the node's ordinary memory; ``database_bytes`` of it are planned with the databases."""

    key: str | None
    name: str
    kind: str
    source: str
    now_bytes: int
    database_bytes: int

    @property
    def identity(self) -> tuple[str | None, str, str, int]:
        """What tells one share from another; equal ones are treated alike."""
        return (self.key, self.name, self.kind, self.now_bytes)

    @property
    def left_bytes(self) -> int:
        return self.now_bytes - self.database_bytes


def workloads_of(request: PlanRequest, sample: NodeSample, ordinary_bytes: int, matched: Sequence[Match]) -> Workloads:
    """Workloads whose memory, with that of the matched databases, sums to ``ordinary_bytes`` at the sample."""
    notes: list[str] = []
    risk = request.policy.risk
    shares = _shares(sample, ordinary_bytes, matched, notes)
    for match in matched:
        if is_estimated(match.database):
            has_mappings = bool(match.database.segments) or match.database.shared_bytes is not None
            size = format_bytes(ordinary_of(match.database))
            notes.append(
                f"{match.instance}: its memory was not reported apart; {size}, an estimate, leave the workloads"
                if has_mappings
                else f"{match.instance}: neither its memory nor its mappings were reported: it may be counted twice"
            )
    replaced = {tenant.name for tenant in request.tenants}
    excluded = set(request.observed.exclude)
    known = {name for share in shares for name in (share.name, share.key)}
    for name in sorted(excluded - known):
        notes.append(f"{name!r} is excluded, but no observed workload has this name or key")
    names = {*replaced}
    tenants: list[Tenant] = []
    observed: list[ObservedTenant] = []
    kept = [share for share in shares if not {share.name, share.key} & (replaced | excluded)]
    listed, small = _listed(kept)
    own, in_sum = {share.identity for share in listed}, {share.identity for share in small}
    series = _History.of(sample, sum(share.now_bytes for share in shares if share.key is not None), matched)
    for share in (*(s for s in shares if s.identity not in in_sum), *_as_one(small)):
        tenant = None
        if share.identity in own or share.kind == SMALLER_UNITS:
            tenant = _tenant(share, _free_name(share, names), series, risk)
            tenants.append(tenant)
            names.add(tenant.name)
        observed.append(
            ObservedTenant(
                name=share.name if tenant is None else tenant.name,
                key=share.key,
                kind=share.kind,
                now_bytes=share.now_bytes,
                database_bytes=share.database_bytes,
                planned_bytes=None if tenant is None else tenant_bytes(tenant, risk),
                basis=_why(share, tenant, replaced),
            )
        )
    return Workloads(tenants=tuple(tenants), observed=tuple(observed), notes=tuple(notes))


def _shares(sample: NodeSample, ordinary_bytes: int, matched: Sequence[Match], notes: list[str]) -> tuple[_Share, ...]:
    """Units without a parent, and everything else; together exactly ``ordinary_bytes``."""
    units = [u for u in sample.units or () if u.parent is None and u.ordinary_bytes is not None]
    sizes = _within(units, ordinary_bytes, notes)
    own = _database_bytes(sample.units or (), matched)
    shares = []
    taken = 0
    for unit, size in zip(units, sizes, strict=True):
        database = min(size, own.get(unit.key, 0))
        taken += database
        shares.append(
            _Share(
                key=unit.key,
                name=unit.name,
                kind=unit.kind,
                source=unit.source or "unit",
                now_bytes=size,
                database_bytes=database,
            )
        )
    rest = ordinary_bytes - sum(sizes)
    # A database in no known unit, or larger than its unit, lies in everything else.
    database = min(rest, sum(own.values()) - taken)
    shares.append(
        _Share(
            key=None,
            name=EVERYTHING_ELSE,
            kind="remainder",
            source="ordinary memory less all units" if units else "all ordinary memory",
            now_bytes=rest,
            database_bytes=database,
        )
    )
    return tuple(shares)


def _within(units: Sequence[ObservedUnit], ordinary_bytes: int, notes: list[str]) -> list[int]:
    """The units' bytes, scaled where their sum exceeds the node's: those by RSS first, which count pages twice."""
    sizes = [unit.ordinary_bytes or 0 for unit in units]
    for sources in ({"rss"}, {unit.source for unit in units}):
        over = sum(sizes) - ordinary_bytes
        if over <= 0:
            return sizes
        inside = [i for i, unit in enumerate(units) if unit.source in sources]
        have = sum(sizes[i] for i in inside)
        for i, cut in zip(inside, split_exactly(min(over, have), [sizes[i] for i in inside] or [0]), strict=False):
            sizes[i] -= cut
        notes.append("units count some shared pages more than once: scaled to what AnonPages + Shmem hold")
    return sizes


def _database_bytes(units: Sequence[ObservedUnit], matched: Sequence[Match]) -> dict[str | None, int]:
    """Ordinary memory of the matched databases by the outermost unit that holds it (None: unknown)."""
    parents = {unit.key: unit.parent for unit in units}
    found: dict[str | None, int] = {}
    for match in matched:
        key = match.database.unit if match.database.unit in parents else None
        while key is not None and (parent := parents.get(key)) is not None and parent in parents:
            key = parent
        found[key] = found.get(key, 0) + ordinary_of(match.database)
    return found


def ordinary_of(database: ObservedDatabase) -> int:
    """Ordinary memory of a database: private and shared memory on base pages, as reported, else as estimated."""
    shared, private = database.shared_bytes, database.private_bytes
    if shared is None:
        shared = sum(segment.bytes for segment in database.segments if segment.backing != "hugetlb")
    if private is None:
        private = (database.clients or 0) * IDLE_CONNECTION_BYTES
    return private + shared


def is_estimated(database: ObservedDatabase) -> bool:
    """Whether a database's ordinary memory was not reported apart from everything else's."""
    return database.shared_bytes is None or database.private_bytes is None


def _listed(shares: Sequence[_Share]) -> tuple[tuple[_Share, ...], tuple[_Share, ...]]:
    """The units that become workloads of their own, and the smaller ones that become one."""
    by_size = sorted((s for s in shares if s.key is not None), key=lambda s: (-s.left_bytes, s.name))
    last = tuple(s for s in shares if s.key is None)
    return (*by_size[:LISTED_UNITS], *last), tuple(by_size[LISTED_UNITS:])


def _as_one(small: Sequence[_Share]) -> tuple[_Share, ...]:
    """The smaller units as one share; none where there are none."""
    if not small:
        return ()
    whole = _Share(
        key=None,
        name=f"{len(small)} smaller units",
        kind=SMALLER_UNITS,
        source="summed",
        now_bytes=sum(share.now_bytes for share in small),
        database_bytes=sum(share.database_bytes for share in small),
    )
    return (whole,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """Times of the history, and ordinary memory that no unit held at each of them."""

    times: tuple[float, ...]
    values_are: str
    outside_bytes: tuple[int, ...] | None
    days: float

    @classmethod
    def of(cls, sample: NodeSample, units_bytes: int, matched: Sequence[Match]) -> _History:
        history = sample.ordinary_history
        if history is None or len(history.used_bytes) < 2:
            return cls(times=(sample.taken_at_seconds or 0.0,), values_are="samples", outside_bytes=None, days=0.0)
        own = _database_bytes(sample.units or (), matched).get(None, 0)
        outside = _outside(history, units_bytes + own)
        span = history.times_seconds[-1] - history.times_seconds[0]
        return cls(
            times=history.times_seconds,
            values_are=history.values_are,
            outside_bytes=outside,
            days=span / SECONDS_PER_DAY,
        )


@remembered(64)
def _outside(history: MemoryHistory, inside_bytes: int) -> tuple[int, ...]:
    """What of the node's ordinary memory was beyond ``inside_bytes``. Remembered: the same while a scenario changes."""
    return tuple(max(0, used - inside_bytes) for used in history.used_bytes)


def _tenant(share: _Share, name: str, history: _History, risk: float) -> Tenant:
    """The share as a workload: the history's changes are in everything else, the units stand at what they use now."""
    times: tuple[float, ...] = history.times[-1:]
    values: tuple[int, ...] = (share.left_bytes,)
    observed = f"observed once ({share.source}), no history"
    if history.outside_bytes is not None:
        observed = f"observed now ({share.source}); changes over time are in {EVERYTHING_ELSE!r}"
        if share.name == EVERYTHING_ELSE:
            times, values = history.times, history.outside_bytes
            span = f"{history.days:.2g} days" if history.days >= 1 else f"{history.days * 24:.2g} hours"
            observed = f"observed, p{100 * (1 - risk):.4g} of {span}, {len(history.times)} {history.values_are}"
    return Tenant(
        name=name,
        kind="service",
        history=MemoryHistory(times_seconds=times, used_bytes=values),
        observed=observed,
    )


def _free_name(share: _Share, names: set[str]) -> str:
    if share.name not in names:
        return share.name
    label = f"{share.name} ({share.key or share.kind})"
    count = 2
    while label in names:
        label = f"{share.name} ({share.key or share.kind}, {count})"
        count += 1
    return label


def _why(share: _Share, tenant: Tenant | None, replaced: set[str]) -> str:
    if tenant is not None:
        return tenant.observed or ""
    return "replaced by a workload of the plan" if {share.name, share.key} & replaced else "excluded by the scenario"
