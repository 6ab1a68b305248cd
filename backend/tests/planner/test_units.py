"""Sizes as people write them, one dialect at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner import units
from hugeplan.planner.errors import UnitError
from hugeplan.planner.model import GIB, KIB, MIB, subject_words

_VECTORS = Path(__file__).parents[3] / "frontend/src/lib/units.golden.json"


_FORMATTERS: dict[str, Callable[..., str]] = {
    "bytes": units.format_bytes,
    "percent_change": units.format_change,
    "share": units.format_share,
    "chance": units.format_chance,
    "subjects": subject_words,
}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (name, value, text)
        for name, vectors in json.loads(_VECTORS.read_text()).items()
        if name in _FORMATTERS
        for value, text in vectors
        if value is not None
    ],
)
def test_a_value_reads_as_in_the_dashboard(name: str, value: float | str, text: str) -> None:
    """The same vectors test the dashboard's formatters (frontend/src/lib/units.test.ts)."""
    assert _FORMATTERS[name](value) == text


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (units.parse_iec_bytes, "64GiB", 64 * GIB),
        (units.parse_iec_bytes, "1.5 GiB", 3 * GIB // 2),
        (units.parse_iec_bytes, "4096", 4096),
        (units.parse_iec_bytes, 4096, 4096),
        (units.parse_kubernetes_bytes, "512Mi", 512 * MIB),
        (units.parse_kubernetes_bytes, "2Gi", 2 * GIB),
        (units.parse_kubernetes_bytes, "1G", 10**9),
        (units.parse_kubernetes_bytes, "1.5Gi", 3 * GIB // 2),
        (units.parse_kubernetes_bytes, "1e9", 10**9),
        (units.parse_kubernetes_bytes, "128974848", 128974848),
        (units.parse_mysql_bytes, "64G", 64 * GIB),
        (units.parse_mysql_bytes, "512m", 512 * MIB),
        (units.parse_mysql_bytes, "134217728", 128 * MIB),
        (units.parse_jvm_bytes, "8g", 8 * GIB),
        (units.parse_jvm_bytes, "512M", 512 * MIB),
        (units.parse_oracle_bytes, "8G", 8 * GIB),
        (units.parse_page_size, "2M", 2 * MIB),
        (units.parse_page_size, "2MiB", 2 * MIB),
        (units.parse_page_size, "2MB", 2 * MIB),
        (units.parse_page_size, "2048kB", 2 * MIB),
        (units.parse_page_size, "2097152", 2 * MIB),
        (units.parse_page_size, "1G", GIB),
        (units.parse_page_size, "64K", 64 * KIB),
    ],
)
def test_accepted(parse: Callable[[str, str], int], text: str, expected: int) -> None:
    assert parse(text, "field") == expected


@pytest.mark.parametrize(
    ("text", "unit_bytes", "expected"),
    [
        ("8GB", 8192, 8 * GIB),
        ("16384", 8192, 128 * MIB),
        ("'128MB'", 8192, 128 * MIB),
        ("64kB", 1024, 64 * KIB),
        ("0.5GB", 8192, GIB // 2),
        ("1TB", 1024, 1024 * GIB),
        ("12kB", 8192, 16 * KIB),  # 1.5 blocks, half to even
        ("4kB", 8192, 0),  # half a block, half to even
        ("10", 1024**2, 10 * MIB),
        ("1024B", 1, 1024),
        # strtol() of base 0 reads these, so the server does.
        ("0x8000", 8192, 256 * MIB),
        ("0x40MB", 8192, 64 * MIB),
        ("0100MB", 8192, 64 * MIB),
        ("010.5MB", 1024, 21 * MIB // 2),
        ("0", 8192, 0),
        ("1.5B", 1, 2),
        ("0.5B", 1, 0),
    ],
)
def test_postgresql_sizes(text: str, unit_bytes: int, expected: int) -> None:
    assert units.parse_postgresql_bytes(text, unit_bytes, "shared_buffers") == expected


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_iec_bytes, "64GB"),
        (units.parse_iec_bytes, "sixty"),
        (units.parse_iec_bytes, "-1GiB"),
        (units.parse_iec_bytes, "0.3B"),
        (units.parse_iec_bytes, ""),
        (units.parse_iec_bytes, "1e999"),
        (units.parse_iec_bytes, "9" * 100),
        (units.parse_iec_bytes, "99999999PiB"),
        (units.parse_kubernetes_bytes, "512MiB"),
        (units.parse_kubernetes_bytes, "2g"),
        (units.parse_mysql_bytes, "64GB"),
        (units.parse_mysql_bytes, "1.5G"),
        (units.parse_page_size, "3M"),
        (units.parse_page_size, "0"),
        (units.parse_page_size, "huge"),
    ],
)
def test_refused_with_the_fields_name(parse: Callable[[str, str], int], text: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, "node.memory")
    assert caught.value.field == "node.memory"
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["8gb", "8KB", "8 gigs", "-1", "1.2.3MB", "0x", "0xGB", True, 8.5, None])
def test_postgresql_refuses_what_the_server_refuses(text: Any) -> None:
    with pytest.raises(UnitError, match=r"settings\.shared_buffers"):
        units.parse_postgresql_bytes(text, 8192, "settings.shared_buffers")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536 * MIB, "1.50 GiB"),
        (64 * GIB, "64 GiB"),
        (2198863872, "2.05 GiB"),
        (1023 * MIB + 900 * KIB, "1 GiB"),
        (-3 * GIB // 2, "\u22121.50 GiB"),
        (97 * MIB + 700 * KIB, "97.7 MiB"),
        (512 * GIB, "512 GiB"),
        pytest.param(-(10**400), "\u2212over 281474976710656 PiB", id="too long to divide"),
    ],
)
def test_printed_with_three_digits(count: int, text: str) -> None:
    assert units.format_bytes(count) == text


@given(st.integers(min_value=0, max_value=2**62))
def test_exact_forms_are_read_back(count: int) -> None:
    assert units.parse_iec_bytes(units.format_iec_bytes(count), "f") == count
    assert units.parse_mysql_bytes(units.format_mysql_bytes(count), "f") == count
    assert units.parse_kubernetes_bytes(units.format_kubernetes_bytes(count), "f") == count
    assert units.parse_postgresql_bytes(units.format_postgresql_bytes(count), 1, "f") == count


@given(st.text(max_size=40))
def test_any_text_is_a_size_or_a_one_line_error(text: str) -> None:
    for parse in (units.parse_iec_bytes, units.parse_kubernetes_bytes, units.parse_mysql_bytes, units.parse_page_size):
        try:
            assert parse(text, "f") >= 0
        except UnitError as error:
            assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right; only the error has a shape


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0.01", 0.01), ("100%", 1.0), ("0", 0.0)])
def test_fractions(text: str, share: float) -> None:
    assert units.parse_fraction(text, "policy.slack") == pytest.approx(share)


@pytest.mark.parametrize("text", ["101%", "-1%", "nan", "a"])
def test_fractions_outside_0_to_1_are_refused(text: str) -> None:
    with pytest.raises(UnitError, match=r"policy\.slack"):
        units.parse_fraction(text, "policy.slack")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1025, "1,025 B"), (1024, "1 KiB"), (121 * GIB // 2, "60.5 GiB"), (5 * MIB // 4, "1.25 MiB")],
)
def test_printed_without_rounding(count: int, text: str) -> None:
    assert units.exact_bytes(count) == text
