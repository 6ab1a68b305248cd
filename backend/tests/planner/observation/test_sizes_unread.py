"""A fit is ok only where the size of every database is known: given, read, mapped, or its engine's own default."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from support.seeds import SEEDS

from hugeplan.artifacts import render, withheld
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    EVERYTHING_IN_USE,
    GIB,
    MIB,
    DatabaseInstance,
    LedgerKind,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    ObservedUnit,
    Plan,
    PlanRequest,
    Pool,
    Reservations,
    State,
    Tenant,
)
from hugeplan.planner.observation.databases import as_it_runs
from hugeplan.planner.plan import plan
from hugeplan.planner.verdict import Answer, verdict
from hugeplan.scenario_file import ScenarioDocument, scenario_as_it_runs, to_request

SIZES = {"postgresql": ("shared_buffers", "8GB"), "mysql": ("innodb_buffer_pool_size", "8G"),
         "mariadb": ("innodb_buffer_pool_size", "8G"), "redis": ("maxmemory", "8gb"), "jvm": ("Xmx", "8g")}  # fmt: skip
NODE = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), kernel_used_bytes=GIB)
USED = ObservedUnit(key="pods/db", kind="pod", name="db", source="cgroup_v2", ordinary_bytes=20 * GIB)


def fit(found: Plan) -> State:
    (only,) = [finding for finding in found.findings if finding.code == "memory_fit"]
    return only.state


def observed(server: ObservedDatabase, instance: DatabaseInstance | None = None) -> Plan:
    """The plan of a node where one server is seen to run and its node's memory is known."""
    memory = Meminfo(
        mem_total_bytes=64 * GIB, mem_free_bytes=30 * GIB, buffers_bytes=0, cached_bytes=10 * GIB,
        s_reclaimable_bytes=0, s_unreclaim_bytes=GIB, kernel_stack_bytes=0, page_tables_bytes=0,
        anon_pages_bytes=20 * GIB, shmem_bytes=GIB,
    )  # fmt: skip
    sample = NodeSample(databases=(server,), memory=memory, units=(USED,), processes=())
    described = instance or DatabaseInstance(name="db", engine=server.engine, runs_as=server.key)
    return plan(PlanRequest(node=NODE, databases=(described,), sample=sample))


@pytest.mark.parametrize("engine", SIZES)
def test_a_setting_that_nobody_read_is_asked_for(engine: str) -> None:
    name, value = SIZES[engine]
    unread = DatabaseInstance(name="db", engine=engine, unread_settings=(name,))
    found = plan(PlanRequest(node=NODE, databases=(unread,)))
    assert (fit(found), found.fits, found.feasible) == (State.UNKNOWN, None, True)
    assert f"{name} of db was not read" in found.headline
    judged = verdict(found)
    assert judged.answer is Answer.NOT_ENOUGH_KNOWN
    assert name in judged.reason
    given = plan(PlanRequest(node=NODE, databases=(replace(unread, settings={name: value}),)))
    assert (fit(given), given.fits) == (State.OK, True)
    assert "not read" not in given.headline


@pytest.mark.parametrize("engine", sorted(SIZES.keys() - {"redis"}))
def test_a_described_database_without_a_size_has_its_engines_default(engine: str) -> None:
    found = plan(PlanRequest(node=NODE, databases=(DatabaseInstance(name="db", engine=engine),)))
    assert fit(found) is State.OK


def test_an_engine_without_a_default_has_no_size_until_it_is_given() -> None:
    """Redis takes whatever is written to it where maxmemory is not set."""
    found = plan(PlanRequest(node=NODE, databases=(DatabaseInstance(name="cache", engine="redis"),)))
    assert (fit(found), found.fits) == (State.UNKNOWN, None)
    assert "maxmemory of cache sets no limit" in found.headline


@pytest.mark.parametrize("zero", ["0", "0mb"])
def test_a_limit_of_zero_is_no_limit(zero: str) -> None:
    """redis_exporter reports maxmemory 0 of each server without a limit."""
    cache = DatabaseInstance(name="cache", engine="redis", settings={"maxmemory": zero})
    found = plan(PlanRequest(node=NODE, databases=(cache,)))
    assert (fit(found), found.fits) == (State.UNKNOWN, None)
    assert "maxmemory of cache sets no limit" in found.headline
    small = replace(cache, settings={"maxmemory": "1"})
    assert plan(PlanRequest(node=NODE, databases=(small,))).fits is True


