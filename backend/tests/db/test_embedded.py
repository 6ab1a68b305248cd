"""The embedded server: private, restartable, and without traces outside its folder."""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from support.folders import starts_of_python

from hugeplan import embedded, unprivileged
from hugeplan.embedded import postgres

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root has rights to give up")


def modes(path: Path) -> dict[Path, int]:
    """The permissions of a folder and all folders above it."""
    return {folder: stat.S_IMODE(folder.stat().st_mode) for folder in (path, *path.parents)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.EmbeddedPostgres]:
    """A server whose folder was left behind by an interrupted initdb."""
    data = tmp_path_factory.mktemp("embedded") / "data"
    data.mkdir()
    (data / "half").write_text("of an initdb")
    with embedded.running(data, embedded.TEST_SETTINGS) as running:
        yield running


def data_of(server: embedded.EmbeddedPostgres) -> Path:
    """The server's folder, in which it works."""
    return Path(f"/proc/{server.pid}/cwd").readlink()


def test_interrupted_initdb_begins_again(server: embedded.EmbeddedPostgres) -> None:
    assert server.pid is not None
    assert (data_of(server) / "PG_VERSION").exists()
    assert not (data_of(server) / "half").exists()


def has_no_right(status: str) -> bool:
    """Whether a process's status in /proc shows no capability in any set, and none to come."""
    sets = set(re.findall(r"^Cap\w+:\s+(\w+)$", status, re.MULTILINE))
    return sets == {"0" * 16} and bool(re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE))


@AS_ROOT
def test_it_has_no_right_of_root_and_a_user_of_its_own(server: embedded.EmbeddedPostgres) -> None:
    with psycopg.connect(server.url("postgres")) as connection:
        for pid in (server.pid, connection.info.backend_pid):
            status = Path(f"/proc/{pid}/status").read_text()
            assert has_no_right(status), status
            ((users, groups),) = re.findall(r"^Uid:(.*)\nGid:(.*)\n", status, re.MULTILINE)
            (number,) = {int(word) for word in (users + groups).split()}
            assert re.search(r"^Groups:\s*$", status, re.MULTILINE)
            with pytest.raises(KeyError):
                pwd.getpwuid(number)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT pg_read_file('/etc/shadow')")
    words = ["setpriv", "--reuid=nobody", "--clear-groups", sys.executable, "-c"]
    program = "import sys, os; os.stat(sys.argv[1] + '/.s.PGSQL.5432')"
    folder = server.url("postgres").partition("host=")[2]
    asked = subprocess.run([*words, program, folder], capture_output=True, text=True, check=False)
    assert asked.returncode != 0, "who shares a user with it is its superuser"


def test_an_initdb_that_is_stopped_ends_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's runs with the user id of postgres or nobody, whose other processes may signal it."""
    programs = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's folder is closed to others
    (programs / "initdb").write_text("#!/bin/sh\nsleep 600 &\necho $! > pids\necho $$ >> pids\nkill -STOP $$\n")
    for path in (programs, programs / "initdb"):
        path.chmod(0o755)
    ended: list[int] = []

    def remove(folder: Path, **words: bool) -> None:
        if (folder / "pids").exists():
            ended.extend(map(int, (folder / "pids").read_text().split()))
        kept(folder, **words)

    kept = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", remove)
    monkeypatch.setattr(postgres, "programs_dir", lambda: programs)
    monkeypatch.setattr(postgres, "INITDB_TIMEOUT_SECONDS", 2.0)
    server = embedded.EmbeddedPostgres(tmp_path / "data", embedded.TEST_SETTINGS)
    with pytest.raises(embedded.EmbeddedPostgresError, match=r"initdb did not end within 2 s"):
        server._make_data_dir()
    kept(programs)
    assert len(ended) == 2
    for pid in ended:
        with suppress(ProcessLookupError), os.fdopen(os.pidfd_open(pid)) as process:
            assert select.select([process], [], [], 30)[0], "it has ended"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("ends", [True, False])
