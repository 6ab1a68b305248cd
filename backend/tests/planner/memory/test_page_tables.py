"""Page-table bytes against oracle 3 of the translation sheet, and the laws of a radix tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.page_tables import leaf_entry_bytes, page_table_bytes, table_levels

K4, M2, G1 = 4096, 2 << 20, 1 << 30
MIB = 1 << 20


def leaf_bytes(segment_bytes: int, page_bytes: int) -> float:
    """Leaf-level bytes of one process that has touched all of the segment, as the sheet has it: ``8 F / P``."""
    return 8 * segment_bytes / leaf_entry_bytes(page_bytes)


@pytest.mark.parametrize(
    ("segment_bytes", "pages_4k", "leaf_4k_mib", "pages_2m", "leaf_2m_mib", "pages_1g"),
    [
        (12_800_000_000, 3_125_000, 23.8419, 6_104, 0.0466, 12),
        (819_200_000_000, 200_000_000, 1525.8789, 390_625, 2.9802, 763),
        (64 * G1, 16_777_216, 128, 32_768, 0.25, 64),
    ],
)
def test_oracle_3_leaf_tables(
    *, segment_bytes: int, pages_4k: int, leaf_4k_mib: float, pages_2m: int, leaf_2m_mib: float, pages_1g: int
) -> None:
    assert table_levels(segment_bytes, K4)[0].entries == pages_4k
    assert table_levels(segment_bytes, M2)[0].entries == pages_2m
    assert table_levels(segment_bytes, G1)[0].entries == pages_1g
    assert round(leaf_bytes(segment_bytes, K4) / MIB, 4) == leaf_4k_mib
    assert round(leaf_bytes(segment_bytes, M2) / MIB, 4) == leaf_2m_mib


@pytest.mark.parametrize(
    ("segment_bytes", "connections", "leaf_4k", "leaf_2m"),
    [
        (64 * G1, 500, 62.5 * G1, 125 * MIB),
        (8 * G1, 100, 1.5625 * G1, 3.125 * MIB),
        (16 * G1, 80, 2.5 * G1, 5 * MIB),
    ],
)
def test_oracle_3_private_tables(segment_bytes: int, connections: int, leaf_4k: float, leaf_2m: float) -> None:
    assert connections * leaf_bytes(segment_bytes, K4) == leaf_4k
    assert connections * leaf_bytes(segment_bytes, M2) == leaf_2m


def test_exact_levels_of_8_gib() -> None:
    """8 GiB of 4K pages: 4096 leaf tables, 8 of the next level, 1 above; 2M: 8 + 1; 1G: 1."""
    assert page_table_bytes(8 * G1, K4) == (4096 + 8 + 1) * 4096
    assert page_table_bytes(8 * G1, M2) == (8 + 1) * 4096
    assert page_table_bytes(8 * G1, G1) == 4096
    assert page_table_bytes(8 * G1, K4, processes=100) == 100 * (4096 + 8 + 1) * 4096
    assert page_table_bytes(8 * G1, M2, processes=100, shared_leaf=True) == (8 + 100) * 4096


def test_contiguous_pages_save_no_table_memory() -> None:
    """Arm 64K over a 4K base and 2M over a 64K base are runs of base entries."""
    assert leaf_entry_bytes(64 << 10, 4096, "aarch64") == 4096
    assert page_table_bytes(G1, 64 << 10, 4096, arch="aarch64") == page_table_bytes(G1, 4096, 4096, arch="aarch64")
    assert leaf_entry_bytes(M2, 64 << 10, "aarch64") == 64 << 10
    assert leaf_entry_bytes(512 << 20, 64 << 10, "aarch64") == 512 << 20


def test_power_and_z_have_their_own_spans() -> None:
    assert leaf_entry_bytes(M2, 64 << 10, "ppc64le") == M2
    assert leaf_entry_bytes(G1, 64 << 10, "ppc64le") == G1
    assert leaf_entry_bytes(1 << 20, 4096, "s390x") == 1 << 20


@given(
    segment=st.integers(1, 1 << 44),
    page=st.sampled_from([K4, M2, G1]),
    processes=st.integers(1, 5000),
)
def test_laws(segment: int, page: int, processes: int) -> None:
    """At least the entries, never above entries + one table a level; linear in processes; smaller for larger pages."""
    one = page_table_bytes(segment, page)
    entries = sum(level.entries * 8 for level in table_levels(segment, page))
    assert entries <= one < entries + 4096 * len(table_levels(segment, page))
    assert page_table_bytes(segment, page, processes=processes) == processes * one
    assert page_table_bytes(segment, K4) >= page_table_bytes(segment, M2) >= page_table_bytes(segment, G1)


def test_errors_name_the_field() -> None:
    with pytest.raises(PlannerError, match="touched_fraction"):
        page_table_bytes(G1, K4, touched_fraction=1.5)
    with pytest.raises(PlannerError, match="page_bytes"):
        page_table_bytes(G1, 1024)


def test_what_no_kernel_has_is_refused_by_name() -> None:
    for field, call in {
        "base_page_bytes": lambda: leaf_entry_bytes(M2, base_page_bytes=5000),
        "page_bytes": lambda: leaf_entry_bytes(K4, base_page_bytes=16 * K4),
        "segment_bytes": lambda: table_levels(-1, K4),
        "processes": lambda: page_table_bytes(G1, K4, processes=-1),
        "touched_fraction": lambda: page_table_bytes(G1, K4, touched_fraction=1.1),
    }.items():
        with pytest.raises(PlannerError) as refused:
            call()
        assert refused.value.field == field
