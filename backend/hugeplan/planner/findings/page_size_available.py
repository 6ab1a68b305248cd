"""Is the chosen page size available on this node at all?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import DemandContext, as_found
from hugeplan.planner.findings.base import FindingInputs, attention, ok, unknown, wrong
from hugeplan.planner.model import GIB, Finding
from hugeplan.planner.pages import OF_SOME_PROCESSORS, page_label

CODE = "page_size_not_available"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool, and each that has none for the page size that its settings name."""
    context = DemandContext.of_node(inputs.node)
    for instance in inputs.request.databases:
        why = as_found(instance, context)[1] if instance.page_bytes == 0 else None
        if why is not None:
            fix = "Name a page size that the node has, or none."
            yield attention(
                CODE, instance.name, "Its settings name a page size that the node lacks", f"Its {why}.", fix
            )
    listed = {pool.page_bytes for numa in inputs.node.numa for pool in numa.pools or ()}
    listed |= {pool.page_bytes for pool in (inputs.sample.pools if inputs.sample else None) or ()}
    for instance, planned in inputs.with_pool:
        feature = OF_SOME_PROCESSORS.get((inputs.node.arch, planned.demand.page_bytes))
        obstacle = inputs.obstacles.get(instance.name)
        label = page_label(planned.demand.page_bytes)
        if obstacle is not None:
            fix = "Let the planner choose the size (page_size: auto), or change the node as the reason says."
            yield wrong(CODE, instance.name, f"{label} pages are not available to it", f"{obstacle}.", fix)
        elif inputs.node.arch == "ppc64le" and planned.demand.page_bytes == 16 * GIB:
            fix = "Define the pages for the partition in the management console and activate it again."
            title = "16G pages must be defined in the management console"
            yield attention(CODE, instance.name, title, "16G pages come from the hypervisor, not from Linux.", fix)
        elif feature is not None and planned.demand.page_bytes not in listed:
            title = f"Whether the processor has {label} pages is not known"
            reason = (
                f"{label} pages need {feature}, which not every processor or hypervisor has, and no pool was listed."
            )
            fix = f"Look for {feature} in /proc/cpuinfo, or report the node with the agent."
            yield unknown(CODE, instance.name, title, reason, fix)
        else:
            yield ok(CODE, instance.name, f"{label} pages are available", f"{label} pages are available here.")
