"""``hugeplan explain``: what a finding or a rule of the linter means, what it shows, and what to do."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import textwrap
from importlib import resources
from typing import Any

from hugeplan.cli import InputError

_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``explain``."""
    parser.add_argument("name", nargs="?", help="a finding or a rule, as it is shown; without it, all names")


def run(arguments: argparse.Namespace) -> int:
    """Print one, or the list of all."""
    known: dict[str, Any] = json.loads(resources.files("hugeplan.reference").joinpath("explanations.json").read_bytes())
    if arguments.name is None:
        sys.stdout.write("".join(f"{name}\n" for name in known))
        return 0
    # The linter names a finding that it shares with plans with dashes, as its own rules.
    name = next((name for name in (arguments.name, arguments.name.replace("-", "_")) if name in known), None)
    if name is None:
        near = difflib.get_close_matches(arguments.name, known, n=3) or ["hugeplan explain lists all"]
        raise InputError(f"name: {arguments.name!r} is no finding and no rule; did you mean: {', '.join(near)}")
    sys.stdout.write("\n".join(_lines(known[name])) + "\n")
    return 0


def _lines(one: dict[str, Any]) -> list[str]:
    lines = [one["name"], *(_filled(text, "  ") for text in one["asks"])]
    for state, title, fix in one["says"]:
        lines.append(_filled(f"{state}: {title or 'the rule is broken'}", "  "))
        if fix:
            lines.append(_filled(f"do: {fix}", "      "))
    more = (("evidence", ", ".join(one["evidence"])), ("in", ", ".join(one["places"])), ("source", one["source"]))
    return [*lines, *(_filled(f"{name}: {text}", "  ") for name, text in more if text)]


def _filled(text: str, indent: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