@pytest.mark.parametrize(
    ("engine", "setting"),
    [("hana", "global_allocation_limit"), ("sqlserver", "memorylimitmb"), ("mongodb", "wiredTigerCacheSizeGB")],
)
def test_a_limit_of_zero_is_the_engines_default(engine: str, setting: str) -> None:
    default = DatabaseInstance(name="db", engine=engine)
    zero = plan(PlanRequest(node=NODE, databases=(replace(default, settings={setting: "0"}),)))
    assert zero.ledger == plan(PlanRequest(node=NODE, databases=(default,))).ledger


@pytest.mark.parametrize("engine", sorted(SIZES.keys() - {"redis"}))
@pytest.mark.parametrize("complete", [False, None])
def test_a_running_server_of_which_neither_settings_nor_mappings_were_read(engine: str, complete: bool | None) -> None:
    server = ObservedDatabase(key="db:1", engine=engine, unit="pods/db", settings_complete=complete)
    assert fit(observed(server)) is State.UNKNOWN
    name, value = SIZES[engine]
    told = DatabaseInstance(name="db", engine=engine, runs_as="db:1", settings={name: value})
    assert fit(observed(server, told)) is not State.UNKNOWN


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb"])
def test_a_running_server_whose_settings_were_all_read_runs_at_its_default(engine: str) -> None:
    server = ObservedDatabase(
        key="db:1", engine=engine, unit="pods/db", settings_complete=True, shared_bytes=150 * MIB, private_bytes=MIB
    )
    assert fit(observed(server)) is State.OK


@pytest.mark.parametrize(("mapped", "known"), [(None, False), (3 * GIB, False), (49 * GIB, True)])
def test_a_share_of_memory_is_a_size_where_the_mappings_say_so(mapped: int | None, known: bool) -> None:
    """MySQL in a container, since 9.3: three quarters of what that has, which a report may not say."""
    segments = () if mapped is None else (ObservedSegment(bytes=mapped, backing="base"),)
    server = ObservedDatabase(key="mysql@u", engine="mysql", unit="pods/db", version="9.7", segments=segments,
                              settings={"innodb_dedicated_server": "ON"}, settings_complete=True)  # fmt: skip
    instance = DatabaseInstance(name="db", engine="mysql", version="9.7", settings=server.settings, runs_as=server.key)
    assert (fit(observed(server, instance)) is State.UNKNOWN) is not known


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb"])
def test_a_mapping_of_the_defaults_size_tells_the_size(engine: str) -> None:
    segment = ObservedSegment(bytes=150 * MIB, backing="base")
    server = ObservedDatabase(key="db:1", engine=engine, unit="pods/db", segments=(segment,), shared_bytes=150 * MIB)
    assert fit(observed(server)) is State.OK


@pytest.mark.parametrize(("mapped", "told"), [(304 * MIB, False), (17 * GIB, True)])
def test_a_mapping_far_below_the_default_says_that_the_default_is_not_the_size(mapped: int, told: bool) -> None:
    """Found: pages for a quarter of the node were handed out for `java @file` of 64 MiB, which mapped 152 of them."""
    segment = ObservedSegment(bytes=mapped, backing="hugetlb", page_bytes=2 * MIB)
    server = ObservedDatabase(key="db:1", engine="jvm", unit="pods/db", segments=(segment,), settings_complete=False)
    found = observed(server)
    assert (fit(found) is not State.UNKNOWN) is told
    assert told or (found.fits, "Xmx of db was not read" in found.headline) == (None, True)
    complete = replace(server, settings_complete=True, memory_limit_bytes=-1)
    assert (fit(observed(complete)) is not State.UNKNOWN) is told
    assert fit(observed(replace(complete, segments=()))) is not State.UNKNOWN
    assert fit(observed(replace(complete, settings={"UseZGC": "true"}))) is not State.UNKNOWN, "it maps as it grows"


