"""The agent's own small files, when something else lies in their place: nothing waits, and nothing is given away."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hugeplan_agent import health
from hugeplan_agent.config import read_token
from hugeplan_agent.errors import AgentError, ConfigurationError
from hugeplan_agent.host import Host
from hugeplan_agent.machine import machine_id
from hugeplan_agent.whole_files import MAX_SMALL_BYTES, read_file
from tests.misbehaving_server import MisbehavingServer
from tests.test_cli import Node

SECRET = "abcd"
Make = Callable[[Path], object]
Machine = Callable[[str], Host]
OTHERS = ("enrolment-claim", "health.json", "machine-id", "counters.json", "measured.json")


def endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def link_out(path: Path) -> None:
    (path.parent.parent / "secret").write_text(SECRET)
    path.symlink_to(path.parent.parent / "secret")


ODD: dict[str, Make] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "a terabyte": endless,
    "a link out": link_out,
    "a link to nothing": lambda path: path.symlink_to(path.parent.parent / "nothing"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\0" * 9),
    "nothing": lambda path: path.write_bytes(b""),
}


def within(seconds: float, work: Callable[[], object]) -> object:
    """What a call gives or raises; it fails when it waits."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except (OSError, AgentError) as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it waits, or failed otherwise"
    return found[0]


@pytest.mark.parametrize("what", ODD)
def test_an_odd_token_file_is_one_sentence(tmp_path: Path, what: str) -> None:
    path = tmp_path / "state" / "token"
    path.parent.mkdir()
    ODD[what](path)
    path.chmod(0o600) if path.is_file() and not path.is_symlink() else None
    found = within(5, lambda: read_token(path))
    if what == "a link out":  # Kubernetes mounts secrets as links
        (tmp_path / "secret").chmod(0o600)
        assert within(5, lambda: read_token(path)) == SECRET
    else:
        assert isinstance(found, ConfigurationError)
        assert str(path) in str(found)


@pytest.mark.parametrize("what", ODD)
def test_an_odd_machine_id_is_no_id_and_leads_nowhere(tmp_path: Path, machine: Machine, what: str) -> None:
    state = tmp_path / "state"
    state.mkdir()
    ODD[what](state / "machine-id")
    host = machine("riscv-bare")
    found = within(5, lambda: machine_id(host, state))
    assert found != SECRET
    assert not (tmp_path / "nothing").exists()
    if what in {"no text", "nothing"}:  # what a crash left: a new one is made once
        assert isinstance(found, str)
        assert within(5, lambda: machine_id(host, state)) == found


@pytest.mark.parametrize("what", ODD)
def test_odd_health_is_none(tmp_path: Path, what: str) -> None:
    state = tmp_path / "state"
    state.mkdir()
    ODD[what](state / "health.json")
    assert within(5, lambda: health.read(str(state)) is None) is True


@pytest.fixture
def node(tmp_path: Path, machine: Machine, server: MisbehavingServer) -> Iterator[Node]:
    made = Node(tmp_path, machine("riscv-bare").root, server.url)
    made.spool.mkdir()
    yield made
    for process in made.running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("where", ["token", "others"])
def test_a_command_ends_whatever_lies_in_its_place(node: Node, what: str, where: str) -> None:
    if where == "token":
        node.token_file.unlink()
        ODD[what](node.token_file)
    else:
        for name in OTHERS:
            if what != "a link out" or name == OTHERS[0]:
                ODD[what](node.spool / name)
            else:
                (node.spool / name).symlink_to(node.folder / "secret")
    _, _, errors = node.call("once")
    assert "Traceback" not in errors
    assert len(errors.splitlines()) <= 3


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * MAX_SMALL_BYTES)
    assert len(read_file(path)) == MAX_SMALL_BYTES
    path.write_bytes(b"x" * (MAX_SMALL_BYTES + 1))
    with pytest.raises(OSError, match="more than 65536"):
        read_file(path)
