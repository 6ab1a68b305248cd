"""A folder for one trial, and a promise: whatever ends the trial, nothing of it is left behind.

The trial holds a lock on its folder. A guard process waits at a pipe whose other end the kernel closes when the trial
is gone, however it ended; it then ends the trial's programs, gives its huge pages back and removes the folder. Where
guard and trial are killed together, the next trial does the same for every folder that nobody holds.

Programs of a trial are found by their working folder or by the variable that names the trial in their environment.
PostgreSQL overwrites its environment, and its processes work in the data folder. Others may put themselves there as
well, or use the ids of processes that end: only who can be of the trial is looked at, and signals go to the process
that was looked at, never to whoever has its id. What lies below the folder is its server's user's word, who may move
folders of its own there with what others have in them: of root's nothing is ended or removed for where it is.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final

from hugeplan_agent.apart import Apart as AgentsChild
from hugeplan_agent.collectors.process_table import read_status
from hugeplan_agent.errors import CollectError
from hugeplan_agent.host import Host
from hugeplan_agent.ownership import users_mounts
from hugeplan_agent.pool_reservation import ReservationError, reservation

from hugeplan.measuring.user_programs import VARIABLE, is_done, text_of
from hugeplan.signals import handled, hold, ignore
from hugeplan.unprivileged import require_own, words_before

DEFAULT_PARENT: Final = Path("/var/tmp/hugeplan-trial")  # noqa: S108 - large, and a fixed name that the next run finds
REMOVING: Final = ("rm", "-rf", "--one-file-system", "--")
_LOCK: Final = "lock"
_SESSIONS: Final = "sessions"
_END_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.05
_MOST_READ_BYTES: Final = 1 << 20


@contextmanager
def workplace(parent: Path = DEFAULT_PARENT, say: Callable[[str], None] = lambda _: None) -> Iterator[Path]:
    """A new folder below ``parent``, guarded; its programs are ended and it is gone when the block ends.

    What killed trials left below ``parent`` is removed first. OSError where it cannot be made or is not ours alone.
    """
    remove_leftovers(parent, say)
    # The server's user, who is not root, reads what is made here, whatever the caller's umask is.
    umask = os.umask(0o022)
    release = hold()
    try:
        folder = _new_folder(parent)
    except OSError:
        os.umask(umask)
        release()
        raise
    lock = _locked(folder)
    name = f"{folder.name}-{secrets.token_hex(8)}"  # anybody can list the folder's own, and give it to their sudo
    if lock is not None:
        ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        os.write(lock, f"{ticks} {name}".encode())
    folder.chmod(0o755)  # the server's user, who is not root, has a folder of its own in it
    with _guarded(folder, parent, release):
        os.environ[VARIABLE] = name
        _be_the_first_to_go()
        try:
            release()
            yield folder
        finally:
            # A second signal must not stop the way back.
            with handled(signal.SIG_IGN):
                os.environ.pop(VARIABLE, None)
                os.umask(umask)
                _clean(folder, parent)
                if lock is not None:
                    os.close(lock)


def _new_folder(parent: Path) -> Path:
    """A folder below ``parent``, which another trial that ends may remove at any moment while it is empty."""
    while True:
        require_own(parent, make=True)
        with suppress(FileNotFoundError):
            return Path(tempfile.mkdtemp(prefix="trial-", dir=parent.resolve()))


def remove_leftovers(parent: Path, say: Callable[[str], None] = lambda _: None) -> None:
    """End and remove what trials left that were killed together with their guards; their pages go back as well.

    PermissionError where the folder is another user's, who would choose what is removed.
    """
    try:
        require_own(parent)
    except FileNotFoundError:
        return
    for folder in parent.resolve().glob("trial-*"):
        lock = _locked(folder)
        if lock is None:
            continue  # at work, or its guard is
        say(f"{folder.name}: that trial was killed; what it left is removed")
        _clean(folder, parent)
        _give_pages_back()
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """The descriptor of the folder's lock, held; None where somebody else has it."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _clean(folder: Path, parent: Path) -> bool:
    """False: a program runs on, or which do is unknown. Then the folder is kept, by which the next trial finds it."""
    try:
        end_programs(folder)
    except CollectError as error:
        os.write(2, f"hugeplan trial: {folder} is kept, the next trial tries again: {error}\n".encode())
        return False
    # A server that was ended may still be removing its own files.
    end = time.monotonic() + _END_SECONDS
    while folder.exists() and time.monotonic() < end:
        with suppress(OSError):  # memory may run short
            remove(folder)
    if folder.exists():
        why = "it holds what its server's user may not remove, a mount, or files in use"
        os.write(2, f"hugeplan trial: {folder} is kept, the next trial tries again: {why}\n".encode())
        return False
    with suppress(OSError):
        parent.rmdir()
    return True


