"""A node's newest report as the planner takes it: parsing only, no rule and no default of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from hugeplan.documents.report import GlobalPool, Inventory, NumaPool, Sample
from hugeplan.hardware import catalogue
from hugeplan.planner.model import HardwareFacts, NodeFacts, NumaNode, Pool, Source
from hugeplan.planner.pages import split_exactly

_MOST_KEPT: Final = 256


class IncompleteReportError(Exception):
    """The report lacks what the planner needs; the message is one sentence that says what."""


def kernel_used_bytes(sample: Sample) -> int | None:
    """Memory the kernel holds for itself: unreclaimable slab and kernel stacks, in bytes. None when either is unknown.

    Page tables are left out: the ledger computes them from the plan.
    """
    memory = sample.memory
    if memory.s_unreclaim_bytes is None or memory.kernel_stack_bytes is None:
        return None
    return memory.s_unreclaim_bytes + memory.kernel_stack_bytes


def _pool(pool: NumaPool | GlobalPool) -> Pool:
    return Pool(
        page_bytes=pool.page_bytes,
        nr_hugepages=pool.nr_hugepages,
        free_hugepages=pool.free_hugepages,
        resv_hugepages=pool.resv_hugepages,
        surplus_hugepages=pool.surplus_hugepages,
    )


def numa_nodes(inventory: Inventory, sample: Sample) -> tuple[NumaNode, ...]:
    """The NUMA nodes with their pools. A node that lists none is one NUMA node with all memory."""
    free_bytes = {numa.id: numa.mem_free_bytes for numa in sample.numa}
    global_pools = {pool.page_bytes: pool for pool in sample.global_pools}
    if len(inventory.numa_nodes) <= 1:
        numa_id = inventory.numa_nodes[0].id if inventory.numa_nodes else 0
        pools = [_pool(pool) for pool in sample.global_pools] or [_pool(pool) for pool in sample.pools]
        known = bool(sample.global_pools or sample.pools) or not inventory.huge_page_sizes_bytes
        node = NumaNode(
            id=numa_id,
            mem_total_bytes=sample.memory.mem_total_bytes,
            mem_free_bytes=free_bytes.get(numa_id, sample.memory.mem_free_bytes),
            pools=tuple(pools) if known else None,
        )
        return (node,)
    by_node: dict[int, list[Pool]] = {}
    for pool in sample.pools:
        by_node.setdefault(pool.numa_node, []).append(_pool(pool))
    nothing_reserved = bool(global_pools) and all(pool.nr_hugepages == 0 for pool in global_pools.values())
    # Per node the kernel counts the pages it managed when the zones were built, MemTotal those it has freed to itself
    # since. The difference is spread, so that the nodes sum to MemTotal.
    totals = split_exactly(sample.memory.mem_total_bytes, [numa.mem_total_bytes for numa in inventory.numa_nodes])
    return tuple(
        NumaNode(
            id=numa.id,
            mem_total_bytes=total,
            mem_free_bytes=free_bytes.get(numa.id),
            pools=tuple(by_node[numa.id]) if numa.id in by_node else (() if nothing_reserved else None),
            cpulist=numa.cpus,
        )
        for numa, total in zip(inventory.numa_nodes, totals, strict=True)
    )


def hardware_facts(inventory: Inventory, measured: HardwareFacts | None) -> HardwareFacts:
    """What is known of the translation hardware: what runs measured, else the catalogue's for this processor."""
    known = measured or HardwareFacts()
    cpu = inventory.cpu
    named = replace(
        known,
        vendor=known.vendor or (cpu.vendor if cpu else None),
        family=known.family if known.family is not None else (cpu.family if cpu else None),
        model=known.model if known.model is not None else (cpu.model if cpu else None),
        virtualised=inventory.virtualised if known.virtualised is None else known.virtualised,
    )
    return catalogue.complete(named)


class SharedHardware:
    """``hardware_facts`` for many nodes: nodes of which the same is known share one object.

    Whoever compares nodes reads the facts of an object once, and finds equal ones at once.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[HardwareFacts | None, HardwareFacts]] = {}

    def __call__(self, inventory: Inventory, measured: HardwareFacts | None) -> HardwareFacts:
        """What is known of the translation hardware of one more node."""
        cpu = inventory.cpu
        processor = (cpu.vendor, cpu.family, cpu.model) if cpu else None
        key = (id(measured), processor, inventory.virtualised)
        # ``measured`` is kept beside its id, so that no other object gets that id.
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            found = self._known[key] = (measured, hardware_facts(inventory, measured))
        return found[1]


def node_facts(
    name: str,
    inventory: Inventory,
    sample: Sample,
    *,
    measured: HardwareFacts | None,
    hardware: Callable[[Inventory, HardwareFacts | None], HardwareFacts] = hardware_facts,
) -> NodeFacts:
    """The node as the planner takes it; ``measured`` is what its runs say of the hardware.

    ``hardware`` adds to it what is known of the processor. IncompleteReportError when a fact without a safe unknown is
    missing.
    """
    sizes = tuple(sorted(inventory.huge_page_sizes_bytes))
    default = inventory.default_huge_page_bytes
    if default is None:
        if len(sizes) != 1:
            raise IncompleteReportError("The report does not say the default huge page size.")
        default = sizes[0]
    return NodeFacts(
        name=name,
        arch=inventory.architecture,
        base_page_bytes=inventory.base_page_bytes,
        huge_page_sizes_bytes=sizes,
        default_huge_page_bytes=default,
        numa=numa_nodes(inventory, sample),
        cpus=inventory.cpu.online if inventory.cpu else None,
        kernel_used_bytes=kernel_used_bytes(sample),
        kernel_used_source=Source.MEASURED,
        thp_enabled=inventory.thp.enabled if inventory.thp else None,
        hvo_enabled=inventory.hvo_enabled,
        kernel_release=inventory.kernel_release,
        kernel_command_line=inventory.kernel_command_line,
        hardware=hardware(inventory, measured),
    )
