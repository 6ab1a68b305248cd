"""``hugeplan trial``: measure on this node what a page size gains, with this engine or program.

The servers are private ones beside the user's; page sizes take turns; everything is given back. The lock of
``hugeplan apply`` is held meanwhile, so that no plan changes the pools under the measurement. The pages themselves go
through the journal of temporary reservations: that of ``apply`` holds the way back of the plan in force and is not
touched.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

from hugeplan.cli import EXIT_FAILED, EXIT_INTERRUPTED, InputError
from hugeplan.cli.apply_journal import only_one
from hugeplan.cli.files import to_write
from hugeplan.cli.pool_files import PoolError
from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, MIB, DatabaseInstance
from hugeplan.planner.units import parse_jvm_bytes
from hugeplan.signals import handled

if TYPE_CHECKING:
    from hugeplan.cli.trial_document import About
    from hugeplan.measuring.program import Launch
    from hugeplan.measuring.trial import Measured, Subject

EXIT_TOO_NOISY: Final = 3
_FILES: Final = ("trial.json", "trial.svg", "trial.txt")
_PAGE_BYTES: Final = {"2M": 2 * MIB, "1G": GIB}
_BASE_NAMES: Final = frozenset({"4K", "16K", "64K", "base"})
_NO_SECRET: Final = re.compile(
    r"-jar|-Xm[nsx]\d+[kKmMgGtT]?|-XX:(?:[+-]\w+|\w+=\d+[kKmMgGtT]?)|[\w./-]+\.(?:jar|js|pl|py|rb|sh)", re.ASCII
)
EPILOG: Final = """\
exit status:
  0    measured: every page size that could be tried has an interval of at most 2 points
  1    failed, or the memory does not suffice; everything is given back, what was measured until then is written
  2    wrong input
  3    too noisy: an interval is wider, or equal pages differ from equal pages
  130  interrupted; what was measured until then is written

The result (trial.json, trial.svg, trial.txt) is written into --output. The schema is docs/trial.schema.json.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``trial``: a kind of subject, each with its own."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    server = kinds.add_parser("postgresql", help="a private PostgreSQL of this node's own programs")
    _like_a_server(server, bin_dir="the server's programs (default: the running server's)")
    server.add_argument("--script", metavar="FILE.sql", help="your pgbench script instead of lookups by key")
    server.add_argument("--schema", metavar="FILE.sql", help="tables for --script (default: pgbench's own)")
    _common(server, page_sizes="2M,4K")
    for engine, title, program in (("mariadb", "MariaDB", "mariadbd"), ("mysql", "MySQL", "mysqld")):
        sql = kinds.add_parser(engine, help=f"a private {title} of this node's own program, asked by sysbench")
        _like_a_server(sql, bin_dir=f"where {program} is (default: the running server's, else PATH)")
        _common(sql, page_sizes="2M,4K")
    command = kinds.add_parser("command", help="any program")
    command.add_argument("--base", required=True, metavar="CMD", help="the program on base pages")
    command.add_argument("--huge", metavar="CMD", help="the same on huge pages; without it, by --page-sizes and glibc")
    command.add_argument("--pages", type=int, default=0, metavar="N", help="huge pages to reserve for it")
    _program(command)
    _common(command, page_sizes="thp")
    jvm = kinds.add_parser("jvm", help="a Java program: hugeplan trial jvm -- java ... -jar app.jar")
    jvm.add_argument("command_line", nargs="+", metavar="java", help="java and its arguments, after --")
    jvm.add_argument("--pages", type=int, default=0, metavar="N", help="huge pages to reserve (default: from -Xmx)")
    _program(jvm)
    _common(jvm, page_sizes="2M,thp")


def _like_a_server(parser: argparse.ArgumentParser, bin_dir: str) -> None:
    parser.add_argument("--from", dest="plan", metavar="PLAN", help="measure like a database of this plan")
    parser.add_argument("--instance", metavar="NAME", help="which one; without --from, a server that runs here")
    parser.add_argument("--bin-dir", metavar="DIR", help=bin_dir)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of both servers")
    parser.add_argument("--data-gib", type=float, metavar="N", help="data of each server (default: up to 2, as fits)")
    parser.add_argument("--row-bytes", type=int, metavar="N", help="payload of a row (default: the workload's, or 128)")
    parser.add_argument("--clients", type=int, metavar="N", help="connections (default: the workload's, or 8)")


