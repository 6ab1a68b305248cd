"""A cluster's verdict is never milder than the node's own plan; patches keep what an engine uses."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kubernetes_objects import container, listing, node, pod, postgres

from hugeplan.artifacts import render
from hugeplan.cli.running_server import Choice, Described, over_running
from hugeplan.inventory.answer import answer, request_of
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.scenario import scenario_document
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.fleet import plan_node
from hugeplan.planner.memory.kubernetes import pod_memory
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    DatabaseInstance,
    Finding,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    Plan,
    PlanRequest,
    Policy,
    State,
)
from hugeplan.planner.observation.databases import as_it_runs
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import load, to_request

Json = dict[str, Any]


def answered(*items: Json) -> Any:
    (found,) = answer(read_kubernetes(listing(*items).encode())).nodes
    return found


def sized(memory_gib: int, pages: int = 0) -> Json:
    """A node with this memory and pool of 2M."""
    return node("a", memory_kib=memory_gib * 1024**2, pools={"1Gi": "0", "2Mi": f"{2 * pages}Mi"})


def mysql(limits: Json, **settings_: str) -> Json:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in settings_.items()]
    return pod("my-0", "a", container("mysql", "mysql:8.4", args=words, limits=limits, requests=limits))


_DATABASES = st.one_of(
    st.builds(
        lambda pages, size, mode: postgres(
            "db-0", "a", {"shared_buffers": f"{size}MB", "huge_pages": mode},
            limits={"memory": "8Gi"} | ({"hugepages-2Mi": f"{2 * pages}Mi"} if pages else {}),
        ),
        st.integers(0, 1500), st.integers(128, 3000), st.sampled_from(["try", "on", "off"]),
    ),
    st.builds(
        lambda pages, size, large: mysql(
            {"memory": "8Gi"} | ({"hugepages-2Mi": f"{2 * pages}Mi"} if pages else {}),
            innodb_buffer_pool_size=f"{size}M", **({"large_pages": "ON"} if large else {}),
        ),
        st.integers(0, 1500), st.integers(128, 3000), st.booleans(),
    ),
)  # fmt: skip


def wrong_codes(findings: Iterable[Finding]) -> set[str]:
    return {finding.code for finding in findings if finding.state is State.WRONG}


def files_of(found: Plan, request: PlanRequest) -> dict[str, str]:
    """What is applied: names and contents, without the digests of their first lines."""
    return {artifact.filename: artifact.content for artifact in render(found, request)}


@given(database=_DATABASES, pool=st.sampled_from([0, 400, 1200, 4000]), beside=st.booleans(), whole_pod=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_same_input_gives_the_same_verdict(database: Json, pool: int, beside: bool, whole_pod: bool) -> None:
    """A cluster's answer, the node's own plan, the node as a scenario file, and a fleet's plan of that file."""
    spec = deepcopy(database["spec"])
    if whole_pod:
        limits = spec["containers"][0]["resources"].pop("limits", {})
        spec["containers"][0]["resources"] = {}
        spec["resources"] = {"limits": limits, "requests": limits}
    if beside:
        spec["initContainers"] = [container("log", "fluent-bit:3", limits={"memory": "300Mi"}, restartPolicy="Always")]
    found = answered(sized(32, pool), {**database, "spec": spec})
    assert found.plan is not None
    request = found.request
    own = plan(request)
    # The cluster says more (what its pods do today), and never less.
    assert (found.fits, found.plan.pools) == (own.fits, own.pools)
    assert State.WRONG not in {f.state for f in own.findings} or State.WRONG in {f.state for f in found.findings}
    text = yaml.safe_dump(scenario_document(found.node, found.plan))
    from_file = to_request(load(text), sample=request.sample)
    filed, in_fleet = plan(from_file), plan_node(from_file)
    assert in_fleet.plan is not None
    for other in (filed, in_fleet.plan):
        assert (other.feasible, other.pools) == (own.feasible, own.pools)
        assert wrong_codes(other.findings) == wrong_codes(own.findings)
    assert files_of(filed, from_file) == files_of(own, request)


