"""The spool's promises: atomic, bounded, counted; nothing leaves silently."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hugeplan_agent.errors import SpoolError
from hugeplan_agent.spool import MAX_REJECTED, Spool
from hugeplan_agent.whole_files import replace_file
from tests.factories import add, make_report, make_spool, waiting_ids

NOW = 1_700_000_000_000


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return make_spool(tmp_path / "spool")


def test_reports_come_out_as_they_went_in_oldest_first(spool: Spool) -> None:
    reports = [make_report(), make_report(run=True), make_report()]
    for number, report in enumerate(reports):
        spool.add(report, NOW + number)
    entries = spool.entries()
    assert [json.loads(entry.path.read_bytes()) for entry in entries] == reports
    assert [entry.has_run for entry in entries] == [False, True, False]


def test_nobody_else_may_read_the_spool(spool: Spool) -> None:
    entry = add(spool, NOW)
    assert stat.S_IMODE(entry.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(spool.pending.stat().st_mode) == 0o700


def test_it_survives_a_new_process(spool: Spool) -> None:
    entry = add(spool, NOW)
    assert waiting_ids(make_spool(spool.folder)) == [entry.report_id]


def test_too_many_bytes_drop_the_oldest_samples_first_and_count_them(tmp_path: Path) -> None:
    spool = make_spool(tmp_path, max_bytes=10_000)
    run = add(spool, NOW, 3000, run=True)
    first, second = add(spool, NOW + 1, 3000), add(spool, NOW + 2, 3000)
    third = add(spool, NOW + 3, 3000)
    assert waiting_ids(spool) == [run.report_id, second.report_id, third.report_id]
    assert first.report_id not in waiting_ids(spool)
    assert spool.summary()["dropped_size"] == 1
    last = add(spool, NOW + 4, 9000)
    assert waiting_ids(spool) == [last.report_id], "at last the run gives way too, but the newest report never does"
    assert spool.summary()["dropped_size"] == 4


@pytest.fixture
def let_pass(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A function that lets seconds pass for whatever asks the time that does not jump."""
    passed, monotonic = [0.0], time.monotonic
    monkeypatch.setattr("time.monotonic", lambda: monotonic() + sum(passed))
    return passed.append


def test_too_old_reports_are_dropped_and_counted(tmp_path: Path, let_pass: Callable[[float], None]) -> None:
    spool = make_spool(tmp_path, max_age_seconds=60)
    add(spool, NOW)
    let_pass(50)
    kept = add(spool, NOW + 50_000)
    let_pass(11)
    newest = add(spool, NOW + 61_000)
    assert waiting_ids(spool) == [kept.report_id, newest.report_id]
    assert spool.summary()["dropped_age"] == 1


def test_a_clock_that_jumps_drops_nothing(tmp_path: Path) -> None:
    """One sample with a clock ten days ahead, or NTP after a boot in 2020, dropped all of an outage."""
    year = 365 * 86_400_000
    spool = make_spool(tmp_path, max_age_seconds=60)
    made = [add(spool, when).report_id for when in (NOW - 6 * year, NOW, NOW + year, NOW + 1)]
    made.append(add(make_spool(tmp_path, max_age_seconds=60), NOW + 2 * year).report_id)
    assert set(waiting_ids(spool)) == set(made)
    assert spool.summary()["dropped_age"] == 0


def test_counters_survive_and_a_damaged_file_of_them_does_not_stop_the_agent(
    tmp_path: Path, let_pass: Callable[[float], None]
) -> None:
    spool = make_spool(tmp_path, max_age_seconds=60)
    add(spool, NOW)
    let_pass(61)
    add(spool, NOW + 61_000)
    assert make_spool(tmp_path).summary()["dropped_age"] == 1
    (tmp_path / "counters.json").write_text("{broken")
    assert make_spool(tmp_path).summary()["dropped_age"] == 0


def test_a_refused_report_is_kept_with_the_servers_words(spool: Spool) -> None:
    entry = add(spool, NOW)
    data = entry.path.read_bytes()
    spool.reject(entry, {"title": "Invalid report", "status": 422})
    assert waiting_ids(spool) == []
    assert (spool.rejected / entry.path.name).read_bytes() == data
    words = json.loads((spool.rejected / entry.path.name).with_suffix(".problem.json").read_text())
    assert words == {"title": "Invalid report", "status": 422}
    assert spool.summary()["rejected"] == 1


def test_a_servers_words_take_no_more_room_than_on_the_way(spool: Spool) -> None:
    """Brackets in brackets became 250 MB of blanks, which pushed the report out with them."""
    problem = json.loads('{"a":' + "[" * 900 + ",".join("0" * 100_000) + "]" * 900 + "}")
    entry = add(spool, NOW)
    spool.reject(entry, problem)
    (words,) = spool.rejected.glob("*.problem.json")
    assert words.stat().st_size < 400_000
    assert json.loads(words.read_text()) == problem
    assert spool.summary()["rejected"] == 1


