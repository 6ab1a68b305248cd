"""Page sizes per architecture, names, and rounding in each direction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner import pages
from hugeplan.planner.errors import PageSizeError
from hugeplan.planner.model import GIB, KIB, MIB

PAGE_SIZES = st.sampled_from([64 * KIB, 2 * MIB, 16 * MIB, 32 * MIB, 512 * MIB, GIB, 16 * GIB])


@pytest.mark.parametrize(
    ("arch", "base", "sizes"),
    [
        ("x86_64", 4 * KIB, (2 * MIB, GIB)),
        ("aarch64", 4 * KIB, (64 * KIB, 2 * MIB, 32 * MIB, GIB)),
        ("arm64", 16 * KIB, (2 * MIB, 32 * MIB, GIB)),
        ("aarch64", 64 * KIB, (2 * MIB, 512 * MIB, 16 * GIB)),
        ("ppc64le", 64 * KIB, (2 * MIB, 16 * MIB, GIB, 16 * GIB)),
        ("riscv64", 4 * KIB, (64 * KIB, 2 * MIB, GIB)),
        ("s390x", 4 * KIB, (MIB, 2 * GIB)),
    ],
)
def test_huge_page_sizes(arch: str, base: int, sizes: tuple[int, ...]) -> None:
    assert pages.huge_page_sizes(arch, base) == sizes


def test_unknown_architecture_and_sizes_are_named() -> None:
    with pytest.raises(PageSizeError, match="sparc"):
        pages.huge_page_sizes("sparc", 4 * KIB)
    with pytest.raises(PageSizeError, match="64KiB"):
        pages.huge_page_sizes("x86_64", 64 * KIB)
    with pytest.raises(PageSizeError, match="2M, 1G"):
        pages.require_huge_page_size(16 * MIB, "x86_64", 4 * KIB)
    assert pages.require_huge_page_size(GIB, "x86_64", 4 * KIB) == GIB


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (64 * KIB, "hugepages-64Ki"),
        (MIB, "hugepages-1Mi"),
        (2 * MIB, "hugepages-2Mi"),
        (16 * MIB, "hugepages-16Mi"),
        (32 * MIB, "hugepages-32Mi"),
        (512 * MIB, "hugepages-512Mi"),
        (GIB, "hugepages-1Gi"),
        (2 * GIB, "hugepages-2Gi"),
        (16 * GIB, "hugepages-16Gi"),
    ],
)
def test_kubernetes_resource_names(size: int, name: str) -> None:
    assert pages.kubernetes_resource_name(size) == name


def test_counts_in_words() -> None:
    assert pages.counted_pages(1, GIB) == "1 page of 1G"
    assert pages.counted_pages(0, 2 * MIB) == "0 pages of 2M"
    assert pages.counted_pages(4096, 2 * MIB) == "4,096 pages of 2M"


def test_names_of_the_kernel() -> None:
    assert pages.sysfs_directory_name(2 * MIB) == "hugepages-2048kB"
    assert pages.sysfs_directory_name(GIB) == "hugepages-1048576kB"
    assert [pages.page_label(size) for size in (4 * KIB, 2 * MIB, GIB)] == ["4K", "2M", "1G"]


@given(st.integers(min_value=0, max_value=2**50), PAGE_SIZES)
def test_rounding_brackets_the_size(size: int, page: int) -> None:
    assert pages.floor_pages(size, page) * page <= size <= pages.ceil_pages(size, page) * page
    assert pages.ceil_pages(size, page) - pages.floor_pages(size, page) == (size % page != 0)
    assert pages.floor_to_multiple(size, page) <= size <= pages.ceil_to_multiple(size, page)