@given(buffers=st.integers(1, 4000), connections=st.integers(10, 3000), locks=st.sampled_from([64, 128, 1024]))
@settings(max_examples=40, deadline=None)
def test_a_machine_and_a_file_about_it_plan_the_same(buffers: int, connections: int, locks: int) -> None:
    """The server as it runs, the same said by flags, and a scenario with the node and all settings."""
    said = {"shared_buffers": f"{buffers}MB", "max_connections": str(connections),
            "max_locks_per_transaction": str(locks)}  # fmt: skip
    server = ObservedDatabase(key="postgresql@host:5432", engine="postgresql", unit="pg", pid=7, port=5432,
                              version="16", settings=said, settings_complete=True)  # fmt: skip
    facts = NodeFacts(
        name="m", arch="x86_64", base_page_bytes=4 * KIB, huge_page_sizes_bytes=(2 * MIB, GIB),
        default_huge_page_bytes=2 * MIB, cpus=8,
        numa=(NumaNode(id=0, mem_total_bytes=64 * GIB, mem_free_bytes=50 * GIB, pools=()),),
    )  # fmt: skip
    sample, context = NodeSample(databases=(server,)), DemandContext.of_node(facts)
    running = as_it_runs(sample, context)
    flags = DatabaseInstance(name="PostgreSQL", engine="postgresql", settings={"shared_buffers": f"{buffers}MB"})
    named, _ = over_running([Described(instance=flags, choice=Choice(port=5432))], sample, context)
    document = {"databases": [{"name": "pg", "engine": "postgresql", "version": "16", "settings": said}]}
    filed = to_request(load(yaml.safe_dump(document)), facts).databases
    requests = [PlanRequest(node=facts, databases=databases) for databases in (running, named, filed)]
    first, *others = (plan(request) for request in requests)
    for other in others:
        assert (other.feasible, other.pools) == (first.feasible, first.pools)
        assert wrong_codes(other.findings) == wrong_codes(first.findings)
        assert [i.demand.pages for i in other.instances] == [i.demand.pages for i in first.instances]


def test_mysql_without_large_pages_and_without_a_limit_is_wrong_in_a_cluster_too() -> None:
    found = answered(sized(32, 1200),
                     mysql({"memory": "8Gi"}, innodb_buffer_pool_size="2G"))  # fmt: skip
    own = plan(request_of(found.node, Policy()))
    wrong = {finding.code for finding in own.findings if finding.state is State.WRONG}
    assert wrong <= {finding.code for finding in found.findings if finding.state is State.WRONG}


@pytest.mark.parametrize(("limit", "buffers"), [("64Gi", "8GB"), ("16Gi", "8GB"), ("2Gi", "1GB")])
def test_a_patch_takes_the_pages_from_the_old_limit_and_no_more(limit: str, buffers: str) -> None:
    """64Gi became 1522Mi: whatever else the container does had no memory any more."""
    limits = {"memory": limit}
    found = answered(sized(128), postgres("pg-0", "a", {"shared_buffers": buffers}, limits=limits))
    (instance,), (planned,) = found.request.databases, found.plan.instances
    memory, old = pod_memory(found.plan, instance, planned), int(limit.removesuffix("Gi")) * GIB
    moved = planned.demand.pages * planned.demand.page_bytes
    assert memory.limit_bytes is not None
    rule = pod_memory(found.plan, type(instance)(name="x", engine="postgresql"), planned).request_bytes
    assert rule is not None
    assert memory.limit_bytes >= rule >= 256 * MIB
    if old - moved > rule:
        assert memory.limit_bytes == old - moved
    assert f"limit {limit} becomes" in memory.why


def test_a_patched_pod_that_stays_pending_is_named() -> None:
    both = {"memory": "20Gi"}
    found = answered(sized(24),
                     postgres("pg-0", "a", {"shared_buffers": "1GB"}, limits=both, requests=both),
                     postgres("big-0", "a", {"shared_buffers": "8GB"}))  # fmt: skip
    named = [finding for finding in found.findings if finding.code == "patched_pod_stays_pending"]
    assert [finding.subject for finding in named] == ["default/pg-0"]
    assert "stays Pending" in named[0].reason