def remove(folder: Path) -> None:
    """What a server's user was given goes with that user's rights alone. Where some of it stays, so does ours. OSError.

    rm follows no link that comes meanwhile, as Python's own does.
    """
    given = list[tuple[int, int, str]]()
    if os.geteuid() == 0:
        try:
            with AgentsChild("/", {"given": partial(_given, folder)}) as child:
                given = child.ask("given")
        except CollectError as error:
            raise OSError(str(error)) from error
    for uid, gid, place in given:
        above, name = os.path.split(place)  # which that user may not reach by its path
        is_done([*words_before(uid, gid, folder=above), *REMOVING, name])
    if not given or is_done(["rmdir", "--", *(place for *_, place in given)]):
        is_done([*REMOVING, str(folder)])


def _given(folder: Path, _: Host) -> list[tuple[int, int, str]]:
    """Owner, group and path of each folder that root gave away, itself or below. Root looks into none of them."""
    found, waiting, device = list[tuple[int, int, str]](), [folder], folder.parent.stat().st_dev
    mounts = users_mounts()
    for path in waiting:
        if path in mounts:
            raise OSError(f"{path} is a mount")  # a look might wait for good
        with suppress(FileNotFoundError):
            at = path.lstat()
            if not stat.S_ISDIR(at.st_mode):
                continue  # an overlay's file may have another device
            if at.st_dev != device:
                raise OSError(f"{path} is a mount")  # its owner is its file system's word
            if at.st_uid == 0:
                waiting += path.iterdir()
            else:
                found.append((at.st_uid, at.st_gid, str(path)))
    return found


def note_session(folder: Path, session: int) -> None:
    """A session that the trial begins is the trial's, whatever users its programs become."""
    with (folder / _SESSIONS).open("a", encoding="ascii") as file:
        file.write(f"{session}\n")


def end_programs(folder: Path) -> None:
    """End every program of the trial: servers in a way in which they free their shared memory, then whatever stays.

    Each that is found has its signal before anything is looked at again, however long others make a look last, and
    those that are known without a look that may wait have it first. CollectError: some run on, or which do is unknown.
    """
    began, asked = time.monotonic(), set[int]()
    with _looking(folder) as child:
        for job in chain(["known"], repeat("programs")):
            seconds = time.monotonic() - began
            try:
                found = child.ask(job)
                if not found and job == "programs":
                    return
            except CollectError:
                if seconds > _END_SECONDS:
                    raise
                found = []  # what runs short, memory for one, may come
            servers = {pid for pid, _, name, _ in found if name == "postgres"}
            for pid, started, _, above in found:
                if pid in servers - asked and above not in servers:
                    asked.add(pid)
                    _send(pid, started, signal.SIGQUIT)  # PostgreSQL: stop at once
                elif seconds > _END_SECONDS / 3 or pid not in servers:
                    _send(pid, started, signal.SIGKILL)
            if seconds > _END_SECONDS:
                raise CollectError(f"processes {[pid for pid, *_ in found]} do not end")
            time.sleep(_POLL_SECONDS)


def _send(pid: int, started: int, number: int) -> None:
    """To the process that was looked at: its id may be another's meanwhile."""
    handle = None
    try:
        handle = os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # before Linux 5.3, or not allowed in a container
            return
    with suppress(OSError):
        if _fields_of(Host("/"), pid)[20:21] == [str(started)]:  # it was that process when it was held
            os.kill(pid, number) if handle is None else signal.pidfd_send_signal(handle, number)
    if handle is not None:
        os.close(handle)


def programs_of(folder: Path) -> list[int]:
    """Process ids of the trial's programs, without this process and without those that have ended already.

    CollectError where that is unknown.
    """
    with _looking(folder) as child:
        return [pid for pid, *_ in child.ask("programs")]


def _looking(folder: Path) -> AgentsChild:
    of = partial(_programs, folder, os.getpid())
    return AgentsChild("/", {"known": partial(of, True), "programs": partial(of, False)})


