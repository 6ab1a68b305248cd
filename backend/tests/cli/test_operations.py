"""Running the service for long: backup, restore, export, doctor, tokens, workers."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest
from cli.test_service_commands import Command, hugeplan
from pydantic import SecretStr
from support.reports import report
from support.server import Server, free_port, serving
from uvicorn.config import STARTUP_FAILURE

from hugeplan import embedded
from hugeplan.cli import backup, main, postgres_programs
from hugeplan.cli.doctor import check_exposure
from hugeplan.db import server_release
from hugeplan.documents.kept import pack
from hugeplan.settings import Settings
from tools.seed.writer import SeedOptions, seed_fleet

__all__ = ["hugeplan"]

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def database_url(postgres: embedded.EmbeddedPostgres, template: str, own_database_url: str) -> str:
    """A migrated database of the test's own."""
    assert template
    name = own_database_url.rpartition("?")[0].rpartition("/")[2] + "_migrated"
    postgres.ensure_database(name, template)
    return postgres.url(name)


def token(hugeplan: Command, url: str, role: str, name: str = "t") -> str:
    """A token made by the command."""
    done = hugeplan("token", "create", "--role", role, "--name", name, HUGEPLAN_DATABASE_URL=url)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def wait_for_row(url: str, count: str) -> None:
    """Until the count is 1."""
    deadline = time.monotonic() + 60
    while True:
        with psycopg.connect(url) as connection:
            if connection.execute(count).fetchone() == (1,):
                return
        assert time.monotonic() < deadline, count
        time.sleep(0.2)


