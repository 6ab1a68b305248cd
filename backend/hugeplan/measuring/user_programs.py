"""Programs and files of a trial's server's user, who is not trusted: any program, link or FIFO may be there instead."""

from __future__ import annotations

import errno
import os
import pwd
import re
import selectors
import stat
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from hugeplan.unprivileged import words_before

VARIABLE: Final = "HUGEPLAN_TRIAL"
ANSWER_SECONDS: Final = 600.0
SAID_SECONDS: Final = 900.0
"""Longer than pg_ctl waits for a server."""
LOAD_SECONDS: Final = 86_400.0
"""For a user's own SQL, and the most for anything."""
_SLOW_BYTES_PER_SECOND: Final = 10e6
_LOOK_SECONDS: Final = 60.0
_END_SECONDS: Final = 2.0
_ASKED_SECONDS: Final = 5.0
_REMOVE_SECONDS: Final = 600.0
_MOST_READ_BYTES: Final = 1 << 20
_MOST_SAID_BYTES: Final = 1 << 16
_MOST_MAPS_BYTES: Final = 64 << 20
"""The kernel's 65,530 mappings of a process have about 50 MB."""
BASE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
TRANSPARENT: Final = 0
_MAPPED: Final = re.compile(r"^(Size|KernelPageSize|Anonymous|AnonHugePages|ShmemPmdMapped):\s+(\d+) kB", re.MULTILINE)
_CPUCLOCK_SCHED: Final = 2
_VARIABLES: Final = frozenset({"PATH", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", VARIABLE})


def load_seconds(data_bytes: int) -> float:
    """How long, s, loading, copying or reading so many bytes may take: a stopped process of the server's user takes
    them all, and the node's huge pages with it."""
    return min(LOAD_SECONDS, ANSWER_SECONDS + data_bytes / _SLOW_BYTES_PER_SECOND)


def created(path: Path) -> BinaryIO:
    """A new file for the server's user alone, to whom the folder belongs, open for writing and reading.

    That user may have put links there: what they name is neither followed nor changed. OSError where it goes on so.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=folder)
        made = os.open(path.name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        owner = os.fstat(folder)
        os.fchown(made, owner.st_uid, owner.st_gid)
        return os.fdopen(made, "w+b")
    finally:
        os.close(folder)


@contextmanager
def found(path: Path) -> Iterator[int]:
    """What lies there, unopened (O_PATH), be it a link. OSError, also for a mount: whoever asks its server waits."""
    with ExitStack() as after:
        mounts = set()
        for one, more in ((path.parent, 0), (path, os.O_NOFOLLOW)):
            held = os.open(one, os.O_PATH | os.O_CLOEXEC | more)
            after.callback(os.close, held)
            about = Path(f"/proc/self/fdinfo/{held}").read_text(encoding="ascii")
            mounts.add(about.partition("mnt_id:")[2].split()[0])
        if len(mounts) > 1:
            raise OSError(errno.EXDEV, f"{path} is a mount")
        yield held


def text_of(path: Path) -> str:
    """The first MiB of a file in a folder that belongs to a server's user. OSError where it is no regular file.

    A link is not followed and nobody waits at a FIFO, a mount or a file with a lease (EAGAIN): the user may have put
    each in the file's place.
    """
    with found(path) as held:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise OSError(f"{path} is not a regular file")
        opened = os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as file:
            return file.read(_MOST_READ_BYTES).decode("utf-8", "replace")


def apart() -> dict[str, Any]:
    """How every program of a server's user is started (subprocess.Popen): with nothing of who measures, no terminal,
    where it could type or read, no variable that may be a secret, and in a folder of root's: what is root until it has
    become the user loads programs and libraries from where it works, if root's variables have an entry that says so.

    In a session of its own, so that Ctrl-C reaches the measurement alone, which ends its programs in order.
    """
    env = {name: value for name, value in os.environ.items() if name in _VARIABLES or name.startswith("LC_")}
    for name in {"PATH", "LD_LIBRARY_PATH"} & set(env):
        env[name] = os.pathsep.join(part for part in env[name].split(os.pathsep) if part.startswith("/"))
    return {"stdin": subprocess.DEVNULL, "env": env, "start_new_session": True, "cwd": "/"}


def as_user(user: str, folder: str | Path = "/") -> list[str]:
    """What makes a command line one of a server's user ("" is ourselves), which works in that folder."""
    account = pwd.getpwnam(user) if user else None
    uid, gid = (account.pw_uid, account.pw_gid) if account else (os.geteuid(), os.getegid())
    return words_before(uid, gid, folder=folder)


def give(folder: Path, user: str) -> Path:
    """A folder for a server's user alone; the one above it must be ours. By the way that is answered we go to it from
    then on, until we end: over its path that user may mount what root waits at for good."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    os.fchmod(held, 0o700)
    if user:
        account = pwd.getpwnam(user)
        os.fchown(held, account.pw_uid, account.pw_gid)
    return Path(f"/proc/{os.getpid()}/fd/{held}")


def is_copied(source: Path, target: Path, user: str, seconds: float) -> bool:
    """Copy a server's folder, as its user: who owns it may put links there meanwhile, which root would follow. OSError
    where it takes longer."""
    copying = [*as_user(user), "cp", "-a", "--reflink=auto", f"{source}/.", str(target)]
    return said_by(copying, seconds=seconds)[0] == 0


def said_by(
    command: Sequence[str | Path], *, seconds: float = SAID_SECONDS, most: int = _MOST_SAID_BYTES, **more: Any
) -> tuple[int, str]:
    """Run a program of a server's user to its end: its status, and the last that was said. OSError, TimeoutError.

    Any program of that user may write into its pipe without end, keep it open, or stop itself: then it is left.
    """
    said, until = bytearray(), time.monotonic() + seconds
    process = subprocess.Popen(  # noqa: S603 - our own command line
        command, **apart() | {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | more
    )
    try:
        if process.stdout is None:
            raise OSError(f"{command[0]} has no output that could be read")
        with process.stdout as pipe, selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while selector.select(max(0.0, until - time.monotonic())):
                piece = os.read(pipe.fileno(), _MOST_SAID_BYTES)
                if not piece:
                    process.wait(max(0.0, until - time.monotonic()))
                    return process.returncode, said.decode("utf-8", "replace")
                said += piece  # in place: 64 MiB of mappings come in a thousand pieces
                del said[:-most]
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.returncode is None:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
    raise TimeoutError(f"{' '.join(map(str, command))[:200]} did not end within {seconds:g} s")


def ended(process: subprocess.Popen[bytes]) -> None:
    """Ask, then kill. Then it is left: its user may have stopped it, or let it wait where no signal ends that."""
    for end in (process.terminate, process.kill):
        end()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ASKED_SECONDS)
            return


def cpu_ns_of(pid: int) -> int:
    """CPU time of a process and all its threads, also those that ended (clock_getcpuclockid(3)): it never falls.
    OSError where it has ended."""
    return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)


def smaps_of(pid: int, name: str = "smaps") -> str:
    """What the kernel tells of a process's mappings. OSError.

    A process whose page fault waits for a file system of its user's lets nobody look. cat can be left there, we cannot.
    """
    status, said = said_by(["cat", f"/proc/{pid}/{name}"], seconds=_LOOK_SECONDS, most=_MOST_MAPS_BYTES)
    if status != 0:
        raise OSError(f"the mappings of process {pid} cannot be read: {said.strip()[-200:]}")
    return said


def memory_of(pid: int) -> Counter[int]:
    """Bytes of memory of its own that a process uses by page size, transparent pages by ``TRANSPARENT``. OSError.

    Mappings of a pool's pages count whole, since they never have others.
    """
    found, size = Counter[int](), 0
    for key, kib in _MAPPED.findall(smaps_of(pid)):
        count = int(kib) * 1024
        if key == "Size":
            size = count
        elif key == "KernelPageSize":
            found[count] += size if count > BASE_BYTES else 0
        elif key == "Anonymous":
            found[BASE_BYTES] += count
        else:
            found[TRANSPARENT] += count
            found[BASE_BYTES] -= count if key == "AnonHugePages" else 0
    return found


def version_said(program: Path, user: str) -> str:
    """What a program answers to ``--version``, as a server's user ("" is ourselves): it may be anybody's. OSError."""
    status, said = said_by([*as_user(user), program, "--version"])
    if status != 0:
        raise OSError(status, said.removeprefix(f"{program}: ").strip()[-200:])
    return said


def is_done(command: Sequence[str]) -> bool:
    """Run a program, which may wait for a file system of a server's user: then it is left. OSError."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **apart() | silent)  # noqa: S603 - as any tool here
    try:
        return process.wait(_REMOVE_SECONDS) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        return False