def _programs(folder: Path, caller: int, is_first: bool, host: Host) -> list[tuple[int, int, str, int]]:
    """Pid, start time, name and parent of each. A child asks that may be left behind: who is looked at may let it wait
    for good.

    So nobody is looked at but who has no user id beside root's and the server's user's, or is of a session or a child
    of the trial's. The others cannot be its programs, wherever they work and whatever they carry. To work below the
    folder is a proof of the server's user's alone. ``is_first``: only who does, and who is of such a session.
    """
    began, mark, sessions, ours = 0, None, set[int](), {os.geteuid()}
    mounts = users_mounts()  # of the server's user, whom their owner says for themselves
    with suppress(OSError):
        ours.update(mounts[path][0] if path in mounts else path.lstat().st_uid for path in folder.iterdir())
    with suppress(OSError, ValueError):
        first, name = text_of(folder / _LOCK).split()
        began, mark = int(first), f"{VARIABLE}={name}"
        sessions.update(map(int, text_of(folder / _SESSIONS).split()))
    table, inside = {}, set[int]()
    for pid in map(int, filter(str.isdigit, host.names("proc"))):
        fields = _fields_of(host, pid)
        if pid not in (caller, os.getpid()) and fields and fields[1] not in ("Z", "X") and int(fields[20]) >= began:
            table[pid] = fields
            with suppress(OSError):  # the kernel prints this link, and waits for nothing
                # Anybody may enter the folder itself; those in it are the server's user's alone.
                if folder in Path(f"/proc/{pid}/cwd").readlink().parents:
                    inside.add(pid)
    users = {pid: _users_of(host, pid, inside) for pid in (inside if is_first else table)}
    inside = {pid for pid in inside if users[pid] and users[pid] <= ours - {0}}  # that user may move root's there
    own = inside if is_first else {pid for pid in table if users[pid] and users[pid] <= ours}
    found, waiting = set[int](), sorted(own | {pid for pid, fields in table.items() if int(fields[4]) in sessions})
    for pid in waiting:
        if pid in inside or mark in (host.read_optional(f"proc/{pid}/environ") or "").split("\0"):
            found.add(pid)
            waiting += [below for below, fields in table.items() if int(fields[2]) == pid and below not in waiting]
    # One of another user's that does not answer is taken for none of the trial's: anybody could have one.
    unknown = sorted(host.left_alone & own)
    if unknown and not found:
        raise CollectError(f"processes {unknown} do not answer")
    return [(pid, int(table[pid][20]), table[pid][0], int(table[pid][2])) for pid in sorted(found)]


def _fields_of(host: Host, pid: int) -> list[str]:
    """The fields of stat(5) from the second on, its name; none where it has ended."""
    name, _, fields = (host.read_record(f"proc/{pid}/stat") or "").partition("(")[2].rpartition(")")
    return [name, *fields.split()] if fields else []


def _users_of(host: Host, pid: int, inside: Container[int]) -> set[int]:
    """Real, effective, saved and file system's: a set-uid program of anybody's has root's beside its starter's. Inside
    the folder the owner will do where many groups make the status too dear to be read."""
    status = read_status(host, pid)
    if status is None and pid in inside:
        with suppress(OSError):
            return {host.state(f"proc/{pid}").st_uid}
    lines = (status or "").split("\n")
    return next((set(map(int, line.split()[1:])) for line in lines if line.startswith("Uid:")), set())


def _give_pages_back() -> None:
    """Taking the lock of the pools' journal restores what a killed owner had raised.

    Where somebody has the lock, they did so when they took it.
    """
    with suppress(ReservationError), reservation(wait_seconds=0.0):
        pass


def _be_the_first_to_go() -> None:
    """Where memory runs out, the kernel ends the trial and not what the node is there for. Programs inherit it."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


@contextmanager
def _guarded(folder: Path, parent: Path, release: Callable[[], object]) -> Iterator[None]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        release()
        os.close(writing)
        _guard(folder, parent, reading)
    os.close(reading)
    try:
        yield
    finally:
        with suppress(OSError):  # the guard itself may have been killed
            os.write(writing, b"d")
        os.close(writing)
        os.waitpid(child, 0)


def _guard(folder: Path, parent: Path, reading: int) -> None:
    """The guard's life; it never returns. It holds the folder's lock, which it inherited."""
    try:
        os.setsid()
        ignore()
        if os.read(reading, 1) != b"d":
            is_clean = _clean(folder, parent)
            _give_pages_back()
            if is_clean:
                os.write(2, b"hugeplan trial: killed; its programs are ended, its pages and folder are given back\n")
    finally:
        os._exit(0)
