"""Page sizes: which exist where, what they are called, and how bytes become pages.

There is one function for each direction of rounding, so that a reader sees at the call which one is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hugeplan.planner.errors import NodeFactsError, PageSizeError
from hugeplan.planner.model import GIB, KIB, MIB
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import format_iec_bytes, format_in_units, format_kubernetes_bytes

#: Huge page sizes the kernel offers, by architecture and base page size (bytes).
#: Sources: arch/x86/mm/hugetlbpage.c (1G needs pdpe1gb); Documentation/arch/arm64/hugetlbpage.rst;
#: arch/powerpc/mm/hugetlbpage.c (hash 16M and 16G, radix 2M and 1G); arch/riscv/mm/hugetlbpage.c (64K with
#: Svnapot); arch/s390/mm/hugetlbpage.c (1M with EDAT1, 2G with EDAT2).
HUGE_PAGE_SIZES: Final[Mapping[tuple[str, int], tuple[int, ...]]] = {
    ("x86_64", 4 * KIB): (2 * MIB, GIB),
    ("aarch64", 4 * KIB): (64 * KIB, 2 * MIB, 32 * MIB, GIB),
    ("aarch64", 16 * KIB): (2 * MIB, 32 * MIB, GIB),
    ("aarch64", 64 * KIB): (2 * MIB, 512 * MIB, 16 * GIB),
    ("ppc64le", 4 * KIB): (2 * MIB, 16 * MIB, GIB, 16 * GIB),
    ("ppc64le", 64 * KIB): (2 * MIB, 16 * MIB, GIB, 16 * GIB),
    ("riscv64", 4 * KIB): (64 * KIB, 2 * MIB, GIB),
    ("s390x", 4 * KIB): (MIB, 2 * GIB),
}

#: Sizes that not every processor of the architecture has (or its hypervisor shows), and the feature that they need.
OF_SOME_PROCESSORS: Final[Mapping[tuple[str, int], str]] = {
    ("x86_64", GIB): "pdpe1gb",
    ("riscv64", 64 * KIB): "Svnapot",
    ("s390x", MIB): "EDAT1",
    ("s390x", 2 * GIB): "EDAT2",
}

#: POWER has these with hash page tables, and 2M and 1G with radix ones; a kernel runs with one of the two.
POWER_HASH_SIZES: Final = frozenset({16 * MIB, 16 * GIB})

#: The kernel's default huge page size by base page size: its PMD size, base page / 8 entries times the base page.
#: POWER's radix has 2M and IBM Z 1M at this level, the smallest sizes in the table above.
_PMD_SIZES: Final[Mapping[int, int]] = {4 * KIB: 2 * MIB, 16 * KIB: 32 * MIB, 64 * KIB: 512 * MIB}

#: Names people use for the architectures above.
ARCHITECTURE_ALIASES: Final[Mapping[str, str]] = {
    "amd64": "x86_64",
    "arm64": "aarch64",
    "ppc64": "ppc64le",
    "powerpc64le": "ppc64le",
    "riscv": "riscv64",
    "s390": "s390x",
}


def canonical_architecture(arch: str, field: str = "arch") -> str:
    """The kernel's name of an architecture (``arm64`` -> ``aarch64``)."""
    name = ARCHITECTURE_ALIASES.get(arch.lower(), arch.lower())
    known = sorted({key[0] for key in HUGE_PAGE_SIZES})
    if name not in known:
        raise PageSizeError(field, arch, f"one of {', '.join(known)}")
    return name


def base_page_sizes(arch: str) -> tuple[int, ...]:
    """Base page sizes (bytes) an architecture's kernels are built with."""
    name = canonical_architecture(arch)
    return tuple(base for known, base in HUGE_PAGE_SIZES if known == name)


def huge_page_sizes(arch: str, base_page_bytes: int) -> tuple[int, ...]:
    """Huge page sizes (bytes, ascending) that the kernel of an architecture can offer at a base page size."""
    name = canonical_architecture(arch)
    sizes = HUGE_PAGE_SIZES.get((name, base_page_bytes))
    if sizes is None:
        allowed = ", ".join(format_iec_bytes(size) for size in base_page_sizes(arch))
        raise PageSizeError("base_page_size", format_iec_bytes(base_page_bytes), f"{allowed} on {name}")
    return sizes


