"""plan(): a whole plan obeys its laws, whatever the request."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.ledger import free_bytes, sum_bytes
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    BenefitPoint,
    DatabaseInstance,
    LedgerKind,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Policy,
    Pool,
    Reservations,
    State,
    Tenant,
    Workload,
)
from hugeplan.planner.plan import plan


def node_of(*sizes: int, **facts: object) -> NodeFacts:
    numa = tuple(NumaNode(id=i, mem_total_bytes=size) for i, size in enumerate(sizes))
    return dataclasses.replace(NodeFacts(name="db-7", numa=numa, kernel_used_bytes=GIB), **facts)


def postgresql(
    name: str = "main", shared_buffers: str = "8GB", connections: int = 200, **fields: object
) -> DatabaseInstance:
    instance = DatabaseInstance(
        name=name,
        engine="postgresql",
        version="17",
        settings={"shared_buffers": shared_buffers, "max_connections": str(connections)},
    )
    return dataclasses.replace(instance, **fields)


def mysql(name: str = "shop", pool: str = "8G", **fields: object) -> DatabaseInstance:
    instance = DatabaseInstance(name=name, engine="mysql", version="8.0", settings={"innodb_buffer_pool_size": pool})
    return dataclasses.replace(instance, **fields)


def mariadb(name: str = "shop", pool: str = "10G", **fields: object) -> DatabaseInstance:
    instance = DatabaseInstance(name=name, engine="mariadb", settings={"innodb_buffer_pool_size": pool})
    return dataclasses.replace(instance, **fields)


def also_pages(found: Plan, page_bytes: int) -> int:
    """Pages of this size that instances take beside those of their own size."""
    return sum(dict(i.demand.also_pages).get(page_bytes, 0) for i in found.instances if i.page_bytes)


@st.composite
def requests(draw: st.DrawFn) -> PlanRequest:
    sizes = draw(st.lists(st.integers(4 * GIB, 64 * GIB), min_size=1, max_size=2))
    ids = st.one_of(st.none(), st.integers(0, len(sizes) - 1))
    page = st.sampled_from([None, None, 0, 2 * MIB, GIB])
    databases = [
        draw(
            st.builds(
                postgresql, st.just(f"pg{i}"), st.sampled_from(["128MB", "1GB", "5GB", "20GB"]), st.integers(20, 500),
                numa_node=ids, page_bytes=page,
            )
            | st.builds(mysql, st.just(f"my{i}"), st.sampled_from(["128M", "1500M", "9G"]), numa_node=ids)
            | st.builds(mariadb, st.just(f"ma{i}"), st.sampled_from(["1500M", "9G"]), numa_node=ids, page_bytes=page)
        )
        for i in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    tenants = [
        draw(st.builds(Tenant, name=st.just(f"t{i}"), count=st.integers(0, 5), request_bytes=st.integers(0, 4 * GIB),
                       numa_node=ids))
        for i in range(draw(st.integers(0, 2)))
    ]  # fmt: skip
    return PlanRequest(
        node=node_of(*sizes, hvo_enabled=draw(st.sampled_from([None, True, False]))),
        reservations=draw(st.sampled_from([Reservations(), Reservations(kubernetes=True, provider="gke")])),
        tenants=tuple(tenants),
        databases=tuple(databases),
        policy=Policy(reserve_at=draw(st.sampled_from(["boot", "runtime"]))),
    )


class TestLaws:
    @given(requests())
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_ledger_pools_and_findings_agree(self, request: PlanRequest) -> None:
        found = plan(request)
        for numa in request.node.numa:
            assert sum(p.bytes for p in found.ledger.parts if p.numa_node == numa.id) == numa.mem_total_bytes
        fit = [f for f in found.findings if f.code == "memory_fit"]
        negative = any(free_bytes(found.ledger, n.id) < 0 for n in request.node.numa)
        assert negative == any(f.state is State.WRONG for f in fit)
        capped = found.shortfall is not None and found.shortfall.constraint == "provider_cap"
        assert (negative or capped) == found.headline.startswith("Does not fit")
        assert found.feasible != (negative or capped)
        assert sum_bytes(found.ledger, LedgerKind.POOL, LedgerKind.POOL_SLACK) == found.net_memory.locked_bytes
        for size in {pool.page_bytes for pool in found.pools}:
            wanted = sum(i.demand.pages for i in found.instances if i.page_bytes == size) + also_pages(found, size)
            assert sum(pool.demand_pages for pool in found.pools if pool.page_bytes == size) == wanted

    @given(requests())
    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_same_request_same_plan_and_plain_json(self, request: PlanRequest) -> None:
        first, second = plan(request), plan(request)
        assert first == second
        assert json.dumps(dataclasses.asdict(first), allow_nan=False)

    @given(requests())
    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_bound_instances_stay_on_their_node_and_named_sizes_are_kept(self, request: PlanRequest) -> None:
        found = plan(request)
        for instance, planned in zip(request.databases, found.instances, strict=True):
            if instance.numa_node is not None:
                assert planned.numa_nodes == (instance.numa_node,)
            if instance.page_bytes == 0:
                assert planned.page_bytes is None
            elif instance.page_bytes is not None:
                assert planned.page_bytes == instance.page_bytes

    def test_more_memory_never_makes_a_plan_worse(self) -> None:
        free = [
            free_bytes(plan(PlanRequest(node=node_of(s * GIB), databases=(postgresql(),))).ledger) for s in (12, 16, 64)
        ]
        assert free == sorted(free)


class TestChoice:
    def test_ties_go_to_2m_and_the_reason_is_said(self) -> None:
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=(postgresql(),)))
        main = found.instances[0]
        assert main.page_bytes == 2 * MIB
        assert main.runner_up is not None
        assert main.runner_up.page_bytes == GIB
        assert "The runner-up, 1G, scores" in main.why
        assert "4,221 pages hold" in main.why
        assert found.headline == "Reserve 4,263 pages of 2M (8.33 GiB) on db-7."

    def test_a_choice_says_its_points_and_they_add_up_to_its_score(self) -> None:
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=(postgresql(),)))
        main = found.instances[0]
        for choice in (main.chosen, main.runner_up):
            assert choice is not None
            points = (choice.gain_score, choice.memory_score, choice.operation_score)
            assert sum(p for p in points if p is not None) == pytest.approx(choice.score, abs=0.002)
            assert choice.waste_bytes is not None
        assert main.chosen is not None
        assert main.chosen.why in main.why
        assert main.chosen.why not in main.why_besides_score
        assert main.why.endswith(main.why_besides_score)

    def test_a_size_that_the_scenario_names_keeps_its_whole_reason(self) -> None:
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=(postgresql(page_bytes=GIB),)))
        main = found.instances[0]
        assert main.why_besides_score == main.why

    def test_the_gain_of_the_chosen_size_is_marked(self) -> None:
        found = plan(PlanRequest(node=node_of(64 * GIB, thp_enabled="always"), databases=(postgresql(),)))
        kinds = {(gain.backing_kind, gain.page_bytes): gain.is_chosen for gain in found.gains}
        assert kinds == {
            ("base", 4096): False,
            ("hugetlb", 2 * MIB): True,
            ("thp", 2 * MIB): False,
            ("hugetlb", GIB): False,
        }

    def test_mysql_takes_only_the_default_size(self) -> None:
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=(mysql(),)))
        assert found.instances[0].page_bytes == 2 * MIB
        assert (
            "1G is not available: MySQL and Percona Server can use only the kernel's default huge page size (2M)"
            in found.instances[0].why
        )

    def test_mariadb_takes_no_page_above_its_largest_mapping(self) -> None:
        """Before 10.11.12 a pool of 10 GiB is mapped in chunks of 160 MiB: 64 pages of 1G would stay idle."""
        chunked = mariadb(version="10.11.5", page_bytes=GIB)
        found = plan(PlanRequest(node=node_of(128 * GIB), databases=(chunked,)))
        finding = next(f for f in found.findings if f.code == "page_size_not_available")
        assert finding.state is State.WRONG
        assert "160 MiB" in finding.reason
        chosen = plan(PlanRequest(node=node_of(128 * GIB), databases=(mariadb(version="10.11.5"),)))
        assert chosen.instances[0].page_bytes == 2 * MIB
        whole = plan(PlanRequest(node=node_of(128 * GIB), databases=(mariadb(version="10.11.12", page_bytes=GIB),)))
        assert next(p.demand_pages for p in whole.pools if p.page_bytes == GIB) == 10

    def test_page_tables_of_chunks_are_those_of_one_mapping(self) -> None:
        """The ledger and the gain speak of the same page tables."""
        found = plan(PlanRequest(node=node_of(128 * GIB), databases=(mysql(pool="48G"),)))
        huge = next(g for g in found.gains if g.page_bytes == 2 * MIB and g.backing == "2M")
        assert found.instances[0].page_tables_huge_bytes == huge.page_tables_bytes
        assert sum_bytes(found.ledger, LedgerKind.PAGE_TABLES) == huge.page_tables_bytes

    def test_1g_after_boot_needs_cma_or_present_pages(self) -> None:
        runtime = Policy(reserve_at="runtime", allowed_page_bytes=(GIB,))
        plain = plan(PlanRequest(node=node_of(64 * GIB), databases=(postgresql(),), policy=runtime))
        assert plain.instances[0].page_bytes is None
        assert "need contiguous memory" in plain.instances[0].why
        with_cma = node_of(64 * GIB, hugetlb_cma_bytes=16 * GIB)
        assert (
            plan(PlanRequest(node=with_cma, databases=(postgresql(),), policy=runtime)).instances[0].page_bytes == GIB
        )

    def test_no_database_no_pool(self) -> None:
        found = plan(PlanRequest(node=node_of(GIB * 4)))
        assert found.pools == ()
        assert found.headline == "Reserve no huge pages on db-7: no database is described."

    def test_present_pools_that_nothing_uses_are_planned_at_zero(self) -> None:
        pool = Pool(page_bytes=GIB, nr_hugepages=4, free_hugepages=4)
        node = node_of(64 * GIB)
        node = dataclasses.replace(node, numa=(dataclasses.replace(node.numa[0], pools=(pool,)),))
        found = plan(PlanRequest(node=node, databases=(postgresql(),)))
        released = next(p for p in found.pools if p.page_bytes == GIB)
        assert (released.pages, released.present_pages) == (0, 4)

    def test_pages_that_a_stranger_maps_are_kept(self) -> None:
        pool = Pool(page_bytes=GIB, nr_hugepages=4, free_hugepages=1)
        node = node_of(64 * GIB)
        node = dataclasses.replace(node, numa=(dataclasses.replace(node.numa[0], pools=(pool,)),))
        found = plan(PlanRequest(node=node, databases=(postgresql(),)))
        kept = next(p for p in found.pools if p.page_bytes == GIB)
        assert (kept.pages, kept.present_pages) == (3, 4)
        assert found.net_memory.idle_bytes < GIB
        assert sum_bytes(found.ledger, LedgerKind.POOL) == 3 * GIB + found.instances[0].demand.pages * 2 * MIB
        reasons = " ".join(f.reason for f in found.findings if f.code == "pool_idle")
        assert "3 pages of 1G are mapped or reserved by something that the scenario does not describe" in reasons


class TestSmallerHugePages:
    """MariaDB with a 10 GiB pool on 1G pages puts 131 pages of 2M beside them (measured; the engine's own test)."""

    def test_they_are_reserved_beside_the_main_pool(self) -> None:
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=(mariadb(page_bytes=GIB),)))
        assert [(p.page_bytes, p.demand_pages) for p in found.pools] == [(2 * MIB, 131), (GIB, 10)]
        assert "131 pages of 2M hold its smaller mappings." in found.instances[0].why
        assert sum_bytes(found.ledger, LedgerKind.POOL) == 10 * GIB + 131 * 2 * MIB
        assert not [f for f in found.findings if f.code == "pool_idle" and f.state is State.ATTENTION]

    def test_they_share_the_pool_of_another_instance(self) -> None:
        databases = (mariadb(page_bytes=GIB), postgresql(page_bytes=2 * MIB))
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=databases))
        assert {p.page_bytes: p.demand_pages for p in found.pools}[2 * MIB] == 4221 + 131

    def test_a_bound_instance_has_them_on_its_node(self) -> None:
        found = plan(PlanRequest(node=node_of(32 * GIB, 32 * GIB), databases=(mariadb(page_bytes=GIB, numa_node=1),)))
        assert {(p.numa_node, p.page_bytes) for p in found.pools} == {(1, 2 * MIB), (1, GIB)}

    def test_a_forbidden_size_leaves_them_in_ordinary_memory(self) -> None:
        policy = Policy(allowed_page_bytes=(GIB,))
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=(mariadb(page_bytes=GIB),), policy=policy))
        assert [p.page_bytes for p in found.pools] == [GIB]
        part = next(p for p in found.ledger.parts if p.name == "shop: smaller mappings on 4K pages")
        assert part.bytes == 131 * 2 * MIB

    def test_they_count_as_used(self) -> None:
        policy = Policy(slack_fraction=0.0, slack_min_pages=0)
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=(mariadb(page_bytes=GIB),), policy=policy))
        demand = found.instances[0].demand
        assert found.net_memory.used_bytes == demand.segment_bytes + 131 * 2 * MIB


