"""What the compose file starts, started by hand with its own commands and variables: PostgreSQL, migrate, serve, agent.

The containers are left out; the order, the commands, the variables and the enrolment are the file's.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from test_compose import load

from hugeplan.cli.secrets import ENROLMENT_TOKEN_FILE
from hugeplan.embedded import TEST_SETTINGS, running
from hugeplan.embedded.postgres import SUPERUSER
from hugeplan_agent.pool_reservation import reservation

BIN = Path(sys.executable).parent


def until(is_true: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:g} seconds"
        time.sleep(0.1)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    with running(tmp_path / "postgresql", TEST_SETTINGS) as server:
        server.ensure_database("hugeplan")
        with psycopg.connect(server.url("hugeplan")) as connection:
            # The roles service does this by a shell script of PostgreSQL's image.
            connection.execute("CREATE ROLE hugeplan_service LOGIN")
        yield server.url("hugeplan")


@pytest.fixture
def pools() -> Iterator[None]:
    """The machine's pools: a benchmark takes free pages, and another suite's test may have reserved some."""
    with reservation():
        yield


def environment_of(service: dict[str, Any], **different: str) -> dict[str, str]:
    """A service's variables, but for the addresses that only exist between containers."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HUGEPLAN_")}
    return {**clean, **service["environment"], **different}


@pytest.mark.usefixtures("pools")
def test_an_unattended_agent_enrols_and_its_node_appears(tmp_path: Path, database: str, port: int) -> None:
    services = load()["services"]
    database_dir, enrolment_dir = tmp_path / "database-secret", tmp_path / "enrolment-secret"
    database_dir.mkdir()
    enrolment_dir.mkdir()
    server_environment = environment_of(
        services["backend"],
        HUGEPLAN_DATABASE_URL=database,
        HUGEPLAN_PORT=str(port),
        HUGEPLAN_HOST="127.0.0.1",
        HUGEPLAN_SECRETS_DIR=str(enrolment_dir),
    )
    hugeplan, agent = str(BIN / "hugeplan"), str(BIN / "hugeplan-agent")
    folders = ["--database-dir", str(database_dir), "--enrolment-dir", str(enrolment_dir)]
    subprocess.run([hugeplan, services["secrets"]["command"][0], *folders], env=server_environment, check=True)
    subprocess.run([hugeplan, *services["migrate"]["command"]], env=server_environment, check=True)
    # From here on as in compose: a role that owns no table.
    server_environment["HUGEPLAN_DATABASE_URL"] = database.replace(f"//{SUPERUSER}@", "//hugeplan_service@")

    base = f"http://127.0.0.1:{port}"
    said = tmp_path / "said"
    started: list[subprocess.Popen[bytes]] = []
    try:
        with said.open("wb") as output:
            started.append(
                subprocess.Popen([hugeplan, *services["backend"]["command"]], env=server_environment, stdout=output)
            )
        until(lambda: answers(f"{base}/readyz"), 60, "the service")
        agent_environment = environment_of(
            services["agent"],
            HUGEPLAN_AGENT_SERVER=base,
            HUGEPLAN_AGENT_ROOT="/",
            HUGEPLAN_AGENT_ENROLMENT_TOKEN_FILE=str(enrolment_dir / ENROLMENT_TOKEN_FILE),
            HUGEPLAN_AGENT_TOKEN_FILE=str(tmp_path / "agent/token"),
            HUGEPLAN_AGENT_SPOOL_DIR=str(tmp_path / "agent"),
            HUGEPLAN_AGENT_MEASURE_LIMIT="3s",
        )
        started.append(subprocess.Popen([agent, *services["agent"]["command"]], env=agent_environment))
        create = [hugeplan, "token", "create", "--role", "admin", "--name", "me"]
        made = subprocess.run(create, env=server_environment, check=True, capture_output=True, text=True)
        request = urllib.request.Request(
            f"{base}/api/v1/nodes", headers={"Authorization": f"Bearer {made.stdout.strip()}"}
        )
        assert "hp_" not in said.read_text(), "a credential in a log"

        def nodes() -> list[dict[str, Any]]:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return list(json.load(answer)["items"])

        until(lambda: len(nodes()) == 1, 30, "the node")
        until(lambda: nodes()[0]["latest_run_id"] is not None, 240, "its run")
        assert nodes()[0]["name"] == socket.gethostname()
    finally:
        for process in reversed(started):
            process.terminate()
            assert process.wait(30) in (0, -signal.SIGTERM)
    assert (tmp_path / "agent/token").stat().st_mode & 0o077 == 0
