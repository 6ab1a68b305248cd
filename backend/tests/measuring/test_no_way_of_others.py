"""Root goes no way that a server's user may change: a link there may lead to where no signal ends a wait."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from conftest import REPOSITORY
from support.folders import folder_for_all, starts_of_python

from hugeplan.measuring import workplace as workplace_module
from hugeplan.measuring.mariadb_server import MariadbError, MariadbServer
from hugeplan.measuring.postgresql_server import Server, ServerError
from hugeplan.measuring.user_programs import give
from hugeplan.measuring.workplace import remove_leftovers, workplace

SERVES_NOTHING = (REPOSITORY / "agent/tests/serves_nothing.py").read_text(encoding="utf-8")
HOLD_SECONDS = 60
NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: others may put links only in root's way")


@pytest.fixture
def held(tmp_path: Path) -> Iterator[int]:
    """The pid of another user's process: who looks below its working folder waits, and no signal ends that."""
    node, device = Path("/dev/fuse"), Path("/var/tmp") / f"{tmp_path.name}-{os.getpid()}-fuse"  # noqa: S108 - for all
    if not node.exists():
        pytest.skip(f"SKIP: {node} is missing")
    os.mknod(device, 0o20666, node.stat().st_rdev)
    device.chmod(0o666)
    words = ["unshare", "-rm", "/usr/bin/python3", "-c", SERVES_NOTHING, "files", str(device), str(HOLD_SECONDS)]
    process = subprocess.Popen(
        words,
        cwd="/",
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        if not line:
            pytest.skip(f"SKIP: no such process can be made here: {process.stderr.read().decode()[-200:]}")
        yield int(line)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        device.unlink()


BEGIN = """
import sys
from pathlib import Path
import psycopg
from hugeplan.measuring import workplace
from hugeplan.measuring.mariadb_server import MariadbServer
from hugeplan.measuring.postgresql_server import Server, ServerError
folder, held = Path(sys.argv[1]), int(sys.argv[2])
server = Server.__new__(Server)
server.folder, server.data, server.user = folder / "a", folder / "a/data", "nobody"
server.held = Path(sys.argv[3])
"""
END = "workplace.end_programs(folder)"
CONNECT = """
try:
    server.connect()
except (psycopg.OperationalError, ServerError):
    pass
"""
OWN = """
try:
    server.own(held)
except ServerError:
    pass
"""
ROWS = """
mysql = MariadbServer.__new__(MariadbServer)
mysql.folder = mysql.held = folder / "a"
mysql.user = "nobody"
mysql.data_bytes()
"""


def waits_for_fuse(pid: int) -> bool:
    return Path(f"/proc/{pid}/wchan").read_text(encoding="ascii") == "request_wait_answer"


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + HOLD_SECONDS / 2
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("data", END),
        ("data", "(folder / 'lock').write_bytes(b''); workplace.remove_leftovers(folder.parent)"),
        ("loaded", "server.prepare()"),
        (".s.PGSQL.5432", CONNECT),
        ("data", OWN),
        ("data", ROWS),
    ],
    ids=["end", "leftovers", "loaded", "connect", "own", "rows"],
)
def test_a_link_of_a_servers_user_holds_root_up_nowhere(held: int, name: str, code: str) -> None:
    with folder_for_all() as place:
        folder = place / "trial-x"
        (folder / "a").mkdir(parents=True)
        (folder / "a" / name).symlink_to(f"/proc/{held}/cwd/x")
        os.chown(folder / "a", NOBODY, NOBODY)
        place.chmod(0o755)
        words = [sys.executable, "-c", BEGIN + code, str(folder), str(held), str(folder / "a")]
        with subprocess.Popen(words) as root:
            try:
                if code == ROWS:  # its user waits, and root for it: a signal ends that
                    wait_until(lambda: any(map(waits_for_fuse, (root.pid, *children_of(root.pid)))))
                    root.kill()
                assert root.wait(HOLD_SECONDS / 2) == (-signal.SIGKILL if code == ROWS else 0)
            finally:
                root.kill()
                os.killpg(os.getpgid(held), signal.SIGKILL)  # who waits for it waits no longer


LOG = """
from hugeplan.measuring.user_programs import created, text_of
created(server.held / "new").close()
try:
    print(text_of(server.held / "log"))
except OSError:
    pass
"""
RUN = "server.command = lambda *_: ['true']; server.run()"
REMOVE = """
try:
    workplace.remove(folder)
except OSError as problem:
    sys.exit(None if "is a mount" in str(problem) else 1)
sys.exit(1)
"""


