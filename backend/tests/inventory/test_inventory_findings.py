"""Findings about a cluster as it is. Each fault has its opposite: without the fault the finding is gone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.kubernetes_objects import container, listing, node, pod, postgres

from hugeplan.inventory.answer import FleetAnswer, answer
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.text import inventory_text
from hugeplan.planner.model import GIB, MIB, Finding, Plan, State

Json = dict[str, Any]

#: PostgreSQL 16 with 1GB of shared buffers takes 539 pages of 2M.
SETTINGS = {"shared_buffers": "1GB"}


def answered(*items: Json) -> FleetAnswer:
    """The answer for one list of objects."""
    return answer(read_kubernetes(listing(*items).encode()))


def named(found: FleetAnswer, code: str) -> list[Finding]:
    """The faults of today that one rule names; those of a plan have the node's name before their subject."""
    today = [one for one in found.all_findings if not one.subject.startswith("a, ")]
    return [one for one in today if one.code == code and one.state in {State.WRONG, State.ATTENTION}]


def needed_mib(*items: Json) -> int:
    """MiB of huge pages that the plan gives the only database."""
    (one,) = answered(*items).nodes
    assert one.plan is not None
    return one.plan.instances[0].demand.pages * 2


class TestNoLimit:
    CODE = "pod_limit_below_segment"

    @pytest.mark.parametrize(
        ("kubelet", "words"),
        [("v1.34.2", "silently falls back"), ("v1.28.9-gke.100", "Bus error"), ("v1.25.0", "Bus error")],
    )
    def test_a_node_with_pools(self, kubelet: str, words: str) -> None:
        found = answered(node("a", pools={"2Mi": "4Gi"}, kubelet=kubelet), postgres("pg-0", "a", SETTINGS))
        (one,) = named(found, self.CODE)
        assert one.state is State.WRONG
        assert one.subject == "default/pg-0"
        assert words in one.reason
        assert f"hugepages-2Mi: {needed_mib(node('a'), postgres('pg-0', 'a', SETTINGS))}Mi" in (one.fix or "")

    def test_huge_pages_on_does_not_start(self) -> None:
        found = answered(node("a", pools={"2Mi": "4Gi"}), postgres("pg-0", "a", {**SETTINGS, "huge_pages": "on"}))
        assert "does not start" in named(found, self.CODE)[0].reason

    @pytest.mark.parametrize(
        "settings", [{**SETTINGS, "huge_pages": "off"}, {**SETTINGS, "shared_memory_type": "sysv"}]
    )
    def test_an_engine_that_does_not_ask_is_no_finding(self, settings: dict[str, str]) -> None:
        assert named(answered(node("a", pools={"2Mi": "4Gi"}), postgres("pg-0", "a", settings)), self.CODE) == []

    def test_mysql_asks_only_when_told_to(self) -> None:
        def mysql(*words: str) -> Json:
            return pod("my-0", "a", container("db", "mysql:8.0.36", args=["mysqld", *words]))

        pools = node("a", pools={"2Mi": "4Gi"})
        assert named(answered(pools, mysql("--innodb-buffer-pool-size=1G")), self.CODE) == []
        assert named(answered(pools, mysql("--innodb-buffer-pool-size=1G", "--large-pages")), self.CODE)

    def test_not_without_pools_and_not_with_a_limit(self) -> None:
        assert named(answered(node("a"), postgres("pg-0", "a", SETTINGS)), self.CODE) == []
        limited = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "2Gi"})
        assert named(answered(node("a", pools={"2Mi": "4Gi"}), limited), self.CODE) == []


