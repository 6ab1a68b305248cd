"""The images of a fresh clone, built by the engine of this machine."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from container_rig import HOUSE, Project, RigError, find_engine

# What package clients say when a build step finds no registry.
UNREACHABLE = re.compile(r"Temporary failure|Could not resolve|Network is unreachable|ENOTFOUND|ETIMEDOUT|timed out")


def clone_into(folder: Path) -> None:
    """The files that git knows, as a fresh clone has them."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=HOUSE, capture_output=True, check=True,
    ).stdout  # fmt: skip
    tree = folder / "tree.tar"
    subprocess.run(
        ["tar", "--create", "--null", "--files-from=-", "--file", str(tree)], cwd=HOUSE, input=tracked, check=True
    )
    subprocess.run(["tar", "--extract", "--file", str(tree), "--directory", str(folder)], check=True)
    tree.unlink()


@contextlib.contextmanager
def built_images(clone: Path) -> Iterator[Project | str]:
    """The project of a clone made in this empty folder, with its images; or the reason why they cannot be built here.

    At the end its containers and volumes are removed.
    """
    try:
        engine = find_engine()
    except (RigError, subprocess.SubprocessError) as error:
        yield str(error)
        return
    if engine.stand_ins:
        print("base images are stand-ins made from Debian packages and programs of this machine")
    clone_into(clone)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    # A name of its own each time: what an interrupted run left must not be taken for this one's.
    name = f"hugeplantest{os.getpid()}"
    file = clone / "docker-compose.yml"
    here = replace(
        engine,
        compose=(*engine.compose, "--project-name", name, "--file", str(file)),
        environment={**engine.environment, "HUGEPLAN_PORT": str(port)},
    )
    try:
        try:
            here.compose_run("build", seconds=1500)
        except AssertionError as error:
            # Without a network in the build steps there is nothing to judge.
            if found := UNREACHABLE.search(str(error)):
                yield f"a build step reaches no package registry: {found[0]}"
                return
            raise
        yield Project(here, name, yaml.safe_load(file.read_text())["services"], port)
    finally:
        here.compose_run("down", "--volumes", check=False)
        here.remove(name)
