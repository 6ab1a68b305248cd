"""From the previous release: its dump, today's migrations, and everything in it read over today's API.

``data/release_before.sql`` was written by pg_dump from a database that the code at commit 553dd5f had made and filled
over its own API: four synthetic nodes with three reports each, one of them with a run; a scenario and its plan.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from support.server import serving

from hugeplan import embedded
from hugeplan.cli import main

DUMP = Path(__file__).parent / "data" / "release_before.sql"
NODES = [f"old-{number}" for number in range(4)]


@pytest.fixture(scope="module")
def upgraded(postgres: embedded.EmbeddedPostgres) -> str:
    """The URL of the previous release's database after `hugeplan migrate`."""
    postgres.ensure_database("upgraded")
    url = postgres.url("upgraded")
    psql = [str(embedded.programs_dir() / "psql"), "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1"]
    with DUMP.open("rb") as dump:
        subprocess.run([*psql, url], stdin=dump, stdout=subprocess.DEVNULL, check=True)
    hugeplan(url, "migrate")
    return url


def hugeplan(url: str, *words: str) -> str:
    """A command over the database, in this process; its output."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.setenv("HUGEPLAN_DATABASE_URL", url)
        assert main(words) == 0
    return said.getvalue()


def test_every_node_run_scenario_and_plan_of_the_previous_release_is_read(upgraded: str, tmp_path: Path) -> None:
    token = hugeplan(upgraded, "token", "create", "--role", "admin", "--name", "after the upgrade").split()[-1]
    with psycopg.connect(upgraded) as connection:
        assert connection.execute("SELECT count(*) FROM reports").fetchone() == (12,)
    with (
        serving(upgraded, tmp_path) as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False) as client,
    ):

        def get(path: str) -> Any:
            answer = client.get(f"/api/v1{path}")
            assert answer.status_code == 200, (path, answer.text)
            return answer.json()

        nodes = get("/nodes")["items"]
        assert sorted(node["name"] for node in nodes) == NODES
        for node in nodes:
            one = get(f"/nodes/{node['id']}")
            assert one["synthetic"] is True
            (run,) = get(f"/nodes/{node['id']}/runs")["items"]
            assert get(f"/runs/{run['id']}")["curves"]
        (scenario,) = get("/scenarios")["items"]
        assert scenario["name"] == "orders database"
        plan = get(f"/plans/{scenario['latest_plan_id']}")
        assert plan["headline"] == "Reserve 33,894 pages of 2M (66.2 GiB) on db-1."
        # The same scenario is planned by today's code, and a node of the old fleet goes on reporting.
        again = client.post(f"/api/v1/scenarios/{scenario['id']}/plans")
        assert again.status_code == 201, again.text
        assert get("/fleet/summary")


def test_the_upgrade_may_be_repeated_and_backed_up(upgraded: str, tmp_path: Path) -> None:
    hugeplan(upgraded, "migrate")
    assert "bytes" in hugeplan(upgraded, "backup", str(tmp_path / "after.dump"))
