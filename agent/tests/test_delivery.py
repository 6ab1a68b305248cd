"""Sending over real HTTP to a server that misbehaves: what stays, what goes, what is said."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest

from hugeplan_agent.connection import Connection, is_loopback, proxy_of
from hugeplan_agent.delivery import MAX_FAULTS, Pass, deliver
from hugeplan_agent.sender import Outcome, Sender, classify, clock_offset_seconds
from hugeplan_agent.spool import Spool
from tests.factories import add, make_spool, waiting_ids
from tests.misbehaving_server import Behaviour, MisbehavingServer, problem

NOW = 1_700_000_000_000


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return make_spool(tmp_path / "spool")


def send(spool: Spool, server: MisbehavingServer, timeout_seconds: float = 5.0) -> Pass:
    with Sender(server.url, "secret", timeout_seconds) as sender:
        return deliver(spool, sender.send_report)


def test_everything_is_delivered_oldest_first_with_the_token(spool: Spool, server: MisbehavingServer) -> None:
    entries = [add(spool, NOW + number) for number in range(3)]
    done = send(spool, server)
    assert server.attempts == [entry.report_id for entry in entries]
    assert server.tokens == ["Bearer secret"] * 3
    assert done.is_complete
    assert done.delivered == server.attempts
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
    assert [report_id for report_id, _ in done.rejected] == [bad.report_id]
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


def test_reports_go_as_gzip_over_one_connection(spool: Spool, server: MisbehavingServer) -> None:
    for number in range(20):
        add(spool, NOW + number, padding_bytes=5000)
    assert send(spool, server).is_complete
    assert set(server.encodings) == {"gzip"}
    assert len(server.connections) == 1
    assert len(server.stored) == 20


def test_a_server_that_takes_no_gzip_gets_plain_json_and_no_report_is_lost(
    spool: Spool, server: MisbehavingServer
) -> None:
    server.refuses_gzip = True
    for number in range(3):
        add(spool, NOW + number, padding_bytes=5000)
    assert send(spool, server).is_complete
    assert server.encodings == ["gzip", "identity", "identity", "identity"], "it is asked once"
    assert len(server.stored) == 3


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again(spool: Spool, server: MisbehavingServer) -> None:
    with Sender(server.url, "secret", 5) as sender:
        add(spool, NOW)
        assert deliver(spool, sender.send_report).is_complete
        server.script.append(Behaviour(drop=True))
        add(spool, NOW + 1)
        assert deliver(spool, sender.send_report).is_complete, "a kept connection may be dead; one retry costs nothing"
    assert len(server.stored) == 2
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    ("server_address", "environment", "proxy"),
    [
        ("https://h.example", {"https_proxy": "http://p:1"}, "http://p:1"),
        ("https://h.example", {"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ("https://h.example", {"all_proxy": "http://p:1"}, "http://p:1"),
        ("http://h.example", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://h.example", {"http_proxy": "http://p:1"}, "http://p:1"),
        ("https://h.example", {"https_proxy": "http://p:1", "no_proxy": "other, .example"}, None),
        ("https://h.example", {"https_proxy": "http://p:1", "NO_PROXY": "h.example"}, None),
        ("https://h.example", {"https_proxy": "http://p:1", "no_proxy": "*"}, None),
        ("https://10.1.2.3", {"https_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, None),
        ("https://11.1.2.3", {"https_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://p:1"),
        ("https://127.0.0.1", {"https_proxy": "http://p:1"}, None),
    ],
)
def test_proxies(server_address: str, environment: dict[str, str], proxy: str | None) -> None:
    assert proxy_of(server_address, environment) == proxy


def test_a_proxy_is_asked_with_the_whole_address(server: MisbehavingServer) -> None:
    """The stand-in is the proxy here: it sees the absolute form and the proxy's own credentials."""
    connection = Connection("http://far.example:81/base", 5, None, server.url.replace("//", "//user:pa%40ss@"))
    response = connection.post("/api", b'{"report_id": "1"}', {"Content-Type": "application/json"})
    connection.close()
    assert response.status == 201
    assert server.paths == ["http://far.example:81/base/api"]
    assert server.proxy_credentials == ["Basic " + base64.b64encode(b"user:pa@ss").decode()]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("SKIP: openssl is not installed")
    key, file = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(file)]
    subprocess.run([*words, *names], check=True, capture_output=True)
    file.write_text(file.read_text() + key.read_text())
    return file


def test_a_server_is_believed_only_with_a_certificate_that_is_trusted(spool: Spool, certificate: Path) -> None:
    with MisbehavingServer(certificate) as server:
        assert server.url.startswith("https://")
        entry = add(spool, NOW)
        with Sender(server.url, "secret", 5) as stranger:
            done = deliver(spool, stranger.send_report)
        assert done.stopped_by is not None
        assert "CERTIFICATE_VERIFY_FAILED" in done.stopped_by.detail
        assert "--ca-file" in done.stopped_by.detail
        assert server.attempts == [], "neither the token nor the report went out"
        with Sender(server.url, "secret", 5, str(certificate)) as sender:
            assert deliver(spool, sender.send_report).is_complete
        assert list(server.stored) == [entry.report_id]


def test_the_servers_clock_is_seen() -> None:
    now = datetime(2026, 11, 22, 8, 0, 0, tzinfo=timezone.utc)
    assert clock_offset_seconds("Sun, 22 Nov 2026 08:02:00 GMT", now) == 120
    assert clock_offset_seconds("yesterday", now) is None
    assert clock_offset_seconds(None, now) is None


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


def test_no_proxy_is_for_this_machine_however_it_is_spelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node-7.example.org")
    proxy = {"http_proxy": "http://proxy.example:1"}
    here = "127.1 2130706433 0x7f.1 0 0.0.0.0 [::] [::ffff:127.0.0.1] LocalHost. a.localhost Node-7 node-7.example.org."
    assert [host for host in here.split() if proxy_of(f"http://{host}:8000", proxy)] == []
    far = "10.0.0.1 128.1 [fe80::1] [::ffff:10.0.0.1] example.org node-7.example.com xlocalhost a..b"
    assert [host for host in far.split() if not proxy_of(f"http://{host}:8000", proxy)] == []


def test_a_pass_while_another_process_sends_does_nothing(spool: Spool, server: MisbehavingServer) -> None:
    add(spool, NOW)
    with make_spool(spool.folder).sending():
        assert send(spool, server).busy
    assert server.attempts == []


def test_a_stop_ends_the_pass_between_reports(spool: Spool, server: MisbehavingServer) -> None:
    for number in range(3):
        add(spool, NOW + number)
    with Sender(server.url, "secret", 5) as sender:
        deliver(spool, sender.send_report, lambda: len(server.attempts) == 1)
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