def kernel_page_sizes(arch: str, base_page_bytes: int) -> tuple[int, ...]:
    """The sizes of a kernel that did not list its own: on POWER those of radix page tables, the usual ones."""
    left_out = POWER_HASH_SIZES if canonical_architecture(arch) == "ppc64le" else frozenset()
    return tuple(size for size in huge_page_sizes(arch, base_page_bytes) if size not in left_out)


def usual_default_size(base_page_bytes: int, sizes_bytes: Sequence[int]) -> int:
    """The kernel's default huge page size where ``default_hugepagesz`` does not name one.

    ``sizes_bytes``: the huge page sizes of the node, in any order. Where the PMD size is not among them, the smallest.
    """
    usual = _PMD_SIZES.get(base_page_bytes, 2 * MIB)
    return usual if usual in sizes_bytes or not sizes_bytes else min(sizes_bytes)


def require_huge_page_size(page_bytes: int, arch: str, base_page_bytes: int, field: str = "page_size") -> int:
    """``page_bytes`` if the architecture has it at this base page size, else a PageSizeError with the list."""
    sizes = huge_page_sizes(arch, base_page_bytes)
    if page_bytes not in sizes:
        allowed = ", ".join(page_label(size) for size in sizes)
        raise PageSizeError(
            field,
            page_label(page_bytes),
            f"{allowed} on {canonical_architecture(arch)} with {page_label(base_page_bytes)} base pages",
        )
    return page_bytes


def ceil_pages(size_bytes: int, page_bytes: int) -> int:
    """Pages that hold ``size_bytes``: the reservation's direction, a started page is a whole page."""
    return -(-size_bytes // page_bytes)


def floor_pages(size_bytes: int, page_bytes: int) -> int:
    """Whole pages inside ``size_bytes``: the fitting direction, never more than there is."""
    return size_bytes // page_bytes


def ceil_to_multiple(size_bytes: int, unit_bytes: int) -> int:
    """The smallest multiple of ``unit_bytes`` that is at least ``size_bytes``."""
    return -(-size_bytes // unit_bytes) * unit_bytes


def floor_to_multiple(size_bytes: int, unit_bytes: int) -> int:
    """The largest multiple of ``unit_bytes`` that is at most ``size_bytes``."""
    return size_bytes // unit_bytes * unit_bytes


@remembered(256)
def page_label(page_bytes: int) -> str:
    """The short name of a page size: ``4K``, ``64K``, ``2M``, ``1G``."""
    return format_in_units(page_bytes, (("G", GIB), ("M", MIB), ("K", KIB), ("", 1)))


def counted_pages(pages: int, page_bytes: int) -> str:
    """``1 page of 1G``, ``10,758 pages of 2M``."""
    return f"{pages:,} page{'' if pages == 1 else 's'} of {page_label(page_bytes)}"


def kubernetes_resource_name(page_bytes: int) -> str:
    """``hugepages-2Mi`` and so on: the most compact binary quantity (helper.HugePageResourceName)."""
    return f"hugepages-{format_kubernetes_bytes(page_bytes)}"


def sysfs_directory_name(page_bytes: int) -> str:
    """The directory under /sys/kernel/mm/hugepages: ``hugepages-2048kB``."""
    return f"hugepages-{page_bytes // KIB}kB"


def split_exactly(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """``total`` split in proportion to non-negative ``weights``; whole bytes that sum to ``total`` exactly.

    Largest remainders get the odd bytes, earlier shares first. All weights zero: an even split.
    """
    if not weights:
        raise NodeFactsError("numa", "none", "at least one NUMA node")
    if len(weights) == 1:
        return (total,)
    whole = sum(weights)
    if whole <= 0:
        weights, whole = [1] * len(weights), len(weights)
    shares = [total * weight // whole for weight in weights]
    rest = total - sum(shares)
    if not rest:
        return tuple(shares)
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[:rest]:
        shares[i] += 1
    return tuple(shares)