@pytest.mark.parametrize(
    ("name", "code"),
    [("", CONNECT), ("", LOG), ("", RUN), ("", END), ("", REMOVE), (".s.PGSQL.5432", CONNECT), ("log", LOG)],
    ids=["connect", "log", "run", "end", "remove", "over the socket", "over the log"],
)
def test_a_mount_of_a_servers_user_holds_root_up_nowhere(name: str, code: str) -> None:
    """One of FUSE over the folder that root gave, which answers nothing: root goes by the folder that it held before.
    What runs below is ended, and what cannot be removed is said."""
    libc = ctypes.CDLL(None)
    with folder_for_all() as place, ExitStack() as after:
        place.chmod(0o755)
        folder = place / "trial-x"
        held, over = give(folder / "a", "nobody"), folder / "a" / name
        if name:
            over.touch()
        (folder / "lock").write_bytes(b"")
        program = subprocess.Popen(["/bin/sleep", "300"], cwd=folder / "a", env={}, user=NOBODY)
        after.callback(program.wait)
        after.callback(program.kill)
        served = os.open("/dev/fuse", os.O_RDWR)
        after.callback(os.close, served)  # who waits for it waits no longer
        mode = 0o100000 if name else 0o40000
        options = f"fd={served},rootmode={mode:o},user_id={NOBODY},group_id={NOBODY},allow_other,default_permissions"
        if libc.mount(b"x", os.fsencode(over), b"fuse", 6, options.encode()):
            pytest.skip("SKIP: no right to mount")
        after.callback(libc.umount2, os.fsencode(over), 2)
        words = [sys.executable, "-c", BEGIN + code, str(folder), "0", str(held)]
        with subprocess.Popen(words, pass_fds=[int(held.name)]) as root:
            try:
                assert root.wait(HOLD_SECONDS / 2) == 0
                assert code != END or program.wait(HOLD_SECONDS / 2) == -signal.SIGKILL
            finally:
                after.close()


@pytest.mark.parametrize("is_mount", [False, True])
def test_what_a_servers_user_moves_into_its_folder_is_neither_ended_nor_removed(
    is_mount: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It may move a folder of its own, with what root has in it: a process, files, a mount."""
    monkeypatch.setattr(workplace_module, "_END_SECONDS", 1.0)
    words = ["/bin/sleep", "300"]
    with folder_for_all() as place, ExitStack() as after:
        for path in (place / "home/own", place / "home"):
            give(path, "nobody")
        kept = place / "home/own/kept"
        kept.mkdir()
        if is_mount:
            mount = ["mount", "-t", "tmpfs", "x", str(kept)]
            if subprocess.run(mount, check=False).returncode != 0:
                pytest.skip("SKIP: nothing can be mounted here")
            os.chown(kept, NOBODY, NOBODY)  # it may remove what that holds
        (kept / "file").write_text("root's")
        with workplace(place / "work") as folder:
            give(folder / "a/mine", "nobody")
            give(folder / "a", "nobody")
            (folder / "b").mkdir()
            victim = subprocess.Popen(words, cwd=place / "home/own", env={})
            after.callback(victim.wait)
            after.callback(victim.kill)
            program = subprocess.Popen(words, cwd=folder / "a", env={}, user=NOBODY)
            mv = ["mv", str(kept.parent), "a/"]
            subprocess.run(mv, cwd=folder, check=True, user=NOBODY, group=NOBODY, extra_groups=[])
            kept = folder / "a/own/kept"
            if is_mount:
                after.callback(subprocess.run, ["umount", kept], check=True)
        assert program.wait() == -signal.SIGKILL
        assert victim.poll() is None
        assert (kept / "file").read_text() == "root's"
        assert not (folder / "a/mine").exists()
        assert f"{folder} is kept, the next trial tries again: it holds what" in capfd.readouterr().err
        after.close()
        shutil.rmtree(kept)
        remove_leftovers(place / "work")
        assert not (place / "work").exists()


def test_a_data_folder_is_removed_with_its_users_rights() -> None:
    with folder_for_all() as place:
        server = Server.__new__(Server)
        server.folder, server.data, server.user = place / "a", place / "a/data", "nobody"
        server.programs, server.version, server._nice = place, 16, []
        give(server.folder, "nobody")
        give(server.data, "nobody")
        (server.data / "kept").mkdir()
        (server.data / "kept/file").write_text("root's")
        with pytest.raises(ServerError, match="initdb failed"):
            server.prepare()
        assert (server.data / "kept/file").exists()
        shutil.rmtree(server.data / "kept")
        with pytest.raises(ServerError, match="initdb failed"):
            server.prepare()
        assert not server.data.exists()


def test_what_is_root_until_it_is_the_user_starts_in_no_folder_of_that_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loader took libraries from there, where root's LD_LIBRARY_PATH has an empty entry; PATH gave programs."""
    monkeypatch.setenv("LD_LIBRARY_PATH", ":lib:/opt/x")
    monkeypatch.setenv("PATH", os.environ["PATH"] + "::bin")
    with folder_for_all() as place, starts_of_python(tmp_path, monkeypatch) as starts:
        place.chmod(0o755)
        (place / "says").write_text('#!/bin/sh\necho "$(id -u) $(pwd) $PATH $LD_LIBRARY_PATH"\n')
        (place / "says").chmod(0o755)
        server, mysql = Server.__new__(Server), MariadbServer.__new__(MariadbServer)
        server.folder, server.programs, server.user, server._nice = place / "a", place, "nobody", ["nice", "-n", "0"]
        mysql.folder, mysql.program, mysql.engine, mysql.user = place / "a", place / "says", "mariadb", "nobody"
        mysql.pool_bytes, mysql.settings = 1, {}
        server.held = mysql.held = give(place / "a", "nobody")
        path = os.environ["PATH"].removesuffix("::bin")
        assert server.run("says") == f"{NOBODY} {place}/a {path} /opt/x\n"
        with (
            pytest.raises(MariadbError, match=rf"did not start: {NOBODY} {place}/a "),
            mysql.running(large_pages=False, thp=False),
        ):
            pass
    assert starts() == [f"0 / {path} /opt/x"] * 3
