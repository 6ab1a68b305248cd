"""The command ``hugeplan-agent``.

Exit status: 0 done, 1 failed, 2 wrong usage, 74 the output could not be written whole, 128 + N ended by signal N.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from hugeplan_agent import __version__, health
from hugeplan_agent.config import (
    NODE_OPTIONS,
    RUN_OPTIONS,
    SEND_OPTIONS,
    SPOOL_OPTIONS,
    Config,
    add_options,
    resolve,
    unknown_variables,
    with_system_settings,
)
from hugeplan_agent.doctor import WRONG
from hugeplan_agent.doctor import checks as doctor_checks
from hugeplan_agent.enrolment import check_server_and_token, enrol, make_sender
from hugeplan_agent.errors import AgentError, ConfigurationError
from hugeplan_agent.idle import why_busy
from hugeplan_agent.notify import notify
from hugeplan_agent.printable import printable
from hugeplan_agent.privileges import step_down
from hugeplan_agent.service import Agent, Log
from hugeplan_agent.spool import Spool

ONCE_SENDING_SECONDS = 300.0
"""What waits of a week is sent in a minute; a server that takes it slowly holds no command for good."""
EXIT_OUTPUT = 74
"""The reader of the output has ended (``| head``), or the disk is full. As EX_IOERR, and as hugeplan has it."""


class Parser(argparse.ArgumentParser):
    """Help that cannot be written is an error; argparse would say nothing and end with status 0."""

    def _print_message(self, message: str, file: Any = None) -> None:
        out = sys.stderr if file is None else file
        out.write(message)
        out.flush()


def parser() -> argparse.ArgumentParser:
    """The command line; every setting can also be given as a variable."""
    top = Parser(
        prog="hugeplan-agent",
        description="Observes this node, measures it with tlbbench, and sends what it saw to a hugeplan server.",
    )
    top.add_argument("--version", action="version", version=f"hugeplan-agent {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    once = commands.add_parser("once", help="observe once, send, and end")
    add_options(once, (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS))
    once.add_argument(
        "--when-due",
        action="store_true",
        help="do nothing unless a benchmark is due (boot, processor, kernel, 30 days) and the node is idle",
    )
    once.add_argument("--dry-run", action="store_true", help="print the report and send nothing")

    observe = commands.add_parser("observe", help="print the report of this node; nothing is sent or kept")
    add_options(observe, (*SPOOL_OPTIONS[:1], *NODE_OPTIONS))

    for name, words in (
        ("run", "observe and send until stopped"),
        ("daemon", "the same under a service manager: says what is missing and waits for it"),
    ):
        loop = commands.add_parser(name, help=words)
        add_options(loop, (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS, *RUN_OPTIONS))

    doctor = commands.add_parser("doctor", help="check what works here and say what would help")
    add_options(doctor, (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS))

    probe = commands.add_parser("health", help="whether the running agent of this machine works, for probes")
    probe.add_argument("what", nargs="?", choices=("live", "ready"), default="ready", help="default: ready")
    add_options(probe, SPOOL_OPTIONS[:1])

    spool = commands.add_parser("spool", help="show the waiting reports")
    actions = spool.add_subparsers(dest="action", required=True, metavar="ACTION")
    status = actions.add_parser("status", help="count waiting, refused and dropped reports")
    add_options(status, SPOOL_OPTIONS)
    status.add_argument("--json", action="store_true", help="print JSON")

    enroll = commands.add_parser(
        "enrol", aliases=["enroll"], help="exchange an enrolment token for this node's own agent token"
    )
    add_options(enroll, (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS[:2]))
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a known error becomes one line."""
    try:
        given = parser().parse_args(arguments)
        config = resolve(vars(given), with_system_settings(os.environ))
        if given.command in AS_SERVICE_USER:
            config = step_down(config, as_daemon=given.command == "doctor")
        status = COMMANDS[given.command](config, given)
        sys.stdout.flush()
        return status
    except ConfigurationError as error:
        print(f"hugeplan-agent: {printable(str(error), 2000)}", file=sys.stderr)
        return 2
    except AgentError as error:
        print(f"hugeplan-agent: {printable(str(error), 2000)}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        # The reader of our output went away, or the disk is full; what is left has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            print(f"hugeplan-agent: the output could not be written: {error.strerror}", file=sys.stderr)
        return EXIT_OUTPUT


class Stop:
    """Turns the first SIGTERM, SIGINT or SIGHUP into an event, and a second one into an immediate end."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.number = 0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.event.is_set():
            raise SystemExit(128 + number)
        self.number = number
        self.event.set()


def once(config: Config, given: argparse.Namespace) -> int:
    """Observe, put the report into the spool, send everything that waits."""
    stop = Stop()
    sender = None if given.dry_run else make_sender(config)
    agent = Agent(config, Log(), stop.event)
    measure = config.measure
    if given.when_due:
        reason = why_busy(agent.host, stop.event.wait) if agent.is_measurement_due() else "no benchmark is due"
        if reason is not None:
            print(f"hugeplan-agent: nothing was done: {reason}", file=sys.stderr)
            return 0
    if sender is None:
        print(json.dumps(agent.build_report(measure), indent=2))
        return 0
    entry, made = agent.observe(measure)
    if stop.event.is_set():
        print(f"hugeplan-agent: stopped; report {entry.report_id} waits in {agent.spool.pending}", file=sys.stderr)
        return 128 + stop.number
    done = agent.send(sender, time.monotonic() + ONCE_SENDING_SECONDS)
    if done.busy:
        print("hugeplan-agent: another process is sending from this spool; it takes this report too", file=sys.stderr)
    failed = [result for result in made["collectors"] if result["status"] == "failed"]
    for result in failed:
        print(f"hugeplan-agent: {result['name']} failed: {printable(result['reason'])}", file=sys.stderr)
    was_asked_for_run = measure != "none"
    delivered = entry.report_id in done.delivered
    if delivered:
        what = "a sample and a run" if made["run"] else "a sample"
        print(f"report {entry.report_id} with {what} of {made['node_name']} is at {config.server}")
    elif done.is_complete:
        print(f"hugeplan-agent: report {entry.report_id} waits with others in {agent.spool.pending}", file=sys.stderr)
    return 0 if (delivered or done.busy) and not (was_asked_for_run and made["run"] is None) else 1


def observe(config: Config, given: argparse.Namespace) -> int:
    """Print the report that would be sent. Needs no server, no token and no spool."""
    del given
    stop = Stop()
    with ExitStack() as cleanup:
        if not config.spool_dir.is_dir():
            # A machine id may have to be made; without the agent's own folder it is of this observation only.
            folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="hugeplan-agent-"))
            config = replace(config, spool_dir=Path(folder))
        print(json.dumps(Agent(config, Log(), stop.event).build_report(config.measure), indent=2))
    return 0


def doctor(config: Config, given: argparse.Namespace) -> int:
    """Print one line per check; the status is 1 when something is wrong."""
    del given
    found = []
    for check in doctor_checks(config):
        found.append(check)
        print(f"{check.state:<6}{check.subject:<16} {printable(check.words, 2000)}", flush=True)
    return 1 if any(check.state == WRONG for check in found) else 0


def run(config: Config, given: argparse.Namespace) -> int:
    """Observe and send at intervals until a signal. ``daemon`` says what is missing and waits for it."""
    stop = Stop()
    log = Log()
    agent = Agent(config, log, stop.event)
    if given.command == "run":
        check_server_and_token(config)
    for text in unknown_variables(os.environ):
        log.line(f"warning: {text}")
    notify("READY=1")
    log.line(f"observing every {config.interval_seconds:g} s, sending to {config.server}, spool {config.spool_dir}")
    agent.run()
    log.line(f"stopped by signal {stop.number}; {agent.waiting()} reports wait")
    return 0


def spool_status(config: Config, given: argparse.Namespace) -> int:
    """Print what waits, what was refused, what was dropped."""
    if not config.spool_dir.is_dir():
        raise ConfigurationError(f"--spool-dir: {config.spool_dir} does not exist")
    summary = Spool(config.spool_dir, config.bounds).summary()
    if given.json:
        print(json.dumps(summary))
    else:
        width = max(map(len, summary))
        for name, count in summary.items():
            print(f"{name.replace('_', ' '):<{width}} {count:>12,}")
    return 0


def enrol_node(config: Config, given: argparse.Namespace) -> int:
    """Ask the server for this node's own token and keep it in the token file (mode 0600)."""
    del given
    enrol(config)
    print(f"the agent token of this node is in {config.token_file}")
    return 0


def say_health(config: Config, given: argparse.Namespace) -> int:
    """Print one sentence; the status is 1 when the loop hangs, or no report has reached the server for minutes."""
    return health.main([given.what], str(config.spool_dir))


AS_SERVICE_USER = frozenset({"enrol", "enroll", "doctor", "spool", "health"})
"""Commands about the service's folder: root runs them as the service's own user, who must be able to use it."""

COMMANDS: Mapping[str, Callable[[Config, argparse.Namespace], int]] = {
    "observe": observe,
    "once": once,
    "run": run,
    "daemon": run,
    "doctor": doctor,
    "spool": spool_status,
    "health": say_health,
    "enrol": enrol_node,
    "enroll": enrol_node,
}
