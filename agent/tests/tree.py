"""Captured machines as readable text: one file holds a tree of /proc and /sys.

Format: a line ``=== path`` opens a file, the lines below are its content; ``=== path -> target`` is a symbolic link.
Write one from a machine with ``python tests/tree.py capture > machine.tree`` (no root needed; no arguments,
environment, host name or machine id is taken).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HEADER = re.compile(r"^=== (\S+)(?: -> (\S+))?$")
FILES = (
    "proc/meminfo",
    "proc/vmstat",
    "proc/self/smaps",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/arch",
    "proc/sys/vm/hugetlb_optimize_vmemmap",
    "sys/devices/system/cpu/online",
    "sys/hypervisor/type",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/fs/cgroup/cgroup.controllers",
)
GLOBS = (
    "sys/kernel/mm/transparent_hugepage/*enabled",
    "sys/kernel/mm/transparent_hugepage/defrag",
    "sys/kernel/mm/hugepages/hugepages-*/*",
    "sys/devices/system/node/node*/meminfo",
    "sys/devices/system/node/node*/cpulist",
    "sys/devices/system/node/node*/hugepages/hugepages-*/*",
)
KEEP = {"proc/self/smaps": re.compile(r"KernelPageSize:")}
"""Of a file with names of other files in it, only the lines that matter."""


def expand(text: str, folder: Path) -> None:
    """Write the tree below ``folder``."""
    target: Path | None = None
    lines: list[str] = []

    def close() -> None:
        if target is not None:
            target.write_text("".join(f"{line}\n" for line in lines))

    for line in text.splitlines():
        match = HEADER.match(line)
        if match is None:
            lines.append(line)
            continue
        close()
        target, lines = folder / match[1], []
        target.parent.mkdir(parents=True, exist_ok=True)
        if match[2]:
            target.symlink_to(match[2])
            target = None
    close()


def capture(root: Path) -> str:
    """The tree of the machine below ``root``."""
    names = [*FILES, *(str(path.relative_to(root)) for pattern in GLOBS for path in sorted(root.glob(pattern)))]
    parts = []
    for name in names:
        try:
            content = (root / name).read_text(errors="replace").splitlines()
        except OSError:
            continue
        keep = KEEP.get(name)
        parts += [f"=== {name}", *([line for line in content if keep.match(line)][:1] if keep else content)]
    cpuinfo = (root / "proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    return "\n".join([*parts, "=== proc/cpuinfo", *cpuinfo]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["capture"]:
        sys.exit("usage: python tests/tree.py capture > machine.tree")
    sys.stdout.write(capture(Path("/")))
