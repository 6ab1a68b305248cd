"""In place of a trial's server another program of its user answers: without end, with nothing, or it keeps its pipe."""

from __future__ import annotations

import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from hugeplan.measuring import control
from hugeplan.measuring.postgresql_clients import Pgbench
from hugeplan.measuring.postgresql_server import Server
from hugeplan.measuring.user_programs import LOAD_SECONDS, load_seconds, said_by, smaps_of

#: AuthenticationOk, server_version, client_encoding, BackendKeyData, ReadyForQuery (PostgreSQL's protocol 3.0).
HELLO = b"".join(
    kind + struct.pack("!i", len(body) + 4) + body
    for kind, body in (
        (b"R", struct.pack("!i", 0)),
        (b"S", b"server_version\x0016.1\x00"),
        (b"S", b"client_encoding\x00UTF8\x00"),
        (b"K", struct.pack("!ii", 1, 1)),
        (b"Z", b"I"),
    )
)
Answering = Callable[[socket.socket], None]


@pytest.fixture(autouse=True)
def _all_may_begin() -> Iterator[None]:
    yield
    control.allow()


def endless(client: socket.socket) -> None:
    """One column, and rows of a MiB each until nobody reads them."""
    column = b"a\x00" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0)
    client.sendall(b"T" + struct.pack("!ih", len(column) + 6, 1) + column)
    value = bytes(1 << 20)
    row = b"D" + struct.pack("!ihi", len(value) + 10, 1, len(value)) + value
    while True:
        client.sendall(row)


def large(client: socket.socket) -> None:
    """One message that says it has a gigabyte."""
    client.sendall(b"D" + struct.pack("!i", 1 << 30))
    while True:
        client.sendall(bytes(1 << 20))


def silent(client: socket.socket) -> None:
    client.recv(1)


NOTIFICATION = b"A" + struct.pack("!ii", 900_011, 1) + b"c\0" + b"n" * 900_000 + b"\0"
DONE = b"C\0\0\0\x0dSELECT 0\0" + b"Z\0\0\0\5I"


def notifying(client: socket.socket) -> None:
    """Some 18 MB of notifications before each answer."""
    client.sendall(NOTIFICATION * 20 + DONE)
    while client.recv(65536):
        client.sendall(NOTIFICATION * 20 + DONE)


