"""sysctl.d: the pool of the kernel's default huge page size, and sysctls that engines ask for.

vm.nr_hugepages is the total over all NUMA nodes and only ever means the default size
(Documentation/admin-guide/mm/hugetlbpage.rst); other sizes and per-node counts are in the NUMA files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hugeplan.artifacts.base import Artifact, all_of, one_line, pages_by_size, previous_pages, put, put_back
from hugeplan.artifacts.kernel_command_line import wants_hvo
from hugeplan.planner.demand import engine_named
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.pages import page_label

PATH = "/etc/sysctl.d/60-hugeplan.conf"
#: Since Linux 5.19 (Documentation/admin-guide/sysctl/vm.rst); a node where it reads 0 has it.
_HVO = "vm.hugetlb_optimize_vmemmap"


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The file, when the plan has pages of the default size, releases some, or an engine asks for a sysctl."""
    default = request.node.default_huge_page_bytes
    by_node = pages_by_size(plan).get(default)
    engines = _engine_settings(plan)
    if by_node is None and not engines:
        return
    lines = [f"# {PATH}: {one_line(plan.node)}; apply with: sysctl --load={PATH}"]
    hvo = by_node is not None and wants_hvo(plan, request)
    if hvo:
        lines += [
            "# Before the count: only pages that are allocated later give their struct pages back.",
            f"{_HVO} = 1",
        ]
    if by_node is not None:
        lines += _pool_lines(by_node, default, several=len(request.node.numa) > 1)
    for name, value, instance in engines:
        lines += [f"# {one_line(instance)}", f"{name} = {value}"]
    if any(
        one.page_bytes and engine_named(one.engine).locks_segment(one.demand.version or "") for one in plan.instances
    ):
        lines.append("# vm.hugetlb_shm_group: left out, the server's group id is not in the plan; shmget needs it.")
    content = "\n".join([*lines, ""])
    checks = [f'test "$(sysctl -n {name})" -ge {value}' for name, value, _ in engines]
    undo = []
    if by_node is not None:
        checks.insert(0, f'test "$(sysctl -n vm.nr_hugepages)" -eq {sum(by_node.values())}')
        undo += _rollback(plan, request, default)
    if hvo:
        checks.append(f'test "$(sysctl -n {_HVO})" -eq 1')
        undo.append(f"sysctl -w {_HVO}=0")
    yield Artifact(
        kind="sysctl",
        filename="60-hugeplan.conf",
        path=PATH,
        content=content,
        summary="Sets the pool of the default page size and the engines' sysctls, now and at each boot.",
        install=all_of([put("60-hugeplan.conf", PATH, content), f"sysctl --load={PATH}"]),
        verify=all_of(checks),
        rollback=put_back(PATH, content, *undo),
        avoid_when="Counts differ per NUMA node, or the size is not the default one: then use the systemd unit.",
    )


def _pool_lines(by_node: Mapping[int, int], default: int, *, several: bool) -> list[str]:
    lines = [f"# Huge pages of the default size, {page_label(default)}."]
    if several:
        counts = ", ".join(f"node {numa}: {pages}" for numa, pages in by_node.items())
        lines.append(f"# The kernel spreads this total over NUMA nodes by itself; the plan wants {counts}.")
        lines.append("# Use the systemd unit instead where the counts differ.")
    return [*lines, f"vm.nr_hugepages = {sum(by_node.values())}", "vm.nr_overcommit_hugepages = 0"]


def _engine_settings(plan: Plan) -> list[tuple[str, int, str]]:
    """Sysctls that engines ask for: the largest value of each, with who asks for it."""
    largest: dict[str, tuple[int, str]] = {}
    for planned in plan.instances:
        for advice in planned.demand.settings:
            if advice.name.startswith(("kernel.", "vm.")) and advice.value.isdecimal():
                asked = (int(advice.value), f"{planned.name}: {advice.reason}")
                largest[advice.name] = max(largest.get(advice.name, asked), asked)
    return [(name, value, who) for name, (value, who) in largest.items()]


def _rollback(plan: Plan, request: PlanRequest, page_bytes: int) -> list[str]:
    """The previous counts; what is not known is left as it is."""
    before = [previous_pages(pool) for pool in plan.pools if pool.page_bytes == page_bytes]
    undo = ["# the previous vm.nr_hugepages is not known: left as it is"]
    if None not in before:
        undo = [f"sysctl -w vm.nr_hugepages={sum(pages or 0 for pages in before)}"]
    pools = request.sample.pools if request.sample is not None else None
    overcommit = next((pool.nr_overcommit_hugepages for pool in pools or () if pool.page_bytes == page_bytes), None)
    if overcommit is None:
        return [*undo, "# the previous vm.nr_overcommit_hugepages is not known: left as it is"]
    return [*undo, f"sysctl -w vm.nr_overcommit_hugepages={overcommit}"]