@pytest.mark.parametrize(
    ("settings", "limit", "heap"),
    [
        ({}, -1, 16 * GIB),
        ({}, 8 * GIB, 2 * GIB),
        ({"MaxRAMPercentage": "75"}, 8 * GIB, 6 * GIB),
        ({"MaxRAMPercentage": "75", "UseContainerSupport": "false"}, 8 * GIB, 48 * GIB),
        ({"MaxRAM": "16g"}, None, 4 * GIB),
        ({"Xmx": "3g"}, None, 3 * GIB),
        ({}, None, None),
        ({"MaxRAMPercentage": "75"}, None, None),
        ({"MaxRAMPercentage": "75,5"}, -1, None),
        ({"MaxRAMFraction": "2"}, -1, None),
        ({"AggressiveHeap": "true"}, -1, None),
    ],
)
def test_a_heap_is_a_share_of_the_memory_that_its_unit_leaves_it(
    settings: dict[str, str], limit: int | None, heap: int | None
) -> None:
    """Found: MaxRAMPercentage=75 and a container of 2 GiB were both counted at a quarter of the node, and fitted."""
    counted = settings.keys().isdisjoint({"MaxRAMFraction", "AggressiveHeap"})
    server = ObservedDatabase(
        key="db:1", engine="jvm", version="17", unit="pods/db", settings=settings, settings_complete=counted,
        memory_limit_bytes=limit,
    )  # fmt: skip
    memory = Meminfo(mem_total_bytes=64 * GIB, mem_free_bytes=60 * GIB, anon_pages_bytes=GIB, shmem_bytes=0)
    for sample in (NodeSample(databases=(server,), memory=memory, processes=()), NodeSample(databases=(server,))):
        scenario = scenario_as_it_runs(NODE, sample).model_dump(mode="json", exclude_defaults=True)
        for request in (
            PlanRequest(node=NODE, databases=as_it_runs(sample, DemandContext.of_node(NODE)), sample=sample),
            to_request(ScenarioDocument.model_validate(scenario), NODE, sample=sample),
        ):
            found = plan(request)
            if heap is None:
                assert (found.fits, "Xmx of jvm was not read" in found.headline) == (None, True)
            else:
                assert (found.instances[0].demand.pool_bytes, found.fits) == (heap, True)


@pytest.mark.parametrize(("given", "meant"), [("32", "32GB"), ("16", "16GB")])
def test_a_size_without_a_unit_is_asked_about_before_anything_is_given_back(given: str, meant: str) -> None:
    pools = (Pool(page_bytes=2 * MIB, nr_hugepages=17_000, free_hugepages=17_000, resv_hugepages=0),)
    node = replace(NODE, numa=(NumaNode(id=0, mem_total_bytes=64 * GIB, pools=pools),))
    database = DatabaseInstance(name="db", engine="postgresql", settings={"shared_buffers": given})
    judged = verdict(plan(PlanRequest(node=node, databases=(database,), sample=NodeSample(databases=(), processes=()))))
    assert judged.answer is Answer.NOT_ENOUGH_KNOWN
    assert meant in judged.reason
    written = replace(database, settings={"shared_buffers": "256kB"})
    request = PlanRequest(node=node, databases=(written,), sample=NodeSample(databases=(), processes=()))
    assert verdict(plan(request)).answer is Answer.DO_IT


# --- engines that do not run without a size --------------------------------------------------------

WITHOUT_DEFAULT = {"oracle": ("sga_target", "8G"), "db2": ("database_memory", "8G")}
BESIDE = DatabaseInstance(
    name="pg", engine="postgresql", version="17", settings={"shared_buffers": "8GB", "huge_pages": "on"}
)


@pytest.mark.parametrize("engine", WITHOUT_DEFAULT)
def test_the_rest_of_a_node_is_planned_and_the_database_without_a_size_is_named(engine: str) -> None:
    name, value = WITHOUT_DEFAULT[engine]
    unread = DatabaseInstance(name="core", engine=engine, unread_settings=(name,))
    found = plan(PlanRequest(node=NODE, databases=(unread, BESIDE)))
    alone = plan(PlanRequest(node=NODE, databases=(BESIDE,)))
    assert [p.pages for p in found.pools] == [p.pages for p in alone.pools]
    assert (found.fits, fit(found)) == (None, State.UNKNOWN)
    assert f"{name} of core was not read" in found.headline
    assert "was not read" in found.instances[0].why
    assert "takes no hugetlb pool" not in found.instances[0].why
    only = plan(PlanRequest(node=NODE, databases=(unread,)))
    assert "as it is set" not in only.headline
    given = plan(PlanRequest(node=NODE, databases=(replace(unread, settings={name: value}), BESIDE)))
    assert (given.fits, fit(given)) == (True, State.OK)
    with pytest.raises(PlannerError, match=name):  # who writes a scenario is asked for it
        plan(PlanRequest(node=NODE, databases=(replace(unread, unread_settings=()),)))


