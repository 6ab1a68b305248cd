"""The kernel: release, command line, and whether it frees the page structures of hugetlb pages (HVO)."""

from __future__ import annotations

from hugeplan_agent.fragment import Fragment
from hugeplan_agent.host import Host


def hvo_enabled(host: Host) -> bool | None:
    """HugeTLB vmemmap optimisation; None when the kernel does not say.

    Source: Documentation/admin-guide/sysctl/vm.rst, hugetlb_optimize_vmemmap.
    """
    value = host.read_int("proc/sys/vm/hugetlb_optimize_vmemmap")
    return None if value is None else value != 0


def collect(host: Host) -> Fragment:
    return Fragment(
        {
            "kernel_release": host.read("proc/sys/kernel/osrelease").strip(),
            "kernel_command_line": host.read_optional("proc/cmdline"),
            "hvo_enabled": hvo_enabled(host),
        }
    )
