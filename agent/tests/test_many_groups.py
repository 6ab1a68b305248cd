"""Whose processes have very many groups makes each look at their status dear, and no observation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hugeplan_agent import left_behind
from hugeplan_agent.collectors import databases, process_table
from hugeplan_agent.collectors.foreign import FIRST_USER
from hugeplan_agent.host import Host

COUNT = 40
MANY_GROUPS = Path(__file__).with_name("many_groups.py").read_text()
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root gives a process many groups")


@contextmanager
def many(count: int = COUNT, groups: int = 65000) -> Iterator[list[int]]:
    """The pids of another user's processes, which are large enough to be looked at."""
    words = [sys.executable, "-S", "-c", MANY_GROUPS.replace("65000", str(groups)), str(count), "120"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield [int(word) for word in process.stdout.readline().split()]  # type: ignore[union-attr]
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # the next test's are of the same account


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of which processes a status is read from here on."""
    found: list[int] = []
    read_record, read_any = Host.read_record, left_behind._read

    def note(name: str) -> str:
        if name.endswith("/status"):
            found.append(int(name.split("/")[-2]))
        return name

    monkeypatch.setattr(Host, "read_record", lambda self, name, *most: read_record(self, note(name), *most))
    monkeypatch.setattr(left_behind, "_read", lambda name: read_any(note(name)))
    return found


# Of 6,000 groups a status takes 0.2 to 1 ms: on many machines less than what one alone is dear from.
@pytest.mark.parametrize(("count", "groups"), [(COUNT, 65000), (300, 6000)])
@pytest.mark.parametrize("crowd", [None, "a", "\u20ac" * 5])
def test_an_accounts_dear_status_is_read_a_few_times_and_that_of_others_each_time(
    crowd: str | None, count: int, groups: int, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if crowd:  # where each process is asked whose it is
        monkeypatch.setattr(process_table, "MAX_KEPT", 3)
        named = f"import ctypes; ctypes.CDLL(None).prctl(15, {crowd.encode()!r})\n"
        monkeypatch.setitem(globals(), "MANY_GROUPS", named + MANY_GROUPS)
    words = [sys.executable, "-c", "x = bytes(20 << 20); input()"]
    with many(count, groups) as pids, subprocess.Popen(words, stdin=-1) as other:
        host = Host("/")
        table = process_table.scan(host).by_pid
        process_table.need_status(host, process_table.Process(other.pid, 1, 1, "", 0))
        other.kill()
    assert crowd or set(pids) <= table.keys(), "what stat says is kept"
    assert {table[pid].user for pid in pids if pid in table} <= {65534}
    assert len([pid for pid in read if pid in pids]) < count * 3 / 4
    assert other.pid in read


@pytest.mark.parametrize(("effective", "owner"), [(1001, 1001), (33, 33), (0, process_table.UNREAD_USER)])
def test_whose_status_is_too_dear_is_a_user_all_the_same(effective: int, owner: int) -> None:
    words = [sys.executable, "-S", "-c", f"import os; os.setresuid(1001, {effective}, {effective}); print(); input()"]
    host, spent = Host("/"), dict[object, float]()
    host.shared("spent on dear status", lambda _: spent)
    with subprocess.Popen(words, stdin=-1, stdout=-1) as other:
        other.stdout.readline()  # type: ignore[union-attr]
        spent |= dict.fromkeys((None, process_table._payer(host, other.pid)), 1.0)
        process = process_table.need_status(host, process_table.Process(other.pid, 1, 1, "postgres", 0))
        other.kill()
    assert not process.has_status
    assert databases.owner_uid(host, process) == owner
    assert process.user is not None
    assert process.user >= FIRST_USER


def test_who_is_called_as_a_child_left_behind_is_not_asked_whose_it_is(read: list[int]) -> None:
    name = f"import ctypes; ctypes.CDLL(None).prctl(15, b'{left_behind.NAME}')\n"
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "MANY_GROUPS", name + MANY_GROUPS)
        with many() as pids:
            assert {Path(f"/proc/{pid}/comm").read_text() for pid in pids} == {f"{left_behind.NAME}\n"}
            assert not left_behind.living() & set(pids)
    assert not set(read) & set(pids)
