"""The compose file's project, running: as a browser and as its engine see it, and its guide typed line by line."""

from __future__ import annotations

import http.cookiejar
import json
import re
import shlex
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from container_rig import Project
from hugeplan_agent.pool_reservation import reservation
from journey import Journey
from session import Session


def until(is_true: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:g} seconds"
        time.sleep(0.5)


class Service:
    """The running project as a browser and as its engine see it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.engine = project.engine
        self.services = project.services
        self.base = f"http://127.0.0.1:{project.port}"
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.browser = urllib.request.build_opener(cookies)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.base}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def login(self) -> None:
        printed = self.engine.compose_run("run", "--rm", "--no-deps", "welcome").stdout
        found = re.search(r"/login#token=(\S+)", printed)
        assert found is not None, printed
        body = json.dumps({"token": found[1]}).encode()
        request = urllib.request.Request(
            f"{self.base}/api/v1/session", body, {"Content-Type": "application/json", "Origin": self.base}
        )
        with self.browser.open(request, timeout=20) as answer:
            assert answer.status in {200, 201, 204}

    def nodes(self, *, synthetic: bool = False) -> list[dict[str, Any]]:
        with self.browser.open(f"{self.base}/api/v1/nodes?synthetic={str(synthetic).lower()}", timeout=20) as answer:
            return list(json.load(answer)["items"])

    def container(self, service: str) -> str:
        listed = self.engine.run("ps", "--all", "--format", "{{.Names}}").stdout.split()
        names = [name for name in listed if re.search(rf"{self.project.name}[-_]{service}[-_]1$", name)]
        assert len(names) == 1, (service, listed)
        return names[0]

    def process(self, service: str) -> int:
        return int(self.engine.run("inspect", "--format", "{{.State.Pid}}", self.container(service)).stdout)


class Guide:
    """docs/install-compose.md, and what must hold after each of its sections."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.known: dict[str, Any] = {}

    def reports_go_on(self) -> None:
        """One node, the one of before, and a report that is newer."""
        until(self.service.answers, 120, "the service")
        self.service.login()
        until(lambda: len(self.service.nodes()) == 1, 120, "the node")
        before = self.service.nodes()[0]
        assert self.known.setdefault("id", before["id"]) == before["id"]

        def is_newer() -> bool:
            (now,) = self.service.nodes()
            return bool(now["last_report_at"] > before["last_report_at"])

        until(is_newer, 400, "a new report")

    def started(self) -> None:
        """Reports go on, and PostgreSQL has no right that it does not need: neither its process nor our role in it."""
        self.reports_go_on()
        status = Path(f"/proc/{self.service.process('postgres')}/status").read_text()
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE), status
        assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE), status
        asked = "SELECT rolname, rolsuper, rolpassword IS NOT NULL FROM pg_authid WHERE rolname !~ '^pg_' ORDER BY 1"
        psql = ("psql", "--username", "postgres", "--no-align", "--tuples-only", "--command", asked)
        roles = self.service.engine.run("exec", self.service.container("postgres"), *psql).stdout
        # The superuser is reached from within the container alone: it has no password.
        assert roles.split() == ["hugeplan|f|t", "hugeplan_reader|f|f", "hugeplan_service|f|t", "postgres|t|f"]

    def nothing_is_left(self) -> None:
        """No container and no volume of the project."""
        for words in (("ps", "--all"), ("volume", "ls")):
            listed = self.service.engine.run(*words, "--format", "{{json .}}").stdout
            assert self.service.project.name not in listed, listed


def empty_volumes(shell: Session, compose: Sequence[str]) -> None:
    """As on another machine: the dump is all that is left."""
    for words in ("down --volumes", "up --detach"):
        done = shell.type(f"{shlex.join(compose)} {words}")
        assert done.status == 0, done.output[-4000:]


def walk_the_guide(service: Service, folder: Path) -> None:
    """docs/install-compose.md as printed but for the engine's name, from nothing to nothing, with one machine."""
    engine, guide = service.engine, Guide(service)
    # What a reader may write into .env, so that nobody waits for minutes.
    quick = {"HUGEPLAN_AGENT_INTERVAL": "5s", "HUGEPLAN_REENROLMENT_SILENCE_SECONDS": "8"}
    with (
        # The agent measures, and would take pages that another suite's test has reserved.
        reservation(wait_seconds=900),
        Session((), folder, str(folder), environment={**engine.environment, **quick}) as shell,
    ):
        shell.type(f"cd {shlex.quote(str(service.project.clone))}")
        Journey(
            "docs/install-compose.md", shell, mine={"docker compose": shlex.join(engine.compose)},
            before={"The dump, put back": lambda: empty_volumes(shell, engine.compose)},
            after={
                "Start": guide.started,
                "A synthetic fleet": guide.reports_go_on,
                "The dump, put back": guide.reports_go_on,
                "A new release": guide.reports_go_on,
                "Removing it": guide.nothing_is_left,
            },
        ).walk()  # fmt: skip
