"""The command ``hugeplan-agent``. Exit status: 0 done, 1 failed, 2 wrong usage, 128 + N ended by signal N."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from hugeplan_agent import __version__, machine
from hugeplan_agent.config import (
    NODE_OPTIONS,
    RUN_OPTIONS,
    SEND_OPTIONS,
    SPOOL_OPTIONS,
    Config,
    add_options,
    resolve,
)
from hugeplan_agent.errors import AgentError, ConfigurationError
from hugeplan_agent.host import Host
from hugeplan_agent.sender import Outcome, Sender
from hugeplan_agent.service import Agent, Log, make_sender
from hugeplan_agent.spool import Spool

ENROL_PATH = "/api/v1/tokens/enrol"


def parser() -> argparse.ArgumentParser:
    """The command line; every setting can also be given as a variable."""
    top = argparse.ArgumentParser(
        prog="hugeplan-agent",
        description="Observes this node, measures it with tlbbench, and sends what it saw to a hugeplan server.",
    )
    top.add_argument("--version", action="version", version=f"hugeplan-agent {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    once = commands.add_parser("once", help="observe once, send, and end")
    add_options(once, (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS))
    once.add_argument("--dry-run", action="store_true", help="print the report and send nothing")

    run = commands.add_parser("run", help="observe and send until stopped")
    add_options(run, (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS, *RUN_OPTIONS))

    spool = commands.add_parser("spool", help="look at the waiting reports")
    actions = spool.add_subparsers(dest="action", required=True, metavar="ACTION")
    status = actions.add_parser("status", help="count waiting, refused and dropped reports")
    add_options(status, SPOOL_OPTIONS)
    status.add_argument("--json", action="store_true", help="print JSON")

    enroll = commands.add_parser("enroll", help="exchange an enrolment token for this node's own agent token")
    add_options(enroll, (*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS[:2]))
    enroll.add_argument("--enrolment-token-file", required=True, metavar="FILE", help="file with the enrolment token")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a known error becomes one line."""
    given = parser().parse_args(arguments)
    try:
        config = resolve(vars(given), os.environ)
        command = {"once": once, "run": run, "spool": spool_status, "enroll": enroll}[given.command]
        return command(config, given)
    except ConfigurationError as error:
        print(f"hugeplan-agent: {error}", file=sys.stderr)
        return 2
    except AgentError as error:
        print(f"hugeplan-agent: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output went away; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


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
    if sender is None:
        print(json.dumps(agent.build_report(config.measure), indent=2))
        return 0
    entry, made = agent.observe(config.measure)
    if stop.event.is_set():
        print(f"hugeplan-agent: stopped; report {entry.report_id} waits in {agent.spool.pending}", file=sys.stderr)
        return 128 + stop.number
    done = agent.send(sender)
    if done.busy:
        print("hugeplan-agent: another process is sending from this spool; it takes this report too", file=sys.stderr)
    failed = [result for result in made["collectors"] if result["status"] == "failed"]
    for result in failed:
        print(f"hugeplan-agent: {result['name']} failed: {result['reason']}", file=sys.stderr)
    was_asked_for_run = config.measure != "none"
    delivered = any(answer.document.get("report_id") == entry.report_id for answer in done.delivered)
    if delivered:
        what = "a sample and a run" if made["run"] else "a sample"
        print(f"report {entry.report_id} with {what} of {made['node_name']} is at {config.server}")
    return 0 if (delivered or done.busy) and not (was_asked_for_run and made["run"] is None) else 1


def run(config: Config, given: argparse.Namespace) -> int:
    """Observe and send at intervals until a signal."""
    del given
    stop = Stop()
    log = Log()
    agent = Agent(config, log, stop.event)
    sender = make_sender(config)
    log.line(f"observing every {config.interval_seconds:g} s, sending to {sender.server}, spool {config.spool_dir}")
    agent.run(sender)
    log.line(f"stopped by signal {stop.number}; {len(agent.spool.entries())} reports wait")
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


def enroll(config: Config, given: argparse.Namespace) -> int:
    """Ask the server for this node's own token and keep it in the token file (mode 0600)."""
    if config.token_file is None:
        raise ConfigurationError("--token-file is missing: give the file where this node's agent token is to be kept")
    asking = make_sender(replace(config, token_file=Path(given.enrolment_token_file)))
    token = request_token(asking, config)
    write_token(config.token_file, token)
    print(f"the agent token of this node is in {config.token_file}")
    return 0


def request_token(asking: Sender, config: Config) -> str:
    """Exchange the enrolment token. Raises AgentError with the server's words."""
    host = Host(config.root)
    Spool(config.spool_dir, config.bounds)
    body = {
        "machine_id": machine.machine_id(host, config.spool_dir),
        "node_name": machine.node_name(host, config.node_name),
    }
    answer = asking.post(ENROL_PATH, json.dumps(body).encode())
    token = answer.document.get("token")
    if answer.outcome is not Outcome.DELIVERED or not isinstance(token, str):
        raise AgentError(f"the server gave no agent token ({answer.detail})")
    return token


def write_token(path: Path, token: str) -> None:
    """Write the token so that nobody else can read it at any moment. Raises AgentError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise AgentError(f"{path} cannot be written: {error.strerror}") from error