def test_pools_that_no_pod_can_use_are_proposed_for_release() -> None:
    found = answered(sized(64, 2048),
                     postgres("pg-0", "a", {"shared_buffers": "1GB", "huge_pages": "on"},
                              limits={"memory": "4Gi", "hugepages-2Mi": "1096Mi"}))  # fmt: skip
    (idle,) = [finding for finding in found.findings if finding.code == "pool_idle"]
    assert "reserve 548 of 2,048 pages of 2M" in (idle.fix or "")


POD_OF_16G = {"limits": {"memory": "16Gi"}, "requests": {"memory": "16Gi"}}


def test_a_container_without_a_limit_has_what_its_pod_leaves_to_it() -> None:
    """Resources of a whole pod (1.34): the patch takes the pages from them, and does not begin at the rule again."""
    log = container("log", "fluent-bit:3", requests={"memory": "300Mi"}, restartPolicy="Always")
    whole = postgres("pg-0", "a", {"shared_buffers": "4GB"}, limits=None)
    whole["spec"] |= {"resources": POD_OF_16G, "initContainers": [log], "overhead": {"memory": "160Mi"}}
    found = answered(sized(64), whole)
    (instance,), (planned,) = found.request.databases, found.plan.instances
    left, moved = 16 * GIB - 300 * MIB, planned.demand.pages * planned.demand.page_bytes
    assert instance.pod_memory_limit_bytes == left
    assert pod_memory(found.plan, instance, planned).limit_bytes == left - moved
    # Sidecar and overhead are memory of the node beside the database.
    (beside,) = found.request.tenants
    assert (beside.request_bytes, "beside the database" in beside.name) == (460 * MIB, True)


def test_a_patched_pod_counts_with_its_sidecars() -> None:
    """15 GiB of the database fit beside the pools, 15 and 4 of its sidecar do not."""
    log = container("log", "fluent-bit:3", requests={"memory": "4Gi"}, restartPolicy="Always")
    for sidecars, pending in (([], 0), ([log], 1)):
        db = postgres("pg-0", "a", {"shared_buffers": "1GB"}, limits={"memory": "16Gi"}, requests={"memory": "16Gi"})
        db["spec"]["initContainers"] = sidecars
        found = answered(sized(19), db)
        assert len([f for f in found.findings if f.code == "patched_pod_stays_pending"]) == pending


def test_the_fix_of_a_database_that_does_not_start_is_enough() -> None:
    """4,251 pages alone did not start it: its container may use none, and other pods draw from the same pool."""
    insisting = postgres("pg-0", "a", {"shared_buffers": "8GB", "huge_pages": "on"}, limits={"cpu": "4"})
    found = answered(sized(64), insisting)
    (fix,) = [f.fix for f in found.findings if (f.code, f.subject) == ("silent_fallback", "default/pg-0")]
    pages = found.plan.instances[0].demand.pages
    (pool,) = found.plan.pools
    assert pool.pages >= pages
    assert f"Reserve {pool.pages:,} pages of 2M in all on a and set hugepages-2Mi: {2 * pages}Mi" in fix
    other = pod("dpdk-0", "a", container("app", limits={"memory": "1Gi", "hugepages-2Mi": "1Gi"}))
    found = answered(sized(64, 512), other, insisting)
    (fix,) = [f.fix for f in found.findings if (f.code, f.subject) == ("silent_fallback", "default/pg-0")]
    (pool,) = found.plan.pools
    assert pool.pages >= pages + 512
    assert f"Reserve {pool.pages:,} pages of 2M in all on a" in fix


