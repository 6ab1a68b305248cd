"""Every finding in every state it can have: ok, attention, wrong, unknown."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace

import pytest

from hugeplan.planner.findings import RULES
from hugeplan.planner.findings.container_limits import goes_off_as
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    EffectiveGranule,
    Finding,
    GlobalPool,
    HardwareFacts,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaMemory,
    NumaNode,
    ObservedDatabase,
    ObservedHugetlbLimit,
    ObservedSegment,
    PlanRequest,
    Policy,
    Pool,
    ProcessMemory,
    Reservations,
    State,
    Tenant,
    WalkShare,
)
from hugeplan.planner.plan import plan

PAGES = 2144  # what the instance below needs with its slack: 2,123 and 21
KUBERNETES = Reservations(kubernetes=True, kube_reserved_bytes=GIB, system_reserved_bytes=GIB, eviction_hard_bytes=GIB)


def database(**fields: object) -> DatabaseInstance:
    settings = {"shared_buffers": "4GB", "max_connections": "100", "huge_pages": "on"}
    instance = DatabaseInstance(name="main", engine="postgresql", version="17", settings=settings, page_bytes=2 * MIB)
    return replace(instance, **fields)


def with_settings(**settings: str) -> DatabaseInstance:
    return replace(database(), settings={**database().settings, **settings})


def pools(*counts: int, page_bytes: int = 2 * MIB, reserved: int | None = 0) -> tuple[NumaNode, ...]:
    return tuple(
        NumaNode(
            id=i,
            mem_total_bytes=32 * GIB,
            pools=(Pool(page_bytes=page_bytes, nr_hugepages=n, free_hugepages=n, resv_hugepages=reserved),),
        )
        for i, n in enumerate(counts)
    )


def node(numa: tuple[NumaNode, ...] = (NumaNode(id=0, mem_total_bytes=32 * GIB),), **facts: object) -> NodeFacts:
    return replace(NodeFacts(name="db-7", numa=numa, kernel_used_bytes=GIB), **facts)


def request(node_: NodeFacts | None = None, *databases: DatabaseInstance, **fields: object) -> PlanRequest:
    return PlanRequest(node=node_ or node(), databases=databases or (database(),), **fields)


def observed(**fields: object) -> NodeSample:
    return replace(NodeSample(), **fields)


def process(**fields: object) -> NodeSample:
    return observed(processes=(replace(ProcessMemory(name="postgres", instance="main"), **fields),))


def server(**fields: object) -> NodeSample:
    """One PostgreSQL that runs, of which no process was seen."""
    return observed(databases=(replace(ObservedDatabase(key="postgresql@node", engine="postgresql"), **fields),))


def touched(size: int) -> NodeSample:
    """A process of a MariaDB that has touched so much of huge pages."""
    return observed(processes=(ProcessMemory(name="mariadbd", instance="blog", private_hugetlb_bytes=size),))


def hardware(granule: int | None, *, virtualised: bool = True) -> HardwareFacts:
    found = EffectiveGranule(backing="2M", page_bytes=2 * MIB, granule_bytes=granule, status="ok")
    return HardwareFacts(virtualised=virtualised, granules=() if granule is None else (found,))


def global_pool(**fields: object) -> NodeSample:
    return observed(pools=(replace(GlobalPool(page_bytes=2 * MIB, nr_hugepages=PAGES), **fields),))


def oracle(**fields: object) -> DatabaseInstance:
    instance = DatabaseInstance(name="main", engine="oracle", settings={"sga_max_size": "4G"}, page_bytes=2 * MIB)
    return replace(instance, **fields)


def mysql_database() -> DatabaseInstance:
    return DatabaseInstance(name="shop", engine="mysql", settings={"innodb_buffer_pool_size": "4G"})


def mariadb(**fields: object) -> DatabaseInstance:
    settings = {"innodb_buffer_pool_size": "4G", "large_pages": "ON"}
    instance = DatabaseInstance(name="blog", engine="mariadb", version="11.8.6", settings=settings)
    return replace(instance, page_bytes=2 * MIB, **fields)


UNMAPPED = process(shared_hugetlb_bytes=0)
SERVED = database(runs_as="postgresql@pod")
GENERIC = DatabaseInstance(name="app", engine="generic", settings={"segment_size": "4GiB"}, page_bytes=2 * MIB)


def nobody_told_apart() -> NodeSample:
    """A node's memory without the databases that run there."""
    memory = Meminfo(mem_total_bytes=32 * GIB, mem_free_bytes=16 * GIB, anon_pages_bytes=12 * GIB, shmem_bytes=0)
    return NodeSample(memory=memory, processes=())


