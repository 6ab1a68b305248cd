"""docs/install-compose.md as printed: every command in order, in the shell of a reader, on a fresh clone.

With podman the word docker is a program that calls podman-compose, as the guide says; the base images are stand-ins.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clone_images import built_images
from container_rig import REPOSITORY, Project
from guide import commands
from hugeplan_agent.pool_reservation import reservation

GUIDE = REPOSITORY / "docs/install-compose.md"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A clone with built images. Its folder is the working folder of the guide."""
    with built_images(tmp_path_factory.mktemp("guide")) as built:
        if isinstance(built, str):
            pytest.skip(built)
        yield built


class Reader:
    """Types commands into a shell."""

    def __init__(self, project: Project, programs: Path) -> None:
        self.project = project
        self.folder = Path(project.engine.compose[-1]).parent
        words = [word for word in project.engine.compose if word != "compose"]
        docker = programs / "docker"
        # The project's name and file come before the words that the reader types after `docker compose`.
        verb = "compose" if project.engine.name == "docker" else ""
        docker.write_text(f'#!/bin/sh\nshift\nexec {words[0]} {verb} {" ".join(words[1:])} "$@"\n')
        docker.chmod(0o755)
        self.path = f"{programs}:{project.engine.environment['PATH']}"

    def types(self, command: str) -> str:
        """What a command prints; it must end with status 0."""
        environment = {**self.project.engine.environment, "PATH": self.path}
        done = subprocess.run(
            ["bash", "-euc", command], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\nended with status {done.returncode}:\n{done.stdout[-3000:]}"
        return done.stdout

    def tokens(self) -> str:
        """The names of tokens in the database."""
        return self.types("docker compose run --rm -T migrate wait --migrated token list")


def test_every_command_works_as_printed_and_a_backup_comes_back(project: Project, tmp_path: Path) -> None:
    reader = Reader(project, tmp_path)
    printed = list(commands(GUIDE))
    assert len(printed) >= 12
    seen: list[str] = []
    started = time.monotonic()
    with reservation():
        for command in printed:
            if command.endswith("> hugeplan.dump"):
                reader.types("docker compose exec -T backend hugeplan token create --role viewer --name kept")
            if command.endswith("< hugeplan.dump"):
                assert "kept" not in reader.tokens(), "the volumes were to be empty"
            said = reader.types(command)
            print(f"{time.monotonic() - started:6.1f} s  {command}")
            if "welcome" in command:
                assert re.search(r"/login#token=\S+", said), (command, said)
            if command.endswith("doctor"):
                assert "PostgreSQL 18 answers" in said
                assert "wrong" not in said.lower().split("checked")[0], said
            if "--profile demo up" in command:
                assert "demo" in said or project.engine.run("ps", "--all").stdout.count("demo-fleet")
            seen.append(command)
        assert "kept" in reader.tokens(), "the backup was not what was there"
        reader.types("docker compose down --volumes")
    assert seen == printed
