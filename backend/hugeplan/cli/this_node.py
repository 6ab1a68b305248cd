"""``--node this``: facts and a sample of the machine the command runs on, from /proc and /sys. Nothing is written."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hugeplan.cli import InputError
from hugeplan.planner.model import (
    GlobalPool,
    HardwareFacts,
    NodeFacts,
    NodeSample,
    NumaMemory,
    NumaNode,
    Pool,
    ProcessMemory,
    Source,
)
from hugeplan.planner.pages import canonical_architecture, split_exactly
from hugeplan.scenario_file import with_catalogue

#: Server processes by their name in /proc/PID/comm, and the engine they belong to.
PROCESS_ENGINES: Mapping[str, str] = {
    "postgres": "postgresql",
    "mysqld": "mysql",
    "mariadbd": "mariadb",
    "java": "jvm",
    "db2sysc": "db2",
}
_KIB_LINE = re.compile(r"^(?:Node \d+ )?([\w()]+):\s+(\d+)(?: kB)?\s*$", re.M)
_MAX_PROCESSES = 2000


@dataclass(frozen=True, slots=True)
class Machine:
    """A tree of /proc and /sys: ``/`` for this machine, another folder in tests."""

    root: Path
    arch: str
    base_page_bytes: int

    @classmethod
    def this(cls) -> Machine:
        """The machine the command runs on."""
        return cls(Path("/"), platform.machine(), os.sysconf("SC_PAGE_SIZE"))

    def text(self, path: str) -> str | None:
        """A file's text, None when it cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """A file's whole number, None when there is none."""
        text = self.text(path)
        return int(text) if text is not None and text.isdecimal() else None

    def folders(self, path: str, pattern: str) -> list[Path]:
        """Folders below ``path`` that match, in order of their numbers; none when ``path`` is absent."""
        found = [item for item in (self.root / path).glob(pattern) if item.is_dir()]
        return sorted(found, key=lambda item: [int(n) for n in re.findall(r"\d+", item.name)])


def kib_lines(text: str | None) -> dict[str, int]:
    """``Name: 12 kB`` lines as bytes; HugePages counts (no unit) are left as they are times 1024 and not used."""
    return {name: int(value) * 1024 for name, value in _KIB_LINE.findall(text or "")}


def node_facts(machine: Machine, hardware: HardwareFacts | None = None) -> NodeFacts:
    """Facts of the machine; ``hardware`` from a tlbbench document replaces what /proc/cpuinfo and the catalogue say."""
    memory = kib_lines(machine.text("proc/meminfo"))
    if "MemTotal" not in memory:
        raise InputError("--node this: /proc/meminfo cannot be read; describe the node in a scenario file instead")
    unreclaimable, stacks = memory.get("SUnreclaim"), memory.get("KernelStack")
    sizes = tuple(size for size, _ in _pool_folders(machine, "sys/kernel/mm/hugepages"))
    default = memory.get("Hugepagesize") or (sizes[0] if sizes else 2 * 1024**2)
    return NodeFacts(
        name=platform.node() if machine.root == Path("/") else machine.root.name,
        arch=canonical_architecture(machine.arch),
        base_page_bytes=machine.base_page_bytes,
        huge_page_sizes_bytes=sizes,
        default_huge_page_bytes=default,
        numa=tuple(_numa(machine, memory["MemTotal"])),
        cpus=_cpus(machine),
        kernel_used_bytes=None if unreclaimable is None or stacks is None else unreclaimable + stacks,
        kernel_used_source=Source.MEASURED,
        thp_enabled=_selected(machine.text("sys/kernel/mm/transparent_hugepage/enabled")),
        hvo_enabled=_switch(machine.text("proc/sys/vm/hugetlb_optimize_vmemmap")),
        kernel_release=machine.text("proc/sys/kernel/osrelease"),
        kernel_command_line=machine.text("proc/cmdline"),
        hugetlb_cma_bytes=None,
        hardware=hardware or cpu_facts(machine),
    )


def _pool_folders(machine: Machine, path: str) -> list[tuple[int, Path]]:
    found = []
    for folder in machine.folders(path, "hugepages-*kB"):
        kib = re.fullmatch(r"hugepages-(\d+)kB", folder.name)
        if kib:
            found.append((int(kib[1]) * 1024, folder.relative_to(machine.root)))
    return sorted(found)


def _pools(machine: Machine, path: str) -> tuple[Pool, ...] | None:
    pools = []
    for size, folder in _pool_folders(machine, path):
        count = machine.number(f"{folder}/nr_hugepages")
        if count is None:
            return None
        pools.append(
            Pool(
                page_bytes=size,
                nr_hugepages=count,
                free_hugepages=machine.number(f"{folder}/free_hugepages"),
                surplus_hugepages=machine.number(f"{folder}/surplus_hugepages"),
            )
        )
    return tuple(pools)


def _numa(machine: Machine, mem_total_bytes: int) -> Iterable[NumaNode]:
    """NUMA nodes with memory and their pools; a kernel without NUMA is one node with all memory.

    Per node the kernel counts the pages it managed when the zones were built, MemTotal counts those it has freed to
    itself since; the difference (1 % on some guests) is spread over the nodes so that the ledger sums to MemTotal.
    """
    nodes = []
    for folder in machine.folders("sys/devices/system/node", "node[0-9]*"):
        path = folder.relative_to(machine.root)
        memory = kib_lines(machine.text(f"{path}/meminfo"))
        if memory.get("MemTotal"):
            nodes.append(
                (int(folder.name[4:]), memory["MemTotal"], memory.get("MemFree"), _pools(machine, f"{path}/hugepages"))
            )
    if not nodes:
        yield NumaNode(id=0, mem_total_bytes=mem_total_bytes, pools=_pools(machine, "sys/kernel/mm/hugepages"))
        return
    totals = split_exactly(mem_total_bytes, [total for _, total, _, _ in nodes])
    for (numa_id, _, free, pools), total in zip(nodes, totals, strict=True):
        yield NumaNode(id=numa_id, mem_total_bytes=total, mem_free_bytes=free, pools=pools)


def _cpus(machine: Machine) -> int | None:
    online = machine.text("sys/devices/system/cpu/online")
    if online is None:
        return None
    count = 0
    for part in online.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal():
            return None
        count += int(last or first) - int(first) + 1
    return count


def _selected(text: str | None) -> str | None:
    """``always [madvise] never`` -> ``madvise``."""
    found = re.search(r"\[(\w+)\]", text or "")
    return found[1] if found else None


def _switch(text: str | None) -> bool | None:
    return None if text not in {"0", "1"} else text == "1"


def cpu_facts(machine: Machine) -> HardwareFacts | None:
    """The processor by /proc/cpuinfo, with the catalogue's TLB levels where it is known."""
    text = machine.text("proc/cpuinfo") or ""
    fields = dict(re.findall(r"^(vendor_id|cpu family|model|flags)\s*:\s*(.*)$", text, re.M))
    if "vendor_id" not in fields:
        return None
    facts = HardwareFacts(
        vendor=fields["vendor_id"],
        family=int(fields["cpu family"]) if fields.get("cpu family", "").isdecimal() else None,
        model=int(fields["model"]) if fields.get("model", "").isdecimal() else None,
        virtualised="hypervisor" in fields.get("flags", "").split(),
    )
    return with_catalogue(facts)


