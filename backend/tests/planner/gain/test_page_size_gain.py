"""Gains: physics that must hold whatever the figures are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.demand.accesses import CLIENT_OPERATION_NS, operation_ns
from hugeplan.planner.demand.base import whole_mapping
from hugeplan.planner.demand.model_error import ModelError, error_of_clients, error_of_rows
from hugeplan.planner.gain.cases import shared_table_copies
from hugeplan.planner.gain.page_size_gain import gains
from hugeplan.planner.gain.translation_saving import LARGEST_COMPARED_GAIN, NATIVE_BOUND, NESTED_BOUND
from hugeplan.planner.memory.page_tables import page_table_bytes
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    Confidence,
    CurvePoint,
    DatabaseInstance,
    Demand,
    EffectiveGranule,
    Explanation,
    Gain,
    HardwareFacts,
    LatencyCurve,
    NodeFacts,
    NumaNode,
    PlanRequest,
    PressurePoint,
    Source,
    TlbLevel,
    Workload,
)
from hugeplan.planner.plan import plan

K4, M2 = 4 * KIB, 2 * MIB
FOOTPRINTS = [8 * MIB << k for k in range(0, 11)]


def synthetic_curves(cached_ns: float, uncached_ns: float) -> tuple[LatencyCurve, ...]:
    """A 4K and a 2M curve whose difference is known: ``cached`` plus ``uncached`` in proportion to log footprint."""

    def points(extra: float) -> tuple[CurvePoint, ...]:
        made = []
        for step, footprint in enumerate(FOOTPRINTS):
            ns = 100.0 + 5 * step + extra * (cached_ns + uncached_ns * step / len(FOOTPRINTS))
            made.append(CurvePoint(footprint, ns, ns - 1, ns + 1))
        return tuple(made)

    return tuple(
        LatencyCurve(backing=backing, page_bytes=page, layout="random_64b", points=points(extra))
        for backing, page, extra in (("4K", K4, 1.0), ("2M", M2, 0.0))
    )


def levels(entries_4k: int, entries_2m: int) -> tuple[TlbLevel, ...]:
    return tuple(
        TlbLevel(level=level, kind="data", page_bytes=page, entries=entries, source=Source.MEASURED)
        for level, page, entries in ((1, K4, 64), (2, K4, entries_4k), (1, M2, 32), (2, M2, entries_2m))
    )


def hardware(
    *, granule: int | None = M2, curves: bool = True, entries_2m: int = 2048, virtualised: bool = True
) -> HardwareFacts:
    granules = (
        ()
        if granule is None
        else (
            EffectiveGranule(
                backing="2M", page_bytes=M2, granule_bytes=granule, status="ok" if granule == M2 else "fractured"
            ),
        )
    )
    return HardwareFacts(
        virtualised=virtualised,
        levels=levels(2048, entries_2m),
        granules=granules,
        curves=synthetic_curves(8.0, 60.0) if curves else (),
    )


def demand(page_bytes: int, *, pool: int = 8 * GIB, connections: int = 8, engine: str = "postgresql") -> Demand:
    return Demand(
        engine=engine,
        version="17",
        page_bytes=page_bytes,
        wants_pool=True,
        segments=(whole_mapping("segment", pool + 200 * MIB, page_bytes, Explanation("", (), None)),),
        segment_bytes=pool + 200 * MIB,
        pages=-(-(pool + 200 * MIB) // page_bytes),
        error_pages=0,
        waste_bytes=0,
        pool_bytes=pool,
        private_bytes_per_connection=None,
        connections=connections,
        process_per_connection=engine == "postgresql",
        page_cache_bytes=None,
    )


def gain_of(facts: HardwareFacts | None, workload: Workload, *, connections: int = 8, cpus: int = 8) -> Gain:
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), cpus=cpus, hardware=facts)
    instance = DatabaseInstance(name="db", engine="postgresql", connections=connections, workload=workload)
    return gains(node, instance, {M2: demand(M2, connections=connections)})[0]


def labels(engine: str, thp: str | None) -> dict[str, Gain]:
    node = NodeFacts(
        name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), hardware=hardware(), thp_enabled=thp, cpus=8
    )
    instance = DatabaseInstance(name="db", engine=engine, workload=KEY_LOOKUP)
    return {
        gain.backing: gain
        for gain in gains(node, instance, {K4: demand(K4, engine=engine), M2: demand(M2, engine=engine)})
    }


def test_thp_promises_no_more_than_a_pool_and_guarantees_nothing() -> None:
    anonymous = labels("mysql", "always")
    assert list(anonymous) == ["4K", "2M", "THP"]
    assert anonymous["THP"].saving_ns_per_operation.high == anonymous["2M"].saving_ns_per_operation.high
    assert anonymous["THP"].saving_ns_per_operation.low <= 0.0
    assert anonymous["THP"].confidence is Confidence.LOW
    shared = labels("postgresql", "always")["THP"]
    assert shared.saving_ns_per_operation.likely == 0.0
    assert labels("mysql", "madvise")["THP"].saving_ns_per_operation.likely == 0.0
    assert "THP" not in labels("mysql", "never")
    assert "THP" not in labels("mysql", None)


KEY_LOOKUP = Workload(
    row_bytes=128, working_set_bytes=6 * GIB, active_connections=8, operations_per_second_per_busy_core=50_000.0
)
# Half as many per second: the same nanoseconds are half the per cent, and the range is narrow enough to be sure.
LONGER = replace(KEY_LOOKUP, operations_per_second_per_busy_core=25_000.0)


def test_base_size_gains_nothing_and_counts_its_tables() -> None:
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),))
    result = gains(node, DatabaseInstance(name="db", engine="postgresql"), {K4: demand(K4), M2: demand(M2)})
    assert [gain.page_bytes for gain in result] == [K4, M2]
    assert result[0].saving_ns_per_operation.likely == 0.0
    assert result[0].page_tables_bytes == page_table_bytes(8 * GIB + 200 * MIB, K4, processes=8)
    assert result[1].page_tables_bytes == page_table_bytes(8 * GIB + 200 * MIB, M2, processes=8)


def test_the_percentage_is_the_saving_over_the_given_cost() -> None:
    gain = gain_of(hardware(), KEY_LOOKUP)
    assert gain.speedup is not None
    cost = 1e9 / 50_000
    assert gain.speedup.likely == pytest.approx(cost / (cost - gain.saving_ns_per_operation.likely))
    assert gain.confidence is Confidence.HIGH


@pytest.mark.parametrize("rate", [2_000_000.0, 30_000_000.0])
def test_an_operation_that_is_shorter_than_its_saving_bounds_it_and_says_so(rate: float) -> None:
    gain = gain_of(hardware(), replace(KEY_LOOKUP, operations_per_second_per_busy_core=rate))
    cost = 1e9 / rate
    assert gain.speedup is not None
    assert gain.saving_ns_per_operation.high < cost
    assert gain.speedup.likely == pytest.approx(cost / (cost - gain.saving_ns_per_operation.likely))
    assert gain.confidence is Confidence.LOW
    assert "check operations_per_second_per_busy_core" in gain.statement
    assert "check operations" not in gain_of(hardware(), KEY_LOOKUP).statement


def test_a_dearer_operation_gains_some_more_ns_and_a_smaller_share() -> None:
    """The longer an operation takes, the more of its page-table lines neighbours replace before the next one."""
    cheap = gain_of(hardware(), KEY_LOOKUP)
    dear = gain_of(hardware(), replace(KEY_LOOKUP, operations_per_second_per_busy_core=5_000.0))
    assert 1.0 < dear.saving_ns_per_operation.likely / cheap.saving_ns_per_operation.likely < 2.0
    assert cheap.speedup is not None
    assert dear.speedup is not None
    assert cheap.speedup.likely > dear.speedup.likely > 1.0


def test_a_fractured_guest_is_not_promised_reach() -> None:
    """A fractured guest gets what its curves' difference says, whatever entries the large size would have."""
    fractured = gain_of(hardware(granule=K4), KEY_LOOKUP)
    more_entries = gain_of(hardware(granule=K4, entries_2m=100_000), KEY_LOOKUP)
    assert fractured.saving_ns_per_operation == more_entries.saving_ns_per_operation
    assert "reach stays the same" in fractured.statement
    whole = gain_of(hardware(granule=M2, entries_2m=100_000), KEY_LOOKUP)
    assert whole.saving_ns_per_operation.likely > fractured.saving_ns_per_operation.likely


