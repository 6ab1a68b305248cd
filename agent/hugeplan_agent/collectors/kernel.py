"""The kernel: release, command line, and whether it frees the page structures of hugetlb pages (HVO)."""

from __future__ import annotations

import re

from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import BOOLEAN, TEXT, about, text

RELEVANT = re.compile(
    r"default_hugepagesz|hugepagesz|hugepages|hugetlb_\w+|transparent_hugepage\w*|thp_\w+|memhp_default_state"
    r"|mem|memmap|movablecore|kernelcore|movable_node|cma|numa|numa_balancing|cgroup_disable|cgroup_enable"
    r"|cgroup_no_v1|systemd\.unified_cgroup_hierarchy|swapaccount|psi|nokaslr|gbpages|nogbpages|iommu|intel_iommu"
)
"""Parameters that decide how many huge pages there are or what they cost. Hyphens and underscores are the same."""

WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


def relevant_words(command_line: str) -> str:
    """The words of a kernel command line that concern huge pages and memory, in their order.

    The rest may hold addresses and secrets. Words after ``--`` are arguments of init.
    """
    kept = []
    for word in WORD.findall(command_line):
        if word == "--":
            break
        name = word.partition("=")[0].strip('"').replace("-", "_")
        if RELEVANT.fullmatch(name):
            kept.append(word)
    return " ".join(kept)


def hvo_enabled(host: Host) -> bool | None:
    """HugeTLB vmemmap optimisation; None when the kernel does not say.

    Source: Documentation/admin-guide/sysctl/vm.rst, hugetlb_optimize_vmemmap.
    """
    value = host.read_int("proc/sys/vm/hugetlb_optimize_vmemmap")
    return None if value is None else value != 0


def collect(host: Host) -> Fragment:
    line = host.read_optional("proc/cmdline")
    return Fragment(
        {
            "kernel_release": host.read("proc/sys/kernel/osrelease").strip(),
            "kernel_command_line": None if line is None else relevant_words(line),
            "kernel_command_line_filtered": True,
            "hvo_enabled": hvo_enabled(host),
        }
    )


COLLECTOR = Collector(
    collect,
    inventory={
        "kernel_release": TEXT,
        "kernel_command_line": about(
            text(16384),
            "The words of the command line that concern huge pages and memory, in their order; the whole "
            "line from agents that do not say kernel_command_line_filtered",
        ),
        "kernel_command_line_filtered": about(BOOLEAN, "True when words that do not concern huge pages were left out"),
        "hvo_enabled": {"type": ["boolean", "null"]},
    },
)
