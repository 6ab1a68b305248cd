"""MySQL's rules: the manual's numbers, the 1G trap, fits and laws."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.demand.engines import mysql as rules
from hugeplan.planner.errors import PlannerError, SettingValueError, UnitError, UnknownSettingError, UnknownVersionError
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    DatabaseInstance,
    Demand,
    NodeFacts,
    NumaNode,
    PlanRequest,
    Policy,
    State,
)
from hugeplan.planner.plan import plan

ON_1G = DemandContext(default_huge_page_bytes=GIB, cpus=64)


def demand(
    version: str = "8.0", page_bytes: int = 2 * MIB, context: DemandContext | None = None, **values: object
) -> Demand:
    given_settings = {name: str(value) for name, value in values.items()}
    instance = DatabaseInstance(name="m", engine="mysql", version=version, settings=given_settings)
    return demand_of(instance, page_bytes, context)


def test_the_manuals_66_pages_for_the_default_pool() -> None:
    assert demand().pages == 66


@pytest.mark.parametrize("descriptor", [256, 384, 392, 510])
def test_66_pages_hold_for_descriptors_from_256_to_510_bytes(descriptor: int) -> None:
    """511 rounds up to another InnoDB page and with the metadata to another huge page."""
    assert rules.chunk_pages(128 * MIB, 16 * KIB, 2 * MIB, descriptor) == 66


@pytest.mark.parametrize(("pool", "aligned"), [("8G", 8 * GIB), ("9G", 10 * GIB)])
def test_the_manuals_rounding_with_16_instances(pool: str, aligned: int) -> None:
    result = demand(innodb_buffer_pool_size=pool, innodb_buffer_pool_instances=16, innodb_buffer_pool_chunk_size="128M")
    assert result.pool_bytes == aligned


def test_the_manuals_total_large_memory() -> None:
    """131072 pages of 16 KiB in 16 chunks: 2198863872 bytes."""
    assert 16 * rules.chunk_mapping_bytes(128 * MIB, 16 * KIB) == 2198863872


def test_a_server_of_5_7_printed_its_chunk() -> None:
    """SHOW ENGINE INNODB STATUS of a 128 MiB pool: 137428992 bytes."""
    assert rules.chunk_mapping_bytes(128 * MIB, 16 * KIB) == 137428992


# mmap(..., MAP_HUGETLB) calls that a traced mysqld 9.7.4 made: bytes and how many.
@pytest.mark.parametrize(
    ("values", "mapped", "count"),
    [
        ({"innodb_buffer_pool_size": "128M"}, 138412032, 1),
        (
            {
                "innodb_buffer_pool_size": "2G",
                "innodb_buffer_pool_instances": 1,
                "innodb_buffer_pool_chunk_size": "1G",
            },
            1098907648,
            2,
        ),
        ({"innodb_buffer_pool_size": "1100M", "innodb_buffer_pool_instances": 4}, 138412032, 12),
        (
            {
                "innodb_buffer_pool_size": "12G",
                "innodb_buffer_pool_instances": 1,
                "innodb_buffer_pool_chunk_size": "12G",
            },
            13176406016,
            1,
        ),
        ({"innodb_buffer_pool_size": "4G"}, 138412032, 32),
    ],
)
def test_traced_9_7(values: dict[str, object], mapped: int, count: int) -> None:
    result = demand("9.7.4", context=DemandContext(cpus=2), **values)
    assert result.segments[0].count == count
    assert result.pages == count * mapped // (2 * MIB)


def test_the_issues_example() -> None:
    result = demand(innodb_buffer_pool_size="64G", innodb_buffer_pool_instances="8")
    assert result.pages == 512 * 66
    assert result.segments[0].count == 512


def test_1g_default_takes_a_page_for_each_128m_chunk() -> None:
    result = demand(page_bytes=GIB, context=ON_1G, innodb_buffer_pool_size="64G", innodb_buffer_pool_instances="8")
    assert result.pages == 512
    assert result.pages * GIB == 8 * 64 * GIB
    assert any("8 times the pool" in note for note in result.notes)


def test_1g_chunks_spill_into_a_second_page() -> None:
    values = {
        "innodb_buffer_pool_size": "64G",
        "innodb_buffer_pool_chunk_size": "1G",
        "innodb_buffer_pool_instances": 8,
    }
    result = demand(page_bytes=GIB, context=ON_1G, **values)
    assert result.pages == 128
    assert result.fits[0].setting == "innodb_buffer_pool_chunk_size"
    assert result.fits[0].value == "999M"
    fitted = demand(page_bytes=GIB, context=ON_1G, **{**values, "innodb_buffer_pool_chunk_size": "999M"})
    assert fitted.pages == fitted.segments[0].count == 72
    assert fitted.waste_bytes == result.fits[0].waste_after_bytes


@pytest.mark.parametrize("version", ["8.0", "8.4"])
@pytest.mark.parametrize(("pool", "chunk"), [("17G", "1008M"), ("7G", "128M"), ("100G", "1G"), ("5G", "2G")])
def test_an_advised_chunk_leads_to_the_waste_that_was_promised(version: str, pool: str, chunk: str) -> None:
    """The server rounds the pool anew with the new chunk, and may choose other instances."""
    values = {"innodb_buffer_pool_size": pool, "innodb_buffer_pool_chunk_size": chunk}
    context = DemandContext(default_huge_page_bytes=GIB, cpus=16)
    result = demand(version, GIB, context, **values)
    for fit in result.fits:
        mended = demand(version, GIB, context, **{**values, fit.setting: fit.value})
        assert mended.waste_bytes == fit.waste_after_bytes
        assert not mended.fits
    advised = " ".join(result.notes)
    assert ("innodb_buffer_pool_chunk_size =" in advised) <= bool(result.fits)


def test_1000m_is_the_largest_chunk_of_one_1g_page_and_999m_with_any_releases_descriptors() -> None:
    assert rules.fitting_chunk_bytes(GIB, 16 * KIB, GIB) == 999 * MIB
    assert rules.chunk_pages(999 * MIB, 16 * KIB, GIB, 400) == 1
    assert rules.chunk_pages(1000 * MIB, 16 * KIB, GIB, 400) == 2
    assert rules.chunk_pages(1000 * MIB, 16 * KIB, GIB) == 1
    assert rules.chunk_pages(1001 * MIB, 16 * KIB, GIB) == 2


@given(
    chunk_bytes=st.integers(1, 40 * GIB),
    page_size_bytes=st.sampled_from([4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB]),
    page_bytes=st.sampled_from([4 * KIB, 64 * KIB, MIB, 2 * MIB, 16 * MIB, 512 * MIB, GIB, 16 * GIB]),
    descriptor_bytes=st.sampled_from([360, 368, 392, 400, 416]),
    metadata_bytes=st.sampled_from([0, 4 * KIB, 64 * KIB]),
)
def test_the_fitting_chunk_is_what_trying_each_mib_finds(
    chunk_bytes: int, page_size_bytes: int, page_bytes: int, descriptor_bytes: int, metadata_bytes: int
) -> None:
    pages = max(1, chunk_bytes // page_bytes)
    tried = pages * page_bytes // MIB
    largest = max(descriptor_bytes, 400)
    while tried and rules.chunk_pages(tried * MIB, page_size_bytes, page_bytes, largest, metadata_bytes) > pages:
        tried -= 1
    found = rules.fitting_chunk_bytes(chunk_bytes, page_size_bytes, page_bytes, descriptor_bytes, metadata_bytes)
    assert found == (tried * MIB or None)


def test_a_chunk_above_the_instances_share_is_cut_to_it() -> None:
    pool = rules.aligned_pool(128 * MIB, 128 * MIB, 8)
    assert (pool.chunk_bytes, pool.chunks, pool.buffer_pool_bytes) == (16 * MIB, 8, 128 * MIB)


@pytest.mark.parametrize(
    ("version", "pool", "cpus", "instances"),
    [
        ("8.0", GIB - MIB, 64, 1),
        ("8.0", GIB, 64, 8),
        ("5.7", 8 * GIB, 4, 8),
        ("8.4", GIB, 64, 1),
        ("8.4", 64 * GIB, 64, 16),
        ("8.4", 2 * GIB, 64, 8),
        ("8.4", 64 * GIB, 4, 1),
        ("9.1", 1024 * GIB, 512, 64),
    ],
)
def test_default_instances(version: str, pool: int, cpus: int, instances: int) -> None:
    assert rules.default_instances(version, pool, 128 * MIB, cpus) == instances


def test_instances_are_ignored_below_1_gib() -> None:
    assert demand(innodb_buffer_pool_size="512M", innodb_buffer_pool_instances=8).segments[0].count == 4


def test_5_7_has_no_metadata_and_maybe_a_key_cache() -> None:
    old, new = demand("5.7"), demand("8.0")
    assert new.segment_bytes - old.segment_bytes == 4096
    assert old.error_pages - new.error_pages == 4
    assert demand("5.7", key_buffer_size="64M").error_pages == old.error_pages + 28


def test_metadata_is_a_page_of_the_processor() -> None:
    assert rules.metadata_bytes_of("8.0", 64 * KIB) == 64 * KIB


def test_names_may_have_dashes() -> None:
    instance = DatabaseInstance(name="m", engine="percona", settings={"innodb-buffer-pool-size": "1G"})
    assert demand_of(instance, 2 * MIB).pool_bytes == GIB


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"innodb_bufer_pool_size": "1G"}, UnknownSettingError),
        ({"innodb_buffer_pool_size": "1GB"}, UnitError),
        ({"innodb_buffer_pool_size": "1M"}, SettingValueError),
        ({"innodb_buffer_pool_instances": "65"}, UnitError),
        ({"innodb_page_size": "12K"}, SettingValueError),
        ({"large_pages": "perhaps"}, SettingValueError),
    ],
)
def test_wrong_settings_are_named(values: dict[str, str], error: type[PlannerError]) -> None:
    with pytest.raises(error, match=next(iter(values))):
        demand(**values)


def test_other_options_of_the_server_are_accepted() -> None:
    assert demand(sort_buffer_size="4M", innodb_log_file_size="1G", binlog_format="ROW").pages == 66


def test_unknown_versions_are_named() -> None:
    with pytest.raises(UnknownVersionError, match=re.escape("4.1")):
        demand("4.1")


def test_only_the_default_size_is_used_and_said() -> None:
    result = demand(page_bytes=GIB)
    assert any("default_hugepagesz=1G" in note for note in result.notes)


POOLS = st.integers(5 * MIB, 2**41)
CHUNKS = st.integers(1, 4096).map(lambda megabytes: megabytes * MIB)


@settings(deadline=None)
@given(POOLS, CHUNKS, st.integers(1, 64), st.sampled_from([4 * KIB, 2 * MIB, GIB]))
def test_pages_hold_every_chunk(pool: int, chunk: int, instances: int, page_bytes: int) -> None:
    values = {
        "innodb_buffer_pool_size": pool,
        "innodb_buffer_pool_chunk_size": chunk,
        "innodb_buffer_pool_instances": instances,
    }
    result = demand(page_bytes=page_bytes, **values)
    assert result.pool_bytes is not None
    assert result.pool_bytes >= pool
    assert result.pages * page_bytes >= result.segment_bytes > result.pool_bytes
    assert result.pages % result.segments[0].count == 0


@given(POOLS, st.integers(0, 2**40), st.integers(1, 64))
def test_aligned_pool_is_monotone_while_the_chunk_is_not_cut(pool: int, more: int, instances: int) -> None:
    chunk = 128 * MIB
    pool = max(pool, chunk * instances)
    before = rules.aligned_pool(pool, chunk, instances)
    after = rules.aligned_pool(pool + more, chunk, instances)
    assert before.buffer_pool_bytes <= after.buffer_pool_bytes
    assert before.buffer_pool_bytes - pool < chunk * instances


def test_a_fit_holds_for_every_release_and_takes_the_pages_it_promises() -> None:
    """An advised chunk that fits one page with today's descriptors and two after an upgrade would double the pool."""
    for version in ("8.0", "8.4", "9.4"):
        settings = {"innodb_buffer_pool_size": "48G", "innodb_buffer_pool_chunk_size": "1G"}
        context = DemandContext(default_huge_page_bytes=GIB, cpus=32)
        instance = DatabaseInstance(name="m", engine="mysql", version=version, settings=settings)
        before = demand_of(instance, GIB, context)
        assert before.fits[0].value == "999M"
        assert before.fits[0].waste_before_bytes == before.waste_bytes
        fitted = {**settings, "innodb_buffer_pool_chunk_size": "999M"}
        after = demand_of(replace(instance, settings=fitted), GIB, context)
        assert after.pages == after.segments[0].count
        assert after.error_pages == 0