class TestShortLimit:
    CODE = "pod_limit_below_segment"

    def test_the_limit_is_compared_with_the_segment_not_with_the_buffer_pool(self) -> None:
        short = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "1Gi"})
        (one,) = named(answered(node("a", pools={"2Mi": "4Gi"}), short), self.CODE)
        assert one.state is State.WRONG
        needed = needed_mib(node("a"), postgres("pg-0", "a", SETTINGS))
        assert f"needs {needed // 2:,} huge pages, its limit allows 512" in one.title
        enough = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": f"{needed}Mi"})
        assert named(answered(node("a", pools={"2Mi": "4Gi"}), enough), self.CODE) == []

    @pytest.mark.parametrize(
        ("labels", "where"),
        [
            ({"cnpg.io/cluster": "orders"}, "spec.resources of Cluster orders (CloudNativePG)"),
            (
                {
                    "postgres-operator.crunchydata.com/cluster": "hippo",
                    "postgres-operator.crunchydata.com/instance": "hippo-a",
                },
                "spec.instances[].resources of PostgresCluster hippo (Crunchy PGO)",
            ),
        ],
    )
    def test_the_operators_field_is_named_because_an_edit_of_the_pod_is_undone(
        self, labels: dict[str, str], where: str
    ) -> None:
        limits = {"memory": "4Gi", "hugepages-2Mi": "64Mi"}
        name = "database" if "crunchy" in where.lower() else "postgres"
        one = container(name, "postgres:16", args=["postgres", "-c", "shared_buffers=1GB"], limits=limits)
        (found,) = named(answered(node("a", pools={"2Mi": "4Gi"}), pod("pg-0", "a", one, labels=labels)), self.CODE)
        assert where in (found.fix or "")

    def test_the_pages_that_databases_with_a_short_limit_leave_idle_are_summed_over_the_nodes(self) -> None:
        limits = {"memory": "4Gi", "hugepages-2Mi": "1Gi"}
        items = [
            item
            for name in ("a", "b", "c")
            for item in (
                node(name, pools={"2Mi": "4Gi"}),
                postgres(f"pg-{name}", name, {"shared_buffers": "1060MB"}, limits=limits),
            )
        ]
        text = inventory_text(answered(*items), verbose=False)
        short = needed_mib(node("a"), postgres("pg-0", "a", {"shared_buffers": "1060MB"})) // 2 - 512
        assert f"needs {short + 512} huge pages, its limit allows 512" in text
        assert "Reserved today: 12 GiB, of which 12 GiB lie idle" in text
        enough = {"memory": "4Gi", "hugepages-2Mi": "2Gi"}
        mended = [i if i["kind"] == "Node" else postgres(i["metadata"]["name"], i["spec"]["nodeName"],
                  {"shared_buffers": "1060MB"}, limits=enough) for i in items]  # fmt: skip
        assert "of which no pod may use 6 GiB" in inventory_text(answered(*mended), verbose=False)

    def test_older_kubelets_may_be_a_time_bomb(self) -> None:
        short = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "1Gi"})
        (one,) = named(answered(node("a", pools={"2Mi": "4Gi"}, kubelet="v1.27.3"), short), self.CODE)
        assert "Bad address" in one.reason


class TestIdlePool:
    CODE = "pool_idle"

    def test_pages_that_no_pod_may_use(self) -> None:
        elsewhere = pod("web", "b", container(requests={"memory": "1Gi"}))
        (one,) = named(answered(node("a", pools={"2Mi": "4Gi", "1Gi": "0"}), elsewhere), self.CODE)
        assert (one.state, one.subject) == (State.ATTENTION, "a")
        assert "2,048 reserved pages of 2M" in one.title

    def test_only_what_is_left_over_is_idle(self) -> None:
        used = pod("dpdk", "a", container(limits={"memory": "1Gi", "hugepages-2Mi": "3Gi"}))
        (one,) = named(answered(node("a", pools={"2Mi": "4Gi"}), used), self.CODE)
        assert "512 reserved pages" in one.title
        full = pod("dpdk", "a", container(limits={"memory": "1Gi", "hugepages-2Mi": "4Gi"}))
        assert named(answered(node("a", pools={"2Mi": "4Gi"}), full), self.CODE) == []


class TestPoolBelowLimits:
    CODE = "pool_below_limits"

    def test_a_pool_that_shrank(self) -> None:
        used = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "2Gi"})
        (one,) = named(answered(node("a", pools={"2Mi": "1Gi"}), used), self.CODE)
        assert one.state is State.WRONG
        assert "default/pg-0" in one.reason
        assert named(answered(node("a", pools={"2Mi": "2Gi"}), used), self.CODE) == []


