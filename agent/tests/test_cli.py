"""The command as a user meets it: real processes, real HTTP, real signals."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from hugeplan_agent import health
from hugeplan_agent.host import Host
from hugeplan_agent.tlbbench import find
from hugeplan_agent.whole_files import hold_file
from tests.factories import make_spool
from tests.misbehaving_server import Behaviour, MisbehavingServer, problem
from tests.test_report import SCHEMA

DOCUMENT = {
    "schema_version": 1,
    "sections": [{"name": "geometry", "status": "ok", "reason": None}],
    "environment": {"hypervisor": {"present": True, "name": "KVM"}},
}
Machine = Callable[[str], Host]


class Node:
    """A captured machine with a token, a spool and the agent's command."""

    def __init__(self, folder: Path, root: Path, server: str) -> None:
        self.folder = folder
        self.spool = folder / "spool"
        self.token_file = folder / "token"
        self.token_file.write_text("secret\n")
        self.token_file.chmod(0o600)
        self.environment = {
            **os.environ,
            "HUGEPLAN_AGENT_ROOT": str(root),
            "HUGEPLAN_AGENT_SPOOL_DIR": str(self.spool),
            "HUGEPLAN_AGENT_SERVER": server,
            "HUGEPLAN_AGENT_TOKEN_FILE": str(self.token_file),
            "HUGEPLAN_AGENT_TIMEOUT": "5s",
        }
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *words: str, by: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*by, sys.executable, "-m", "hugeplan_agent", *words],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.running.append(process)
        return process

    def call(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def call_by(self, looking: tuple[str, ...], *words: str) -> str:
        """What a command prints that another program starts, such as one in a process namespace of its own."""
        output, errors = self.start(*words, by=looking).communicate(timeout=60)
        assert errors == ""
        return output

    def waiting(self) -> list[Path]:
        return sorted((self.spool / "pending").glob("*.json"))

    def stand_in(self, script: str) -> str:
        path = self.folder / "tlbbench"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)


@pytest.fixture
def node(tmp_path: Path, machine: Machine, server: MisbehavingServer) -> Iterator[Node]:
    made = Node(tmp_path, machine("xeon-two-sockets").root, server.url)
    yield made
    for process in made.running:
        process.kill()
        process.communicate()


def until(is_true: Callable[[], bool], timeout_seconds: float = 20.0) -> None:
    """Wait for a condition that another process brings about."""
    deadline = time.monotonic() + timeout_seconds
    while not is_true():
        assert time.monotonic() < deadline, "the condition did not come about"
        time.sleep(0.02)


@contextmanager
def ticking(stat_file: Path) -> Iterator[None]:
    """A /proc/stat whose processors idle and of which the hypervisor takes nothing."""
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.05):
            fresh = stat_file.with_suffix(".new")
            fresh.write_text(f"cpu 1 0 1 {time.monotonic_ns() // 10_000_000} 0 0 0 0 0 0\nbtime 1764000000\n")
            fresh.replace(stat_file)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        until(stat_file.exists)
        yield
    finally:
        done.set()
        thread.join()


