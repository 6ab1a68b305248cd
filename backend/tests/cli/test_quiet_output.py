"""A reader that ends early and a full disk end a command quietly, with the status that the help names."""

from __future__ import annotations

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


def test_a_reader_that_ends_early_is_no_error_message() -> None:
    words = [sys.executable, "-m", "hugeplan.cli", "plan", str(EXAMPLE), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == EXIT_OUTPUT
