"""What a restore in place of what is there makes of access: no "no" of since is lost, no "yes" is good twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from cli.test_operations import database_url, token
from cli.test_service_commands import Command, hugeplan

from hugeplan.db.engine import create_engine
from hugeplan.db.maintenance import maintain
from hugeplan.db.session import Database
from hugeplan.settings import Settings

__all__ = ["database_url", "hugeplan"]

ROW = (
    "INSERT INTO tokens (id, name, role, secret_sha256, created_at, oidc_subject, replaces, max_enrolments)"
    " VALUES (gen_random_uuid(), %s, %s, sha256(%s), now(), %s, (SELECT id FROM tokens WHERE name = %s), %s)"
)
REQUEST = (
    "INSERT INTO enrolment_requests (id, node_machine_id, machine_id, claim_sha256, node_name, reason, token_name,"
    " attempts, first_asked_at, last_asked_at, decision, decided_at) VALUES"
    " (gen_random_uuid(), 'm', 'm', %s, 'n', 'r', 't', 1, now(), now(), %s, now() - interval '1 hour')"
)
APPROVAL = "INSERT INTO enrolment_approvals VALUES ('m', 'admin', now(), now() + interval '30 days')"


class Operator:
    """Who backs a database up and restores it, while others change it."""

    def __init__(self, hugeplan: Command, url: str, folder: Path) -> None:
        self.url, self._hugeplan, self._folder = url, hugeplan, folder

    def back_up(self, name: str) -> None:
        assert self._hugeplan("backup", str(self._folder / name), HUGEPLAN_DATABASE_URL=self.url).returncode == 0

    def restore(self, name: str) -> None:
        words = ("restore", "--replace", str(self._folder / name))
        done = self._hugeplan(*words, HUGEPLAN_DATABASE_URL=self.url)
        assert done.returncode == 0, done.stderr

    def do(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(statement, values)  # type: ignore[arg-type]

    def ask(self, question: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(question).fetchall()  # type: ignore[arg-type]


@pytest.fixture
def operator(hugeplan: Command, database_url: str, tmp_path: Path) -> Operator:
    """An operator with an empty, migrated database."""
    return Operator(hugeplan, database_url, tmp_path)


def test_what_was_used_up_or_refused_since_stays_so(operator: Operator) -> None:
    operator.do(ROW, "two", "enrolment", b"two", None, None, 2)
    operator.do(ROW, "unbound", "agent", b"unbound", None, None, None)
    operator.do(APPROVAL)
    for claim, decision in ((b"asks", None), (b"let in", "approved"), (b"refused", "refused"), (None, None)):
        operator.do(REQUEST, claim, decision)
    operator.back_up("before")
    operator.do("UPDATE tokens SET enrolments = 2 WHERE name = 'two'")
    operator.do("UPDATE tokens SET machine_id = 'm' WHERE name = 'unbound'")
    operator.do("DELETE FROM enrolment_approvals")
    operator.do("DELETE FROM enrolment_requests WHERE decision = 'approved'")
    operator.do("UPDATE enrolment_requests SET decision = 'refused', decided_at = now() WHERE claim_sha256 = 'asks'")
    operator.do(REQUEST, b"later", "refused")
    operator.do(REQUEST, b"asks later", None)
    refused = "SELECT claim_sha256, decided_at FROM enrolment_requests WHERE decision = 'refused' ORDER BY 1"
    expected = operator.ask(refused)
    assert [claim for claim, _ in expected] == [b"asks", b"later", b"refused"]
    operator.restore("before")
    assert operator.ask("SELECT name, enrolments, machine_id FROM tokens ORDER BY 1") == [
        ("two", 2, None),
        ("unbound", 0, "m"),
    ]
    assert operator.ask("SELECT machine_id FROM enrolment_approvals") == []
    assert operator.ask(refused) == expected
    assert len(operator.ask("SELECT FROM enrolment_requests")) == len(expected)  # who waits asks again by itself


def test_a_no_outlives_the_restore_of_an_earlier_and_then_of_a_later_backup(operator: Operator) -> None:
    """What the later one has was unknown meanwhile, or made anew under another id."""
    operator.do(ROW, "line", "viewer", b"line", None, None, None)
    operator.back_up("earlier")
    operator.do(ROW, "eve", "admin", b"1", "issuer eve", None, None)
    operator.do(ROW, "environment", "enrolment", b"known", None, None, None)
    operator.do(ROW, "line rotated", "viewer", b"line 2", None, "line", None)
    operator.do(ROW, "two", "enrolment", b"two", None, None, 2)
    operator.do(ROW, "ended", "viewer", b"ended", None, None, None)
    operator.do(ROW, "good", "admin", b"good", None, None, None)
    operator.back_up("later")
    operator.do("UPDATE tokens SET enrolments = 1 WHERE name = 'two'")
    operator.do("UPDATE tokens SET expires_at = now() - interval '1 s' WHERE name = 'ended'")
    operator.restore("earlier")
    operator.do(ROW, "eve", "admin", b"2", "issuer eve", None, None)
    operator.do(ROW, "environment", "enrolment", b"known", None, None, None)
    operator.do("UPDATE tokens SET revoked_at = now() WHERE name IN ('eve', 'environment', 'line')")
    operator.restore("later")
    usable = "SELECT name, enrolments FROM tokens WHERE revoked_at IS NULL AND coalesce(expires_at > now(), true)"
    assert operator.ask(f"{usable} ORDER BY 1") == [("good", 0), ("two", 1)]


def test_what_was_revoked_long_ago_stays_revoked(operator: Operator, hugeplan: Command) -> None:
    """Longer ago than revoked tokens would be kept, were no backup older than that."""
    for name in ("good", "leaked"):
        token(hugeplan, operator.url, "admin", name)
    operator.back_up("before")
    operator.do("UPDATE tokens SET revoked_at = now() - interval '91 days' WHERE name = 'leaked'")

    async def round_of_maintenance() -> None:
        settings = Settings(database_url=operator.url)  # type: ignore[arg-type]
        database = Database(create_engine(settings))
        assert await maintain(database, settings, datetime.now(UTC)) is None
        await database.dispose()

    asyncio.run(round_of_maintenance())
    operator.restore("before")
    assert operator.ask("SELECT name FROM tokens WHERE revoked_at IS NULL") == [("good",)]
