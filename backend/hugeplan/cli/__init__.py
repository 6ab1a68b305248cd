"""The command line: one file a command, one row a command in :data:`COMMANDS`.

A command's module has ``add_arguments(parser)`` and ``run(arguments) -> int`` (the exit status), and may have an
``EPILOG`` for its help. It is imported only when its command is run, so that planning needs neither the server nor a
database. Wrong input is one line on standard error that names the field, the value and the valid range, and exit
status 2.
"""

from __future__ import annotations

import argparse
import errno
import gc
import io
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NoReturn, TextIO, cast

from hugeplan.cli.terminal import TameText
from hugeplan.planner.errors import PlannerError

EXIT_FAILED: Final = 1
EXIT_WRONG_INPUT: Final = 2
EXIT_DOES_NOT_FIT: Final = 4
EXIT_FINDING_WRONG: Final = 5
EXIT_FIT_UNKNOWN: Final = 6
EXIT_INTERRUPTED: Final = 130
#: The output could not be written whole: its reader has ended (``| head``), it is closed, or the disk is full.
#: As EX_IOERR.
EXIT_OUTPUT: Final = 74
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CANNOT_WRITE: Final = _NO_ROOM | {errno.EIO}


def status_of_plans(fits: Collection[bool | None], *, wrong: bool) -> int:
    """What a script may rely on: 0 only where all plans are known to fit and no finding says wrong."""
    if False in fits:
        return EXIT_DOES_NOT_FIT
    if wrong:
        return EXIT_FINDING_WRONG
    return EXIT_FIT_UNKNOWN if None in fits else 0


@dataclass(frozen=True, slots=True)
class Command:
    """A row of the command table: the word typed, one line of help, and the module that does it."""

    name: str
    summary: str
    module: str


COMMANDS: Final = (
    Command("plan", "a plan for a node from a scenario, or for this machine", "hugeplan.cli.plan"),
    Command("import", "scenarios from Kubernetes, Prometheus, Ansible or a table", "hugeplan.cli.import_inventory"),
    Command("size", "pages that one database engine needs", "hugeplan.cli.size"),
    Command("artifacts", "the files that apply a plan, as a bundle with a README", "hugeplan.cli.artifacts"),
    Command("verify", "is the plan in force on this node? Reads only", "hugeplan.cli.verify"),
    Command("apply", "write the pools of a plan on this node, step by step, with a way back", "hugeplan.cli.apply"),
    Command("trial", "measure here what a page size gains, with this engine or any program", "hugeplan.cli.trial"),
    Command("lint", "what files about huge pages will really do, and what is wrong", "hugeplan.cli.lint"),
    Command("explain", "what a finding or a rule of the linter means, and what to do", "hugeplan.cli.explain"),
    Command("benefit", "what more buffer pool buys, from a table of throughput", "hugeplan.cli.benefit"),
    Command("wins", "how often each page size is best over a set of runs", "hugeplan.cli.wins"),
    Command("demo", "the service with a database of its own, until Ctrl-C", "hugeplan.cli.demo"),
    Command("serve", "the service over an existing PostgreSQL", "hugeplan.cli.serve"),
    Command("migrate", "bring the database to the newest migration", "hugeplan.cli.migrate"),
    Command("wait", "another command, as soon as the database is there", "hugeplan.cli.wait"),
    Command("reparse", "today's parsers over stored runs and reports, while the service runs", "hugeplan.cli.reparse"),
    Command("secrets", "the passwords of an installation, made once and kept", "hugeplan.cli.secrets"),
    Command("token", "make, list, rotate and revoke credentials", "hugeplan.cli.token"),
    Command("enrolment", "machines that ask to enrol again: list, approve and refuse", "hugeplan.cli.enrolment"),
    Command("export", "the fleet, scenarios, plans and the audit log as JSON lines", "hugeplan.cli.export"),
    Command("backup", "the whole database in one file, or to standard output", "hugeplan.cli.backup"),
    Command("restore", "a backup into an empty database, or in place of what is there", "hugeplan.cli.restore"),
    Command("doctor", "whether this installation is sound", "hugeplan.cli.doctor"),
    Command("openapi", "the OpenAPI document of the service", "hugeplan.cli.openapi"),
    Command("backtest", "the model beside every published result", "hugeplan.cli.backtest"),
)


class InputError(Exception):
    """Wrong input that is not the planner's to judge, such as a file that is not there. One line."""


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and exit status 2."""

    def error(self, message: str) -> NoReturn:
        """Print ``program: message`` and exit with status 2."""
        self.exit(EXIT_WRONG_INPUT, f"{self.prog}: {message}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help that cannot be written is an error; argparse would say nothing and end with status 0."""
        out = sys.stderr if file is None else file
        out.write(message)
        out.flush()