class TestBackup:
    def test_agents_enrol_again_with_the_configured_token_after_a_restore_from_before_it(
        self, hugeplan: Command, database_url: str, tmp_path: Path
    ) -> None:
        """A restored database knows the credentials of its day; the running service brings the configured one back."""
        file = tmp_path / "before"
        assert hugeplan("backup", str(file), HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        secret = "an-enrolment-token-of-32-characters"  # noqa: S105
        known = "SELECT count(*) FROM tokens WHERE role = 'enrolment'"
        with serving(database_url, tmp_path, HUGEPLAN_BOOTSTRAP_ENROLMENT_TOKEN=secret):
            wait_for_row(database_url, known)
            refused = hugeplan("restore", "--replace", str(file), HUGEPLAN_DATABASE_URL=database_url)
            assert refused.returncode == 2
            assert "nothing was changed: the database is in use (hugeplan as " in refused.stderr
            with psycopg.connect(database_url) as connection:
                assert connection.execute(known).fetchone() == (1,)
            words = ("restore", "--replace", "--even-if-in-use", str(file))
            done = hugeplan(*words, HUGEPLAN_DATABASE_URL=database_url)
            assert done.returncode == 0, done.stderr
            wait_for_row(database_url, known)

    @pytest.mark.parametrize("knows_approvers", [True, False])
    def test_a_restore_brings_no_revoked_credential_back(
        self, hugeplan: Command, database_url: str, tmp_path: Path, *, knows_approvers: bool
    ) -> None:
        """Neither one that the backup has as good, nor one that it does not know, nor a browser's login."""
        file = str(tmp_path / "before")
        good, leaked = (token(hugeplan, database_url, "admin", name) for name in ("good", "leaked"))
        token(hugeplan, database_url, "agent", "agent")
        with psycopg.connect(database_url) as connection:
            connection.execute(
                "INSERT INTO browser_sessions (id, secret_sha256, token_id, created_at, expires_at)"
                " SELECT gen_random_uuid(), sha256('x'), id, now(), now() + interval '14 days' FROM tokens LIMIT 1"
            )
        role_is = (
            "ALTER TABLE tokens DROP CONSTRAINT IF EXISTS ck_tokens_role, ADD CONSTRAINT ck_tokens_role CHECK ({})"
        )
        if not knows_approvers:
            with psycopg.connect(database_url) as connection:
                connection.execute(role_is.format("role <> 'approver'"))
        assert hugeplan("backup", file, HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        with psycopg.connect(database_url) as connection:
            connection.execute(role_is.format("TRUE"))
        for role, name in (("enrolment", "later"), ("approver", "later approver"), ("agent", "agent again")):
            token(hugeplan, database_url, role, name)
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE tokens SET revoked_at = now() WHERE name IN ('leaked', 'later', 'agent')")
            connection.execute("UPDATE tokens SET revoked_at = now() WHERE name = 'later approver'")
        assert good != leaked
        for _ in range(2):
            done = hugeplan("restore", "--replace", file, HUGEPLAN_DATABASE_URL=database_url)
            assert done.returncode == 0, done.stderr
            with psycopg.connect(database_url) as connection:
                usable = connection.execute("SELECT name, revoked_at IS NULL FROM tokens ORDER BY 1").fetchall()
                approver = [("later approver", False)] if knows_approvers else []
                agents = [("agent", False), ("agent again", True)]
                assert usable == [*agents, ("good", True), ("later", False), *approver, ("leaked", False)]
                assert connection.execute("SELECT count(*) FROM browser_sessions").fetchone() == (0,)

    def test_a_service_that_was_just_stopped_is_waited_for_and_others_do_not_count(
        self, hugeplan: Command, database_url: str, own_database_url: str, tmp_path: Path
    ) -> None:
        """Its connections last a moment longer than it. A dashboard's, and another database's, are none of its."""
        file = tmp_path / "backup"
        assert hugeplan("backup", str(file), HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        with (
            psycopg.connect(database_url, application_name="Grafana"),
            psycopg.connect(own_database_url, application_name="hugeplan"),
            psycopg.connect(database_url, application_name="hugeplan reports") as leaving,
        ):
            timer = threading.Timer(1, leaving.close)
            timer.start()
            done = hugeplan("restore", "--replace", str(file), HUGEPLAN_DATABASE_URL=database_url)
            timer.join()
        assert done.returncode == 0, done.stderr

    def test_what_was_backed_up_comes_back(
        self, hugeplan: Command, database_url: str, own_database_url: str, tmp_path: Path
    ) -> None:
        made = token(hugeplan, database_url, "viewer", "kept")
        file = tmp_path / "backup"
        assert hugeplan("backup", str(file), HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        assert file.stat().st_mode & 0o777 == 0o600
        done = hugeplan("restore", str(file), HUGEPLAN_DATABASE_URL=own_database_url)
        assert done.returncode == 0, done.stderr
        with psycopg.connect(own_database_url) as connection:
            assert connection.execute("SELECT name FROM tokens").fetchall() == [("kept",)]
            assert connection.execute("SELECT action FROM audit_events").fetchall() == [("tokens_create",)]
            with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
                connection.execute("DELETE FROM audit_events")
        assert made.encode() not in file.read_bytes()

    def test_sealed_rows_come_back(
        self, hugeplan: Command, database_url: str, own_database_url: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "backup"
        kept = "SELECT * FROM sealed_documents ORDER BY 1, 2, 3", "SELECT * FROM sealed_samples ORDER BY 1, 2, 3"
        with psycopg.connect(database_url) as connection:
            connection.execute(
                "INSERT INTO sealed_documents SELECT gen_random_uuid(), now(), gen_random_uuid(), now(),"
                " ARRAY[gen_random_uuid()], ARRAY[7], sha256('d'), now(), now(), 1"
            )
            connection.execute(
                "INSERT INTO sealed_samples SELECT gen_random_uuid(), now() - n * interval '1 day', gen_random_uuid(),"
                " now(), ARRAY[gen_random_uuid()], sha256('n'), sha256('d') FROM generate_series(0, 9) n"
            )
            before = [connection.execute(statement).fetchall() for statement in kept]
        assert hugeplan("backup", str(file), HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        assert hugeplan("restore", str(file), HUGEPLAN_DATABASE_URL=own_database_url).returncode == 0
        with psycopg.connect(own_database_url) as connection:
            assert [connection.execute(statement).fetchall() for statement in kept] == before

    def test_nothing_is_overwritten(self, hugeplan: Command, database_url: str, tmp_path: Path) -> None:
        file = tmp_path / "backup"
        file.write_text("mine")
        done = hugeplan("backup", str(file), HUGEPLAN_DATABASE_URL=database_url)
        assert (done.returncode, done.stderr.count("\n"), file.read_text()) == (2, 1, "mine")
        done = hugeplan("restore", str(file), HUGEPLAN_DATABASE_URL=database_url)
        assert done.returncode == 2
        assert "is no backup" in done.stderr
        real = tmp_path / "real"
        assert hugeplan("backup", str(real), HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        done = hugeplan("restore", str(real), HUGEPLAN_DATABASE_URL=database_url)
        assert done.returncode == 2
        assert "expected an empty one to restore into, or --replace" in done.stderr

    def test_a_backup_replaces_what_is_there_by_pipes_twice(
        self, hugeplan: Command, database_url: str, tmp_path: Path
    ) -> None:
        """As a container is asked: nothing but standard input and output."""
        token(hugeplan, database_url, "viewer", "kept")
        words = [sys.executable, "-m", "hugeplan.cli"]
        environment = {**os.environ, "HUGEPLAN_DATABASE_URL": database_url}
        for number in range(2):
            file = tmp_path / f"backup-{number}"
            with file.open("wb") as output:
                subprocess.run([*words, "backup", "-"], env=environment, stdout=output, check=True)
            token(hugeplan, database_url, "viewer", "later")
            with file.open("rb") as given:
                subprocess.run([*words, "restore", "--replace", "-"], env=environment, stdin=given, check=True)
            with psycopg.connect(database_url) as connection:
                assert connection.execute("SELECT name FROM tokens").fetchall() == [("kept",)]

    @pytest.mark.parametrize("is_killed", [False, True])
    def test_a_restore_that_fails_or_is_killed_loses_nothing_of_before(
        self, hugeplan: Command, database_url: str, tmp_path: Path, *, is_killed: bool
    ) -> None:
        with psycopg.connect(database_url) as connection:
            connection.execute("CREATE SCHEMA beside; CREATE DOMAIN beside.kind AS text")
            connection.execute("CREATE TABLE mine (a beside.kind)")
        file = tmp_path / "backup"
        assert hugeplan("backup", str(file), HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        token(hugeplan, database_url, "viewer", "later")
        with psycopg.connect(database_url) as connection:
            connection.execute("DROP SCHEMA beside CASCADE")
        if is_killed:
            # Where a kill leaves it: the tables aside, and an empty schema in their place.
            with psycopg.connect(database_url) as connection:
                connection.execute("ALTER SCHEMA public RENAME TO hugeplan_before")
                connection.execute("CREATE SCHEMA public")
        # What lies outside of the public schema is not restored, and a table of the backup needs it: pg_restore ends.
        done = hugeplan("restore", "--replace", str(file), HUGEPLAN_DATABASE_URL=database_url)
        assert done.returncode == 2
        assert "pg_restore failed" in done.stderr
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT count(*) FROM tokens WHERE name = 'later'").fetchone() == (1,)
            connection.execute("CREATE SCHEMA beside; CREATE DOMAIN beside.kind AS text")
        done = hugeplan("restore", "--replace", str(file), HUGEPLAN_DATABASE_URL=database_url)
        assert done.returncode == 0, done.stderr
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT count(*) FROM tokens WHERE name = 'later'").fetchone() == (0,)
            aside = "SELECT count(*) FROM pg_namespace WHERE nspname = 'hugeplan_before'"
            assert connection.execute(aside).fetchone() == (0,)

    def test_a_backup_that_was_cut_off_replaces_nothing(
        self, hugeplan: Command, database_url: str, tmp_path: Path
    ) -> None:
        token(hugeplan, database_url, "viewer", "kept")
        file = tmp_path / "backup"
        assert hugeplan("backup", str(file), HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
        done = hugeplan("restore", "--replace", str(file), HUGEPLAN_DATABASE_URL=database_url)
        assert done.returncode == 2
        assert done.stderr.startswith("hugeplan restore: nothing was changed: pg_restore failed: ")
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT name FROM tokens").fetchall() == [("kept",)]

    @pytest.mark.parametrize(
        "made",
        [
            "CREATE TABLE alembic_version AS SELECT text '0099_newer' AS version_num",
            "CREATE TABLE alembic_version (version_num text)",
            "CREATE TABLE alembic_version (foo int)",
            "CREATE TABLE foo (a int)",
            "SELECT",
        ],
    )
    def test_a_backup_that_this_release_cannot_use_replaces_nothing(
        self, hugeplan: Command, own_database_url: str, database_url: str, tmp_path: Path, made: str
    ) -> None:
        token(hugeplan, database_url, "viewer", "kept")
        with psycopg.connect(own_database_url) as connection:
            connection.execute(made)  # type: ignore[call-overload]
        file = tmp_path / "backup"
        dump = [str(postgres_programs.find("pg_dump")), *backup.OPTIONS, f"--file={file}", own_database_url]
        subprocess.run(dump, check=True)  # as one of another program's
        said = "does not know its migration (0099_newer)" if "0099" in made else "it is no backup of hugeplan"
        done = hugeplan("restore", "--replace", str(file), HUGEPLAN_DATABASE_URL=database_url)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("hugeplan restore: nothing was changed: ")
        assert said in done.stderr
        # Killed before it looked: the next migration does.
        with psycopg.connect(database_url) as connection:
            connection.execute("ALTER SCHEMA public RENAME TO hugeplan_before")
            connection.execute("CREATE SCHEMA public CREATE TABLE foo (a int)")
        assert hugeplan("migrate", HUGEPLAN_DATABASE_URL=database_url).returncode == 0
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT name FROM tokens").fetchall() == [("kept",)]
            assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'hugeplan_before'").fetchall() == []

    def test_the_password_may_be_in_a_file_that_the_url_names(
        self, hugeplan: Command, database_url: str, tmp_path: Path
    ) -> None:
        """The URL of docker-compose.yml. PostgreSQL's programs are told every keyword of it."""
        url = f"{database_url}{'&' if '?' in database_url else '?'}passfile=/nonexistent/passfile&sslmode=prefer"
        told = postgres_programs.environment_of(url)
        assert told["PGPASSFILE"] == "/nonexistent/passfile"
        assert told["PGSSLMODE"] == "prefer"
        assert hugeplan("backup", str(tmp_path / "b"), HUGEPLAN_DATABASE_URL=url).returncode == 0

    def test_a_file_that_is_no_backup_changes_nothing(
        self, hugeplan: Command, own_database_url: str, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("nonsense")
        done = hugeplan("restore", str(tmp_path / "file"), HUGEPLAN_DATABASE_URL=own_database_url)
        assert done.returncode == 2
        assert "file is no backup; expected a file that hugeplan backup wrote" in done.stderr


class TestWait:
    def test_a_step_waits_for_its_database_and_then_runs(
        self, own_database_url: str, postgres: embedded.EmbeddedPostgres
    ) -> None:
        """The database does not exist when the step begins: the step is not told when it does."""
        name = own_database_url.rpartition("?")[0].rpartition("/")[2] + "_later"
        url = postgres.url(name)
        environment = {**os.environ, "HUGEPLAN_DATABASE_URL": url, "PYTHONUNBUFFERED": "1"}
        words = [sys.executable, "-m", "hugeplan.cli", "wait"]
        served = subprocess.Popen(
            [*words, "--migrated", "token", "create", "--role", "viewer", "--name", "waited"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert served.stderr is not None
        assert f'"{name}" does not exist' in served.stderr.readline()
        postgres.ensure_database(name)
        assert "at migration none" in served.stderr.readline()
        subprocess.run([*words, "migrate"], env=environment, check=True, stdout=subprocess.DEVNULL)
        rest, _ = served.communicate(timeout=60)
        assert served.returncode == 0
        assert len(rest.split()) == 1  # the token

    def test_it_gives_up_with_the_reason(self, hugeplan: Command) -> None:
        url = "postgresql://u:a-password@/x?host=/nonexistent"
        done = hugeplan("wait", "--seconds", "0", "migrate", HUGEPLAN_DATABASE_URL=url)
        assert done.returncode == 1
        assert done.stderr.startswith("hugeplan wait: after 0 s HUGEPLAN_DATABASE_URL: the database cannot be reached")
        assert "a-password" not in done.stderr
        assert hugeplan("wait", "--seconds", "-1", HUGEPLAN_DATABASE_URL=url).returncode == 2


class TestServerRelease:
    def test_every_command_that_starts_refuses_a_server_that_is_too_old(
        self, own_database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The tests' server is the newest there is, so here the oldest that is taken is one newer."""
        monkeypatch.setenv("HUGEPLAN_DATABASE_URL", own_database_url)
        monkeypatch.setattr(server_release, "OLDEST", 99)
        for command in ("migrate", "serve"):
            assert main([command]) == 2
            said = capsys.readouterr().err
            assert said.startswith(f"hugeplan {command}: HUGEPLAN_DATABASE_URL: the database is PostgreSQL 18; ")
            assert said.count("\n") == 1

    def test_the_matrix_is_what_the_guide_says(self) -> None:
        assert server_release.require_supported(160000) is None
        assert server_release.require_supported(180004) is None
        assert "newer than those" in str(server_release.require_supported(190000))
        with pytest.raises(server_release.ServerReleaseError, match="PostgreSQL 15; expected 16 to 18"):
            server_release.require_supported(150012)
        page = (REPOSITORY / "docs/support.md").read_text()
        assert f"PostgreSQL | {server_release.OLDEST} to {server_release.NEWEST_TESTED}" in page


PROCESSES = [{"pid": pid, "start_time_ticks": 5, "name": f"postgres: worker {pid}"} for pid in range(1, 101)]


def test_export_holds_few_rows_at_a_time(database_url: str, tmp_path: Path) -> None:
    """It runs in the service's container: 300 versions of 900 kB are no 300 MB of its memory."""
    with psycopg.connect(database_url) as connection:
        made = connection.execute(
            "INSERT INTO scenarios (id, name, version, document, created_at, updated_at)"
            " VALUES (gen_random_uuid(), 's', 300, '{}', now(), now()) RETURNING id"
        ).fetchone()
        assert made is not None
        connection.execute(
            "INSERT INTO scenario_versions (scenario_id, version, name, document, saved_at, saved_by)"
            " SELECT %s, n, 's', jsonb_build_object('x', repeat('y', 900000)), now(), 'p'"
            " FROM generate_series(1, 300) n",
            made,
        )
    # In a small process of its own: what a child has before it becomes a program counts, too, and that is ours.
    peak = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]);"
        " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(done.returncode)"
    )
    words = (sys.executable, "-m", "hugeplan.cli", "export", "--table", "scenario_versions")
    environment = os.environ | {"HUGEPLAN_DATABASE_URL": database_url}
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            (sys.executable, "-c", peak, *words), stdout=out, stderr=subprocess.PIPE, env=environment, check=True
        )
    assert (tmp_path / "out").stat().st_size > 300 * 900_000
    assert int(done.stderr) < 300 * 1024, "KiB"


def test_export_is_json_lines_without_secrets(hugeplan: Command, database_url: str) -> None:
    token(hugeplan, database_url, "viewer")
    done = hugeplan("export", HUGEPLAN_DATABASE_URL=database_url)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["row"]["action"] for line in lines if line["table"] == "audit_events"] == ["tokens_create"]
    assert "secret" not in done.stdout
    seed_fleet(database_url, SeedOptions(nodes=2, seed=1, history_days=1))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE node_states SET processes_kept = %b", [pack(json.dumps(PROCESSES).encode())])
    done = hugeplan("export", "--table", "node_states", HUGEPLAN_DATABASE_URL=database_url)
    states = [json.loads(line)["row"] for line in done.stdout.splitlines()]
    listed = [[{name: one[name] for name in PROCESSES[0]} for one in state["processes"]] for state in states]
    assert listed == [PROCESSES] * 2
    assert [name for state in states for name in state if name.endswith(("_kept", "_document"))] == []
    wrong = hugeplan("export", "--table", "tokens", HUGEPLAN_DATABASE_URL=database_url)
    assert wrong.returncode == 2
    assert "--table: 'tokens' is not valid" in wrong.stderr


class TestDoctor:
    def test_says_what_is_wrong_and_with_it_goes_well(
        self, hugeplan: Command, own_database_url: str, tmp_path: Path
    ) -> None:
        environment = {"HUGEPLAN_DATABASE_URL": own_database_url, "HUGEPLAN_STATE_DIR": str(tmp_path)}
        tmp_path.chmod(0o755)
        sick = hugeplan("doctor", **environment)
        assert sick.returncode == 1
        assert "is at migration none" in sick.stdout
        assert "others can read it" in sick.stdout
        tmp_path.chmod(0o700)
        hugeplan("migrate", **environment)
        well = hugeplan("doctor", **environment)
        assert well.returncode == 0, well.stdout
        assert "administrator's token. Run: hugeplan token create" in well.stdout

    @pytest.mark.parametrize(
        ("url", "state"),
        [("http://127.0.0.1:8000", "ok"), ("http://hugeplan.example", "wrong"), ("https://hugeplan.example", "ok")],
    )
    def test_plain_http_is_sound_where_only_this_machine_comes_by_it(self, url: str, state: str) -> None:
        """docker-compose.yml listens on all addresses of its container and publishes the port on loopback."""
        settings = Settings(database_url=SecretStr("postgresql:///x"), host="0.0.0.0", public_url=url)  # noqa: S104
        assert next(iter(check_exposure(settings))).state == state

    def test_a_database_that_is_away_is_one_line(self, hugeplan: Command) -> None:
        done = hugeplan("doctor", HUGEPLAN_DATABASE_URL="postgresql://u:a-password@/x?host=/nonexistent")
        assert done.returncode == 1
        assert "cannot be reached" in done.stdout
        assert "a-password" not in done.stdout


def test_tokens_are_listed_rotated_and_revoked(hugeplan: Command, database_url: str) -> None:
    token(hugeplan, database_url, "planner", "ci")

    def listed() -> list[str]:
        lines = hugeplan("token", "list", HUGEPLAN_DATABASE_URL=database_url).stdout.splitlines()
        return [line.split()[0] for line in lines if line.endswith("ci")]

    (identity,) = listed()
    link = hugeplan("token", "login-link", identity, HUGEPLAN_DATABASE_URL=database_url)
    assert "/login#token=hpl_" in link.stdout
    rotated = hugeplan("token", "rotate", identity, "--overlap-seconds", "60", HUGEPLAN_DATABASE_URL=database_url)
    assert rotated.stdout.startswith("hp_")
    assert len(listed()) == 2  # the line: the one that was rotated, in its overlap, and the one that follows it
    assert hugeplan("token", "revoke", identity, HUGEPLAN_DATABASE_URL=database_url).returncode == 0
    assert listed() == []  # both: the line ends as a whole
    again = hugeplan("token", "revoke", identity, HUGEPLAN_DATABASE_URL=database_url)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)


class TestServing:
    def test_first_token_requests_in_flight_and_workers(
        self, database_url: str, hugeplan: Command, tmp_path: Path
    ) -> None:
        """Two servers one after the other on one database: the first makes its administrator's token and shows it."""
        agent = token(hugeplan, database_url, "agent")
        with serving(database_url, tmp_path) as server:
            assert server.admin_token is not None
            headers = {"Authorization": f"Bearer {server.admin_token}"}
            assert httpx.get(f"{server.url}/api/v1/tokens", headers=headers).status_code == 200
            self.a_request_in_flight_is_finished(server, headers, agent)
        with serving(database_url, tmp_path, "--workers", "2") as server:
            assert server.admin_token is None
            self.workers_share_a_port_and_one_that_dies_is_replaced(server, headers)

    def test_a_first_token_that_could_not_be_kept_is_made_by_the_next_start(
        self, database_url: str, tmp_path: Path
    ) -> None:
        """Where the disk is full, or the folder not there: no administrator is left whose token nobody has."""
        file = tmp_path / "later/first-admin"
        environment = {"HUGEPLAN_DATABASE_URL": database_url, "HUGEPLAN_PORT": str(free_port())}
        done = subprocess.run(
            [sys.executable, "-m", "hugeplan.cli", "serve", "--first-admin-file", str(file)],
            env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (2, f"hugeplan serve: {file}: No such file or directory\n")
        file.parent.mkdir()
        with serving(database_url, tmp_path, "--first-admin-file", str(file)) as server:
            headers = {"Authorization": f"Bearer {file.read_text().strip()}"}
            assert httpx.get(f"{server.url}/api/v1/tokens", headers=headers).status_code == 200

    def test_started_with_workers_is_what_answers(self, database_url: str, tmp_path: Path) -> None:
        """Workers that are held before their first line: until one goes on, nobody is told that the service answers."""
        (tmp_path / "sitecustomize.py").write_text(
            "import os, sys, time\n"
            "if any('spawn_main' in word for word in sys.orig_argv):\n"
            f"    open(f'{tmp_path}/held-{{os.getpid()}}', 'w').close()\n"
            f"    while not os.path.exists('{tmp_path}/go'):\n"
            "        time.sleep(0.05)\n"
        )
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, ThreadPoolExecutor() as pool:
            manager.bind(str(tmp_path / "notify"))
            manager.settimeout(60)

            def held_then_let_go() -> None:
                deadline = time.monotonic() + 60
                while len(list(tmp_path.glob("held-*"))) < 2:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                told = select.select([manager], [], [], 0)[0]
                (tmp_path / "go").touch()
                assert not told

            held = pool.submit(held_then_let_go)
            more = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "PYTHONPATH": str(tmp_path)}
            with serving(database_url, tmp_path, "--workers", "2", **more) as server:
                held.result()
                assert manager.recv(100) == b"READY=1"
                assert httpx.get(f"{server.url}/healthz", timeout=30).status_code == 200

    def test_workers_that_cannot_start_end_the_service_as_failed(self, database_url: str, tmp_path: Path) -> None:
        """Status 0 would tell a service manager that somebody stopped it."""
        (tmp_path / "sitecustomize.py").write_text(
            f"import os, sys\nif any('spawn_main' in word for word in sys.orig_argv): os._exit({STARTUP_FAILURE})\n"
        )
        environment = {"HUGEPLAN_DATABASE_URL": database_url, "HUGEPLAN_PORT": str(free_port())}
        done = subprocess.run(
            [sys.executable, "-m", "hugeplan.cli", "serve", "--workers", "2"],
            env={**os.environ, **environment, "PYTHONPATH": str(tmp_path)},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, "answers" in done.stdout) == (2, False)
        assert done.stderr.endswith("hugeplan serve: a process of the service could not start; what it said is above\n")

    @staticmethod
    def workers_share_a_port_and_one_that_dies_is_replaced(server: Server, headers: dict[str, str]) -> None:
        def workers() -> set[int]:
            found = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
            return {pid for pid in map(int, found) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}

        def answers() -> bool:
            try:
                return httpx.get(f"{server.url}/api/v1/nodes", headers=headers, timeout=5).status_code == 200
            except httpx.HTTPError:
                return False

        deadline = time.monotonic() + 60
        while not (len(workers()) == 2 and answers()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        before = workers()
        os.kill(min(before), signal.SIGKILL)
        while not (len(workers()) == 2 and workers() != before and answers()):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    @staticmethod
    def a_request_in_flight_is_finished(server: Server, headers: dict[str, str], agent: str) -> None:
        """It ends the server."""
        body = json.dumps(report()).encode()
        connection = server.connect()
        head = (
            f"POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {agent}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body[:100])
        # It has been let in: the server waits for the rest, and has one request in progress.
        deadline = time.monotonic() + 60
        while "hugeplan_requests_in_progress 2.0" not in httpx.get(f"{server.url}/metrics", headers=headers).text:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        server.process.send_signal(signal.SIGTERM)
        threading.Timer(0.5, connection.sendall, [body[100:]]).start()
        assert connection.recv(12) == b"HTTP/1.1 201"
        connection.close()