@contextmanager
def listener(folder: Path, answer: Answering, hello: bytes = HELLO) -> Iterator[Server]:
    """A server whose socket somebody else's program has."""
    (folder / "a").mkdir()
    with socket.socket(socket.AF_UNIX) as heard:
        heard.bind(str(folder / "a/.s.PGSQL.5432"))
        heard.listen()

        def serve() -> None:
            client, _ = heard.accept()
            with client, suppress(OSError):
                client.recv(4096)
                client.sendall(hello)
                if hello == HELLO:
                    client.recv(65536)
                answer(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        server = Server.__new__(Server)
        server.folder = server.held = folder / "a"
        yield server
    thread.join(10)


def of_json(client: socket.socket) -> None:
    """A value of 4 MiB that says it is JSON: psycopg makes 27 bytes of each."""
    column, value = b"a\x00" + struct.pack("!ihihih", 0, 0, 114, -1, -1, 0), b"[" + b"[]," * (4 << 20) + b"[]]"
    client.sendall(b"T" + struct.pack("!ih", len(column) + 6, 1) + column)
    client.sendall(b"D" + struct.pack("!ihi", len(value) + 10, 1, len(value)) + value + DONE)
    silent(client)


def dear(client: socket.socket) -> None:
    """libpq looks for each of these names among all, in one call: it computes for an hour."""
    names = (b"S\0\0\0\x0d" + b"%07x" % number + b"\0\0" for number in range(1_500_000))
    client.sendall(b"N" + struct.pack("!i", 70 << 20) + bytes((70 << 20) - 4) + b"".join(names))
    silent(client)


@pytest.mark.parametrize("answer", [endless, large, of_json])
def test_an_answer_without_end_is_no_memory_without_end(tmp_path: Path, answer: Answering) -> None:
    before = rss_bytes()
    with listener(tmp_path, answer) as server, server.connect(5.0) as connection:
        with pytest.raises(psycopg.OperationalError, match=r"memory|did not answer within 5 s|more than is read"):
            connection.execute("select 1")
        assert rss_bytes() - before < 64 << 20
        limit = resource.prlimit(connection._process.pid, resource.RLIMIT_DATA) if not connection.closed else (0, 0)
        assert -1 < limit[1] <= 256 << 20


def test_what_libpq_computes_has_an_end_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for seconds, error in ((5.0, control.SilentError), (600.0, KeyboardInterrupt)):
            (tmp_path / str(seconds)).mkdir()
            with listener(tmp_path / str(seconds), dear) as server, server.connect(seconds) as connection:
                began, child = time.monotonic(), connection._process
                signal.alarm(0 if seconds < 60 else 5)
                with pytest.raises(error):
                    connection.execute("select 1")
                assert time.monotonic() - began < 15
                assert child.returncode == -signal.SIGKILL
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_wait_of_another_thread_ends_where_all_are_to_end(tmp_path: Path) -> None:
    with listener(tmp_path, silent) as server, server.connect() as connection, ThreadPoolExecutor(1) as other:
        waiting = other.submit(connection.execute, "select 1")
        time.sleep(0.2)
        control.stop_all()
        assert isinstance(waiting.exception(10), psycopg.OperationalError)
        assert connection.closed, "or who ends its clients asks it, and what that says hides the Ctrl-C"


def test_nobody_begins_to_wait_once_all_are_to_end(tmp_path: Path) -> None:
    """Two servers are warmed one after the other: the second connected after Ctrl-C, and was waited for."""
    connected = threading.Event()

    def answer(client: socket.socket) -> None:
        connected.set()
        silent(client)

    with listener(tmp_path, answer, hello=b"") as server:
        control.stop_all()
        with pytest.raises(psycopg.OperationalError, match="the trial ends"):
            server.connect()
        control.allow()
        with ThreadPoolExecutor(1) as other:
            waiting = other.submit(server.connect)
            assert connected.wait(30)
            control.stop_all()
            assert isinstance(waiting.exception(10), psycopg.OperationalError)


def test_what_takes_as_long_as_data_are_large_has_no_day() -> None:
    """Who stops a server's process holds the trial's huge pages, and every apply of the node, so long."""
    assert load_seconds(2 << 30) < 1000
    assert load_seconds(100 << 30) > 7200
    assert load_seconds(1 << 50) == LOAD_SECONDS


@pytest.mark.parametrize("value", [b"", b"nan", b"inf", b"1e999", b"[]"])
def test_what_is_no_number_is_a_sentence(tmp_path: Path, value: bytes) -> None:
    def answer(client: socket.socket) -> None:
        column = b"a\x00" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0)
        client.sendall(b"T" + struct.pack("!ih", len(column) + 6, 1) + column)
        client.sendall(b"D" + struct.pack("!ihi", len(value) + 10, 1, len(value)) + value + DONE)
        silent(client)

    with listener(tmp_path, answer) as server, pytest.raises(psycopg.DataError, match="something else than numbers"):
        server.data_bytes()


def test_connecting_takes_no_memory_without_end(tmp_path: Path) -> None:
    before = rss_bytes()

    def flooding(client: socket.socket) -> None:
        while True:
            client.sendall(NOTIFICATION)

    with listener(tmp_path, flooding, HELLO[:9]) as server, pytest.raises(psycopg.OperationalError):
        server.connect()
    assert rss_bytes() - before < 64 << 20