def test_forty_eight_chunks_of_1000m_take_48_pages_and_no_slack_beyond_one() -> None:
    settings = {
        "innodb_buffer_pool_size": "48000M",
        "innodb_buffer_pool_chunk_size": "1000M",
        "innodb_buffer_pool_instances": "1",
    }
    node = NodeFacts(
        name="n",
        numa=(NumaNode(id=0, mem_total_bytes=128 * GIB),),
        default_huge_page_bytes=GIB,
        kernel_used_bytes=GIB,
    )
    instance = DatabaseInstance(name="m", engine="mysql", version="8.4", settings=settings, page_bytes=GIB)
    found = plan(
        PlanRequest(
            node=node, databases=(instance,), policy=Policy(slack_fraction=0.0, slack_min_pages=0, free_margin_bytes=0)
        )
    )
    pool = next(pool for pool in found.pools if pool.page_bytes == GIB)
    assert pool.demand_pages == 48
    assert pool.slack_pages <= 1
    uncertain = next(f for f in found.findings if f.code == "count_uncertain")
    assert uncertain.state is State.ATTENTION


def test_small_chunks_on_a_large_default_size_name_both_ways_out() -> None:
    found = demand_of(
        DatabaseInstance(name="m", engine="mysql", version="8.4", settings={"innodb_buffer_pool_size": "8G"}),
        GIB,
        DemandContext(default_huge_page_bytes=GIB),
    )
    note = next(note for note in found.notes if "whole 1G page" in note)
    assert "innodb_buffer_pool_chunk_size = 999M" in note
    assert "default_hugepagesz=2M" in note


