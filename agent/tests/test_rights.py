"""What a process names is read with no more rights than its user has, whoever the agent runs as."""

from __future__ import annotations

import itertools
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hugeplan_agent.collectors.engines.base import Facts
from hugeplan_agent.collectors.servers import facts_of, servers_of
from hugeplan_agent.host import Host
from hugeplan_agent.rights import READ, SEARCH, Rights

if os.geteuid() != 0 or not Path("/usr/bin/python3").exists():
    pytest.skip("SKIP: only root reads what others may not, and all may run /usr/bin/python3", allow_module_level=True)

USER, GROUP, OTHER_GROUP, NEITHER = 65534, 23456, 23457, 23458
PYTHON = "/usr/bin/python3"
SAYS = """
import ctypes, os, sys, time
if sys.argv[-1] == "root":
    os.setuid(0)
if sys.argv[-1] == "namespace" and ctypes.CDLL(None).unshare(0x10000000):
    sys.exit()
print("runs", flush=True)
time.sleep(600)
"""
CONF = "shared_buffers = 7GB\n"
REFUSED = "postgresql.conf: its server's user may not read it"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder of the user's, below one of root's that all may enter, as pytest's are not."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        data = Path(made) / "data"
        data.mkdir(mode=0o700)
        os.chown(data, USER, USER)
        (Path(made) / "postgres").symlink_to(PYTHON)
        yield data


@contextmanager
def postgres(folder: Path, *words: str, user: int = USER, groups: tuple[int, ...] = ()) -> Iterator[int]:
    """A process of this name that only sleeps; its pid."""
    with running(folder.parent / "postgres", "-D", str(folder), *words, user=user, groups=groups) as pid:
        yield pid