def test_an_unprobed_guest_gets_both_cases_and_low_confidence() -> None:
    unknown = gain_of(hardware(granule=None), KEY_LOOKUP)
    both = [gain_of(hardware(granule=g), KEY_LOOKUP).saving_ns_per_operation for g in (K4, M2)]
    assert unknown.confidence is Confidence.LOW
    assert unknown.saving_ns_per_operation.low == min(r.low for r in both)
    assert unknown.saving_ns_per_operation.high == max(r.high for r in both)
    assert any(term.source is Source.UNKNOWN for term in unknown.inputs)


@pytest.mark.parametrize(
    ("row_bytes", "error"),
    [
        (None, error_of_clients()),
        (128, error_of_rows(inline=True, clients=8)),
        (2000, error_of_rows(inline=True, clients=8)),
        (2001, error_of_rows(inline=False, clients=8)),
        (4096, error_of_rows(inline=False, clients=8)),
    ],
)
def test_a_clients_range_is_how_far_the_model_errs(row_bytes: int | None, error: ModelError) -> None:
    sure = replace(hardware(granule=K4), pressure=pressure_points(150.0))
    gain = gain_of(sure, replace(LONGER, row_bytes=row_bytes))
    client, shown = gain.speedup, gain.one_measurement
    assert client is not None
    assert client.likely < 1.0 + LARGEST_COMPARED_GAIN
    low, high = error.gained
    assert client.low == pytest.approx(client.likely + low)
    # Never above all that translation takes.
    assert client.likely < client.high <= client.likely + high + 1e-9
    assert shown is not None
    assert shown.low < client.low <= client.high < shown.high, "one measurement shows its own noise as well"
    assert shown.low == pytest.approx(client.likely + error.one_measurement[0])
    assert error.term() in gain.inputs
    in_server = gain_of(sure, replace(LONGER, row_bytes=row_bytes, operation_class="nested_loop"))
    assert in_server.speedup is not None
    assert in_server.speedup.low > in_server.speedup.likely + low
    assert in_server.speedup.high < in_server.speedup.likely + high
    assert in_server.one_measurement is None


