"""``hugeplan doctor``: is this installation sound? One line for each check; exit status 1 when one is wrong."""

from __future__ import annotations

import argparse
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx
import psycopg

from hugeplan.api.ui import ui_dir
from hugeplan.cli import EXIT_FAILED, InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings
from hugeplan.db import migrate, replacement, server_release
from hugeplan.http_answer import whole_answer
from hugeplan.planner.host_names import is_loopback
from hugeplan.planner.printable import one_line
from hugeplan.settings import Settings

MAX_CLOCK_SECONDS = 5.0
ANSWER_SECONDS = 2.0
LEAST_FREE_BYTES = 1024**3
SOON_DAYS = 14
_Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Result:
    """How a check ended: ok, attention or wrong, and one sentence."""

    state: str
    text: str


def add_arguments(_: argparse.ArgumentParser) -> None:
    """``doctor`` takes its settings from the environment (docs/settings.md)."""


def check_exposure(settings: Settings) -> Iterator[Result]:
    """Whether who can reach the service sees more than they should."""
    if is_loopback(settings.host):
        yield Result("ok", f"It listens on {settings.host} only.")
    elif settings.public_url is not None and is_loopback(urlsplit(settings.public_url).hostname or ""):
        yield Result("ok", f"Browsers reach it on this machine alone, at {settings.public_url}.")
    elif not settings.is_cookie_secure():
        yield Result("wrong", "Session cookies may go without TLS; unset HUGEPLAN_COOKIE_SECURE.")
    elif settings.public_url is not None and settings.public_url.startswith("http://"):
        yield Result("wrong", "HUGEPLAN_PUBLIC_URL has no TLS, so browsers keep no session; use https://.")
    else:
        yield Result("ok", f"It listens on {settings.host}; put TLS before it: session cookies need it.")
    if settings.metrics_public:
        yield Result("attention", "Anybody may read /metrics (HUGEPLAN_METRICS_PUBLIC).")
    if settings.oidc_issuer is not None and not settings.oidc_role_map:
        yield Result("attention", "No group has a role (HUGEPLAN_OIDC_ROLE_MAP), so nobody can log in by the provider.")


def check_answer(settings: Settings) -> Iterator[Result]:
    """Whether the service answers where it is to listen."""
    address = settings.local_url()
    try:
        with httpx.Client(timeout=ANSWER_SECONDS, trust_env=False) as client:  # somebody else may listen there
            asked = ("GET", f"{address}/healthz")
            status = whole_answer(client, *asked, seconds=ANSWER_SECONDS, most_bytes=2**20).status
        yield Result("ok" if status == 200 else "attention", f"{address} answers with status {status}.")
    except httpx.HTTPError as error:
        yield Result(
            "attention",
            f"Nothing answers at {address} ({error}). A service that cannot start says why:"
            " journalctl --unit hugeplan-server --lines 20",
        )


def check_files(settings: Settings) -> Iterator[Result]:
    """The interface, the state folder and the disk."""
    folder = ui_dir(settings)
    is_there = (folder / "index.html").is_file()
    yield Result(
        *(("ok", f"The interface is in {folder}.") if is_there else ("attention", f"No interface in {folder}."))
    )
    if settings.state_dir.is_dir():
        mode = stat.S_IMODE(settings.state_dir.stat().st_mode)
        if mode & 0o077:
            yield Result("wrong", f"{settings.state_dir} has mode {mode:o}; others can read it. Run: chmod 700")
        free = shutil.disk_usage(settings.state_dir).free
        if free < LEAST_FREE_BYTES:
            yield Result("attention", f"{settings.state_dir} has {free // 1024**2} MiB free.")


def judge_release(server_version: int) -> Result:
    """Whether the server's release is one that the service runs on."""
    try:
        remark = server_release.require_supported(server_version)
    except server_release.ServerReleaseError as error:
        return Result("wrong", f"HUGEPLAN_DATABASE_URL: {error}.")
    return Result("attention", remark) if remark else Result("ok", f"PostgreSQL {server_version // 10000} answers.")


def check_migrations(settings: Settings, connection: _Connection) -> Iterator[Result]:
    """Whether the database is at the newest migration."""
    reason = migrate.behind(connection, migrate.migrations_dir(settings.migrations_dir))
    newest = Result("ok", "The database is at the newest migration.")
    yield Result("wrong", f"The{reason.removeprefix('the')}. Run: hugeplan migrate") if reason else newest