class TestOnce:
    def test_a_sample_arrives_and_fits_the_schema(self, node: Node, server: MisbehavingServer) -> None:
        status, output, errors = node.call("once")
        assert (status, errors) == (0, "")
        (report,) = server.stored.values()
        Draft202012Validator(SCHEMA).validate(report)
        assert report["node_name"] == "db-7"
        assert report["run"] is None
        assert report["synthetic"] is False
        assert report["report_id"] in output
        assert "with a sample of db-7" in output
        assert node.waiting() == []

    def test_a_run_goes_with_it(self, node: Node, server: MisbehavingServer) -> None:
        tlbbench = node.stand_in(f"echo '{json.dumps(DOCUMENT)}'")
        status, output, _ = node.call("once", "--measure", "quick", "--tlbbench", tlbbench)
        assert status == 0
        (report,) = server.stored.values()
        assert report["run"] == DOCUMENT
        assert report["collectors"][-1]["name"] == "tlbbench"
        assert report["collectors"][-1]["status"] == "ok"
        assert "with a sample and a run of db-7" in output

    def test_a_timer_measures_only_when_it_is_due_and_the_node_is_idle(
        self, node: Node, server: MisbehavingServer
    ) -> None:
        root = Path(node.environment["HUGEPLAN_AGENT_ROOT"])
        words = (
            "once",
            "--when-due",
            "--measure",
            "quick",
            "--tlbbench",
            node.stand_in(f"echo '{json.dumps(DOCUMENT)}'"),
        )
        (root / "proc/loadavg").write_text("900.00 1 1 1/2 3\n")
        assert "nothing was done: the load is 900.00" in node.call(*words)[2]
        (root / "proc/loadavg").write_text("0.01 1 1 1/2 3\n")
        pool = root / "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        pool.parent.mkdir(parents=True, exist_ok=True)
        before = pool.read_text() if pool.exists() else "0\n"
        pool.write_text("512\n")
        (root / "proc/uptime").write_text("61.20 100.00\n")
        assert "databases may still start" in node.call(*words)[2]
        pool.write_text(before)
        (root / "proc/uptime").write_text("901.20 100.00\n")
        with ticking(root / "proc/stat"):
            assert node.call(*words)[0] == 0
            assert "no benchmark is due" in node.call(*words)[2]
            assert len(server.stored) == 1
            (root / "proc/sys/kernel/osrelease").write_text("6.99\n")
            assert node.call(*words)[0] == 0
        assert [report["run"] is not None for report in server.stored.values()] == [True, True]

    def test_a_partial_run_goes_with_its_reason(self, node: Node, server: MisbehavingServer) -> None:
        tlbbench = node.stand_in(f"echo '{json.dumps(DOCUMENT)}'; exit 3")
        assert node.call("once", "--measure", "quick", "--tlbbench", tlbbench)[0] == 0
        (report,) = server.stored.values()
        assert report["run"] == DOCUMENT
        assert report["collectors"][-1]["reason"] == "partial"

    def test_without_a_document_the_sample_goes_and_the_command_fails(
        self, node: Node, server: MisbehavingServer
    ) -> None:
        tlbbench = node.stand_in("echo 'tlbbench: no memory' >&2; exit 1")
        status, _, errors = node.call("once", "--measure", "quick", "--tlbbench", tlbbench)
        assert status == 1
        assert "tlbbench: no memory" in errors
        (report,) = server.stored.values()
        assert report["run"] is None
        assert report["collectors"][-1]["status"] == "failed"

    def test_a_dry_run_prints_and_sends_nothing(self, node: Node, server: MisbehavingServer) -> None:
        status, output, _ = node.call("once", "--dry-run")
        assert status == 0
        Draft202012Validator(SCHEMA).validate(json.loads(output))
        assert server.attempts == []
        assert node.waiting() == []

    def test_an_unreachable_server_keeps_the_report_for_the_next_time(
        self, node: Node, server: MisbehavingServer
    ) -> None:
        server.script.append(Behaviour(drop=True))
        status, _, errors = node.call("once")
        assert status == 1
        assert "1 reports wait" in errors
        assert len(node.waiting()) == 1
        assert node.call("once")[0] == 0
        assert len(server.stored) == 2
        assert node.waiting() == []

    def test_a_refused_token_is_said_and_costs_nothing(self, node: Node, server: MisbehavingServer) -> None:
        server.script.append(problem(401, "Unauthorised", "the token is not known"))
        status, _, errors = node.call("once")
        assert status == 1
        assert "the server refused the token" in errors
        assert "the token is not known" in errors
        assert len(node.waiting()) == 1
        assert "secret" not in errors

    def test_a_refused_report_is_said_and_kept_aside(self, node: Node, server: MisbehavingServer) -> None:
        server.script.append(problem(422, "Invalid", "body.sample: no"))
        status, _, errors = node.call("once")
        assert status == 1
        assert "the server refused report" in errors
        assert "body.sample: no" in errors
        assert node.waiting() == []
        assert json.loads(node.call("spool", "status", "--json")[1])["rejected"] == 1

    def test_a_kill_in_the_middle_of_a_send_loses_nothing(self, node: Node, server: MisbehavingServer) -> None:
        server.script.append(Behaviour(hold=True))
        process = node.start("once")
        server.wait_for_attempts(1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        (kept,) = node.waiting()
        report_id = json.loads(kept.read_text())["report_id"]
        server.release.set()
        until(lambda: report_id in server.stored)  # the server did store it; the agent never heard
        assert node.call("once")[0] == 0
        assert server.attempts.count(report_id) == 2, "it was sent again, under the same id"
        assert len(server.stored) == 2
        assert node.waiting() == []

    def test_a_kill_while_measuring_leaves_a_usable_spool(self, node: Node, server: MisbehavingServer) -> None:
        tlbbench = node.stand_in(f"touch {node.folder}/measuring; exec sleep 5")
        process = node.start("once", "--measure", "quick", "--tlbbench", tlbbench)
        until((node.folder / "measuring").exists)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert node.call("once")[0] == 0
        assert len(server.stored) == 1

    def test_a_kill_while_measuring_ends_the_benchmark(self, node: Node) -> None:
        tlbbench = node.stand_in(f'echo $$ > {node.folder}/measuring; exec {find(None)} "$@"')
        process = node.start("once", "--measure", "full", "--tlbbench", tlbbench)
        measuring = node.folder / "measuring"
        until(lambda: measuring.exists() and measuring.read_text().endswith("\n"))
        place = Path(f"/proc/{int(measuring.read_text())}")
        catches = re.compile(r"^SigCgt:\s[0-9a-f]*[4-7c-f][0-9a-f]{3}$", re.MULTILINE)  # SIGTERM
        until(lambda: catches.search((place / "status").read_text()) is not None)
        process.kill()
        process.communicate()
        try:
            until(lambda: not place.exists() or "State:\tZ" in (place / "status").read_text())
        except BaseException:
            os.kill(int(place.name), signal.SIGKILL)
            raise

    def test_a_signal_while_measuring_keeps_what_was_measured(self, node: Node, server: MisbehavingServer) -> None:
        script = (
            f"trap 'echo \"$DOCUMENT\"; exit 3' TERM\nDOCUMENT='{json.dumps(DOCUMENT)}'\ntouch {node.folder}/measuring"
        )
        tlbbench = node.stand_in(f"{script}\nwhile :; do sleep 0.05; done")
        process = node.start("once", "--measure", "quick", "--tlbbench", tlbbench)
        until((node.folder / "measuring").exists)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 128 + signal.SIGTERM
        assert "stopped; report" in errors
        (kept,) = node.waiting()
        assert json.loads(kept.read_text())["run"] == DOCUMENT
        assert server.attempts == []

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["once", "--root", "/nonexistent"], "--root: /nonexistent is not a folder"),
            (["once", "--server", "nonsense"], "--server: 'nonsense' is not valid"),
            (["once", "--token-file", "/nonexistent"], "--token-file: /nonexistent cannot be read"),
            (["once", "--ca-file", "/nonexistent"], "--ca-file: /nonexistent cannot be used"),
            (["once", "--timeout", "0s"], "--timeout: '0s' is not valid; expected 0.1s to 10m"),
            (["spool", "status", "--spool-dir", "/nonexistent"], "--spool-dir: /nonexistent does not exist"),
            (["enroll"], "--enrolment-token-file is missing"),
        ],
    )
    def test_wrong_usage_is_one_line_and_status_2(self, node: Node, words: list[str], message: str) -> None:
        status, output, errors = node.call(*words)
        assert (status, output) == (2, "")
        assert message in errors
        assert len(errors.splitlines()) == 1