def test_one_client_has_a_range_of_its_own() -> None:
    sure = replace(hardware(granule=K4), pressure=pressure_points(150.0))
    speedups = [gain_of(sure, replace(LONGER, row_bytes=128, active_connections=count)).speedup for count in (1, 2, 64)]
    for speedup, count in zip(speedups, (1, 2, 64), strict=True):
        assert speedup is not None
        assert speedup.low == pytest.approx(speedup.likely + error_of_rows(inline=True, clients=count).gained[0])
    assert error_of_rows(inline=True, clients=1) != error_of_rows(inline=True, clients=2)
    assert error_of_rows(inline=True, clients=None) == error_of_rows(inline=True, clients=64), "unknown is not one"


def test_a_clients_range_is_wider_beyond_what_was_compared() -> None:
    """A gain that is larger than any compared one; and prices of walks that nobody measured."""
    below = -error_of_rows(inline=True, clients=8).gained[0]
    sure = replace(hardware(granule=K4), pressure=pressure_points(150.0))
    large = gain_of(sure, replace(LONGER, operations_per_second_per_busy_core=100_000.0)).speedup
    assert large is not None
    assert large.likely > 1.0 + LARGEST_COMPARED_GAIN
    assert large.likely - large.low > 1.1 * below
    guessed = gain_of(hardware(granule=K4, curves=False), LONGER).speedup
    assert guessed is not None
    assert guessed.low <= guessed.likely - below + 1e-9
    assert guessed.likely < guessed.high


def test_an_operation_that_is_slower_than_a_quiet_one_waits_longer_for_its_walks() -> None:
    def likely(nanoseconds: float, **fields: str) -> float:
        workload = replace(KEY_LOOKUP, operations_per_second_per_busy_core=1e9 / nanoseconds, **fields)
        return gain_of(hardware(granule=K4), workload).saving_ns_per_operation.likely

    quiet = CLIENT_OPERATION_NS.likely
    # Neighbours have longer to replace lines as well, so that the factor is at least the slowdown's.
    assert 2.0**0.5 < likely(2 * quiet) / likely(quiet) < 2.0
    assert likely(quiet / 2) <= likely(quiet)
    assert likely(30 * quiet) / likely(10 * quiet) < 1.2, "what takes ten times as long does more work"
    within = {"operation_class": "nested_loop"}
    assert likely(2 * quiet, **within) / likely(quiet, **within) < 2.0**0.5