class TestFallback:
    CODE = "silent_fallback"

    def test_try_without_pages_falls_back_and_on_does_not_start(self) -> None:
        (one,) = named(answered(node("a"), postgres("pg-0", "a", SETTINGS)), self.CODE)
        assert (one.state, "silently" in one.title) == (State.ATTENTION, True)
        (one,) = named(answered(node("a"), postgres("pg-0", "a", {**SETTINGS, "huge_pages": "on"})), self.CODE)
        assert (one.state, one.title) == (State.WRONG, "It will not start here")

    @pytest.mark.parametrize(("pool", "starts"), [("0", True), ("1Gi", False)])
    def test_zgc_does_not_start_on_a_part_of_its_pages(self, pool: str, *, starts: bool) -> None:
        options = {"name": "ES_JAVA_OPTS", "value": "-Xms4g -Xmx4g -XX:+UseLargePages -XX:+UseZGC"}
        limits = {"memory": "8Gi", "hugepages-2Mi": "6Gi"}
        java = container("search", "elasticsearch:8.14.0", limits=limits, env=[options])
        (one,) = named(answered(node("a", pools={"2Mi": pool}), pod("es-0", "a", java)), self.CODE)
        assert one.title == ("It silently falls back to base pages" if starts else "It will not start here")

    def test_pages_of_other_pods_are_not_there(self) -> None:
        mine = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "2Gi"})
        other = pod("dpdk", "a", container(limits={"memory": "1Gi", "hugepages-2Mi": "3Gi"}))
        assert named(answered(node("a", pools={"2Mi": "4Gi"}), mine), self.CODE) == []
        assert named(answered(node("a", pools={"2Mi": "4Gi"}), mine, other), self.CODE)

    def test_every_finding_of_a_node_tells_to_reserve_the_plans_count(self) -> None:
        limits = {"memory": "4Gi", "hugepages-2Mi": "1Gi"}
        pods = (postgres("short-0", "a", SETTINGS, limits=limits), *(postgres(f"n-{i}", "a", SETTINGS) for i in "012"))
        found = answered(node("a"), *pods)
        (one,) = found.nodes
        assert one.plan is not None
        counts = {f"{pool.pages:,}" for pool in one.plan.pools}
        told = [re.findall(r"[Rr]eserve ([\d,]+) pages", finding.fix or "") for finding in found.all_findings]
        assert {count for counts in told for count in counts} == counts
        assert sum(map(bool, told)) >= 5

    def test_unknown_pools_are_no_finding(self) -> None:
        assert named(answered(node("a", pools={}), postgres("pg-0", "a", SETTINGS)), self.CODE) == []


class TestNoMount:
    CODE = "huge_pages_without_mount"

    def test_a_stateful_set_without_a_mount(self) -> None:
        limits = {"memory": "1Gi", "hugepages-2Mi": "1Gi"}
        bare = pod("store-0", "a", container(limits=limits), owner=("StatefulSet", "store"))
        (one,) = named(answered(node("a", pools={"2Mi": "4Gi"}), bare), self.CODE)
        assert "StatefulSet mounts none" in one.reason
        mounted = pod(
            "store-0", "a", container(limits=limits, volumeMounts=[{"name": "huge", "mountPath": "/dev/hugepages"}]),
            volumes=[{"name": "huge", "emptyDir": {"medium": "HugePages-2Mi"}}], owner=("StatefulSet", "store"),
        )  # fmt: skip
        assert named(answered(node("a", pools={"2Mi": "4Gi"}), mounted), self.CODE) == []

    def test_a_database_that_maps_by_flag_needs_none(self) -> None:
        used = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "2Gi"})
        assert named(answered(node("a", pools={"2Mi": "4Gi"}), used), self.CODE) == []


def test_a_database_that_waits_for_huge_pages() -> None:
    waiting = postgres("pg-0", None, SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "2Gi"})
    waiting["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient hugepages-2Mi"}
    ]
    (one,) = named(answered(node("a"), waiting), "database_not_scheduled")
    assert (one.state, one.title) == (State.WRONG, "It does not run for lack of huge pages")