class TestRun:
    def test_it_samples_at_intervals_and_ends_on_a_signal(self, node: Node, server: MisbehavingServer) -> None:
        process = node.start("run", "--interval", "1s")
        server.wait_for_attempts(3)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert "observing every 1 s" in errors
        assert "stopped by signal 15; 0 reports wait" in errors
        moments = [report["created_at"] for report in server.stored.values()]
        assert moments == sorted(moments)

    def test_it_waits_out_a_fault_and_then_sends_everything(self, node: Node, server: MisbehavingServer) -> None:
        server.script.extend([Behaviour(503, headers={"Retry-After": "2"}), Behaviour(drop=True)])
        process = node.start("run", "--interval", "1s")
        server.wait_for_attempts(1)
        first = time.monotonic()
        server.wait_for_attempts(2)
        assert time.monotonic() - first >= 1.9, "Retry-After is honoured although samples go on"
        until(lambda: len(server.stored) >= 4 and not node.waiting())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 0

    def test_it_lives_on_while_its_spool_cannot_be_used(self, node: Node, server: MisbehavingServer) -> None:
        process = node.start("run", "--interval", "1s")
        pending, health = node.spool / "pending", node.spool / "health.json"
        until(health.exists)
        pending.rename(node.folder / "aside")
        pending.write_text("in the way")
        began = health.read_text()
        until(lambda: health.read_text() != began or process.poll() is not None)
        later = health.read_text()
        until(lambda: health.read_text() != later or process.poll() is not None)
        pending.unlink()
        (node.folder / "aside").rename(pending)
        stored = len(server.stored)
        until(lambda: len(server.stored) > stored or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0, errors
        assert errors.count("cannot be used: ") == 1, "neither without a word nor in a loop"

    def test_what_another_process_may_send_has_not_reached_the_server(
        self, node: Node, server: MisbehavingServer
    ) -> None:
        process = node.start("run", "--interval", "1s")
        health = node.spool / "health.json"
        until(lambda: len(server.stored) == 1 and health.exists())
        with make_spool(node.spool).sending():
            until(lambda: "another process" in (json.loads(health.read_text()).get("why") or ""))
            delivered = json.loads(health.read_text())["delivered_at"]
            until(lambda: len(node.waiting()) > 2)
            assert json.loads(health.read_text())["delivered_at"] == delivered
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)

    def test_it_measures_once_a_boot(self, node: Node, server: MisbehavingServer) -> None:
        tlbbench = node.stand_in(f"echo run >> {node.folder}/runs; echo '{json.dumps(DOCUMENT)}'")
        words = ["run", "--interval", "1s", "--measure", "quick", "--measure-busy", "--tlbbench", tlbbench]
        words += ["--count-walks-every", "0s"]
        for expected in (3, 6):
            process = node.start(*words)
            server.wait_for_attempts(expected)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
        assert (node.folder / "runs").read_text() == "run\n"
        assert [report["run"] is not None for report in server.stored.values()][:3] == [False, True, False]
        assert [report["run"] is not None for report in server.stored.values()].count(True) == 1

    def test_a_new_node_shows_up_before_its_benchmark_ends(self, node: Node, server: MisbehavingServer) -> None:
        tlbbench = node.stand_in(f"touch {node.folder}/measuring; exec sleep 30")
        words = ("--interval", "1h", "--measure", "quick", "--measure-busy", "--tlbbench", tlbbench)
        process = node.start("run", *words, "--count-walks-every", "0s")
        until((node.folder / "measuring").exists)
        assert [report["run"] for report in server.stored.values()] == [None]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0

    def test_a_new_node_shows_up_before_it_tries_to_count(self, node: Node, server: MisbehavingServer) -> None:
        tlbbench = node.stand_in(f"touch {node.folder}/counting; exec sleep 30")
        process = node.start("run", "--interval", "1h", "--tlbbench", tlbbench)
        until((node.folder / "counting").exists)
        assert len(server.stored) == 1
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0

    def test_it_enrols_when_it_has_no_token_yet(self, node: Node, server: MisbehavingServer) -> None:
        node.token_file.unlink()
        server.script.append(Behaviour(503, headers={"Retry-After": "0"}))
        node.environment["HUGEPLAN_AGENT_ENROLMENT_TOKEN"] = "secret"
        process = node.start("run", "--interval", "1s")
        until(lambda: len(server.stored) >= 1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert server.attempts[:2] == ["/api/v1/enrolments"] * 2
        assert server.tokens[1] == "Bearer secret"
        assert server.tokens[2] == "Bearer hp_agent_secret"
        assert stat.S_IMODE(node.token_file.stat().st_mode) == 0o600

    def test_a_new_token_is_taken_without_a_restart(self, node: Node, server: MisbehavingServer) -> None:
        """A token that was refused used to be kept until the agent was started again."""
        server.script.extend([problem(401, "Unauthorised", "revoked")] * 2)
        process = node.start("run", "--interval", "1s")
        server.wait_for_attempts(1)
        node.token_file.write_text("fresh\n")
        until(lambda: len(server.stored) >= 1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert server.tokens[0] == "Bearer secret"
        assert server.tokens[-1] == "Bearer fresh"

    def test_a_refused_token_is_exchanged_when_an_enrolment_token_is_there(
        self, node: Node, server: MisbehavingServer
    ) -> None:
        server.script.append(problem(401, "Unauthorised", "This token is unknown, expired or revoked."))
        node.environment["HUGEPLAN_AGENT_ENROLMENT_TOKEN"] = "enrolment"
        process = node.start("run", "--interval", "1s")
        until(lambda: len(server.stored) >= 1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert server.tokens[:3] == ["Bearer secret", "Bearer enrolment", "Bearer hp_agent_secret"]
        assert server.bodies[1]["current_token"] == "secret"

    def test_a_node_that_is_not_enrolled_says_so_and_what_to_do(self, node: Node, server: MisbehavingServer) -> None:
        node.token_file.unlink()
        process = node.start("daemon", "--interval", "1s")
        until(lambda: len(node.waiting()) >= 1)
        until(lambda: node.call("health", "live")[1].startswith("the last round was"))
        assert node.call("health", "live")[0] == 0
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
        assert "this node is not enrolled" in errors
        assert "hugeplan-agent enrol --enrolment-token-file FILE" in errors
        assert server.attempts == []

    def test_a_daemon_waits_for_its_settings(self, node: Node, server: MisbehavingServer) -> None:
        token = node.token_file.read_text()
        node.token_file.unlink()
        assert node.call("run", "--token-file", str(node.folder / "absent"), "--server", "")[0] == 2
        process = node.start("daemon", "--interval", "1s")
        until(lambda: len(node.waiting()) >= 1)
        node.token_file.write_text(token)
        node.token_file.chmod(0o600)
        until(lambda: len(server.stored) >= 1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0

    def test_it_talks_to_the_service_manager(self, node: Node, tmp_path: Path) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            address = str(tmp_path / "notify")
            manager.bind(address)
            manager.settimeout(20)
            node.environment.update({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "400000"})
            process = node.start("daemon", "--interval", "1h")
            heard = [manager.recv(500).decode() for _ in range(5)]
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
        assert heard[0] == "READY=1"
        assert heard[1] == "WATCHDOG=1", "before a report is sent"
        assert heard[2].startswith("WATCHDOG=1\nSTATUS=")
        assert heard[3:] == ["WATCHDOG=1"] * 2


class TestObserve:
    def test_it_needs_nothing_and_leaves_nothing(self, node: Node, server: MisbehavingServer) -> None:
        for name in ("SERVER", "TOKEN_FILE"):
            del node.environment[f"HUGEPLAN_AGENT_{name}"]
        status, output, errors = node.call("observe")
        assert (status, errors) == (0, "")
        Draft202012Validator(SCHEMA).validate(json.loads(output))
        assert not node.spool.exists()
        assert server.attempts == []


class TestDoctor:
    def test_it_says_what_works(self, node: Node, server: MisbehavingServer) -> None:
        server.script.append(problem(422, "Invalid", "body: schema_version is missing"))
        status, output, _ = node.call("doctor", "--tlbbench", node.stand_in("true"))
        assert status == 0, output
        assert "answers and takes this token" in output
        assert "wrong" not in output
        assert not node.spool.exists()

    def test_a_refused_token_is_wrong(self, node: Node, server: MisbehavingServer) -> None:
        server.script.append(problem(401, "Unauthorised", "revoked"))
        status, output, _ = node.call("doctor")
        assert status == 1
        assert "wrong token            the server refuses it (status 401: revoked). Run: hugeplan-agent enrol" in output

    def test_an_enrolment_token_that_cannot_be_used_is_wrong(self, node: Node, server: MisbehavingServer) -> None:
        enrolment = node.folder / "enrolment"
        enrolment.write_text("hp_enrolment\n")
        enrolment.chmod(0o644)
        node.environment["HUGEPLAN_AGENT_ENROLMENT_TOKEN_FILE"] = str(enrolment)
        node.environment["HUGEPLAN_AGENT_SEVRER"] = "https://hugeplan.example"
        server.script.append(problem(422, "Invalid", "body: schema_version is missing"))
        status, output, _ = node.call("doctor", "--tlbbench", node.stand_in("true"))
        assert status == 0, "this node has a token of its own"
        assert f"note  enrolment token  --enrolment-token-file: {enrolment} has mode 0644" in output
        assert "note  settings         'HUGEPLAN_AGENT_SEVRER' is no setting of the agent" in output
        node.environment["HUGEPLAN_AGENT_TOKEN_FILE"] = str(node.folder / "absent")
        status, output, _ = node.call("doctor", "--tlbbench", node.stand_in("true"))
        assert status == 1
        assert f"wrong enrolment token  --enrolment-token-file: {enrolment} has mode 0644" in output
        enrolment.chmod(0o600)
        status, output, _ = node.call("doctor", "--tlbbench", node.stand_in("true"))
        assert status == 0, output
        assert "the enrolment token will be exchanged for one" in output

    def test_it_says_what_the_running_agent_may_count(self, node: Node, server: MisbehavingServer) -> None:
        """It may have a capability that the command has not; without one that runs, the command tries it itself."""
        server.script.extend([problem(422, "Invalid", "body: schema_version is missing")] * 4)
        moment = time.clock_gettime(time.CLOCK_BOOTTIME)
        denied = {"status": "not_permitted", "reason": "as root or with CAP_PERFMON\x1b"}
        for counting, age, words in (
            (
                {"status": "ok", "event_set": "intel-icelake-sp"},
                1,
                "ok    page walks       the running agent may count",
            ),
            (
                denied,
                1,
                "note  page walks       the running agent cannot count them: as root or with CAP_PERFMON\\u001b; off",
            ),
            (denied, 7200, "this user"),
        ):
            node.spool.mkdir(exist_ok=True)
            told = {health.HELD: True, "round_at": moment - age, "interval_seconds": 1, "counting": counting}
            with hold_file(node.spool / health.FILE, json.dumps(told).encode()):
                output = node.call("doctor")[1]
            assert words in output, output
        node.environment["HUGEPLAN_AGENT_COUNT_WALKS_EVERY"] = "0s"
        assert "not counted: --count-walks-every is 0s" in node.call("doctor")[1]

    @pytest.mark.parametrize("sees", ["its process", "another process namespace"])
    def test_an_agent_that_was_killed_is_none_that_runs(self, node: Node, server: MisbehavingServer, sees: str) -> None:
        """At once, whoever looks, and although what it had started still runs."""
        looking = () if sees == "its process" else ("unshare", "--pid", "--fork", "--mount-proc")
        if looking and subprocess.run([*looking, "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("this user may make no process namespace")
        counted = {"status": "ok", "event_set": "intel-icelake-sp", "total": {}, "user": {}, "kernel": {}}
        node.environment["HUGEPLAN_AGENT_TLBBENCH"] = node.stand_in(
            f"[ \"$1\" != counters ] || exec echo '{json.dumps({'schema_version': 1, 'counters': counted})}'\n"
            f"echo $$ > {node.folder}/measuring; exec sleep 3600"  # a busy machine takes a minute for what follows
        )
        process = node.start("daemon", "--interval", "1h", "--measure", "quick", "--measure-busy")
        measuring = node.folder / "measuring"
        until(lambda: measuring.exists() and measuring.read_text().endswith("\n"))
        try:
            server.script.extend([problem(422, "Invalid", "body: schema_version is missing")] * 2)
            # This user could not count itself: what is said of counting is the agent's.
            node.stand_in("exit 1")
            assert "page walks       the running agent may count" in node.call_by(looking, "doctor")
            assert node.call_by(looking, "health", "live").startswith("the last round was")
            process.kill()
            process.communicate(timeout=20)
            assert "page walks       this user cannot count" in node.call_by(looking, "doctor")
            for what in ("live", "ready"):
                assert node.call_by(looking, "health", what) == f"{health.ENDED}\n"
        finally:
            with suppress(ProcessLookupError):
                os.kill(int(measuring.read_text()), signal.SIGKILL)


class TestEnrol:
    def test_it_proves_which_machine_it_is(self, node: Node, server: MisbehavingServer, machine: Machine) -> None:
        node.environment["HUGEPLAN_AGENT_ROOT"] = str(machine("kubernetes-v2").root)
        enrolment = node.folder / "enrolment"
        enrolment.write_text("hp_enrolment\n")
        enrolment.chmod(0o600)
        assert node.call("enrol", "--enrolment-token-file", str(enrolment))[0] == 0
        (body,) = server.bodies
        assert body["boot_id"] == "0f3b7f54-6a47-4d1c-9a54-3b8e7f1f6a10"
        assert body["current_token"] == "secret"
        assert len(body["clone_hints"]["mac_sha256"]) == 1

    def test_a_server_that_knows_no_proof_is_asked_without(self, node: Node, server: MisbehavingServer) -> None:
        server.script.extend([problem(422, "Invalid", "body.current_token: unknown field")] * 2)
        assert node.call("enrol", "--enrolment-token-file", str(node.token_file))[0] == 0
        assert set(server.bodies[1]) == {"machine_id", "node_name", "current_token"}
        assert set(server.bodies[2]) == {"machine_id", "node_name"}

    def test_the_same_claim_is_sent_until_the_answer_comes(self, node: Node, server: MisbehavingServer) -> None:
        server.script.append(Behaviour(drop=True))
        words = ("enrol", "--enrolment-token-file", str(node.token_file))
        assert [node.call(*words)[0] for _ in range(2)] == [1, 0]
        first, second = (body["claim"] for body in server.bodies)
        assert first == second == (node.spool / "enrolment-claim").read_text().strip()
        assert len(first) >= 43
        assert stat.S_IMODE((node.spool / "enrolment-claim").stat().st_mode) == 0o600

    def test_the_token_is_kept_private(self, node: Node, server: MisbehavingServer) -> None:
        enrolment = node.folder / "enrolment"
        node.token_file.rename(enrolment)
        status, output, _ = node.call("enroll", "--enrolment-token-file", str(enrolment))
        assert status == 0
        assert "hp_agent_secret" not in output
        assert node.token_file.read_text() == "hp_agent_secret\n"
        assert stat.S_IMODE(node.token_file.stat().st_mode) == 0o600
        assert server.tokens == ["Bearer secret"]

    def test_a_refusal_is_said_and_keeps_the_old_token(self, node: Node, server: MisbehavingServer) -> None:
        server.script.append(problem(403, "Forbidden", "this is not an enrolment token"))
        status, _, errors = node.call("enroll", "--enrolment-token-file", str(node.token_file))
        assert status == 1
        assert "this is not an enrolment token" in errors
        assert node.token_file.read_text() == "secret\n"


def test_what_a_run_saw_of_the_hypervisor_stays_in_later_samples(
    node: Node, machine: Machine, server: MisbehavingServer
) -> None:
    node.environment["HUGEPLAN_AGENT_ROOT"] = str(machine("zen5-guest").root)
    tlbbench = node.stand_in(f"echo '{json.dumps(DOCUMENT)}'")
    assert node.call("once")[0] == 0
    assert node.call("once", "--measure", "quick", "--tlbbench", tlbbench)[0] == 0
    assert node.call("once")[0] == 0
    names = [report["inventory"]["hypervisor"] for report in server.stored.values()]
    assert names == [None, "KVM", "KVM"]


class TestSpoolStatus:
    def test_counts_for_people_and_for_programs(self, node: Node, server: MisbehavingServer) -> None:
        server.script.append(Behaviour(503))
        node.call("once")
        status, output, _ = node.call("spool", "status")
        assert status == 0
        assert "pending" in output
        counts = json.loads(node.call("spool", "status", "--json")[1])
        assert counts["pending"] == 1
        assert counts["pending_bytes"] == node.waiting()[0].stat().st_size


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("doctor",), ("observe",)], ids=lambda words: words[0])
def test_output_that_cannot_be_written_is_one_line_and_a_status(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "hugeplan_agent", *words]
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 74, done.stderr
    assert done.stderr == "hugeplan-agent: the output could not be written: No space left on device\n"
