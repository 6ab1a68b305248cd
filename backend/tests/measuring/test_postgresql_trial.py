"""A private PostgreSQL as the subject: refusals with numbers, what is started, and one small real trial."""

from __future__ import annotations

import json
import os
import pwd
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest

from hugeplan.cli import main
from hugeplan.measuring import control, pools, postgresql, postgresql_clients
from hugeplan.measuring.postgresql import Plan, PostgresqlSubject, check_shared_thp, largest_data_bytes
from hugeplan.measuring.postgresql_clients import Case, DriverClients, NestedLoop, Pgbench, Workers
from hugeplan.measuring.postgresql_server import PROGRAMS, Server, ServerError, Shape, find_programs
from hugeplan.measuring.room import check, headroom_bytes
from hugeplan.measuring.trial import EQUAL, ArmError, TrialError
from hugeplan.measuring.workplace import workplace
from hugeplan.planner.model import GIB, MIB

SHORT = Path("/var/tmp")  # noqa: S108 - a socket's path has at most 107 bytes, and the server's user enters it


def node(root: Path, available_kb: int, total_kb: int = 16 << 20) -> Path:
    (root / "proc").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: {total_kb} kB\nMemAvailable: {available_kb} kB\n")
    return root


def programs() -> Path:
    try:
        return find_programs(None)
    except ServerError as problem:
        pytest.skip(str(problem))


def test_memory_that_does_not_suffice_is_refused_with_numbers(tmp_path: Path) -> None:
    root = node(tmp_path, 4 << 20)
    assert headroom_bytes(root)[0] == 4 * GIB - int(0.1 * 16 * GIB)
    with pytest.raises(TrialError, match=r"need 3 GiB; 4 GiB are available and 1\.60 GiB stay .* 2\.40 GiB"):
        check(3 * GIB, "two servers", "Less would fit.", root)
    check(2 * GIB, "two servers", "", root)


def test_the_limit_of_a_cgroup_above_counts(tmp_path: Path) -> None:
    root = node(tmp_path, 12 << 20)
    (root / "proc/self").mkdir()
    (root / "proc/self/cgroup").write_text("0::/kubepods/pod1\n")
    for folder, limit, used in (("kubepods", 3 * GIB, GIB), ("kubepods/pod1", "max", GIB)):
        own = root / "sys/fs/cgroup" / folder
        own.mkdir(parents=True)
        (own / "memory.max").write_text(f"{limit}\n")
        (own / "memory.current").write_text(f"{used}\n")
    room, why = headroom_bytes(root)
    assert room == 3 * GIB - GIB - 512 * MIB
    assert "memory.max is 3 GiB" in why


def test_no_more_pages_are_taken_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """How many they are a server of another user says, from a file of its own."""
    monkeypatch.setattr(pools, "pool_folder", lambda _: tmp_path)
    monkeypatch.setattr(pools, "reservation", lambda: pytest.fail("taken"))
    monkeypatch.setattr(pools, "headroom_bytes", lambda: (439 * MIB, "1 GiB are available"), raising=False)
    with pytest.raises(pools.CannotReserveError, match="220 pages of 2048 KiB need 440 MiB; 1 GiB are available"):
        pools.reserved(2 * MIB, 220).__enter__()


def test_data_that_fit_are_never_refused() -> None:
    for clients in (1, 8, 64, 500):
        for room in (GIB, 20 * GIB, 500 * GIB):
            data = largest_data_bytes(clients, room)
            plan = Plan(programs=Path("/"), data_bytes=data, row_bytes=128, clients=clients)
            assert data == 0 or plan.needed_bytes(()) <= room * 1.001


def test_a_trial_that_does_not_fit_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    words = ["trial", "postgresql", "--bin-dir", str(programs()), "--data-gib", "4000"]
    words += ["--work-dir", str(work), "--output", str(out)]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "the memory does not suffice: two servers with" in said
    assert "stay for the node's own work" in said
    assert not work.exists()
    assert not out.exists()


def test_programs_that_were_named_are_those_or_none(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="--bin-dir"):
        find_programs(tmp_path)
    folder = programs()
    assert find_programs(folder, PROGRAMS) == folder


@pytest.mark.parametrize("chosen", ["never", "advise", "deny"])
def test_shared_memory_without_transparent_huge_pages_says_so(chosen: str, tmp_path: Path) -> None:
    words = ("always", "within_size", "advise", "never", "deny", "force")
    path = tmp_path / "shmem_enabled"
    path.write_text(" ".join(f"[{word}]" if word == chosen else word for word in words))
    with pytest.raises(ArmError, match=f"shmem_enabled is {chosen}"):
        check_shared_thp(path)
    path.write_text("always [within_size] advise never deny force")
    check_shared_thp(path)


