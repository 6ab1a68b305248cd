"""Plans from scenarios: previewed, saved, edited without losing anybody's change, rendered as files."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from typing import Any

import httpx
import pytest
from sqlalchemy import update
from support.reports import report, run
from support.service import Service, assert_problem, fields_of

from hugeplan.access.schemas import Role
from hugeplan.artifacts.base import mark
from hugeplan.db.models import PlanRow
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import ScenarioDocument, to_request
from hugeplan.scenarios import repository

PREVIEW = "/api/v1/plans/preview"
SCENARIOS = "/api/v1/scenarios"


def scenario(**changes: Any) -> dict[str, Any]:
    """PostgreSQL with 8 GB of shared_buffers on a node of 64 GiB."""
    return {
        "schema_version": 1,
        "node": {"name": "db-7", "memory": "64GiB", "cpus": 16},
        "tenants": [{"name": "app", "kind": "pod", "count": 4, "request": "6Gi", "limit": "8Gi"}],
        "databases": [
            {
                "name": "main",
                "engine": "postgresql",
                "version": "17",
                "settings": {"shared_buffers": "8GB", "max_connections": "200"},
            }
        ],
    } | changes


class TestPreview:
    async def test_plan_is_the_planners(self, viewer: httpx.AsyncClient) -> None:
        answer = await viewer.post(PREVIEW, json={"scenario": scenario()})
        assert answer.status_code == 200, answer.text
        expected = plan(to_request(ScenarioDocument.model_validate(scenario())))
        body = answer.json()
        assert body["plan"]["headline"] == expected.headline
        (pool,) = [pool for pool in body["plan"]["pools"] if pool["pages"]]
        assert pool["pages"] == sum(pool.pages for pool in expected.pools)
        parts = body["plan"]["ledger"]["parts"]
        assert sum(part["bytes"] for part in parts) == 64 * 1024**3
        sysctl = next(artifact for artifact in body["artifacts"] if artifact["kind"] == "sysctl")
        assert f"vm.nr_hugepages = {pool['pages']}" in sysctl["content"]
        assert sysctl["verify"]
        assert sysctl["rollback"]

    async def test_node_of_the_fleet(self, service: Service, viewer: httpx.AsyncClient) -> None:
        agent = await service.client_as(Role.AGENT)
        receipt = (await agent.post("/api/v1/reports", json=report(run=run()))).json()
        body = {"node_id": receipt["node_id"], "scenario": scenario(node=None)}
        answer = await viewer.post(PREVIEW, json=body)
        assert answer.status_code == 200, answer.text
        found = answer.json()["plan"]
        assert found["node"] == "db-7"
        assert [pool["present_pages"] for pool in found["pools"] if pool["page_bytes"] == 2 * 1024**2] == [1024]

    async def test_preview_without_files_is_the_same_plan(self, viewer: httpx.AsyncClient) -> None:
        with_files = (await viewer.post(PREVIEW, json={"scenario": scenario()})).json()
        without = (await viewer.post(PREVIEW, json={"scenario": scenario(), "files": False})).json()
        assert with_files["artifacts"]
        assert without == with_files | {"artifacts": None}

    async def test_preview_stores_nothing(self, viewer: httpx.AsyncClient) -> None:
        await viewer.post(PREVIEW, json={"scenario": scenario()})
        assert (await viewer.get(SCENARIOS)).json()["items"] == []

    async def test_unknown_node_is_404(self, viewer: httpx.AsyncClient) -> None:
        body = {"node_id": str(uuid.uuid4()), "scenario": scenario(node=None)}
        assert_problem(await viewer.post(PREVIEW, json=body), 404, "not-found")

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"databases": [{"name": "m", "engine": "postgresq"}]}, "databases[0].engine"),
            ({"databases": [{"name": "m", "engine": "postgresql", "version": "3"}]}, "databases[0].version"),
            (
                {"databases": [{"name": "m", "engine": "postgresql", "settings": {"shared_buffers": "8 elephants"}}]},
                "databases[0].settings.shared_buffers",
            ),
            ({"databases": [{"name": "m", "engine": "postgresql", "page_size": "3MiB"}]}, "databases[0].page_size"),
            ({"node": {"name": "n", "memory": "0"}}, "node.memory"),
            ({"node": {"name": "n"}}, "node.memory"),
            ({"node": {"name": "n", "memory": "64GiB", "huge_page_sizes": ["5MiB"]}}, "node.huge_page_sizes"),
            ({"tenants": [{"name": "t", "request": "-1"}]}, "tenants[0].request"),
            ({"polcy": {}}, "polcy"),
            ({"policy": {"risk": "200%"}}, "policy.risk"),
        ],
    )
    async def test_wrong_scenario_names_the_field(
        self, viewer: httpx.AsyncClient, changes: dict[str, Any], field: str
    ) -> None:
        answer = await viewer.post(PREVIEW, json={"scenario": scenario(**changes)})
        problem = assert_problem(answer, 422, "invalid-input")
        assert any(field in name for name in fields_of(problem)), problem
        assert all(error["expected"] for error in problem["errors"])

    async def test_work_without_bound_is_refused(self, viewer: httpx.AsyncClient) -> None:
        numa = [{"id": number, "memory": "64GiB"} for number in range(1024)]
        tenants = [{"name": f"t{number}", "request": "1Mi"} for number in range(1000)]
        body = scenario(node={"name": "n", "numa_nodes": numa}, tenants=tenants)
        answer = await viewer.post(PREVIEW, json={"scenario": body})
        assert fields_of(assert_problem(answer, 422, "invalid-input")) == ["scenario"]

    async def test_node_twice_is_refused(self, service: Service, viewer: httpx.AsyncClient) -> None:
        agent = await service.client_as(Role.AGENT)
        receipt = (await agent.post("/api/v1/reports", json=report())).json()
        answer = await viewer.post(PREVIEW, json={"node_id": receipt["node_id"], "scenario": scenario()})
        assert fields_of(assert_problem(answer, 422, "invalid-input")) == ["node"]


async def create(client: httpx.AsyncClient, **changes: Any) -> tuple[dict[str, Any], str]:
    """A saved scenario and its ETag."""
    answer = await client.post(SCENARIOS, json={"name": "what if", "scenario": scenario()} | changes)
    assert answer.status_code == 201, answer.text
    return answer.json(), answer.headers["etag"]


class TestScenarios:
    async def test_comes_back_as_it_was_spelled(self, planner: httpx.AsyncClient) -> None:
        made, etag = await create(planner)
        answer = await planner.get(f"{SCENARIOS}/{made['id']}")
        assert answer.headers["etag"] == etag
        assert json.dumps(answer.json()["scenario"]) == json.dumps(scenario())

    async def test_a_scenario_that_cannot_be_planned_is_not_saved(self, planner: httpx.AsyncClient) -> None:
        body = {"name": "x", "scenario": scenario(node=None)}
        assert_problem(await planner.post(SCENARIOS, json=body), 422, "invalid-input")
        assert (await planner.get(SCENARIOS)).json()["items"] == []

    async def test_edit_needs_the_current_etag(self, planner: httpx.AsyncClient) -> None:
        made, etag = await create(planner)
        url = f"{SCENARIOS}/{made['id']}"
        body = {"name": "renamed", "scenario": scenario()}
        assert_problem(await planner.put(url, json=body), 428, "precondition-required")
        edited = await planner.put(url, json=body, headers={"If-Match": etag})
        assert edited.status_code == 200
        assert edited.json()["name"] == "renamed"
        assert edited.json()["version"] == 2
        assert edited.headers["etag"] != etag
        assert (await planner.get(url)).json() == edited.json()
        assert_problem(await planner.put(url, json=body, headers={"If-Match": etag}), 412, "precondition-failed")

    @pytest.mark.parametrize("tag", ['"7"', 'W/"1"', "1", "", '"x", "y"', "\x7f"])
    async def test_other_etags_are_412(self, planner: httpx.AsyncClient, tag: str) -> None:
        made, _ = await create(planner)
        answer = await planner.put(
            f"{SCENARIOS}/{made['id']}", json={"name": "n", "scenario": scenario()}, headers={"If-Match": tag}
        )
        assert_problem(answer, 412, "precondition-failed")

    async def test_of_two_simultaneous_edits_one_wins(self, service: Service) -> None:
        clients = [await service.client_as(Role.PLANNER) for _ in range(6)]
        made, etag = await create(clients[0])
        url = f"{SCENARIOS}/{made['id']}"
        answers = await asyncio.gather(
            *(
                client.put(url, json={"name": f"edit {n}", "scenario": scenario()}, headers={"If-Match": etag})
                for n, client in enumerate(clients)
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [412] * 5

    async def test_the_newest_versions_are_kept(
        self, planner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(repository, "MAX_VERSIONS", 3)
        made, etag = await create(planner)
        url = f"{SCENARIOS}/{made['id']}"
        for number in range(4):
            body = {"name": f"edit {number}", "scenario": scenario()}
            etag = (await planner.put(url, json=body, headers={"If-Match": etag})).headers["etag"]
        kept = (await planner.get(f"{url}/versions")).json()["items"]
        assert [version["version"] for version in kept] == [5, 4, 3]

    async def test_delete_takes_the_plans_along(self, planner: httpx.AsyncClient) -> None:
        made, etag = await create(planner)
        url = f"{SCENARIOS}/{made['id']}"
        saved = (await planner.post(f"{url}/plans")).json()
        assert_problem(await planner.delete(url), 428, "precondition-required")
        assert (await planner.delete(url, headers={"If-Match": etag})).status_code == 204
        assert_problem(await planner.get(url), 404, "not-found")
        assert_problem(await planner.get(f"/api/v1/plans/{saved['id']}"), 404, "not-found")

    async def test_list_is_paged_by_last_change(self, planner: httpx.AsyncClient) -> None:
        made = [await create(planner, name=f"s{number}") for number in range(4)]
        first, etag = made[0]
        await planner.put(
            f"{SCENARIOS}/{first['id']}", json={"name": "s0", "scenario": scenario()}, headers={"If-Match": etag}
        )
        one = (await planner.get(SCENARIOS, params={"limit": 3})).json()
        two = (await planner.get(SCENARIOS, params={"limit": 3, "cursor": one["next_cursor"]})).json()
        assert [item["name"] for item in one["items"] + two["items"]] == ["s0", "s3", "s2", "s1"]
        assert two["next_cursor"] is None


def without_texts(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Files without their texts, and without what commands know these texts by: a way back may name several."""
    marks = re.compile("|".join(mark(file["content"]) for file in files))
    return [
        file | {name: marks.sub("", file[name]) for name in ("install", "rollback")} | {"content": None}
        for file in files
    ]


