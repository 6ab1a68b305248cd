"""What the agent does: observe once, or again and again, and hand over what it saw."""

from __future__ import annotations

import hashlib
import math
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, BinaryIO

from hugeplan_agent import health, machine, report, tlbbench
from hugeplan_agent.apart import Apart
from hugeplan_agent.backoff import delay_seconds
from hugeplan_agent.config import Config
from hugeplan_agent.delivery import Pass, deliver
from hugeplan_agent.enrolment import (
    ENROL,
    EnrolmentError,
    current_token,
    enrol,
    has_enrolment_token,
    make_sender,
    must_enrol,
)
from hugeplan_agent.errors import AgentError, ConfigurationError, MeasureError, SpoolError
from hugeplan_agent.host import Host
from hugeplan_agent.idle import why_booting, why_busy
from hugeplan_agent.notify import notify, watchdog_seconds
from hugeplan_agent.printable import printable
from hugeplan_agent.sender import Answer, Outcome, Sender
from hugeplan_agent.spool import Entry, Spool, read_small_json
from hugeplan_agent.walk_counters import WalkCounters

RETRY_MEASURE_SECONDS = 3600.0
"""After a benchmark that gave no document: the reason may pass, but a loop of failures must not load the node."""

LEAST_SENDING_SECONDS = 5.0
"""A server that is slow, and takes what waits one by one, holds up the next sample no longer."""
BUSY = Answer(Outcome.UNAVAILABLE, "another process is sending from this spool")

SAME_LINE_SECONDS = 600.0
UNAUTHORIZED = 401
NOT_ENROLLED = (
    "this node is not enrolled: there is no token in {}. Run: hugeplan-agent enrol --enrolment-token-file FILE,"
    " or write an enrolment token to /etc/hugeplan/enrolment-token. Reports wait meanwhile; no restart is needed"
)
MAX_CLOCK_OFFSET_SECONDS = 60.0


class Log:
    """Lines on standard error; the same line again is printed every ten minutes only."""

    def __init__(self, write: Callable[[str], object] = lambda line: print(line, file=sys.stderr, flush=True)) -> None:
        self._write = write
        self._last: dict[str, float] = {}

    def line(self, text: str) -> None:
        now = time.monotonic()
        if now - self._last.get(text, -SAME_LINE_SECONDS) < SAME_LINE_SECONDS:
            return
        if len(self._last) > 200:  # texts carry numbers; do not keep them for ever
            self._last.clear()
        self._last[text] = now
        self._write(f"hugeplan-agent: {printable(text, 2000)}")


