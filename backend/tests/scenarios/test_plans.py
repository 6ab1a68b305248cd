"""Saved plans: their inputs, their difference, and those of other versions; versions and YAML of scenarios."""

from __future__ import annotations

import copy
import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import text
from support.reports import report, run
from support.service import Service, assert_problem, fields_of

from hugeplan import __version__
from hugeplan.cli import InputError
from hugeplan.cli.plan_document import read_plan as read_plan_file
from hugeplan.documents.plans import SCHEMA_VERSION, dump_plan, read_plan
from hugeplan.planner.model import Plan
from hugeplan.scenarios import plan_difference, repository


def scenario(buffers: str = "8GB", **rest: Any) -> dict[str, Any]:
    database = {"name": "main", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": buffers}}
    return {"node": {"numa_nodes": [{"id": 0, "memory": "64GiB"}]}, "databases": [database], **rest}


async def saved_plan(planner: httpx.AsyncClient, document: dict[str, Any], name: str = "a") -> dict[str, Any]:
    made = await planner.post("/api/v1/scenarios", json={"name": name, "scenario": document})
    assert made.status_code == 201, made.text
    plan = await planner.post(f"/api/v1/scenarios/{made.json()['id']}/plans")
    assert plan.status_code == 201, plan.text
    found: dict[str, Any] = plan.json()
    return found


async def test_a_plan_is_kept_with_all_its_inputs(planner: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    node_id = (await agent.post("/api/v1/reports", json=report(run=run()))).json()["node_id"]
    document = {"databases": scenario()["databases"]}
    made = (
        await planner.post("/api/v1/scenarios", json={"name": "n", "node_id": node_id, "scenario": document})
    ).json()
    plan = (await planner.post(f"/api/v1/scenarios/{made['id']}/plans")).json()
    assert (plan["schema_version"], plan["model_version"], plan["author"]) == (
        SCHEMA_VERSION,
        __version__,
        "test planner",
    )
    inputs = (await planner.get(f"/api/v1/plans/{plan['id']}/inputs")).json()
    assert inputs["scenario"] == document
    assert inputs["request"]["node"]["name"] == plan["plan"]["node"]
    assert inputs["request"]["node"]["hardware"]["curves"]
    # The scenario and the node change; the plan and its inputs do not.
    await planner.put(
        f"/api/v1/scenarios/{made['id']}",
        json={"name": "n", "node_id": node_id, "scenario": {"databases": scenario("16GB")["databases"]}},
        headers={"If-Match": '"1"'},
    )
    await agent.post("/api/v1/reports", json=report(node_name="renamed"))
    assert (await planner.get(f"/api/v1/plans/{plan['id']}/inputs")).json() == inputs
    why = "The node of this plan was called db-7, and its name is renamed now. Plan it again."
    withheld = {"artifacts": [], "artifacts_withheld": why}
    assert (await planner.get(f"/api/v1/plans/{plan['id']}")).json() == plan | withheld
    await agent.post("/api/v1/reports", json=report())
    assert (await planner.get(f"/api/v1/plans/{plan['id']}")).json() == plan


async def test_two_plans_side_by_side(planner: httpx.AsyncClient) -> None:
    small, large = await saved_plan(planner, scenario()), await saved_plan(planner, scenario("16GB"), "b")
    answer = await planner.get(f"/api/v1/plans/{large['id']}/diff", params={"against": small["id"]})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    (pool,) = found["pools"]
    assert pool["pages"] > pool["pages_against"] > 0
    assert [each["path"] for each in found["inputs"]] == ["databases[0].settings.shared_buffers"]
    assert (found["inputs"][0]["value"], found["inputs"][0]["value_against"]) == ("16GB", "8GB")
    same = (await planner.get(f"/api/v1/plans/{large['id']}/diff", params={"against": large["id"]})).json()
    assert (same["pools"], same["findings"], same["inputs"]) == ([], [], [])


async def test_a_plan_of_another_version_is_shown(planner: httpx.AsyncClient, service: Service) -> None:
    plan = await saved_plan(planner, scenario())
    address = f"/api/v1/plans/{plan['id']}"
    older = (
        "plan = CAST((CAST(plan AS jsonb) - 'kubernetes') || '{\"gone\": 1}' AS json), scenario = NULL, request = NULL"
    )
    async with service.database.write() as session:
        await session.execute(text(f"UPDATE plans SET {older}"))
    shown = await planner.get(address)
    assert shown.status_code == 200, shown.text
    assert shown.json()["plan"] == plan["plan"] | {"kubernetes": None}
    assert (await planner.get(f"{address}/inputs")).json()["request"] is None
    assert (await planner.get(f"{address}/diff", params={"against": plan["id"]})).json()["inputs"] is None
    async with service.database.write() as session:
        of_before = "replace(CAST(artifacts AS text), 'hugeplan-file: installs', 'hugeplan-file: installed')"
        await session.execute(text(f"UPDATE plans SET artifacts = CAST({of_before} AS json)"))
    problem = assert_problem(await planner.get(f"{address}/artifacts?force=true"), 409, "conflict")
    shown = await planner.get(address)
    assert (shown.json()["artifacts"], shown.json()["artifacts_withheld"]) == ([], problem["detail"])
    async with service.database.write() as session:
        await session.execute(text("UPDATE plans SET schema_version = 99"))
    assert_problem(await planner.get(address), 409, "conflict")


async def test_reading_a_plan_does_not_change_what_is_kept(planner: httpx.AsyncClient) -> None:
    kept = (await saved_plan(planner, scenario()))["plan"]
    older = {name: value for name, value in kept.items() if name != "kubernetes"} | {"gone": 1}
    before = dict(older)
    assert isinstance(read_plan(older, SCHEMA_VERSION), Plan)
    assert older == before
    assert dump_plan(read_plan(kept, SCHEMA_VERSION)) == kept
    with pytest.raises(ValueError, match="headline"):
        read_plan({name: value for name, value in kept.items() if name != "headline"}, SCHEMA_VERSION)


async def test_a_plan_of_version_1_keeps_its_score(planner: httpx.AsyncClient) -> None:
    """Version 1 named the parts of the score points."""
    kept = (await saved_plan(planner, scenario()))["plan"]
    older = copy.deepcopy(kept)
    instance = older["instances"][0]
    instance["why_besides_points"] = instance.pop("why_besides_score")
    for choice in (instance["chosen"], instance["runner_up"]):
        for part in ("gain", "memory", "operation"):
            choice[f"{part}_points"] = choice.pop(f"{part}_score")
    found = read_plan(older, 1)
    assert dump_plan(found) == kept
    assert found.instances[0].chosen is not None
    assert found.instances[0].chosen.gain_score is not None
    assert "gain_points" in instance["chosen"], "what is kept stays as it is"
    with pytest.raises(ValueError, match="form 3"):
        read_plan(kept, SCHEMA_VERSION + 1)


@pytest.mark.parametrize("instances", [None, 1, "a", [1], ["a"], [[]], [{"chosen": "a"}], {"a": 1}])
def test_what_is_no_plan_is_refused_in_one_line(instances: Any, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"plan": {"instances": instances}}))
    with pytest.raises(InputError, match="not a plan of this version") as raised:
        read_plan_file(str(file))
    assert "\n" not in str(raised.value)