class TestPlacement:
    def test_an_unbound_instance_is_spread_evenly(self) -> None:
        found = plan(PlanRequest(node=node_of(32 * GIB, 32 * GIB), databases=(postgresql(),)))
        pages = [p.demand_pages for p in found.pools]
        assert sum(pages) == found.instances[0].demand.pages
        assert abs(pages[0] - pages[1]) <= 1

    def test_the_headline_says_where_in_words(self) -> None:
        found = plan(PlanRequest(node=node_of(32 * GIB, 32 * GIB), databases=(postgresql(),)))
        assert found.headline == "Reserve 4,263 pages of 2M (8.33 GiB) on db-7: 2,132 on NUMA node 0, 2,131 on node 1."

    def test_the_headline_names_the_size_where_there_are_two(self) -> None:
        databases = (postgresql(numa_node=0, page_bytes=2 * MIB), postgresql(name="b", numa_node=1, page_bytes=GIB))
        found = plan(PlanRequest(node=node_of(32 * GIB, 32 * GIB), databases=databases))
        assert found.headline.endswith("on db-7: 4,263 of 2M on NUMA node 0, 9 of 1G on node 1.")

    def test_the_headline_stays_short_on_many_nodes(self) -> None:
        found = plan(PlanRequest(node=node_of(*[8 * GIB] * 16), databases=(postgresql(),)))
        low, high = min(p.pages for p in found.pools), max(p.pages for p in found.pools)
        assert found.headline.endswith(f" on db-7: {low} to {high} on each of 16 NUMA nodes.")

    def test_pages_move_to_the_node_with_room(self) -> None:
        tenants = (Tenant(name="big", request_bytes=30 * GIB, numa_node=0),)
        found = plan(PlanRequest(node=node_of(32 * GIB, 32 * GIB), tenants=tenants, databases=(postgresql(),)))
        assert all(free_bytes(found.ledger, i) >= 0 for i in (0, 1))

    def test_two_bound_engines(self) -> None:
        databases = (postgresql(numa_node=0), mysql(numa_node=1))
        found = plan(PlanRequest(node=node_of(32 * GIB, 32 * GIB), databases=databases))
        assert [(p.numa_node, p.demand_pages) for p in found.pools] == [
            (0, found.instances[0].demand.pages),
            (1, found.instances[1].demand.pages),
        ]


