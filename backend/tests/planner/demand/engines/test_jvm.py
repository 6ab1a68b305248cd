"""The JVM's rules against the mappings of a real JVM 17 and the fact sheet."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.errors import PlannerError, UnknownSettingError
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, Demand


def demand(
    version: str = "17", page_bytes: int = 2 * MIB, context: DemandContext | None = None, **values: object
) -> Demand:
    given_settings = {name: str(value) for name, value in values.items()}
    instance = DatabaseInstance(name="j", engine="jvm", version=version, settings=given_settings)
    return demand_of(instance, page_bytes, context or DemandContext())


def test_8g_heap_is_4096_pages() -> None:
    assert demand(Xmx="8g").segments[0].pages == 4096


def test_zgc_16g_heap_is_8192_pages_and_the_wikis_advice_is_said() -> None:
    result = demand(Xmx="16g", gc="Z")
    assert result.segments[0].pages == 8192
    assert result.pages == 8192 + 120
    assert any("18 GiB for 16 GiB" in note for note in result.notes)
    assert "ZGC does not start with pages of another size than 2M, nor with a part of its pages." in result.notes
    assert not any("does not start" in note for note in demand(Xmx="16g", gc="G1").notes)


# Reserved by a real JVM 17 (HugePages_Total - Free + Rsvd), code cache 240 MiB unless said.
@pytest.mark.parametrize(
    ("values", "pages"),
    [
        ({"Xmx": "512m", "gc": "G1"}, 384),
        ({"Xmx": "1024m", "gc": "G1"}, 651),
        ({"Xmx": "1000m", "gc": "G1", "ReservedCodeCacheSize": "64m"}, 548),
        ({"Xmx": "333m", "gc": "G1", "ReservedCodeCacheSize": "40m"}, 193),
        ({"Xmx": "512m", "gc": "Parallel"}, 376),
        ({"Xmx": "512m", "gc": "Serial"}, 376),
        ({"Xmx": "512m", "gc": "Z"}, 376),
        ({"Xmx": "4097m", "gc": "G1"}, 2251),  # regions of 4 MiB
        ({"Xmx": "1001m", "gc": "G1", "G1HeapRegionSize": "32m"}, 651),
        ({"Xmx": "2683m", "gc": "Shenandoah", "ReservedCodeCacheSize": "159m"}, 1507),
        ({"Xmx": "216m", "gc": "Z", "ReservedCodeCacheSize": "113m"}, 165),
        ({"Xmx": "100m", "gc": "Serial", "ReservedCodeCacheSize": "15m"}, 50),
        ({"Xmx": "100m", "gc": "Serial", "ReservedCodeCacheSize": "33m"}, 67),
        ({"Xmx": "100m", "gc": "Serial", "ReservedCodeCacheSize": "301m"}, 201),
        ({"Xmx": "100m", "gc": "Serial", "ReservedCodeCacheSize": "1000m"}, 552),  # two maps of segments
        ({"Xmx": "100m", "gc": "Serial", "ReservedCodeCacheSize": "2000m"}, 1056),
    ],
)
def test_measured_reservations(values: dict[str, str], pages: int) -> None:
    assert demand(**values).pages == pages


# mmap(..., MAP_HUGETLB) calls that traced JVMs 21 and 25 made, in MiB.
@pytest.mark.parametrize(
    ("version", "values", "mapped"),
    [
        ("21", {"Xmx": "1024m", "gc": "G1"}, 1024 + 240 + 16 + 2 + 2),
        ("21", {"Xmx": "1024m", "gc": "Parallel"}, 1024 + 240 + 32),
        ("21", {"Xmx": "1024m", "gc": "Serial"}, 1024 + 240),
        ("21", {"Xmx": "1024m", "gc": "Shenandoah"}, 1024 + 240 + 32 + 32 + 2),
        ("25", {"Xmx": "1024m", "gc": "G1"}, 1024 + 242 + 16 + 2 + 2),
        ("25", {"Xmx": "1024m", "gc": "Parallel"}, 1024 + 242),
        ("25", {"Xmx": "1024m", "gc": "Serial"}, 1024 + 242),
        ("25", {"Xmx": "1024m", "gc": "Shenandoah"}, 1024 + 242 + 32 + 32 + 2),
        ("25", {"Xmx": "1000m", "gc": "G1", "ReservedCodeCacheSize": "100m"}, 1000 + 100 + 16),
        ("17", {"Xmx": "512m", "gc": "Shenandoah"}, 512 + 240 + 16 + 16 + 2),
        ("25", {"Xmx": "4097m", "gc": "G1"}, 4428),
        ("25", {"Xmx": "2361m", "gc": "G1", "ReservedCodeCacheSize": "287m"}, 2700),
        ("25", {"Xmx": "2538m", "gc": "Shenandoah", "ReservedCodeCacheSize": "378m"}, 3078),
        ("25", {"Xmx": "100m", "gc": "Serial", "ReservedCodeCacheSize": "240m"}, 100 + 240),
        ("25", {"Xmx": "100m", "gc": "Serial", "ReservedCodeCacheSize": "1500m"}, 100 + 1500 + 4 + 4),
    ],
)
def test_traced_reservations(version: str, values: dict[str, str], mapped: int) -> None:
    assert demand(version, **values).pages * 2 == mapped


@pytest.mark.parametrize(("version", "code"), [("17", 120), ("25", 121)])
@pytest.mark.parametrize(
    ("heap", "pages"), [(777, 389), (1535, 769), (2048, 1025), (2300, 1151), (3072, 1538), (3073, 1539), (4609, 2308)]
)
def test_serials_object_starts_are_counted(version: str, code: int, heap: int, pages: int) -> None:
    """Huge pages in /proc/PID/smaps of OpenJDK 17.0 and Temurin 25.0, less those of the code cache: no error left."""
    found = demand(version, Xmx=f"{heap}m", gc="Serial")
    assert (found.pages, found.error_pages) == (pages + code, 0)


def test_measured_mixture_of_1g_and_2m_pages() -> None:
    result = demand(page_bytes=GIB, Xmx="1500m", gc="G1")
    assert result.pages == 2
    assert result.also_pages == ((2 * MIB, 158),)


# MaxHeapSize that JVMs 17 and 25 print (-XX:+PrintFlagsFinal), in MiB.
@pytest.mark.parametrize(
    ("gc", "asked", "heap"),
    [
        ("G1", 2049, 2050),
        ("G1", 5001, 5004),
        ("G1", 10241, 10248),
        ("G1", 20483, 20496),
        ("Parallel", 10241, 10242),
        ("Shenandoah", 2049, 2050),
        ("Shenandoah", 10241, 10244),
        ("Shenandoah", 20483, 20488),
        ("Shenandoah", 12601, 12608),
        ("Shenandoah", 6001, 6004),
        ("Shenandoah", 65001, 65024),
    ],
)
def test_the_heap_is_whole_regions_of_its_collector(gc: str, asked: int, heap: int) -> None:
    for version in ("17", "25"):
        assert demand(version, Xmx=f"{asked}m", gc=gc).segments[0].pages * 2 == heap


def test_g1_before_15_takes_the_mean_of_both_ends_of_the_heap() -> None:
    assert demand("11", Xmx="10241m", gc="G1").segments[0].pages * 2 == 10244
    assert demand("11", Xmx="10241m", Xms="1g", gc="G1").segments[0].pages * 2 == 10242


def test_parallel_bitmap_needs_a_heap_that_divides() -> None:
    assert demand(Xmx="1024m", gc="Parallel").pages == 512 + 120 + 16
    assert demand(Xmx="1300m", gc="Parallel").pages == 650 + 120


def test_g1_has_fewer_side_tables_in_newer_versions() -> None:
    counts = [demand(version, Xmx="8g").pages for version in ("17", "20", "21")]
    assert counts == [4096 + 120 + 128 + 24, 4096 + 120 + 64 + 24, 4096 + 120 + 64 + 16]


def test_heap_defaults_to_a_quarter_of_memory() -> None:
    assert demand(context=DemandContext(mem_total_bytes=32 * GIB)).pool_bytes == 8 * GIB
    with pytest.raises(PlannerError, match="Xmx"):
        demand()


def test_serial_is_chosen_on_one_processor() -> None:
    result = demand(context=DemandContext(cpus=1), Xmx="1g")
    assert any("Collector Serial" in note for note in result.notes)


def test_options_may_keep_their_dashes() -> None:
    instance = DatabaseInstance(
        name="j", engine="java", version="17", settings={"-Xmx": "512m", "-XX:+UseSerialGC": "on"}
    )
    assert demand_of(instance, 2 * MIB, DemandContext()).pages == 376


def test_unknown_options_are_named() -> None:
    with pytest.raises(UnknownSettingError, match="Xmy"):
        demand(Xmx="1g", Xmy="2g")


@settings(deadline=None)
@given(
    st.integers(64, 2**20),
    st.integers(0, 2**16),
    st.sampled_from(["G1", "Serial", "Z", "Shenandoah"]),
    st.sampled_from([2 * MIB, GIB]),
)
def test_monotone_and_large_enough(heap_mib: int, more: int, gc: str, page_bytes: int) -> None:
    before = demand(page_bytes=page_bytes, Xmx=f"{heap_mib}m", gc=gc)
    after = demand(page_bytes=page_bytes, Xmx=f"{heap_mib + more}m", gc=gc)
    assert before.pages <= after.pages
    assert before.pages * page_bytes >= before.segment_bytes >= heap_mib * MIB


def test_java_8_by_the_version_it_prints() -> None:
    instance = DatabaseInstance(name="j", engine="jvm", version="1.8.0_392", settings={"Xmx": "8g"})
    plain = DatabaseInstance(name="j", engine="jvm", version="8", settings={"Xmx": "8g"})
    assert demand_of(instance, 2 * MIB).pages == demand_of(plain, 2 * MIB).pages


# MaxHeapSize that real JVMs 17 and 25 print with -XX:+PrintFlagsFinal on a machine of so many bytes.
REAL = 25_276_502_016


@pytest.mark.parametrize("version", ["17", "25"])
@pytest.mark.parametrize(
    ("words", "heap"),
    [
        ("gc=G1", 6320816128),
        ("gc=G1 MaxRAMPercentage=75", 18958254080),
        ("gc=G1 MaxRAMPercentage=75.5", 19092471808),
        ("gc=G1 MaxRAMPercentage=7.5e1", 18958254080),
        ("gc=G1 MaxRAMPercentage=0.5", 132120576),
        ("gc=G1 InitialRAMPercentage=50", 6320816128),
        ("gc=G1 Xms=8g", 8589934592),
        ("gc=G1 InitialHeapSize=8g", 8589934592),
        ("gc=G1 MinHeapSize=9g", 9663676416),
        ("gc=G1 MaxRAMPercentage=75 MaxHeapSize=1g", 1073741824),
        ("gc=G1 Xmx=1g MaxHeapSize=2g", 2147483648),
        ("MaxRAM=200m", 104857600),
        ("gc=G1 MaxRAM=240m", 125829120),
        ("gc=G1 MaxRAM=260m", 132120576),
        ("gc=G1 MaxRAM=500m", 132120576),
        ("gc=G1 MaxRAM=600m", 157286400),
        ("gc=G1 MaxRAM=200m MaxRAMPercentage=80", 104857600),
        ("gc=G1 MaxRAM=200m MinRAMPercentage=20", 41943040),
        ("gc=G1 MaxRAM=200m MinRAMPercentage=60 MaxRAMPercentage=80", 125829120),
        ("gc=G1 MaxRAM=16g MaxRAMPercentage=75", 12884901888),
        ("gc=G1 MaxRAM=100g", 26843545600),
        ("gc=G1 MaxRAM=256g", 68719476736),
        ("gc=G1 MaxRAM=256g UseCompressedOops=off", 68719476736),
        ("gc=G1 MaxRAM=256g UseCompressedOops=on", 32178700288),
        ("gc=G1 MaxRAM=256g UseCompressedOops=on MaxRAMPercentage=50", 32178700288),
        ("gc=Shenandoah MaxRAM=256g UseCompressedOops=on", 32178700288),
        ("gc=Serial MaxRAM=256g UseCompressedOops=on", 32210157568),
        ("gc=Z MaxRAM=256g UseCompressedOops=on", 32210157568),
    ],
)
def test_the_heap_without_xmx_is_the_real_one(version: str, words: str, heap: int) -> None:
    values = dict(word.split("=") for word in words.split())
    found = demand(version, context=DemandContext(mem_total_bytes=REAL), **values)
    assert found.segments[0].segment_bytes == heap


def heap_bytes(limit: int | None, memory: int | None, version: str = "17", **values: str) -> int | None:
    instance = DatabaseInstance(name="j", engine="jvm", version=version, settings=values, pod_memory_limit_bytes=limit)
    return demand_of(instance, 2 * MIB, DemandContext(mem_total_bytes=memory)).pool_bytes


def test_the_memory_of_a_container_is_its_limit() -> None:
    assert heap_bytes(4 * GIB, 64 * GIB) == heap_bytes(4 * GIB, None) == GIB
    assert heap_bytes(128 * GIB, 64 * GIB) == heap_bytes(4 * GIB, 64 * GIB, UseContainerSupport="off") == 16 * GIB
    assert heap_bytes(4 * GIB, 64 * GIB, MaxRAM="8g") == 2 * GIB
    notes = demand_of(
        DatabaseInstance(name="j", engine="jvm", pod_memory_limit_bytes=2 * GIB), 2 * MIB, DemandContext()
    )
    assert any("a quarter of its memory limit of 2 GiB" in note for note in notes.notes)
    assert any(item.name == "-Xmx" and "a quarter of" in item.reason for item in notes.settings)
    with pytest.raises(PlannerError, match=r"settings\.Xmx"):
        heap_bytes(4 * GIB, None, UseContainerSupport="off")


def test_above_128_gib_the_default_is_what_compressed_pointers_reach() -> None:
    """Found: `size jvm --memory 512GiB` said a heap of 128 GiB, and "always enough"."""
    assert heap_bytes(None, 512 * GIB) == heap_bytes(None, 512 * GIB, version="8") == 30 * GIB - 32 * MIB
    assert heap_bytes(None, 512 * GIB, MaxRAMPercentage="25") == 128 * GIB
    assert heap_bytes(None, 64 * GIB, version="11", MaxRAMPercentage="40") == 64 * GIB * 40 // 100


@pytest.mark.parametrize(
    ("version", "values"),
    [("11", {"MaxRAMPercentage": "75"}), ("8", {"MaxRAM": "256g"}), ("17", {"MaxRAMFraction": "2"}),
     ("17", {"AggressiveHeap": "on"}), ("25", {"ErgoHeapSizeLimit": "1g"})],
)  # fmt: skip
def test_a_heap_that_is_not_counted_must_be_given(version: str, values: dict[str, str]) -> None:
    with pytest.raises(PlannerError, match="Xmx beside it"):
        heap_bytes(None, 64 * GIB, version, **values)
    assert heap_bytes(None, 64 * GIB, version, Xmx="3g", **values) == 3 * GIB


def test_a_flag_that_is_off_changes_no_heap() -> None:
    off = heap_bytes(None, 64 * GIB, "17", AggressiveHeap="false", MaxRAMPercentage="50")
    assert off == heap_bytes(None, 64 * GIB, "17", MaxRAMPercentage="50") == 32 * GIB
