"""The document of a kept plan on the command line: its digest is shown, and a document that was changed is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from hugeplan.cli import InputError
from hugeplan.cli.artifacts import rendered
from hugeplan.cli.plan_document import read_plan

SCENARIO = {
    "node": {"numa_nodes": [{"id": 0, "memory": "64GiB"}]},
    "databases": [{"name": "main", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "8GB"}}],
}


async def kept(planner: httpx.AsyncClient) -> tuple[dict[str, Any], dict[str, Any]]:
    """A kept plan as it is answered, and its document."""
    answer = await planner.post("/api/v1/plans", json={"scenario": SCENARIO})
    assert answer.status_code == 201, answer.text
    plan = answer.json()
    return plan, (await planner.get(f"/api/v1/plans/{plan['id']}/document.json")).json()


async def test_the_command_line_names_the_digest_and_has_the_same_files(
    planner: httpx.AsyncClient, tmp_path: Path
) -> None:
    plan, document = await kept(planner)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    read = read_plan(str(path))
    assert read.name == f"plan {plan['short_digest']} of {plan['node_name']}"
    assert plan["short_digest"] in read.headline
    files = {artifact.kind: artifact.content for artifact in rendered(read, None, force=False)}
    assert files == {artifact["kind"]: artifact["content"] for artifact in plan["artifacts"]}
    document["request"]["policy"]["reserve_at"] = "noon"
    path.write_text(json.dumps({part: document[part] for part in ("schema_version", "plan", "request")}))
    with pytest.raises(InputError, match="reserve_at: Input should be 'boot' or 'runtime'"):
        read_plan(str(path))


@pytest.mark.parametrize("part", ["plan", "artifacts", "sampled_at", "headline"])
async def test_a_document_that_was_changed_is_refused(planner: httpx.AsyncClient, tmp_path: Path, part: str) -> None:
    _, document = await kept(planner)
    changed = copy.deepcopy(document)
    if part == "plan":
        changed["plan"]["pools"][0]["pages"] += 1
    elif part == "artifacts":
        changed["artifacts"][0]["content"] += "\n# more"
    elif part == "headline":
        changed["plan"]["headline"] = "\ud800"
    else:
        changed["sampled_at"] = "2026-01-01T00:00:00+00:00"
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(InputError, match="not what was kept"):
        read_plan(str(path))
