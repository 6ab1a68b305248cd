"""The Dockerfile as text. What its images hold is tested in containers/tests/test_images.py."""

from __future__ import annotations

import re

import pytest

from container_rig import REPOSITORY
from dockerfile_replay import PACKAGES, STAGES


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def test_every_run_line_installs_packages_or_calls_make() -> None:
    for stage in STAGES.values():
        for words in stage.runs():
            program, *rest = words.split()
            assert PACKAGES.fullmatch(words) or (program == "make" and rest[0] in make_targets()), words


def test_no_instruction_needs_the_network_but_these() -> None:
    assert not any(instruction == "ADD" for stage in STAGES.values() for instruction, _ in stage.steps)


@pytest.mark.parametrize(("name", "user"), [("server", 10001), ("agent", 10002)])
def test_images_run_as_an_ordinary_user_of_their_own(name: str, user: int) -> None:
    """The agent sees the host's /proc: with the server's user it could read the server's environment there."""
    assert ("USER", f"{user}:{user}") in STAGES[name].steps
