"""The Dockerfile as text. What its images hold is asked of the images: containers/tests/test_compose_up.py."""

from __future__ import annotations

import re

import pytest

from container_rig import REPOSITORY

PACKAGES = re.compile(
    r"apt-get update && apt-get install -y --no-install-recommends [a-z0-9. -]+ && rm -rf /var/lib/apt/lists/\*"
    r"( /var/\S+)*( && sh /usr/local/bin/(?P<script>\S+))?"
)
TEXT = (REPOSITORY / "deploy/Dockerfile").read_text().replace("\\\n", " ")


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage, by its name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in TEXT.splitlines():
        instruction, _, words = line.strip().partition(" ")
        if instruction == "FROM":
            found[words.rpartition(" AS ")[2]] = current = []
        elif found and instruction and instruction != "#":
            current.append((instruction, words))
    return found


STAGES = stages()


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def test_every_run_line_installs_packages_or_calls_make_or_a_script_of_it() -> None:
    """So that a checkout can do what an image does, and a test of the script is a test of the image."""
    for steps in STAGES.values():
        for words in (words for instruction, words in steps if instruction == "RUN"):
            program, *rest = words.split()
            is_script = program == "sh" and (REPOSITORY / "deploy/make" / rest[0].rpartition("/")[2]).is_file()
            is_make = program == "make" and rest[0] in make_targets()
            packages = PACKAGES.fullmatch(words)
            assert packages or is_make or is_script, words
            if packages and packages["script"]:
                assert (REPOSITORY / "deploy/make" / packages["script"]).is_file(), words


def test_what_is_copied_is_there_and_nothing_comes_from_an_address() -> None:
    for name, steps in STAGES.items():
        assert "ADD" not in [instruction for instruction, _ in steps], name
        for words in (words for instruction, words in steps if instruction == "COPY" and "--from=" not in words):
            for source in [word for word in words.split() if not word.startswith("--")][:-1]:
                assert (REPOSITORY / source).exists(), words


@pytest.mark.parametrize(("name", "user"), [("server", 10001), ("agent", 10002)])
def test_images_run_as_an_ordinary_user_of_their_own(name: str, user: int) -> None:
    """The agent sees the host's /proc: with the server's user it could read the server's environment there."""
    assert ("USER", f"{user}:{user}") in STAGES[name]


@pytest.mark.parametrize("name", ["server", "agent"])
def test_images_say_what_they_are(name: str) -> None:
    (labels,) = [words for instruction, words in STAGES[name] if instruction == "LABEL"]
    found = dict(re.findall(r'org\.opencontainers\.image\.([a-z.]+)="([^"]*)"', labels))
    assert {"title", "description", "licenses", "base.name", "version", "revision"} == set(found)
    assert found["title"] == f"hugeplan-{name}"


def test_every_base_is_in_the_table_of_supported_bases() -> None:
    page = (REPOSITORY / "docs/support.md").read_text()
    bases = set(re.findall(r"^FROM (\S+:\S+)", TEXT, re.MULTILINE))
    assert bases
    for base in bases:
        assert base in page, base