def test_notifications_are_not_kept(tmp_path: Path) -> None:
    with listener(tmp_path, notifying) as server, server.connect() as connection:
        for number in range(12):
            connection.execute(f"select {number}")


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (23, b"1e9", "ValueError: invalid literal"),
        (25, b"\xff\xfe", "UnicodeDecodeError: 'utf-8' codec"),
        (2950, b"zz", "ValueError: Invalid UUID"),
        (114, b"[" * 100_000, "RecursionError: maximum recursion"),
    ],
)
def test_what_cannot_be_read_is_said_as_what_it_is(tmp_path: Path, kind: int, value: bytes, said: str) -> None:
    def answer(client: socket.socket) -> None:
        column = b"a\x00" + struct.pack("!ihihih", 0, 0, kind, -1, -1, 0)
        client.sendall(b"T" + struct.pack("!ih", len(column) + 6, 1) + column)
        client.sendall(b"D" + struct.pack("!ihi", len(value) + 10, 1, len(value)) + value + DONE)
        silent(client)

    with (
        listener(tmp_path, answer) as server,
        server.connect(5.0) as connection,
        pytest.raises(psycopg.OperationalError, match=f"^the trial's server answered with what cannot be read.*{said}"),
    ):
        connection.execute("select 1")


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def test_no_answer_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with listener(tmp_path, silent) as server:
        connection = server.connect(0.3)
        with pytest.raises(psycopg.OperationalError, match=r"the trial's server did not answer within 0\.3 s"):
            connection.execute("select 1")
        with pytest.raises(psycopg.OperationalError, match="is closed"):  # what follows does not wait as long again
            connection.execute("select 1")


def test_who_asks_for_a_password_is_refused_at_once(tmp_path: Path) -> None:
    """libpq computes as many turns of SCRAM as it is told, up to 2^31, and no signal or time ends that."""
    asks = b"R" + struct.pack("!ii", 23, 10) + b"SCRAM-SHA-256\0\0"
    with (
        listener(tmp_path, silent, asks) as server,
        pytest.raises(psycopg.OperationalError, match=r"requirement \"none\" failed"),
    ):
        server.connect()


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "import os, time; os.close(1); os.close(2); time.sleep(60)",
        "import os\nif os.fork() == 0:\n    os.setsid()\n    __import__('time').sleep(60)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "while True: print('x' * 4096)",
    ],
    ids=["sleeps", "closes its output", "leaves its pipe to another", "stops itself", "says all"],
)
def test_a_program_that_does_not_end_is_left(code: str) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"did not end within 0\.3 s"):
        said_by([sys.executable, "-I", "-S", "-c", code], seconds=0.3)
    assert time.monotonic() - began < 10


def test_a_client_that_is_stopped_is_not_waited_for(tmp_path: Path) -> None:
    """Its user may stop it: then SIGTERM does nothing."""
    words = ["/bin/sh", "-c", "kill -STOP $$"]
    with listener(tmp_path, silent) as server, subprocess.Popen(words) as stopped:
        assert os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
        began, late = time.monotonic(), threading.Timer(20, stopped.kill)
        late.start()
        pgbench = Pgbench.__new__(Pgbench)
        pgbench.clients, pgbench.control = {0: stopped}, server.connect(0.3)
        with pytest.raises(psycopg.OperationalError, match="did not answer"):
            pgbench._stop()
        late.cancel()
        assert stopped.returncode == -signal.SIGKILL
        assert time.monotonic() - began < 15


def test_a_program_that_ends_is_heard_to_its_end() -> None:
    code = "import sys, time; print('one', flush=True); time.sleep(0.2); print('two'); sys.exit(3)"
    assert said_by([sys.executable, "-I", "-S", "-c", code]) == (3, "one\ntwo\n")


def test_what_is_said_is_read_in_a_time_that_grows_as_it_does() -> None:
    began = time.process_time()
    assert len(said_by(["head", "-c", str(48 << 20), "/dev/zero"], most=64 << 20)[1]) == 48 << 20
    assert time.process_time() - began < 1.0
    assert said_by(["echo", "0123456789"], most=4)[1] == "789\n"


def test_mappings_are_those_of_the_process() -> None:
    maps = smaps_of(os.getpid())
    assert maps.count("KernelPageSize:") == len(Path("/proc/self/maps").read_text(encoding="utf-8").splitlines())
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    with pytest.raises(OSError, match=rf"the mappings of process {process.pid} cannot be read: .*No such file"):
        smaps_of(process.pid)