def test_clients_without_pgbench_look_up_rows(tmp_path: Path) -> None:
    found = programs()
    with workplace(SHORT / tmp_path.name) as folder:
        server = Server(found, folder / "a", Shape(8 * MIB, 100, 16 * MIB), 0)
        server.prepare()
        with server.running("off"), DriverClients(server, Case("two", 2, (0,))) as clients:
            batch = clients.batch()
            assert clients.page_bytes == 4096
            assert 0 < batch.cpu_ns < 1e9
            assert batch.rate > 10
            assert "THP_enabled:\t0" in Path(f"/proc/{clients.pids[0]}/status").read_text(encoding="utf-8")
        with server.running("off", thp=True), DriverClients(server, Case("two", 2, (0,))) as clients:
            assert "THP_enabled:\t1" in Path(f"/proc/{clients.pids[0]}/status").read_text(encoding="utf-8")
    assert not folder.exists()


def test_base_pages_that_are_none_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where shmem_enabled is always, which a trial of thp needs, both servers had transparent huge pages."""
    monkeypatch.setattr(postgresql, "shared_huge_bytes", lambda _: 2 * MIB)
    made = cast("Workers", SimpleNamespace(page_bytes=os.sysconf("SC_PAGE_SIZE"), pids=[1]))
    postgresql._check_pages(made, postgresql.THP)
    with pytest.raises(TrialError, match="the server on base pages transparent huge pages"):
        postgresql._check_pages(made, EQUAL)


def test_a_batch_ends_when_its_clients_end_and_not_when_that_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch lasts a tenth of a second: the wait of a poll counted as work would change its rate by a fifth."""
    found, seldom, slept = programs(), 3.0, time.sleep
    with workplace(SHORT / tmp_path.name) as folder:
        server = Server(found, folder / "a", Shape(8 * MIB, 100, 16 * MIB), 0)
        server.prepare()
        with server.running("off"), Pgbench(server, Case("one", 1, (max(os.sched_getaffinity(0)),))) as client:
            monkeypatch.setattr(postgresql_clients.time, "sleep", lambda _: slept(seldom))
            begun = time.monotonic()
            batch = client.batch()
            whole = time.monotonic() - begun
            monkeypatch.undo()
    assert whole > seldom, "the poll was not slow, so that this shows nothing"
    assert client.per_client / batch.rate < whole - 1.0


def test_a_small_trial_of_a_users_script(tmp_path: Path) -> None:
    """The whole way: private servers, the user's schema and script, pairs, a document, nothing left behind."""
    schema, script = tmp_path / "schema.sql", tmp_path / "script.sql"
    schema.write_text("create table t as select i as id from generate_series(1, 20000) i; create index on t (id);")
    script.write_text("\\set id random(1, 20000)\nselect * from t where id = :id;\n")
    work, out = SHORT / f"hugeplan-{tmp_path.name}", tmp_path / "out"
    own = f"--schema {schema} --script {script} --clients 2 --data-gib 0.02 --minutes 0.15 --page-sizes 4K"
    places = f"--bin-dir {programs()} --set work_mem=8MB --priority normal --work-dir {work} --output {out}"
    done = subprocess.run(
        [sys.executable, "-m", "hugeplan.cli", "trial", "postgresql", *own.split(), *places.split()],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode in {0, 3}, done.stderr
    document = json.loads((out / "trial.json").read_text(encoding="utf-8"))
    assert document["engine"] == "postgresql"
    assert document["shape"]["operation_class"] == "script"
    assert document["shape"]["data_bytes"] > 500_000
    assert document["page_sizes"][0]["blocks"], done.stderr
    assert not work.exists()


def test_a_script_that_fails_says_why(tmp_path: Path) -> None:
    found = programs()
    plan = Plan(
        programs=found,
        data_bytes=16 * MIB,
        row_bytes=100,
        clients=1,
        script="select * from no_such_table;",
        schema=None,
    )
    with workplace(SHORT / f"hugeplan-{tmp_path.name}") as folder:
        subject = PostgresqlSubject(plan, folder, lambda _: None)
        with pytest.raises(TrialError, match=r"no_such_table|pgbench ended"):
            subject.prepare(())


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root becomes somebody else")


def rights(pid: int) -> dict[str, str]:
    """Users, groups and capabilities of a process, as the kernel shows them."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: " ".join(value.split()) for name, _, value in (line.partition(":") for line in lines)}


@AS_ROOT
def test_a_server_is_copied_by_its_own_user(tmp_path: Path) -> None:
    """Who owns the folder puts links there while it is copied: root would follow them to anybody's files."""
    with workplace(SHORT / tmp_path.name) as folder:
        one, two, other = (Server(programs(), folder / name, Shape(MIB, 100, MIB), 0) for name in "abc")
        one.prepare()
        two.prepare_copy_of(one)
        owner = pwd.getpwnam(one.user).pw_uid
        assert {path.lstat().st_uid for path in (two.folder, *two.folder.rglob("*"))} == {owner}
        (one.folder / "shadow").write_text("root's alone")
        (one.folder / "shadow").chmod(0o600)
        with pytest.raises(ServerError, match="could not be copied"):
            other.prepare_copy_of(one)
        assert not (other.folder / "shadow").exists()


@AS_ROOT
def test_a_servers_processes_have_no_right_of_root(tmp_path: Path) -> None:
    with workplace(SHORT / tmp_path.name) as folder:
        server = Server(programs(), folder / "a", Shape(MIB, 100, MIB), 0)
        server.prepare()
        with server.running("off"), server.connect() as connection:
            found = rights(server.own(connection.backend_pids[0]))
    assert {name: int(value, 16) for name, value in found.items() if name.startswith("Cap")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), 0
    )
    assert (found["NoNewPrivs"], found["Groups"]) == ("1", "")


