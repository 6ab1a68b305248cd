"""PostgreSQL as the subject of a trial: two private servers of the same programs on copies of one data set."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg

from hugeplan.measuring import room
from hugeplan.measuring.batches import BatchError, Side
from hugeplan.measuring.control import allow, stop_all
from hugeplan.measuring.pools import CannotReserveError, reserved
from hugeplan.measuring.postgresql_clients import Case, DriverClients, Pgbench, ScriptedPgbench, Workers, cases
from hugeplan.measuring.postgresql_server import Server, ServerError, Shape, shared_huge_bytes
from hugeplan.measuring.trial import EQUAL, ArmError, TrialError
from hugeplan.measuring.user_programs import LOAD_SECONDS, created
from hugeplan.planner.model import GIB, MIB
from hugeplan.planner.units import format_bytes

POOL_OVER_DATA: Final = 1.25
"""The buffer pool over the data: everything stays in it, so that nothing is read from files while measuring."""
PGBENCH_SCALE_BYTES: Final = 15 * MIB + 2 * MIB
"""Table and index of one unit of pgbench's own schema."""
SCRIPT_BATCH_SECONDS: Final = 0.25
PAGE_BYTES: Final[Mapping[str, int]] = {"2M": 2 * MIB, "1G": GIB}
THP: Final = "thp"
_SHMEM_ENABLED: Final = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be measured: programs, data, clients; ``script`` and ``schema`` are the user's own SQL texts."""

    programs: Path
    data_bytes: int
    row_bytes: int
    clients: int
    settings: Mapping[str, str] = field(default_factory=dict)
    script: str | None = None
    schema: bytes | None = None
    pairs_per_block: int = 12

    @property
    def pool_bytes(self) -> int:
        """shared_buffers of either server."""
        return int(self.data_bytes * POOL_OVER_DATA)

    @property
    def scale(self) -> int | None:
        """pgbench's scale where the script is the user's and the schema is pgbench's own."""
        return max(1, self.data_bytes // PGBENCH_SCALE_BYTES) if self.script and self.schema is None else None

    def needed_bytes(self, arms: tuple[str, ...]) -> int:
        """Memory that both servers take at once: their pools, whole huge pages, and the clients with page tables."""
        largest = max((PAGE_BYTES[arm] for arm in arms if arm in PAGE_BYTES), default=0)
        one = int(1.06 * self.pool_bytes)
        per_client = 12 * MIB + self.data_bytes // 512
        return 2 * one + largest + 2 * self.clients * per_client


def largest_data_bytes(clients: int, room_bytes: int) -> int:
    """The most data of which two servers and their clients fit into ``room_bytes``."""
    per_byte = 2 * 1.06 * POOL_OVER_DATA + 2 * clients / 512
    return max(0, int((room_bytes - 2 * clients * 12 * MIB) / per_byte))


@dataclass(slots=True)
class PostgresqlSubject:
    """Two servers on copies of one data set. ``prepare`` loads it; then ``sides`` may be called."""

    plan: Plan
    folder: Path
    say: Callable[[str], None]
    by_cpu: bool = True
    _servers: tuple[Server, Server] | None = None
    _per_client: int = 0

    @property
    def pairs_per_block(self) -> int:
        """As planned."""
        return self.plan.pairs_per_block

    @property
    def release(self) -> str:
        """The servers' own version."""
        return self._pair()[0].release

    @property
    def data_bytes(self) -> int:
        """Bytes of tables and indexes as they are."""
        return self._data_bytes

    _data_bytes: int = 0

    def prepare(self, arms: tuple[str, ...]) -> None:
        """Load one server and copy its folder. TrialError with numbers where memory or disk do not suffice."""
        plan = self.plan
        allow()
        fits = largest_data_bytes(plan.clients, room.headroom_bytes()[0]) / GIB
        advice = f"--data-gib {fits:.1f} would fit." if fits >= 0.1 else "Stop what uses the memory."
        what = f"two servers with {format_bytes(plan.pool_bytes)} of shared_buffers and {plan.clients} clients each"
        room.check(plan.needed_bytes(arms), what, advice)
        room.check_disk(self.folder, int(2.2 * plan.data_bytes))
        shape = Shape(plan.data_bytes, plan.row_bytes, plan.pool_bytes)
        load = self._load_user_schema if plan.script or plan.schema else None
        try:
            first = Server(plan.programs, self.folder / "a", shape, 0, settings=plan.settings, load=load)
            second = Server(plan.programs, self.folder / "b", shape, 0, settings=plan.settings)
            begin = time.monotonic()
            first.prepare()
            second.prepare_copy_of(first)
            self._servers = (first, second)
            with first.running("off"):
                self._data_bytes = first.data_bytes()
                if plan.script:
                    self._calibrate(first)
        except (BatchError, ServerError, psycopg.Error) as problem:
            raise TrialError(str(problem)) from problem
        self.say(f"{format_bytes(self._data_bytes)} of data loaded twice in {time.monotonic() - begin:.0f} s")

    def _load_user_schema(self, server: Server) -> None:
        connect = ("-h", str(server.folder), "-U", "postgres")
        if self.plan.schema is None:
            scaled = ("-i", "-q", "-s", str(self.plan.scale), "--unlogged-tables")
            server.run("pgbench", *scaled, *connect, "postgres", seconds=server.load_seconds)
            return
        copied = server.folder / "schema.sql"  # the server's user may not be allowed to read the user's own file
        with created(server.held / copied.name) as file:
            file.write(self.plan.schema)
        strictly = ("-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(copied))
        server.run("psql", *strictly, *connect, "postgres", seconds=LOAD_SECONDS)
        with server.connect(server.load_seconds) as connection:
            connection.execute("vacuum (freeze, analyze)")
            connection.execute("checkpoint")

    def _calibrate(self, server: Server) -> None:
        """How often a client runs the user's script in a batch of a quarter of a second."""
        server.prewarm()
        self._per_client = 5
        for _ in range(4):
            with self._clients(server) as made:
                made.batch()
                seconds = self._per_client * self._case().clients / made.batch().rate
            if seconds >= SCRIPT_BATCH_SECONDS / 2:
                break
            grown = SCRIPT_BATCH_SECONDS / max(seconds, 1e-3)
            self._per_client = max(self._per_client + 1, int(self._per_client * min(grown, 50.0)))

    @contextmanager
    def sides(self, arm: str, *, swapped: bool) -> Iterator[tuple[Side, Side]]:
        """Both servers started and warm: base pages, and the arm's."""
        base, other = self._pair()[::-1] if swapped else self._pair()
        allow()
        try:
            with ExitStack() as stack:
                self._start(stack, base, EQUAL)
                self._start(stack, other, arm)
                # Most of a block is warming: both servers do it at once, so that the time buys more blocks.
                with ThreadPoolExecutor(2) as both:
                    try:
                        list(both.map(Server.prewarm, (base, other)))
                        first, second = both.map(stack.enter_context, (self._clients(base), self._clients(other)))
                    except BaseException:  # Ctrl-C comes to this thread alone, which waits for both
                        stop_all()
                        both.shutdown(cancel_futures=True)
                        raise
                _check_pages(first, EQUAL)
                _check_pages(second, arm)
                yield first, second
        except (BatchError, ServerError, psycopg.Error) as problem:
            raise TrialError(str(problem)) from problem

    def _start(self, stack: ExitStack, server: Server, arm: str) -> None:
        """Start a server on the arm's pages."""
        page_bytes = PAGE_BYTES.get(arm)
        if page_bytes is None:
            if arm == THP:
                check_shared_thp()
            stack.enter_context(server.running("off", thp=arm == THP))
        else:
            try:
                stack.enter_context(reserved(page_bytes, server.huge_pages_needed(page_bytes)))
            except CannotReserveError as problem:
                raise ArmError(str(problem)) from problem
            try:
                stack.enter_context(server.running("on", page_bytes))
            except ServerError as problem:
                raise ArmError(str(problem)) from problem

    def _clients(self, server: Server) -> Workers:
        case = self._case()
        if self.plan.script:
            return ScriptedPgbench(server, case, self.plan.script, self._per_client, self.plan.scale)
        return Pgbench(server, case) if has_pgbench(self.plan.programs) else DriverClients(server, case)

    def _case(self) -> Case:
        return cases([self.plan.clients], nested_loop=False)[0]

    def _pair(self) -> tuple[Server, Server]:
        if self._servers is None:
            raise TrialError("the servers were not prepared")
        return self._servers


def has_pgbench(programs: Path) -> bool:
    """Whether the server's own pgbench lies beside it."""
    return (programs / "pgbench").exists()


def check_shared_thp(path: Path = _SHMEM_ENABLED) -> None:
    """ArmError where PostgreSQL's shared memory gets no transparent huge pages as the node is set.

    The setting is the whole node's, so a trial does not change it.
    """
    try:
        chosen = path.read_text(encoding="ascii").partition("[")[2].partition("]")[0]
    except OSError as problem:
        raise ArmError("this kernel has no transparent huge pages for shared memory") from problem
    if chosen not in {"always", "within_size", "force"}:
        raise ArmError(
            f"PostgreSQL's memory is shared and gets no transparent huge pages here: shmem_enabled is {chosen}"
        )


def _check_pages(made: Workers, arm: str) -> None:
    expected = PAGE_BYTES.get(arm, os.sysconf("SC_PAGE_SIZE"))
    if made.page_bytes != expected:
        raise ArmError(f"the server runs on {made.page_bytes >> 10} KiB pages, {expected >> 10} KiB were asked for")
    has_transparent = bool(shared_huge_bytes(made.pids[0]))
    if arm == THP and not has_transparent:
        raise ArmError("the kernel gave the server no transparent huge pages")
    if arm == EQUAL and has_transparent:
        raise TrialError("the kernel gave the server on base pages transparent huge pages")
