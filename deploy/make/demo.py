"""`make demo` and `make measure`: the service, this machine as a node, and a login link.

Starts `hugeplan demo` (PostgreSQL, migrations, server), measures this machine when the server has no run of it yet,
keeps an agent running, starts again what dies, and stops all of it on Ctrl-C, SIGTERM or when the terminal goes away.
Everything it writes is in the state folder, for its owner only: the database, tokens, the agent's spool, and two logs.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import FrameType
from typing import IO, Any

from hugeplan.cli import InputError
from hugeplan.cli.files import make_private

START_SECONDS = 120.0
STOP_SECONDS = 30.0
SAMPLE_INTERVAL = "30s"
POLL_SECONDS = 0.1
RESTARTS = 5
RESTART_WINDOW_SECONDS = 120.0
"""More restarts than this within this time, and the demo ends: something is wrong that a new start does not repair."""
READY = re.compile(r"^ready (\S+)", re.MULTILINE)
MOST_SYNTHETIC = 100_000
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
BIN = Path(sys.executable).parent
SEED = [str(BIN / "python"), "-m", "tools.seed"]
REPOSITORY = Path(__file__).resolve().parents[2]
# A proxy of the environment leads out of the machine, never back into it.
LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class DemoError(Exception):
    """One sentence for the terminal."""


class Stopped(BaseException):
    """A signal asked for the end."""


def say(text: str) -> None:
    """A line of progress."""
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"==> {text}", file=sys.stderr, flush=True)


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """Ask the kernel for a signal when the parent ends, however it ends. Linux only, as all of this is."""
    LIBC.prctl(PR_SET_PDEATHSIG, number)


class Family:
    """The processes this demo started. They have sessions of their own, so that only we hear Ctrl-C."""

    def __init__(self) -> None:
        self.members: list[tuple[subprocess.Popen[bytes], str]] = []

    def start(
        self,
        command: list[str],
        stdout: int | IO[bytes] | None,
        stderr: IO[bytes] | None,
        *,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=cwd, env=env, start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has no other threads
        )  # fmt: skip
        self.members.append((process, Path(command[0]).name))
        return process

    def forget(self, ended: subprocess.Popen[bytes]) -> None:
        """A member that was to end has ended; it is not missed."""
        self.members = [member for member in self.members if member[0] is not ended]

    def stop(self) -> None:
        """End the youngest first: the agent before the server it talks to."""
        for process, _ in reversed(self.members):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.members.clear()


class Terminal:
    """The terminal we were started from. The kernel signals its session's leader only when it goes away, and make,
    when it is that leader, does not pass the news on; so we look ourselves.
    """

    def __init__(self) -> None:
        self._poll = select.poll()
        for stream in (sys.stdin, sys.stderr):
            if stream.isatty():
                self._poll.register(stream, 0)  # a hang-up is told without being asked for

    def check(self) -> None:
        """Raise Stopped when the terminal is gone."""
        if self._poll.poll(0):
            raise Stopped

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """The exit status of a process; Stopped when the terminal goes away first."""
        while True:
            self.check()
            try:
                return process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue


class Server:
    """The running service: its address and its folder of tokens."""

    def __init__(self, state_dir: Path, url: str) -> None:
        self.state_dir = state_dir
        self.url = url

    def ask(self, path: str, body: bytes | None = None) -> Any:
        """A document of the API, with the admin's token. Raises DemoError."""
        token = (self.state_dir / "admin.token").read_text().strip()
        request = urllib.request.Request(  # noqa: S310 - our own server on loopback
            self.url + path, body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        )
        try:
            with LOOPBACK.open(request, timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise DemoError(f"the service does not answer {path}: {error}") from error

    def login_link(self) -> str:
        """A new login link: it works once, for a short time, and is written nowhere."""
        return f"{self.url}/login#token={self.ask('/api/v1/login-links', b'')['token']}"

    def has_run_of(self, machine_id: str) -> bool:
        """Whether the server holds a run of this machine."""
        cursor = ""
        while True:
            page = self.ask(f"/api/v1/nodes?limit=100{cursor}")
            for node in page["items"]:
                if node["machine_id"] == machine_id:
                    return node["latest_run_id"] is not None
            if not page["next_cursor"]:
                return False
            cursor = f"&cursor={page['next_cursor']}"


def agent_command(server: Server, *words: str) -> list[str]:
    """The agent's command line for this demo's server."""
    return [
        str(BIN / "hugeplan-agent"), *words,
        "--server", server.url,
        "--token-file", str(server.state_dir / "agent.token"),
        "--spool-dir", str(server.state_dir / "agent"),
    ]  # fmt: skip


def start_server(family: Family, state_dir: Path) -> Server:
    """Start `hugeplan demo` and wait until it answers. Raises DemoError with its own words."""
    output, log = state_dir / "server.out", state_dir / "server.log"
    with output.open("wb") as lines, log.open("ab") as errors:
        position = errors.tell()
        process = family.start([str(BIN / "hugeplan"), "demo", "--state-dir", str(state_dir)], lines, errors)
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        ready = READY.search(output.read_text(errors="replace"))
        if ready:
            return Server(state_dir, ready[1])
        time.sleep(POLL_SECONDS)
    with log.open("rb") as file:
        file.seek(position)
        said = file.read().decode(errors="replace").strip().splitlines()
    raise DemoError(said[-1] if said else f"the service did not start within {START_SECONDS:g} seconds; see {log}")


def running_server(state_dir: Path) -> Server | None:
    """The server of a demo that another terminal runs on this state folder, or None."""
    try:
        with (state_dir / "demo.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None
    except FileNotFoundError:
        return None
    except BlockingIOError:
        ready = READY.search((state_dir / "server.out").read_text(errors="replace"))
        return Server(state_dir, ready[1]) if ready else None


def was_interrupted(state_dir: Path) -> bool:
    """Whether the last measurement was stopped by hand, so that only a part of it exists."""
    try:
        return bool(json.loads((state_dir / "agent/measured.json").read_text())["stopped"])
    except (OSError, ValueError, KeyError):
        return False


def send_sample(server: Server) -> str:
    """Register this machine (a sample takes a blink) and send what an earlier demo left. Answer its machine id."""
    done = subprocess.run(agent_command(server, "once"), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(
            f"this machine could not be observed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
        )
    dry = subprocess.run(agent_command(server, "once", "--dry-run"), capture_output=True, text=True, check=True)
    return str(json.loads(dry.stdout)["machine_id"])


def measure(family: Family, terminal: Terminal, server: Server, profile: str) -> bool:
    """Run the benchmark and send its document; its progress goes to our terminal."""
    say(f"measuring this machine, profile {profile}")
    process = family.start(agent_command(server, "once", "--measure", profile), sys.stderr.buffer, None)
    status = terminal.wait(process)
    family.forget(process)
    return status == 0


def demo(arguments: argparse.Namespace, family: Family) -> None:
    """Everything from nothing, until a signal."""
    terminal = Terminal()
    started = time.monotonic()
    state_dir: Path = arguments.state_dir.absolute()
    os.umask(0o077)  # all that is made from now on is for its owner only
    try:
        make_private(state_dir)
    except InputError as error:
        raise DemoError(str(error)) from error
    server = running_server(state_dir)
    if server is not None and not arguments.measure_again:
        print(server.login_link(), flush=True)
        raise DemoError(f"the demo already runs on {server.url}; log in with the link above")
    if server is not None:
        if not measure(family, terminal, server, arguments.measure):
            raise DemoError("this machine was not measured")
        return
    say("starting PostgreSQL and the service")
    server = start_server(family, state_dir)
    say(f"the service answers on {server.url}")
    machine_id = send_sample(server)
    is_wanted = arguments.measure_again or was_interrupted(state_dir) or not server.has_run_of(machine_id)
    if arguments.measure != "none" and is_wanted and not measure(family, terminal, server, arguments.measure):
        say("this machine was not measured; `make measure` tries again")
    start_agent(family, server)
    add_fleet(server, arguments.fleet)
    keep_fleet(family, server)
    if not arguments.fleet:
        say("DEMO_FLEET=200 shows a synthetic fleet beside this machine")
    say(f"ready after {time.monotonic() - started:.1f} s; Ctrl-C stops everything. Log in (the link works once):")
    print(server.login_link(), flush=True)
    keep_running(family, terminal, server)


def add_fleet(server: Server, nodes: int) -> None:
    """A synthetic fleet beside the real node, so that a newcomer sees one; each of its nodes is labelled synthetic."""
    if nodes == 0 or server.ask("/api/v1/fleet/summary")["nodes_synthetic"] == nodes:
        return
    say(f"adding {nodes} synthetic nodes, labelled as such")
    done = subprocess.run(
        [*SEED, "--nodes", str(nodes)], cwd=REPOSITORY / "backend",
        env=database_environment(server), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise DemoError(f"the synthetic fleet was not made: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")


def database_environment(server: Server) -> dict[str, str]:
    """The environment of a program that works in the demo's own database."""
    # Seldom, and it loads psycopg.
    from hugeplan.cli.demo import DATABASE  # noqa: PLC0415
    from hugeplan.embedded.postgres import SUPERUSER  # noqa: PLC0415

    folder = (server.state_dir / "postgresql.socket").read_text().strip()
    return {**os.environ, "HUGEPLAN_DATABASE_URL": f"postgresql://{SUPERUSER}@/{DATABASE}?host={folder}"}


def keep_fleet(family: Family, server: Server) -> None:
    """Let the synthetic fleet report as long as the demo runs, where there is one."""
    try:
        if server.ask("/api/v1/fleet/summary")["nodes_synthetic"] == 0:
            return
    except DemoError:
        return  # it has just ended, which is seen next
    with (server.state_dir / "fleet.log").open("ab") as log:
        family.start([*SEED, "--keep"], log, log, cwd=REPOSITORY / "backend", env=database_environment(server))


def start_agent(family: Family, server: Server) -> subprocess.Popen[bytes]:
    with (server.state_dir / "agent.log").open("ab") as log:
        return family.start(agent_command(server, "run", "--interval", SAMPLE_INTERVAL), log, log)


def keep_running(family: Family, terminal: Terminal, server: Server) -> None:
    """Start again whatever ends by itself. DemoError when that happens too often."""
    restarts: list[float] = []
    while True:
        ended = wait_for_any(family, terminal)
        restarts = [at for at in restarts if time.monotonic() - at < RESTART_WINDOW_SECONDS]
        if len(restarts) >= RESTARTS:
            raise DemoError(f"{ended} ended by itself {RESTARTS + 1} times; see the logs in {server.state_dir}")
        restarts.append(time.monotonic())
        say(f"{ended} ended by itself and is started again; see the logs in {server.state_dir}")
        # The agent has a token of the server it was started with, so it goes and comes with it.
        family.stop()
        start_server(family, server.state_dir)
        start_agent(family, server)
        keep_fleet(family, server)


def wait_for_any(family: Family, terminal: Terminal) -> str:
    """Block until the server or the agent ends; answer its program."""
    # Those too that have ended before anybody looked.
    watched = list(family.members)
    while True:
        terminal.check()
        for process, program in watched:
            try:
                process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return program


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the demo.")
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--measure", choices=("none", "quick", "full"), default="quick")
    parser.add_argument("--measure-again", action="store_true")
    parser.add_argument("--fleet", type=int, default=0, metavar="N", help="synthetic nodes beside this machine")
    arguments = parser.parse_args()
    if not 0 <= arguments.fleet <= MOST_SYNTHETIC:
        parser.error(f"DEMO_FLEET: {arguments.fleet}: between 0 and {MOST_SYNTHETIC}")
    die_with_parent()

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the end is on its way; a second Ctrl-C must not cut it short
        raise Stopped

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # nohup: whoever ignores the hang-up for us wants the demo to outlive its shell.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    family = Family()
    try:
        demo(arguments, family)
    except Stopped:
        say("stopping")
    except DemoError as error:
        print(f"hugeplan: {error}", file=sys.stderr)
        return 1
    finally:
        family.stop()
        remove_socket_folder(arguments.state_dir)
    return 0


def remove_socket_folder(state_dir: Path) -> None:
    """Remove the socket folder of a PostgreSQL whose server was killed; its note is gone after an orderly end."""
    if (state_dir / "postgresql.socket").exists() and running_server(state_dir) is None:
        with contextlib.suppress(ImportError):
            from hugeplan.embedded.postgres import remove_socket_dir  # noqa: PLC0415 - seldom, and it loads psycopg

            remove_socket_dir(state_dir)


if __name__ == "__main__":
    sys.exit(main())
