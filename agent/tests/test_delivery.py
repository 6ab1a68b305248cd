"""Sending over real HTTP to a server that misbehaves: what stays, what goes, what is said."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from hugeplan_agent.delivery import MAX_FAULTS, Pass, deliver
from hugeplan_agent.sender import Outcome, Sender, classify, is_loopback
from hugeplan_agent.spool import Spool
from tests.factories import add, make_spool, waiting_ids
from tests.misbehaving_server import Behaviour, MisbehavingServer, problem

NOW = 1_700_000_000_000


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return make_spool(tmp_path / "spool")


def send(spool: Spool, server: MisbehavingServer, timeout_seconds: float = 5.0) -> Pass:
    return deliver(spool, Sender(server.url, "secret", timeout_seconds).send_report)


def test_everything_is_delivered_oldest_first_with_the_token(spool: Spool, server: MisbehavingServer) -> None:
    entries = [add(spool, NOW + number) for number in range(3)]
    done = send(spool, server)
    assert server.attempts == [entry.report_id for entry in entries]
    assert server.tokens == ["Bearer secret"] * 3
    assert done.is_complete
    assert len(done.delivered) == 3
    assert waiting_ids(spool) == []


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(503, headers={"Retry-After": "7"}),
        Behaviour(502, b"<html>bad gateway</html>"),
        Behaviour(429, headers={"Retry-After": "7"}),
        Behaviour(408),
        Behaviour(404, b"nothing here"),
        Behaviour(302, headers={"Location": "/elsewhere"}),
        Behaviour(drop=True),
        Behaviour(200, b"<html>please log in to the wireless network</html>"),
        Behaviour(200, {"report_id": "another"}),
    ],
    ids=lambda behaviour: "drop" if behaviour.drop else str(behaviour.status),
)
def test_an_answer_that_is_not_the_reports_fault_keeps_it(
    spool: Spool, server: MisbehavingServer, behaviour: Behaviour
) -> None:
    entry = add(spool, NOW)
    add(spool, NOW + 1)
    server.script.append(behaviour)
    done = send(spool, server)
    assert done.stopped_by is not None
    assert done.stopped_by.outcome is Outcome.UNAVAILABLE
    assert len(server.attempts) == 1, "the pass ends; the next report would meet the same"
    assert len(waiting_ids(spool)) == 2
    assert send(spool, server).is_complete
    assert entry.report_id in server.stored
    assert waiting_ids(spool) == []


def test_retry_after_is_read(spool: Spool, server: MisbehavingServer) -> None:
    add(spool, NOW)
    server.script.append(Behaviour(503, headers={"Retry-After": "7"}))
    done = send(spool, server)
    assert done.stopped_by is not None
    assert done.stopped_by.retry_after_seconds == 7


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422])
def test_an_invalid_report_is_set_aside_and_the_next_is_sent(
    spool: Spool, server: MisbehavingServer, status: int
) -> None:
    bad, good = add(spool, NOW), add(spool, NOW + 1)
    server.script.append(problem(status, "Refused", "body.sample.memory: 7 is not bytes"))
    done = send(spool, server)
    assert done.is_complete
    assert [entry.report_id for entry, _ in done.rejected] == [bad.report_id]
    assert list(server.stored) == [good.report_id]
    assert waiting_ids(spool) == []
    words = json.loads(next(spool.rejected.glob("*.problem.json")).read_text())
    assert words["detail"] == "body.sample.memory: 7 is not bytes"


def test_a_refusal_without_a_problem_document_still_says_what_came(spool: Spool, server: MisbehavingServer) -> None:
    add(spool, NOW)
    server.script.append(Behaviour(413, b"too big"))
    send(spool, server)
    words = json.loads(next(spool.rejected.glob("*.problem.json")).read_text())
    assert words["status"] == 413


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_keeps_the_spool_and_stops(spool: Spool, server: MisbehavingServer, status: int) -> None:
    add(spool, NOW)
    add(spool, NOW + 1)
    server.script.append(problem(status, "No", "the token is revoked"))
    done = send(spool, server)
    assert done.stopped_by is not None
    assert done.stopped_by.outcome is Outcome.FORBIDDEN
    assert "the token is revoked" in done.stopped_by.detail
    assert len(server.attempts) == 1
    assert len(waiting_ids(spool)) == 2


def test_one_report_that_breaks_the_server_does_not_hold_up_the_others(spool: Spool, server: MisbehavingServer) -> None:
    poison, good = add(spool, NOW), add(spool, NOW + 1)
    server.script.append(problem(500, "Fault", "boom"))
    done = send(spool, server)
    assert list(server.stored) == [good.report_id]
    assert waiting_ids(spool) == [poison.report_id]
    assert done.stopped_by is not None
    assert done.stopped_by.outcome is Outcome.SERVER_FAULT


def test_a_server_that_breaks_on_everything_is_left_in_peace(spool: Spool, server: MisbehavingServer) -> None:
    for number in range(MAX_FAULTS + 3):
        add(spool, NOW + number)
        server.script.append(Behaviour(500))
    send(spool, server)
    assert len(server.attempts) == MAX_FAULTS
    assert len(waiting_ids(spool)) == MAX_FAULTS + 3


def test_a_slow_server_is_given_up_after_the_timeout(spool: Spool, server: MisbehavingServer) -> None:
    add(spool, NOW)
    server.script.append(Behaviour(hold=True))
    done = send(spool, server, timeout_seconds=0.2)
    assert done.stopped_by is not None
    assert "timed out" in done.stopped_by.detail
    assert len(waiting_ids(spool)) == 1


def test_the_same_report_twice_is_stored_once_and_leaves_the_spool(spool: Spool, server: MisbehavingServer) -> None:
    entry = add(spool, NOW)
    server.stored[entry.report_id] = {"report_id": entry.report_id}
    assert send(spool, server).is_complete
    assert waiting_ids(spool) == []


def test_nobody_listening_keeps_the_report(spool: Spool) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    add(spool, NOW)
    done = deliver(spool, Sender(f"http://127.0.0.1:{port}", "secret", 2).send_report)
    assert done.stopped_by is not None
    assert "cannot be reached" in done.stopped_by.detail
    assert len(waiting_ids(spool)) == 1


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    spool: Spool, server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    add(spool, NOW)
    assert send(spool, server).is_complete


@pytest.mark.parametrize(
    ("server_address", "expected"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8000", True),
        ("http://localhost", True),
        ("http://backend:8000", False),
        ("https://127.0.0.1.example.org", False),
        ("http://192.168.1.1", False),
    ],
)
def test_loopback_addresses(server_address: str, expected: bool) -> None:
    assert is_loopback(server_address) is expected


def test_a_pass_while_another_process_sends_does_nothing(spool: Spool, server: MisbehavingServer) -> None:
    add(spool, NOW)
    with make_spool(spool.folder).sending():
        assert send(spool, server).busy
    assert server.attempts == []


def test_a_stop_ends_the_pass_between_reports(spool: Spool, server: MisbehavingServer) -> None:
    for number in range(3):
        add(spool, NOW + number)
    deliver(spool, Sender(server.url, "secret", 5).send_report, lambda: len(server.attempts) == 1)
    assert len(waiting_ids(spool)) == 2


def test_every_refusal_has_a_meaning_and_no_server_error_costs_a_report() -> None:
    for status in range(400, 600):
        outcome = classify(status)
        if status in (401, 403):
            assert outcome is Outcome.FORBIDDEN, status
        elif status >= 500:
            assert outcome in (Outcome.UNAVAILABLE, Outcome.SERVER_FAULT), status
        else:
            assert outcome in (Outcome.UNAVAILABLE, Outcome.REJECTED), status
