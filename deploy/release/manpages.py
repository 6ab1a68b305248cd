"""Manual pages from the argument parsers: what --help says, as man(1) shows it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from datetime import UTC, datetime

from hugeplan.cli import COMMANDS, _parser
from hugeplan_agent.cli import parser as agent_parser
from version import version


def pages() -> Iterator[tuple[str, bytes]]:
    """Name and content of every page: one for each command."""
    top = _parser([])
    yield "man1/hugeplan.1", page("hugeplan", top)
    for row in COMMANDS:
        yield f"man1/hugeplan-{row.name}.1", page(f"hugeplan-{row.name}", _subparsers(_parser([row.name]))[row.name])
    yield "man1/hugeplan-agent.1", page("hugeplan-agent", agent_parser())


def page(name: str, parser: argparse.ArgumentParser) -> bytes:
    """One page in man's macros, dated by SOURCE_DATE_EPOCH."""
    date = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC).strftime("%Y-%m-%d")
    lines = [
        f'.TH "{name.upper()}" "1" "{date}" "hugeplan {version()}" "hugeplan"',
        ".SH NAME", f"{_text(name)} \\- {_text((parser.description or name).split('.')[0])}",
        ".SH SYNOPSIS", _text(" ".join(parser.format_usage().removeprefix("usage: ").split())),
        ".SH DESCRIPTION", _text(parser.description or ""),
    ]  # fmt: skip
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help is not argparse.SUPPRESS]
        if actions:
            lines.append(f".SH {_text((group.title or 'options').upper())}")
            lines += [line for action in actions for line in _action(parser, action)]
    if parser.epilog:
        lines += [".SH NOTES", _text(parser.epilog)]
    return ("\n".join(lines) + "\n").encode()


def _action(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    if isinstance(action, argparse._SubParsersAction):
        for choice in action._choices_actions:
            yield from (".TP", f"\\fB{_text(choice.dest)}\\fR", _text(choice.help or ""))
        return
    formatter = parser._get_formatter()
    yield from (".TP", f"\\fB{_text(formatter._format_action_invocation(action))}\\fR")
    yield _text(formatter._expand_help(action) if action.help else "")


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (found,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found.choices)


def _text(text: str) -> str:
    """Text that roff takes as text: backslashes and minus signs, and no line that begins as a request."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain[:1] in {".", "'"} else plain