_ROLE = """
SELECT session_user::text, rolsuper, has_schema_privilege(session_user, 'public', 'CREATE')
FROM pg_roles WHERE rolname = session_user
"""


def check_role(_: Settings, connection: _Connection) -> Iterator[Result]:
    """Whether the service could do more in the database than it needs."""
    row = connection.execute(_ROLE).fetchone()
    if row is None:
        return
    role, is_super, may_make_tables = row
    if is_super or may_make_tables:
        what = "is a superuser" if is_super else "may make and drop tables"
        yield Result(
            "attention",
            f"The database's role {role} {what}, and the service need not: docs/upgrading.md, \"The database's roles\","
            " has the way to one that changes rows alone.",
        )
    else:
        yield Result("ok", f"The database's role {role} changes rows and no table.")


def check_clock(_: Settings, connection: _Connection) -> Iterator[Result]:
    """Whether the database's clock agrees with this machine's."""
    row = connection.execute("SELECT clock_timestamp()").fetchone()
    if row is not None and isinstance(row[0], datetime):
        seconds = abs((datetime.now(UTC) - row[0]).total_seconds())
        is_near = seconds < MAX_CLOCK_SECONDS
        yield Result("ok" if is_near else "wrong", f"The database's clock differs by {seconds:.1f} s.")


def check_tokens(_: Settings, connection: _Connection) -> Iterator[Result]:
    """Whether somebody can administrate, and what ends soon."""
    usable = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"
    admins = connection.execute(f"SELECT count(*) FROM tokens WHERE role = 'admin' AND {usable}").fetchone()  # noqa: S608
    if admins is None or admins[0] == 0:
        yield Result(
            "attention", "No usable administrator's token. Run: hugeplan token create --role admin --name NAME"
        )
    soon = connection.execute(
        f"SELECT name, id FROM tokens WHERE {usable} AND role <> 'enrolment'"  # noqa: S608 - enrolment is meant to end
        f" AND expires_at < now() + make_interval(days => {SOON_DAYS}) ORDER BY expires_at"
    ).fetchall()
    if soon:
        name, first = soon[0]
        others = f" and {len(soon) - 1} more" if len(soon) > 1 else ""
        yield Result(
            "attention",
            f"The token {one_line(name, 80)}{others} will end within {SOON_DAYS} days."
            f" Run: hugeplan token rotate {first}",
        )


def check_partitions(_: Settings, connection: _Connection) -> Iterator[Result]:
    """Whether maintenance makes partitions: rows of today must not go to the default one."""
    row = connection.execute(
        "SELECT to_regclass('samples_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NOT NULL"
    ).fetchone()
    is_there = bool(row and row[0])
    yield Result(
        "ok" if is_there else "attention",
        "Today's partition of samples is there." if is_there else "No partition for today: has the service run today?",
    )


FILE_CHECKS: tuple[Callable[[Settings], Iterator[Result]], ...] = (check_exposure, check_answer, check_files)
DATABASE_CHECKS: tuple[Callable[[Settings, _Connection], Iterator[Result]], ...] = (
    check_migrations,
    check_role,
    check_clock,
    check_tokens,
    check_partitions,
)


def examine(settings: Settings) -> Iterator[Result]:
    """All checks, in the order of the tables."""
    for check in FILE_CHECKS:
        yield from check(settings)
    try:
        connection = postgres_programs.connect(settings)
    except InputError as error:
        yield Result("wrong", str(error))
        return
    with connection:
        connection.autocommit = True
        yield judge_release(connection.info.server_version)
        for database_check in DATABASE_CHECKS:
            try:
                yield from database_check(settings, connection)
            except psycopg.errors.UndefinedTable:
                why = "A restore was cut off" if replacement.is_begun(connection) else "Tables are missing"
                yield Result("wrong", f"{why}. Run: hugeplan migrate")
            except migrate.MigrationsMissingError as error:
                yield Result("wrong", str(error))


def run(_: argparse.Namespace) -> int:
    """Print the checks, each as soon as it is known: a database that does not answer takes a while."""
    status = 0
    for result in examine(load_settings()):
        print(f"{result.state:<9} {result.text}", flush=True)
        status = EXIT_FAILED if result.state == "wrong" else status
    return status
