"""What a finding may look at, and the one way to say ok, attention, wrong or unknown.

A title is a short sentence about the subject, without a full stop, that holds for its state only: the interface shows
it behind the subject, and the reason under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from hugeplan.planner.demand import PoolUse
from hugeplan.planner.memory.kubernetes import NodeReserved
from hugeplan.planner.model import (
    DatabaseInstance,
    Finding,
    Gain,
    InstancePlan,
    KubernetesView,
    Ledger,
    NetMemory,
    NodeFacts,
    NodeSample,
    PlanRequest,
    PoolPlan,
    ProcessMemory,
    Risk,
    Source,
    State,
    Term,
)
from hugeplan.planner.observation.pools import PoolState
from hugeplan.planner.observation.sizes_unread import Unread
from hugeplan.planner.observation.start import PagesInUse


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingInputs:
    """A finished plan but for its findings, with the request it came from.

    ``as_planned`` are the databases with the plan's settings, pool and page size (0: none) written in; ``pool_uses``
    says how the databases as given take pages. ``in_use``: the pools of now, and whose their pages are. ``unread``:
    the databases whose size is not known, as :func:`sizes_not_read` says it.
    """

    request: PlanRequest
    pools: tuple[PoolPlan, ...]
    instances: tuple[InstancePlan, ...]
    ledger: Ledger
    gains: tuple[Gain, ...]
    risk: Risk
    net_memory: NetMemory
    kubernetes: KubernetesView | None
    margin_bytes: int
    reserved: NodeReserved
    page_cache_demands: Mapping[str, tuple[int, int]]
    obstacles: Mapping[str, str]
    as_planned: tuple[DatabaseInstance, ...]
    pool_uses: Mapping[str, PoolUse]
    in_use: PagesInUse
    unread: Mapping[str, Unread]
    #: Instances that the plan gives huge pages.
    with_pool: tuple[tuple[DatabaseInstance, InstancePlan], ...] = field(init=False)

    def __post_init__(self) -> None:
        pairs = zip(self.request.databases, self.instances, strict=True)
        object.__setattr__(self, "with_pool", tuple(pair for pair in pairs if pair[1].page_bytes is not None))

    @property
    def node(self) -> NodeFacts:
        """The node's facts."""
        return self.request.node

    @property
    def sample(self) -> NodeSample | None:
        """The latest observed state; None when the node was never observed."""
        return self.request.sample

    def processes_of(self, instance: str) -> Sequence[ProcessMemory] | None:
        """Observed processes of an instance; None when no processes were observed or none is known to be its."""
        if self.sample is None or self.sample.processes is None:
            return None
        return [p for p in self.sample.processes if p.instance == instance] or None

    def state_of(self, pool: PoolPlan) -> PoolState | None:
        """The planned pool as it is now; None where the node has none of this size there, or it is not known."""
        return self.in_use.pools.get((pool.numa_node, pool.page_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a database maps of one page size, beside one limit on it.

    ``subject`` is its name as whoever asks shows it. ``limit_bytes`` is None where it is not known, ``counter`` where
    it is not known whether touched pages (``usage``) or mappings (``reservation``) count against it. ``grant`` is what
    the limit is to be, by Kubernetes resource, the page size of the claim first; ``holder`` whose limit it is.
    ``error_pages``: by how many more the count of ``pages`` may be off.
    ``refuses_start``: the engine ends where it does not get its pages. ``cgroup``: the limit is that of a cgroup which
    no kubelet made, so there is no pod to edit.
    """

    subject: str
    engine: str
    page_bytes: int
    pages: int
    grant: Mapping[str, int]
    limit_bytes: int | None
    counter: str | None = None
    holder: str = "of the container"
    refuses_start: bool = False
    cgroup: str | None = None
    error_pages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A node as far as a source knows it; None: not known to it.

    The planner knows a ``plan``, an agent's report a ``sample``; plans, imports, ``verify`` and the linter know
    ``claims``.
    """

    default_huge_page_bytes: int | None = None
    sample: NodeSample | None = None
    claims: tuple[Claim, ...] | None = None
    plan: FindingInputs | None = None


FACTS = tuple(one.name for one in fields(Facts))


@dataclass(frozen=True, slots=True)
class Rule:
    """A check, and the names of the :class:`Facts` without which it says nothing."""

    check: Callable[[Facts], Iterable[Finding]]
    needs: tuple[str, ...]


def of_plan(check: Callable[[FindingInputs], Iterable[Finding]]) -> Rule:
    """A rule about a finished plan."""

    def checked(facts: Facts) -> Iterable[Finding]:
        assert facts.plan is not None
        return check(facts.plan)

    return Rule(checked, ("plan",))


def ok(code: str, subject: str, title: str, reason: str, *, evidence: tuple[Term, ...] = ()) -> Finding:
    """Checked, and as it should be."""
    return Finding(code=code, state=State.OK, subject=subject, title=title, reason=reason, evidence=evidence)


def attention(
    code: str, subject: str, title: str, reason: str, fix: str, *, evidence: tuple[Term, ...] = ()
) -> Finding:
    """Works, but needs attention."""
    return Finding(
        code=code, state=State.ATTENTION, subject=subject, title=title, reason=reason, fix=fix, evidence=evidence
    )


def wrong(code: str, subject: str, title: str, reason: str, fix: str, *, evidence: tuple[Term, ...] = ()) -> Finding:
    """Will not work as planned."""
    return Finding(
        code=code, state=State.WRONG, subject=subject, title=title, reason=reason, fix=fix, evidence=evidence
    )


def unknown(
    code: str, subject: str, title: str, reason: str, fix: str | None = None, *, evidence: tuple[Term, ...] = ()
) -> Finding:
    """Could not be checked; ``reason`` says which fact is missing."""
    return Finding(
        code=code, state=State.UNKNOWN, subject=subject, title=title, reason=reason, fix=fix, evidence=evidence
    )


def given(name: str, value: object) -> Term:
    """A fact as evidence."""
    return Term(name, str(value), Source.GIVEN)


def measured(name: str, value: object) -> Term:
    """An observed value as evidence."""
    return Term(name, str(value), Source.MEASURED)


def computed(name: str, value: object) -> Term:
    """A computed value as evidence."""
    return Term(name, str(value), Source.COMPUTED)
