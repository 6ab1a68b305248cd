"""Do the pools lie where their engines run?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok, wrong
from hugeplan.planner.model import Finding, named
from hugeplan.planner.pages import page_label

CODE = "numa_imbalance"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each size on a node with several NUMA nodes."""
    numa = inputs.node.numa
    if len(numa) < 2:
        return
    for page_bytes in sorted({pool.page_bytes for pool in inputs.pools if pool.pages}):
        label = page_label(page_bytes)
        pools = [pool for pool in inputs.pools if pool.page_bytes == page_bytes]
        planned = {pool.numa_node: pool.pages for pool in pools}
        present = {pool.numa_node: pool.present_pages for pool in pools}
        wanted = ", ".join(f"node {i}: {n:,}" for i, n in sorted(planned.items()))
        evidence = (computed("planned", wanted),)
        known = [count for count in present.values() if count is not None]
        enough = len(known) == len(pools) and sum(known) >= sum(planned.values())
        if enough and any((present[i] or 0) < n for i, n in planned.items()):
            has = ", ".join(f"node {i}: {n:,}" for i, n in sorted(present.items()))
            reason = f"The total is there, but not where it is needed: {has}."
            fix = "Write the counts per node (the NUMA script), because vm.nr_hugepages spreads by itself."
            yield wrong(CODE, label, "The pages are there, but on the wrong NUMA node", reason, fix, evidence=evidence)
            continue
        unbound = [i.name for i, p in inputs.with_pool if p.demand.page_bytes == page_bytes and i.numa_node is None]
        if unbound:
            who, whose = ("is", "its") if len(unbound) == 1 else ("are", "their")
            near = len(inputs.node.near_numa)  # where it may run, and where its pages are
            if near < 2:
                continue
            elsewhere = round(100 * (near - 1) / near)
            yield attention(
                CODE,
                label,
                "Some pages will be used from another NUMA node",
                f"{named(unbound)} {who} not bound to a NUMA node: about {elsewhere} % of {whose} accesses go to"
                " another node.",
                "Bind each database to one node where its memory fits, or interleave it on purpose.",
                evidence=evidence,
            )
        else:
            title = "The pages lie where their databases run"
            yield ok(CODE, label, title, f"Every database is bound; the plan is {wanted}.", evidence=evidence)
