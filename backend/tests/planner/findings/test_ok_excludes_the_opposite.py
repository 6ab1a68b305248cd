"""An ok that rests on a size that nobody read, on a slack that two share, or on half a name is no ok."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    GlobalPool,
    MemoryHistory,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    Plan,
    PlanRequest,
    Policy,
    Pool,
    ProcessMemory,
    Reservations,
    State,
    Tenant,
)
from hugeplan.planner.plan import plan

POOL = Pool(page_bytes=2 * MIB, nr_hugepages=9000, free_hugepages=9000, resv_hugepages=0)
NODE = NodeFacts(
    name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB, pools=(POOL,)),), kernel_used_bytes=GIB, cpus=8
)
MYSQL = DatabaseInstance(name="shop", engine="mysql", settings={"innodb_buffer_pool_size": "4G"})
WEB = Tenant(name="web", request_bytes=GIB, limit_bytes=GIB)
#: What is said of all databases together, and of each.
OF_PAGES = {"pool_short", "start_order", "buffer_pool_mistaken_for_segment"}
OF_MEMORY = {"risk_above_policy", "pod_memory", "page_cache_short"}
OF_ONE = {"will_not_start", "pod_limit_below_segment", "rounding_waste", "count_uncertain", "size_without_unit"}


def found(*databases: DatabaseInstance, node: NodeFacts = NODE, **fields: object) -> Plan:
    fields = {"tenants": (WEB,), "reservations": Reservations(kubernetes=True), "sample": NodeSample()} | fields
    return plan(PlanRequest(node=node, databases=databases, **fields))  # type: ignore[arg-type]


def states(of: Plan, codes: set[str], subject: str | None = None) -> set[tuple[str, State]]:
    return {(f.code, f.state) for f in of.findings if f.code in codes and subject in {None, f.subject}}


def test_what_rests_on_a_size_that_was_not_read_is_not_known() -> None:
    wants = {"huge_pages": "on", "effective_cache_size": "1GB"}
    sized = DatabaseInstance(
        name="core", engine="postgresql", settings=wants | {"shared_buffers": "128MB"}, pod_hugepages_limit_bytes=GIB
    )
    unread = replace(sized, settings=wants, unread_settings=("shared_buffers",))
    known, guessed = found(sized, MYSQL), found(unread, MYSQL)
    for codes, subject in ((OF_PAGES | OF_MEMORY, None), (OF_ONE, "core")):
        assert states(known, codes, subject) == {(code, State.OK) for code in codes}
        assert states(guessed, codes, subject) == {(code, State.UNKNOWN) for code in codes}
    assert all("shared_buffers of core was not read" in f.reason for f in guessed.findings if f.code == "pool_short")
    # What is said of the other one alone stands.
    assert states(guessed, {"rounding_waste", "count_uncertain"}, "shop") == {
        ("rounding_waste", State.OK),
        ("count_uncertain", State.OK),
    }
    assert guessed.risk.probability is None
    assert "shared_buffers of core was not read" in guessed.risk.basis


def test_an_engine_without_a_pool_leaves_the_pages_known_and_memory_unknown() -> None:
    cache = DatabaseInstance(name="cache", engine="redis", settings={"maxmemory": "0"})
    guessed = found(cache, MYSQL)
    codes = {"pool_short", "buffer_pool_mistaken_for_segment"}
    assert states(guessed, codes) == {(code, State.OK) for code in codes}
    codes = {"risk_above_policy", "pod_memory"}
    assert states(guessed, codes) == {(code, State.UNKNOWN) for code in codes}


def test_a_risk_that_is_above_the_policy_without_the_unread_one_stays_so() -> None:
    small = replace(NODE, numa=(replace(NODE.numa[0], mem_total_bytes=8 * GIB, pools=()),))
    big = Tenant(name="web", request_bytes=2 * GIB, limit_bytes=9 * GIB)
    guessed = found(DatabaseInstance(name="cache", engine="redis"), node=small, tenants=(big,))
    assert guessed.risk.probability is not None
    assert guessed.risk.meets_policy is not True


@pytest.mark.parametrize("slack", [1, 2, 3, 4])
def test_a_slack_is_shared_by_all_whose_counts_may_be_off(slack: int) -> None:
    """Each of two Oracle databases may need two pages more."""
    pair = [DatabaseInstance(name=name, engine="oracle", settings={"sga_target": "3G"}) for name in ("a", "b")]
    policy = Policy(slack_fraction=0.0, slack_min_pages=slack)
    both = found(*pair, policy=policy)
    errors = [planned.demand.error_pages for planned in both.instances]
    spare = sum(pool.slack_pages for pool in both.pools)
    assert min(errors) > 0
    expected = State.OK if sum(errors) <= spare else State.ATTENTION
    assert states(both, {"count_uncertain"}) == {("count_uncertain", expected)}
    assert (("start_order", State.OK) in states(both, {"start_order"})) == (expected is State.OK)


def test_a_server_that_refuses_base_pages_may_not_start_where_its_count_may_be_off() -> None:
    older = DatabaseInstance(
        name="old", engine="postgresql", version="11", settings={"shared_buffers": "8GB", "huge_pages": "on"}
    )
    short = found(older, policy=Policy(slack_fraction=0.0, slack_min_pages=0))
    assert short.instances[0].demand.error_pages > 0
    assert states(short, {"will_not_start"}) == {("will_not_start", State.ATTENTION)}
    enough = found(older, policy=Policy(slack_fraction=0.2, slack_min_pages=0))
    assert states(enough, {"will_not_start"}) == {("will_not_start", State.OK)}


@pytest.mark.parametrize(
    ("workload", "state"),
    [
        ("web", State.OK), ("mysqld-exporter", State.OK), ("shopping", State.OK),
        ("mysql", State.ATTENTION), ("MySQL", State.ATTENTION), ("percona", State.ATTENTION), ("shop", State.ATTENTION),
        ("mysql-0", State.UNKNOWN), ("shop_primary", State.UNKNOWN), ("prod.mysql", State.UNKNOWN),
        ("percona-server-2", State.UNKNOWN),
    ],
)  # fmt: skip
def test_a_workload_that_is_named_after_a_database_or_its_engine(workload: str, state: State) -> None:
    of = found(MYSQL, tenants=(replace(WEB, name=workload),))
    assert states(of, {"double_counting"}) == {("double_counting", state)}


def test_a_limit_that_was_read_of_some_processes_only() -> None:
    oracle = DatabaseInstance(name="o", engine="oracle", settings={"sga_target": "3G"})
    told, untold = (ProcessMemory(name="ora", instance="o", memlock_limit_bytes=limit) for limit in (-1, None))
    of = found(oracle, sample=NodeSample(processes=(told, untold)))
    assert states(of, {"memlock_too_low"}) == {("memlock_too_low", State.UNKNOWN)}
    of = found(oracle, sample=NodeSample(processes=(told,)))
    assert states(of, {"memlock_too_low"}) == {("memlock_too_low", State.OK)}


@pytest.mark.parametrize(("at", "state"), [("boot", State.OK), ("runtime", State.ATTENTION)])
def test_a_kubelet_that_agrees_today_does_not_see_what_the_plan_changes_while_it_runs(at: str, state: State) -> None:
    sample = NodeSample(kubelet_capacity={"hugepages-2Mi": 9000 * 2 * MIB})
    of = found(MYSQL, sample=sample, policy=Policy(reserve_at=at))
    assert states(of, {"kubelet_not_restarted"}) == {("kubelet_not_restarted", state)}


@pytest.mark.parametrize(
    ("arch", "size", "feature"),
    [("x86_64", GIB, "pdpe1gb"), ("s390x", 2 * GIB, "EDAT2"), ("aarch64", GIB, None), ("x86_64", 2 * MIB, None)],
)
def test_a_page_size_that_not_every_processor_has_is_known_where_the_kernel_lists_it(
    arch: str, size: int, feature: str | None
) -> None:
    sizes = (MIB, 2 * GIB) if arch == "s390x" else (2 * MIB, GIB)
    numa = tuple(replace(numa, pools=None) for numa in NODE.numa)
    described = replace(NODE, arch=arch, huge_page_sizes_bytes=sizes, default_huge_page_bytes=sizes[0], numa=numa)
    database = DatabaseInstance(name="j", engine="jvm", settings={"Xmx": "6g"}, page_bytes=size)
    (told,) = [f for f in found(database, node=described).findings if f.code == "page_size_not_available"]
    assert told.state is (State.OK if feature is None else State.UNKNOWN)
    assert feature is None or feature in told.reason
    listed = NodeSample(pools=(GlobalPool(page_bytes=size, nr_hugepages=0, free_hugepages=0),))
    (told,) = [
        f for f in found(database, node=described, sample=listed).findings if f.code == "page_size_not_available"
    ]
    assert told.state is State.OK


@pytest.mark.parametrize(
    ("free", "surplus", "state"),
    [(0, 0, State.OK), (0, 100, State.OK), (0, 2100, State.ATTENTION), (2400, 2100, State.OK)],
)
def test_pages_that_vanish_when_they_are_freed_are_no_pool(free: int, surplus: int, state: State) -> None:
    """A server of ours runs on what was taken beyond the pool; where others hold that, free pages stay."""
    count = 2400 if free == 0 else 4800
    pool = Pool(
        page_bytes=2 * MIB, nr_hugepages=count, free_hugepages=free, resv_hugepages=0, surplus_hugepages=surplus
    )
    node = replace(NODE, numa=(replace(NODE.numa[0], pools=(pool,)),))
    server = ObservedDatabase(
        key="m:1", engine="mysql", settings_complete=True, settings={"innodb_buffer_pool_size": "4G"},
        segments=(ObservedSegment(bytes=2400 * 2 * MIB, backing="hugetlb", page_bytes=2 * MIB),),
    )  # fmt: skip
    of = found(
        replace(MYSQL, runs_as=None if free else "m:1"),
        node=node,
        sample=NodeSample(databases=() if free else (server,)),
    )
    assert states(of, {"pool_short"}) == {("pool_short", state)}


@pytest.mark.parametrize(
    ("engine", "version", "settings"),
    [
        ("postgresql", "13", {"shared_buffers": "8GB"}),
        ("oracle", "19", {"sga_target": "8G"}),
        ("db2", "11.5", {"database_memory": "8G"}),
        ("postgresql", "17", {"shared_buffers": "8GB"}),
    ],
)
def test_a_limit_at_a_count_that_may_be_off_is_not_known_to_cover_the_segment(
    engine: str, version: str, settings: dict[str, str]
) -> None:
    database = DatabaseInstance(name="core", engine=engine, version=version, settings=settings, page_bytes=2 * MIB)
    demand = found(database).instances[0].demand
    for more in (-1, 0, demand.error_pages - 1, demand.error_pages, demand.error_pages + 1):
        limit = (demand.pages + more) * 2 * MIB
        (judged,) = [
            f
            for f in found(replace(database, pod_hugepages_limit_bytes=limit)).findings
            if f.code == "pod_limit_below_segment"
        ]
        wanted = State.WRONG if more < 0 else State.UNKNOWN if more < demand.error_pages else State.OK
        assert judged.state is wanted, (more, demand.error_pages)
        if judged.state is State.UNKNOWN:
            assert f"at most {demand.pages + demand.error_pages:,}" in judged.reason


@pytest.mark.parametrize(("gib", "fits_today"), [(10, True), (40, False)])
def test_a_shortage_that_is_a_forecast_is_said_to_be_one(gib: int, *, fits_today: bool) -> None:
    grows = MemoryHistory(
        times_seconds=tuple(86400.0 * day for day in range(30)), used_bytes=tuple(GIB * n for n in range(10, 40))
    )
    tenant = Tenant(name="t", history=grows)
    database = DatabaseInstance(name="g", engine="generic", settings={"segment_size": f"{gib}GiB"})
    short = found(database, tenants=(tenant,), reservations=Reservations()).shortfall
    assert short is not None
    assert "30 GiB are set aside for growth of 30 days, a forecast" in short.reason
    assert short.reason.endswith("without it the plan fits.") == fits_today
    still = replace(tenant, history=replace(grows, used_bytes=(39 * GIB,) * 30))
    without = found(database, tenants=(still,), reservations=Reservations())
    assert without.feasible == fits_today
    assert without.shortfall is None or "forecast" not in without.shortfall.reason
