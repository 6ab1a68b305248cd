"""The commands around the service, as processes: what they print, what they leave behind, how they end."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx
import pytest
from conftest import REPOSITORY
from support.reports import report

from hugeplan.cli import InputError, main
from hugeplan.cli.files import make_private

WAIT_SECONDS = 40.0
A_CALLER = """
import os, signal
from hugeplan.cli import main

def own():
    umask = os.umask(0o022)
    os.umask(umask)
    return umask, [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]

os.umask(0o027)
before = own()
print("status", main(), "the caller's own" if own() == before else f"{before} became {own()}")
"""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


class Command(Protocol):
    """Runs a command of the command line to its end, in this process."""

    def __call__(self, *arguments: str, **environment: str) -> Done: ...


@pytest.fixture
def hugeplan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line."""

    def run(*arguments: str, **environment: str) -> Done:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        try:
            status = main(arguments)
        except SystemExit as end:
            status = int(end.code or 0)
        return Done(status, *capsys.readouterr())

    return run


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Demo:
    """A running demo."""

    def __init__(
        self, state_dir: Path, port: int, *options: str, program: Sequence[str] = ("-m", "hugeplan.cli")
    ) -> None:
        self.state_dir, self.port = state_dir, port
        self.url = f"http://127.0.0.1:{port}"
        self.said_last = ""
        arguments = ["demo", "--state-dir", str(state_dir), "--port", str(port), *options]
        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            env={**os.environ, "HUGEPLAN_LOG_LEVEL": "warning"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self, last_line: str = "ready ") -> str:
        """Wait for a line; everything printed until then."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith(last_line):
                return "".join(lines)
        raise AssertionError(f"the demo ended: {lines}")

    def token(self, name: str) -> str:
        """A token file's content."""
        return (self.state_dir / f"{name}.token").read_text().strip()

    def stop(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(number)
        self.said_last = self.process.communicate(timeout=WAIT_SECONDS)[0]
        return self.process.returncode


def postgres_of(state_dir: Path) -> list[int]:
    """Process ids of PostgreSQL servers on a state folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:  # its command line names the folder that it works in, whose name is the kernel's to say
            if (path / "comm").read_text() == "postgres\n" and (path / "cwd").readlink() == state_dir / "postgresql":
                found.append(int(path.name))
        except OSError:
            continue
    return found


def postmaster_of(state_dir: Path) -> int | None:
    """The process id of the newest PostgreSQL server; None in the moment in which it writes its file."""
    try:
        return int((state_dir / "postgresql/postmaster.pid").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return None


@pytest.fixture
def demos() -> Iterator[list[Demo]]:
    """Demos of a test; whatever happens, none is left running."""
    started: list[Demo] = []
    yield started
    for demo in started:
        if demo.process.poll() is None:
            demo.stop(signal.SIGTERM)


class TestDemo:
    def test_first_and_second_start_kill_and_hang_up(
        self, tmp_path: Path, demos: list[Demo], hugeplan: Command
    ) -> None:
        """One folder's life. Each start costs seconds of a processor, so its tests are one after the other here."""
        state = tmp_path / "state"
        first = Demo(state, free_port(), "--print-login-link")
        demos.append(first)
        printed = first.wait("It works once")
        assert f"ready {first.url}" in printed
        assert first.token("admin") not in printed
        secret = printed.partition("/login#token=")[2].split()[0]
        for status in (201, 401):
            assert httpx.post(f"{first.url}/api/v1/session", json={"token": secret}).status_code == status
        assert not any(secret in path.read_text(errors="replace") for path in state.glob("*") if path.is_file())
        assert state.stat().st_mode & 0o777 == 0o700
        for path in state.rglob("*"):
            assert path.is_symlink() or path.stat().st_mode & 0o077 == 0, path
        assert httpx.get(f"{first.url}/readyz").status_code == 200

        agent = {"Authorization": f"Bearer {first.token('agent')}"}
        assert httpx.post(f"{first.url}/api/v1/reports", json=report(), headers=agent).status_code == 201
        assert postgres_of(state) != []
        assert first.stop(signal.SIGINT) == 0
        assert postgres_of(state) == []

        begun = time.monotonic()
        second = Demo(state, free_port(), program=("-c", A_CALLER))
        demos.append(second)
        assert second.wait("ready ").count("\n") == 1
        seconds, load, cores = time.monotonic() - begun, os.getloadavg()[0], os.cpu_count() or 1
        assert second.token("admin") == first.token("admin")
        admin = {"Authorization": f"Bearer {second.token('admin')}"}
        nodes = httpx.get(f"{second.url}/api/v1/nodes", headers=admin).json()["items"]
        assert [node["name"] for node in nodes] == ["db-7"]
        assert second.stop(signal.SIGTERM) == 0
        # What it prints goes to no terminal, so no login link is shown.
        assert second.said_last == "status 0 the caller's own\n"
        assert postgres_of(state) == []

        self.killed_it_leaves_nothing_running_and_its_data_whole(state, demos, hugeplan)
        if seconds >= 10 and load > 2 * cores:
            pytest.skip(f"the second start took {seconds:.1f} s with {load:.0f} processes waiting for {cores} cores")
        assert seconds < 10

    @pytest.mark.parametrize("folder", ["/", "/tmp"])  # noqa: S108
    def test_a_folder_that_is_not_ours_is_refused(self, folder: str, hugeplan: Command) -> None:
        before = Path(folder).stat().st_mode
        done = hugeplan("demo", "--state-dir", folder, "--port", str(free_port()))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "is not a folder of our own" in done.stderr
        assert Path(folder).stat().st_mode == before

    @pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root can be led by others")
    @pytest.mark.parametrize("is_link", [False, True])
    def test_root_takes_no_folder_and_no_link_of_another_user(
        self, tmp_path: Path, hugeplan: Command, is_link: bool
    ) -> None:
        mine, state = tmp_path / "mine", tmp_path / "state"
        mine.mkdir(mode=0o755)
        state.symlink_to(mine) if is_link else state.mkdir(mode=0o700)
        os.chown(state, 65534, 65534, follow_symlinks=False)
        done = hugeplan("demo", "--state-dir", str(state), "--port", str(free_port()))
        assert done.returncode == 2
        assert "is not a folder of our own" in done.stderr
        assert (stat.S_IMODE(mine.stat().st_mode), list(state.iterdir())) == (0o755, [])

    @pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root can be led by others")
    @pytest.mark.parametrize("is_link", [False, True])
    def test_root_makes_no_demo_below_what_another_user_can_replace(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_link: bool
    ) -> None:
        """Its log, its lock and its note would go where she likes: the folder is root's, what is above is not. In her
        own checkout she may change the program itself, and the demo starts.
        """
        hers = tmp_path / "hers"
        (tmp_path / "mine/state").mkdir(mode=0o755, parents=True)
        hers.symlink_to(tmp_path / "mine") if is_link else (tmp_path / "mine").rename(hers)
        os.chown(hers, 65534, 65534, follow_symlinks=False)
        monkeypatch.setattr(sys, "prefix", "/usr")
        with pytest.raises(InputError, match=r"HUGEPLAN_STATE_DIR: .*/hers \(owner 65534, .*HUGEPLAN_STATE_DIR"):
            make_private(hers / "state")
        assert (hers / "state").stat().st_mode & 0o777 == 0o755
        monkeypatch.setattr(sys, "prefix", str(hers))
        make_private(hers / "state")
        assert (hers / "state").stat().st_mode & 0o777 == 0o700

    @staticmethod
    def killed_it_leaves_nothing_running_and_its_data_whole(state: Path, demos: list[Demo], hugeplan: Command) -> None:
        """SIGKILL, then an heir that a second demo does not harm, whose PostgreSQL is killed, and that is hung up."""
        killed = Demo(state, free_port())
        demos.append(killed)
        killed.wait()
        killed.stop(signal.SIGKILL)
        deadline = time.monotonic() + WAIT_SECONDS
        while postgres_of(state):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        left = Path((state / "postgresql.socket").read_text().strip())
        assert left.exists()
        heir = Demo(state, free_port())
        demos.append(heir)
        heir.wait()
        assert not left.exists()
        assert httpx.get(f"{heir.url}/readyz").status_code == 200

        refused = hugeplan("demo", "--state-dir", str(state), "--port", str(free_port()))
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "another demo uses" in refused.stderr
        assert httpx.get(f"{heir.url}/readyz").status_code == 200

        pid = postmaster_of(state)
        assert pid is not None
        admin = {"Authorization": f"Bearer {heir.token('admin')}"}
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + WAIT_SECONDS
        statuses = set()
        while True:
            # Looked at first: an answer of before, and a server that has begun since, would say nothing of that server.
            is_another = postmaster_of(state) not in (None, pid)
            # Both: a session of the killed server lives on for a moment, and the one question may be answered by it.
            ready = httpx.get(f"{heir.url}/readyz", timeout=30)
            nodes = httpx.get(f"{heir.url}/api/v1/nodes", headers=admin, timeout=30)
            statuses |= {ready.status_code, nodes.status_code}
            if is_another and ready.is_success and nodes.is_success:
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert statuses <= {200, 503}
        assert [node["name"] for node in nodes.json()["items"]] == ["db-7"]
        assert heir.stop(signal.SIGHUP) == 0
        assert postgres_of(state) == []

    def test_busy_port_is_one_sentence(self, tmp_path: Path, hugeplan: Command) -> None:
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            port = busy.getsockname()[1]
            done = hugeplan("demo", "--state-dir", str(tmp_path), "--port", str(port))
        assert done.returncode == 2
        cause = f"port {port} of 127.0.0.1 is in use"
        assert done.stderr == f"hugeplan demo: {cause}; stop what uses it, or set HUGEPLAN_PORT to another port\n"
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("port", ["0", "70000", "http"])
    def test_wrong_port_names_the_variable(self, tmp_path: Path, port: str, hugeplan: Command) -> None:
        done = hugeplan("demo", "--state-dir", str(tmp_path), "--port", port)
        assert done.returncode == 2
        assert "HUGEPLAN_PORT" in done.stderr
        assert done.stderr.count("\n") == 1


class TestToken:
    def test_created_token_works(self, own_database_url: str, hugeplan: Command) -> None:
        environment = {"HUGEPLAN_DATABASE_URL": own_database_url}
        hugeplan("migrate", **environment)
        done = hugeplan("token", "create", "--role", "viewer", "--name", "ci", **environment)
        assert done.returncode == 0
        assert done.stdout.startswith("hp_")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--role", "king", "--name", "x"], "invalid choice: 'king'"),
            (["--role", "viewer", "--name", "x", "--machine-id", "m"], "--machine-id: 'm' is not valid"),
            (["--role", "viewer", "--name", "x", "--expires-in-days", "0"], "--expires-in-days: 0 is not valid"),
        ],
    )
    def test_wrong_arguments_are_one_line(self, arguments: list[str], words: str, hugeplan: Command) -> None:
        done = hugeplan("token", "create", *arguments)
        assert done.returncode == 2
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


