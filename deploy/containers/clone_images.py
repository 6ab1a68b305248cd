"""The images of a fresh clone, built by the engine of this machine.

As a program it builds them once and leaves their layers in the engine's storage: tests that build the same tree
afterwards are quick. It makes no network interface with podman, so that a browser beside it loses no request.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from container_rig import CACHE, POSTGRES, REPOSITORY, Engine, Project, RigError, find_engine

# The images of the newest build, and the tree that they were built from.
BUILT = CACHE / "built.json"
IMAGES = ("hugeplan-server", "hugeplan-agent")
# What deploy/Dockerfile copies.
SOURCES = (
    "Makefile", "LICENSE", ".dockerignore", "deploy/Dockerfile", "deploy/make", "deploy/python", "deploy/volumes",
    "agent", "backend", "frontend", "migrations",
)  # fmt: skip

# What package clients say when a build step finds no registry.
UNREACHABLE = re.compile(r"Temporary failure|Could not resolve|Network is unreachable|ENOTFOUND|ETIMEDOUT|timed out")


def clone_into(folder: Path) -> None:
    """The files that git knows, as a fresh clone has them."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, check=True,
    ).stdout  # fmt: skip
    tree = folder / "tree.tar"
    subprocess.run(
        ["tar", "--create", "--null", "--files-from=-", "--file", str(tree)], cwd=REPOSITORY, input=tracked, check=True
    )
    subprocess.run(["tar", "--extract", "--file", str(tree), "--directory", str(folder)], check=True)
    tree.unlink()


@contextlib.contextmanager
def built_images(clone: Path, *, bridged: bool = True, engine: Engine | None = None) -> Iterator[Project | str]:
    """The project of a clone made in this empty folder, with its images; or the reason why they cannot be built here.

    At the end its containers and volumes are removed. Not bridged: only to build, and without a network interface.
    """
    try:
        engine = engine or find_engine(bridged=bridged)
    except (RigError, subprocess.TimeoutExpired) as error:
        yield str(error)
        return
    if engine.stand_ins:
        print("base images are stand-ins made from Debian packages and programs of this machine")
    tree = tree_checksum()  # of what is cloned, not of what the tree is when the build ends
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
        if reason := build(here, tree):
            yield reason
            return
        yield Project(here, clone, name, yaml.safe_load(file.read_text())["services"], port)
    finally:
        here.compose_run("down", "--volumes", check=False)
        here.remove(name)


def build(project: Engine, tree: str) -> str | None:
    """Build the images of a clone and note what they are; or the reason why they cannot be built here."""
    try:
        project.compose_run("build", seconds=1500)
    except AssertionError as error:
        # Without a network in the build steps there is nothing to judge.
        if found := UNREACHABLE.search(str(error)):
            return f"a build step reaches no package registry: {found[0]}"
        raise
    ids = {name: project.run("image", "inspect", "--format", "{{.Id}}", name).stdout.strip() for name in IMAGES}
    CACHE.mkdir(parents=True, exist_ok=True)
    BUILT.write_text(json.dumps({"tree": tree, "images": ids}))
    return None


def tree_checksum() -> str:
    """Of everything that an image is built from."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES],
        cwd=REPOSITORY, capture_output=True, check=True,
    ).stdout  # fmt: skip
    checksum = hashlib.sha256()
    for name in sorted(set(listed.decode().split("\0")) - {""}):
        path = REPOSITORY / name
        if path.is_file():
            checksum.update(f"{name}\0{path.stat().st_mode & 0o111}\0".encode() + path.read_bytes())
    return checksum.hexdigest()


def archive_of_images(target: Path, prefix: str, *tags: str) -> dict[str, str]:
    """Write this tree's images and PostgreSQL's to an archive as ``docker save`` makes it; their names there.

    With several tags each image has them all; the names are those of the first. Images that were built from the same
    files are used again. Raises RigError where none can be built.
    """
    engine, ids = _images_of_this_tree()
    if not engine.stand_ins and engine.run("image", "inspect", POSTGRES, check=False).returncode != 0:
        engine.run("pull", POSTGRES, seconds=600)
    sources = {**ids, "postgres": POSTGRES}
    every = {f"{prefix}/{name}:{tag}": source for name, source in sources.items() for tag in tags}
    for name, source in every.items():
        engine.run("tag", source, name)
    several = ["--multi-image-archive"] if engine.name == "podman" else []
    engine.run("save", *several, "--output", str(target), *every, seconds=300)
    return {name: f"{prefix}/{name}:{tags[0]}" for name in sources}


def oci_archives(folder: Path, tag: str) -> Iterator[str]:
    """Write each image of this tree to an OCI archive of its own, and say so. Raises RigError where none can be."""
    engine, ids = _images_of_this_tree()
    if engine.name != "podman":
        raise RigError("only podman writes OCI archives")
    for name, one in ids.items():
        engine.run("tag", one, f"{name}:{tag}")
        target = folder / f"{name}-{tag}.oci.tar"
        engine.run("save", "--format", "oci-archive", "--output", str(target), f"{name}:{tag}", seconds=300)
        base = " ON A STAND-IN BASE, not to be given to anybody" if engine.stand_ins else ""
        yield f"{target.name}: {target.stat().st_size} bytes{base}"


def _images_of_this_tree() -> tuple[Engine, dict[str, str]]:
    """The engine and the ids of this tree's images, built if they are not there. Raises RigError."""
    try:
        engine = find_engine()
    except subprocess.TimeoutExpired as error:
        raise RigError(str(error)) from error
    ids = _kept_images(engine)
    if ids is None:
        with tempfile.TemporaryDirectory() as folder, built_images(Path(folder)) as built:
            if isinstance(built, str):
                raise RigError(built)
        ids = _kept_images(engine)
        assert ids is not None, "the images that were just built are there"
    return engine, ids


def _kept_images(engine: Engine) -> dict[str, str] | None:
    try:
        built = json.loads(BUILT.read_text())
        ids: dict[str, str] = built["images"]
    except (OSError, ValueError, KeyError):
        return None
    if built["tree"] != tree_checksum():
        return None
    found = all(engine.run("image", "inspect", one, check=False).returncode == 0 for one in ids.values())
    return ids if found else None


def main() -> None:
    """Build the images of this tree, or say why that cannot be done here."""
    with tempfile.TemporaryDirectory() as folder, built_images(Path(folder), bridged=False) as built:
        print(built if isinstance(built, str) else "the images of this tree are built")


if __name__ == "__main__":
    main()