def test_a_server_that_does_not_stop_is_killed_and_not_waited_for_without_end(
    ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user, or another program of that user's, may have stopped it: then SIGQUIT does nothing."""
    monkeypatch.setattr(postgres, "STOP_TIMEOUT_SECONDS", 0.2)
    server = embedded.EmbeddedPostgres(tmp_path / "data", embedded.TEST_SETTINGS)
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        process.send_signal(signal.SIGSTOP)
        assert os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        server._process = process
        if ends:
            server.close()
            assert process.returncode == -signal.SIGKILL
            return
        with monkeypatch.context() as patched:
            patched.setattr(process, "send_signal", lambda _: None)
            with pytest.raises(
                embedded.EmbeddedPostgresError, match=rf"process {process.pid}\) did not end within 0.2 s"
            ):
                server.close()
        process.kill()


@AS_ROOT
def test_root_starts_in_no_folder_of_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loader would take libraries from there, where LD_LIBRARY_PATH has an empty entry."""
    with starts_of_python(tmp_path, monkeypatch) as starts:
        with embedded.running(tmp_path / "data", embedded.TEST_SETTINGS) as server:
            assert data_of(server) == tmp_path / "data"
        assert [start.split()[:2] for start in starts()] == [["0", "/"]] * 2


@AS_ROOT
def test_its_programs_may_lie_where_only_root_enters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels_bin = embedded.programs_dir().relative_to(embedded.programs_dir().parents[2])
    packages = embedded.programs_dir().parents[2]
    for part in (embedded.programs_dir().parent, packages / f"{postgres.WHEEL}.libs"):
        shutil.copytree(part, tmp_path / "closed" / part.relative_to(packages), symlinks=True)
    for path in (tmp_path / "closed").rglob("*"):
        if not path.is_symlink():
            path.chmod(0o700)  # as pip makes them under a strict umask
    monkeypatch.setattr(postgres, "programs_dir", lambda: tmp_path / "closed" / wheels_bin)
    with embedded.running(tmp_path / "data", embedded.TEST_SETTINGS) as server:
        copied_to = server.url("").partition("host=")[2]
        assert has_no_right(Path(f"/proc/{server.pid}/status").read_text())
        assert Path(f"/proc/{server.pid}/exe").readlink().is_relative_to(copied_to)
    noexec = tempfile.mkdtemp(prefix="noexec-", dir="/tmp")
    words = ["-t", "tmpfs", "-o", "noexec", "tmpfs", noexec]
    if subprocess.run([shutil.which("mount") or "/bin/mount", *words], check=False).returncode != 0:
        Path(noexec).rmdir()
        pytest.skip("SKIP: no file system can be mounted here")
    try:
        monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix, **_: str(Path(noexec, prefix)))
        Path(noexec, postgres.SOCKET_PREFIX).mkdir()
        expected = pytest.raises(embedded.EmbeddedPostgresError, match=r"^Only root may enter .* noexec: install")
        with expected, embedded.running(tmp_path / "new", embedded.TEST_SETTINGS):
            pass
    finally:
        subprocess.run([shutil.which("umount") or "/bin/umount", noexec], check=True)
        Path(noexec).rmdir()


@AS_ROOT
def test_data_of_another_user_become_its_own_and_no_link_is_followed(tmp_path: Path) -> None:
    """An earlier version ran as nobody, or as postgres, which may have put links there."""
    roots = tmp_path / "root's"
    roots.write_text("of root")
    data = tmp_path / "data"
    with embedded.running(data, embedded.TEST_SETTINGS) as server:
        server.ensure_database("kept")
        own = data.stat().st_uid
    for path in (*data.rglob("*"), data):
        os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    (data / "soft").symlink_to(roots)
    (data / "hard").hardlink_to(roots)
    with embedded.running(data, embedded.TEST_SETTINGS) as server, psycopg.connect(server.url("kept")):
        assert data.stat().st_uid not in {own, pwd.getpwnam("nobody").pw_uid}
        assert {path.lstat().st_uid for path in data.rglob("*") if path.name != "hard"} == {data.stat().st_uid}
        own = data.stat().st_uid
    assert roots.stat().st_uid == 0
    with embedded.running(data, embedded.TEST_SETTINGS):
        assert data.stat().st_uid == own, "a user of nobody's stays"


@AS_ROOT
def test_a_users_demo_is_not_given_away_by_one_start_as_root(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "PG_VERSION").write_text("18")
    for path in (data, data / "PG_VERSION"):
        os.chown(path, 1234, 1234)
    with (
        pytest.raises(embedded.EmbeddedPostgresError, match=r"data belongs to user 1234: start the demo as that user"),
        embedded.running(data, embedded.TEST_SETTINGS),
    ):
        pass
    assert {path.stat().st_uid for path in (data, data / "PG_VERSION")} == {1234}


@AS_ROOT
@pytest.mark.parametrize("own", ["", "cap_net_raw,cap_chown+ep"])
def test_a_program_gets_no_right_of_whoever_starts_it(own: str, tmp_path: Path) -> None:
    """Neither those handed on (an ambient set) nor those of its file, which must not keep it from running."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        program = shutil.copy("/bin/cat", folder)
        if own:
            subprocess.run([shutil.which("setcap") or pytest.skip("SKIP: no setcap"), own, program], check=True)
        rights = ["setpriv", "--inh-caps=+chown,+dac_override", "--ambient-caps=+chown,+dac_override"]
        words = [*rights, *unprivileged.words_before(65534, 65534), program, "/proc/self/status", "/proc/keys"]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, cwd=tmp_path,
            preexec_fn=lambda: ctypes.CDLL(None).syscall(unprivileged._KEYCTL, 1, b"roots"),
        )  # fmt: skip
    assert "Uid:\t65534\t65534\t65534\t65534\n" in done.stdout, done.stderr
    assert "roots" not in done.stdout, "root's session keyring, and the keys that it leads to"
    assert has_no_right(re.sub(r"CapBnd:.*", "", done.stdout) if own else done.stdout), done.stdout


