"""A plan of an observed node starts from what the sample saw, and adds up to it.

The oracle: with nothing changed the plan's ledger is the ledger of now to the byte, and its free memory is MemAvailable
within the kernel's watermarks (mm/show_mem.c, si_mem_available).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.ledger import available_bytes, free_bytes, sum_bytes
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    DatabaseInstance,
    GlobalPool,
    Ledger,
    LedgerKind,
    Meminfo,
    MemoryHistory,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    ObservedUnit,
    ObservedWorkloads,
    PlanRequest,
    Policy,
    Pool,
    ProcessMemory,
    Tenant,
    Workload,
)
from hugeplan.planner.observation.workloads import EVERYTHING_ELSE, LISTED_UNITS
from hugeplan.planner.plan import plan
from hugeplan.planner.units import exact_bytes

PAGE = 4 * KIB
WATERMARK_LOW = 64 * MIB


def parts_of(ledger: Ledger) -> dict[tuple[str, str, int], int]:
    """Bytes by (kind, name, NUMA node)."""
    found: dict[tuple[str, str, int], int] = {}
    for part in ledger.parts:
        if part.bytes:
            key = (part.kind.value, part.name, part.numa_node)
            found[key] = found.get(key, 0) + part.bytes
    return found


def mem_available(free: int, cache: int, slab: int, low: int) -> int:
    """MemAvailable as mm/show_mem.c works it out, with the low watermark as the reserve."""
    return max(0, free - low + cache - min(cache // 2, low) + slab - min(slab // 2, low))


@st.composite
def observed_nodes(draw: st.DrawFn) -> tuple[NodeFacts, NodeSample]:
    """A node whose meminfo adds up, with pools, NUMA nodes and units of all sizes."""
    numa_count = draw(st.integers(1, 4))
    total = draw(st.integers(2 * GIB // PAGE, 4096 * GIB // PAGE)) * PAGE
    sizes = [total // numa_count] * numa_count
    sizes[0] += total - sum(sizes)
    pools, pool_bytes = [], 0
    for size in sizes:
        nr = draw(st.integers(0, size // 4 // (2 * MIB)))
        free = draw(st.integers(0, nr))
        pools.append((nr, free))
        pool_bytes += nr * 2 * MIB
    weights = draw(st.lists(st.integers(0, 100), min_size=9, max_size=9).filter(any))
    rest = total - pool_bytes
    shares = [rest * weight // sum(weights) for weight in weights]
    unreclaimable, stacks, tables, percpu, buffers, cached, slab, anon, shmem = shares
    free_now = draw(st.integers(0, rest - sum(shares))) + shares[0] // 2
    unreclaimable -= shares[0] // 2
    units = []
    left = anon + shmem
    for i in range(draw(st.integers(0, 40))):
        size = draw(st.integers(0, left))
        left -= size
        source = draw(st.sampled_from(["cgroup_v2", "pss", "rss"]))
        units.append(ObservedUnit(key=f"u{i}", kind="pod", name=f"unit-{i % 7}", source=source, ordinary_bytes=size))
    memory = Meminfo(
        mem_total_bytes=total,
        mem_free_bytes=free_now,
        mem_available_bytes=mem_available(free_now, buffers + cached, slab, WATERMARK_LOW),
        buffers_bytes=buffers,
        cached_bytes=cached + shmem,
        s_reclaimable_bytes=slab,
        s_unreclaim_bytes=unreclaimable,
        kernel_stack_bytes=stacks,
        page_tables_bytes=tables,
        percpu_bytes=percpu,
        anon_pages_bytes=anon,
        shmem_bytes=shmem,
    )
    node = NodeFacts(
        name="observed",
        numa=tuple(
            NumaNode(
                id=i,
                mem_total_bytes=size,
                pools=(Pool(page_bytes=2 * MIB, nr_hugepages=nr, free_hugepages=free),),
            )
            for i, (size, (nr, free)) in enumerate(zip(sizes, pools, strict=True))
        ),
    )
    everywhere = GlobalPool(
        page_bytes=2 * MIB,
        nr_hugepages=sum(nr for nr, _ in pools),
        free_hugepages=sum(free for _, free in pools),
        resv_hugepages=draw(st.integers(0, sum(free for _, free in pools))),
    )
    known_units = tuple(units) if draw(st.booleans()) else None
    return node, NodeSample(taken_at_seconds=1.0, memory=memory, pools=(everywhere,), units=known_units)


@settings(max_examples=150, deadline=None)
@given(observed_nodes())
def test_nothing_changed_reproduces_the_ledger_of_now(observed: tuple[NodeFacts, NodeSample]) -> None:
    node, sample = observed
    assert sample.memory is not None
    found = plan(PlanRequest(node=node, sample=sample))
    assert found.now is not None
    assert found.difference is not None
    assert parts_of(found.ledger) == parts_of(found.now.ledger)
    assert sum(part.bytes for part in found.ledger.parts) == node.mem_total_bytes
    assert free_bytes(found.ledger) == sample.memory.mem_free_bytes
    assert sum_bytes(found.ledger, LedgerKind.TENANTS) == (sample.memory.anon_pages_bytes or 0) + (
        sample.memory.shmem_bytes or 0
    )
    room = available_bytes(found.ledger) - (sample.memory.mem_available_bytes or 0)
    assert 0 <= room <= 3 * WATERMARK_LOW
    assert all(change.planned_pages == change.now_pages for change in found.difference.pools)
    assert all(change.planned_bytes == change.now_bytes for change in found.difference.memory)
    assert found.feasible


@settings(max_examples=100, deadline=None)
@given(observed=observed_nodes(), gib=st.integers(1, 64), processes_known=st.booleans())
def test_pages_in_use_are_never_planned_away(
    observed: tuple[NodeFacts, NodeSample], gib: int, *, processes_known: bool
) -> None:
    node, sample = observed
    if processes_known:
        sample = replace(sample, databases=(), processes=())
    database = DatabaseInstance(name="main", engine="postgresql", settings={"shared_buffers": f"{gib}GB"})
    found = plan(PlanRequest(node=node, sample=sample, databases=(database,)))
    assert sample.pools is not None
    pool = sample.pools[0]
    in_use = pool.nr_hugepages - (pool.free_hugepages or 0) + (pool.resv_hugepages or 0)
    planned = sum(p.pages for p in found.pools if p.page_bytes == 2 * MIB)
    own = sum(item.demand.pages for item in found.instances if item.page_bytes == 2 * MIB)
    assert planned >= in_use + own if processes_known else planned >= max(in_use, own)
    for numa in node.numa:
        standing = (numa.pools or ())[0]
        mapped = standing.nr_hugepages - (standing.free_hugepages or 0)
        here = sum(p.pages for p in found.pools if (p.page_bytes, p.numa_node) == (2 * MIB, numa.id))
        assert here >= mapped or not processes_known
    assert sum(part.bytes for part in found.ledger.parts) == node.mem_total_bytes


# --- one node, read as a user would ---------------------------------------------------------------


def node_of(gib: int = 128, **changes: object) -> NodeFacts:
    pools = (Pool(page_bytes=2 * MIB, nr_hugepages=0, free_hugepages=0, resv_hugepages=0),)
    numa = (NumaNode(id=0, mem_total_bytes=gib * GIB, mem_free_bytes=None, pools=pools),)
    return NodeFacts(**{"name": "db-7", "numa": numa} | changes)  # type: ignore[arg-type]


def sample_of(total_gib: int = 128, *, anon_gib: float = 43.5, free_gib: float = 44.0, **changes: object) -> NodeSample:
    memory = Meminfo(
        mem_total_bytes=total_gib * GIB,
        mem_free_bytes=int(free_gib * GIB),
        mem_available_bytes=int((total_gib - anon_gib - 3) * GIB),
        buffers_bytes=0,
        cached_bytes=int((total_gib - anon_gib - free_gib - 2) * GIB),
        s_reclaimable_bytes=0,
        s_unreclaim_bytes=GIB,
        kernel_stack_bytes=0,
        page_tables_bytes=GIB // 2,
        sec_page_tables_bytes=0,
        percpu_bytes=0,
        anon_pages_bytes=int(anon_gib * GIB),
        shmem_bytes=0,
    )
    return NodeSample(**{"taken_at_seconds": 1000.0, "memory": memory} | changes)  # type: ignore[arg-type]


def postgresql(gib: int = 16, **changes: object) -> DatabaseInstance:
    base = {"name": "main", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": f"{gib}GB"}}
    return DatabaseInstance(**base | changes)  # type: ignore[arg-type]


def test_what_runs_on_the_node_is_a_tenant() -> None:
    found = plan(PlanRequest(node=node_of(), sample=sample_of()))
    assert sum_bytes(found.ledger, LedgerKind.TENANTS) == int(43.5 * GIB)
    assert free_bytes(found.ledger) == 44 * GIB
    assert found.now is not None
    assert [(t.name, t.now_bytes) for t in found.now.tenants] == [(EVERYTHING_ELSE, int(43.5 * GIB))]
    assert "observed once" in found.now.tenants[0].basis


def test_a_database_too_large_for_what_is_left_does_not_fit() -> None:
    found = plan(PlanRequest(node=node_of(), sample=sample_of(), databases=(postgresql(100),)))
    assert not found.feasible
    assert found.shortfall is not None
    assert found.shortfall.constraint == "memory"
    assert found.headline.startswith("Whether it fits db-7 is not known: as counted "), "databases were not observed"
    known = replace(sample_of(), databases=())
    sure = plan(PlanRequest(node=node_of(), sample=known, databases=(postgresql(100),)))
    assert sure.headline.startswith("Does not fit db-7: ")
    best = next(option for option in found.shortfall.options if option.kind == "pool")
    assert best.pool_bytes is not None
    assert f"the largest shared_buffers that fits is {exact_bytes(best.pool_bytes)}." in found.headline
    again = plan(
        PlanRequest(
            node=node_of(),
            sample=sample_of(),
            databases=(postgresql(settings={"shared_buffers": best.value or ""}),),
        )
    )
    assert again.feasible
    larger = postgresql(settings={"shared_buffers": f"{best.pool_bytes // MIB + 1024}MB"})
    assert not plan(PlanRequest(node=node_of(), sample=sample_of(), databases=(larger,))).feasible


def test_tenants_alone_exceed_the_node() -> None:
    tenant = Tenant(name="batch", request_bytes=120 * GIB)
    found = plan(PlanRequest(node=node_of(), sample=sample_of(), tenants=(tenant,), databases=(postgresql(1),)))
    assert found.shortfall is not None
    assert found.shortfall.constraint == "workloads"
    assert not [option for option in found.shortfall.options if option.kind == "pool"]


def test_numa_node_is_the_constraint_and_leaving_it_open_fits() -> None:
    numa = tuple(NumaNode(id=i, mem_total_bytes=64 * GIB, pools=()) for i in range(2))
    tenant = Tenant(name="app", request_bytes=GIB)
    request = PlanRequest(node=node_of(numa=numa), tenants=(tenant,), databases=(postgresql(70, numa_node=1),))
    found = plan(request)
    assert found.shortfall is not None
    assert (found.shortfall.constraint, found.shortfall.numa_node) == ("numa_node", 1)
    assert [option.kind for option in found.shortfall.options] == ["numa_node", "pool"]
    assert "on NUMA node 1" in found.headline


def test_risk_is_unknown_without_tenants_and_observation() -> None:
    found = plan(PlanRequest(node=node_of(), databases=(postgresql(),)))
    assert found.risk.probability is None
    assert found.risk.meets_policy is None


def test_one_sample_is_not_a_history() -> None:
    found = plan(PlanRequest(node=node_of(), sample=sample_of(), databases=(postgresql(),)))
    assert found.risk.probability is not None
    assert found.risk.probability.high > found.risk.policy
    assert found.risk.meets_policy is None


HISTORY = MemoryHistory(
    times_seconds=tuple(1000.0 + 3600 * i for i in range(400)),
    used_bytes=tuple(int((40 + 6 * ((i * 37) % 400) / 400) * GIB) for i in range(400)),
)


def test_the_history_gives_the_quantile_of_the_sum() -> None:
    units = (
        ObservedUnit(key="a", kind="pod", name="a", source="cgroup_v2", ordinary_bytes=10 * GIB),
        ObservedUnit(key="b", kind="pod", name="b", source="cgroup_v2", ordinary_bytes=20 * GIB),
    )
    sample = sample_of(units=units, ordinary_history=HISTORY)
    found = plan(PlanRequest(node=node_of(), sample=sample, policy=Policy(risk=0.01)))
    at_risk = sorted(HISTORY.used_bytes)[-5]  # 1 % of 400 samples lie above it
    assert sum_bytes(found.ledger, LedgerKind.TENANTS) == pytest.approx(at_risk, rel=0.002)
    assert found.now is not None
    assert "p99 of 17 days, 400 samples" in found.now.tenants[-1].basis


def test_workloads_are_replaced_and_excluded_by_name() -> None:
    units = (
        ObservedUnit(key="pod:1", kind="pod", name="shop/web", source="cgroup_v2", ordinary_bytes=10 * GIB),
        ObservedUnit(key="pod:2", kind="pod", name="shop/batch", source="cgroup_v2", ordinary_bytes=20 * GIB),
    )
    request = PlanRequest(
        node=node_of(),
        sample=sample_of(units=units),
        tenants=(Tenant(name="shop/web", request_bytes=12 * GIB),),
        observed=ObservedWorkloads(exclude=("pod:2",)),
    )
    found = plan(request)
    assert sum_bytes(found.ledger, LedgerKind.TENANTS) == 12 * GIB + int(13.5 * GIB)
    assert found.now is not None
    assert [(t.name, t.planned_bytes) for t in found.now.tenants][:2] == [("shop/web", None), ("shop/batch", None)]
    assert sum_bytes(found.now.ledger, LedgerKind.TENANTS) == int(43.5 * GIB)


def test_many_units_stay_readable_and_lose_nothing() -> None:
    units = tuple(
        ObservedUnit(key=f"u{i}", kind="pod", name=f"pod-{i}", source="cgroup_v2", ordinary_bytes=(i + 1) * 8 * MIB)
        for i in range(60)
    )
    found = plan(PlanRequest(node=node_of(), sample=sample_of(units=units)))
    assert sum_bytes(found.ledger, LedgerKind.TENANTS) == int(43.5 * GIB)
    assert found.now is not None
    assert len(found.now.tenants) == LISTED_UNITS + 2
    assert any(t.name == f"{60 - LISTED_UNITS} smaller units" for t in found.now.tenants)


def test_rss_that_counts_pages_twice_is_scaled() -> None:
    units = (
        ObservedUnit(key="a", kind="process_group", name="a", source="rss", ordinary_bytes=60 * GIB),
        ObservedUnit(key="b", kind="pod", name="b", source="cgroup_v2", ordinary_bytes=20 * GIB),
    )
    found = plan(PlanRequest(node=node_of(), sample=sample_of(units=units)))
    assert found.now is not None
    assert {t.name: t.now_bytes for t in found.now.tenants} == {
        "a": int(23.5 * GIB),
        "b": 20 * GIB,
        EVERYTHING_ELSE: 0,
    }
    assert any("more than once" in note for note in found.now.notes)


# --- databases that run ---------------------------------------------------------------------------


def running(**changes: object) -> ObservedDatabase:
    base: dict[str, object] = {
        "key": "postgresql@systemd:postgresql.service:5432",
        "engine": "postgresql",
        "version": "17",
        "unit": "systemd:postgresql.service",
        "settings": {"shared_buffers": "16GB", "max_connections": "200"},
        "private_bytes": 2 * GIB,
        "shared_bytes": 16 * GIB,
        "hugetlb_bytes": 0,
        "page_tables_bytes": 256 * MIB,
        "segments": (ObservedSegment(bytes=17 * GIB, backing="base"),),
    }
    return ObservedDatabase(**base | changes)  # type: ignore[arg-type]


UNIT = ObservedUnit(
    key="systemd:postgresql.service",
    kind="systemd_service",
    name="postgresql.service",
    source="cgroup_v2",
    ordinary_bytes=19 * GIB,
)


def test_a_running_database_of_the_scenario_is_not_counted_twice() -> None:
    sample = sample_of(units=(UNIT,), databases=(running(),))
    found = plan(PlanRequest(node=node_of(), sample=sample, databases=(postgresql(),)))
    assert found.now is not None
    assert [match.instance for match in found.now.matches] == ["main"]
    assert sum_bytes(found.ledger, LedgerKind.TENANTS) == int(43.5 * GIB) - 18 * GIB
    tables = [p for p in found.ledger.parts if p.name == "page tables of what runs"]
    assert sum(part.bytes for part in tables) == 256 * MIB
    assert found.difference is not None
    assert any("moves from ordinary memory to the pool" in move for move in found.difference.moves)
    unit = next(t for t in found.now.tenants if t.name == "postgresql.service")
    assert (unit.now_bytes, unit.database_bytes, unit.planned_bytes) == (19 * GIB, 18 * GIB, GIB)


def test_a_database_that_runs_beside_the_scenario_stays_a_tenant() -> None:
    sample = sample_of(units=(UNIT,), databases=(running(engine="mysql", key="mysql@x"),))
    found = plan(PlanRequest(node=node_of(), sample=sample, databases=(postgresql(),)))
    assert sum_bytes(found.ledger, LedgerKind.TENANTS) == int(43.5 * GIB)


def test_two_of_an_engine_are_matched_by_their_buffer_pool_or_by_name() -> None:
    small = running(key="postgresql@b:5433", settings={"shared_buffers": "4GB"}, unit=None, shared_bytes=4 * GIB)
    sample = sample_of(units=(UNIT,), databases=(running(), small))
    by_pool = plan(PlanRequest(node=node_of(), sample=sample, databases=(postgresql(4, engine="pg"),)))
    assert by_pool.now is not None
    assert [match.key for match in by_pool.now.matches] == ["postgresql@b:5433"]
    assert by_pool.instances[0].runs_as == "postgresql@b:5433"
    unclear = plan(PlanRequest(node=node_of(), sample=sample, databases=(postgresql(8),)))
    assert unclear.now is not None
    assert unclear.now.matches == ()
    assert unclear.instances[0].runs_as is None
    assert any("runs_as" in note for note in unclear.now.notes)
    named = plan(PlanRequest(node=node_of(), sample=sample, databases=(postgresql(8, runs_as="postgresql@b:5433"),)))
    assert named.now is not None
    assert [match.key for match in named.now.matches] == ["postgresql@b:5433"]
    unseen = plan(PlanRequest(node=node_of(), databases=(postgresql(8, runs_as="postgresql@b:5433"),)))
    assert unseen.instances[0].runs_as == "postgresql@b:5433"
    with pytest.raises(PlannerError, match=r"databases\[0\]\.runs_as"):
        plan(PlanRequest(node=node_of(), sample=sample, databases=(postgresql(8, runs_as="nobody"),)))


# --- pools ----------------------------------------------------------------------------------------


def pooled(nr: int, free: int, resv: int) -> tuple[NodeFacts, tuple[GlobalPool, ...]]:
    pools = (Pool(page_bytes=2 * MIB, nr_hugepages=nr, free_hugepages=free),)
    everywhere = GlobalPool(page_bytes=2 * MIB, nr_hugepages=nr, free_hugepages=free, resv_hugepages=resv)
    return node_of(numa=(NumaNode(id=0, mem_total_bytes=256 * GIB, pools=pools),)), (everywhere,)


def test_fifty_thousand_mapped_pages_of_others_stay_beside_the_databases_own() -> None:
    node, pools = pooled(60_000, 10_000, 2_000)
    others = running(
        key="oracle@x", engine="oracle", unit=None, segments=(ObservedSegment(bytes=1, backing="hugetlb"),)
    )
    sample = sample_of(256, pools=pools, databases=(others,), processes=())
    found = plan(PlanRequest(node=node, sample=sample, databases=(postgresql(),)))
    own = found.instances[0].demand.pages
    assert found.instances[0].page_bytes == 2 * MIB
    assert found.pools[0].held_pages == 52_000
    assert found.pools[0].held_by == ("oracle@x",)
    assert found.pools[0].pages >= 52_000 + own
    assert found.difference is not None
    assert found.difference.pools[0].in_use_pages == 52_000


def test_the_pages_of_the_database_that_is_planned_are_its_own() -> None:
    node, pools = pooled(9_000, 700, 300)
    own = running(segments=(ObservedSegment(bytes=8_300 * 2 * MIB, backing="hugetlb", page_bytes=2 * MIB),))
    sample = sample_of(256, pools=pools, databases=(own,), processes=())
    found = plan(PlanRequest(node=node, sample=sample, databases=(postgresql(),)))
    assert found.pools[0].held_pages == 300  # 8,600 in use, 8,300 of them are the database's
    demand = found.instances[0].demand.pages
    assert demand + 300 <= found.pools[0].pages < demand + 300 + 200


def test_pages_of_unknown_holders_stay_beside_the_databases_demand() -> None:
    node, pools = pooled(9_000, 700, 300)
    sample = sample_of(256, pools=pools)
    found = plan(PlanRequest(node=node, sample=sample, databases=(postgresql(),)))
    assert found.pools[0].held_pages == 8_600
    assert found.pools[0].demand_pages == 8_600 + found.instances[0].demand.pages


def test_a_pool_whose_use_is_unknown_is_not_released() -> None:
    pools = (Pool(page_bytes=2 * MIB, nr_hugepages=5_000),)
    node = node_of(numa=(NumaNode(id=0, mem_total_bytes=256 * GIB, pools=pools),))
    found = plan(PlanRequest(node=node, tenants=(Tenant(name="a", request_bytes=GIB),), databases=(postgresql(1),)))
    assert sum(p.pages for p in found.pools if p.page_bytes == 2 * MIB) >= 5_000


def test_processes_name_the_holders() -> None:
    node, pools = pooled(1_000, 0, 0)
    processes = (ProcessMemory(name="dpdk-app", shared_hugetlb_bytes=2_000 * MIB),)
    sample = sample_of(256, pools=pools, databases=(), processes=processes)
    found = plan(PlanRequest(node=node, sample=sample, databases=(postgresql(1),)))
    assert found.pools[0].held_by == ("dpdk-app",)


# --- samples that lack lines ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "missing",
    [
        ("anon_pages_bytes",),
        ("shmem_bytes",),
        ("cached_bytes",),
        ("mem_free_bytes",),
        ("percpu_bytes", "sec_page_tables_bytes", "buffers_bytes"),
        ("s_unreclaim_bytes", "kernel_stack_bytes", "page_tables_bytes"),
        ("anon_pages_bytes", "shmem_bytes", "cached_bytes", "mem_available_bytes"),
    ],
)
def test_missing_lines_never_lose_memory(missing: tuple[str, ...]) -> None:
    full = sample_of()
    assert full.memory is not None
    sample = replace(full, memory=replace(full.memory, **dict.fromkeys(missing)))
    found = plan(PlanRequest(node=node_of(), sample=sample))
    assert found.now is not None
    assert sum(part.bytes for part in found.ledger.parts) == 128 * GIB
    assert parts_of(found.ledger) == parts_of(found.now.ledger)
    # What is missing counts as used: never more is available than the whole sample says.
    assert available_bytes(found.ledger) <= available_bytes(plan(PlanRequest(node=node_of(), sample=full)).ledger)


def test_counters_that_exceed_mem_total_are_taken_off_the_page_cache() -> None:
    full = sample_of()
    assert full.memory is not None
    torn = replace(full, memory=replace(full.memory, mem_free_bytes=46 * GIB))
    found = plan(PlanRequest(node=node_of(), sample=torn))
    assert sum(part.bytes for part in found.ledger.parts) == 128 * GIB
    assert found.now is not None
    assert any("exceed MemTotal" in note for note in found.now.notes)


def test_no_free_memory_known_is_no_observation() -> None:
    full = sample_of()
    assert full.memory is not None
    blind = replace(full, memory=replace(full.memory, mem_free_bytes=None, mem_available_bytes=None))
    found = plan(PlanRequest(node=node_of(), sample=blind, databases=(postgresql(),)))
    assert found.now is None
    assert found.risk.probability is None


@pytest.mark.parametrize(
    ("clients", "said", "expected"), [(7, None, 7), (7, 12, 12), (0, None, None), (None, None, None)]
)
def test_a_running_server_says_how_many_clients_work_where_the_scenario_does_not(
    clients: int | None, said: int | None, expected: int | None
) -> None:
    running = ObservedDatabase(key="pg@1", engine="postgres", clients=clients, private_bytes=GIB, shared_bytes=8 * GIB)
    database = DatabaseInstance(
        name="main",
        engine="postgresql",
        settings={"shared_buffers": "8GB", "max_connections": "400"},
        workload=Workload(active_connections=said),
    )
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=128 * GIB),), cpus=16)
    request = PlanRequest(node=node, databases=(database,), sample=sample_of(databases=(running,)))
    found, stated = plan(request), replace(database, workload=Workload(active_connections=expected))
    assert found.gains == plan(replace(request, databases=(stated,))).gains
    assert found.ledger == plan(replace(request, databases=(stated,))).ledger
    if expected is not None and said is None:
        silent = replace(request, sample=sample_of(databases=(replace(running, clients=None),)))
        assert found.instances[0].page_tables_base_bytes < plan(silent).instances[0].page_tables_base_bytes
