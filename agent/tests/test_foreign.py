"""What a user of the node may write costs little per observation, and leaves what others' servers say as it was."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hugeplan_agent.collectors import collect_all, foreign, servers, simple_yaml
from hugeplan_agent.collectors.engines import base, mysql, oracle, postgresql
from hugeplan_agent.host import Host

MIB = 1024**2
Machine = Callable[[str], Host]
MARIADB = b"\00010.11.19-MariaDB\0"
LOCAL, SYSTEM = 1001, 27
NEGLIGIBLE_SECONDS = 0.01
MOST_GROWTH = 8.0
"""Four times the text: a linear reading takes four times as long, a quadratic one sixteen times."""


@pytest.fixture
def host(machine: Machine) -> Host:
    return machine("kubernetes-v2")


@pytest.fixture(autouse=True)
def next_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute passes between observations: half of them read again what was left."""
    now = [time.monotonic()]

    def later() -> float:
        return now[0]

    def begin(self: Host) -> None:
        now[0] += 60.0
        self._observation.clear()

    monkeypatch.setattr(time, "monotonic", later)
    monkeypatch.setattr(Host, "begin", begin)


def server(host: Host, pid: int, user: int, *, program: str = "mariadbd", arguments: str = "") -> Path:
    """One more server of a user; its folder in /proc."""
    model, place = host.path("proc/2201"), host.path(f"proc/{pid}")
    place.mkdir()
    stat = (model / "stat").read_text().replace("2201 (mysqld)", f"{pid} ({program})", 1)
    (place / "stat").write_text(stat)
    (place / "status").write_text(f"Name:\t{program}\nUid:\t{user}\t{user}\t{user}\t{user}\n")
    (place / "cmdline").write_text("\0".join([f"/usr/sbin/{program}", *arguments.split()]) + "\0")
    (place / "environ").write_text("")
    (place / "root").mkdir()
    (place / "cwd").symlink_to("/var/lib/mysql")
    return place


def program(host: Host, place: Path, content: bytes, hole_bytes: int = 0) -> Path:
    """What runs: a file that begins with a hole, which is read like any other bytes."""
    file = host.path(f"programs/{place.name}")
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as opened:
        opened.seek(hole_bytes)
        opened.write(content)
    (place / "exe").symlink_to(file)
    return file


def observe(host: Host) -> dict[int, dict[str, Any]]:
    """The servers of the next observation by their process."""
    host.begin()
    return {one["main_pid"]: one for one in collect_all(host).sample["databases"]}


def left(host: Host) -> foreign.Foreign:
    """The room that the newest observation left."""
    return foreign.foreign(host)


def test_a_large_program_is_searched_in_parts_and_once(host: Host) -> None:
    size = 2 * foreign.PROGRAM_BYTES + foreign.PROGRAM_BYTES // 2
    program(host, server(host, 26001, SYSTEM), MARIADB, size)
    program(host, server(host, 26002, SYSTEM), MARIADB, size)
    found = []
    for _ in range(6):
        versions = [one["version"] for pid, one in sorted(observe(host).items()) if pid > 26000]
        found.append(versions)
        # The last piece may be more than what was left.
        assert min(left(host).programs.values()) > -MIB
    assert found[0] == [None, None]
    assert found[-1] == ["10.11.19", "10.11.19"]
    observe(host)
    assert set(left(host).programs.values()) == {foreign.PROGRAM_BYTES}, "nothing is read again"