def test_a_database_that_the_kubelet_refused() -> None:
    refused = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "2Gi"}, phase="Failed")
    refused["status"] |= {
        "reason": "OutOfhugepages-2Mi",
        "message": "Node didn't have enough resource: hugepages-2Mi, requested: 2147483648, used: 0, capacity: 0",
    }
    found = answered(node("a"), refused)
    (one,) = named(found, "database_not_scheduled")
    assert (one.state, "requested: 2147483648" in one.reason, "node a" in one.reason) == (State.WRONG, True, True)
    assert found.nodes[0].node.pods == 0


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_database_that_the_kubelet_ended_without_keeping_the_reason(phase: str) -> None:
    """PostgreSQL exits with 0 when the kubelet refuses its pod, and the reason is lost with the phase of that exit."""
    ended = postgres("pg-0", "a", SETTINGS, limits={"memory": "4Gi", "hugepages-2Mi": "2Gi"}, phase=phase)
    (one,) = named(answered(node("a", pools={"2Mi": "1Gi"}), ended), "database_not_scheduled")
    assert one.state is State.WRONG
    assert "its limit of 2 GiB of hugepages-2Mi is above the 1 GiB of node a" in one.reason
    # A pool that holds it, or a pod that is to run once: it ended for another reason.
    assert named(answered(node("a", pools={"2Mi": "2Gi"}), ended), "database_not_scheduled") == []
    ended["spec"]["restartPolicy"] = "Never"
    assert named(answered(node("a", pools={"2Mi": "1Gi"}), ended), "database_not_scheduled") == []


def test_requests_that_no_longer_fit_once_the_pool_is_reserved() -> None:
    # 65 GiB with 1 GiB reserved; the applications ask for 60 GiB and PostgreSQL for nothing.
    apps = [pod(f"app-{i}", "a", container(requests={"memory": "6Gi"}, limits={"memory": "6Gi"})) for i in range(10)]
    big = postgres("pg-0", "a", {"shared_buffers": "8GB"})
    (one,) = named(answered(node("a"), big, *apps), "requests_exceed_allocatable")
    assert one.state is State.WRONG
    small = postgres("pg-0", "a", SETTINGS)
    assert named(answered(node("a"), small, *apps), "requests_exceed_allocatable") == []


def test_pages_of_other_programs_stay_in_the_plan() -> None:
    other = pod("dpdk", "a", container(limits={"memory": "1Gi", "hugepages-1Gi": "4Gi"}))
    (one,) = answered(node("a", pools={"1Gi": "4Gi", "2Mi": "0"}), other, postgres("pg-0", "a", SETTINGS)).nodes
    assert one.planned_bytes[GIB] >= 4 * GIB
    assert one.planned_bytes.get(2 * MIB, 0) >= GIB or one.planned_bytes[GIB] >= 6 * GIB


def test_a_node_without_databases_is_not_planned() -> None:
    (one,) = answered(node("a"), pod("app", "a")).nodes
    assert (one.plan, one.fits, one.planned_bytes) == (None, None, {})


def test_what_the_source_cannot_tell_is_unknown_in_the_plan() -> None:
    (one,) = answered(node("a"), postgres("pg-0", "a", SETTINGS)).nodes
    assert one.plan is not None
    with_pages = [gain for gain in one.plan.gains if gain.page_bytes > 4096]
    assert all(gain.confidence.value == "low" for gain in with_pages)
    states = {finding.code: finding.state for finding in one.plan.findings}
    assert states["fractured_guest"] is State.UNKNOWN


def test_a_node_that_does_not_fit_names_another_one_that_takes_the_database() -> None:
    """The empty node of 260 GiB, not the one of 130 GiB; nothing where the processor is of another architecture."""
    huge = postgres("pg-0", "a", {"shared_buffers": "90GB"})
    nodes = [node("a"), node("b", memory_kib=130 * 2**20), node("c", memory_kib=260 * 2**20)]
    text = inventory_text(answered(*nodes, huge), verbose=False)
    assert "pg-0 fits on c: " in text.splitlines()[2]
    (misfit,) = answered(*nodes, huge).does_not_fit
    assert misfit.plan is not None
    assert misfit.plan.shortfall is not None
    assert [option.node for option in misfit.plan.shortfall.options if option.kind == "node"] == ["c"]
    foreign = [node("a"), node("c", memory_kib=260 * 2**20, arch="arm64")]
    assert " fits on " not in inventory_text(answered(*foreign, huge), verbose=False)


