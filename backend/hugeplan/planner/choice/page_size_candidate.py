"""One candidate: a page size that an instance could use, its cost in memory, whether it is available, and its score.

A score of 1 is one per cent of the instance's throughput times its weight, or one per cent of the node's memory. Its
part for operation is the operational cost of a pool: it has to be kept in step with the settings, and gigantic
pages come at boot only. That cost is small on purpose: it only decides ties, and they go to 2M.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hugeplan.planner.demand import Engine, PageChoice, require_named_size
from hugeplan.planner.errors import PageSizeError
from hugeplan.planner.gain.page_size_gain import Gains
from hugeplan.planner.memory.ledger import hvo_returned_bytes
from hugeplan.planner.memory.page_tables import InstanceTables, returned_tables_bytes
from hugeplan.planner.memory.pools import most_idle_bytes, most_slack_pages, present_pages
from hugeplan.planner.model import GIB, KIB, MIB, Choice, DatabaseInstance, Demand, Gain, NodeFacts, Policy
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

#: Score that a pool of ordinary huge pages costs in operation, and one of gigantic pages.
POOL_SCORE = 0.1
GIGANTIC_SCORE = 0.6
#: Two sizes closer than this are a tie, and ties go to 2M.
TIE_SCORE = 0.5
PREFERRED_PAGE_BYTES = 2 * MIB
#: Largest block of the page allocator by base page size (MAX_PAGE_ORDER): larger pages are gigantic.
_LARGEST_BLOCK = {4 * KIB: 4 * MIB, 16 * KIB: 32 * MIB, 64 * KIB: 512 * MIB}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One page size for one instance; ``page_bytes`` is the base page size for no pool.

    ``cost_bytes`` is all that it takes but private memory, ``hugetlb_pool_bytes`` what of it lies in pools, and
    ``slack_bytes`` of that the most its slack can come to: pools that instances share round it up once.

    ``idle_bytes``: idle memory that its score counts; of gigantic pages the most that the last page and slack come to.

    ``smaller`` are its mappings on smaller huge pages, one demand a size with a pool; ``left_on_base_bytes`` are those
    for whose size no pool may be planned.
    """

    page_bytes: int
    is_pool: bool
    demand: Demand
    tables: InstanceTables
    cost_bytes: int
    hugetlb_pool_bytes: int
    slack_bytes: int
    gain_score: float
    memory_score: float
    operation_score: float
    obstacle: str | None
    smaller: tuple[Demand, ...] = ()
    left_on_base_bytes: int = 0
    idle_bytes: int = 0

    @property
    def page_tables_bytes(self) -> int:
        """Page tables of all its processes."""
        return self.tables.bytes

    @property
    def score(self) -> float:
        """Gain and memory less the operational cost."""
        return self.gain_score + self.memory_score - self.operation_score

    def as_choice(self) -> Choice:
        """The candidate as a plan shows it."""
        return Choice(
            page_bytes=self.page_bytes,
            pages=self.demand.pages if self.is_pool else 0,
            feasible=self.obstacle is None,
            score=round(self.score, 3),
            why=self.obstacle or self.sentence(),
            **self._score_parts(),
        )

    def _score_parts(self) -> dict[str, Any]:
        """The score's parts and the rounding waste by field of :class:`Choice`; nothing without a possible pool."""
        if self.obstacle is not None or not self.is_pool:
            return {}
        return {
            "gain_score": round(self.gain_score, 3),
            "memory_score": round(self.memory_score, 3),
            "operation_score": round(-self.operation_score, 3),
            "waste_bytes": self.demand.waste_bytes,
        }

    def sentence(self) -> str:
        """The score in words."""
        if not self.is_pool:
            return "no pool: no gain, no waste, nothing to keep in step"
        waste = f"{format_bytes(self.demand.waste_bytes)} rounding waste"
        if self.idle_bytes > self.demand.waste_bytes + self.slack_bytes:
            waste += f", counted as {format_bytes(self.idle_bytes)}: its last page may be empty"
        return (
            f"score {self.score:+.2f} = gain {self.gain_score:+.2f}, memory {self.memory_score:+.2f}"
            f" ({waste}), operation {-self.operation_score:+.2f}"
            " (1 is one per cent of throughput or of the node's memory)"
        )