class TestSavedPlans:
    async def test_saved_plan_equals_its_preview(self, planner: httpx.AsyncClient) -> None:
        made, _ = await create(planner)
        preview = (await planner.post(PREVIEW, json={"scenario": scenario()})).json()
        answer = await planner.post(f"{SCENARIOS}/{made['id']}/plans")
        assert answer.status_code == 201
        saved = answer.json()
        assert saved["plan"] == preview["plan"]
        # The same files, each with the line that says of which kept plan it is.
        assert without_texts(saved["artifacts"]) == without_texts(preview["artifacts"])
        kept = (await planner.get(f"/api/v1/plans/{saved['id']}/document.json")).json()
        assert kept["artifacts"] == preview["artifacts"]
        again = (await planner.get(answer.headers["location"])).json()
        assert again == saved
        listed = (await planner.get(f"{SCENARIOS}/{made['id']}/plans")).json()["items"]
        assert [item["id"] for item in listed] == [saved["id"]]
        assert (await planner.get(f"{SCENARIOS}/{made['id']}")).json()["latest_plan_id"] == saved["id"]

    async def test_files_are_downloaded_as_they_are_applied(self, planner: httpx.AsyncClient) -> None:
        made, _ = await create(planner)
        saved = (await planner.post(f"{SCENARIOS}/{made['id']}/plans")).json()
        url = f"/api/v1/plans/{saved['id']}/artifacts"
        items = (await planner.get(url)).json()["items"]
        assert items == saved["artifacts"]
        for item in items:
            answer = await planner.get(f"{url}/{item['kind']}")
            assert answer.text == item["content"]
            assert answer.headers["content-type"].startswith(item["media_type"])
            assert answer.headers["content-disposition"] == f'attachment; filename="{item["filename"]}"'
            named = await planner.get(f"{url}/{item['kind']}", params={"filename": item["filename"]})
            assert named.text == item["content"]
            other = await planner.get(f"{url}/{item['kind']}", params={"filename": f"x{item['filename']}"})
            assert item["filename"] in assert_problem(other, 404, "not-found")["detail"]
        assert_problem(await planner.get(f"{url}/poem"), 404, "not-found")

    async def test_plan_of_another_version_keeps_its_files(self, service: Service, planner: httpx.AsyncClient) -> None:
        made, _ = await create(planner)
        saved = (await planner.post(f"{SCENARIOS}/{made['id']}/plans")).json()
        async with service.database.write() as session:
            await session.execute(update(PlanRow).values(plan={"of": "another version"}))
        url = f"/api/v1/plans/{saved['id']}"
        problem = assert_problem(await planner.get(url), 409, "conflict")
        assert f"{url}/artifacts" in problem["detail"]
        assert (await planner.get(f"{url}/artifacts")).json()["items"] == saved["artifacts"]
        assert len((await planner.get(f"{SCENARIOS}/{made['id']}/plans")).json()["items"]) == 1
