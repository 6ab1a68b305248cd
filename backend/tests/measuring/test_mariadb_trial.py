"""A private MariaDB as the subject: refusals, what is started, the pages it is on, and one small real trial."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import inf, nan
from pathlib import Path

import pytest

from hugeplan.cli import main
from hugeplan.measuring import mariadb
from hugeplan.measuring.batches import clients_per_cpu
from hugeplan.measuring.mariadb import MariadbSubject, Plan, largest_data_bytes
from hugeplan.measuring.mariadb_server import (
    MariadbError,
    MariadbServer,
    find_server,
    release_of,
    rows_of,
)
from hugeplan.measuring.sysbench_clients import Sysbench, find_sysbench
from hugeplan.measuring.trial import ArmError, TrialError
from hugeplan.measuring.user_programs import BASE_BYTES, memory_of
from hugeplan.measuring.workplace import programs_of, workplace
from hugeplan.planner.model import GIB, MIB

SHORT = Path("/var/tmp")  # noqa: S108 - a socket's path has at most 107 bytes, and the server's user enters it


def programs(engine: str = "mariadb") -> tuple[Path, str]:
    """``HUGEPLAN_TEST_MYSQL`` names the folder of MySQL's: few distributions have packages of both."""
    folder = os.environ.get("HUGEPLAN_TEST_MYSQL") if engine == "mysql" else None
    try:
        found = find_server(Path(folder) if folder else None, engine), find_sysbench()
        release_of(found[0], engine)
    except MariadbError as problem:
        pytest.skip(str(problem))
    return found


@pytest.fixture
def server_folder() -> Iterator[Path]:
    """One that the server's user enters, who asks the programs for their version."""
    with tempfile.TemporaryDirectory(dir=SHORT) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_what_is_not_there_is_named(server_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MariadbError, match=r"has no mariadbd or mysqld; name its folder with --bin-dir"):
        find_server(server_folder)
    (server_folder / "mysqld").write_text("#!/bin/sh\necho 'mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community)'\n")
    (server_folder / "mysqld").chmod(0o755)
    assert find_server(server_folder) == server_folder / "mysqld"
    with pytest.raises(MariadbError, match=r"does not tell a version of mariadb: mysqld  Ver 8\.4\.3"):
        release_of(server_folder / "mysqld")
    assert release_of(find_server(server_folder, "mysql"), "mysql") == "8.4.3"
    (server_folder / "mariadbd").write_text(
        "#!/bin/sh\necho 'mariadbd  Ver 11.4.2-MariaDB for Linux on x86_64 (Source)'\n"
    )
    (server_folder / "mariadbd").chmod(0o755)
    assert release_of(find_server(server_folder)) == "11.4.2"
    with pytest.raises(MariadbError, match=r"does not tell a version of mysql: mariadbd  Ver 11\.4\.2"):
        release_of(find_server(server_folder), "mysql")
    monkeypatch.setenv("PATH", str(server_folder))
    with pytest.raises(MariadbError, match="sysbench is not installed"):
        find_sysbench()


def test_data_that_fit_are_never_refused() -> None:
    for clients in (1, 8, 64, 500):
        for room in (2 * GIB, 20 * GIB, 500 * GIB):
            data = largest_data_bytes(clients, room)
            plan = Plan(program=Path("/x"), sysbench="x", data_bytes=data, row_bytes=128, clients=clients)
            assert data == 0 or plan.needed_bytes(()) <= room + 8 * MIB, "two pools are rounded up"


