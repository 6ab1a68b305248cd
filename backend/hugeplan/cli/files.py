"""Reading and writing files that a user names: every failure is one line."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hugeplan.cli import InputError
from hugeplan.unprivileged import require_own

if TYPE_CHECKING:
    from hugeplan.documents.tlbbench import TlbbenchDocument
    from hugeplan.planner.model import HardwareFacts

MIB = 1024**2
MOST_BYTES = 1024 * MIB
"""Of a file: more is no input of ours, or has no end."""
#: What a file is called before it has its name, in hugeplan_agent.whole_files' form: `.hugeplan.abcdefgh.tmp`.
TEMPORARY = "hugeplan"
#: What the caller's shell opened: its descriptor is read, which no name leads elsewhere.
_GIVEN = re.compile("/dev/stdin|/(?:dev|proc/self)/fd/([0-9]{1,9})")
#: Rights of a program, and sums over a file's bytes: no new file has them.
_OF_THE_BYTES = frozenset({"security.capability", "security.ima", "security.evm"})


@contextmanager
def to_read(path: str) -> Iterator[IO[bytes]]:
    """A file that a user names, open; standard input for ``-``. All that commands read of such a one is from here.

    Root opens it as who could lead its path elsewhere: a link of a user's leads only where that user may read. What is
    no regular file may wait for its writer without end. It is refused, but for what the caller's own shell opened, such
    as ``<(...)``. OSError.
    """
    given = _GIVEN.fullmatch(path)
    found: AbstractContextManager[IO[bytes]]
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        found = nullcontext(sys.stdin.buffer)
    elif given is not None:
        found = open(os.dup(int(given[1] or 0)), "rb")  # noqa: PTH123, SIM115 - no path, and closed below
    else:
        found = _opened(Path(path))
    with found as file:
        if path != "-" and given is None and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "expected a regular file, or - for standard input")
        yield file


def read_named(path: str, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of what :func:`to_read` opens. OSError, also where there are more than ``most_bytes``.

    Large input is read as well, never mapped: a file that another process truncates ends the reader of a mapping with
    SIGBUS. 200 MB are read in 0.13 s.
    """
    with to_read(path) as file:  # None is of one that the kernel fills later, such as /proc/kmsg
        data = b"".join(islice(iter(lambda: file.read(MIB) or b"", b""), most_bytes // MIB + 1))
    if len(data) > most_bytes:
        raise OSError(errno.EINVAL, f"it has more than {most_bytes} bytes")
    return data


def read_bytes(path: str, option: str = "", most_bytes: int = MOST_BYTES) -> bytes:
    """The same. InputError, which names the ``option`` that the path is of."""
    try:
        return read_named(path, most_bytes)
    except OSError as error:
        raise InputError(f"{option} {path}: {error.strerror}".lstrip()) from error


def read_found(path: Path, most_bytes: int = MOST_BYTES) -> bytes | None:
    """A file that nobody named: it was found in a folder. Root reads as for :func:`to_read`. InputError.

    None for what is no regular file with a size: the reader of a FIFO waits, and of /proc/kmsg, which is such a file.
    """
    try:
        with _opened(path) as file:
            return _bounded(file, most_bytes) or None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _opened(path: Path) -> IO[bytes]:
    """As who could lead the path elsewhere. Where that may be several, what all may read, and by no link. OSError."""
    try:
        with _led_to(path) as target:
            return open(target, "rb", opener=_not_led)
    except PermissionError as error:
        if os.geteuid() != 0:
            raise
        if error.strerror == os.strerror(errno.EACCES):  # else it is the words of who judged the folders
            said = f"{error.strerror}; where a user could put a link, root reads as that user"
            raise PermissionError(errno.EACCES, said) from error
        # Who may rename there may have put any file of root's in its place.
        with suppress(_HiddenError):
            return open(path.absolute(), "rb", opener=_by_no_link)
        raise


class _HiddenError(Exception):
    """Not everybody may read it."""


def _bounded(file: IO[bytes], most_bytes: int) -> bytes | None:
    state = os.fstat(file.fileno())
    is_one = stat.S_ISREG(state.st_mode) and state.st_size <= most_bytes
    return file.read(state.st_size) if is_one else None


def decode_text(data: bytes, path: str) -> str:
    """UTF-8 text with its line ends as the platform's text files have them; ``path`` is for the message."""
    if (at := data.find(0)) >= 0:
        raise InputError(f"{path}: byte {at} is NUL, which is in no text")
    try:
        return str(data, "utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8 text") from error


def read_text(path: str, option: str = "") -> str:
    """A file's text, standard input's for ``-``. InputError when there is none, or none in UTF-8."""
    return decode_text(read_bytes(path, option), path)


def read_json(path: str, what: str, option: str = "") -> Any:
    """What a file of JSON holds. InputError, in one line, where it is none."""
    try:
        return json.loads(read_text(path, option))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not {what}: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or nesting without end
        raise InputError(f"{path}: not {what}: {str(error).partition(':')[0]}") from error


def read_document(path: str, option: str = "") -> TlbbenchDocument:
    """A tlbbench document of schema_version 1 on disk."""
    # Its models take a quarter of a second to build, and most commands read none.
    from pydantic import ValidationError  # noqa: PLC0415

    from hugeplan.documents.tlbbench import TlbbenchDocument  # noqa: PLC0415

    content = read_json(path, "a tlbbench document", option)
    if not isinstance(content, dict) or content.get("schema_version") != 1:
        raise InputError(f"{path}: not a tlbbench document with schema_version 1")
    try:
        return TlbbenchDocument.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the document"
        raise InputError(
            f"{path}: a tlbbench document with a wrong or missing field: {field}: {first['msg']}"
        ) from error


def read_run(path: str, option: str = "") -> HardwareFacts:
    """Hardware facts from a tlbbench document on disk."""
    from hugeplan.hardware.curves import hardware_facts_of  # noqa: PLC0415 - imports the document's models

    return hardware_facts_of(read_document(path, option))


def to_write(path: Path) -> Path:
    """A path in a folder that a user named. InputError where something else lies there (a FIFO waits for who reads it,
    and where a link leads is for whoever may write to the folder to say), or nobody may look."""
    try:
        is_other = path.is_symlink() or (path.exists() and not path.is_file())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if is_other:
        raise InputError(f"{path} is not a regular file; remove it, or give another folder")
    return path


def write_file(path: Path, data: bytes, mode: int = 0o644, *, secret: bool = False) -> None:
    """Write a file into a folder that a user named, which is made where it is missing. OSError, InputError.

    Root does it all as the user who could lead the folder elsewhere, if there is one. A file that is so already stays.
    ``secret``: its folder is there, and it is on the disk before the old one goes.
    """
    with led_by(path.parent, make=not secret):
        if not _is_so(to_write(path), data, mode):
            _put(path, data, lambda file: _set_mode(file, mode), durable=secret)


def read_there(path: Path, *, secret: bool = False, most_bytes: int = MIB) -> bytes | None:
    """What a file holds that :func:`write_file` wrote; None without one. Root reads as it writes. OSError, InputError.

    ``secret``: also where another user made the file, in a folder that is open to more than its owner.
    """
    with led_by(path.parent), suppress(FileNotFoundError):
        owner, is_open = to_write(path).lstat().st_uid, path.parent.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if secret and is_open and owner != os.geteuid():
            raise OSError(errno.EPERM, f"user {owner} made it; remove it, or name a folder of your own")
        with open(path, "rb", opener=_not_led) as file:
            return _bounded(file, most_bytes)
    return None


def replace_file(path: Path, data: bytes, was: bytes) -> None:
    """Write beside and rename: whoever kills this leaves the old file or the new one. OSError.

    Root writes as the user who could lead the path elsewhere, if there is one. ``was``: what the old file must hold.
    The new one then has its owner, group, permissions (never set-uid) and attributes, such as access lists.
    """
    with _led_to(path) as target, open(target, "rb", opener=_not_led) as old:
        if old.read(len(was) + 1) != was:
            raise OSError(errno.ESTALE, "it was changed meanwhile; run this again")
        _put(target, data, lambda file: _make_alike(file, old.fileno()))


@contextmanager
def _led_to(path: Path) -> Iterator[Path]:
    """Where a path leads, as the user who could lead it elsewhere. OSError."""
    with led_by(path.parent):  # that user may serve what is there
        is_link = path.is_symlink()  # asked once: in a sticky folder it may become one
    with led_by(path if is_link else path.parent):
        yield Path(os.path.realpath(path)) if is_link else path.parent.resolve() / path.name


def _is_so(path: Path, data: bytes, mode: int) -> bool:
    with suppress(FileNotFoundError, PermissionError), open(path, "rb", opener=_not_led) as file:
        state = os.fstat(file.fileno())
        is_ours = state.st_uid == os.geteuid()  # whose it is may change it afterwards
        return is_ours and stat.S_IMODE(state.st_mode) == mode and file.read(len(data) + 1) == data
    return False


def _put(target: Path, data: bytes, make_ready: Callable[[int], None], *, durable: bool = False) -> None:
    with (
        tempfile.NamedTemporaryFile(prefix=f".{TEMPORARY}.", suffix=".tmp", dir=target.parent, delete=False) as file,
        ExitStack() as on_error,
    ):
        on_error.callback(Path(file.name).unlink, missing_ok=True)
        file.write(data)
        file.flush()
        make_ready(file.fileno())
        if durable:
            os.fsync(file.fileno())
        Path(file.name).replace(target)
        on_error.pop_all()


def led_by(place: Path, *, make: bool = False) -> AbstractContextManager[None]:
    """For the time of the block root is the user who could lead this path elsewhere, if there is one. OSError.

    ``make``: the folders that are missing.
    """
    if os.geteuid() != 0:
        if make:
            place.mkdir(parents=True, exist_ok=True)
        return nullcontext()
    try:
        from hugeplan_agent.ownership import as_owner_of  # noqa: PLC0415 - an optional distribution
    except ImportError:
        try:
            for folder in (place.parent, place.resolve().parent) if place.is_symlink() else (place,):
                require_own(folder, "Name a folder of your own.", make=make)
        except PermissionError as error:
            raise OSError(errno.EPERM, str(error)) from error
        return nullcontext()
    led: AbstractContextManager[None] = as_owner_of(place, make=0o755 if make else None)
    return led


def _is_ours(folder: Path) -> bool:
    with suppress(OSError):
        require_own(folder)
        return True
    return False


def _judge_state_folder(folder: Path) -> None:
    try:
        advice = "Start the demo as that user, or set HUGEPLAN_STATE_DIR to a folder of root's."
        require_own(folder, advice, make=True)
    except OSError as error:
        raise InputError(f"HUGEPLAN_STATE_DIR: {error}") from error


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter. InputError for one that is not ours alone to close."""
    is_judged = os.geteuid() == 0 and _is_ours(Path(sys.prefix))  # who may change our program needs no link
    if not folder.exists():
        _judge_state_folder(folder) if is_judged else folder.mkdir(parents=True, mode=0o700)
    found = folder.stat()
    is_ours = {found.st_uid, folder.lstat().st_uid} == {os.geteuid()}  # a link in its place may be anybody's
    is_open = stat.S_IMODE(found.st_mode) & 0o077 != 0
    is_shared = found.st_mode & stat.S_ISVTX or folder.resolve() in {Path("/"), Path.home()}
    if not is_ours or (is_open and is_shared):
        raise InputError(f"HUGEPLAN_STATE_DIR: {folder} is not a folder of our own; expected one for this demo only")
    if is_judged:
        _judge_state_folder(folder)
    if is_open:
        folder.chmod(0o700)


def require_not_led(place: Path) -> None:
    """For what no other user may read or replace. OSError where root's path could be led elsewhere by one."""
    me = os.geteuid()
    with led_by(place):
        if os.geteuid() != me:
            raise OSError(errno.EPERM, f"user {os.geteuid()} could lead {place} elsewhere; name a folder of your own")


def _not_led(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)


def _by_no_link(path: str, flags: int) -> int:
    """Open a file that everybody may read, to which folders alone lead that everybody may enter.

    OSError: ELOOP or ENOTDIR for a link. _HiddenError.
    """
    with ExitStack() as after:
        folder = None
        for name in Path(path).parts[:-1]:
            folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            after.callback(os.close, folder)
            _require(folder, stat.S_IXOTH)
        file = os.open(Path(path).name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
        after.callback(os.close, file)
        _require(file, stat.S_IROTH)
        return os.dup(file)


def _require(file: int, right_of_all: int) -> None:
    if not os.fstat(file).st_mode & right_of_all:
        raise _HiddenError


def _set_mode(file: int, mode: int) -> None:
    """Let nobody in beside it: a folder may have an access list for what is new there."""
    with suppress(OSError):
        os.removexattr(file, "system.posix_acl_access")
    os.fchmod(file, mode)


def _make_alike(new: int, old: int) -> None:
    """Owner, group, permissions and attributes of another file, without what gives a program rights. OSError."""
    state, made = os.fstat(old), os.fstat(new)
    try:
        if (made.st_uid, made.st_gid) != (state.st_uid, state.st_gid):
            os.fchown(new, state.st_uid, state.st_gid)
        _set_mode(new, state.st_mode & 0o777)
        for name in _attributes(old):
            value = os.getxattr(old, name)
            if name not in _attributes(new) or os.getxattr(new, name) != value:
                os.setxattr(new, name, value)
    except OSError as error:
        what = f"its owner {state.st_uid}, its group {state.st_gid} or its access list"
        said = (
            f"user {os.geteuid()}, who may rename it, cannot keep {what} ({error.strerror}); edit it by hand (--diff)"
        )
        raise OSError(errno.EPERM, said) from error


def _attributes(file: int) -> list[str]:
    try:
        return [name for name in os.listxattr(file) if name not in _OF_THE_BYTES]
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise
