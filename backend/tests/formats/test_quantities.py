"""Quantities in every notation that the API server reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.formats import quantities
from hugeplan.formats.quantities import huge_page_size, parse_quantity


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("0", 0), ("1", 1), ("128974848", 128974848), ("129e6", 129_000_000), ("129M", 129_000_000),
        ("128974848000m", 128974848), ("123Mi", 123 * 2**20), ("1Gi", 2**30), ("1.5Gi", 3 * 2**29), (".5Gi", 2**29),
        ("5.Gi", 5 * 2**30), ("+5Ki", 5120), ("1E3", 1000), ("1e3", 1000), ("1E", 10**18), ("1Ei", 2**60),
        ("2P", 2 * 10**15), ("1T", 10**12), ("7k", 7000), ("100n", 1), ("1u", 1), ("1m", 1), ("0.5", 1), ("1e-3", 1),
        ("1.1", 2), ("-0", 0), (" 4Gi ", 2**32), (1024, 1024), (1.5, 2), ("24684112Ki", 24684112 * 1024),
    ],
)  # fmt: skip
def test_notations(text: str | int | float, units: int) -> None:
    assert parse_quantity(text) == units


@pytest.mark.parametrize(
    "text",
    ["", " ", "Gi", "1 Gi", "1GB", "1K", "1ki", "1gi", "-1Gi", "1e", "1e3Gi", "--1", "0x10", "NaN", "1e999", "9" * 99],
)
def test_what_is_no_quantity_is_unknown(text: str) -> None:
    assert parse_quantity(text) is None


def test_no_long_text_is_kept() -> None:
    before = quantities._parsed.cache_info().currsize
    assert parse_quantity("1" * 1_000_000 + "Gi") is None
    assert huge_page_size("hugepages-" + "1" * 1_000_000 + "Gi") is None
    assert quantities._parsed.cache_info().currsize == before


@given(st.integers(0, 2**62))
def test_bytes_read_back(count: int) -> None:
    assert parse_quantity(str(count)) == count
    assert parse_quantity(f"{count}m") == -(-count // 1000)
    assert parse_quantity(f"{count}Ki") == min(count * 1024, 2**63 - 1)


@given(st.text(max_size=12))
def test_no_text_raises(text: str) -> None:
    found = parse_quantity(text)
    assert found is None or found >= 0


def test_resource_names_of_huge_pages() -> None:
    assert huge_page_size("hugepages-2Mi") == 2**21
    assert huge_page_size("hugepages-1Gi") == 2**30
    assert huge_page_size("hugepages-64Ki") == 2**16
    assert huge_page_size("memory") is None
    assert huge_page_size("requests.hugepages-2Mi") is None