@pytest.mark.parametrize(
    ("memory", "limit", "version", "pool"),
    [
        (1000 * MIB, None, "8.0", 128 * MIB),
        (GIB, None, "8.0", 512 * MIB),
        (4 * GIB, None, "8.0", 2 * GIB),
        (8 * GIB, None, "8.0", 6 * GIB),
        (64 * GIB, None, "8.0.36", 48 * GIB),
        (64 * GIB, None, "8.4", 48 * GIB),
        (64 * GIB, None, "9.7", 48 * GIB),
        (64 * GIB, 4 * GIB, "8.4", 48 * GIB),
        (64 * GIB, 4 * GIB, "9.2", 48 * GIB),
        (64 * GIB, 4 * GIB, "9.3", 2 * GIB),
        (64 * GIB, 8 * GIB, "9.7", 6 * GIB),
        (64 * GIB, 512 * MIB, "9.7", 128 * MIB),
        (64 * GIB, 128 * GIB, "9.7", 48 * GIB),
    ],
)
def test_a_dedicated_servers_pool_is_a_share_of_what_it_sees(
    memory: int, limit: int | None, version: str, pool: int
) -> None:
    """MySQL manual, 17.8.12 and 17.8.13 with tables 17.8: the container's limit counts since 9.3."""
    own = {"innodb_dedicated_server": "ON"}
    instance = DatabaseInstance(name="m", engine="mysql", version=version, settings=own, pod_memory_limit_bytes=limit)
    context = DemandContext(mem_total_bytes=memory, cpus=16)
    found = demand_of(instance, 2 * MIB, context)
    assert found.pool_bytes == pool
    assert any("dedicated" in note for note in found.notes)
    for more in ({"innodb_buffer_pool_size": "3G"}, {"innodb-buffer-pool-size": "3G"}):
        assert demand_of(replace(instance, settings=own | more), 2 * MIB, context).pool_bytes == 3 * GIB
    off = replace(instance, settings={"innodb_dedicated_server": "OFF"})
    assert demand_of(off, 2 * MIB, context).pool_bytes == 128 * MIB


