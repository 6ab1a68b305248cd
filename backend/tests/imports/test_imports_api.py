"""``POST /api/v1/imports/*`` over the real service and database."""

from __future__ import annotations

from typing import Any

import httpx
from support.kubernetes_objects import container, listing, node, pod, postgres

from hugeplan.inventory.answer import answer as answered
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.scenario import scenario_document
from hugeplan.inventory.text import inventory_text

Json = dict[str, Any]

CLUSTER = (
    node("db-1", pools={"2Mi": "2Gi", "1Gi": "0"}),
    node("app-1"),
    postgres("pg-0", "db-1", {"shared_buffers": "4GB"}, limits={"memory": "12Gi", "hugepages-2Mi": "2Gi"}),
    pod("web-1", "app-1", container(requests={"memory": "1Gi"})),
)


async def post(client: httpx.AsyncClient, path: str, text: str, **query: str) -> httpx.Response:
    """A JSON body as it is spelled."""
    headers = {"Content-Type": "application/json"}
    return await client.post(f"/api/v1/imports/{path}", content=text.encode(), headers=headers, params=query)


class TestKubernetes:
    async def test_every_node_is_planned(self, planner: httpx.AsyncClient) -> None:
        found = await post(planner, "kubernetes", listing(*CLUSTER))
        assert found.status_code == 200
        answer = found.json()["answer"]
        assert [one["name"] for one in answer["nodes"]] == ["app-1", "db-1"]
        assert any(one["code"] == "pod_limit_below_segment" for one in answer["nodes"][1]["findings"])
        assert found.json()["scenarios"] == []
        assert found.json()["text"] == inventory_text(answered(read_kubernetes(listing(*CLUSTER).encode(), "the body")))
        assert (await planner.get("/api/v1/scenarios")).json()["items"] == []

    async def test_saved_scenarios_can_be_opened_and_planned_alike(self, planner: httpx.AsyncClient) -> None:
        found = (await post(planner, "kubernetes", listing(*CLUSTER), save="true")).json()
        (kept,) = found["scenarios"]
        assert (kept["name"], kept["created"]) == ("db-1 (imported)", True)
        plan = (await planner.post(f"/api/v1/scenarios/{kept['id']}/plans")).json()["plan"]
        pages = {(pool["page_bytes"], pool["pages"]) for pool in plan["pools"] if pool["pages"]}
        answered = next(one for one in found["answer"]["nodes"] if one["name"] == "db-1")
        assert pages == {
            (pool["page_bytes"], pool["planned_pages"]) for pool in answered["pools"] if pool["planned_pages"]
        }

    async def test_no_kept_scenario_patches_an_object_that_another_node_has_no_room_for(
        self, planner: httpx.AsyncClient
    ) -> None:
        pair = [postgres(f"pg-{i}", f"db-{i}", {"shared_buffers": "16GB"}, limits={"memory": "20Gi"}) for i in (0, 1)]
        app = pod("app", "db-1", container(requests={"memory": "56Gi"}, limits={"memory": "56Gi"}))
        objects = listing(node("db-0"), node("db-1"), *pair, app)
        found = (await post(planner, "kubernetes", objects, save="true")).json()
        assert "db-0: pg-0 is planned on base pages" in found["answer"]["notes"][0]
        kept = {one["name"]: one["id"] for one in found["scenarios"]}["db-0 (imported)"]
        plan = (await planner.post(f"/api/v1/scenarios/{kept}/plans")).json()["plan"]
        assert (plan["fits"], [one["page_bytes"] for one in plan["instances"]]) == (True, [None])

    async def test_importing_again_replaces(self, planner: httpx.AsyncClient) -> None:
        first = (await post(planner, "kubernetes", listing(*CLUSTER), save="true")).json()["scenarios"]
        second = (await post(planner, "kubernetes", listing(*CLUSTER), save="true")).json()["scenarios"]
        assert [one["id"] for one in first] == [one["id"] for one in second]
        assert [one["created"] for one in second] == [False]
        (only,) = (await planner.get("/api/v1/scenarios")).json()["items"]
        assert only["version"] == 2

    async def test_what_is_no_cluster_is_one_problem(self, planner: httpx.AsyncClient) -> None:
        for text in ('{"kind": "List", "items": []}', '{"a": 1}', "[]", listing(pod("p", "n"))):
            found = await post(planner, "kubernetes", text)
            assert found.status_code == 422, text
            assert found.headers["content-type"] == "application/problem+json"
            assert "kubectl" in found.text

    async def test_who_may_only_view_may_not_import(self, viewer: httpx.AsyncClient) -> None:
        assert (await post(viewer, "kubernetes", listing(*CLUSTER))).status_code == 403