@dataclass
class Agent:
    """One node's agent. ``stop`` is set by a signal."""

    config: Config
    log: Log
    stop: threading.Event

    def __post_init__(self) -> None:
        self.host = Host(self.config.root)
        self._apart = Apart(self.config.root, is_stopped=self.stop.is_set)
        self.spool = Spool(self.config.spool_dir, self.config.bounds)
        self._sender: Sender | None = None
        self._refused_token: str | None = None
        self._walks: WalkCounters | None = None
        self._held: BinaryIO | None = None
        self._health: dict[str, Any] = {
            health.HELD: True,
            "started_at": health.now(),
            "interval_seconds": self.config.interval_seconds,
            "measure_limit_seconds": self.config.measure_limit_seconds,
        }

    def build_report(self, profile: str) -> dict[str, Any]:
        """Observe the node, measure it when a profile other than ``none`` is given, and make the report."""
        if not self.config.root.is_dir():
            raise ConfigurationError(f"--root: {self.config.root} is not a folder")
        document, outcome = self._measure(profile)
        collected = self._apart.collect(self.host)
        if self._walks is not None:
            counted = self._walks.add(collected.sample.get("databases") or [])
            if counted is not None and counted["status"] != "failed":  # a fault of one server says nothing of the right
                self._health["counting"] = counted
        if outcome is not None:
            collected.results.append(outcome)
        identity = report.Identity(
            machine.machine_id(self.host, self.config.spool_dir),
            machine.node_name(self.host, self.config.node_name),
        )
        return report.build(
            collected,
            identity,
            now=datetime.now(timezone.utc),
            run=document,
            spool=self.spool.summary(),
            hypervisor=self._last_measurement().get("hypervisor"),
        )

    def observe(self, profile: str) -> tuple[Entry, dict[str, Any]]:
        """Build a report and put it into the spool."""
        made = self.build_report(profile)
        return self.spool.add(made, time.time_ns() // 1_000_000), made

    def _measure(self, profile: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The benchmark's document and its line among the collectors; both None when nothing was asked for."""
        if profile == "none":
            return None, None
        started = time.perf_counter()
        document: dict[str, Any] | None = None
        status, reason = "ok", None
        try:
            program = tlbbench.find(self.config.tlbbench)
            result = tlbbench.measure(program, profile, self.config.measure_limit_seconds, self.stop.is_set)
            document, reason = result.document, result.note
        except MeasureError as error:
            status, reason = "failed", str(error)
            self.log.line(str(error))
        seconds = round(time.perf_counter() - started, 3)
        self._remember_measurement(document, reason)
        return document, {"name": "tlbbench", "status": status, "duration_seconds": seconds, "reason": reason}

    def send(self, sender: Sender, until: float = math.inf) -> Pass:
        """Send what waits, the last of it begun before the moment ``until``, and say what became of it."""

        def should_stop() -> bool:
            notify("WATCHDOG=1")
            return self.stop.is_set() or time.monotonic() >= until

        try:
            done = deliver(self.spool, sender.send_report, should_stop)
        finally:
            sender.close()  # ten thousand agents must not hold ten thousand idle connections
        for report_id, why in done.rejected:
            self.log.line(f"the server refused report {report_id} ({why}); it is kept in {self.spool.rejected}")
        if done.stopped_by is not None:
            words = f"{explain(done.stopped_by.outcome)} ({done.stopped_by.detail})"
            self.log.line(f"{words}; {self.waiting()} reports wait")
        return done

    def run(self) -> None:
        """Sample and send until told to stop; asks for a token first when there is none."""
        failures = 0
        is_first = True
        if self.config.count_walks_every_seconds > 0:
            every = max(self.config.count_walks_every_seconds, self.config.interval_seconds)
            self._walks = WalkCounters(self.config.tlbbench, every, self.stop.is_set, self.host)
        next_sample = next_send = time.monotonic()
        credentials = self._credentials_stamp()
        while not self.stop.is_set():
            now = time.monotonic()
            if credentials != (credentials := self._credentials_stamp()):
                next_send = now  # somebody mended what stood in the way: do not wait out the backoff
            if now >= next_sample:
                wants_run = self.is_measurement_due()
                # The first report is a mere sample: a new node shows up at once, not after a benchmark.
                may_measure = wants_run and not is_first and self._is_time_to_measure()
                if not self.stop.is_set():
                    self._observe_or_say(self.config.measure if may_measure else "none")
                if not (wants_run and is_first):
                    next_sample = next_tick(next_sample, self.config.interval_seconds, time.monotonic())
                is_first = False
            if time.monotonic() >= next_send and not self.stop.is_set() and self.waiting():
                sender, blocked = self._connect()
                if sender is not None:
                    until = max(next_sample, time.monotonic() + LEAST_SENDING_SECONDS)
                    try:
                        done = self.send(sender, until)
                        blocked = BUSY if done.busy else done.stopped_by
                    except (SpoolError, OSError) as error:
                        self.log.line(str(error))
                        blocked = Answer(Outcome.UNAVAILABLE, str(error))
                    self.say_when_clocks_differ(sender)
                    is_refused = blocked is not None and blocked.status == UNAUTHORIZED
                    self._refused_token = sender.token if is_refused else None
                again = f" Run: {ENROL}" if blocked is not None and blocked.status == UNAUTHORIZED else ""
                self._health["why"] = None if blocked is None else f"{blocked.detail}{again}"
                if blocked is None:
                    self._health["delivered_at"] = health.now()
                    failures, next_send = 0, 0.0
                else:
                    failures += 1
                    wait = delay_seconds(failures, blocked.retry_after_seconds, random.uniform)
                    next_send = time.monotonic() + wait
            if self._walks is not None and "counting" not in self._health and not self.stop.is_set():
                # For the doctor, who has not the service's capabilities when root calls it; after the first report.
                self._health["counting"] = self._walks.trial()
            self._rest(next_sample, next_send or next_sample)

    def waiting(self) -> int:
        """How many reports wait. None are known of while the spool cannot be used, which must not end the agent."""
        try:
            return len(self.spool.entries())
        except (SpoolError, OSError) as error:
            self.log.line(str(error))
            return 0

    def _rest(self, next_sample: float, next_send: float) -> None:
        """Wait for the next thing to do, telling the service manager now and then that all is well."""
        why = self._health.get("why")
        waiting = self.waiting()
        until = min(next_sample, next_send) if waiting else next_sample
        notify("WATCHDOG=1", f"STATUS={waiting} reports wait" + (f": {why}" if why else ""))
        self._write_health()
        beat_seconds = watchdog_seconds() or math.inf
        while not self.stop.is_set() and (left := until - time.monotonic()) > 0:
            self.stop.wait(min(left, beat_seconds))
            notify("WATCHDOG=1")

    def _credentials_stamp(self) -> tuple[int | None, ...]:
        """Changes when a token is written, made or removed."""
        found: list[int | None] = []
        for path in (self.config.token_file, self.config.enrolment_token_file):
            try:
                found.append(path.stat().st_mtime_ns)
            except OSError:
                found.append(None)
        return tuple(found)

    def _write_health(self) -> None:
        """For probes (hugeplan_agent.health). A full disk must not end the agent."""
        self._health["round_at"] = health.now()
        with suppress(SpoolError):
            former, self._held = self._held, self.spool.hold(health.FILE, self._health)
            if former is not None:
                former.close()

    def _is_time_to_measure(self) -> bool:
        """Whether the window is open and the node is idle; says why not."""
        window = self.config.measure_window
        if window is not None and not window.holds(datetime.now()):  # noqa: DTZ005 - an operator's local time of day
            return False
        reason = why_booting(self.host) if self.config.measure_busy else why_busy(self.host, self.stop.wait)
        if reason is not None:
            self.log.line(f"the benchmark waits for an idle node: {reason}")
        return reason is None

    def say_when_clocks_differ(self, sender: Sender) -> None:
        """A sample's time is this machine's: a wrong clock puts it into a wrong place of the node's history."""
        offset = sender.clock_offset_seconds
        if offset is not None and abs(offset) > MAX_CLOCK_OFFSET_SECONDS:
            ahead = "behind" if offset > 0 else "ahead of"
            self.log.line(f"this machine's clock is {abs(offset):.0f} s {ahead} the server's")

    def _connect(self) -> tuple[Sender | None, Answer | None]:
        """A sender with the token that stands in the file now, enrolling first when there is none yet.

        Else the answer that stood in the way. The token is read each time, so that a new one needs no restart.
        """
        config = self.config
        try:
            if must_enrol(config, self._refused_token):
                enrol(config)
                self.log.line(f"enrolled; the agent token is in {config.token_file}")
            elif not config.token_file.exists() and config.server is not None and not has_enrolment_token(config):
                raise ConfigurationError(NOT_ENROLLED.format(config.token_file))
            if self._sender is None:
                self._sender = make_sender(config)
            else:
                self._sender.token = current_token(config)
            return self._sender, None
        except EnrolmentError as error:
            self.log.line(str(error))
            return None, error.answer
        except AgentError as error:
            self.log.line(str(error))
            return None, Answer(Outcome.UNAVAILABLE, str(error))

    def _observe_or_say(self, profile: str) -> None:
        try:
            self.observe(profile)
        except (AgentError, OSError) as error:
            self.log.line(str(error))

    def is_measurement_due(self) -> bool:
        """True when a profile is configured and this boot has no fresh measurement."""
        if self.config.measure == "none":
            return False
        last = self._last_measurement()
        if last.get("profile") != self.config.measure or last.get("machine") != self._machine():
            return True
        finished_at = last.get("finished_at_seconds")
        age_seconds = time.time() - (finished_at if isinstance(finished_at, (int, float)) else 0.0)
        limit_seconds = self.config.measure_every_seconds if last.get("has_document") else RETRY_MEASURE_SECONDS
        return not 0 <= age_seconds < limit_seconds

    def _last_measurement(self) -> dict[str, Any]:
        """What is remembered of the last measurement since this boot; empty when there was none."""
        last = read_small_json(self.config.spool_dir / "measured.json")
        if last.get("boot_id") != machine.boot_id(self.host):
            return {}
        return last

    def _machine(self) -> str:
        """What a measurement holds for: processor, memory and kernel, as they are now."""
        cpu = self.host.read_optional("proc/cpuinfo") or ""
        model = "\n".join(line for line in cpu.splitlines() if line.startswith(("model name", "CPU part", "microcode")))
        online = self.host.read_optional("sys/devices/system/cpu/online") or ""
        release = self.host.read_optional("proc/sys/kernel/osrelease") or ""
        return hashlib.sha256(f"{model}|{online}|{release}".encode()).hexdigest()[:16]

    def _remember_measurement(self, document: dict[str, Any] | None, note: str | None) -> None:
        memory = {
            "finished_at_seconds": time.time(),
            "boot_id": machine.boot_id(self.host),
            "profile": self.config.measure,
            "machine": self._machine(),
            "has_document": document is not None,
            "stopped": self.stop.is_set(),
            "note": note,
            "hypervisor": report.hypervisor_of(document),
        }
        try:
            self.spool.keep("measured.json", memory)
        except SpoolError as error:
            self.log.line(f"the time of the measurement cannot be kept: {error}")


def next_tick(last: float, interval_seconds: float, now: float) -> float:
    """The next moment on the grid of ``last`` that lies ahead: missed ticks are skipped, one sample is enough."""
    ticks = max(1, math.floor((now - last) / interval_seconds) + 1)
    return last + ticks * interval_seconds


def explain(outcome: Outcome) -> str:
    """What an unfinished delivery means, for the log."""
    return {
        Outcome.FORBIDDEN: "the server refused the token; reports are kept until a valid one is in the token file",
        Outcome.SERVER_FAULT: "the server has a fault; reports are kept and sent again later",
    }.get(outcome, "reports are kept and sent again later")