def test_a_local_users_programs_leave_the_room_of_roots(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    room = foreign.Foreign()
    assert set(room.programs) == {True, False}
    # Whoever runs this owns all of these files: one that is root's is told by its owner.
    for pid in range(26001, 26011):
        program(host, server(host, pid, LOCAL), b"x", 40 * MIB)
    begun = time.thread_time()
    observe(host)
    many = time.thread_time() - begun
    read = sum(foreign.PROGRAM_BYTES - count for count in left(host).programs.values())
    assert foreign.PROGRAM_BYTES <= read < foreign.PROGRAM_BYTES + MIB
    monkeypatch.setattr(foreign, "PROGRAM_BYTES", 10 * foreign.PROGRAM_BYTES)
    again = Host(host.root)
    begun = time.thread_time()
    observe(again)
    assert many < time.thread_time() - begun, "what is bounded costs less than what is not"


def test_a_program_that_was_written_to_is_another_one(host: Host) -> None:
    file = program(host, server(host, 26001, SYSTEM), MARIADB)
    assert observe(host)[26001]["version"] == "10.11.19"
    file.write_bytes(MARIADB.replace(b"10.11.19", b"11.4.2") + b"longer")
    for _ in range(11):  # settings are read again after ten minutes
        found = observe(host)[26001]["version"]
    assert found == "11.4.2"


def test_the_constant_is_found_across_two_pieces(host: Host) -> None:
    for before in range(MIB - len(MARIADB) - 1, MIB + 2):
        place = server(host, 30_000 + before, SYSTEM)
        program(host, place, b"x-MariaDB" + MARIADB, before)
    observe(host)  # so many are more than one observation's
    found = observe(host)
    assert {one["version"] for pid, one in found.items() if pid > 30_000} == {"10.11.19"}


def test_marks_without_a_version_cost_little(host: Host) -> None:
    file = program(host, server(host, 26001, LOCAL), b"-MariaDB" * (2 * MIB))
    pattern_only = re.compile(rb"\0(1\d\.\d{1,2}\.\d{1,3})(?:-\d{1,3})?-MariaDB[^\0]{0,64}\0")
    assert pattern_only.search(file.read_bytes()) is None
    assert observe(host)[26001]["version"] is None


def test_a_users_option_files_are_read_within_a_share_and_others_all_the_same(host: Host) -> None:
    line = b"[mysqld]\nkey_buffer_size=1M\n" + b"# " + b"x" * 1000 + b"\n"
    for pid in range(26001, 26011):
        place = server(host, pid, LOCAL, arguments=f"--defaults-file=/home/{pid}/my.cnf")
        folder = place / "root/home" / str(pid)
        (folder / "d").mkdir(parents=True)
        (folder / "my.cnf").write_bytes(f"!includedir /home/{pid}/d\n".encode())
        for number in range(20):
            (folder / "d" / f"{number}.cnf").write_bytes(line * 300)
    good = server(host, 26100, SYSTEM, arguments="--defaults-file=/etc/my.cnf")
    (good / "root/etc").mkdir()
    (good / "root/etc/my.cnf").write_bytes(b"[mysqld]\nkey_buffer_size=3M\n")
    found = observe(host)
    used = left(host).used
    assert used[LOCAL] <= foreign.SHARE_BYTES + MIB
    assert found[26100]["settings"]["key_buffer_size"]["value"] == "3M"
    assert found[26100]["settings_complete"] is True, found[26100]["settings_note"]
    assert any(
        "too much to read in one observation" in (found[pid]["settings_note"] or "") for pid in range(26001, 26011)
    )
    # Those that were read are not read again, so the next ones have their turn.
    assert observe(host)[26010]["settings_complete"] is not None


@pytest.mark.parametrize("name", ["cmdline", "environ", "maps"])
def test_large_entries_of_proc_are_read_within_a_share(host: Host, name: str) -> None:
    text = "7f0000000000-7f0040000000 rw-s 00000000 00:01 1 /dev/zero\n" if name == "maps" else "A=" + "b" * 998 + "\0"
    for pid in range(26001, 26031):
        (server(host, pid, LOCAL) / name).write_text(text * (3 * MIB // len(text)))
    good = server(host, 26100, SYSTEM, arguments="--key-buffer-size=5M")
    found = observe(host)
    assert left(host).used[LOCAL] <= foreign.SHARE_BYTES + 4 * MIB
    assert found[26100]["settings"]["key_buffer_size"]["value"] == "5M"
    assert good.exists()


def test_many_processes_named_like_servers_leave_room_for_real_ones(host: Host) -> None:
    for number in range(servers.MAX_SERVERS + 100):
        server(host, 26001 + number, LOCAL)
    server(host, 29999, SYSTEM, arguments="--key-buffer-size=5M")
    found = observe(host)
    assert len(found) == servers.MAX_SERVERS
    assert found[29999]["settings"]["key_buffer_size"]["value"] == "5M"
    assert 5001 in found, "so is the PostgreSQL that was there"


def test_nothing_is_kept_of_processes_that_have_ended(host: Host) -> None:
    for pid in range(26001, 26051):
        server(host, pid, LOCAL)
    observe(host)
    before = {name: len(host.kept(name)) for name in ("database facts", "database segments")}
    for pid in range(26001, 26051):
        host.path(f"proc/{pid}/stat").unlink()
    observe(host)
    after = {name: len(host.kept(name)) for name in before}
    assert all(after[name] <= before[name] - 50 for name in before)


def test_a_folder_of_very_many_files_is_said_to_be_one(host: Host) -> None:
    place = server(host, 26001, LOCAL, arguments="--defaults-file=/my.cnf")
    (place / "root/my.cnf").write_bytes(b"!includedir /d\n")
    (place / "root/d").mkdir()
    for number in range(5000):
        (place / f"root/d/{number}.cnf").touch()
    assert "more than 4096 entries" in observe(host)[26001]["settings_note"]


def configured(host: Host, text: str) -> Path:
    """A PostgreSQL of a local user with this postgresql.conf, and the user's file system."""
    place = server(host, 26001, LOCAL, program="postgres", arguments="-D /data")
    (place / "root/data").mkdir()
    (place / "root/data/postgresql.conf").write_text(text)
    return place / "root"


def test_folders_that_are_included_again_and_again_are_listed_a_few_times(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = configured(host, "".join(f"include_dir '/d{n}'\n" for n in range(5000)))
    for number in range(5000):
        (root / f"d{number}").mkdir()
    listed: list[str] = []
    names = Host.names_inside

    def noted(self: Host, top: str, path: str) -> list[str]:
        listed.append(path)
        return names(self, top, path)

    monkeypatch.setattr(Host, "names_inside", noted)
    found = observe(host)[26001]
    assert "more configuration files than are read" in found["settings_note"]
    assert len([path for path in listed if path.startswith("/d")]) == base.MAX_FILES - 1  # the file itself is one


def test_long_listings_are_counted_as_what_is_read(host: Host) -> None:
    root = configured(host, "include_dir '/d'\n" * 60)
    (root / "d").mkdir()
    for number in range(4000):
        (root / "d" / f"{number:0100}.txt").touch()
    found = observe(host)[26001]
    assert "too much to read in one observation" in found["settings_note"]
    assert left(host).used[LOCAL] <= foreign.SHARE_BYTES + MIB


def test_what_cannot_be_read_is_said_a_few_times(host: Host) -> None:
    configured(host, "".join(f"include '/{n}'\n" for n in range(60)))
    settings = base.Settings(frozenset())
    for number in range(1000):
        settings.missing(f"file {number}")
        settings.missing("always the same")
    assert len(settings.notes) == base.MAX_NOTES + 1
    assert settings.notes[-1] == "more could not be read"
    assert observe(host)[26001]["settings_complete"] is False


READERS: dict[str, Callable[[str], object]] = {
    "postgresql.conf": postgresql.parse_lines,
    "my.cnf": mysql.option_of,
    "YAML": simple_yaml.parse,
    "YAML's leaves": simple_yaml.leaves,
    "init.ora": oracle.parse_parameters,
    "plain lines": base.plain_lines,
}
LEADS = ("", "a", "a ", "a:", "a = ", "- a", "'", '"', "{", "[")
UNITS = (
    *" \t\n'\"#:=-{}[](),\\.a0",
    "a ",
    "a:",
    "a: ",
    "- ",
    "''",
    "\\'",
    "a\n",
    "a:\n ",
    "a=b\n",
    "- a: b\n",
    "[a]\n",
)


def seconds(read: Callable[[str], object], text: str) -> float:
    """The shortest of some readings: what else the machine does only adds."""
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        read(text)
        best = min(best, time.process_time() - begun)
    return best


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_time_in_proportion_to_its_text(name: str) -> None:
    read = READERS[name]
    for lead in LEADS:
        for unit in UNITS:
            for end in ("", "#", "x", ":x"):
                small, large = (lead + unit * (size // len(unit)) + end for size in (2_000, 8_000))
                if seconds(read, large) < NEGLIGIBLE_SECONDS:
                    continue
                growth = seconds(read, large) / seconds(read, small)
                assert growth < MOST_GROWTH, f"{lead!r} + {unit!r} + {end!r}: {growth:.1f} times"