class TestScenarioVersions:
    async def test_each_edit_is_kept(self, planner: httpx.AsyncClient) -> None:
        made = (await planner.post("/api/v1/scenarios", json={"name": "a", "scenario": scenario()})).json()
        address = f"/api/v1/scenarios/{made['id']}"
        body = {"name": "b", "scenario": scenario("16GB")}
        assert (await planner.put(address, json=body, headers={"If-Match": '"1"'})).status_code == 200
        first = (await planner.get(f"{address}/versions", params={"limit": 1})).json()
        assert [(v["version"], v["name"], v["saved_by"]) for v in first["items"]] == [(2, "b", "test planner")]
        rest = (await planner.get(f"{address}/versions", params={"cursor": first["next_cursor"]})).json()
        assert [(v["version"], v["scenario"]) for v in rest["items"]] == [(1, scenario())]
        assert rest["next_cursor"] is None

    async def test_a_page_unpacks_no_other_documents(self, service: Service, planner: httpx.AsyncClient) -> None:
        """Where PostgreSQL sorts, as it does of a table that it has not analysed, it unpacked those of all versions."""
        made = (await planner.post("/api/v1/scenarios", json={"name": "a", "scenario": scenario()})).json()
        wide = "SELECT json_agg(md5(CAST(n + i AS text))) FROM generate_series(1, 500) n"
        copies = f"SELECT scenario_id, 1 + i, name, ({wide}), saved_at FROM scenario_versions, generate_series(1, 40) i"
        columns = "scenario_id, version, name, document, saved_at"
        unpacked = "SELECT pg_stat_get_xact_blocks_fetched(reltoastrelid) FROM pg_class WHERE relname = :table"
        counts = []
        async with service.database.write() as session:
            await session.execute(text(f"INSERT INTO scenario_versions ({columns}) {copies}"))
        async with service.database.read() as session:
            await session.execute(text("SET LOCAL enable_indexscan = off"))
            for limit in (1, 40):
                await repository.list_versions(session, uuid.UUID(made["id"]), before=None, limit=limit)
                counts.append(await session.scalar(text(unpacked), {"table": "scenario_versions"}))
        assert 0 < 20 * counts[0] < counts[1]