def test_pages_that_a_database_asks_for_are_not_proposed_for_release() -> None:
    """It lacks the limit, which another finding gives it: 'reserve 0 of 2,048' beside that was no advice."""
    found = answered(
        sized(64, 2048), postgres("pg-0", "a", {"shared_buffers": "1GB", "huge_pages": "on"}, limits={"cpu": "1"})
    )
    (idle,) = [finding for finding in found.findings if finding.code == "pool_idle"]
    (pool,) = found.plan.pools
    counted = pool.pages - pool.held_pages
    assert f"reserve {counted} of 2,048 pages of 2M" in (idle.fix or "")
    assert "The plan keeps them, since nobody knows whether they are in use." in (idle.fix or "")
    released = answered(
        sized(64, counted), postgres("pg-0", "a", {"shared_buffers": "1GB", "huge_pages": "on"}, limits={"cpu": "1"})
    )
    assert released.missing_pages == {}  # without the plan's slack 6 pages were missing


@pytest.mark.parametrize(("reserved", "says"), [(100, "Reserve {} pages of 2M in all with the"), (700, "Apply the")])
def test_limits_that_the_plan_lowers_are_no_reason_to_reserve_more(reserved: int, says: str) -> None:
    """ "Reserve 2,048 pages of 2M in all" stood under a plan of 543."""
    limits = {"memory": "8Gi", "hugepages-2Mi": "4Gi"}
    found = answered(sized(64, reserved), postgres("pg-0", "a", {"shared_buffers": "1GB"}, limits=limits))
    (short,) = [finding for finding in found.findings if finding.code == "pool_below_limits"]
    planned = found.planned_bytes[2 * MIB] // (2 * MIB)
    assert (short.fix or "").startswith(f"{says.format(planned)} plan's files, which lower limits,"), short.fix


@pytest.mark.parametrize(("containers", "request_gib"), [([2, None], 2), ([None, None], 8), ([2, 3], 5)])
def test_a_pod_with_a_limit_requests_what_its_containers_say(containers: list[int | None], request_gib: int) -> None:
    """The API server adds up the containers that say something; with none it takes the pod's limit."""
    asked = [container(f"c{i}", requests=None if g is None else {"memory": f"{g}Gi"}) for i, g in enumerate(containers)]
    app = pod("app-0", "a", *asked)
    app["spec"]["resources"] = {"limits": {"memory": "8Gi"}}
    found = answered(sized(64), app, postgres("pg-0", "a", {"shared_buffers": "1GB"}))
    assert [t.request_bytes for t in found.request.tenants] == [request_gib * GIB]


def test_what_the_plan_gives_to_databases_is_not_proposed_for_release() -> None:
    """MySQL asks for nothing today; its plan takes the pool: 'release it' beside 'reserve 4,927 more' was no advice."""
    asks_for_nothing = mysql({"memory": "16Gi"}, innodb_buffer_pool_size="12G")
    found = answered(sized(64, 2048), asks_for_nothing)
    assert found.planned_bytes[2 * MIB] > 2048 * 2 * MIB
    assert {finding.state for finding in found.findings if finding.code == "pool_idle"} <= {State.OK}


def test_a_pod_that_has_its_pages_is_not_patched() -> None:
    """A StatefulSet of the name that the plan gave to a DPDK pod does not exist."""
    other = pod("dpdk-0", "a", container("app", limits={"memory": "1Gi", "hugepages-2Mi": "1Gi"}))
    found = answered(sized(64, 512), other, postgres("pg-0", "a", {"shared_buffers": "1GB"}))
    patches = [a.filename for a in render(found.plan, found.request) if a.kind.startswith(("pod", "statefulset"))]
    assert len(patches) == 2
    assert all("pg-0" in name for name in patches)


@pytest.mark.parametrize("quantity", ["1GiB", "512MB", "1 Gi", "-1Gi", "lots"])
def test_a_quantity_that_kubernetes_refuses_is_named(quantity: str) -> None:
    """It was taken for no limit, and nothing said so."""
    limits = {"memory": "4Gi", "hugepages-2Mi": quantity}
    items = (sized(32), postgres("pg-0", "a", {"shared_buffers": "1GB"}, limits=limits))
    (note,) = read_kubernetes(listing(*items).encode()).notes
    assert f"pod default/pg-0, postgres, limits: hugepages-2Mi: {quantity} is no Kubernetes quantity" in note