def test_less_knowledge_is_a_wider_range() -> None:
    def width(gain: Gain) -> float:
        return gain.saving_ns_per_operation.high - gain.saving_ns_per_operation.low

    in_server = replace(KEY_LOOKUP, operation_class="nested_loop")
    measured, assumed = gain_of(hardware(), in_server), gain_of(hardware(curves=False), in_server)
    nothing = gain_of(None, in_server)
    assert width(measured) < width(assumed) < width(nothing)
    assert measured.confidence is Confidence.HIGH
    assert assumed.confidence is nothing.confidence is Confidence.LOW


def test_a_packed_control_is_no_translation_curve() -> None:
    """tlbbench's packed layout measures the caches alone: it must not change a prediction."""
    facts = hardware()
    packed = tuple(replace(curve, layout="packed", points=facts.curves[0].points) for curve in facts.curves)
    with_control = replace(facts, curves=(*facts.curves, *packed))
    assert gain_of(with_control, KEY_LOOKUP) == gain_of(facts, KEY_LOOKUP)


def test_outside_the_measured_footprints_it_says_so() -> None:
    """Curves that end at 512 MiB never saw as many entries out of the cache as 64 private page tables cause."""

    def says_extrapolated(gain: Gain) -> bool:
        return any("extrapolated" in term.value for term in gain.inputs)

    full = hardware()
    short = replace(full, curves=tuple(replace(curve, points=curve.points[:7]) for curve in full.curves))
    many = replace(KEY_LOOKUP, active_connections=64)
    assert says_extrapolated(gain_of(short, many, connections=64, cpus=64))
    assert not says_extrapolated(gain_of(full, many, connections=64, cpus=64))
    assert not says_extrapolated(gain_of(hardware(curves=False), many, connections=64, cpus=64))


def test_private_page_tables_make_large_pages_worth_more() -> None:
    few = gain_of(hardware(), replace(KEY_LOOKUP, active_connections=1), cpus=1)
    many = gain_of(hardware(), replace(KEY_LOOKUP, active_connections=64), connections=64, cpus=1)
    assert many.saving_ns_per_operation.likely > 1.2 * few.saving_ns_per_operation.likely


def pressure_points(saving_ns: float, *, page_bytes: int = M2) -> tuple[PressurePoint, ...]:
    """A node on which every walk of base pages costs the same, wherever its entry is."""
    return tuple(
        PressurePoint(
            backing="2M",
            page_bytes=page_bytes,
            footprint_bytes=footprint,
            lines_between=lines,
            pages_between=lines / 16,
            period_ns=200.0 + 4.0 * lines,
            saving_ns=saving_ns * (1.0 - 2048 * K4 / footprint),
            half_width_ns=1.0,
        )
        for footprint in (128 * MIB, 512 * MIB, 2 * GIB)
        for lines in (0, 64, 1024)
    )


def test_accesses_under_pressure_are_preferred_to_plain_curves() -> None:
    plain = gain_of(hardware(granule=K4), KEY_LOOKUP)
    pressed = gain_of(replace(hardware(granule=K4), pressure=pressure_points(150.0)), KEY_LOOKUP)
    assert pressed.saving_ns_per_operation.likely > plain.saving_ns_per_operation.likely
    assert {"accesses under pressure", "neighbours' lines in that cache"} <= {term.name for term in pressed.inputs}
    assert "curves" not in {term.name for term in pressed.inputs}


def test_too_few_points_under_pressure_leave_the_curves() -> None:
    few = replace(hardware(granule=K4), pressure=pressure_points(150.0)[:4])
    assert gain_of(few, KEY_LOOKUP) == gain_of(hardware(granule=K4), KEY_LOOKUP)


def test_a_larger_size_with_few_points_takes_those_of_the_next_smaller() -> None:
    points = (*pressure_points(150.0), *pressure_points(90.0, page_bytes=GIB)[:3])
    facts = replace(hardware(granule=K4), pressure=points)
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), cpus=8, hardware=facts)
    instance = DatabaseInstance(name="db", engine="postgresql", connections=8, workload=KEY_LOOKUP)
    small, large = (gains(node, instance, {size: demand(size)})[0] for size in (M2, GIB))
    assert large.saving_ns_per_operation.likely == pytest.approx(small.saving_ns_per_operation.likely, rel=0.02)