class TestYaml:
    async def test_out_and_in_again(self, planner: httpx.AsyncClient) -> None:
        made = (await planner.post("/api/v1/scenarios", json={"name": "a", "scenario": scenario()})).json()
        exported = await planner.get(f"/api/v1/scenarios/{made['id']}/document.yaml")
        assert exported.headers["content-type"].startswith("application/yaml")
        assert yaml.safe_load(exported.text) == scenario()
        again = await planner.post("/api/v1/scenarios/import", json={"name": "b", "yaml": exported.text})
        assert again.status_code == 201, again.text
        assert again.json()["scenario"] == scenario()

    @pytest.mark.parametrize(
        ("document", "field"),
        [
            ("databases: [", "yaml"),
            ("node:\n  numa_nodes: []\n  memroy: 1GiB\n", "yaml, line"),
            ("- a\n", "yaml, line 1"),
            ('databases:\n- {name: "a\\0b", engine: postgresql}\n', "yaml, line 2"),
            ('databases:\n- {name: "a\\ud800", engine: postgresql}\n', "yaml, line 2"),
        ],
    )
    async def test_a_wrong_line_is_named(self, planner: httpx.AsyncClient, document: str, field: str) -> None:
        answer = await planner.post("/api/v1/scenarios/import", json={"name": "b", "yaml": document})
        assert fields_of(assert_problem(answer, 422, "invalid-input"))[0].startswith(field), answer.text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": {"b": 2}}, [("a", None, 1), ("a.b", 2, None)]),
        ({"a": [1, 2]}, {"a": {"b": None}}, [("a[0]", None, 1), ("a[1]", None, 2)]),
        ({"a": [{"b": 1}, 5]}, {"a": [{"b": 1}]}, [("a[1]", None, 5)]),
        ({"a": None, "c": {}}, {"a": {}, "c": [0]}, [("c[0]", 0, None)]),
        ({}, {"x": [[n] for n in range(600)]}, [(f"x[{n}][0]", n, None) for n in range(500)]),
    ],
)
def test_inputs_differ_where_a_leaf_does(old: Any, new: Any, expected: list[tuple[str, Any, Any]]) -> None:
    found = plan_difference.input_changes(old, new)
    assert found is not None
    assert [(one.path, one.value, one.value_against) for one in found] == expected
