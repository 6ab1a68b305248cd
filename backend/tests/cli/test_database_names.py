"""A database that is known by a name, in a mount namespace with a hosts file of its own."""

from __future__ import annotations

import os
import select
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from hugeplan import embedded


class _Forwarder(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, socket_path: str) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.socket_path = socket_path

    def finish_request(self, request: Any, _: Any) -> None:
        with socket.socket(socket.AF_UNIX) as there:
            there.connect(self.socket_path)
            ends = {request: there, there: request}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    if not (data := end.recv(1 << 16)):
                        return
                    ends[end].sendall(data)


def _with_hosts(file: Path) -> list[str]:
    """The words before a command that sees this file as the machine's hosts."""
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(file)]


def _by_name(url: str, port: int) -> str:
    given = conninfo_to_dict(url)
    return f"postgresql://{given['user']}:{given.get('password', '')}@database:{port}/{given['dbname']}"


def _only(url: str) -> dict[str, str]:
    return {**os.environ, "HUGEPLAN_DATABASE_URL": url, "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """The hosts file that ``here`` commands see: names other than localhost are added by the test."""
    file = tmp_path / "hosts"
    file.write_text("127.0.0.1 localhost\n")
    if subprocess.run([*_with_hosts(file), "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("SKIP: no mount namespace can be made here, so no name comes and goes")
    return file


@pytest.fixture
def port(postgres: embedded.EmbeddedPostgres) -> Iterator[int]:
    """A port that leads to the tests' PostgreSQL, which listens on a socket alone."""
    folder = conninfo_to_dict(postgres.url("postgres"))
    with _Forwarder(f"{folder['host']}/.s.PGSQL.{folder.get('port', 5432)}") as forwarder:
        threading.Thread(target=forwarder.serve_forever, daemon=True).start()
        yield forwarder.server_address[1]
        forwarder.shutdown()


def test_a_name_that_is_lost_for_a_moment_is_asked_for_again(hosts: Path, port: int, own_database_url: str) -> None:
    url = _by_name(own_database_url, port)
    words = [*_with_hosts(hosts), sys.executable, "-m", "hugeplan.cli", "doctor"]
    lost = subprocess.Popen(words, env=_only(url), stdout=subprocess.PIPE, text=True)
    assert lost.stdout is not None
    while "interface" not in lost.stdout.readline():  # the last that it says before it asks for the name
        assert lost.poll() is None
    hosts.write_text(f"{hosts.read_text()}127.0.0.1 database\n")
    assert "PostgreSQL 18 answers" in lost.communicate(timeout=60)[0]
    hosts.write_text("127.0.0.1 localhost\n")
    gone = subprocess.run(words, env=_only(url), capture_output=True, text=True, check=False, timeout=120)
    assert "failed to resolve host 'database'" in gone.stdout
    assert gone.returncode == 1


def test_what_a_step_waited_for_is_not_lost_again(hosts: Path, port: int, own_database_url: str) -> None:
    """The name is gone as soon as the wait has found it: each of these commands ends well all the same."""
    url = _by_name(own_database_url, port)
    hosts.write_text(f"{hosts.read_text()}127.0.0.1 database\n")
    forget = f"import os; open({str(hosts)!r}, 'w').write('127.0.0.1 localhost'); "
    code = (
        "import os, sys; from hugeplan.cli import main; real = os.execv\n"
        f"def go(program, words):\n    {forget}real(program, words)\n"
        "os.execv = go; sys.exit(main(sys.argv[1:]))"
    )
    words = [*_with_hosts(hosts), sys.executable, "-c", code, "wait"]
    for then in (["migrate"], ["token", "login-link"], ["backup", "-"]):
        hosts.write_text("127.0.0.1 localhost\n127.0.0.1 database\n")
        done = subprocess.run([*words, *then], env=_only(url), capture_output=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        assert "database" not in hosts.read_text()