BIG = node((NumaNode(id=0, mem_total_bytes=64 * GIB),))
MARIADB_1G = replace(mariadb(), page_bytes=GIB)  # four pages of 1G, and 131 of 2M for its caches and log buffers
MARIADB_LIMIT = replace(MARIADB_1G, pod_hugepages_limit_bytes=4 * GIB)


@dataclass(frozen=True)
class Case:
    """A request, and the state one finding must have for it (None: the finding must be absent)."""

    code: str
    state: State | None
    request: PlanRequest
    says: str = ""


OK, LOOK, WRONG, UNKNOWN = State.OK, State.ATTENTION, State.WRONG, State.UNKNOWN
RUNNING = database(runs_as="postgresql@node")
RUNTIME = Policy(reserve_at="runtime")
SETTINGS_1G = database(page_bytes=GIB)


def limited(
    status: str,
    backing: str,
    *,
    usage: int | None = None,
    reservation: int | None = None,
    free: int | None = 1000,
    known: bool = True,
) -> NodeSample:
    """A running PostgreSQL with 3 GiB of segment, of which 1 GiB is warm, in a container with limits."""
    limits = tuple(
        ObservedHugetlbLimit(page_bytes=2 * MIB, counter=counter, limit_bytes=size, usage_bytes=GIB, cgroup_path="/pod")
        for counter, size in (("usage", usage), ("reservation", reservation))
        if size is not None
    )
    running = ObservedDatabase(
        key="postgresql@pod",
        engine="postgresql",
        segments=(
            ObservedSegment(bytes=3 * GIB, backing=backing, page_bytes=2 * MIB if backing == "hugetlb" else 4096),
        ),
        huge_pages_status=status,
        hugetlb_limits=limits if known else None,
    )
    return NodeSample(
        databases=(running,), pools=(GlobalPool(page_bytes=2 * MIB, nr_hugepages=2000, free_hugepages=free),)
    )


