"""A reader that ends early and a full disk end a command quietly, with the status that the help names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hugeplan.cli import EXIT_OUTPUT

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "bare-metal-postgresql.yaml"
COMMANDS = (("plan", str(EXAMPLE), "--json"), ("plan", str(EXAMPLE)), ("size", "postgresql"), ("lint", str(EXAMPLE)),
            ("plan", "--help"))  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[::2]))
def test_a_full_disk_is_one_line(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "hugeplan.cli", *words], check=False, stdout=full,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (EXIT_OUTPUT, 1), done.stderr
    assert done.stderr == f"hugeplan {words[0]}: the output could not be written: No space left on device\n"


def test_the_answer_of_a_plan_that_needs_the_solver_is_json(tmp_path: Path) -> None:
    """More combinations of page sizes than are looked at one by one, and not all of the best fit together."""
    databases = [
        {"name": f"d{n}", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": f"{200 + 80 * n}MB"}}
        for n in range(24)
    ]
    (tmp_path / "n.json").write_text(json.dumps({"node": {"memory": "32GiB"}, "databases": databases}))
    words = [sys.executable, "-m", "hugeplan.cli", "plan", str(tmp_path / "n.json"), "--json"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert json.loads(done.stdout)["plan"]["node"] == "node", done.stderr


def test_a_reader_that_ends_early_is_no_error_message() -> None:
    words = [sys.executable, "-m", "hugeplan.cli", "plan", str(EXAMPLE), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == EXIT_OUTPUT


@pytest.mark.parametrize("words", [("plan", str(EXAMPLE), "--artifacts"), ("artifacts", "{plan}", "--out"),
                                   ("artifacts", "{plan}", "--zip")], ids=lambda words: words[2])  # fmt: skip
def test_files_on_a_full_disk_have_the_same_status(words: tuple[str, ...], tmp_path: Path) -> None:
    """Nothing was wrong with the input. A limit of a file's size stands for the disk: each has an errno of its own."""
    plan = tmp_path / "plan.json"
    plan.write_text(subprocess.check_output([sys.executable, "-m", "hugeplan.cli", "plan", str(EXAMPLE), "--json"],
                                            text=True))  # fmt: skip
    given = [word.format(plan=plan) for word in words]
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh", sys.executable, "-m", "hugeplan.cli", *given,
         str(tmp_path / "out")], check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (EXIT_OUTPUT, 1), done.stderr
    assert f"{words[-1]} " in done.stderr
    assert subprocess.run([sys.executable, "-m", "hugeplan.cli", *given, "/dev/null/x"], check=False,
                          capture_output=True).returncode == 2  # fmt: skip


@pytest.mark.parametrize("before", [None, b"an older archive"])
def test_an_archive_on_a_full_disk_leaves_what_was_there(before: bytes | None, tmp_path: Path) -> None:
    """An empty archive stayed there."""
    folder = tmp_path / "full"
    folder.mkdir()
    plan, path = tmp_path / "plan.json", folder / "out.zip"
    words = [sys.executable, "-m", "hugeplan.cli"]
    plan.write_text(subprocess.check_output([*words, "plan", str(EXAMPLE), "--json"], text=True))
    if before is not None:
        path.write_bytes(before)
    command = [*words, "artifacts", str(plan), "--zip", str(path)]
    limited = ["/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh"]
    assert subprocess.run([*limited, *command], check=False, capture_output=True).returncode == EXIT_OUTPUT
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == ({} if before is None else {path.name: before})
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert path.read_bytes().startswith(b"PK")


def test_linted_files_are_whole_and_nothing_lies_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "big.conf"
    path.write_text("vm.nr_hugepage = 100\n" + "# a comment\n" * 500)
    before = path.read_text()
    words = ["/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh", sys.executable, "-m", "hugeplan.cli", "lint", "--fix"]
    done = subprocess.run([*words, str(path)], check=False, capture_output=True, text=True)
    assert (done.returncode, path.read_text(), list(tmp_path.iterdir())) == (EXIT_OUTPUT, before, [path]), done.stderr


@pytest.mark.parametrize("words", [*COMMANDS, ("--version",), ("size", "mariadb", "--json")],
                         ids=lambda words: " ".join(words[::2]))  # fmt: skip
def test_a_closed_output_is_output_that_could_not_be_written(words: tuple[str, ...]) -> None:
    """Status 0 said that a page count was printed where nobody could read it."""
    closed = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "hugeplan.cli", *words]
    done = subprocess.run(closed, check=False, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (EXIT_OUTPUT, 1), done.stderr
    assert "the output could not be written: standard output is closed" in done.stderr


@pytest.mark.parametrize("words", [("plan", str(EXAMPLE), "--json"), ("size", "postgresql"), ("lint", str(EXAMPLE))],
                         ids=lambda words: words[0])  # fmt: skip
def test_a_pipe_without_reader_ends_quietly(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run([sys.executable, "-m", "hugeplan.cli", *words], check=False, stdout=pipe,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (EXIT_OUTPUT, "")


def test_closed_streams_are_no_error_where_nothing_is_said(tmp_path: Path) -> None:
    """What a command does counts: files written without a word are all that was asked."""
    words = [sys.executable, "-m", "hugeplan.cli"]
    closed = ["/bin/sh", "-c", 'exec "$@" >&- 2>&-', "sh"]
    made = tmp_path / "openapi.json"
    assert subprocess.run([*closed, *words, "openapi", "--output", str(made)], check=False).returncode == 0
    assert made.read_text(encoding="utf-8").startswith("{")
    assert subprocess.run([*closed, *words, "size", "postgresql"], check=False).returncode == EXIT_OUTPUT
    assert subprocess.run([*closed, *words, "plan", "no-such.yaml"], check=False).returncode == 2
    with Path("/dev/full").open("wb") as full:
        assert subprocess.run([*words, "plan", "no-such.yaml"], check=False, stderr=full).returncode == 2
