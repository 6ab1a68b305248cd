"""What a rule reads, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from hugeplan.documents.report import CollectorResult, Inventory, Sample, SpoolSummary
from hugeplan.fleet.observation import node_sample
from hugeplan.planner.findings.base import Facts
from hugeplan.planner.model import Finding


class PlannedPool(msgspec.Struct, frozen=True):
    """Pages that the plan in force reserves; ``numa_node`` None: over all NUMA nodes."""

    page_bytes: int
    pages: int
    numa_node: int | None = None


class NodeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look at. ``subject`` is the node, a database or a pool; ``state`` is wrong or attention."""

    code: str
    subject: str
    state: str
    title: str
    reason: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A node as its newest report shows it. ``planned`` is None without a plan in force.
    ``shares_machine_id``: another machine reports under the same machine id. ``said_name``: what the report calls it.
    """

    name: str
    inventory: Inventory
    sample: Sample
    collectors: list[CollectorResult]
    spool: SpoolSummary | None
    clock_ahead_seconds: float | None
    effective_granule_bytes: int | None
    planned: tuple[PlannedPool, ...] | None
    shares_machine_id: bool = False
    said_name: str | None = None

    @property
    def facts(self) -> Facts:
        """What the planner's rules take of the report: its databases and pools, where it has databases."""
        sample = node_sample(self.inventory, self.sample, []) if self.sample.databases else None
        return Facts(default_huge_page_bytes=self.inventory.default_huge_page_bytes, sample=sample)


Rule = Callable[[Observed], Iterable[NodeFinding]]


def node_finding(finding: Finding) -> NodeFinding:
    """A finding of a rule that other features share."""
    return NodeFinding(
        code=finding.code,
        subject=finding.subject,
        state=finding.state.value,
        title=finding.title,
        reason=finding.reason,
        fix=finding.fix or "",
    )


def wrong(code: str, subject: str, title: str, reason: str, fix: str) -> NodeFinding:
    """Broken, or will break."""
    return NodeFinding(code=code, subject=subject, state="wrong", title=title, reason=reason, fix=fix)


def attention(code: str, subject: str, title: str, reason: str, fix: str) -> NodeFinding:
    """Works, but needs attention."""
    return NodeFinding(code=code, subject=subject, state="attention", title=title, reason=reason, fix=fix)


def idle_pages_by_size(sample: Sample) -> dict[int, int | None]:
    """Pages of each size that nothing uses or has reserved, over the node; None: unknown."""
    pools = sample.global_pools or sample.pools
    found: dict[int, int | None] = {}
    for pool in pools:
        before = found.get(pool.page_bytes, 0)
        reserved = pool.resv_hugepages if pool.free_hugepages else 0
        if before is None or pool.free_hugepages is None or reserved is None:
            found[pool.page_bytes] = None
        else:
            found[pool.page_bytes] = before + pool.free_hugepages - reserved
    return found


def pages_by_size(sample: Sample) -> dict[int, int]:
    """Pages of each size in the pools of the node."""
    found: dict[int, int] = {}
    for pool in sample.global_pools or sample.pools:
        found[pool.page_bytes] = found.get(pool.page_bytes, 0) + pool.nr_hugepages
    return found
