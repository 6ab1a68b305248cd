"""The documentation: links lead somewhere, every page is in the index, commands that are named exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
DOCUMENTS = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True
).stdout.splitlines()
#: As the program of a plan's files does it, :file:`hugeplan-file`.
APART = """bash -o pipefail -c '{ "$@" 2>&1 >&3 3>&- | cat >&2; } 3>&1 | cat' bash env -i PATH="$PATH" setsid"""
LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_to_files(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_every_page_is_in_the_index() -> None:
    index = (REPOSITORY / "docs/README.md").read_text()
    pages = [page.name for page in (REPOSITORY / "docs").glob("*.md") if page.name != "README.md"]
    assert [page for page in pages if f"({page})" not in index] == []


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse of another Python words its help otherwise")
def test_the_reference_of_the_commands_is_current() -> None:
    made = subprocess.run(
        [sys.executable, "deploy/release/cli_reference.py"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert made.stdout == (REPOSITORY / "docs/reference-cli.md").read_text()


def test_decisions_are_numbered_without_gaps_or_doubles() -> None:
    numbers = [int(page.name[:4]) for page in sorted((REPOSITORY / "docs/adr").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_decisions_named_in_the_docs_exist() -> None:
    known = {page.name[:4] for page in (REPOSITORY / "docs/adr").glob("*.md")}
    named = {number for page in PAGES for number in re.findall(r"\bADR[ -](\d{4})\b", page.read_text())}
    assert named <= known


def test_make_targets_named_in_the_docs_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for page in PAGES
        for target in re.findall(r"`make ([a-z-]+)`|^    make ([a-z-]+)", page.read_text(), re.M)
    }
    assert {word for pair in named for word in pair if word} <= targets


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_runs_as_another_user_has_nothing_of_roots_terminal(name: str) -> None:
    """As the commands of a plan. A program of that user could type into a terminal that it has a descriptor of."""
    lines = re.sub(r"\s*\\\n\s*", " ", (REPOSITORY / name).read_text()).splitlines()
    others = re.compile(r"(?:^|[ ;&|(`])(?:runuser|setpriv|sudo|su|gosu|chpst)(?: -\S*)* (?:-u|-l|-|--user|--reuid)\b")
    found = [line for line in lines if others.search(line)]
    assert [line for line in found if APART not in line] == []


def test_help_lists_every_command_of_the_makefile() -> None:
    phony = re.findall(r"^\.PHONY: (\S+)", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    with_help = re.findall(r"^([a-z-]+):.*## ", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert phony == with_help


def _words(page: Path) -> int:
    """Words to read: diffs and what programs print are looked up."""
    return len(re.sub(r"^```(?:diff|console)\n.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_lines_wrap_at_120_columns(page: Path) -> None:
    """Rows of tables, pictures and what a program prints cannot be wrapped."""
    lines = re.sub(r"^```console\n.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith(("|", "!["))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_page_of_more_than_1500_words_begins_with_a_summary(page: Path) -> None:
    """A changelog is a list by release, and a generated reference one by name; they have none."""
    headings = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    assert (
        page.name in {"CHANGELOG.md", "settings.md"}
        or page.name.startswith("reference-")
        or _words(page) <= 1500
        or headings[0] == "Summary"
    )


def test_the_method_page_explains_in_fewer_than_2000_words() -> None:
    assert _words(REPOSITORY / "docs/method.md") < 2000