def test_refused_reports_are_bounded_and_counted(spool: Spool) -> None:
    entries = [add(spool, NOW + number) for number in range(MAX_REJECTED + 2)]
    for entry in entries:
        spool.reject(entry, {})
    assert spool.summary()["rejected"] == MAX_REJECTED
    assert spool.summary()["dropped_rejected"] == 2
    assert not (spool.rejected / entries[0].path.name).exists()
    assert (spool.rejected / entries[-1].path.name).exists()
    assert len(list(spool.rejected.iterdir())) == 2 * MAX_REJECTED


def test_refused_reports_are_bounded_in_bytes_and_the_newest_stay(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hugeplan_agent.spool.MAX_REJECTED_BYTES", 30_000, raising=False)
    entries = [add(spool, NOW + number, 9_000) for number in range(6)]
    for entry in entries:
        spool.reject(entry, {"detail": "x" * 500})
    assert [(spool.rejected / entry.path.name).exists() for entry in entries] == [False] * 3 + [True] * 3
    assert len(list(spool.rejected.iterdir())) == 6
    assert spool.summary()["dropped_rejected"] == 3


def test_other_files_in_the_folder_are_left_alone(spool: Spool) -> None:
    (spool.pending / "notes.txt").write_text("mine")
    (spool.pending / "0000000000001-not-a-report.json").write_text("{}")
    assert spool.entries() == []
    assert (spool.pending / "notes.txt").exists()


def test_half_written_files_of_a_dead_process_go_and_those_of_a_live_one_stay(spool: Spool) -> None:
    # This process's id, as each agent of a container has the id of the one before; and the names of former releases.
    dead = [spool.pending / name for name in (f".x.json.{os.getpid()}.tmp", ".token.1.tmp", ".y.json.a1b2c3d4.tmp")]
    live = spool.pending / ".z.json.00000000.tmp"
    for path in (*dead, live):
        path.write_text("{")
    with live.open() as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        spool.remove_leftovers()
        assert not any(path.exists() for path in dead)
        assert live.exists()
    spool.remove_leftovers()
    assert not live.exists()


def test_a_file_that_is_written_is_not_taken_for_a_leftover(spool: Spool) -> None:
    done = threading.Event()

    def clean() -> None:
        while not done.is_set():
            spool.remove_leftovers()

    cleaner = threading.Thread(target=clean)
    cleaner.start()
    try:
        for number in range(500):
            replace_file(spool.folder / "kept.json", str(number).encode())
            assert (spool.folder / "kept.json").read_bytes() == str(number).encode()
    finally:
        done.set()
        cleaner.join()
    assert list(spool.folder.rglob(".*.tmp")) == []


def test_only_one_process_sends_at_a_time(spool: Spool) -> None:
    with spool.sending() as first, make_spool(spool.folder).sending() as second:
        assert (first, second) == (True, False)
    with spool.sending() as again:
        assert again


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match=r"the spool folder .*/file/spool cannot be used: Not a directory"):
        make_spool(tmp_path / "file" / "spool")


class TestFullDisk:
    """On a real file system of 256 KiB, made for the test."""

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, check=False
        )
        if mounted.returncode != 0:
            pytest.skip(f"a small tmpfs cannot be mounted here: {mounted.stderr.decode().strip()}")
        yield disk
        subprocess.run(["umount", str(disk)], check=True)

    def test_the_oldest_give_way_and_are_counted(self, small_disk: Path) -> None:
        spool = make_spool(small_disk / "spool")
        entries = [add(spool, NOW + number, 50_000) for number in range(8)]
        waiting = waiting_ids(spool)
        assert waiting[-1] == entries[-1].report_id
        assert len(waiting) < 8
        assert spool.summary()["dropped_disk_full"] == 8 - len(waiting)
        assert waiting == [entry.report_id for entry in entries[-len(waiting) :]], "the oldest went"

    def test_a_report_that_never_fits_is_an_error_and_leaves_no_debris(self, small_disk: Path) -> None:
        spool = make_spool(small_disk / "spool")
        with pytest.raises(SpoolError, match="No space left on device"):
            add(spool, NOW, 500_000)
        assert list(spool.pending.iterdir()) == []


def test_a_lock_that_the_folders_owner_takes_first_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, strangers, most = os.open, list[int](), 3

    def seen(path: Path, flags: int, *mode: int) -> int:
        made = opened(path, flags, *mode)
        if flags & os.O_EXCL and len(strangers) < most:  # as an inotify of the owner's
            strangers.append(opened(path, os.O_RDONLY))
            fcntl.flock(strangers[-1], fcntl.LOCK_EX)
        return made

    monkeypatch.setattr(os, "open", seen)
    replace_file(tmp_path / "token", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
    most = 1000
    with pytest.raises(OSError, match="somebody locks each new file beside token"):
        replace_file(tmp_path / "token", b"newer")
    assert (tmp_path / "token").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
    for one in strangers:
        os.close(one)
