"""A cluster's verdict is never milder than the node's own plan; patches keep what an engine uses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kubernetes_objects import container, listing, node, pod, postgres

from hugeplan.inventory.answer import answer, request_of
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.planner.memory.kubernetes import pod_memory
from hugeplan.planner.model import GIB, MIB, Policy, State
from hugeplan.planner.plan import plan

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


@given(database=_DATABASES, pool=st.sampled_from([0, 400, 1200, 4000]))
@settings(max_examples=60, deadline=None)
def test_the_same_input_gives_the_same_verdict(database: Json, pool: int) -> None:
    """What is wrong for the node's own plan is wrong in the cluster's answer, for the same database."""
    found = answered(sized(32, pool), database)
    if found.plan is None:
        return
    own = plan(request_of(found.node, Policy()))
    said = {finding.state for finding in found.findings}
    assert State.WRONG in said or State.WRONG not in {finding.state for finding in own.findings}
    assert found.fits == own.feasible


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
    rule = pod_memory(found.plan, type(instance)(name="x", engine="postgresql"), planned).limit_bytes
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
    (idle,) = [finding for finding in found.findings if finding.code == "idle_pool"]
    assert "reserve 548 of 2,048 pages of 2M" in (idle.fix or "")
