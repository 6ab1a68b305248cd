"""docker-compose.yml for real: a fresh clone, images built, everything up, killed, down and up again with its data.

With podman the base images are stand-ins (container_rig.py); the output says so.
"""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_rig import HOUSE, Engine, RigError, find_engine

# A run of its own each time: what an interrupted run left must not be taken for this one's.
PROJECT = f"hugeplantest{os.getpid()}"


def until(is_true: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:g} seconds"
        time.sleep(0.5)


class Service:
    """The running project: its engine, its folder and its published port."""

    def __init__(self, engine: Engine, services: dict[str, Any], port: int) -> None:
        self.engine = engine
        self.services = services
        self.base = f"http://127.0.0.1:{port}"
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
        names = [name for name in listed if re.search(rf"{PROJECT}[-_]{service}[-_]1$", name)]
        assert len(names) == 1, (service, listed)
        return names[0]

    def process(self, service: str) -> int:
        return int(self.engine.run("inspect", "--format", "{{.State.Pid}}", self.container(service)).stdout)


# What package clients say when a build step finds no registry.
UNREACHABLE = re.compile(r"Temporary failure|Could not resolve|Network is unreachable|ENOTFOUND|ETIMEDOUT|timed out")


def build(project: Engine) -> None:
    """Build the images. Without a network in the build steps there is nothing to judge: the tests are skipped."""
    try:
        project.compose_run("build", seconds=1500)
    except AssertionError as error:
        if found := UNREACHABLE.search(str(error)):
            pytest.skip(f"a build step reaches no package registry: {found[0]}")
        raise


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    try:
        engine = find_engine()
    except (RigError, subprocess.SubprocessError) as error:
        pytest.skip(str(error))
    if engine.stand_ins:
        print("base images are stand-ins made from Debian packages and programs of this machine")
    clone = tmp_path_factory.mktemp("clone")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=HOUSE, capture_output=True, check=True,
    ).stdout  # fmt: skip
    subprocess.run(
        ["tar", "--create", "--null", "--files-from=-", "--file", str(clone / "tree.tar")],
        cwd=HOUSE, input=tracked, check=True,
    )  # fmt: skip
    subprocess.run(["tar", "--extract", "--file", str(clone / "tree.tar"), "--directory", str(clone)], check=True)
    (clone / "tree.tar").unlink()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    project = replace(
        engine,
        compose=(
            *engine.compose,
            "--project-name",
            PROJECT,
            "--file",
            str(clone / "docker-compose.yml"),
        ),
        environment={**engine.environment, "HUGEPLAN_PORT": str(port)},
    )
    try:
        build(project)
        services = yaml.safe_load((clone / "docker-compose.yml").read_text())["services"]
        project.up(services, PROJECT)
        yield Service(project, services, port)
    finally:
        project.compose_run("down", "--volumes", check=False)
        project.remove(PROJECT)


def test_a_fresh_clone_comes_up_and_a_login_link_opens_it(service: Service) -> None:
    until(service.answers, 120, "the service")
    service.login()
    assert isinstance(service.nodes(), list)
    until(lambda: len(service.nodes(synthetic=True)) == 50, 120, "the first page of the demo fleet")


def test_the_agents_node_and_its_measurement_arrive(service: Service) -> None:
    until(lambda: len(service.nodes()) == 1, 120, "the node")
    until(lambda: service.nodes()[0]["latest_run_id"] is not None, 400, "its run")


def test_containers_are_unprivileged_and_read_only(service: Service) -> None:
    for name in ("backend", "agent"):
        status = Path(f"/proc/{service.process(name)}/status").read_text()
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE), name
        assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE), name
        read_only = service.engine.run("inspect", "--format", "{{.HostConfig.ReadonlyRootfs}}", service.container(name))
        assert read_only.stdout.strip().lower() == "true", name


@pytest.mark.parametrize("name", ["agent", "backend", "postgres"])
def test_a_killed_container_comes_back_and_loses_nothing(service: Service, name: str) -> None:
    before = service.process(name)
    os.kill(before, signal.SIGKILL)
    until(lambda: service.process(name) not in {0, before}, 60, f"a new {name}")
    until(service.answers, 120, "the service")
    assert len(service.nodes()) == 1


def test_down_and_up_keeps_the_data_and_the_passwords(service: Service) -> None:
    run_id = service.nodes()[0]["latest_run_id"]
    service.engine.compose_run("down")
    assert not service.answers()
    service.engine.up(service.services, PROJECT)
    until(service.answers, 120, "the service")
    found = service.nodes()  # the session of before: its cookie still holds
    assert len(found) == 1
    assert run_id is not None
    assert found[0]["latest_run_id"] is not None
