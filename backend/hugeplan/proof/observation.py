"""What was observed on a node, in the words of the agent's report (docs/report.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any


@dataclass(frozen=True)
class Observation:
    """The ``inventory`` and ``sample`` of a report. A missing or null field is unknown, never zero."""

    inventory: Mapping[str, Any]
    sample: Mapping[str, Any]
    #: File, page size (None: the default) and pages by NUMA node (None: spread by the kernel) of what writes counts at
    #: boot after the command line, in that order. None: not looked at, as in a report.
    boot_counts: Sequence[tuple[str, int | None, Mapping[int | None, int]]] | None = None

    def pool(self, numa_node: int, page_bytes: int) -> Mapping[str, Any] | None:
        """The counters of one pool, None where the size or the NUMA node is not there."""
        return self._pools.get((numa_node, page_bytes))

    @cached_property
    def _pools(self) -> dict[tuple[Any, Any], Mapping[str, Any]]:
        # The first of two with one key counts; a report may list thousands, and a plan asks for hundreds.
        return {(pool.get("numa_node"), pool.get("page_bytes")): pool for pool in reversed([*self.listed("pools")])}

    def global_pool(self, page_bytes: int) -> Mapping[str, Any] | None:
        """The counters of one size over all NUMA nodes."""
        return next((p for p in self.listed("global_pools") if p.get("page_bytes") == page_bytes), None)

    @cached_property
    def holders_by_size(self) -> dict[int, Any]:
        """What ``hugeplan.proof.holders`` found, per page size: several checks ask for it."""
        return {}

    def listed(self, section: str) -> Iterator[Mapping[str, Any]]:
        """The entries of a section; nothing where it is unknown."""
        for entry in self.sample.get(section) or ():
            if isinstance(entry, Mapping):
                yield entry

    def knows(self, section: str) -> bool:
        """Whether a section was observed; an empty list is known to be empty."""
        return self.sample.get(section) is not None

    @cached_property
    def _free_by_order(self) -> dict[Any, list[int]]:
        # By NUMA node, over its zones: there may be thousands, and each pool that is short asks.
        found: dict[Any, list[Sequence[Any]]] = {}
        for zone in self.listed("buddyinfo"):
            found.setdefault(zone.get("numa_node"), []).append(zone.get("free_blocks") or ())
        return {node: [sum(map(int, of)) for of in zip_longest(*zones, fillvalue=0)] for node, zones in found.items()}

    def free_blocks(self, numa_node: int, block_bytes: int) -> int | None:
        """Free blocks of at least ``block_bytes`` on a NUMA node, counted in blocks of that size; None: unknown."""
        free = self._free_by_order.get(numa_node)
        base = self.inventory.get("base_page_bytes")
        if free is None or not base:
            return None
        order = (block_bytes // int(base)).bit_length() - 1
        return sum(count << (above - order) for above, count in enumerate(free) if above >= order)

    def largest_block_bytes(self) -> int | None:
        """The largest block that the buddy allocator holds; larger pages need contiguous memory or CMA."""
        orders = [len(zone.get("free_blocks") or ()) for zone in self.listed("buddyinfo")]
        base = self.inventory.get("base_page_bytes")
        return None if not orders or not base or not max(orders) else int(base) << (max(orders) - 1)