@contextmanager
def running(
    program: Path, *words: str, user: int = USER, groups: tuple[int, ...] = (), folder: str | Path = "/"
) -> Iterator[int]:
    """A process that only sleeps, in a folder where a shell started it; its pid."""
    # Before it becomes the user, who may not go there by its name.
    process = subprocess.Popen(
        [str(program), "-c", SAYS, *words],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={"PWD": str(folder)},
        user=user,
        group=user,
        extra_groups=groups,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() == "":
            pytest.skip("SKIP: no such process can be made here")
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def facts_of_pid(pid: int) -> Facts:
    host = Host("/")
    (one,) = (one for one in servers_of(host).found if one.server.main.pid == pid)
    return facts_of(host, one)


def settings(pid: int) -> tuple[dict[str, Any], str | None]:
    """The settings that the agent reads of a server, and its note."""
    facts = facts_of_pid(pid)
    return {name: said["value"] for name, said in facts.settings.found.items()}, facts.settings.note


def written(path: Path, mode: int, uid: int = 0, gid: int = 0) -> Path:
    path.write_text(CONF)
    path.chmod(mode)
    os.chown(path, uid, gid)
    return path


READ_IT = {"shared_buffers": "7GB"}


class TestWhatAServerNames:
    def test_a_link_to_what_only_root_may_read(self, folder: Path) -> None:
        (folder / "postgresql.conf").symlink_to(written(folder.parent / "secret.conf", 0o600))
        with postgres(folder) as pid:
            assert settings(pid) == ({}, REFUSED)

    def test_a_file_in_a_folder_that_only_root_may_enter(self, folder: Path) -> None:
        closed = folder.parent / "closed"
        closed.mkdir(mode=0o700)
        named = written(closed / "postgresql.conf", 0o644)
        with postgres(folder, "-c", f"config_file={named}") as pid:
            assert settings(pid) == ({}, REFUSED)

    def test_an_included_folder_that_only_root_may_list(self, folder: Path) -> None:
        closed = folder.parent / "closed"
        closed.mkdir(mode=0o711)
        written(closed / "a.conf", 0o644)
        (folder / "postgresql.conf").write_text(f"include_dir '{closed}'\n")
        with postgres(folder) as pid:
            assert settings(pid) == ({}, "closed: its server's user may not read it")

    def test_its_own_file_in_its_own_folder(self, folder: Path) -> None:
        written(folder / "postgresql.conf", 0o600, USER)
        with postgres(folder) as pid:
            assert settings(pid) == (READ_IT, None)

    def test_a_file_of_roots_that_its_group_may_read(self, folder: Path) -> None:
        written(folder / "postgresql.conf", 0o640, 0, GROUP)
        with postgres(folder, groups=(OTHER_GROUP, GROUP)) as pid:
            assert settings(pid) == (READ_IT, None)
        with postgres(folder, groups=(OTHER_GROUP,)) as pid:
            assert settings(pid) == ({}, REFUSED)

    def test_a_server_of_roots(self, folder: Path) -> None:
        written(folder / "postgresql.conf", 0o600, NEITHER)
        with postgres(folder, user=0) as pid:
            assert settings(pid) == (READ_IT, None)

    def test_root_of_a_user_namespace(self, folder: Path) -> None:
        """As in a rootless container: all files of its namespace are its own, those of the node's root are not."""
        os.chown(folder, 100_000, 100_000)
        written(folder / "postgresql.conf", 0o600, 100_000, 100_000)
        with postgres(folder, "namespace") as pid:
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{pid}/{name}").write_text(f"0 {USER} 1\n1 100000 9\n")
            assert settings(pid) == (READ_IT, None)
            os.chown(folder / "postgresql.conf", 0, 0)
            assert settings(pid) == ({}, REFUSED)

    @pytest.mark.parametrize("word", ["waits", "root"])
    def test_a_set_uid_program_under_the_servers_name(self, folder: Path, word: str) -> None:
        """sudo waits for a password as root through and through: anybody may start it, and name any file."""
        program = folder.parent / "postgres"
        program.unlink()
        shutil.copy(PYTHON, program)
        program.chmod(0o4755)
        (folder / "postgresql.conf").symlink_to(written(folder.parent / "secret.conf", 0o600))
        with postgres(folder, word) as pid:
            if Path(f"/proc/{pid}").stat().st_uid != 0:
                pytest.skip("SKIP: no set-uid program acts as root here")
            assert settings(pid)[0] == {}
            (folder.parent / "secret.conf").chmod(0o644)
            folder.chmod(0o755)
            assert settings(pid) == (READ_IT, None), "what all may read"


@pytest.fixture
def closed(folder: Path) -> Path:
    """A data folder of the user's, below one of root's that only root may enter."""
    data = folder.parent / "closed" / "data"
    data.mkdir(mode=0o700, parents=True)
    data.parent.chmod(0o700)
    for path in (data, written(data / "postgresql.conf", 0o600), written(data / "my.cnf", 0o600)):
        os.chown(path, USER, USER)
    return data


class TestAServerInItsWorkingFolder:
    """The kernel looks for its relative names from there on, whoever may search the folders above."""

    @pytest.mark.parametrize(
        "words", ["-D /proc/self/cwd", "-D .", "-D data", "", "-c config_file=postgresql.conf",
                  "-c config_file=/proc/self/cwd/postgresql.conf"],
    )  # fmt: skip
    def test_postgresql_in_its_data_folder(self, folder: Path, closed: Path, words: str) -> None:
        """Found: the settings of a demo's server, below a folder of root's, were refused; its file for commands was
        ./postgresql.conf."""
        (closed / "postgresql.conf").write_text(f"{CONF}include 'more/own.conf'\n")
        (closed / "more").mkdir()
        (closed / "more" / "own.conf").write_text("include '../last.conf'\n")
        (closed / "last.conf").write_text("work_mem = 5MB\n")
        (closed / "postgresql.auto.conf").write_text("huge_pages = on\n")
        (closed / "postmaster.pid").write_text("7\n/d\n1\n5432\nrun\n")
        with running(folder.parent / "postgres", *words.split(), folder=closed) as pid:
            assert settings(pid) == (READ_IT | {"work_mem": "5MB", "huge_pages": "on"}, None)
            facts = facts_of_pid(pid)
            assert (facts.config_file, facts.socket_folder) == (f"{closed}/postgresql.conf", f"{closed}/run")

    def test_an_option_file_in_the_folder_of_its_start(self, folder: Path, closed: Path) -> None:
        (folder.parent / "mysqld").symlink_to(PYTHON)
        (closed / "my.cnf").write_text("[mysqld]\nmax_connections = 7\n!include /proc/self/cwd/more.cnf\n")
        (closed / "more.cnf").write_text("[mysqld]\nlarge_pages = on\n")
        (closed / "mysqld-auto.cnf").write_text('{"a": {"table_open_cache": {"Value": "9"}}}')
        with running(folder.parent / "mysqld", "--defaults-file=my.cnf", folder=closed) as pid:
            assert settings(pid) == ({"max_connections": "7", "large_pages": "on", "table_open_cache": "9"}, None)

    @pytest.mark.parametrize("name", ["absolute", "../closed.conf", "../data/in.conf", "shut/a.conf", "secret.conf"])
    def test_what_its_user_may_not_read_from_there(self, folder: Path, closed: Path, name: str) -> None:
        """By an absolute name, above its folder, in a folder of it, or where a link leads."""
        written(closed / "in.conf", 0o644)
        written(closed.parent / "closed.conf", 0o644)
        (closed / "shut").mkdir(mode=0o700)
        written(closed / "shut" / "a.conf", 0o644)
        (closed / "secret.conf").symlink_to(closed / "in.conf")
        (closed / "postgresql.conf").write_text(f"include '{name.replace('absolute', str(closed / 'in.conf'))}'\n")
        with running(folder.parent / "postgres", "-D", "/proc/self/cwd", folder=closed) as pid:
            file = name.replace("absolute", "in.conf").rpartition("/")[2]
            assert settings(pid) == ({}, f"{file}: its server's user may not read it")
            closed.parent.chmod(0o711)
            (closed / "shut").chmod(0o711)
            assert settings(pid) == (READ_IT, None), "what all may enter"

    def test_a_working_folder_that_it_may_not_search(self, folder: Path, closed: Path) -> None:
        os.chown(closed, 0, 0)
        with running(folder.parent / "postgres", "-D", "/proc/self/cwd", folder=closed) as pid:
            assert settings(pid)[0] == {}

    def test_above_its_working_folder_as_far_as_its_root(self, folder: Path) -> None:
        (folder / "postgresql.conf").write_text(f"include '{'../' * 20}{str(folder)[1:]}/own.conf'\n")
        written(folder / "own.conf", 0o644)
        with running(folder.parent / "postgres", "-D", "/proc/self/cwd", folder=folder) as pid:
            assert settings(pid) == (READ_IT, None)


def _list(user: int, group: int, named: int, mask: int, other: int) -> bytes:
    """An access list (acl(5)) with an entry for the user, and one for a group of the user's."""
    none = 2**32 - 1
    entries = ((1, 6, none), (2, user, USER), (4, group, none), (8, named, GROUP), (16, mask, none), (32, other, none))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def test_it_is_as_the_kernel_says(folder: Path) -> None:
    """Owners, groups, modes and access lists, against who is that user."""
    wanted = {READ: os.R_OK, SEARCH: os.X_OK}
    paths: list[Path] = []
    for number, (uid, gid, bits) in enumerate(
        itertools.product((0, USER), (0, USER, GROUP), (0o700, 0o070, 0o007, 0o640, 0o604, 0o444, 0o111, 0o510))
    ):
        paths.append(written(folder / f"mode{number}", bits, uid, gid))
    for number, listed in enumerate(itertools.product((0, 4, 7), (0, 4), (0, 1, 5), (0, 4, 7), (0, 5))):
        for gid in (NEITHER, OTHER_GROUP):
            path = written(folder / f"list{number}-{gid}", 0o600, 0, gid)
            try:
                os.setxattr(path, "system.posix_acl_access", _list(*listed))
            except OSError as error:
                pytest.skip(f"SKIP: no access lists here: {error}")
            paths.append(path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([GROUP, OTHER_GROUP])
        os.setgid(USER)
        os.setuid(USER)
        os.write(writing, bytes(os.access(path, how) for path in paths for how in wanted.values()))
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        expected = list(map(bool, said.read()))
    rights, found = Rights(USER, frozenset({USER, GROUP, OTHER_GROUP})), []
    for path in paths:
        descriptor = os.open(path, os.O_PATH)
        for how in wanted:
            try:
                rights.require(descriptor, how)
                found.append(True)
            except PermissionError:
                found.append(False)
        os.close(descriptor)
    assert len(expected) == len(found) > 500
    assert {True, False} == set(expected)
    assert [(path, how) for (path, how), a, b in zip(itertools.product(paths, wanted), expected, found) if a != b] == []