def _program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--metric", metavar="REGEX", help="the number that it prints; without it, wall time")
    parser.add_argument("--lower-is-better", action="store_true", help="the number is a time or a cost")
    parser.add_argument("--runs", type=int, default=2, metavar="N", help="pairs of runs per block (default 2)")


def _common(parser: argparse.ArgumentParser, page_sizes: str) -> None:
    parser.add_argument(
        "--page-sizes", default=page_sizes, metavar="LIST", help=f"of 2M, 1G, thp and 4K (default {page_sizes})"
    )
    parser.add_argument("--minutes", type=float, default=10.0, metavar="N", help="for all of them (default 10)")
    parser.add_argument("--priority", choices=("idle", "normal", "high"), default="idle", help="default: idle")
    parser.add_argument("--seed", type=int, help="of the order of places and turns (default: from the clock)")
    parser.add_argument("--output", metavar="DIR", help="folder of the result (default: hugeplan-trial-DATE-ID)")
    parser.add_argument("--work-dir", metavar="DIR", help="for the servers' files (default: /var/tmp/hugeplan-trial)")
    parser.add_argument("--json", action="store_true", help="print the document instead of the table")
    parser.add_argument("--to", metavar="URL", help="post the result to this hugeplan service")
    parser.add_argument("--token-file", metavar="FILE", help="of an agent or planner (default: HUGEPLAN_TOKEN)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, write the result, and post it where asked to. The exit status is in the help."""
    arms = _arms(arguments)
    if not 0.05 <= arguments.minutes <= 24 * 60:
        raise InputError(f"--minutes {arguments.minutes:g}: give 0.05 to 1440")
    for name in _FILES if arguments.output else ():
        to_write(Path(arguments.output, name))
    try:
        from hugeplan_agent.ownership import as_owner_of  # noqa: PLC0415 - an optional distribution

        from hugeplan.measuring.trial import TrialError  # noqa: PLC0415 - needs it, too
    except ImportError as error:
        raise InputError("this command needs hugeplan-agent beside hugeplan (its extra is hugeplan[node])") from error
    try:
        with suppress(FileNotFoundError), as_owner_of(Path(arguments.output or ".")):  # before minutes of measuring
            pass
    except OSError as error:
        raise InputError(f"--output {arguments.output or '.'}: {error.strerror}") from error
    try:
        with only_one(Path("/")) if os.geteuid() == 0 else nullcontext():
            measured, about = _measured(arguments, arms)
    except (TrialError, PoolError, OSError) as error:
        sys.stderr.write(f"hugeplan trial: {error}\n")
        return EXIT_FAILED
    if measured.stopped == "interrupted" and not any(arm.blocks for arm in measured.arms):
        sys.stderr.write("hugeplan trial: interrupted before a block was measured: there is nothing to write\n")
        return EXIT_INTERRUPTED
    if measured.failure is not None:
        sys.stderr.write(f"hugeplan trial: {measured.failure}; what was measured until then counts\n")
    from hugeplan.cli.trial_document import written  # noqa: PLC0415 - pydantic, not needed for what failed

    document = written(arguments, measured, about)
    if arguments.to is not None:
        from hugeplan.cli.service_client import post  # noqa: PLC0415

        print(post(arguments.to, document, arguments.token_file), file=sys.stderr)
    if measured.stopped == "interrupted":
        return EXIT_INTERRUPTED if measured.failure is None else EXIT_FAILED
    tried = [arm for arm in measured.arms if arm.blocks and arm.name != "equal"]
    usable = all(measured.is_usable(arm) for arm in tried) and not measured.noise_refutes()
    return 0 if usable else EXIT_TOO_NOISY


def _arms(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Page sizes to compare with base pages; base pages themselves are always measured."""
    if getattr(arguments, "huge", None):
        return ("huge",)
    words = [word.strip() for word in arguments.page_sizes.split(",") if word.strip()]
    known = {"2m": "2M", "1g": "1G", "thp": "thp"}
    for word in words:
        if word.lower() not in known and word not in _BASE_NAMES:
            raise InputError(f"--page-sizes {word}: give a list of 2M, 1G, thp and 4K")
    return tuple(dict.fromkeys(known[word.lower()] for word in words if word.lower() in known))


def _measured(arguments: argparse.Namespace, arms: tuple[str, ...]) -> tuple[Measured, About]:
    from hugeplan.measuring.trial import Limits  # noqa: PLC0415
    from hugeplan.measuring.trial import run as measure  # noqa: PLC0415
    from hugeplan.measuring.workplace import DEFAULT_PARENT, workplace  # noqa: PLC0415

    parent = Path(arguments.work_dir) if arguments.work_dir else DEFAULT_PARENT
    say, started = _say(arguments), datetime.now(UTC)
    seed = arguments.seed if arguments.seed is not None else int(started.timestamp())
    make = {"postgresql": _server, "mariadb": _server, "mysql": _server, "command": _command, "jvm": _jvm}[
        arguments.kind
    ]
    prepared = make(arguments, arms)  # wrong input is said before anything is made
    with (
        handled(_interrupt, (signal.SIGTERM, signal.SIGHUP)),
        workplace(parent, say) as folder,
        _priority(arguments.priority),
    ):
        subject, about = prepared(folder, say)
        measured = measure(subject, arms, Limits(60.0 * arguments.minutes), seed=seed, say=say)
        return measured, about(started, seed)


Prepared = Callable[[Path, Callable[[str], None]], tuple["Subject", Callable[[datetime, int], "About"]]]


def _server(arguments: argparse.Namespace, arms: tuple[str, ...]) -> Prepared:
    from hugeplan.cli.trial_servers import prepared  # noqa: PLC0415 - needs the agent's distribution

    return prepared(arguments, arms)


def _command(arguments: argparse.Namespace, arms: tuple[str, ...]) -> Prepared:
    from hugeplan.measuring.program import Launch  # noqa: PLC0415
    from hugeplan.measuring.trial import EQUAL  # noqa: PLC0415

    environment, words = _words(arguments.base, "--base")
    if arguments.huge:
        own, huge = _words(arguments.huge, "--huge")
        launches = {
            EQUAL: Launch(command=words, environment=environment, thp=False),
            "huge": Launch(
                command=huge, environment=own, page_bytes=2 * MIB if arguments.pages else None, pages=arguments.pages
            ),
        }
    else:
        launches = {EQUAL: Launch(command=words, environment=environment, thp=False)}
        for arm in arms:
            if arm == "1G":
                raise InputError("--page-sizes 1G: glibc takes the default huge page size alone; give --huge CMD")
            tunable = f"glibc.malloc.hugetlb={1 if arm == 'thp' else 2}"
            launches[arm] = Launch(
                command=words,
                environment=environment | {"GLIBC_TUNABLES": tunable},
                page_bytes=_PAGE_BYTES.get(arm),
                pages=arguments.pages if arm in _PAGE_BYTES else 0,
            )
            if arm in _PAGE_BYTES and not arguments.pages:
                raise InputError("--page-sizes 2M: say how many huge pages the program may take, by --pages N")
    return _program_trial(arguments, launches, "command", _shown(environment, words))


def _jvm(arguments: argparse.Namespace, arms: tuple[str, ...]) -> Prepared:
    from hugeplan.measuring.program import Launch, java_flags  # noqa: PLC0415
    from hugeplan.measuring.trial import EQUAL  # noqa: PLC0415

    words = arguments.command_line
    variables = {name: os.environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")}
    for word in (*words, *" ".join(variables.values()).split()):
        if re.fullmatch(r"-XX:[+-]Use(TransparentHugePages|HugeTLBFS|SHM)", word):
            raise InputError(f"{word}: leave it out, the trial itself says which kind of pages the JVM takes")
    launches = {
        arm: Launch(
            command=tuple(words),
            # It is read after the command line and the files that this names.
            environment={"_JAVA_OPTIONS": f"{variables['_JAVA_OPTIONS']} {java_flags(arm)}".strip()},
            thp=arm != EQUAL,
            page_bytes=_PAGE_BYTES.get(arm),
            pages=(arguments.pages or _java_pages(words, _PAGE_BYTES[arm])) if arm in _PAGE_BYTES else 0,
            heap_bytes=_java_heap(words) if arm in _PAGE_BYTES else 0,
        )
        for arm in (EQUAL, *arms)
    }
    return _program_trial(arguments, launches, "jvm", _shown((), words))


def _java_heap(words: Sequence[str]) -> int:
    """Bytes of heap that the JVM maps at its start; 0 where that is not known, as of ZGC, whose heap grows."""
    heap = next((word[4:] for word in reversed(words) if word.startswith("-Xmx")), None)
    with suppress(PlannerError):
        return 0 if heap is None or "-XX:+UseZGC" in words else parse_jvm_bytes(heap, "Xmx")
    return 0


def _java_pages(words: Sequence[str], page_bytes: int) -> int:
    """Pages for the heap, the code cache and the collector's tables. InputError where no -Xmx says the heap."""
    heap = next((word[4:] for word in reversed(words) if word.startswith("-Xmx")), None)
    if heap is None:
        raise InputError("give java an -Xmx, or say by --pages N how many huge pages it may take")
    collector = next((m[1] for word in words if (m := re.fullmatch(r"-XX:\+Use(\w+)GC", word))), "G1")
    try:
        instance = DatabaseInstance(name="trial", engine="jvm", settings={"Xmx": heap, "gc": collector})
        demand = demand_of(instance, page_bytes, DemandContext())
    except PlannerError as error:
        raise InputError(f"-Xmx{heap}: {error}; say by --pages N how many huge pages it may take") from error
    return demand.pages + demand.error_pages + 8


def _shown(names: Iterable[str], words: Sequence[str]) -> str:
    """A command without what may be a secret in it: others read the document."""
    kept = (word if _NO_SECRET.fullmatch(word) else "..." for word in words[1:])
    return " ".join(word for word, _ in groupby([*(f"{name}=..." for name in names), shlex.quote(words[0]), *kept]))


def _program_trial(arguments: argparse.Namespace, launches: Mapping[str, Launch], engine: str, shown: str) -> Prepared:
    from hugeplan.cli.trial_document import About  # noqa: PLC0415
    from hugeplan.cli.trial_shape import whole  # noqa: PLC0415
    from hugeplan.documents.trial import TrialShape  # noqa: PLC0415
    from hugeplan.measuring.program import Metric, ProgramSubject  # noqa: PLC0415

    metric = None
    if arguments.metric:
        try:
            pattern = re.compile(arguments.metric, re.MULTILINE)
        except re.error as error:
            raise InputError(f"--metric {arguments.metric}: {error}") from error
        if pattern.groups != 1:
            raise InputError(f"--metric {arguments.metric}: give one group, around the number: 'score: ([0-9.]+)'")
        metric = Metric(pattern=pattern, lower_is_better=arguments.lower_is_better)
    runs = whole(arguments.runs, 2, "--runs", 1, 200)

    def prepared(folder: Path, _: Callable[[str], None]) -> tuple[Subject, Callable[[datetime, int], About]]:
        subject = ProgramSubject(launches, folder, metric, pairs_per_block=runs)
        shape = TrialShape(operation_class="program", base_command=shown[:2000])
        return subject, lambda started, seed: About(engine, None, shape, started, seed)

    return prepared


def _words(text: str, option: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """A command line as words, with the NAME=VALUE in front of it as its environment."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error
    environment: dict[str, str] = {}
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if not words:
        raise InputError(f"{option} {text!r}: give a program")
    return environment, tuple(words)


def _say(arguments: argparse.Namespace) -> Callable[[str], None]:
    begin = datetime.now(UTC)

    def say(line: str) -> None:
        passed = (datetime.now(UTC) - begin).total_seconds()
        sys.stderr.write(f"[{passed:5.0f} s of {60 * arguments.minutes:.0f}] {line}\n")
        sys.stderr.flush()

    return say


@contextmanager
def _priority(name: str) -> Iterator[None]:
    """Idle: the kernel runs the trial, and reads files for it, only when nobody else wants to. Programs inherit it."""
    if name == "idle":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    elif name == "high":
        try:
            os.setpriority(os.PRIO_PROCESS, 0, -10)
        except PermissionError as error:
            raise InputError("--priority high needs root") from error
    try:
        yield
    finally:
        # At normal priority, giving everything back does not wait until nobody else runs.
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    """SIGTERM and SIGHUP end a trial as Ctrl-C does."""
    raise KeyboardInterrupt(signal.Signals(number).name)
