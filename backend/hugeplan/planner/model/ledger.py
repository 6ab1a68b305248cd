"""Where every byte of MemTotal goes, and the pools that the plan reserves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hugeplan.planner.model.words import Explanation, Source


class LedgerKind(StrEnum):
    """Parts of the ledger, in drawing order.

    PAGE_CACHE is cache that somebody relies on. RECLAIMABLE is the rest of the observed page cache and slab: the kernel
    gives it back before memory runs out, so a plan may use it, and it is available as MemAvailable counts it.
    """

    KERNEL = "kernel"
    SYSTEM_RESERVED = "system_reserved"
    KUBE_RESERVED = "kube_reserved"
    EVICTION = "eviction"
    TENANTS = "tenants"
    ENGINE_PRIVATE = "engine_private"
    PAGE_TABLES = "page_tables"
    PAGE_CACHE = "page_cache"
    RECLAIMABLE = "reclaimable"
    POOL = "pool"
    POOL_SLACK = "pool_slack"
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPart:
    """One part of one NUMA node's memory. ``page_bytes`` is set for pools."""

    kind: LedgerKind
    name: str
    numa_node: int
    bytes: int
    source: Source
    page_bytes: int | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All of MemTotal: the parts' bytes sum to it exactly, per NUMA node and in total.

    FREE may be negative; then the plan does not fit and a finding says so. ``struct_page_bytes`` is the kernel's
    page metadata: it lies outside MemTotal and is shown beside the parts, not among them.
    """

    mem_total_bytes: int
    parts: tuple[LedgerPart, ...]
    struct_page_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """Pages of one size to reserve on one NUMA node. ``present_pages`` is what the node has now, ``surplus_pages`` of
    which the kernel made beyond the count that was written.

    ``demand_pages`` includes ``held_pages``: pages mapped or reserved now by what the scenario does not describe.
    ``held_by`` names those holders as far as they are known.
    """

    numa_node: int
    page_bytes: int
    demand_pages: int
    slack_pages: int
    pages: int
    present_pages: int | None
    explanation: Explanation | None = None
    held_pages: int = 0
    held_by: tuple[str, ...] = ()
    surplus_pages: int = 0