class _ShowVersion(argparse.Action):
    """``--version``. The package's metadata is read only for it: that takes a tenth of a second."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_given: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 - see above

        sys.stdout.write(f"hugeplan {version('hugeplan')}\n")
        sys.stdout.flush()
        parser.exit()


class _Closed(io.FileIO):
    """Standard output that whoever started the command closed (``>&-``): it takes everything and knows that it did.

    Nothing is raised, so that a change is not left half made. A program that is given the descriptor writes, too.
    """

    was_used = False

    def write(self, data: Any) -> int:
        """Take ``data`` to nowhere."""
        self.was_used = True
        return super().write(data)

    def fileno(self) -> int:
        """The descriptor of nowhere."""
        self.was_used = True
        return super().fileno()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the process's exit status."""
    streams = sys.stdout, sys.stderr
    closed = _Closed(os.devnull, "w") if sys.stdout is None else None
    if closed is not None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(closed), encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = _nowhere()
    tamed = TameText(sys.stdout), TameText(sys.stderr, by_line=True)
    sys.stdout, sys.stderr = cast(tuple[TextIO, TextIO], tamed)
    try:
        try:
            status = _main(arguments)
        except SystemExit as leaving:  # --help and --version
            if closed is None or leaving.code:
                raise
            status = 0
        if closed is not None:
            sys.stdout.flush()
            if closed.was_used:
                given = sys.argv[1:] if arguments is None else arguments
                return _complain(
                    _named(given), "the output could not be written: standard output is closed", EXIT_OUTPUT
                )
        return status
    finally:
        sys.stdout, sys.stderr = streams


def _named(given: Sequence[str]) -> str:
    return next((row.name for row in COMMANDS if row.name in given), "--help")


def _nowhere() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _main(arguments: Sequence[str] | None) -> int:
    given = _with_settings_joined(list(sys.argv[1:] if arguments is None else arguments))
    parser = _parser(given)
    try:
        parsed = parser.parse_args(given)
    except OSError as error:
        return _failed(_named(given), error)
    if parsed.command is None:
        parser.print_help()
        return EXIT_WRONG_INPUT
    try:
        status: int = load(_row(parsed.command).module).run(parsed)
        sys.stdout.flush()
    except (PlannerError, InputError) as error:
        return _complain(parsed.command, str(error), EXIT_OUTPUT if _is_full(error.__cause__) else EXIT_WRONG_INPUT)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        return _failed(parsed.command, error)
    return status


def _failed(command: str, error: Exception) -> int:
    """What nobody caught, as one line: output that cannot be written, or an internal error."""
    if isinstance(error, BrokenPipeError):
        _drop_output()
        return EXIT_OUTPUT
    if isinstance(error, OSError) and error.filename is None and error.errno in _CANNOT_WRITE:
        _drop_output()
        return _complain(command, f"the output could not be written: {error.strerror}", EXIT_OUTPUT)
    if os.environ.get("HUGEPLAN_DEBUG"):
        sys.stderr.writelines(traceback.format_exc().splitlines(keepends=True))
    what = f"internal error: {type(error).__name__}: {error} (HUGEPLAN_DEBUG=1 shows where)"
    return _complain(command, what, EXIT_FAILED)


def _is_full(error: BaseException | None) -> bool:
    """Whether a file could not be written for want of room: nothing was wrong with what was given."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def _drop_output() -> None:
    """What is left in the buffer has nowhere to go: its reader has ended, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_settings_joined(given: list[str]) -> list[str]:
    """``--set -Xmx=8g`` as ``--set=-Xmx=8g``: argparse takes a word with a dash for an option."""
    words: list[str] = []
    for word in given:
        if words and words[-1] == "--set" and word.startswith("-"):
            words[-1] = f"--set={word}"
        else:
            words.append(word)
    return words


def load(name: str) -> ModuleType:
    """Import a module with all that it needs.

    The collector rests meanwhile and leaves what was made out of every later look for cycles: classes and functions
    stay. Looking among them took a sixth of the time that the service's modules take.
    """
    if name in sys.modules:
        return sys.modules[name]
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _row(name: str) -> Command:
    return next(row for row in COMMANDS if row.name == name)


def _parser(given: Sequence[str]) -> OneLineParser:
    """The top parser; only the chosen command's arguments are built, and only its module is imported."""
    parser = OneLineParser(
        prog="hugeplan",
        description="How many huge pages should a node reserve, of which size, and what will it buy?",
        epilog="In a checkout: make setup, then .venv/bin/hugeplan. Start with: hugeplan plan --node this."
        " Exit status 74 of any command: its output could not be written whole (| head, >&-, or a full disk).",
    )
    parser.add_argument("--version", action=_ShowVersion)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=OneLineParser)
    chosen = next((word for word in given if not word.startswith("-")), None)
    for row in COMMANDS:
        subparser = commands.add_parser(row.name, help=row.summary, description=_sentence(row.summary))
        if row.name == chosen:
            module = load(row.module)
            module.add_arguments(subparser)
            if hasattr(module, "EPILOG"):
                subparser.epilog, subparser.formatter_class = module.EPILOG, argparse.RawDescriptionHelpFormatter
    return parser


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _complain(command: str, message: str, status: int) -> int:
    line = message.replace("\n", " ")
    with suppress(OSError):  # the status says it, too
        sys.stderr.write(f"hugeplan {command}: {line}\n")
        sys.stderr.flush()
    return status