@pytest.mark.parametrize("engine", WITHOUT_DEFAULT)
def test_pages_and_memory_of_a_running_server_without_a_size_stay(engine: str) -> None:
    used = 3_000
    pools = (Pool(page_bytes=2 * MIB, nr_hugepages=4_000, free_hugepages=1_000, resv_hugepages=0),)
    node = replace(NODE, numa=(NumaNode(id=0, mem_total_bytes=64 * GIB, pools=pools),))
    memory = Meminfo(
        mem_total_bytes=64 * GIB, mem_free_bytes=20 * GIB, cached_bytes=GIB, anon_pages_bytes=30 * GIB, shmem_bytes=0
    )
    server = ObservedDatabase(
        key="core@1", engine=engine, hugetlb_bytes=used * 2 * MIB, private_bytes=12 * GIB, shared_bytes=0
    )
    sample = NodeSample(memory=memory, databases=(server,), processes=())
    running = as_it_runs(sample, DemandContext.of_node(node))
    found = plan(PlanRequest(node=node, databases=(*running, BESIDE), sample=sample))
    (pool,) = found.pools
    assert pool.held_pages == used
    assert sum(part.bytes for part in found.ledger.parts if part.kind is LedgerKind.TENANTS) >= 30 * GIB
    assert (found.fits, fit(found)) == (None, State.UNKNOWN)


@pytest.mark.parametrize("engine", [*SIZES, *WITHOUT_DEFAULT])
def test_free_pages_are_not_given_back_while_a_size_is_not_read(engine: str) -> None:
    name, _ = (SIZES | WITHOUT_DEFAULT)[engine]
    pools = (Pool(page_bytes=2 * MIB, nr_hugepages=17_000, free_hugepages=17_000, resv_hugepages=0),)
    node = replace(NODE, numa=(NumaNode(id=0, mem_total_bytes=64 * GIB, pools=pools),))
    unread = DatabaseInstance(name="db", engine=engine, unread_settings=(name,))
    found = plan(PlanRequest(node=node, databases=(unread,)))
    assert {f.state for f in found.findings if f.code == "pool_idle"} == {State.UNKNOWN}
    assert not any("set nr_hugepages" in (f.fix or "").lower() for f in found.findings)


# --- one answer ------------------------------------------------------------------------------------


def doubtful(rng: random.Random) -> PlanRequest:
    """Nodes on which something decides the fit that nobody read: sizes, or whose the memory in use is."""
    total = rng.randrange(8, 128) * GIB
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=total),), kernel_used_bytes=GIB)
    databases = []
    for index in range(rng.randrange(1, 4)):
        engine = rng.choice([*SIZES, *WITHOUT_DEFAULT])
        name, _ = (SIZES | WITHOUT_DEFAULT)[engine]
        value = str(rng.randrange(1, 80)) + {"postgresql": "GB", "redis": "gb", "jvm": "g"}.get(engine, "G")
        is_read = rng.random() < 0.6
        databases.append(
            DatabaseInstance(
                name=f"d{index}", engine=engine, settings={name: value} if is_read else {},
                unread_settings=() if is_read else (name,),
            )
        )  # fmt: skip
    used = rng.randrange(1, 100) * total // 100
    memory = Meminfo(mem_total_bytes=total, mem_free_bytes=total - used, anon_pages_bytes=used, shmem_bytes=0)
    sample = NodeSample(memory=memory, databases=rng.choice(((), None)), processes=())
    whole = (Tenant(name=EVERYTHING_IN_USE, kind="service", request_bytes=used),)
    observed = rng.random() < 0.6
    return PlanRequest(
        node=node,
        databases=tuple(databases),
        tenants=() if observed else rng.choice((whole, ())),
        sample=sample if observed else None,
        reservations=Reservations(kubernetes=True, provider="gke") if rng.random() < 0.2 else Reservations(),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_headline_finding_verdict_files_and_status_are_one_answer(seed: int) -> None:
    rng = random.Random(seed)
    seen: Counter[tuple[bool, bool | None]] = Counter()
    for _ in range(250):
        request = doubtful(rng)
        found = plan(request)
        seen[found.feasible, found.fits] += 1
        states = {f.state for f in found.findings if f.code in ("memory_fit", "provider_cap")}
        answer = verdict(found).answer
        if found.fits is None:
            assert State.UNKNOWN in states
            assert State.WRONG not in states
            assert "fits n is not known" in found.headline or "Whether it fits is not known" in found.headline
            assert answer is Answer.NOT_ENOUGH_KNOWN
        elif found.fits:
            assert states <= {State.OK, State.ATTENTION}
            assert found.feasible
            assert "not known" not in found.headline
        else:
            assert not found.feasible
            assert State.WRONG in states
            assert found.headline.startswith("Does not fit n: ")
            assert answer is Answer.DONT
        assert (withheld(found) is None) == (found.fits is True)
        assert found.fits or not render(found, request)
        forced = [item for item in render(found, request, force=True) if item.media_type.startswith("text/")]
        assert found.fits or all(f"WARNING: {found.headline}" in item.content for item in forced)
    assert {(True, True), (True, None), (False, None), (False, False)} <= seen.keys(), seen