def test_a_socket_of_anybody_is_told_no_password_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGPASSWORD": "secret",
        "PGHOSTADDR": "192.0.2.1",
        "PGPORT": "1",
        "PGOPTIONS": "-c x=y",
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "pass").write_text("*:*:*:*:secret\n")
    (tmp_path / "pass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
    server = Server(programs(), SHORT / f"hp-{os.getpid()}" / "a", Shape(MIB, 100, MIB), 0)
    server.folder.mkdir(parents=True)
    heard: list[bytes] = []

    def ask(listening: socket.socket) -> None:
        with listening.accept()[0] as connection:
            heard.append(connection.recv(4096))
            connection.sendall(b"R" + struct.pack("!II", 8, 3))  # AuthenticationCleartextPassword
            heard.append(connection.recv(4096))

    path = server.folder / ".s.PGSQL.5432"
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen()
            listening.settimeout(30)
            asking = threading.Thread(target=ask, args=(listening,))
            asking.start()
            with pytest.raises(psycopg.OperationalError):
                server.connect()
            listening.close()
            asking.join()
    finally:
        path.unlink()
        server.folder.rmdir()
        server.folder.parent.rmdir()
    assert heard[1] == b"" or psycopg.pq.version() < 160_000, "who asks for a password is told nothing"
    assert b"secret" not in b"".join(heard)
    assert b"x=y" not in heard[0]
    assert os.environ["PGPASSWORD"] == "secret", "a program of --base gets what it needs"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # connections of a trial that ends
@pytest.mark.parametrize("clients", [Pgbench, DriverClients, NestedLoop])
def test_no_process_that_a_server_names_is_pinned_or_read(
    clients: type[Pgbench | DriverClients | NestedLoop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        pytest.skip("SKIP: who is on the only CPU is on it")
    words = ["/bin/sleep", "300"]
    with workplace(SHORT / tmp_path.name) as folder, subprocess.Popen(words, cwd="/") as victim:
        try:
            server = Server(programs(), folder / "a", Shape(MIB, 100, 2 * MIB), 0)
            server.prepare()
            with server.running("off"):
                with server.connect() as connection:
                    assert [server.own(pid) for pid in connection.backend_pids] == connection.backend_pids
                    connection.execute("alter database postgres set search_path = public, pg_catalog")
                    for name in ("pg_locks", "pg_stat_activity"):
                        connection.execute(f"create table said as select * from {name} limit 0")
                        columns = ", ".join(
                            str(victim.pid) + " as pid" if column == "pid" else f'"{column}"'
                            for (column,) in connection.execute(
                                "select attname from pg_attribute where attrelid = 'said'::regclass and attnum > 0"
                            )
                        )
                        connection.execute("drop table said")
                        only = "" if name == "pg_locks" else " where application_name like 'hugeplan validate%'"
                        connection.execute(
                            f"create view public.{name} as select {columns} from pg_catalog.{name}{only}"
                        )
                named = property(lambda _: [victim.pid], lambda *_: None)
                monkeypatch.setattr(control.ControlConnection, "backend_pids", named, raising=False)
                case = Case("one", 1, (max(cpus),))
                with pytest.raises(ServerError, match=rf"process {victim.pid}, which the server names"):
                    clients(server, case).__enter__()
            assert os.sched_getaffinity(victim.pid) == cpus
        finally:
            victim.kill()
