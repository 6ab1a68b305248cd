"""kill -9, a full disk and a wrong clock in a migration, a backup and a restore: nothing is lost, nothing to clean up.

``../db/data/release_before.sql`` is the database of the previous release. Disks are small file systems of the test.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from support.reports import report
from support.server import serving

from hugeplan import embedded
from hugeplan.cli import backup, main
from hugeplan.db import migrate
from hugeplan.db.replacement import ASIDE

DUMP = Path(__file__).parents[1] / "db/data/release_before.sql"
WAIT_SECONDS = 60.0
MIB = 1024**2


def hugeplan(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command to its end: in this process, where no library is to be loaded before it."""
    if "LD_PRELOAD" in os.environ:
        command = [sys.executable, "-m", "hugeplan.cli", *words]
        environment = {**os.environ, "HUGEPLAN_DATABASE_URL": url}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("HUGEPLAN_DATABASE_URL", url)
        status = main(words)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def well(url: str, *words: str) -> str:
    """What a command prints that ends well."""
    done = hugeplan(url, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def until(is_true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.05)


def asked(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()  # type: ignore[arg-type] - statements of this file


def answers(url: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        return asked(url, "SELECT 1") == [(1,)]
    return False


def do(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement)  # type: ignore[arg-type] - statements of this file


def names(url: str) -> list[str]:
    """The credentials that are there; each state of a test has its own."""
    return sorted(str(name) for (name,) in asked(url, "SELECT name FROM tokens"))


def token(url: str, name: str) -> None:
    well(url, "token", "create", "--role", "viewer", "--name", name)


def load(url: str) -> None:
    """The previous release's rows."""
    psql = [str(embedded.programs_dir() / "psql"), "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1"]
    with DUMP.open("rb") as dump:
        subprocess.run([*psql, url], stdin=dump, stdout=subprocess.DEVNULL, check=True)


@pytest.fixture
def database_url(postgres: embedded.EmbeddedPostgres, template: str, own_database_url: str) -> str:
    """A migrated database of the test's own."""
    name = own_database_url.rpartition("?")[0].rpartition("/")[2] + "_faults"
    postgres.ensure_database(name, template)
    return postgres.url(name)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own of 192 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["/bin/mount", "-t", "tmpfs", "-o", "size=192m,mode=1777", "hugeplan-test", str(folder)]
    mounted = subprocess.run(words, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("SKIP: no file system can be mounted here, so no disk is full")
    try:
        yield folder
    finally:
        subprocess.run(["/bin/umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def filled(disk: Path, *, but_mib: int = 0) -> Iterator[None]:
    """So many MiB are left on the disk for as long as the block lasts."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(65536))
    os.truncate(ballast, max(0, ballast.stat().st_size - but_mib * MIB))
    try:
        yield
    finally:
        ballast.unlink()


@pytest.fixture
def server_on_disk(disk: Path) -> Iterator[embedded.EmbeddedPostgres]:
    """A PostgreSQL whose tables and log are on the small disk; it is started again when it ends of it."""
    settings = embedded.TEST_SETTINGS | {"shared_buffers": "16MB", "max_wal_size": "32MB", "min_wal_size": "32MB"}
    with embedded.running(disk / "server/data", settings) as server, embedded.supervised(server):
        yield server


def test_a_full_disk_while_the_database_is_migrated(server_on_disk: embedded.EmbeddedPostgres, disk: Path) -> None:
    server_on_disk.ensure_database("former")
    url = server_on_disk.url("former")
    load(url)
    do(url, "SELECT pg_switch_wal()")  # so that the log has room and the tables have none
    columns = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
    )
    before = asked(url, columns), asked(url, "SELECT count(*) FROM reports")
    with filled(disk):
        done = hugeplan(url, "migrate")
        assert done.returncode == 2, done.stdout
        assert done.stderr.count("\n") == 1, done.stderr
        # Where its log needed the room, the server ended.
        if "cannot be reached" not in done.stderr:
            assert "No space left on device" in done.stderr
            assert done.stderr.endswith("Make room on the database's disk, then run: hugeplan migrate\n")
    until(lambda: answers(url), "the server that has room again")
    assert (asked(url, columns), asked(url, "SELECT count(*) FROM reports")) == before
    well(url, "migrate")
    assert asked(url, "SELECT version_num FROM alembic_version") == [
        (migrate.head_revision(migrate.migrations_dir(None)),)
    ]
    assert asked(url, "SELECT count(*) FROM reports") == before[1]


@pytest.mark.parametrize("room_mib", [2, 20])
def test_a_full_disk_of_the_database_while_it_is_restored(
    server_on_disk: embedded.EmbeddedPostgres, disk: Path, tmp_path: Path, room_mib: int
) -> None:
    """With little room the tables have none; with more it may be the log that has none, and then the server ends."""
    server_on_disk.ensure_database("a")
    url = server_on_disk.url("a")
    well(url, "migrate")
    token(url, "kept")
    do(url, "CREATE TABLE bulk AS SELECT gen_random_uuid() FROM generate_series(1, 500000)")
    well(url, "backup", str(tmp_path / "backup"))
    do(url, "DROP TABLE bulk")
    token(url, "later")
    with filled(disk, but_mib=room_mib):
        done = hugeplan(url, "restore", "--replace", str(tmp_path / "backup"))
        assert done.returncode == 2, done.stdout
        assert done.stderr.count("\n") == 1, done.stderr
    until(lambda: hugeplan(url, "migrate").returncode == 0, "the server that has room again")
    assert names(url) == ["kept", "later"]
    well(url, "restore", "--replace", str(tmp_path / "backup"))
    assert names(url) == ["kept"]


def test_a_full_disk_for_the_backup(database_url: str, disk: Path) -> None:
    token(database_url, "kept")
    with filled(disk):
        done = hugeplan(database_url, "backup", str(disk / "backup"))
        assert done.returncode == 74
        assert done.stderr.count("\n") == 1, done.stderr
        assert "No space left on device; make room" in done.stderr
        assert [path.name for path in disk.iterdir()] == ["ballast"]
    well(database_url, "backup", str(disk / "backup"))
    assert [path.name for path in disk.iterdir()] == ["backup"]


@contextlib.contextmanager
def begun(url: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that takes its input from a pipe; killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hugeplan.cli", *words], env={**os.environ, "HUGEPLAN_DATABASE_URL": url},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0,
    )  # fmt: skip
    assert process.stdin is not None
    with process.stdin:
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_a_killed_backup_leaves_nothing_that_the_next_one_does_not_remove(database_url: str, tmp_path: Path) -> None:
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE tokens")
        with begun(database_url, "backup", str(tmp_path / "first")):
            until(lambda: asked(database_url, "SELECT 1 FROM pg_locks WHERE NOT granted"), "a backup that waits")
            left = [path.name for path in tmp_path.iterdir()]
            assert len(left) == 1, left
            backup._remove_what_kills_left(tmp_path)
            assert [path.name for path in tmp_path.iterdir()] == left
        assert [path.name for path in tmp_path.iterdir()] == left
    well(database_url, "backup", str(tmp_path / "second"))
    assert [path.name for path in tmp_path.iterdir()] == ["second"]


def test_a_backup_of_what_no_restore_takes_is_refused(database_url: str, tmp_path: Path) -> None:
    """It said a size and exit 0, and the alarm came when the backup was needed."""
    target = tmp_path / "backup"
    do(database_url, f"ALTER SCHEMA public RENAME TO {ASIDE}; CREATE SCHEMA public")  # as a restore that was killed
    done = hugeplan(database_url, "backup", str(target))
    assert (done.returncode, "run hugeplan migrate first" in done.stderr) == (2, True), done.stderr
    assert "A restore was cut off. Run: hugeplan migrate" in hugeplan(database_url, "doctor").stdout
    do(database_url, f"DROP SCHEMA {ASIDE} CASCADE")
    done = hugeplan(database_url, "backup", str(target))
    assert (done.returncode, "no database of hugeplan" in done.stderr) == (2, True), done.stderr
    assert not target.exists()


def test_a_fifo_beside_a_backup_holds_nobody_up_and_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f".x.1{backup.UNFINISHED}")
    code = "import sys; from pathlib import Path; from hugeplan.cli.backup import _remove_what_kills_left as remove;"
    code += " remove(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=30)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("moment", ["before anything is put aside", "in the middle", "when the backup stands whole"])
def test_a_restore_that_is_killed_is_ended_by_the_next_migration(
    database_url: str, tmp_path: Path, moment: str
) -> None:
    token(database_url, "kept")
    well(database_url, "backup", str(tmp_path / "backup"))
    token(database_url, "later")
    content = (tmp_path / "backup").read_bytes()
    with psycopg.connect(database_url) as other:
        if moment == "before anything is put aside":
            other.execute("LOCK TABLE pg_catalog.pg_namespace IN SHARE MODE")
        with begun(database_url, "restore", "--replace", "-") as process:
            assert process.stdin is not None
            process.stdin.write(content[: len(content) // 2])
            if moment == "before anything is put aside":
                waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'pg_namespace'::regclass"
                until(lambda: asked(database_url, waits), "a restore that waits")
            else:
                aside = f"SELECT 1 FROM pg_namespace WHERE nspname = '{ASIDE}'"
                until(lambda: asked(database_url, aside), "what is put aside")
            if moment == "when the backup stands whole":
                other.execute(f"SELECT count(*) FROM {ASIDE}.tokens")  # type: ignore[arg-type]
                process.stdin.write(content[len(content) // 2 :])
                process.stdin.close()
                waits = f"SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '{ASIDE}.tokens'::regclass"
                until(lambda: asked(database_url, waits), "a restore that removes what was before")
        other.rollback()
    well(database_url, "migrate")
    assert names(database_url) == (["kept"] if moment == "when the backup stands whole" else ["kept", "later"])
    assert asked(database_url, f"SELECT 1 FROM pg_namespace WHERE nspname = '{ASIDE}'") == []
    # What came since is what a restore that fails gives back.
    token(database_url, "since")
    (tmp_path / "cut off").write_bytes(content[: len(content) * 2 // 3])
    assert hugeplan(database_url, "restore", "--replace", str(tmp_path / "cut off")).returncode == 2
    assert "since" in names(database_url)
    well(database_url, "restore", "--replace", str(tmp_path / "backup"))
    assert names(database_url) == ["kept"]


def test_a_migration_waits_for_a_restore_whose_command_was_killed(database_url: str, tmp_path: Path) -> None:
    """pg_restore has the whole backup and goes on alone: what was put aside must not come back under it."""
    token(database_url, "kept")
    with psycopg.connect(database_url) as other:
        other.execute("INSERT INTO enrolment_approvals VALUES ('m', 'admin', now(), now() + interval '1 day')")
    well(database_url, "backup", str(tmp_path / "backup"))
    token(database_url, "later")
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE pg_catalog.pg_trigger IN SHARE MODE")  # the last things that a backup makes
        with begun(database_url, "restore", "--replace", str(tmp_path / "backup")):
            waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'pg_trigger'::regclass"
            until(lambda: asked(database_url, waits), "a restore that waits")
        with begun(database_url, "migrate") as migration:
            waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND classid = 'pg_namespace'::regclass"
            until(lambda: asked(database_url, waits), "a migration that waits")
            other.rollback()
            assert migration.wait(WAIT_SECONDS) == 0
    assert names(database_url) == ["kept"]
    assert asked(database_url, "SELECT 1 FROM enrolment_approvals") == []  # it may have been used since
    assert asked(database_url, f"SELECT 1 FROM pg_namespace WHERE nspname = '{ASIDE}'") == []


@pytest.fixture(scope="module")
def clock_shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that moves a process's wall clock."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("SKIP: there is no C compiler (cc) to build the shim of the clock with")
    library = tmp_path_factory.mktemp("clock") / "clock_offset.so"
    source = Path(__file__).parents[2] / "tools/chaos/clock_offset.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source)], check=True)
    return library


@pytest.mark.parametrize("days", [-4000, 4000])
def test_a_wrong_clock_of_the_database_and_of_the_commands(
    clock_shim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """Migrated, backed up and restored while the clock is years off. It is put right, and the service goes on."""
    offset = tmp_path / "offset"
    offset.write_bytes(struct.pack("=q", days * 86400))
    monkeypatch.setenv("LD_PRELOAD", str(clock_shim))
    monkeypatch.setenv("CLOCK_OFFSET_FILE", str(offset))
    with embedded.running(tmp_path / "server/data", embedded.TEST_SETTINGS) as server:
        server.ensure_database("former")
        server.ensure_database("restored")
        former, restored = server.url("former"), server.url("restored")
        ((wrong,),) = asked(former, "SELECT round(extract(epoch FROM now() - to_timestamp(0)) / 86400)")
        assert (
            abs(float(str(wrong)) - time.time() / 86400 - days) < 2 or abs(time.time() / 86400 - float(str(wrong))) < 2
        )
        load(former)
        well(former, "migrate")
        token(former, "kept")
        well(former, "backup", str(tmp_path / "backup"))
        well(restored, "restore", str(tmp_path / "backup"))
        with offset.open("r+b") as file:
            file.write(struct.pack("=q", 0))
        for url in (former, restored):
            well(url, "migrate")
            assert "kept" in names(url)
            assert asked(url, "SELECT count(*) FROM reports") == [(12,)]
        agent = well(restored, "token", "create", "--role", "agent", "--name", "after").split()[-1]
        with serving(restored, tmp_path) as service:
            answer = httpx.post(
                f"{service.url}/api/v1/reports", json=report(), headers={"Authorization": f"Bearer {agent}"}, timeout=60
            )
            assert answer.status_code == 201, answer.text
        # The service may have sealed old reports meanwhile, so nodes are counted: four of before and the new one.
        heard = "SELECT count(*), count(*) FILTER (WHERE last_report_at > now() - interval '10 minutes') FROM nodes"
        assert asked(restored, heard) == [(5, 1)]


def test_pg_dump_writes_into_the_file_that_was_made(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may rename in the folder put an own file in its place, and had the hashes of all credentials."""
    token(database_url, "kept")
    real, others = backup._dump, tmp_path / "others"
    others.touch(mode=0o666)

    def dump(*arguments: Any, **named: Any) -> None:
        (made,) = tmp_path.glob(f".*{backup.UNFINISHED}")
        made.rename(tmp_path / "away")
        os.link(others, made)
        real(*arguments, **named)

    monkeypatch.setattr(backup, "_dump", dump)
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", database_url)
    main(["backup", str(tmp_path / "all.dump")])
    assert others.read_bytes() == b""
    assert (tmp_path / "away").read_bytes()[:5] == b"PGDMP"