class TestRanges:
    def workload(self, knee: int) -> Workload:
        sizes = (1, 2, 4, 8, 16)
        points = tuple(BenefitPoint(pool_bytes=s * GIB, throughput=float(min(s, knee)) * 1000) for s in sizes)
        return Workload(benefit_points=points)

    def test_memory_goes_where_it_is_worth_most(self) -> None:
        databases = (
            postgresql("flat", pool_min_bytes=GIB, pool_max_bytes=16 * GIB, workload=self.workload(2)),
            postgresql("steep", pool_min_bytes=GIB, pool_max_bytes=16 * GIB, workload=self.workload(16)),
        )
        found = plan(PlanRequest(node=node_of(24 * GIB), databases=databases))
        flat, steep = (i.demand.pool_bytes or 0 for i in found.instances)
        assert GIB <= flat <= 2.1 * GIB
        assert steep > 10 * GIB
        assert free_bytes(found.ledger) >= 0

    def test_a_range_with_room_is_filled(self) -> None:
        databases = (postgresql(pool_min_bytes=GIB, pool_max_bytes=6 * GIB, workload=self.workload(16)),)
        found = plan(PlanRequest(node=node_of(64 * GIB), databases=databases))
        assert found.instances[0].demand.pool_bytes == 6 * GIB
        assert "at its maximum" in found.instances[0].why

    def test_gke_caps_what_is_sized(self) -> None:
        databases = (postgresql(pool_min_bytes=GIB, pool_max_bytes=28 * GIB, workload=self.workload(16)),)
        gke = Reservations(kubernetes=True, provider="gke")
        found = plan(PlanRequest(node=node_of(20 * GIB), databases=databases, reservations=gke))
        assert found.net_memory.locked_bytes <= 12 * GIB
        assert [f.state for f in found.findings if f.code == "provider_cap"] == [State.OK]

    def test_the_tenants_risk_limits_the_pools(self) -> None:
        databases = (postgresql(pool_min_bytes=GIB, pool_max_bytes=28 * GIB, workload=self.workload(16)),)
        tenants = (Tenant(name="app", count=4, request_bytes=GIB, limit_bytes=4 * GIB),)
        found = plan(PlanRequest(node=node_of(32 * GIB), tenants=tenants, databases=databases))
        assert found.risk.meets_policy
        assert (found.instances[0].demand.pool_bytes or 0) < 16 * GIB