CASES = (
    Case("memory_fit", OK, request()),
    Case("memory_fit", WRONG, request(node((NumaNode(id=0, mem_total_bytes=5 * GIB),))), "more than NUMA node 0 has"),
    Case("memory_fit", LOOK, request(policy=Policy(free_margin_bytes=30 * GIB)), "less than the margin"),
    Case("memory_fit", LOOK, request(tenants=(Tenant(name="app"), Tenant(name="none", count=0))), "what app takes is"),
    Case("risk_above_policy", UNKNOWN, request(), "none was observed"),
    Case("risk_above_policy", OK, request(tenants=(Tenant(name="x", request_bytes=GIB, limit_bytes=GIB),))),
    Case("risk_above_policy", UNKNOWN, request(tenants=(Tenant(name="x"),)), "x"),
    Case("risk_above_policy", WRONG, request(tenants=(Tenant(name="x", request_bytes=GIB, limit_bytes=90 * GIB),))),
    Case(
        "risk_above_policy",
        LOOK,
        request(tenants=(Tenant(name="x", count=20, request_bytes=GIB, limit_bytes=int(1.32 * GIB)),)),
        "is not sure",
    ),
    Case("page_size_not_available", OK, request()),
    Case("page_size_not_available", WRONG, request(node(), SETTINGS_1G, policy=RUNTIME), "contiguous memory"),
    Case("provider_cap", None, request()),
    Case("provider_cap", OK, request(reservations=replace(KUBERNETES, provider="gke"))),
    Case(
        "provider_cap",
        WRONG,
        request(node((NumaNode(id=0, mem_total_bytes=6 * GIB),)), reservations=replace(KUBERNETES, provider="gke")),
        "GKE allows",
    ),
    Case(
        "provider_cap",
        LOOK,
        request(node(), SETTINGS_1G, reservations=replace(KUBERNETES, provider="gke")),
        "1G pages only on some machine types",
    ),
    Case("reserved_memory_equality", None, request(reservations=KUBERNETES)),
    Case("reserved_memory_equality", OK, request(reservations=replace(KUBERNETES, memory_manager_static=True))),
    Case(
        "reserved_memory_equality",
        WRONG,
        request(
            node((NumaNode(id=0, mem_total_bytes=5 * GIB),)),
            reservations=replace(KUBERNETES, memory_manager_static=True),
        ),
    ),
    Case("pool_short", UNKNOWN, request()),
    Case("pool_short", OK, request(node(pools(PAGES)))),
    Case("pool_short", UNKNOWN, request(node(pools(PAGES, reserved=None))), "reserved count is not known"),
    Case("pool_short", LOOK, request(node(pools(0))), "None of 2,144 pages"),
    Case("pool_short", WRONG, request(node(pools(907))), "907 are reserved"),
    Case("buffer_pool_mistaken_for_segment", UNKNOWN, request()),
    Case("buffer_pool_mistaken_for_segment", OK, request(node(pools(PAGES)))),
    Case("buffer_pool_mistaken_for_segment", WRONG, request(node(pools(2048))), "2,048"),
    Case(
        "buffer_pool_mistaken_for_segment",
        WRONG,
        request(node(pools(2048)), database(), MARIADB_1G),
        "not the segments (2,254)",
    ),
    Case("pool_idle", UNKNOWN, request()),
    Case("pool_idle", OK, request(node(pools(PAGES)))),
    Case("pool_idle", LOOK, request(node(pools(PAGES + 512))), "512 pages of 2M (1 GiB)"),
    Case("pool_idle", UNKNOWN, request(node(pools(PAGES + 512, reserved=None))), "may be promised to a process"),
    Case("fallback_to_base_pages", UNKNOWN, request()),
    Case("fallback_to_base_pages", UNKNOWN, request(sample=process()), "could not be read"),
    Case("fallback_to_base_pages", OK, request(sample=process(shared_hugetlb_bytes=4 * GIB))),
    Case("fallback_to_base_pages", LOOK, request(sample=UNMAPPED), "maps a huge page"),
    Case("fallback_to_base_pages", WRONG, request(node(pools(PAGES)), sample=UNMAPPED), "maps a huge page"),
    Case("fallback_to_base_pages", LOOK, request(node(pools(PAGES // 2)), sample=UNMAPPED), "maps a huge page"),
    Case(
        "fallback_to_base_pages",
        WRONG,
        request(node(pools(PAGES // 2, PAGES // 2)), sample=UNMAPPED),
        "maps a huge page",
    ),
    # One mapping is on huge pages as a whole: what was not touched yet is cold.
    Case("fallback_to_base_pages", OK, request(sample=process(shared_hugetlb_bytes=GIB))),
    Case("fallback_to_base_pages", UNKNOWN, request(BIG, mariadb(), sample=touched(GIB)), "cold or on base pages"),
    Case("fallback_to_base_pages", OK, request(BIG, mariadb(), sample=touched(8 * GIB))),
    Case("fallback_to_base_pages", LOOK, request(sample=process(huge_pages_status="off")), "huge_pages_status"),
    Case(
        "fallback_to_base_pages",
        LOOK,
        request(None, RUNNING, sample=server(huge_pages_status="off")),
        "huge_pages_status",
    ),
    Case("fallback_to_base_pages", OK, request(None, RUNNING, sample=server(huge_pages_status="on"))),
    Case("fallback_to_base_pages", UNKNOWN, request(None, RUNNING, sample=server())),
    Case("fallback_to_base_pages", OK, request(node(), SERVED, sample=limited("on", "hugetlb")), "All its large"),
    Case("fallback_to_base_pages", LOOK, request(node(), SERVED, sample=limited("off", "base_pages")), "mappings"),
    Case("fallback_to_base_pages", WRONG, request(node(), SERVED, sample=limited("partial", "hugetlb")), "are not"),
    Case("silent_fallback", OK, request()),
    Case("silent_fallback", UNKNOWN, request(BIG, GENERIC), "taken to refuse"),
    Case("silent_fallback", LOOK, request(node(), with_settings(huge_pages="try")), "silently uses base pages"),
    Case(
        "silent_fallback", WRONG, request(sample=limited("off", "base_pages", reservation=GIB)), "refused the mapping"
    ),
    Case("time_bomb", None, request()),
    Case("time_bomb", OK, request(sample=limited("on", "hugetlb", usage=4 * GIB))),
    Case("time_bomb", WRONG, request(sample=limited("on", "hugetlb", usage=2 * GIB)), "Bad address"),
    Case("time_bomb", UNKNOWN, request(sample=limited("on", "hugetlb", known=False)), "not known"),
    Case("initdb_bus_error", None, request()),
    Case("initdb_bus_error", WRONG, request(sample=limited("off", "base_pages", usage=0)), "the first touch is SIGBUS"),
    Case("initdb_bus_error", OK, request(sample=limited("off", "base_pages", usage=0, reservation=0))),
    Case("initdb_bus_error", OK, request(sample=limited("off", "base_pages", usage=0, free=0)), "no free huge page"),
    Case("initdb_bus_error", UNKNOWN, request(sample=limited("off", "base_pages", usage=0, free=None))),
    Case("initdb_bus_error", OK, request(sample=limited("off", "base_pages", usage=4 * GIB, free=None)), "limits let"),
    Case("start_order", None, request()),
    Case("start_order", OK, request(BIG, database(), mariadb())),
    Case("start_order", OK, request(BIG, database(), database(name="second")), "pages of one size only"),
    Case("start_order", LOOK, request(BIG, SETTINGS_1G, mariadb()), "blog, main: main does not start"),
    Case("will_not_start", LOOK, request(BIG, SETTINGS_1G, mariadb()), "who starts first may take some of them"),
    Case("pod_limit_below_segment", None, request()),
    Case("pod_limit_below_segment", UNKNOWN, request(reservations=KUBERNETES)),
    Case(
        "pod_limit_below_segment",
        OK,
        request(node(), database(pod_hugepages_limit_bytes=5 * GIB), reservations=KUBERNETES),
    ),
    Case(
        "pod_limit_below_segment",
        WRONG,
        request(node(), database(pod_hugepages_limit_bytes=4 * GIB), reservations=KUBERNETES),
        "SIGBUS",
    ),
    Case(
        "pod_limit_below_segment",
        WRONG,
        request(node(), database(pod_hugepages_limit_bytes=5 * GIB + 1), reservations=KUBERNETES),
        "not a whole number",
    ),
    Case(
        "pod_limit_below_segment",
        UNKNOWN,
        request(BIG, MARIADB_LIMIT, reservations=KUBERNETES),
        "smaller mappings take hugepages-2Mi",
    ),
    Case("pod_limit_below_segment", OK, request(BIG, MARIADB_LIMIT, reservations=KUBERNETES), "covers"),
    Case("pod_memory", None, request(tenants=(Tenant(name="x", request_bytes=GIB),))),
    Case("pod_memory", OK, request(tenants=(Tenant(name="x", limit_bytes=GIB),), reservations=KUBERNETES)),
    Case("pod_memory", UNKNOWN, request(tenants=(Tenant(name="x"),), reservations=KUBERNETES)),
    Case(
        "pod_memory",
        LOOK,
        request(tenants=(Tenant(name="x", request_bytes=GIB),), reservations=KUBERNETES),
        "no memory limit",
    ),
    Case(
        "pod_memory",
        LOOK,
        request(tenants=(Tenant(name="x", request_bytes=GIB, limit_bytes=30 * GIB),), reservations=KUBERNETES),
        "cannot all be used",
    ),
    Case(
        "pod_memory",
        WRONG,
        request(tenants=(Tenant(name="x", count=10, request_bytes=3 * GIB),), reservations=KUBERNETES),
        "stay pending",
    ),
    Case("wrong_default_size", OK, request()),
    Case("wrong_default_size", LOOK, request(node(), SETTINGS_1G), "not the default size"),
    Case(
        "wrong_default_size",
        WRONG,
        request(node(), DatabaseInstance(name="m", engine="mysql", version="8.0", page_bytes=GIB)),
        "only the default size",
    ),
    Case("numa_imbalance", None, request()),
    Case("numa_imbalance", OK, request(node(pools(0, PAGES)), database(numa_node=1))),
    Case("numa_imbalance", LOOK, request(node(pools(0, 0))), "main is not bound to a NUMA node: about 50 % of its"),
    Case("numa_imbalance", LOOK, request(node(pools(0, 0, 0, 0))), "about 75 % of its accesses"),
    Case("numa_imbalance", LOOK, request(node(pools(0, 0)), database(), mariadb()), "main, blog are not bound"),
    Case("numa_imbalance", WRONG, request(node(pools(PAGES, 0)), database(numa_node=1)), "not where it is needed"),
    # Its server is bound: to one node, to two of three, to another than it is planned on.
    Case("numa_imbalance", OK, request(node(pools(0, 0)), RUNNING, sample=server(allowed_numa_nodes=(1,)))),
    Case("numa_node_not_allowed", OK, request(node(pools(0, 0)), RUNNING, sample=server(allowed_numa_nodes=(1,)))),
    Case("numa_node_not_allowed", None, request(node(pools(0, 0)), RUNNING, sample=server())),
    Case("numa_node_not_allowed", None, request(node(pools(0, 0)), RUNNING, sample=server(allowed_numa_nodes=(0, 1)))),
    Case(
        "numa_node_not_allowed",
        OK,
        request(node(pools(0, 0, 0)), RUNNING, sample=server(allowed_numa_nodes=(0, 2))),
        "on NUMA nodes 0, 2 only; its pages are on NUMA nodes 0, 2",
    ),
    Case(
        "numa_node_not_allowed",
        WRONG,
        request(node(pools(0, 0)), replace(RUNNING, numa_node=0), sample=server(allowed_numa_nodes=(1,))),
        "on NUMA node 1 only; its pages are on NUMA node 0",
    ),
    Case("fragmentation", OK, request()),
    Case("fragmentation", UNKNOWN, request(policy=RUNTIME)),
    Case("fragmentation", LOOK, request(node(), SETTINGS_1G, policy=RUNTIME), "Gigantic"),
    Case(
        "fragmentation",
        LOOK,
        request(policy=RUNTIME, sample=observed(numa=(NumaMemory(id=0, free_blocks={2 * MIB: 12}),))),
        "12 free blocks",
    ),
    Case(
        "fragmentation",
        OK,
        request(policy=RUNTIME, sample=observed(numa=(NumaMemory(id=0, free_blocks={2 * MIB: 9000}),))),
    ),
    Case("kernel_command_line", UNKNOWN, request()),
    Case("kernel_command_line", OK, request(node(kernel_command_line="quiet hugepagesz=2M hugepages=2144"))),
    Case("kernel_command_line", WRONG, request(node(kernel_command_line="hugepages=1 hugepages=2")), "hugepages=2"),
    Case("kubelet_not_restarted", None, request()),
    Case("kubelet_not_restarted", UNKNOWN, request(reservations=KUBERNETES)),
    Case("kubelet_not_restarted", LOOK, request(reservations=KUBERNETES, policy=RUNTIME), "only when it starts"),
    Case(
        "kubelet_not_restarted",
        OK,
        request(
            node(pools(PAGES)),
            reservations=KUBERNETES,
            sample=observed(kubelet_capacity={"hugepages-2Mi": PAGES * 2 * MIB}),
        ),
    ),
    Case(
        "kubelet_not_restarted",
        WRONG,
        request(node(pools(PAGES)), reservations=KUBERNETES, sample=observed(kubelet_capacity={"memory": 1})),
        "The kubelet reports 0 B",
    ),
    Case("phantom_eviction", None, request()),
    Case("phantom_eviction", LOOK, request(reservations=KUBERNETES), "4.19 GiB too high"),
    Case("phantom_eviction", OK, request(reservations=replace(KUBERNETES, hugepage_aware_eviction=True))),
    Case("memlock_too_low", None, request()),
    Case("memlock_too_low", UNKNOWN, request(node(), oracle())),
    Case("memlock_too_low", WRONG, request(node(), oracle(), sample=process(memlock_limit_bytes=8 * MIB)), "8 MiB"),
    Case("memlock_too_low", OK, request(node(), oracle(), sample=process(memlock_limit_bytes=-1))),
    Case("thp_always", UNKNOWN, request()),
    Case("thp_always", OK, request(node(thp_enabled="madvise"))),
    Case("thp_always", LOOK, request(node(thp_enabled="always"))),
    Case("thp_always", LOOK, request(node(thp_enabled="never"), sample=observed(thp_enabled="always"))),
    Case("fractured_guest", UNKNOWN, request(node(hardware=hardware(None))), "was not measured"),
    Case("fractured_guest", OK, request(node(hardware=hardware(None, virtualised=False)))),
    Case("fractured_guest", OK, request(node(hardware=hardware(2 * MIB)))),
    Case("fractured_guest", LOOK, request(node(hardware=hardware(4096))), "covers 4K of a 2M page"),
    Case(
        "walk_share", OK, request(None, database(walks_now=WalkShare(fraction=0.1, bound_fraction=0.1, counted_at="")))
    ),
    Case(
        "walk_share",
        LOOK,
        request(None, database(walks_now=WalkShare(fraction=0.004, bound_fraction=0.004, counted_at="now"))),
        "no page size buys more than +0.4 %",
    ),
    Case("rounding_waste", OK, request()),
    Case(
        "rounding_waste",
        LOOK,
        request(node(default_huge_page_bytes=GIB), replace(mysql_database(), page_bytes=None)),
        "can use only the default size, 1G",
    ),
    Case("will_not_start", OK, request(BIG, with_settings(huge_pages="on"))),
    Case("will_not_start", None, request(BIG, with_settings(huge_pages="try"))),
    Case("will_not_start", WRONG, request(BIG, replace(with_settings(huge_pages="on"), page_bytes=0)), "gives it none"),
    Case("rounding_waste", LOOK, request(node(), SETTINGS_1G), "of its pages stay empty"),
    Case("size_without_unit", OK, request()),
    Case("size_without_unit", LOOK, request(node(), with_settings(shared_buffers="32")), "is read as 256 KiB"),
    Case("count_uncertain", OK, request()),
    Case(
        "count_uncertain",
        LOOK,
        request(node(), database(version="12"), policy=Policy(slack_fraction=0.0, slack_min_pages=0)),
        "may be off by",
    ),
    Case("planned_idle", None, request(policy=Policy(slack_fraction=0.0, slack_min_pages=0))),
    Case("planned_idle", OK, request()),
    Case("planned_idle", LOOK, request(policy=Policy(slack_fraction=0.4)), "40 % of the demand"),
    Case("page_cache_short", None, request()),
    Case("page_cache_short", OK, request(node(), with_settings(effective_cache_size="8GB"))),
    Case("page_cache_short", LOOK, request(node(), with_settings(effective_cache_size="90GB")), "counts on 86 GiB"),
    Case("double_counting", None, request()),
    Case("double_counting", OK, request(tenants=(Tenant(name="app", request_bytes=GIB),))),
    Case("double_counting", UNKNOWN, request(sample=nobody_told_apart()), "was not read"),
    Case("double_counting", LOOK, request(tenants=(Tenant(name="Main", request_bytes=GIB),)), "twice"),
    Case("double_counting", LOOK, request(tenants=(Tenant(name="postgresql", request_bytes=GIB),)), "twice"),
    Case("surplus_pages", UNKNOWN, request()),
    Case("surplus_pages", OK, request(sample=global_pool(surplus_hugepages=0, nr_overcommit_hugepages=0))),
    Case("surplus_pages", LOOK, request(sample=global_pool(surplus_hugepages=3)), "3 surplus pages (6 MiB)"),
    Case("surplus_pages", LOOK, request(sample=global_pool(nr_overcommit_hugepages=9)), "Up to 9 pages"),
    Case("hvo_off", UNKNOWN, request()),
    Case("hvo_off", OK, request(node(hvo_enabled=True)), "returns 58.6 MiB"),
    Case("hvo_off", OK, request(node(hvo_enabled=False)), "only 58.6 MiB"),
    Case("hvo_off", LOOK, request(node(hvo_enabled=False), with_settings(shared_buffers="16GB"))),
    Case("pool_invisible_to_monitoring", OK, request()),
    Case("pool_invisible_to_monitoring", LOOK, request(node(), SETTINGS_1G), "show 2M only"),
    Case(
        "pool_invisible_to_monitoring",
        OK,
        request(node(), SETTINGS_1G, sample=observed(non_default_pools_monitored=True)),
    ),
)


def found_for(case: Case) -> list[Finding]:
    return [finding for finding in plan(case.request).findings if finding.code == case.code]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.code}-{c.state.value if c.state else 'absent'}")
def test_state_and_words(case: Case) -> None:
    found = found_for(case)
    if case.state is None:
        assert found == []
        return
    assert case.state in {finding.state for finding in found}
    matching = [finding for finding in found if finding.state is case.state]
    assert any(case.says in finding.reason for finding in matching)
    if case.state in {LOOK, WRONG}:
        assert all(finding.fix for finding in matching)


def test_every_check_is_seen_ok_and_not_ok() -> None:
    states: dict[str, set[State | None]] = {}
    for case in CASES:
        states.setdefault(case.code, set()).add(case.state)
    assert len(states) == len(RULES) - 1, "silent_fallback has a rule of its own for limits"
    for code, seen in states.items():
        assert OK in seen, code
        assert seen & {LOOK, WRONG}, code


def test_a_title_is_a_sentence_that_says_the_state() -> None:
    states: dict[tuple[str, str], set[State]] = {}
    for case in CASES:
        for finding in found_for(case):
            states.setdefault((finding.code, finding.title), set()).add(finding.state)
            assert len(finding.title.split()) >= 4, finding.title
            assert finding.title != finding.reason.rstrip("."), finding.title
            assert not finding.title.endswith("."), finding.title
    assert [title for title, seen in states.items() if len(seen) > 1] == []


def test_a_fallback_says_what_is_needed() -> None:
    sample = process(shared_hugetlb_bytes=0, private_hugetlb_bytes=0)
    found = plan(request(node(pools(PAGES)), sample=sample)).findings
    title = next(f.title for f in found if f.code == "fallback_to_base_pages")
    assert title == "It fell back to 4K pages: it needs 2,123 pages of 2M"


def test_the_worst_come_first() -> None:
    found = plan(request(node(pools(907)), reservations=KUBERNETES)).findings
    rank = {WRONG: 0, LOOK: 1, UNKNOWN: 2, OK: 3}
    assert [rank[f.state] for f in found] == sorted(rank[f.state] for f in found)


def test_codes_and_words_are_plain() -> None:
    for finding in plan(request(node(pools(907)), reservations=KUBERNETES)).findings:
        assert finding.code == finding.code.lower()
        assert "!" not in finding.reason
        assert dataclasses.asdict(finding)["reason"].endswith((".", ")"))


def test_the_warm_cache_that_is_left_is_the_limit_less_what_is_used() -> None:
    """The measured case: a segment of 543 pages, a limit of 512, PostgreSQL fails once 512 are filled."""
    (bomb,) = found_for(Case("time_bomb", WRONG, request(sample=limited("on", "hugetlb", usage=2 * GIB))))
    assert bomb.title == "1 GiB of warm cache left before it fails"


def test_a_setting_that_rules_huge_pages_out_is_no_fallback() -> None:
    sample = limited("off", "base_pages", reservation=0)
    assert sample.databases is not None
    off = replace(sample, databases=(replace(sample.databases[0], settings={"huge_pages": "off"}),))
    found = found_for(Case("silent_fallback", WRONG, request(sample=off)))
    assert [finding.state for finding in found] == [OK]


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb", "oracle", "db2", "jvm", "redis"])
def test_every_engine_says_how_it_fails(engine: str) -> None:
    assert "SIGBUS" in goes_off_as(engine)