def is_gigantic(page_bytes: int, base_page_bytes: int) -> bool:
    """Whether the page allocator cannot hand such a page out: it comes at boot, from CMA, or by luck."""
    return page_bytes > _LARGEST_BLOCK.get(base_page_bytes, 4 * MIB)


def candidate_sizes(node: NodeFacts, instance: DatabaseInstance, policy: Policy) -> tuple[int, ...]:
    """Huge page sizes to weigh: the instance's own choice, else what the node has and the policy allows."""
    have = tuple(sorted(node.huge_page_sizes_bytes))
    if instance.page_bytes == 0:
        return ()
    possible = set(have) & set(have if policy.allowed_page_bytes is None else policy.allowed_page_bytes)
    if instance.page_bytes is not None:
        possible &= {instance.page_bytes}
    named = require_named_size(instance, possible)
    if named is not None:
        return (named,)
    if instance.page_bytes is not None:
        if instance.page_bytes not in have:
            labels = ", ".join(page_label(size) for size in have) or "none"
            expected = f"one of the node's huge page sizes: {labels}"
            raise PageSizeError("page_size", page_label(instance.page_bytes), expected)
        return (instance.page_bytes,)
    allowed = policy.allowed_page_bytes
    return have if allowed is None else tuple(size for size in have if size in allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSetting:
    """What all candidates of one instance share."""

    node: NodeFacts
    instance: DatabaseInstance
    engine: Engine
    policy: Policy
    tables: Mapping[int, InstanceTables]
    gains: Gains


def candidate_at(setting: CandidateSetting, demand: Demand) -> Candidate:
    node, size = setting.node, demand.page_bytes
    tables, base_tables = setting.tables[size], setting.tables[node.base_page_bytes]
    if size == node.base_page_bytes:
        return Candidate(
            page_bytes=size,
            is_pool=False,
            demand=demand,
            tables=tables,
            cost_bytes=demand.segment_bytes + tables.bytes,
            hugetlb_pool_bytes=0,
            slack_bytes=0,
            gain_score=0.0,
            memory_score=0.0,
            operation_score=0.0,
            obstacle=None,
        )
    smaller = smaller_demands(node, setting.policy, demand)
    on_base = sum(page * pages for page, pages in demand.also_pages) - sum(d.segment_bytes for d in smaller)
    on_base += demand.on_base_bytes
    room = node.mem_total_bytes - demand.segment_bytes
    now = setting.instance.page_tables_now_bytes  # of a server on base pages: more do not come back
    base = base_tables.bytes if now is None else min(base_tables.bytes, now)
    returned = returned_tables_bytes(base, tables.bytes, room)
    if node.hvo_enabled:
        returned += sum(hvo_returned_bytes(d.pages, d.page_bytes, node.base_page_bytes) for d in (demand, *smaller))
    nodes = 1 if setting.instance.numa_node is not None else len(node.numa)
    slack = sum(most_slack_pages(d, nodes, setting.policy) * d.page_bytes for d in (demand, *smaller))
    pools = slack + sum(d.pages * d.page_bytes for d in (demand, *smaller))
    gigantic = is_gigantic(size, node.base_page_bytes)
    idle = demand.waste_bytes + slack
    if gigantic:
        # A choice of 1G must not turn with the last per cent of a setting: 29 GB may fill its last page, 28 and 30 not.
        idle = max(idle, most_idle_bytes(demand, nodes, setting.policy))
    operation = GIGANTIC_SCORE if gigantic else POOL_SCORE
    if size != PREFERRED_PAGE_BYTES and PREFERRED_PAGE_BYTES in node.huge_page_sizes_bytes:
        operation = max(operation, POOL_SCORE + TIE_SCORE)
    return Candidate(
        page_bytes=size,
        is_pool=True,
        demand=demand,
        tables=tables,
        cost_bytes=pools + on_base + tables.bytes,
        hugetlb_pool_bytes=pools,
        slack_bytes=slack,
        gain_score=gain_score(setting.instance, size, setting.gains),
        memory_score=100.0 * (returned - idle) / node.mem_total_bytes,
        operation_score=operation,
        obstacle=ruled_out(setting.engine, setting.instance)
        or setting.engine.ends_with(setting.instance, size)
        or obstacle(node, setting.engine, setting.policy, demand, gigantic=gigantic),
        smaller=smaller,
        left_on_base_bytes=on_base,
        idle_bytes=idle,
    )


def smaller_demands(node: NodeFacts, policy: Policy, demand: Demand) -> tuple[Demand, ...]:
    """The mappings that an engine puts on smaller huge pages, one demand a size for which a pool may be planned.

    Left out are sizes that the node lacks or the policy forbids, and gigantic ones when reserving at runtime.
    """
    allowed = node.huge_page_sizes_bytes if policy.allowed_page_bytes is None else policy.allowed_page_bytes
    return tuple(
        replace(
            demand,
            page_bytes=size,
            pages=pages,
            segment_bytes=size * pages,
            segments=(),
            error_pages=0,
            waste_bytes=0,
            also_pages=(),
            on_base_bytes=0,
        )
        for size, pages in demand.also_pages
        if pages
        and size in allowed
        and size in node.huge_page_sizes_bytes
        and (policy.reserve_at == "boot" or not is_gigantic(size, node.base_page_bytes))
    )


def pool_gain(page_bytes: int, found: tuple[Gain, ...]) -> Gain | None:
    """The gain of a hugetlb pool of one size among an instance's gains."""
    return next((gain for gain in found if gain.page_bytes == page_bytes and gain.backing.upper() != "THP"), None)


def gain_score(instance: DatabaseInstance, page_bytes: int, found: Gains) -> float:
    """Likely gain in per cent of throughput times the weight; no speed-up known counts as none."""
    gain = pool_gain(page_bytes, found.shown)
    if gain is None or gain.speedup is None:
        return 0.0
    return instance.weight * 100.0 * (found.own[page_bytes] - 1.0)


def ruled_out(engine: Engine, instance: DatabaseInstance) -> str | None:
    """Why the settings exclude a pool; None when they do not, or when the scenario asks for a page size by name."""
    return None if instance.page_bytes else engine.ruled_out(instance)


def obstacle(node: NodeFacts, engine: Engine, policy: Policy, demand: Demand, *, gigantic: bool) -> str | None:
    """Why this size is not available here; None when it is."""
    size = demand.page_bytes
    label = page_label(size)
    if engine.page_choice is PageChoice.DEFAULT and size != node.default_huge_page_bytes:
        default = page_label(node.default_huge_page_bytes)
        return f"{engine.title} can use only the kernel's default huge page size ({default}), not {label}"
    largest = max((segment.segment_bytes for segment in demand.segments), default=0)
    if engine.page_choice is PageChoice.LARGEST_FIRST and largest < size:
        return f"{engine.title} takes only pages that a mapping fills; its largest here is {format_bytes(largest)}"
    if not gigantic or policy.reserve_at == "boot":
        return None
    have = sum(pages for (_, page), pages in present_pages(node).items() if page == size)
    if have >= demand.pages:
        return None
    cma = node.hugetlb_cma_bytes or 0
    if size == GIB and cma >= demand.pages * size:
        return None
    return (
        f"{label} pages after boot need contiguous memory: {have:,} of {demand.pages:,} are allocated,"
        f" and hugetlb_cma holds {format_bytes(cma)}"
    )
