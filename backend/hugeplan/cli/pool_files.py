"""The kernel's files of one node's pools: read, write, compact. One place that writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hugeplan.planner.pages import sysfs_directory_name


class PoolError(Exception):
    """A pool cannot be read or written; one sentence."""


@dataclass(frozen=True, slots=True)
class Counts:
    """One pool's counters in pages: persistent ones (without surplus), and free ones."""

    pages: int
    free: int


@dataclass(frozen=True, slots=True)
class PoolFiles:
    """Pools below ``root``: ``/`` for this node, another folder in tests."""

    root: Path

    def folder(self, numa_node: int, page_bytes: int) -> Path:
        """The kernel's folder of a pool; a kernel without NUMA has one for the whole node."""
        name = sysfs_directory_name(page_bytes)
        per_node = self.root / f"sys/devices/system/node/node{numa_node}/hugepages" / name
        whole = self.root / "sys/kernel/mm/hugepages" / name
        if not per_node.is_dir() and numa_node == 0 and not (self.root / "sys/devices/system/node").is_dir():
            return whole
        return per_node

    def counts(self, numa_node: int, page_bytes: int) -> Counts:
        """The counters now."""
        folder = self.folder(numa_node, page_bytes)
        total, free = self._number(folder / "nr_hugepages"), self._number(folder / "free_hugepages")
        surplus = folder / "surplus_hugepages"
        return Counts(total - (self._number(surplus) if surplus.exists() else 0), free)

    def reserved(self, page_bytes: int) -> int:
        """Pages that mappings have reserved and not touched yet, on the whole node."""
        path = self.root / "sys/kernel/mm/hugepages" / sysfs_directory_name(page_bytes) / "resv_hugepages"
        return self._number(path) if path.exists() else 0

    def write(self, numa_node: int, page_bytes: int, pages: int) -> int:
        """Ask for ``pages``; the count that is allocated afterwards, which may be another."""
        path = self.folder(numa_node, page_bytes) / "nr_hugepages"
        try:
            path.write_text(f"{pages}\n", encoding="ascii")
        except OSError as error:
            raise PoolError(f"{path}: {error.strerror}") from error
        return self.counts(numa_node, page_bytes).pages

    def compact(self) -> None:
        """Ask the kernel to compact memory; a kernel without compaction has no such file."""
        path = self.root / "proc/sys/vm/compact_memory"
        if path.exists():
            try:
                path.write_text("1\n", encoding="ascii")
            except OSError as error:
                raise PoolError(f"{path}: {error.strerror}") from error

    @staticmethod
    def _number(path: Path) -> int:
        try:
            return int(path.read_text(encoding="ascii"))
        except OSError as error:
            raise PoolError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise PoolError(f"{path}: not a number") from error