def test_5_7_has_no_dedicated_server() -> None:
    context = DemandContext(mem_total_bytes=100 * GIB, cpus=16)
    for version in ("5.7", "5.7.44"):
        assert demand(version, context=context, innodb_dedicated_server="ON").pool_bytes == 128 * MIB


def test_a_dedicated_server_is_not_counted_where_its_memory_is_not_known() -> None:
    with pytest.raises(SettingValueError, match="the node's memory"):
        demand("8.0", innodb_dedicated_server="ON")
    for name in ("server_memory", "container_aware"):
        assert demand("9.7", **{name: "4G"}).pool_bytes == 128 * MIB
        with pytest.raises(SettingValueError, match="innodb_buffer_pool_size beside it"):
            demand("9.7", context=DemandContext(mem_total_bytes=64 * GIB), innodb_dedicated_server="ON", **{name: "4G"})


@pytest.mark.parametrize("pool", ["2G", "9G", "15G", "25G", "30500M", "64G", "200G"])
@pytest.mark.parametrize("version", ["8.0", "8.4", "9.7"])
def test_unknown_processors_are_in_the_error(version: str, pool: str) -> None:
    unknown = demand(version, innodb_buffer_pool_size=pool)
    known = [demand(version, context=DemandContext(cpus=cpus), innodb_buffer_pool_size=pool) for cpus in range(1, 300)]
    most = max(one.pages for one in known)
    assert most == unknown.pages + unknown.error_pages
    assert any("32 are assumed" in note for note in unknown.notes) is (most > unknown.pages)
    fixed = demand(version, innodb_buffer_pool_size=pool, innodb_buffer_pool_instances=4)
    assert fixed.error_pages == 0