def test_neither_its_making_nor_the_server_takes_pages_of_a_pool(server: embedded.EmbeddedPostgres) -> None:
    assert "huge_pages = off" in (data_of(server) / "postgresql.conf").read_text().replace("'", "")
    with psycopg.connect(server.url("postgres")) as connection:
        assert connection.execute("SHOW huge_pages").fetchone() == ("off",)


def test_it_listens_on_its_private_socket_only(server: embedded.EmbeddedPostgres) -> None:
    url = server.url("postgres")
    folder = Path(url.split("host=")[1])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(str(folder / ".s.PGSQL.5432")) < 100
    with psycopg.connect(url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_data_stays_over_a_restart_and_nothing_outside_its_folder(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    before = modes(private) | modes(embedded.programs_dir())
    with embedded.running(private / "data", embedded.TEST_SETTINGS) as server:
        socket_folder = Path(server.url("postgres").split("host=")[1])
        assert socket_folder.exists()
        server.ensure_database("kept")
        server.ensure_database("kept")
    assert not socket_folder.exists()
    assert modes(private) | modes(embedded.programs_dir()) == before
    with (
        embedded.running(private / "data", embedded.TEST_SETTINGS) as server,
        psycopg.connect(server.url("kept")) as c,
    ):
        assert c.execute("SELECT 1").fetchone() == (1,)


def test_server_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    wrong = embedded.TEST_SETTINGS | {"shared_buffers": "eight elephants"}
    with (
        pytest.raises(embedded.EmbeddedPostgresError, match="shared_buffers"),
        embedded.running(tmp_path / "data", wrong),
    ):
        pass
    with embedded.running(tmp_path / "data", embedded.TEST_SETTINGS) as server:
        assert server.pid is not None