def node_sample(machine: Machine, instances: Mapping[str, str]) -> NodeSample:
    """The machine's memory state. ``instances``: engine -> instance name, for engines with exactly one instance."""
    memory = kib_lines(machine.text("proc/meminfo"))
    pools = []
    for size, folder in _pool_folders(machine, "sys/kernel/mm/hugepages"):
        count = machine.number(f"{folder}/nr_hugepages")
        if count is not None:
            pools.append(
                GlobalPool(
                    page_bytes=size,
                    nr_hugepages=count,
                    free_hugepages=machine.number(f"{folder}/free_hugepages"),
                    resv_hugepages=machine.number(f"{folder}/resv_hugepages"),
                    surplus_hugepages=machine.number(f"{folder}/surplus_hugepages"),
                    nr_overcommit_hugepages=machine.number(f"{folder}/nr_overcommit_hugepages"),
                )
            )
    return NodeSample(
        mem_available_bytes=memory.get("MemAvailable"),
        page_tables_bytes=memory.get("PageTables"),
        hugetlb_bytes=memory.get("Hugetlb"),
        anon_huge_pages_bytes=memory.get("AnonHugePages"),
        pools=tuple(pools),
        processes=tuple(_processes(machine, instances)),
        numa=tuple(_numa_memory(machine)),
        thp_enabled=_selected(machine.text("sys/kernel/mm/transparent_hugepage/enabled")),
    )


def _processes(machine: Machine, instances: Mapping[str, str]) -> Iterable[ProcessMemory]:
    """Database server processes that this user may look at."""
    folders = machine.folders("proc", "[0-9]*")[:_MAX_PROCESSES]
    for folder in folders:
        path = folder.relative_to(machine.root)
        engine = PROCESS_ENGINES.get(machine.text(f"{path}/comm") or "")
        if engine is None:
            continue
        status = kib_lines(machine.text(f"{path}/status"))
        yield ProcessMemory(
            name=machine.text(f"{path}/comm") or "",
            instance=instances.get(engine),
            shared_hugetlb_bytes=status.get("HugetlbPages"),
            vm_pte_bytes=status.get("VmPTE"),
            memlock_limit_bytes=_memlock(machine.text(f"{path}/limits")),
        )


def _memlock(text: str | None) -> int | None:
    found = re.search(r"^Max locked memory\s+(\S+)", text or "", re.M)
    if not found:
        return None
    return -1 if found[1] == "unlimited" else int(found[1])


def _numa_memory(machine: Machine) -> Iterable[NumaMemory]:
    """Free memory of each NUMA node and, from /proc/buddyinfo, free blocks by size (zones of a node summed)."""
    blocks: dict[int, dict[int, int]] = {}
    for line in (machine.text("proc/buddyinfo") or "").splitlines():
        found = re.match(r"Node (\d+), zone\s+\S+\s+(.*)", line)
        if not found:
            continue
        own = blocks.setdefault(int(found[1]), {})
        counts = [int(word) for word in found[2].split()]
        for order in range(len(counts)):
            size = machine.base_page_bytes << order
            whole = sum(count << (above - order) for above, count in enumerate(counts) if above >= order)
            own[size] = own.get(size, 0) + whole
    for folder in machine.folders("sys/devices/system/node", "node[0-9]*"):
        numa_id = int(folder.name[4:])
        memory = kib_lines(machine.text(f"{folder.relative_to(machine.root)}/meminfo"))
        yield NumaMemory(id=numa_id, mem_free_bytes=memory.get("MemFree"), free_blocks=blocks.get(numa_id))