class TestErrors:
    def test_database_that_is_away_is_one_line(self, hugeplan: Command) -> None:
        url = "postgresql://someone:a-password@/x?host=/nonexistent"
        for command in (["migrate"], ["token", "create", "--role", "viewer", "--name", "x"]):
            done = hugeplan(*command, HUGEPLAN_DATABASE_URL=url)
            assert done.returncode == 2
            assert done.stderr.startswith(f"hugeplan {command[0]}: HUGEPLAN_DATABASE_URL: ")
            assert "a-password" not in done.stderr
            assert done.stderr.count("\n") == 1

    @pytest.mark.parametrize(
        "url",
        [
            "nonsense",
            "mysql://root@/x",
            "postgresql//u:a-password@x/y",
            "",
            "postgresql://u:a-password/y",  # the host forgotten: the password is read as a port
            "postgresql://u:p/a-password@x/y",
            "postgresql://u:p@a-password@x/y",  # characters of a password that are not percent-encoded
            "postgresql://u:a-password%zz@x/y",
            "postgresql://u:p:q@a-password:z@x/y",
            "postgresql://u:p@x/y?a-password=1",
        ],
    )
    @pytest.mark.parametrize("command", ["migrate", "openapi", "serve", "demo"])
    def test_wrong_database_url_is_one_line_without_the_password(
        self, hugeplan: Command, command: str, url: str
    ) -> None:
        done = hugeplan(command, HUGEPLAN_DATABASE_URL=url)
        assert done.returncode == 2
        assert "HUGEPLAN_DATABASE_URL expected a URL such as postgresql://" in done.stderr
        assert "a-password" not in done.stderr
        assert done.stderr.count("\n") == 1

    def test_unknown_revision_is_one_line(self, own_database_url: str, hugeplan: Command) -> None:
        done = hugeplan("migrate", "--revision", "9999", HUGEPLAN_DATABASE_URL=own_database_url)
        assert done.returncode == 2
        assert "--revision: '9999' is not valid" in done.stderr
        assert done.stderr.count("\n") == 1

    def test_database_without_tables_says_what_to_run(self, own_database_url: str, hugeplan: Command) -> None:
        arguments = ("token", "create", "--role", "viewer", "--name", "x")
        done = hugeplan(*arguments, HUGEPLAN_DATABASE_URL=own_database_url)
        assert done.returncode == 2
        assert done.stderr.endswith("; run: hugeplan migrate\n")

    def test_openapi_prints_the_committed_document(self, hugeplan: Command) -> None:
        done = hugeplan("openapi")
        assert json.loads(done.stdout) == json.loads((REPOSITORY / "backend" / "openapi.json").read_text())
