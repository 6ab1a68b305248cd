"""MariaDB's rules in both generations, against traces of real servers and the fact sheet."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.demand.engines import mariadb as rules
from hugeplan.planner.errors import PlannerError, SettingValueError, UnitError, UnknownSettingError, UnknownVersionError
from hugeplan.planner.model import GIB, KIB, MIB, DatabaseInstance, Demand

NO_CACHES = {"key_buffer_size": "0", "aria_pagecache_buffer_size": "128K"}


def demand(version: str | None = "10.11.19", page_bytes: int = 2 * MIB, **values: object) -> Demand:
    given_settings = {name: str(value) for name, value in values.items()}
    instance = DatabaseInstance(name="m", engine="mariadb", version=version, settings=given_settings)
    return demand_of(instance, page_bytes, DemandContext())


def pages_of(result: Demand, name: str) -> int:
    return sum(segment.pages for segment in result.segments if segment.name.startswith(name))


@pytest.mark.parametrize(("page_bytes", "pages"), [(2 * MIB, 5120), (GIB, 10)])
def test_10g_pool(page_bytes: int, pages: int) -> None:
    assert pages_of(demand(page_bytes=page_bytes, innodb_buffer_pool_size="10G"), "InnoDB buffer pool") == pages


def test_1500m_takes_two_1g_pages() -> None:
    assert pages_of(demand(page_bytes=GIB, innodb_buffer_pool_size="1500M"), "InnoDB buffer pool") == 2


# What system call traces of the servers showed: mapped bytes of the pool, log buffers, key cache, Aria cache.
@pytest.mark.parametrize(
    ("version", "values", "pages"),
    [
        ("10.11.19", {"innodb_buffer_pool_size": "256M"}, 128 + 16 + 53 + 62),
        (
            "10.11.19",
            {"innodb_buffer_pool_size": "256M", "key_buffer_size": "8M", "aria_pagecache_buffer_size": "8M"},
            128 + 16 + 4 + 4,
        ),
        ("10.11.19", {"innodb_buffer_pool_size": "300M", **NO_CACHES}, 152 + 16),
        ("10.11.5", {"innodb_buffer_pool_size": "256M"}, 128 + 16 + 53 + 62),
        ("10.11.5", {"innodb_buffer_pool_size": "300M", "innodb_log_buffer_size": "5M", **NO_CACHES}, 150 + 6),
        ("11.8.9", {"innodb_buffer_pool_size": "256M"}, 128 + 16 + 53 + 62),
        (
            "11.8.9",
            {"innodb_buffer_pool_size": "901M", "key_buffer_size": "70M", "aria_pagecache_buffer_size": "33M"},
            452 + 16 + 29 + 16,
        ),
        ("11.4.5", {"innodb_buffer_pool_size": "900M", "innodb_log_buffer_size": "1M", **NO_CACHES}, 65 * 7 + 2),
    ],
)
def test_traced_servers(version: str, values: dict[str, str], pages: int) -> None:
    assert demand(version, **values).pages == pages


@pytest.mark.parametrize(
    ("key_buffer", "block", "mapped"),
    [(64 * MIB, 1024, 54859776), (GIB, 1024, 877932544), (300 * MIB, 4096, 297332736)],
)
def test_key_cache_is_what_a_server_without_large_pages_allocated(key_buffer: int, block: int, mapped: int) -> None:
    assert rules.key_cache_bytes(key_buffer, block) == pytest.approx(mapped, rel=0.003)


@pytest.mark.parametrize(("cache", "mapped"), [(200 * MIB, 200175616), (2 * GIB, 2051092480), (64 * MIB, 64081920)])
def test_aria_cache_is_what_a_server_without_large_pages_allocated(cache: int, mapped: int) -> None:
    assert rules.aria_page_cache_bytes(cache) == pytest.approx(mapped, rel=0.001)


@pytest.mark.parametrize(
    ("version", "single"),
    [
        ("10.11.11", False),
        ("10.11.12", True),
        ("11.4.5", False),
        ("11.4.6", True),
        ("11.8.1", False),
        ("11.8.2", True),
        ("11.8", True),
        ("10.6.25", False),
        ("11.7.2", False),
        ("12.0.1", True),
    ],
)
def test_generations(version: str, single: bool) -> None:
    assert rules.has_single_mapping(version) is single


def test_newer_versions_ignore_the_chunk_size() -> None:
    plain = demand(innodb_buffer_pool_size="3G", **NO_CACHES)
    assert demand(innodb_buffer_pool_size="3G", innodb_buffer_pool_chunk_size="1G", **NO_CACHES).pages == plain.pages


def test_older_versions_round_to_chunks() -> None:
    result = demand("10.6.20", innodb_buffer_pool_size="1000M", **NO_CACHES)
    assert (result.segments[0].count, result.segments[0].segment_bytes) == (8, 128 * MIB)


def test_smaller_mappings_go_to_smaller_pages() -> None:
    result = demand(page_bytes=GIB, innodb_buffer_pool_size="10G")
    assert result.also_pages == ((2 * MIB, 16 + 53 + 62),)
    assert any("131 pages of 2M" in note for note in result.notes)


def test_a_maximum_has_no_effect_with_large_pages() -> None:
    result = demand("11.8.9", innodb_buffer_pool_size="100M", innodb_buffer_pool_size_max="500M")
    assert result.segments[0].segment_bytes == 109051904


def test_fits_of_a_pool_on_1g_pages() -> None:
    shrink, grow = demand(page_bytes=GIB, innodb_buffer_pool_size="1500M").fits
    assert (shrink.value, grow.value) == ("1G", "2G")
    assert shrink.waste_before_bytes == 2 * GIB - 1504 * MIB
    for fit in (shrink, grow):
        fitted = demand(page_bytes=GIB, innodb_buffer_pool_size=fit.value)
        assert fitted.segments[0].pages * GIB == fitted.segments[0].segment_bytes
    assert demand(page_bytes=GIB, innodb_buffer_pool_size="4G").fits == ()
    assert demand(innodb_buffer_pool_size="1500M").fits == ()


def test_larger_free_pages_are_a_note() -> None:
    assert any("1G are taken first" in note for note in demand(innodb_buffer_pool_size="10G").notes)
    assert not any("1G are taken first" in note for note in demand(innodb_buffer_pool_size="500M").notes)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"innodb_bufer_pool_size": "1G"}, UnknownSettingError),
        ({"innodb_buffer_pool_size": "1GiB"}, UnitError),
        ({"innodb_log_buffer_size": "1K"}, SettingValueError),
        ({"key_cache_block_size": "64K"}, SettingValueError),
    ],
)
def test_wrong_settings_are_named(values: dict[str, str], error: type[PlannerError]) -> None:
    with pytest.raises(error, match=next(iter(values))):
        demand(**values)


def test_other_options_of_the_server_are_accepted() -> None:
    assert demand(query_cache_size="4M", innodb_flush_method="O_DIRECT").pages == demand().pages


def test_unknown_versions_are_named() -> None:
    with pytest.raises(UnknownVersionError, match="MariaDB"):
        demand("5.5")


@settings(deadline=None)
@given(
    st.integers(2 * MIB, 2**42),
    st.integers(0, 2**40),
    st.sampled_from(["10.11.19", "11.8.5"]),
    st.sampled_from([4 * KIB, 2 * MIB]),
)
def test_monotone_and_large_enough(pool: int, more: int, version: str, page_bytes: int) -> None:
    before = demand(version, page_bytes, innodb_buffer_pool_size=pool)
    after = demand(version, page_bytes, innodb_buffer_pool_size=pool + more)
    assert before.pages <= after.pages
    assert before.pages * page_bytes >= before.segment_bytes >= pool


@settings(deadline=None)
@given(st.integers(64 * MIB, 2**42), st.sampled_from(["10.5.1", "10.8.3", "10.11.5", "11.4.5"]))
def test_chunks_hold_the_pool(pool: int, version: str) -> None:
    segment = demand(version, innodb_buffer_pool_size=pool).segments[0]
    assert segment.segment_bytes * segment.count >= pool
