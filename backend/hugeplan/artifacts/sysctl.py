"""sysctl.d: the pool of the kernel's default huge page size.

vm.nr_hugepages is the total over all NUMA nodes and only ever means the default size
(Documentation/admin-guide/mm/hugetlbpage.rst); other sizes and per-node counts are in the NUMA script.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, one_line, pages_by_size
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.pages import page_label

PATH = "/etc/sysctl.d/60-hugeplan.conf"


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The file, when the plan has pages of the default size or releases some."""
    default = request.node.default_huge_page_bytes
    by_node = pages_by_size(plan).get(default)
    if by_node is None:
        return
    total = sum(by_node.values())
    lines = [
        f"# {PATH}: huge pages of the default size ({page_label(default)}) on {one_line(plan.node)}",
        f"# Apply with: sysctl --load={PATH}",
    ]
    if len(request.node.numa) > 1:
        counts = ", ".join(f"node {numa}: {pages}" for numa, pages in by_node.items())
        lines.append(f"# The kernel spreads this total over NUMA nodes by itself; the plan wants {counts}.")
        lines.append("# Use the NUMA script instead where the counts differ.")
    lines += [f"vm.nr_hugepages = {total}", "vm.nr_overcommit_hugepages = 0", ""]
    yield Artifact(
        kind="sysctl",
        filename="60-hugeplan.conf",
        media_type="text/plain",
        content="\n".join(lines),
        verify=f'test "$(sysctl -n vm.nr_hugepages)" -eq {total}',
        rollback=f"rm -f {PATH}\nsysctl -w vm.nr_hugepages={_present(plan, default)}",
    )


def _present(plan: Plan, page_bytes: int) -> int:
    """Pages to go back to: what stands today, none where that is not known."""
    return sum(pool.present_pages or 0 for pool in plan.pools if pool.page_bytes == page_bytes)
