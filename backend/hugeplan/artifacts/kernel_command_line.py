"""Kernel command line: the pools reserved at boot, in the order that mm/hugetlb.c parses.

Each hugepages= follows its hugepagesz=; counts per NUMA node are written ``node:count`` (Linux 5.16 and later) and
never mixed with plain counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, count_path, one_line, pages_by_size
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.pages import page_label

PATH = "/etc/default/grub.d/60-hugeplan.cfg"


def parameters(plan: Plan, request: PlanRequest) -> str:
    """The parameters alone: ``default_hugepagesz=2M hugepagesz=2M hugepages=0:512,1:512``."""
    node = request.node
    words = [f"default_hugepagesz={page_label(node.default_huge_page_bytes)}"]
    for size, by_node in pages_by_size(plan).items():
        if not any(by_node.values()):
            continue
        counts = ",".join(f"{numa}:{pages}" for numa, pages in by_node.items() if pages)
        plain = len(node.numa) == 1
        words.append(f"hugepagesz={page_label(size)}")
        words.append(f"hugepages={sum(by_node.values()) if plain else counts}")
    if node.thp_enabled == "always" and any(i.page_bytes for i in plan.instances):
        words.append("transparent_hugepage=madvise")
    return " ".join(words)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """A GRUB fragment, when the plan reserves anything."""
    sizes = {size: by_node for size, by_node in pages_by_size(plan).items() if any(by_node.values())}
    if not sizes:
        return
    text = parameters(plan, request)
    lines = [
        f"# {PATH}: pools of {one_line(plan.node)}, reserved at boot",
        "# Then run update-grub (or grub2-mkconfig, or kernelopts of your boot loader) and reboot.",
        "# Remove other hugepages= and hugepagesz= words first: the kernel reads them in order.",
    ]
    if len(request.node.numa) > 1:
        lines.append("# Counts per NUMA node (node:count) need Linux 5.16 or later.")
    lines += [f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {text}"', ""]
    checks = [
        f'test "$(cat {count_path(numa, size)})" -eq {pages}'
        for size, by_node in sizes.items()
        for numa, pages in by_node.items()
    ]
    yield Artifact(
        kind="kernel_command_line",
        filename="60-hugeplan.cfg",
        media_type="text/plain",
        content="\n".join(lines),
        verify="\n".join(["cat /proc/cmdline", *checks]),
        rollback=f"rm -f {PATH}\nupdate-grub\nreboot",
    )
