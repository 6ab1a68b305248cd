"""The Dockerfile without a container engine: its RUN lines are make commands, and they are replayed on the files
that its COPY lines bring, so that a missing COPY or a broken target fails.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from container_rig import REPOSITORY, RigError

PACKAGES = re.compile(
    r"apt-get update && apt-get install -y --no-install-recommends [a-z0-9. -]+ && rm -rf /var/lib/apt/lists/\*"
)


@dataclass
class Stage:
    """One FROM of the Dockerfile: its base and its instructions in order."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def runs(self) -> list[str]:
        return [words for instruction, words in self.steps if instruction == "RUN"]


def parse(text: str) -> dict[str, Stage]:
    """The stages of a Dockerfile by name."""
    stages: dict[str, Stage] = {}
    current: Stage | None = None
    for line in text.splitlines():
        instruction, _, words = line.partition(" ")
        if not instruction or instruction == "#":
            continue
        if instruction == "FROM":
            base, _, name = words.partition(" AS ")
            current = stages[name] = Stage(name, base)
        else:
            assert current is not None, line
            current.steps.append((instruction, words))
    return stages


STAGES = parse((REPOSITORY / "deploy/Dockerfile").read_text())


def tracked_files() -> list[str]:
    """What a fresh clone holds, which is what an image is built from."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        raise RigError("not a git checkout, so the build context cannot be told")
    return [name for name in listed.stdout.splitlines() if (REPOSITORY / name).is_file()]


def copy_context(name: str, target: Path) -> int:
    """Copy one file or folder of the build context; answer how many files it had."""
    copied = 0
    for file in tracked_files():
        if file == name or file.startswith(f"{name}/"):
            place = target / file[len(name) :].lstrip("/") if file != name else target
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / file, place)
            copied += 1
    return copied


def workdir_of(name: str) -> str:
    """The last WORKDIR of a stage or of the stage it builds on."""
    own = [words for instruction, words in STAGES[name].steps if instruction == "WORKDIR"]
    return own[-1] if own else workdir_of(STAGES[name].base)


def replay(name: str, root: Path) -> Path:
    """Build a stage in a folder of its own, and answer its work folder. Package installs are left out."""
    stage = STAGES[name]
    workdir = root / name
    if workdir.exists():
        return workdir
    if stage.base in STAGES:
        shutil.copytree(replay(stage.base, root), workdir, symlinks=True)
    workdir.mkdir(exist_ok=True)
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "HUGEPLAN_", "VIRTUAL_"))
    }
    for instruction, words in stage.steps:
        if instruction == "COPY" and words.startswith("--from="):
            origin, source, target = words.removeprefix("--from=").split()
            base = workdir_of(origin)
            origin_folder = replay(origin, root)
            place = origin_folder / Path(source).relative_to(base)
            assert place.exists(), f"{name}: COPY {words}: the stage {origin} has no {source}"
            (workdir / target).parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir():
                shutil.copytree(place, workdir / target, symlinks=True)
            else:
                shutil.copy2(place, workdir / target)
        elif instruction == "COPY":
            source, target = (word for word in words.split() if not word.startswith("--chown="))
            # A target with a whole path is a place in the image, outside the work folder.
            inside = source if target == "./" else target.lstrip("/")
            assert copy_context(source, workdir / inside), f"COPY {words} copies nothing"
        elif instruction == "RUN" and not PACKAGES.fullmatch(words):
            done = subprocess.run(
                shlex.split(words), cwd=workdir, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{name}: RUN {words}\n{done.stdout}"
    return workdir