def test_a_fit_that_scatters_is_not_of_high_confidence() -> None:
    sure = replace(hardware(granule=K4), pressure=pressure_points(150.0))
    wild = tuple(replace(p, saving_ns=p.saving_ns * (0.1 if i % 2 else 2.0)) for i, p in enumerate(sure.pressure))
    assert gain_of(sure, LONGER).confidence is Confidence.HIGH
    assert gain_of(replace(sure, pressure=wild), LONGER).confidence is Confidence.MEDIUM


def test_points_of_a_larger_size_say_nothing_about_a_smaller_one() -> None:
    other = replace(hardware(granule=K4), pressure=pressure_points(150.0, page_bytes=GIB))
    assert gain_of(other, KEY_LOOKUP) == gain_of(hardware(granule=K4), KEY_LOOKUP)


def test_an_operation_whose_time_is_not_given_says_what_was_assumed() -> None:
    unknown = gain_of(hardware(), replace(KEY_LOOKUP, operations_per_second_per_busy_core=None))
    name = "operation's own cost"
    assert [term.source for term in unknown.inputs if term.name == name] == [Source.ASSUMED]
    assert [term.source for term in gain_of(hardware(), KEY_LOOKUP).inputs if term.name == name] == [Source.GIVEN]


def test_few_large_entries_and_an_undescribed_working_set_include_a_loss() -> None:
    """AMD K8: 8 entries for 2M against 512 for 4K (article D)."""
    k8 = hardware(entries_2m=8, virtualised=False)
    undescribed = gain_of(k8, replace(KEY_LOOKUP, working_set_bytes=None))
    assert undescribed.saving_ns_per_operation.low < 0.0
    assert undescribed.speedup is not None
    assert undescribed.speedup.low < 1.0
    assert "loss is possible" in undescribed.statement
    in_server = replace(KEY_LOOKUP, operation_class="nested_loop")
    enough = gain_of(hardware(entries_2m=2048), in_server)
    assert enough.saving_ns_per_operation.low > 0.0
    for workload in (KEY_LOOKUP, replace(KEY_LOOKUP, row_bytes=4096)):
        client = gain_of(hardware(entries_2m=2048), workload)
        assert client.speedup is not None
        assert "loss is possible" not in client.statement
        assert ("may gain nothing" in client.statement) == (client.speedup.low < 1.0)
    assert client.speedup.low < 1.0, "rows out of line keep a range that includes nothing"


@pytest.mark.parametrize("operation_class", ["key_lookup", "oltp", "nested_loop", "random_access", None])
@pytest.mark.parametrize("working_set_bytes", [1 * MIB, 64 * MIB, 4 * GIB])
def test_without_the_operations_cost_the_percentage_comes_from_the_saving(
    operation_class: str | None, working_set_bytes: int
) -> None:
    """11 ns and "+40 %" contradict each other; so do "0 to 340 ns saved" and "x0.97"."""
    workload = replace(
        KEY_LOOKUP,
        operations_per_second_per_busy_core=None,
        operation_class=operation_class,
        working_set_bytes=working_set_bytes,
    )
    gain = gain_of(hardware(), workload)
    saving, cost = gain.saving_ns_per_operation, operation_ns(workload)
    assert gain.speedup is not None

    def ratio(cost_ns: float, saving_ns: float) -> float:
        """Never above what translation can give under nested paging."""
        return min(NESTED_BOUND, cost_ns / (cost_ns - saving_ns)) if saving_ns < cost_ns else NESTED_BOUND

    if operation_class == "random_access":  # an assumed cost below the saving would make any percentage of it
        assert gain.speedup.likely <= ratio(cost.likely, saving.likely) + 1e-9
        assert gain.speedup.likely <= NATIVE_BOUND
    else:
        assert gain.speedup.likely == pytest.approx(ratio(cost.likely, saving.likely))
    assert gain.speedup.high <= ratio(cost.low, saving.high) + 1e-9
    assert (gain.speedup.low >= 1.0) == (saving.low >= 0.0)
    cost_term = next(term for term in gain.inputs if term.name == "operation's own cost")
    assert cost_term.source is Source.ASSUMED


def test_published_results_stand_beside_the_prediction_and_do_not_make_it() -> None:
    gain = gain_of(hardware(), replace(KEY_LOOKUP, operation_class="key_lookup"))
    assert gain.published is not None
    assert "pgbench" in gain.published.source
    assert gain.published.percent.high == 12.1
    assert gain.speedup is not None
    assert gain.speedup.high != pytest.approx(1.121)


