"""The backend's package stays within its budget of lines; the budget falls, or its decision names the rise."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

import weight
from weight import BUDGET, REPOSITORY, above, measure, read, repeated_runs

DECISION = REPOSITORY / "docs/adr/0046-lines-have-a-budget-that-only-falls.md"

MODULE = '''"""Two lines of
docstring."""

from os import (
    path,
)

# A comment.
TEXT = """a text is

code"""


def one() -> str:
    """Docstring."""
    return path.join(TEXT)  # code, with a comment
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package in place of the backend's."""
    monkeypatch.setattr(weight, "PACKAGE", tmp_path)
    return tmp_path


def test_each_line_is_of_one_kind(package: Path) -> None:
    module = package / "module.py"
    module.write_text(MODULE)
    counts = read(module).counts
    assert counts.total() == len(MODULE.splitlines())
    assert counts == {"docstrings": 3, "imports": 3, "comments": 1, "code": 5, "blank": 4}


def test_a_repeated_run_is_counted_once_wherever_it_begins(package: Path) -> None:
    """Seven lines alike, in two files, at other indentations and with blank lines between; six of them in one file."""
    lines = [f"value_{number} = {number}" for number in range(7)]
    (package / "one.py").write_text("first = 1\n" + "\n".join(lines))
    (package / "two.py").write_text("if True:\n" + "\n\n".join(f"    {line}" for line in lines))
    (package / "three.py").write_text("\n".join(lines[:5]))
    found = repeated_runs([read(path) for path in sorted(package.glob("*.py"))])
    assert found == ["7 lines: one.py:2 and two.py:2"]


def test_what_is_above_the_budget_is_named() -> None:
    assert above({"lines": 12, "files": 3}, {"lines": 10, "files": 3}) == ["lines: 12, the budget is 10: 2 too many"]


def test_the_backend_is_within_its_budget() -> None:
    """python deploy/suites/weight.py shows where the lines are. Take out as much as you add, or more."""
    assert above(measure(weight.sources()), json.loads(BUDGET.read_text())) == []


def test_the_budget_falls_or_its_decision_names_the_rise() -> None:
    if shutil.which("git") is None:
        pytest.skip("SKIP: git is not installed, which holds the budget's former values")
    name = str(BUDGET.relative_to(REPOSITORY))

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", REPOSITORY, *words], capture_output=True, text=True, check=False)

    commits = git("log", "--format=%H", "--", name)
    if commits.returncode:
        pytest.skip(f"SKIP: no history of {name} here: {commits.stderr.strip()}")
    values = [json.loads(BUDGET.read_text())]
    values += [json.loads(git("show", f"{commit}:{name}").stdout) for commit in commits.stdout.split()]
    named = [line.replace(",", "") for line in DECISION.read_text().splitlines() if line.startswith("| 20")]
    for newer, older in pairwise(values):
        risen = {key: most for key, most in newer.items() if most > older.get(key, most)}
        assert [
            key for key, most in risen.items() if not any(f"| {key} |" in row and f" {most} |" in row for row in named)
        ] == []
        assert older.keys() <= newer.keys(), "what has a budget keeps it"
