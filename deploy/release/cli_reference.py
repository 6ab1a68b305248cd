"""docs/reference-cli.md from the argument parsers: what --help says, on one page that can be searched.

``python deploy/release/cli_reference.py > docs/reference-cli.md``
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator

from hugeplan.cli import COMMANDS, _parser
from hugeplan_agent.cli import parser as agent_parser
from manpages import _subparsers

_HEADER = """\
# Commands

Every command with its options, examples and exit statuses. This page is generated from the programs' own help; a test
fails when it is stale:

    .venv/bin/python deploy/release/cli_reference.py > docs/reference-cli.md

Each is a manual page too, where the package installs them (`man hugeplan-plan`). Exit status 74 of any command: its
output could not be written whole (`| head`, `>&-`, or a full disk).
"""


def render() -> str:
    """The page."""
    lines = [_HEADER]
    for row in COMMANDS:
        lines += _command(f"hugeplan {row.name}", _subparsers(_parser([row.name]))[row.name], 2)
    lines += _command("hugeplan-agent", agent_parser(), 2)
    return "\n".join(lines)


def _command(name: str, parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    if parser.description:
        yield f"{_cell(parser.description)}\n"
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield f"```text\n{textwrap.fill(usage, 110, subsequent_indent='   ', break_on_hyphens=False)}\n```\n"
    rows = [row for action in parser._actions for row in _rows(parser, action)]
    if rows:
        yield "| argument | meaning |\n|---|---|"
        yield "\n".join(rows) + "\n"
    if parser.epilog:
        yield f"```text\n{parser.epilog.strip()}\n```\n"
    for choice in _choices(parser):
        yield from _command(f"{name} {choice.prog.split()[-1]}", choice, level + 1)


def _choices(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from dict.fromkeys(action.choices.values())


def _rows(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    if action.help is argparse.SUPPRESS or isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
        return
    formatter = parser._get_formatter()
    invocation = formatter._format_action_invocation(action)
    yield f"| `{_cell(invocation)}` | {_cell(formatter._expand_help(action)) if action.help else ''} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(render())