@pytest.mark.parametrize("alias", ["postgres", "pg", "PostgreSQL", " POSTGRES "])
def test_an_alias_gains_what_the_canonical_name_gains(alias: str) -> None:
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), cpus=8, hardware=hardware())
    settings_of = {"shared_buffers": "8GB", "max_connections": "100"}
    canonical, other = (
        plan(
            PlanRequest(
                node=node,
                databases=(DatabaseInstance(name="db", engine=name, settings=settings_of, workload=KEY_LOOKUP),),
            )
        )
        for name in ("postgresql", alias)
    )
    assert other == canonical


def test_a_wide_range_is_never_called_sure() -> None:
    sure = replace(hardware(granule=K4), pressure=pressure_points(150.0))
    narrow = gain_of(sure, LONGER)
    assert narrow.confidence is Confidence.HIGH
    fast = gain_of(sure, replace(KEY_LOOKUP, operations_per_second_per_busy_core=400_000.0))
    assert fast.speedup is not None
    assert fast.speedup.high - fast.speedup.low > 0.2
    assert fast.confidence is not Confidence.HIGH


def test_a_working_set_within_reach_gains_next_to_nothing() -> None:
    tiny = gain_of(hardware(), replace(KEY_LOOKUP, working_set_bytes=1 * MIB))
    large = gain_of(hardware(), KEY_LOOKUP)
    assert tiny.saving_ns_per_operation.likely < 0.25 * large.saving_ns_per_operation.likely


@settings(deadline=None, max_examples=60)
@given(
    working_set=st.integers(1 * MIB, 8 * GIB),
    row=st.integers(8, 64 * KIB),
    zipf=st.one_of(st.none(), st.floats(0.2, 1.3)),
    connections=st.integers(1, 500),
    granule=st.sampled_from([None, K4, M2]),
    curves=st.booleans(),
    rate=st.one_of(st.none(), st.floats(10.0, 2e6)),
)
def test_every_range_is_ordered_and_bounded(
    *,
    working_set: int,
    row: int,
    zipf: float | None,
    connections: int,
    granule: int | None,
    curves: bool,
    rate: float | None,
) -> None:
    workload = Workload(
        row_bytes=row,
        working_set_bytes=working_set,
        zipf_s=zipf,
        active_connections=connections,
        operations_per_second_per_busy_core=rate,
    )
    gain = gain_of(hardware(granule=granule, curves=curves), workload, connections=connections)
    saving, speedup = gain.saving_ns_per_operation, gain.speedup
    assert saving.low <= saving.likely <= saving.high
    assert speedup is not None
    assert 0.0 < speedup.low <= speedup.likely <= speedup.high <= 3.0 + 1e-9
    assert (speedup.low >= 1.0) == (saving.low >= 0.0)
    assert (speedup.high > 1.0) == (saving.high > 0.0)
    if gain.confidence is Confidence.HIGH:
        assert speedup.high - speedup.low <= 0.2


@pytest.mark.parametrize(
    ("segment_bytes", "page_bytes", "arch", "copies"),
    [
        (8 * GIB, M2, "x86_64", 1.0 + 63.0 / 8.0),  # seven whole GiB share one table, one GiB has 64
        (512 * MIB, M2, "x86_64", 64.0),  # no whole GiB lies in it
        (8 * GIB, GIB, "x86_64", 64.0),  # shared is the level of 2M pages alone
        (8 * GIB, M2, "ppc64le", 64.0),
    ],
)
def test_the_kernel_shares_page_tables_of_whole_gib(
    segment_bytes: int, page_bytes: int, arch: str, copies: float
) -> None:
    assert shared_table_copies(64, segment_bytes, page_bytes, arch) == pytest.approx(copies)


def test_more_clients_save_more_and_lost_tlb_entries_only_widen_the_range() -> None:
    """Private page tables are certain; whether entries outlive a switch depends on the kernel and the hypervisor."""
    saved = {}
    in_server = replace(KEY_LOOKUP, operation_class="nested_loop")  # a client's range is wider than this anyway
    for clients in (1, 8, 64):
        workload = replace(in_server, active_connections=clients)
        saved[clients] = gain_of(hardware(), workload, connections=clients, cpus=2).saving_ns_per_operation
    assert saved[1].likely < saved[8].likely < saved[64].likely
    width = {clients: saving.high - saving.likely for clients, saving in saved.items()}
    assert width[1] < width[8]
