"""A server, and a spool folder, that mean no good: the agent goes on, within its time, and its terminal stays sound."""

from __future__ import annotations

import http.client
import json
import os
import pickle
import re
import signal
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

import pytest

from hugeplan_agent.backoff import parse_retry_after
from hugeplan_agent.cli import main
from hugeplan_agent.connection import WHOLE_ANSWER_TIMEOUTS, Connection
from hugeplan_agent.delivery import deliver
from hugeplan_agent.printable import printable
from hugeplan_agent.sender import Outcome, Sender, clock_offset_seconds
from hugeplan_agent.service import Log
from hugeplan_agent.spool import Spool, read_small_json
from tests.factories import add, make_spool, waiting_ids
from tests.misbehaving_server import Behaviour, MisbehavingServer, problem
from tests.test_cli import Node, node  # noqa: F401 - a fixture
from tests.test_delivery import certificate  # noqa: F401 - a fixture

NOW = 1_700_000_000_000
TIMEOUT_SECONDS = 0.3
CODES = "\x1b]0;owned\x07\x1b[2J\u202e\u2028\x9b1m"


@contextmanager
def raw_server(speak: Callable[[socket.socket], object]) -> Iterator[str]:
    """A server of plain bytes that serves one connection after the other."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.1)
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            with suppress(OSError):
                opened, _ = listening.accept()
                with opened:
                    opened.settimeout(5)
                    opened.recv(65536)
                    speak(opened)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        stopped.set()
        thread.join()
        listening.close()


def trickle(opened: socket.socket) -> None:
    for byte in b"HTTP/1.1 201 Created\r\nX: " + b"y" * 100_000:
        opened.sendall(bytes([byte]))
        time.sleep(0.05)


def trickle_body(opened: socket.socket) -> None:
    opened.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(100_000):
        opened.sendall(b"{")
        time.sleep(0.05)


def trickle_chunks(opened: socket.socket) -> None:
    opened.sendall(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(100_000):
        opened.sendall(b"1\r\n{\r\n")
        time.sleep(0.05)


def continue_for_ever(opened: socket.socket) -> None:
    while True:
        opened.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 50)


def headers_for_ever(opened: socket.socket) -> None:
    opened.sendall(b"HTTP/1.1 201 Created\r\n")
    while True:
        opened.sendall(b"X: y\r\n" * 50)


def body_for_ever(opened: socket.socket) -> None:
    opened.sendall(b"HTTP/1.1 201 Created\r\n\r\n")
    while True:
        opened.sendall(b"{" * 65536)


def say_nothing(opened: socket.socket) -> None:
    opened.recv(1)


SPEECHES = (
    trickle, trickle_body, trickle_chunks, continue_for_ever, headers_for_ever, body_for_ever, say_nothing,
)  # fmt: skip


@pytest.mark.parametrize("speak", SPEECHES)
def test_an_answer_ends_within_its_time(tmp_path: Path, speak: Callable[[socket.socket], None]) -> None:
    spool = make_spool(tmp_path / "spool")
    for number in range(2):
        add(spool, NOW + number)
    started = time.monotonic()
    with raw_server(speak) as url, Sender(url, "secret", TIMEOUT_SECONDS) as sender:
        done = deliver(spool, sender.send_report)
    assert time.monotonic() - started < WHOLE_ANSWER_TIMEOUTS * TIMEOUT_SECONDS + 5.5  # the server's own wait is 5 s
    assert done.delivered == []
    assert done.stopped_by is not None
    assert done.stopped_by.outcome is Outcome.UNAVAILABLE
    assert done.stopped_by.detail.isprintable()
    assert len(waiting_ids(spool)) == 2


def test_all_addresses_of_a_name_have_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes what connects to a socket whose queue is full. A name may have any number of addresses."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(full.getsockname())
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", full.getsockname())] * 60
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        started = time.monotonic()
        with pytest.raises(OSError, match=r"timed out|no whole answer"):
            Connection("http://many.example", TIMEOUT_SECONDS, None, None).post("/", b"", {})
    assert time.monotonic() - started < WHOLE_ANSWER_TIMEOUTS * TIMEOUT_SECONDS + 5


def test_a_time_that_ends_in_a_handshake_ends_what_comes_after_it(certificate: Path) -> None:  # noqa: F811
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def speak(opened: socket.socket) -> None:
        for byte in b"HTTP/1.1 200 OK\r\n\r\n":
            opened.sendall(bytes([byte]))
            time.sleep(0.04)
        time.sleep(0.2)
        with context.wrap_socket(opened, server_side=True) as inside:
            inside.recv(65536)
            trickle(inside)

    started = time.monotonic()
    with raw_server(speak) as proxy, pytest.raises((OSError, http.client.HTTPException, ValueError)):
        Connection("https://127.0.0.1:1", TIMEOUT_SECONDS, str(certificate), proxy).post("/", b"", {})
    assert time.monotonic() - started < WHOLE_ANSWER_TIMEOUTS * TIMEOUT_SECONDS + 5.5


def test_the_service_manager_waits_longer_than_any_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    started = time.monotonic()
    with raw_server(trickle) as url, pytest.raises(TimeoutError):
        Connection(url, 600, None, None).post("/", b"", {})
    assert time.monotonic() - started < 2 + 5


def test_a_handshake_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found: a request that was sent again in a new connection waited a timeout more than it may."""
    monkeypatch.setenv("WATCHDOG_USEC", "1000000")
    started = time.monotonic()
    with raw_server(lambda opened: opened.recv(1)) as url, pytest.raises(TimeoutError):
        Connection(url.replace("http", "https"), 600, None, None).post("/", b"", {})
    assert time.monotonic() - started < 4  # the server's own wait is 5 s


