"""Will the kernel take the huge page words of its command line?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, given, ok, unknown, wrong
from hugeplan.planner.memory.kernel_parameters import boot_pools
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import usual_default_size

CODE = "kernel_command_line"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each word that the kernel drops, else one for the node."""
    node = inputs.node
    if node.kernel_command_line is None:
        title = "Whether the kernel takes its huge page words is not known"
        yield unknown(CODE, node.name, title, "The kernel command line is not known.")
        return
    ids = tuple(numa.id for numa in node.numa)
    found = boot_pools(
        node.kernel_command_line,
        node.huge_page_sizes_bytes,
        usual_default_size(node.base_page_bytes, node.huge_page_sizes_bytes),
        ids,
        kernel_release=node.kernel_release,
        arch=node.arch,
    )
    for item in found.ignored:
        title = "The kernel ignores this word of its command line"
        reason = f"The kernel ignores {item.word}: {item.reason}."
        fix = "Write each hugepagesz= once, each followed by one hugepages=; the plan's file has the right order."
        yield wrong(CODE, item.word, title, reason, fix, evidence=(given("word", item.word),))
    if not found.ignored:
        title = "The kernel takes its huge page words"
        yield ok(CODE, node.name, title, "The kernel takes every huge page word of its command line.")
