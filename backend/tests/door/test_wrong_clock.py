"""The real service with a clock that is wrong: nothing is deleted, and good reports stay good.

libfaketime gives one process another day; PostgreSQL and the agents keep theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from db.test_retention import fill, fresh
from support.reports import report
from support.server import Server, serving

from hugeplan.settings import Settings

__all__ = ["fresh"]
FOUND = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
NEEDED = pytest.mark.skipif(not FOUND, reason="libfaketime is not installed")
WAIT_SECONDS = 90.0
REFUSED = "retention deleted nothing"
KEPT = {
    # What is sealed lies in blocks, and is not deleted.
    "documents": "SELECT (SELECT count(*) FROM report_documents)"
    " + (SELECT coalesce(sum(cardinality(report_ids)), 0) FROM sealed_documents)",
    # Where their documents say them, they have as many reports as those.
    "samples": "SELECT (SELECT count(*) FROM samples) + (SELECT coalesce(sum(CASE WHEN s.details = '' THEN"
    " (SELECT cardinality(d.report_ids) FROM sealed_documents d WHERE d.node_id = s.node_id"
    " AND d.first_report_id = s.first_report_id) ELSE cardinality(s.report_ids) END), 0) FROM sealed_samples s)",
    "nodes": "SELECT count(*) FROM nodes",
    "sessions": "SELECT count(*) FROM browser_sessions",
    "tokens": "SELECT count(*) FROM tokens",
}


def clock(days: int) -> dict[str, str]:
    """The environment of a process whose clock is so many days ahead. Its monotonic clock is the machine's."""
    return {
        "LD_PRELOAD": str(FOUND[0]),
        "FAKETIME": f"{days:+d}d",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def database_url(given: Any) -> str:
    settings: Settings = given[1]
    return settings.psycopg_url()


def rounds(url: str, action: str = "retention_refused") -> int:
    """How often the audit log says that a round was refused."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM audit_events WHERE action = %s", [action]).fetchone()
    assert found is not None
    return int(found[0])


def kept(url: str) -> dict[str, int]:
    """How much there is of all that retention deletes."""
    with psycopg.connect(url) as connection:
        found = {name: connection.execute(statement).fetchone() for name, statement in KEPT.items()}
    return {name: int(row[0]) for name, row in found.items() if row is not None}


def is_all_there(before: dict[str, int], after: dict[str, int]) -> bool:
    return all(after[name] >= count > 0 for name, count in before.items())


def days_of(server: Server) -> int:
    """The day that the service's answers are of, from today."""
    answered = httpx.get(f"{server.url}/healthz").headers["date"]
    said = datetime.strptime(answered, "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=UTC)
    return round((said - datetime.now(UTC)) / timedelta(days=1))


def send(server: Server, token: str, taken_at: datetime) -> httpx.Response:
    document = report()
    document["machine_id"] = f"{7:032x}"
    document["sample"]["taken_at"] = document["created_at"] = taken_at.isoformat()
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{server.url}/api/v1/reports", json=document, headers=headers, timeout=60)


def agent_token(server: Server) -> str:
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    made = httpx.post(f"{server.url}/api/v1/tokens", json={"name": "a", "role": "agent"}, headers=headers, timeout=60)
    assert made.status_code == 201, made.text
    token: str = made.json()["token"]
    return token


@NEEDED
async def test_a_service_40_days_ahead_for_a_round_deletes_nothing(fresh: Any, tmp_path: Path) -> None:
    await fill(fresh)
    url = database_url(fresh)
    before = kept(url)
    with serving(url, tmp_path, **clock(40)) as ahead:
        assert days_of(ahead) == 40
        until(lambda: rounds(url), "the round of a service 40 days ahead is not refused")
        assert REFUSED in ahead.log.read_text()
        # It goes on taking reports meanwhile.
        assert send(ahead, agent_token(ahead), datetime.now(UTC)).status_code == 201
    assert is_all_there(before, kept(url)), (before, kept(url))
    with serving(url, tmp_path) as right:
        assert days_of(right) == 0
        until(lambda: "hugeplan_retention_refused 0.0" in metrics(right, ahead.admin_token), "no round was sure")
    assert is_all_there(before, kept(url)), (before, kept(url))


def asked(server: Server, token: str | None, path: str) -> httpx.Response:
    return httpx.get(f"{server.url}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=60)


def metrics(server: Server, token: str | None) -> str:
    return asked(server, token, "/metrics").text


@NEEDED
async def test_a_service_two_days_behind_takes_good_reports_and_shows_them(fresh: Any, tmp_path: Path) -> None:
    await fill(fresh, days=4)
    url = database_url(fresh)
    before = kept(url)
    with serving(url, tmp_path, **clock(-2)) as behind:
        assert days_of(behind) == -2
        token = agent_token(behind)
        sent = [send(behind, token, datetime.now(UTC)) for _ in range(3)]
        assert [one.status_code for one in sent] == [201, 201, 201], sent[0].text
        node, admin = sent[0].json()["node_id"], behind.admin_token
        until(lambda: rounds(url), "the round of a service two days behind is not refused")
    found = kept(url)
    assert is_all_there(before, found), (before, found)
    assert found["samples"] >= before["samples"] + 3
    with serving(url, tmp_path) as right:
        # What comes with the right clock counts, and is the newest.
        assert send(right, token, datetime.now(UTC)).status_code == 201
        newest = datetime.fromisoformat(asked(right, admin, f"/api/v1/nodes/{node}").json()["last_report_at"])
        assert abs(newest - datetime.now(UTC)) < timedelta(hours=1)
        assert "hugeplan_retention_refused 0.0" in metrics(right, admin)