def test_a_server_that_takes_reports_slowly_holds_up_no_sample(
    node: Node,  # noqa: F811
    server: MisbehavingServer,
    tmp_path: Path,
) -> None:
    spool = make_spool(node.spool)
    before = {add(spool, int(time.time() * 1000) - 1000 + number).report_id for number in range(300)}
    server.on_arrival = lambda _: time.sleep(0.2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        node.environment.update({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000"})
        process = node.start("daemon", "--interval", "1s")
        while len([one for one in waiting_ids(spool) if one not in before]) < 2:
            assert process.poll() is None
            manager.recv(500)  # it is heard of at each report
        assert len(server.attempts) > 2, "and goes on sending"
        assert set(waiting_ids(spool)) & before, "while some still wait"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def test_a_server_that_takes_reports_slowly_holds_no_command_for_good(
    node: Node,  # noqa: F811
    server: MisbehavingServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spool = make_spool(node.spool)
    before = [add(spool, int(time.time() * 1000) - 1000 + number) for number in range(100)]
    server.on_arrival = lambda _: time.sleep(0.2)
    monkeypatch.setattr("hugeplan_agent.cli.ONCE_SENDING_SECONDS", 1.0)
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    assert main(["once"]) == 1
    assert 2 <= len(server.attempts) < 20
    assert re.search(r"report \S+ waits with others in ", capsys.readouterr().err)
    assert len(waiting_ids(spool)) == len(before) + 1 - len(server.attempts)


DEEP = {"brackets": b"[" * 200_000, "objects": b'{"a":' * 40_000, "in a problem": b'{"detail":' + b"[" * 100_000}


@pytest.mark.parametrize("status", [201, 422, 503])
@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_a_deep_answer_is_an_answer_without_words(
    tmp_path: Path, server: MisbehavingServer, status: int, body: bytes
) -> None:
    spool = make_spool(tmp_path / "spool")
    add(spool, NOW)
    server.script.append(Behaviour(status, body))
    with Sender(server.url, "secret", 5.0) as sender:
        done = deliver(spool, sender.send_report)
    assert done.delivered == []
    assert spool.rejected_count() + len(waiting_ids(spool)) == 1


@pytest.mark.parametrize("status", [201, 422])
def test_a_pass_holds_no_more_than_its_reports_ids_and_the_words(
    tmp_path: Path, server: MisbehavingServer, status: int
) -> None:
    """An answer of 256 KiB is 6 MB in memory: an agent with 13 waiting reports had more than its unit may take."""
    spool = make_spool(tmp_path / "spool")
    for number in range(5):
        own = add(spool, NOW + number).report_id
        server.script.append(Behaviour(status, {"report_id": own, "detail": "x" * 9000, "more": [[]] * 50_000}))
    with Sender(server.url, "secret", 5.0) as sender:
        done = deliver(spool, sender.send_report)
    assert len(done.delivered) + len(done.rejected) == 5
    assert len(pickle.dumps(done)) < 5000


def test_a_problem_that_is_nested_is_kept(tmp_path: Path, server: MisbehavingServer) -> None:
    """Deep enough for a reader that is quick, too deep for a writer that indents."""
    spool = make_spool(tmp_path / "spool")
    add(spool, NOW)
    server.script.append(Behaviour(422, b'{"detail": "no", "x": ' + b"[" * 900 + b"]" * 900 + b"}"))
    with Sender(server.url, "secret", 5.0) as sender:
        deliver(spool, sender.send_report)
    (kept,) = spool.rejected.glob("*.problem.json")
    assert json.loads(kept.read_text())["detail"]


@pytest.mark.parametrize(
    "behaviour",
    [
        problem(422, "x", f"no {CODES}"), problem(503, f"t {CODES}", ""),
        Behaviour(401, {"detail": [CODES, {"a": CODES}]}),
        Behaviour(201, {"report_id": CODES}), Behaviour(500, {"title": CODES * 1000}),
    ],
)  # fmt: skip
def test_no_terminal_code_of_an_answer_is_said(tmp_path: Path, server: MisbehavingServer, behaviour: Behaviour) -> None:
    spool = make_spool(tmp_path / "spool")
    add(spool, NOW)
    server.script.append(behaviour)
    with Sender(server.url, "secret", 5.0) as sender:
        done = deliver(spool, sender.send_report)
    said = [why for _, why in done.rejected] + ([done.stopped_by.detail] if done.stopped_by else [])
    assert said
    for text in said:
        assert text.isprintable()
        assert len(text) < 4000
    lines: list[str] = []
    Log(lines.append).line(f"the server says {CODES}")
    assert all(line.isprintable() for line in lines)


def test_what_is_printable_stays() -> None:
    assert printable("schön: db-7, 5 % – 日本") == "schön: db-7, 5 % – 日本"
    assert printable("a\x1bb\U000e0001") == "a\\u001bb\\udb40\\udc01"


@pytest.mark.parametrize("token", ["", "two words", "a\nb", "é", "x" * 100_000, CODES])
def test_a_token_that_is_none_is_not_kept(node: Node, server: MisbehavingServer, token: str) -> None:  # noqa: F811
    node.environment["HUGEPLAN_AGENT_ENROLMENT_TOKEN"] = "enrolment"
    file = Path(node.environment["HUGEPLAN_AGENT_TOKEN_FILE"])
    server.script.append(Behaviour(201, {"token": token}))
    before = file.read_bytes()
    status, _, errors = node.call("enrol")
    assert status == 1
    assert "gave no agent token" in errors
    assert "Traceback" not in errors
    assert file.read_bytes() == before


@pytest.mark.parametrize("what", ["fifo", "folder", "link", "socket"])
@pytest.mark.parametrize("where", ["pending", "counters.json", "measured.json", "lock", "leftover"])
def test_what_is_no_file_of_ours_stops_nothing(
    tmp_path: Path, server: MisbehavingServer, what: str, where: str
) -> None:
    spool = make_spool(tmp_path / "spool")
    add(spool, NOW)
    path = {
        "pending": spool.pending / f"{NOW - 1:013d}-00000000-0000-4000-8000-000000000000-sample.json",
        "leftover": spool.pending / ".x.json.99999999.tmp",
    }.get(where, spool.folder / where)
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        (path / "inner").mkdir(parents=True)
    elif what == "link":
        (tmp_path / "secret").write_text('{"size": 7}')
        path.symlink_to(tmp_path / "secret")
    else:
        opened = socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        os.chdir(path.parent)  # addresses of sockets are short
        opened.bind(path.name)
        os.chdir(here)
        opened.close()
    finished: list[object] = []

    def work() -> None:
        with Sender(server.url, "secret", 5.0) as sender, suppress(OSError):
            try:
                finished.append(deliver(Spool(spool.folder, spool.bounds), sender.send_report))
            except Exception as error:
                finished.append(error)
        again = Spool(spool.folder, spool.bounds)
        assert again.counters() == dict.fromkeys(("size", "age", "disk_full", "rejected"), 0)
        assert read_small_json(spool.folder / "measured.json") == {}
        again.enforce()
        again.summary()
        finished.append("all")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    assert finished[-1:] == ["all"], "it waits"
    if where == "lock" and what in {"folder", "link", "socket"}:
        assert "lock" in str(finished[0])  # said, with the file's name
    else:
        assert len(server.stored) == 1


@pytest.mark.parametrize(
    "content",
    [
        '{"size": "many"}', '{"size": null}', '{"size": -5}', '{"size": 1e400}', '{"size": true}', "[]", "7", "null",
        "",
        "[" * 100_000, "\x00", '{"size": 99999999999999999999999999}', '{"size": [1]}', '{"size": NaN}', "é",
    ],
)  # fmt: skip
def test_odd_counters_count_as_none(tmp_path: Path, content: str) -> None:
    spool = make_spool(tmp_path / "spool", max_bytes=100)
    (spool.folder / "counters.json").write_text(content, encoding="utf-8")
    assert spool.counters()["size"] == 0
    add(spool, NOW, 200)
    add(spool, NOW + 1, 200)  # the first gives way, and is counted
    assert spool.counters()["size"] == 1
    assert stat.S_ISREG((spool.folder / "counters.json").stat().st_mode)


@pytest.mark.parametrize(
    "value", ["9" * 5000, "Mon, 99 Foo 99999 99:99:99 GMT", "-1", "\x00", "", "Tue, 1 Jan 10000 0:0:0 GMT"]
)
def test_odd_times_of_a_server_are_none(value: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    found = parse_retry_after(value, now)
    assert found is None or found >= 0
    clock_offset_seconds(value, now)