class TestHeadline:
    def test_a_plan_above_the_policy_says_so_in_its_first_line(self) -> None:
        tenants = (Tenant(name="app", request_bytes=GIB, limit_bytes=40 * GIB),)
        found = plan(PlanRequest(node=node_of(32 * GIB), tenants=tenants, databases=(postgresql(),)))
        assert found.risk.meets_policy is False
        assert "But the risk that ordinary memory runs out is then" in found.headline


class TestRefusals:
    @pytest.mark.parametrize(
        ("request_", "field"),
        [
            (PlanRequest(node=NodeFacts(name="n", numa=())), "node.numa"),
            (PlanRequest(node=node_of(0)), "node.numa[0].mem_total_bytes"),
            (
                PlanRequest(node=node_of(4 * GIB), databases=(postgresql(page_bytes=16 * MIB),)),
                "databases[0].page_size",
            ),
            (PlanRequest(node=node_of(4 * GIB), databases=(postgresql(numa_node=3),)), "databases[0].numa_node"),
            (PlanRequest(node=node_of(4 * GIB), databases=(postgresql(engine="dbase"),)), "databases[0].engine"),
            (
                PlanRequest(node=node_of(4 * GIB), databases=(postgresql(shared_buffers="8XB"),)),
                "databases[0].settings.shared_buffers",
            ),
            (PlanRequest(node=node_of(4 * GIB), databases=(postgresql(), postgresql())), "databases[1].name"),
            (
                PlanRequest(node=node_of(4 * GIB), databases=(postgresql(pool_min_bytes=1, pool_max_bytes=GIB),)),
                "databases[0].pool_range.min",
            ),
            (
                PlanRequest(node=node_of(4 * GIB), databases=(postgresql(pool_min_bytes=GIB, pool_max_bytes=1 << 60),)),
                "databases[0].pool_range.max",
            ),
            (
                PlanRequest(
                    node=node_of(4 * GIB),
                    databases=(postgresql(connections=-1, pool_min_bytes=GIB, pool_max_bytes=GIB),),
                ),
                "databases[0].settings.max_connections",
            ),
            (PlanRequest(node=node_of(4 * GIB), policy=Policy(risk=0.0)), "policy.risk"),
            (
                PlanRequest(node=node_of(4 * GIB), policy=Policy(allowed_page_bytes=(16 * MIB,))),
                "policy.allowed_page_bytes",
            ),
            (PlanRequest(node=node_of(4 * GIB), tenants=(Tenant(name="t", count=-1),)), "tenants[0].count"),
            (PlanRequest(node=node_of(4 * GIB, kernel_used_bytes=5 * GIB)), "node.kernel_used_bytes"),
        ],
    )
    def test_names_the_field(self, request_: PlanRequest, field: str) -> None:
        with pytest.raises(PlannerError) as caught:
            plan(request_)
        assert caught.value.field == field


def test_page_tables_of_base_pages_are_in_the_ledger_when_no_pool_is_wanted() -> None:
    found: Plan = plan(PlanRequest(node=node_of(64 * GIB), databases=(postgresql(page_bytes=0),)))
    assert sum_bytes(found.ledger, LedgerKind.PAGE_TABLES) > 200 * 8 * GIB // 512 // KIB * KIB
    assert found.net_memory.locked_bytes == 0
