"""What comes from strangers prints no line of its own on standard error, whichever command says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hugeplan import cli
from hugeplan.cli import import_inventory, lint
from hugeplan.inventory.model import Inventory

FORGED = "a\nhugeplan: all is well\x1b[2J"


@pytest.mark.parametrize("command", [["import", "csv", "x"], ["lint", "--fix", "x"], ["plan", "FILE"]])
def test_a_line_break_from_outside_stays_within_its_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text('node: {"x\\nhugeplan: all is well\\e[2J": 1}\n')
    found = Inventory(source="s", nodes=(), pods=0, notes=(FORGED,))
    monkeypatch.setitem(import_inventory._READERS, "csv", lambda _: found)

    def lint_run(_: object) -> int:
        cli.sys.stderr.write(f"hugeplan lint: {FORGED}\n")
        return 2

    monkeypatch.setattr(lint, "run", lint_run)
    assert cli.main([str(scenario) if word == "FILE" else word for word in command]) == 2
    said = capsys.readouterr().err
    assert all(line.startswith((f"hugeplan {command[0]}: ", "warning")) for line in said.splitlines()), said
    assert "\x1b" not in said
    assert r"\u000ahugeplan: all is well\u001b" in said
