"""Does an engine that takes the kernel's default size find its pages there?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import PageChoice, engine_named
from hugeplan.planner.findings.base import FindingInputs, attention, given, ok, wrong
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import page_label

CODE = "wrong_default_size"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool."""
    default = inputs.node.default_huge_page_bytes
    evidence = (given("default", page_label(default)),)
    for instance, planned in inputs.with_pool:
        size = planned.demand.page_bytes
        choice = engine_named(instance.engine).page_choice
        if size == default:
            title = "It uses the kernel's default page size"
            yield ok(CODE, instance.name, title, f"It uses the default size, {page_label(default)}.", evidence=evidence)
        elif choice is PageChoice.DEFAULT:
            reason = f"It can map only the default size, {page_label(default)}, and the plan is for {page_label(size)}."
            fix = f"Boot with default_hugepagesz={page_label(size)}, or plan {page_label(default)} pages."
            yield wrong(CODE, instance.name, f"It cannot map {page_label(size)} pages", reason, fix, evidence=evidence)
        elif planned.demand.is_limit:
            continue  # whose it is has its size already
        elif choice is PageChoice.NAMED:
            names = {advice.name for advice in planned.demand.settings}
            title = f"It must be told to use {page_label(size)} pages"
            reason = f"{page_label(size)} is not the default size: tell the engine; vm.nr_hugepages is not its pool."
            fix = "Apply the engine settings of this plan" + (
                f" ({', '.join(sorted(names))})." if names else " and name the page size there."
            )
            yield attention(CODE, instance.name, title, reason, fix, evidence=evidence)
        else:
            title = "It finds its page size by itself"
            yield ok(CODE, instance.name, title, "The engine tries every size by itself.", evidence=evidence)