def test_a_trial_that_does_not_fit_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    words = ["trial", "mariadb", "--bin-dir", str(programs()[0].parent), "--data-gib", "4000"]
    words += ["--work-dir", str(work), "--output", str(out)]
    assert main(words) == 1
    assert "the memory does not suffice: two servers with a buffer pool of" in capsys.readouterr().err
    assert not work.exists()
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--row-bytes 9000", "--row-bytes 9000: give 1 to 8000"),
        ("--clients 0", "--clients 0: give 1 to 1000"),
        ("--set datadir=/var/lib/mysql", "the trial sets datadir itself"),
        ("--set large_pages=1", "the trial sets large_pages itself"),
        ("--data-gib 0", "--data-gib 0: give 0.01 to 4096"),
    ],
)
def test_wrong_input_is_named(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trial", "mariadb", "--bin-dir", str(programs()[0].parent), *words.split()]) == 2
    assert said in capsys.readouterr().err


def test_free_larger_pages_of_others_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MariaDB has no setting for the size: it takes the largest that fits."""
    for kib, free in ((2048, 9), (1048576, 1)):
        (tmp_path / f"hugepages/hugepages-{kib}kB").mkdir(parents=True)
        (tmp_path / f"hugepages/hugepages-{kib}kB/free_hugepages").write_text(f"{free}\n")
    monkeypatch.setattr(mariadb, "_SYSFS", tmp_path)
    with pytest.raises(ArmError, match="free pages of 1 GiB are there"):
        mariadb._check_larger_pools(2 * MIB)
    mariadb._check_larger_pools(GIB)
    (tmp_path / "hugepages/hugepages-1048576kB/free_hugepages").write_text("0\n")
    mariadb._check_larger_pools(2 * MIB)


@contextmanager
def clients_that_say(*said: float) -> Iterator[Sysbench]:
    """Any program of the server's user has the other ends of the pipes: it reads no order."""
    clients = Sysbench.__new__(Sysbench)
    clients._runs, clients._batches = [], 0
    with ExitStack() as stack:
        pipes = clients._made(stack)
        pipes[-1].write(struct.pack(f"={len(said)}d", *said))
        yield clients


def test_orders_that_nobody_reads_are_not_waited_for() -> None:
    with clients_that_say() as clients, pytest.raises(MariadbError, match="do not take what they are told"):
        clients._order([1] * 10_000)


@pytest.mark.parametrize("said", [(nan, nan), (0.0, 1.0), (1e30, 1e30), (inf, inf), (-inf, inf), (nan, 0.0)])
def test_times_that_are_none_are_a_sentence(said: tuple[float, float]) -> None:
    with clients_that_say(*said) as clients, pytest.raises(MariadbError, match="times at which they cannot"):
        clients._order([1])


ENGINES = pytest.mark.parametrize("engine", ["mariadb", "mysql"])


@ENGINES
def test_a_server_answers_lookups_and_is_gone_afterwards(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "of who measures")
    program, sysbench = programs(engine)
    with workplace(SHORT / tmp_path.name) as folder:
        rows = rows_of(64 * MIB, 200)
        server = MariadbServer(
            program,
            folder / "a",
            rows=rows,
            row_bytes=200,
            pool_bytes=96 * MIB,
            settings={"sort_buffer_size": "1M"},
            engine=engine,
        )
        server.load()
        assert 0.8 < server.data_bytes() / (64 * MIB) < 1.3, "the data are as large as they were asked for"
        with server.running(large_pages=False, thp=False), Sysbench(server, 3, sysbench) as clients:
            assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o700, "it asks nobody for a password"
            for pid in (server.pid, *(process.pid for process, _ in clients._runs)):
                assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
                assert b"A_SECRET=" not in Path(f"/proc/{pid}/environ").read_bytes()
            clients.read_all()
            clients.events = 500
            before = server.cpu_ns()
            batch = clients.batch()
            memory = memory_of(server.pid)
            assert memory.total() == memory[BASE_BYTES] > 64 * MIB
            assert server.cpu_ns() > before
            assert 1_000 < batch.cpu_ns < 1e8
            assert batch.rate > 10
            shares = clients_per_cpu(3, sorted(os.sched_getaffinity(0)))
            if len(os.sched_getaffinity(0)) > 1:
                bound = Counter(cpus.pop() for cpus in affinities(server.pid) if len(cpus) == 1)
                assert bound == shares, "a client's thread of the server stays where the client is"
            for process, _ in clients._runs:
                assert {len(cpus) for cpus in affinities(process.pid)} == {1}
            assert programs_of(folder), "a guard finds the server by its folder"
            clients._runs[0][0].kill()
            with pytest.raises(MariadbError, match=r"sysbench: |a program ended while it was measured"):
                clients.batch()
        assert programs_of(folder) == []
        with pytest.raises(MariadbError, match="a program ended while it was measured"):
            server.cpu_ns()
    assert not folder.exists()


def test_a_stopped_server_holds_nobody_up_who_ends_the_trial(tmp_path: Path) -> None:
    """A program of its user stopped it: the node's huge pages were held for five minutes after Ctrl-C."""
    with workplace(SHORT / tmp_path.name) as folder:
        server = MariadbServer(
            programs()[0], folder / "a", rows=rows_of(MIB, 200), row_bytes=200, pool_bytes=16 * MIB, settings={}
        )
        server.load()
        begun = 0.0
        with pytest.raises(KeyboardInterrupt), server.running(large_pages=False, thp=False):
            os.kill(server.pid, signal.SIGSTOP)
            begun = time.monotonic()
            raise KeyboardInterrupt
        assert time.monotonic() - begun < 5
        assert programs_of(folder) == []


def affinities(pid: int) -> list[set[int]]:
    return [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()]


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    program, sysbench = programs()
    plan = Plan(
        program=program, sysbench=sysbench, data_bytes=16 * MIB, row_bytes=100, clients=1, settings={"no_such": "1"}
    )
    with workplace(SHORT / tmp_path.name) as folder:
        subject = MariadbSubject(plan, folder, lambda _: None)
        with pytest.raises(TrialError, match=r"no.such"):
            subject.prepare(("2M",))
        assert programs_of(folder) == []


def test_a_small_trial_writes_its_document(tmp_path: Path) -> None:
    """The whole way, base pages against base pages: a document of the published shape, nothing left behind."""
    folder = programs()[0].parent
    work, out = SHORT / f"hugeplan-{tmp_path.name}", tmp_path / "out"
    words = f"trial mariadb --clients 2 --row-bytes 64 --data-gib 0.02 --minutes 0.05 --page-sizes 4K --output {out}"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "hugeplan.cli",
            *words.split(),
            "--priority",
            "normal",
            "--work-dir",
            str(work),
            "--bin-dir",
            str(folder),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode in {0, 3}, done.stderr
    document = json.loads((out / "trial.json").read_text(encoding="utf-8"))
    assert document["engine"] == "mariadb"
    assert document["shape"]["row_bytes"] == 64
    assert document["shape"]["clients"] == 2
    assert document["measure"] == "cpu_per_operation"
    assert not work.exists()


@ENGINES
def test_huge_pages_are_proven(tmp_path: Path, engine: str) -> None:
    """A pool of 2M pages beside one of base pages; the pages are given back."""
    program, sysbench = programs(engine)
    if os.geteuid() != 0:
        pytest.skip("reserving 2M huge pages needs root")
    plan = Plan(program=program, sysbench=sysbench, data_bytes=16 * MIB, row_bytes=100, clients=1, engine=engine)
    with workplace(SHORT / tmp_path.name) as folder:
        subject = MariadbSubject(plan, folder, lambda _: None)
        subject.prepare(("2M",))
        try:
            with subject.sides("2M", swapped=False) as (base, other):
                assert isinstance(base, Sysbench)
                assert isinstance(other, Sysbench)
                found = [memory_of(side.server.pid)[2 * MIB] for side in (base, other)]
                assert found[0] == 0
                assert found[1] >= plan.pool_bytes
        except ArmError as problem:
            pytest.skip(f"SKIP: {problem}")
        assert programs_of(folder) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root becomes somebody else")
def test_a_server_has_no_right_of_root_and_its_user_copies_it(tmp_path: Path) -> None:
    """That user owns the folder: root would follow the links that it puts there, to anybody's files."""
    program = find_server(None)
    with workplace(SHORT / tmp_path.name) as folder:
        rows, pool = rows_of(MIB, 100), 64 * MIB
        one, two, other = (
            MariadbServer(program, folder / name, rows=rows, row_bytes=100, pool_bytes=pool, settings={})
            for name in "abc"
        )
        one.load()
        two.copy_of(one)
        assert {path.lstat().st_uid for path in folder.glob("[ab]/**/*")} == {pwd.getpwnam(one.user).pw_uid}
        (one.folder / "shadow").write_text("root's alone")
        (one.folder / "shadow").chmod(0o600)
        with pytest.raises(MariadbError, match="could not be copied"):
            other.copy_of(one)
        assert not (other.folder / "shadow").exists()
        with two.running(large_pages=False, thp=False):
            found = Path(f"/proc/{two.pid}/status").read_text()
    assert set(re.findall(r"^Cap\w+:\s+(\w+)$", found, re.MULTILINE)) == {"0" * 16}
    assert re.search(r"^NoNewPrivs:\s+1$", found, re.MULTILINE)