class TestWorkloads:
    """Pods alone, as the planner page takes them: the rules are the import's."""

    PODS = (
        pod("web-1", "n1", container(requests={"memory": "1Gi"}), owner=("ReplicaSet", "web-7d")),
        pod("web-2", "n1", container(requests={"memory": "1Gi"}), owner=("ReplicaSet", "web-7d")),
        # A sidecar without a request: the pod stays, with what is not known as unknown.
        pod("mesh-1", "n1", container(requests={"memory": "2Gi"}), container(name="proxy")),
        pod("other-1", "n2", container(requests={"memory": "4Gi"})),
        pod("waiting-1", None, container(requests={"memory": "4Gi"})),
        pod("done-1", "n1", container(requests={"memory": "8Gi"}), phase="Succeeded"),
        postgres("pg-0", "n1", {"shared_buffers": "4GB"}, limits={"memory": "12Gi", "hugepages-2Mi": "2Gi"}),
    )

    async def test_those_of_the_node_are_kept_and_the_rest_is_counted(self, viewer: httpx.AsyncClient) -> None:
        found = await post(viewer, "kubernetes/workloads", listing(*self.PODS), node_name="n1")
        assert found.status_code == 200, found.text
        answer = found.json()
        by_name = {tenant["name"]: tenant for tenant in answer["tenants"]}
        assert by_name["default/web-7d"]["count"] == 2
        assert by_name["default/web-7d"]["request"] == 2**30
        assert "request" not in by_name["default/mesh-1"]
        assert [one["engine"] for one in answer["databases"]] == ["postgresql"]
        assert (answer["pods"], answer["elsewhere"], answer["waiting"], answer["ended"]) == (4, {"n2": 1}, 1, 1)

    async def test_the_same_as_an_import_of_the_node(self, viewer: httpx.AsyncClient) -> None:
        whole = read_kubernetes(listing(node("n1"), *self.PODS).encode()).nodes[0]
        found = await post(viewer, "kubernetes/workloads", listing(*self.PODS), node_name="n1")
        expected = scenario_document(whole)
        assert found.json()["tenants"] == expected["tenants"]
        assert [one["settings"] for one in found.json()["databases"]] == [
            one["settings"] for one in expected["databases"]
        ]

    async def test_without_a_node_all_pods_are_taken(self, viewer: httpx.AsyncClient) -> None:
        found = await post(viewer, "kubernetes/workloads", listing(*self.PODS))
        assert (found.json()["pods"], found.json()["elsewhere"]) == (6, {})

    async def test_what_holds_no_pod_is_one_problem(self, viewer: httpx.AsyncClient) -> None:
        for text in ('{"kind": "List", "items": []}', "[]", listing(node("n1")), "NAME READY"):
            found = await post(viewer, "kubernetes/workloads", text)
            assert found.status_code in {400, 422}, text
            assert found.headers["content-type"] == "application/problem+json"


class TestScenarios:
    @staticmethod
    def documents() -> list[Json]:
        """What ``hugeplan import`` sends."""
        nodes = read_kubernetes(listing(*CLUSTER).encode()).nodes
        return [{"name": one.facts.name, "scenario": scenario_document(one)} for one in nodes]

    async def test_kept_as_they_were_sent(self, planner: httpx.AsyncClient) -> None:
        body = {"source": "Prometheus http://p:9090", "scenarios": self.documents()}
        found = await planner.post("/api/v1/imports/scenarios", json=body)
        assert found.status_code == 200, found.text
        assert found.json()["source"] == body["source"]
        kept = found.json()["scenarios"]
        assert [one["created"] for one in kept] == [True, True]
        stored = (await planner.get(f"/api/v1/scenarios/{kept[0]['id']}")).json()
        assert stored["scenario"] == body["scenarios"][0]["scenario"]

    async def test_what_is_wrong_with_one_is_said_of_that_one(self, planner: httpx.AsyncClient) -> None:
        good, bad = self.documents()
        bad["scenario"]["tenants"].append({"name": "x", "request": 1, "numa_node": 7})
        odd = [
            bad,
            {"name": "n" * 254, "scenario": good["scenario"]},
            good,
            {"name": "x", "scenario": {"node": 1}},
            good,
        ]
        found = await planner.post("/api/v1/imports/scenarios", json={"source": "s", "scenarios": odd})
        assert found.status_code == 200, found.text
        assert [one["name"] for one in found.json()["scenarios"]] == [good["name"]]
        refused = [(one["name"][:3], one["reason"].split(":")[0]) for one in found.json()["refused"]]
        assert refused == [
            (bad["name"][:3], "tenants[0].numa_node"), ("nnn", "name"), ("x", "scenario.node"),
            (good["name"][:3], "name"),
        ]  # fmt: skip
        (only,) = (await planner.get("/api/v1/scenarios")).json()["items"]
        assert only["version"] == 1

    async def test_a_node_with_a_long_name_keeps_no_other_from_being_kept(self, planner: httpx.AsyncClient) -> None:
        long = "n" * 230
        objects = (*CLUSTER, node(long), postgres("pg-1", long, {"shared_buffers": "1GB"}))
        found = (await post(planner, "kubernetes", listing(*objects), save="true")).json()
        assert [one["name"] for one in found["scenarios"]] == ["db-1 (imported)"]
        assert [one["reason"].split(":")[0] for one in found["refused"]] == ["scenario.node.name"]
