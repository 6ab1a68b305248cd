"""Whatever ends a trial, nothing of it is left: programs, folder, pages. The trials here are real processes."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import random
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import pytest
from conftest import REPOSITORY
from hugeplan_agent import apart
from hugeplan_agent.errors import CollectError
from hugeplan_agent.host import Host
from support.folders import folder_for_all
from support.stuck import stuck_names

from hugeplan.measuring import mariadb_server, postgresql_server
from hugeplan.measuring import workplace as workplace_module
from hugeplan.measuring.postgresql_server import ServerError, find_programs
from hugeplan.measuring.user_programs import created, text_of, version_said
from hugeplan.measuring.workplace import end_programs, programs_of, remove_leftovers, workplace
from hugeplan.unprivileged import require_own
from validate.data_folder import data_folder

PROGRAM = "import time; x = bytearray(24 << 20); time.sleep(float('{}'))"
SHORT = Path("/var/tmp")  # noqa: S108 - a socket's path has at most 107 bytes, and the server's user enters it
JOURNAL = Path("/run/tlbbench/journal")
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")


def command(tmp_path: Path, *more: str, seconds: float = 0.05, minutes: float = 0.06) -> list[str]:
    program = f'{sys.executable} -S -c "{PROGRAM.format(seconds)}"'
    places = ("--work-dir", str(tmp_path / "work"), "--output", str(tmp_path / "out"))
    own = ("--priority", "normal", "--minutes", str(minutes), *places, *more)
    return [sys.executable, "-m", "hugeplan.cli", "trial", "command", "--base", program, *own]


GENEROUS_SECONDS = 240.0
"""A limit of what never happens, no measure of how long it takes: beside a load of 20 a start alone takes ten."""


def wait_until(condition: Callable[[], bool], seconds: float = GENEROUS_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def in_folder(place: Path) -> dict[str, Any]:
    """How a program of the server's user starts in its folder: of root's none is known by where it works."""
    place.mkdir(parents=True)
    if os.geteuid() != 0:
        return {"cwd": place}
    os.chown(place, 65534, 65534)
    return {"cwd": place, "user": 65534}


def folders(work: Path) -> list[Path]:
    return list(work.glob("trial-*"))


def is_clean(work: Path) -> bool:
    return not work.exists()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a trial and waits until a program of it runs; whatever a failed test leaves is ended."""
    processes: list[subprocess.Popen[str]] = []

    def start(*more: str) -> subprocess.Popen[str]:
        words = command(tmp_path, *more, seconds=30, minutes=5)
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        wait_until(lambda: any(programs_of(folder) for folder in folders(tmp_path / "work")))
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_trial_of_a_command_writes_a_document_of_the_published_schema(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, "--json", "--runs", "1"),
        capture_output=True,
        text=True,
        check=False,
        timeout=GENEROUS_SECONDS,
    )
    assert done.returncode in {0, 3}, done.stderr
    document = json.loads(done.stdout)
    published = (REPOSITORY / "docs" / "trial.schema.json").read_text(encoding="utf-8")
    jsonschema.validate(document, json.loads(published))
    assert document == json.loads((tmp_path / "out" / "trial.json").read_text(encoding="utf-8"))
    assert (tmp_path / "out" / "trial.svg").read_text(encoding="utf-8").startswith("<svg")
    assert [size["page_size"] for size in document["page_sizes"]] == ["equal", "thp"]
    assert document["machine"]["kernel"] == os.uname().release
    assert is_clean(tmp_path / "work")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_nothing(number: int, started: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = started()
    folder = folders(tmp_path / "work")[0]
    process.send_signal(number)
    said = process.communicate(timeout=GENEROUS_SECONDS)[1]
    # With no block of any page size there is nothing to write, only to give back.
    assert "written: " not in said
    assert not (tmp_path / "out").exists()
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    wait_until(lambda: is_clean(tmp_path / "work"))
    assert programs_of(folder) == []


def journal() -> str | None:
    """What is raised and by how much; None where nobody holds pages."""
    try:
        return JOURNAL.read_text(encoding="ascii")
    except OSError:
        return None


def has_journal(pid: int) -> bool:
    try:
        return any(link.readlink() == JOURNAL for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


KILLS = int(os.environ.get("HUGEPLAN_TRIAL_KILLS", "4"))
"""HUGEPLAN_TRIAL_KILLS=20 for the bar of issue 26: of each of the two kinds of trial below."""


@pytest.mark.parametrize("kind", ["command", "postgresql"])
def test_killed_at_random_moments_leaves_nothing(kind: str, tmp_path: Path) -> None:
    """Also while it starts, loads its data, holds huge pages and cleans up: programs, folder, pages, journal."""
    work = SHORT / f"hugeplan-{tmp_path.name}" if kind == "postgresql" else tmp_path / "work"
    words = command(tmp_path, seconds=0.2, minutes=1)
    if kind == "postgresql":
        try:
            programs = find_programs(None)
        except ServerError as problem:
            pytest.skip(str(problem))
        sizes = "2M,4K" if os.geteuid() == 0 and POOL.exists() else "4K"
        own = f"--data-gib 0.02 --clients 2 --row-bytes 100 --minutes 1 --page-sizes {sizes} --priority normal"
        own += f" --bin-dir {programs}"
        words = [*words[:4], "postgresql", *own.split(), "--work-dir", str(work), "--output", str(tmp_path / "out")]
    draw, reached, longest = random.Random(5), list[str](), 0.0
    for kill in range(KILLS):
        with (tmp_path / "said").open("w+", encoding="utf-8") as said:
            process, began = subprocess.Popen(words, stdout=said, stderr=said, cwd=tmp_path), time.monotonic()
            if kill == 0:  # when its programs run; how long that takes here bounds the moments of the others
                wait_until(lambda: any(programs_of(folder) for folder in folders(work)))
                longest = 2.0 * (time.monotonic() - began)
            else:
                time.sleep(draw.uniform(0.0, longest))  # the moment is what is tested; nothing is waited for
            before = folders(work)
            held = journal() if has_journal(process.pid) else None
            reached += ["pages held"] if held and "held=" in held else []
            reached += ["programs"] if any(programs_of(folder) for folder in before) else []
            process.kill()
            process.wait()
            left = folders(work)
            wait_until(lambda: is_clean(work))
        assert all(programs_of(folder) == [] for folder in left)
        wait_until(lambda held=held: held is None or journal() != held)
    assert "programs" in reached
    print(f"{kind}: {KILLS} kills, reached {Counter(reached)}")


def test_the_next_trial_removes_what_a_killed_guard_left(tmp_path: Path) -> None:
    """Trial and guard killed at once: nobody is left to clean, until the next one starts."""
    script = (
        "import sys, time, subprocess, pathlib\n"
        "from hugeplan.measuring.workplace import workplace\n"
        "with workplace(pathlib.Path(sys.argv[1])) as folder:\n"
        "    (folder / 'server').mkdir()\n"
        "    subprocess.Popen(['sleep', '300'], cwd=folder / 'server', start_new_session=True, stdout=-3)\n"
        "    print(folder, flush=True)\n"
        "    time.sleep(300)\n"
    )
    work = tmp_path / "work"
    trial = subprocess.Popen([sys.executable, "-c", script, str(work)], stdout=subprocess.PIPE, text=True)
    assert trial.stdout is not None
    folder = Path(trial.stdout.readline().strip())
    children = Path(f"/proc/{trial.pid}/task/{trial.pid}/children").read_text(encoding="ascii").split()
    own = Path(f"/proc/{trial.pid}/cmdline").read_bytes()
    guard = next(int(pid) for pid in children if Path(f"/proc/{pid}/cmdline").read_bytes() == own)
    os.kill(guard, signal.SIGKILL)
    trial.kill()
    trial.communicate()
    assert programs_of(folder), "the program runs on, and nobody ends it yet"
    said: list[str] = []
    with workplace(work, said.append) as other:
        assert other != folder
        assert not folder.exists()
        assert programs_of(folder) == []
    assert "that trial was killed" in said[0]
    assert is_clean(work)


def test_a_process_that_does_not_answer_holds_nobody_up_who_looks_for_a_trials_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment waits for its memory."""
    names = stuck_names(tmp_path, monkeypatch)
    with (
        subprocess.Popen(["/bin/sleep", "300"], cwd="/") as stuck,
        subprocess.Popen(["/bin/sleep", "300"], **in_folder(tmp_path / "trial/server")) as program,
    ):
        names.add(f"proc/{stuck.pid}/environ")
        assert programs_of(tmp_path / "trial") == [program.pid]
        for process in (stuck, program):
            process.kill()


@pytest.mark.parametrize("how", ["no memory", "killed", "stuck"])
def test_a_folder_is_kept_while_it_is_unknown_what_runs_in_it(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without its folder the next trial would not find a server that holds huge pages."""
    fork, read = apart.Apart._fork, Host.read_optional
    monkeypatch.setattr("hugeplan.measuring.workplace._END_SECONDS", 1.0)
    monkeypatch.setattr(apart, "LOOK_POLLS", 3)
    os.mkfifo(tmp_path / "nobody writes")

    def fails(self: apart.Apart) -> apart._Child:
        if how == "no memory":
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        child = fork(self)
        os.kill(child.pid, signal.SIGKILL)
        return child

    def waits(self: Host, name: str) -> str | None:
        if name == f"proc/{program.pid}/environ":
            with suppress(OSError), self.look(name):
                os.open(tmp_path / "nobody writes", os.O_RDONLY)
            return None
        return read(self, name)

    with monkeypatch.context() as short:
        with workplace(tmp_path / "work") as folder:
            (folder / "server").mkdir()
            place = "/" if how == "stuck" else folder / "server"
            program = subprocess.Popen(["/bin/sleep", "300"], cwd=place, start_new_session=True)
            if how == "stuck":
                short.setattr(Host, "read_optional", waits)
            else:
                short.setattr(apart.Apart, "_fork", fails)
        assert program.poll() is None
        assert folder.exists()
        assert f"{folder} is kept" in capfd.readouterr().err
    remove_leftovers(tmp_path / "work")
    assert program.wait() == -signal.SIGKILL
    assert is_clean(tmp_path / "work")


def test_who_lets_looks_last_long_keeps_no_program_from_its_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time was over when the first look was, and no signal had been sent."""
    names = stuck_names(tmp_path, monkeypatch)
    monkeypatch.setattr(workplace_module, "_END_SECONDS", 0.2)
    words = ["/bin/sleep", "300"]
    with workplace(tmp_path / "work") as folder:
        (folder / "server").mkdir()
        programs = [subprocess.Popen(words, cwd=place) for place in (folder / "server", "/")]
        stuck = subprocess.Popen(words, cwd="/", env={})
        names.add(f"proc/{stuck.pid}/environ")
    codes = [process.poll() for process in (*programs, stuck)]
    for process in (*programs, stuck):
        process.kill()
        process.wait()
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, None]


def test_what_a_servers_user_writes_without_end_is_not_kept(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nhead -c 30000000 /dev/zero\necho the last\n")
    program.chmod(0o755)
    said = version_said(program, "")
    assert said.endswith("the last\n")
    assert len(said) <= 1 << 16


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root may end another user's processes")
def test_who_works_in_the_folder_or_carries_its_name_is_not_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can enter the folder and set the variable, also before a set-uid program such as sudo. None is looked
    at: their answers come late, and meanwhile a process id may become somebody else's."""
    names = stuck_names(tmp_path, monkeypatch)
    began = time.monotonic()
    with workplace(tmp_path / "work") as folder:
        server = folder / "server"
        server.mkdir()
        words, env = ["/bin/sleep", "300"], os.environ | {"HUGEPLAN_TRIAL": folder.name}
        others = [
            subprocess.Popen(words, cwd=folder, env=env, user=65534),
            subprocess.Popen(words, cwd=server, env=os.environ, user=65534),
            subprocess.Popen(words, cwd=folder, env=env),  # sudo, while it asks for the password
        ]
        names.add(f"proc/{others[0].pid}/environ")
        ours = [subprocess.Popen(words, cwd="/"), subprocess.Popen(words, cwd=server)]
        os.chown(server, 101, 101)
        ours.append(subprocess.Popen(words, cwd=server, user=101))  # the server's user's
    assert [process.wait() for process in ours] == [-signal.SIGKILL] * 3
    assert [process.poll() for process in others] == [None] * 3
    assert is_clean(tmp_path / "work")
    assert time.monotonic() - began < workplace_module._END_SECONDS, "nobody waited for them"
    for process in others:
        process.kill()
        process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root becomes somebody else")
def test_a_program_that_becomes_another_user_is_ended_with_its_trial(tmp_path: Path) -> None:
    """Its session is the trial's, and so is a child of a program, which has one of its own."""
    code = "import os, time; os.setuid(65534); os.fork() or os.setsid(); time.sleep(300)"
    words = command(tmp_path, minutes=5)
    words[words.index("--base") + 1] = shlex.join([sys.executable, "-S", "-c", code])
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    work, pids = tmp_path / "work", list[int]()

    def are_there() -> bool:
        nonlocal pids
        pids = [pid for folder in folders(work) for pid in programs_of(folder)]
        return [Path(f"/proc/{pid}").stat().st_uid for pid in pids] == [65534] * 2

    wait_until(are_there)
    process.kill()
    process.wait()
    wait_until(lambda: is_clean(work))
    for pid in pids:
        with suppress(FileNotFoundError):  # a zombie where nobody waits for orphans
            assert Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


def test_no_signal_goes_to_a_process_that_has_the_id_of_another_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its start time, which /proc tells here as another one at each look."""
    monkeypatch.setattr(workplace_module, "_END_SECONDS", 1.0)
    read, looks = Host.read_record, itertools.count(1 << 40)

    def changes(self: Host, name: str, *size: int) -> str | None:
        text = read(self, name, *size)
        if text is None or name != f"proc/{program.pid}/stat":
            return text
        head, _, rest = text.rpartition(") ")
        fields = rest.split()
        return f"{head}) " + " ".join([*fields[:19], str(next(looks) + (os.getpid() << 20)), *fields[20:]])

    monkeypatch.setattr(Host, "read_record", changes)
    with subprocess.Popen(["/bin/sleep", "300"], **in_folder(tmp_path / "server")) as program:
        with pytest.raises(CollectError, match=f"processes .{program.pid}. do not end"):
            end_programs(tmp_path)
        assert program.poll() is None
        monkeypatch.undo()
        end_programs(tmp_path)
        assert program.wait() == -signal.SIGKILL


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_without_handles_of_processes_they_are_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Linux 4.18 has none, and a container may forbid them."""

    def fails(_: int) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pidfd_open", fails)
    with subprocess.Popen(["/bin/sleep", "300"], **in_folder(tmp_path / "server")) as program:
        end_programs(tmp_path)
        assert program.wait() == -signal.SIGKILL


def test_what_ran_before_the_trial_is_not_looked_at(tmp_path: Path) -> None:
    """A process that answers nothing, of the same user, would keep every folder."""
    words, how = ["/bin/sleep", "20"], in_folder(tmp_path / "server")
    with subprocess.Popen(words, **how) as before:
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        wait_until(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) > began + 0.02)  # two ticks, by which /proc counts
        assert programs_of(tmp_path) == [before.pid]
        with workplace(tmp_path / "work"):
            (tmp_path / "lock").write_bytes(next((tmp_path / "work").glob("*/lock")).read_bytes())
            with subprocess.Popen(words, **how) as program:
                found = programs_of(tmp_path)
                program.kill()
        before.kill()
    assert found == [program.pid]


@pytest.mark.parametrize("how", ["made", "open", "link", "link above", "open above"])
def test_no_trial_works_where_another_user_may_change_its_folder(tmp_path: Path, how: str) -> None:
    """A default folder that somebody else made: root gave what its links named to the server's user."""
    above = tmp_path / "above"
    above.mkdir()
    work = above / "work"
    (tmp_path / "target/work").mkdir(parents=True)
    if how == "link above":
        above.rmdir()
        above.symlink_to(tmp_path / "target")
    elif how == "link":
        work.symlink_to(tmp_path / "target/work")
    else:
        work.mkdir()
    if how in ("made", "link", "link above"):
        if os.geteuid() != 0:
            pytest.skip("giving a folder to another user needs root")
        require_own(work)  # also through a link of our own
        os.chown(above if how == "link above" else work, 65534, 65534, follow_symlinks=False)
    elif how.startswith("open"):
        (above if how == "open above" else work).chmod(0o777)
    with pytest.raises(PermissionError, match="can be changed by another user"), workplace(work):
        raise AssertionError("the trial began")
    with pytest.raises(ServerError, match=r"can be changed by another user\. Remove it\."):
        data_folder("32-bytes", work)  # of `make validate`
    assert not list(work.iterdir())
    (work / "trial-x").symlink_to(tmp_path)  # where root made a file, when this came after the folder was looked for
    before = sorted(tmp_path.iterdir())
    with pytest.raises(PermissionError, match="can be changed by another user"):
        remove_leftovers(work)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: others may put links only in root's way")
@pytest.mark.parametrize(("group", "mode"), [(65534, 0o2775), (0, 0o777)])
def test_root_measures_nothing_that_it_may_not_write(tmp_path: Path, group: int, mode: int) -> None:
    """The agent's question is the same as the trial's for its own folder, and comes before minutes of measuring."""
    out = tmp_path / "out"
    out.mkdir()
    os.chown(out, 0, group)
    out.chmod(mode)
    with pytest.raises(PermissionError, match="can be changed by another user"):
        require_own(out)
    words = command(tmp_path, "--work-dir", str(out))  # which it would refuse as well, later
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(rf"--output {out} ?.*\(group {group}, mode \S+\) can be changed by others than root", done.stderr)
    assert not list(out.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: others may put links only in root's way")
def test_root_makes_nothing_through_a_link_that_comes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    with folder_for_all() as place:
        place.chmod(0o1777)
        (place / "root").mkdir()
        mkdir = Path.mkdir

        def late(path: Path, *arguments: Any, **words: Any) -> None:
            if not (place / "a").is_symlink():
                (place / "a").symlink_to("root")
                os.chown(place / "a", 65534, 65534, follow_symlinks=False)
            mkdir(path, *arguments, **words)

        monkeypatch.setattr(Path, "mkdir", late)
        with pytest.raises(PermissionError, match="can be changed by another user"), workplace(place / "a/work"):
            raise AssertionError("the trial began")
        assert not list((place / "root").iterdir())
        monkeypatch.undo()
        (place / "round").symlink_to("round")
        with pytest.raises(OSError, match="symbolic links"), workplace(place / "round"):
            raise AssertionError("the trial began")
        with workplace(place / "b/work") as work:
            assert work.parent.stat().st_uid == 0


def test_a_folder_at_work_is_not_touched(tmp_path: Path) -> None:
    with workplace(tmp_path / "work") as one, workplace(tmp_path / "work") as other:
        assert one.exists()
        assert one != other
    assert is_clean(tmp_path / "work")


def test_pages_come_back_after_a_kill(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not POOL.exists():
        pytest.skip("reserving 2M huge pages needs root and a kernel that has them")
    process = subprocess.Popen(
        command(tmp_path, "--page-sizes", "2M", "--pages", "3", seconds=1.5, minutes=5),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    own = f"held={int(POOL.read_text()) + 3}."
    try:
        # Where another program changes the pool, this never happens: no reason to wait as long as for what must.
        wait_until(lambda: process.poll() is not None or (JOURNAL.exists() and own in JOURNAL.read_text()), 60.0)
    except AssertionError:
        process.kill()
        process.communicate()
        pytest.skip("another program changed the pool meanwhile")
    process.kill()
    _, said = process.communicate()
    wait_until(lambda: is_clean(tmp_path / "work"))
    assert not JOURNAL.exists() or own not in JOURNAL.read_text(), said

    kept = tmp_path / "kept"
    kept.write_text("root's")
    folder = tmp_path / "server"
    folder.mkdir()
    for name, target in (("log", kept), ("absent", tmp_path / "made")):
        (folder / name).symlink_to(target)
        with created(folder / name) as file:
            file.write(b"ours")
        assert not (folder / name).is_symlink()
        assert (folder / name).read_bytes() == b"ours"
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, "a user's schema is nobody else's to read"
    assert kept.read_text() == "root's"
    assert not (tmp_path / "made").exists()


def test_root_reads_no_link_and_waits_at_no_fifo(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("FATAL: no memory")
    assert text_of(tmp_path / "log") == "FATAL: no memory"
    (tmp_path / "link").symlink_to(tmp_path / "log")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "absent"):
        with pytest.raises(OSError, match=r"symbolic links|not a regular file|No such file"):
            text_of(tmp_path / name)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        with (tmp_path / "log").open("r+b") as leased:
            fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            with pytest.raises(BlockingIOError):  # not in 45 s
                text_of(tmp_path / "log")
    finally:
        signal.signal(signal.SIGIO, before)


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIP: only root becomes somebody else")
@pytest.mark.parametrize(
    ("name", "said", "asked", "release"),
    [
        ("postgres", "postgres (PostgreSQL) 16.1", lambda p: postgresql_server.release_of(p.parent), "16.1"),
        ("mariadbd", "Ver 11.4.2-MariaDB", mariadb_server.release_of, "11.4.2"),
    ],
)
def test_no_program_of_a_server_runs_as_root(
    name: str, said: str, asked: Callable[[Path], str], release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--bin-dir may name a folder of anybody: it gets no terminal to type into, and no secret."""
    monkeypatch.setenv("A_SECRET", "of who measures")
    with tempfile.TemporaryDirectory(dir=SHORT) as folder:
        Path(folder).chmod(0o755)
        program = Path(folder, name)
        program.write_text(
            f'#!/bin/sh\ncase " $(id -u) $(id -G) " in *" 0 "*) exit 1;; esac\n'
            f'test -z "$A_SECRET" || exit 1\ntest "$(readlink /proc/$$/fd/0)" = /dev/null || exit 1\necho "{said}"\n'
        )
        program.chmod(0o755)
        assert asked(program) == release


def test_an_interrupt_at_the_fork_of_the_guard_is_not_lost(tmp_path: Path) -> None:
    """Python prints and drops what a handler raises in a hook at a fork, of which logging has one."""
    code = (
        "import os, signal, sys; from pathlib import Path; from hugeplan.measuring.workplace import workplace\n"
        "is_guard = lambda: sys._getframe(2).f_code.co_name == '_guarded'\n"
        "os.register_at_fork(before=lambda: is_guard() and os.kill(os.getpid(), signal.SIGINT))\n"
        "try:\n  with workplace(Path(sys.argv[1])): print('went on')\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "work")]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")
    assert list(tmp_path.glob("work/*")) == []
