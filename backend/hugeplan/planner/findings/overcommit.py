"""Are surplus pages in use? They come from ordinary memory beyond the pool, and vanish when freed."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, measured, ok, unknown
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "surplus_pages"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each observed pool with surplus or overcommit, else one for the node."""
    pools = None if inputs.sample is None else inputs.sample.pools
    if pools is None:
        title = "Whether pages are taken beyond the pools is not known"
        yield unknown(CODE, inputs.node.name, title, "The node's global pools were not observed.")
        return
    found = False
    for pool in pools:
        label = page_label(pool.page_bytes)
        if pool.surplus_hugepages:
            found = True
            size = format_bytes(pool.surplus_hugepages * pool.page_bytes)
            reason = (
                f"{pool.surplus_hugepages:,} surplus pages ({size}) are taken from ordinary memory, outside the plan."
            )
            fix = "Raise nr_hugepages to the plan and set nr_overcommit_hugepages to 0."
            evidence = (measured("surplus", pool.surplus_hugepages),)
            title = f"{pool.surplus_hugepages:,} pages are in use beyond the pool"
            yield attention(CODE, label, title, reason, fix, evidence=evidence)
        elif pool.nr_overcommit_hugepages:
            found = True
            reason = f"Up to {pool.nr_overcommit_hugepages:,} pages may be taken from ordinary memory beyond the pool."
            evidence = (measured("nr_overcommit_hugepages", pool.nr_overcommit_hugepages),)
            title = f"{pool.nr_overcommit_hugepages:,} pages may be taken beyond the pool"
            yield attention(CODE, label, title, reason, "Set nr_overcommit_hugepages to 0.", evidence=evidence)
    if not found:
        yield ok(CODE, inputs.node.name, "No pages are taken beyond the pools", "No surplus page and no overcommit.")
