"""The commands around the service, as processes: what they print, what they leave behind, how they end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx
import pytest
from conftest import REPOSITORY
from support.reports import report

from hugeplan.cli import main

WAIT_SECONDS = 40.0


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

    def __init__(self, state_dir: Path, port: int) -> None:
        self.state_dir, self.port = state_dir, port
        self.url = f"http://127.0.0.1:{port}"
        arguments = ["demo", "--state-dir", str(state_dir), "--port", str(port), "--print-login-link"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hugeplan.cli", *arguments],
            env={**os.environ, "HUGEPLAN_LOG_LEVEL": "warning"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self) -> str:
        """Wait for the line with the login link; everything printed until then."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith("It works once"):
                return "".join(lines)
        raise AssertionError(f"the demo ended: {lines}")

    def token(self, name: str) -> str:
        """A token file's content."""
        return (self.state_dir / f"{name}.token").read_text().strip()

    def stop(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(number)
        self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode


def postgres_of(state_dir: Path) -> list[int]:
    """Process ids of PostgreSQL servers on a state folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"{state_dir}/postgresql" in path.read_bytes().decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture
def demos() -> Iterator[list[Demo]]:
    """Demos of a test; whatever happens, none is left running."""
    started: list[Demo] = []
    yield started
    for demo in started:
        if demo.process.poll() is None:
            demo.stop(signal.SIGTERM)


@pytest.fixture(scope="module")
def ended_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of a demo that has ended: a first start makes a database and runs every migration."""
    demo = Demo(tmp_path_factory.mktemp("ended") / "state", free_port())
    try:
        demo.wait()
    finally:
        demo.stop(signal.SIGTERM)
    return demo.state_dir


@pytest.fixture
def state(ended_demo: Path, tmp_path: Path) -> Path:
    """A copy of it, for tests to which a first start is nothing; its files keep their owner."""
    copy = tmp_path / "state"
    subprocess.run(["/bin/cp", "--archive", str(ended_demo), str(copy)], check=True)
    return copy


class TestDemo:
    def test_first_and_second_start(self, tmp_path: Path, demos: list[Demo]) -> None:
        state = tmp_path / "state"
        first = Demo(state, free_port())
        demos.append(first)
        printed = first.wait()
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
        second = Demo(state, free_port())
        demos.append(second)
        second.wait()
        seconds, load, cores = time.monotonic() - begun, os.getloadavg()[0], os.cpu_count() or 1
        assert second.token("admin") == first.token("admin")
        admin = {"Authorization": f"Bearer {second.token('admin')}"}
        nodes = httpx.get(f"{second.url}/api/v1/nodes", headers=admin).json()["items"]
        assert [node["name"] for node in nodes] == ["db-7"]
        assert second.stop(signal.SIGTERM) == 0
        assert postgres_of(state) == []
        if seconds >= 10 and load > 2 * cores:
            pytest.skip(f"the second start took {seconds:.1f} s with {load:.0f} processes waiting for {cores} cores")
        assert seconds < 10

    def test_the_link_is_shown_to_no_file(self, state: Path) -> None:
        port = free_port()
        process = subprocess.Popen(
            [sys.executable, "-m", "hugeplan.cli", "demo", "--state-dir", str(state), "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        process.terminate()
        assert process.communicate(timeout=WAIT_SECONDS)[0] == ""

    @pytest.mark.parametrize("folder", ["/", "/tmp"])  # noqa: S108
    def test_a_folder_that_is_not_ours_is_refused(self, folder: str, hugeplan: Command) -> None:
        before = Path(folder).stat().st_mode
        done = hugeplan("demo", "--state-dir", folder, "--port", str(free_port()))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "is not a folder of our own" in done.stderr
        assert Path(folder).stat().st_mode == before

    def test_a_killed_postgresql_is_started_again(self, state: Path, demos: list[Demo]) -> None:
        demo = Demo(state, free_port())
        demos.append(demo)
        demo.wait()
        pid = int((demo.state_dir / "postgresql/postmaster.pid").read_text().split()[0])
        admin = {"Authorization": f"Bearer {demo.token('admin')}"}
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + WAIT_SECONDS
        statuses = set()
        while True:
            status = httpx.get(f"{demo.url}/readyz", timeout=30).status_code
            statuses.add(status)
            if status == 200 and int((demo.state_dir / "postgresql/postmaster.pid").read_text().split()[0]) != pid:
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert statuses <= {200, 503}
        assert httpx.get(f"{demo.url}/api/v1/nodes", headers=admin).status_code == 200
        assert demo.stop(signal.SIGTERM) == 0
        assert postgres_of(demo.state_dir) == []

    def test_hang_up_stops_everything(self, state: Path, demos: list[Demo]) -> None:
        demo = Demo(state, free_port())
        demos.append(demo)
        demo.wait()
        assert demo.stop(signal.SIGHUP) == 0
        assert postgres_of(demo.state_dir) == []

    def test_killed_demo_leaves_nothing_running_and_its_data_whole(self, state: Path, demos: list[Demo]) -> None:
        killed = Demo(state, free_port())
        demos.append(killed)
        killed.wait()
        killed.stop(signal.SIGKILL)
        deadline = time.monotonic() + WAIT_SECONDS
        while postgres_of(killed.state_dir):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        left = Path((killed.state_dir / "postgresql.socket").read_text().strip())
        assert left.exists()
        heir = Demo(state, free_port())
        demos.append(heir)
        heir.wait()
        assert not left.exists()
        assert httpx.get(f"{heir.url}/readyz").status_code == 200
        assert heir.stop(signal.SIGTERM) == 0
        assert postgres_of(heir.state_dir) == []

    def test_second_demo_on_one_folder_is_refused_and_harms_nothing(
        self, state: Path, demos: list[Demo], hugeplan: Command
    ) -> None:
        demo = Demo(state, free_port())
        demos.append(demo)
        demo.wait()
        done = hugeplan("demo", "--state-dir", str(demo.state_dir), "--port", str(free_port()))
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "another demo uses" in done.stderr
        assert httpx.get(f"{demo.url}/readyz").status_code == 200

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


class TestServe:
    def test_first_admin_token_is_shown_once(self, own_database_url: str, hugeplan: Command) -> None:
        environment = {"HUGEPLAN_DATABASE_URL": own_database_url, "HUGEPLAN_LOG_LEVEL": "warning"}
        assert hugeplan("migrate", **environment).returncode == 0
        shown = []
        for _ in range(2):
            port = free_port()
            process = subprocess.Popen(
                [sys.executable, "-m", "hugeplan.cli", "serve"],
                env={**os.environ, **environment, "HUGEPLAN_PORT": str(port)},
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("hugeplan answers"):
                    break
            tokens = [line.split()[-1] for line in lines if line.startswith("First admin token")]
            if tokens:
                headers = {"Authorization": f"Bearer {tokens[0]}"}
                assert httpx.get(f"http://127.0.0.1:{port}/api/v1/tokens", headers=headers).status_code == 200
            shown.append(len(tokens))
            process.terminate()
            process.communicate(timeout=WAIT_SECONDS)
        assert shown == [1, 0]


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

    @pytest.mark.parametrize("url", ["nonsense", "mysql://root@/x", "postgresql//u:a-password@x/y", ""])
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