def test_a_pool_is_not_called_idle_where_no_pod_is_in_the_input() -> None:
    """``kubectl get nodes`` alone: no pod was seen, which says nothing of who uses the pages."""
    alone = answered(node("a", pools={"2Mi": "4Gi"}))
    assert named(alone, "pool_idle") == []
    assert any(text.startswith("pods: none are in the input") for text in alone.inventory.unknown)
    assert "whether they are used is unknown" in inventory_text(alone)
    elsewhere = answered(node("a", pools={"2Mi": "4Gi"}), pod("web", "b", container(requests={"memory": "1Gi"})))
    assert len(named(elsewhere, "pool_idle")) == 1


def test_pages_that_a_pod_asks_for_and_its_engine_does_not_use_stay() -> None:
    """The scheduler counts the request: with the pool released down to what engines map, that pod stays Pending."""
    off = postgres("off-0", "a", {**SETTINGS, "huge_pages": "off"}, limits={"memory": "4Gi", "hugepages-2Mi": "3Gi"})
    on = postgres("on-0", "a", SETTINGS)
    needed = needed_mib(node("a"), on)
    enough = (needed + 3 * 1024) * MIB
    held = enough + 100 * 2 * MIB
    (one,) = named(answered(node("a", pools={"2Mi": f"{held // MIB}Mi"}), off, on), "pool_idle")
    told = re.search(r"reserve ([\d,]+) of ([\d,]+) pages", one.fix or "")
    assert told is not None
    assert int(told[2].replace(",", "")) == held // (2 * MIB)
    assert 0 <= int(told[1].replace(",", "")) - enough // (2 * MIB) < 10  # the plan's slack stays with them
    assert named(answered(node("a", pools={"2Mi": f"{enough // MIB}Mi"}), off, on), "pool_idle") == []


def test_requests_that_a_release_would_mend_say_so() -> None:
    big = node("a", memory_kib=32 << 20, pools={"2Mi": "20Gi"})
    database = postgres("pg-0", "a", SETTINGS, requests={"memory": "14Gi"}, limits={"memory": "14Gi"})
    (one,) = [f for f in answered(big, database).all_findings if f.code == "requests_exceed_allocatable"]
    assert (one.fix or "").startswith("Release "), one
    assert "it is enough" in (one.fix or "")


def only_plan(*items: Json) -> Plan:
    """The plan of the only node."""
    (one,) = answered(*items).nodes
    assert one.plan is not None
    return one.plan


class TestHeapsOfPods:
    """A JVM without -Xmx takes a share of its container's memory; who starts it may give it another."""

    @staticmethod
    def jvm(name: str, *words: str, limit: str | None = "8Gi") -> Json:
        resources = {} if limit is None else {"limits": {"memory": limit}, "requests": {"memory": limit}}
        return pod(f"{name}-0", "a", container(command=[*words, "-XX:+UseLargePages"], **resources))

    def test_a_share_that_a_script_cannot_overrule_is_a_size(self) -> None:
        found = only_plan(node("a"), self.jvm("j", "java", "-XX:MaxRAMPercentage=75"))
        assert (found.instances[0].demand.pool_bytes, found.fits) == (6 * GIB, True)

    @pytest.mark.parametrize(
        "words", [("java",), ("kafka-server-start.sh", "-XX:MaxRAMPercentage=25"), ("java", "-XX:MaxRAMFraction=4")]
    )
    def test_what_stands_in_for_a_heap_is_bounded_by_the_limit(self, words: tuple[str, ...]) -> None:
        found = only_plan(node("a"), self.jvm("j", *words, "-XX:+UseParallelGC"))
        assert (found.instances[0].demand.pool_bytes, found.fits) == (2 * GIB, None)
        assert any("Collector Parallel" in note for note in found.instances[0].demand.notes), "what was read is kept"

    def test_what_rests_on_a_heap_that_nobody_read_says_so(self) -> None:
        """Found: "Pods will stay pending: move pods to another node" for a stand-in of a quarter of the node each."""
        app = pod("app", "a", container(limits={"memory": "58Gi"}, requests={"memory": "58Gi"}))
        jvms = [self.jvm(name, "java", limit=None) for name in "jk"]
        plan = only_plan(node("a"), app, *jvms)
        assert plan.fits is None
        for code in ("pod_memory", "risk_above_policy"):
            (finding,) = [one for one in plan.findings if one.code == code]
            assert finding.reason.startswith("Xmx of j-0 and k-0 was not read. At the size that stands in for it:")
            assert (finding.fix or "").startswith("Set Xmx")
