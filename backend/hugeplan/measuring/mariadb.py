"""MariaDB or MySQL as the subject of a trial: two private servers of the same program on copies of one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hugeplan.measuring import room
from hugeplan.measuring.batches import BatchError, Side
from hugeplan.measuring.mariadb_server import MariadbError, MariadbServer, release_of, rows_of
from hugeplan.measuring.pools import CannotReserveError, reserved
from hugeplan.measuring.sysbench_clients import Sysbench
from hugeplan.measuring.trial import EQUAL, ArmError, TrialError
from hugeplan.measuring.user_programs import BASE_BYTES, TRANSPARENT, memory_of
from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, MIB, DatabaseInstance
from hugeplan.planner.units import format_bytes

POOL_OVER_DATA: Final = 1.25
SERVER_BYTES: Final = 400 * MIB
"""What a server takes beside its buffer pool and its clients' threads."""

CLIENT_BYTES: Final = 4 * MIB
BATCH_SECONDS: Final = 0.1
PAGE_BYTES: Final[Mapping[str, int]] = {"2M": 2 * MIB, "1G": GIB}
THP: Final = "thp"
_SYSFS: Final = Path("/sys/kernel/mm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be measured: the server's program, the client's, data and clients."""

    program: Path
    sysbench: str
    data_bytes: int
    row_bytes: int
    clients: int
    settings: Mapping[str, str] = field(default_factory=dict)
    engine: str = "mariadb"
    pairs_per_block: int = 12

    @property
    def pool_bytes(self) -> int:
        """innodb_buffer_pool_size of either server, in whole pieces of 2 MiB."""
        return max(64 * MIB, -(-int(self.data_bytes * POOL_OVER_DATA) // (2 * MIB)) * 2 * MIB)

    def needed_bytes(self, arms: tuple[str, ...]) -> int:
        """Memory that both servers take at once."""
        largest = max((PAGE_BYTES[arm] for arm in arms if arm in PAGE_BYTES), default=0)
        return 2 * (int(1.08 * self.pool_bytes) + SERVER_BYTES + self.clients * CLIENT_BYTES) + largest


def largest_data_bytes(clients: int, room_bytes: int) -> int:
    """The most data of which two servers and their clients fit into ``room_bytes``."""
    fixed = 2 * (SERVER_BYTES + clients * CLIENT_BYTES)
    return max(0, int((room_bytes - fixed) / (2 * 1.08 * POOL_OVER_DATA)))


@dataclass(slots=True)
class MariadbSubject:
    """Two servers on copies of one table. ``prepare`` loads it; then ``sides`` may be called."""

    plan: Plan
    folder: Path
    say: Callable[[str], None]
    by_cpu: bool = True
    _servers: tuple[MariadbServer, MariadbServer] | None = None
    _events: int = 0

    @property
    def pairs_per_block(self) -> int:
        """As planned."""
        return self.plan.pairs_per_block

    @property
    def release(self) -> str:
        """The server's own version."""
        return release_of(self.plan.program, self.plan.engine)

    @property
    def data_bytes(self) -> int:
        """Bytes of the table as it is."""
        return self._pair()[0].data_bytes()

    def prepare(self, arms: tuple[str, ...]) -> None:
        """Load one server and copy its folder. TrialError with numbers where memory or disk do not suffice."""
        plan = self.plan
        fits = largest_data_bytes(plan.clients, room.headroom_bytes()[0]) / GIB
        advice = f"--data-gib {fits:.1f} would fit." if fits >= 0.1 else "Stop what uses the memory."
        what = f"two servers with a buffer pool of {format_bytes(plan.pool_bytes)} and {plan.clients} clients each"
        room.check(plan.needed_bytes(arms), what, advice)
        room.check_disk(self.folder, int(2.4 * plan.data_bytes))
        rows = rows_of(plan.data_bytes, plan.row_bytes)
        begin = time.monotonic()
        first, second = (
            MariadbServer(
                plan.program,
                self.folder / place,
                rows=rows,
                row_bytes=plan.row_bytes,
                pool_bytes=plan.pool_bytes,
                settings=plan.settings,
                engine=plan.engine,
            )
            for place in ("a", "b")
        )
        try:
            first.load()
            second.copy_of(first)
            self._servers = (first, second)
            with first.running(large_pages=False, thp=False):
                self._calibrate(first)
        except (BatchError, MariadbError) as problem:
            raise TrialError(str(problem)) from problem
        self.say(f"{format_bytes(self.data_bytes)} of data loaded twice in {time.monotonic() - begin:.0f} s")

    def _calibrate(self, server: MariadbServer) -> None:
        """How many lookups of each client a batch has."""
        with Sysbench(server, self.plan.clients, self.plan.sysbench) as clients:
            clients.read_all()
            clients.events = 200
            for _ in range(3):
                rate = clients.batch().rate
                clients.events = max(clients.events, int(rate * BATCH_SECONDS / self.plan.clients))
            self._events = clients.events

    @contextmanager
    def sides(self, arm: str, *, swapped: bool) -> Iterator[tuple[Side, Side]]:
        """Both servers started and warm: base pages, and the arm's."""
        base, other = self._pair()[::-1] if swapped else self._pair()
        try:
            with ExitStack() as stack:
                yield self._start(stack, base, EQUAL), self._start(stack, other, arm)
        except (BatchError, MariadbError) as problem:
            raise TrialError(str(problem)) from problem

    def _start(self, stack: ExitStack, server: MariadbServer, arm: str) -> Side:
        """Start a server on the arm's pages, read its table into the buffer pool, and prove the pages."""
        page_bytes = PAGE_BYTES.get(arm)
        if page_bytes is not None:
            _check_larger_pools(page_bytes)
            try:
                stack.enter_context(reserved(page_bytes, self._pages(page_bytes)))
            except CannotReserveError as problem:
                raise ArmError(str(problem)) from problem
        if arm == THP:
            _check_thp()
        stack.enter_context(server.running(large_pages=page_bytes is not None, thp=arm == THP))
        clients = stack.enter_context(Sysbench(server, self.plan.clients, self.plan.sysbench))
        clients.read_all()
        clients.events = self._events
        clients.batch()
        memory = memory_of(server.pid)
        if arm == THP:
            if memory[TRANSPARENT] < self.plan.pool_bytes // 2:
                raise ArmError("the kernel gave the buffer pool few transparent huge pages")
        elif page_bytes is not None and memory[page_bytes] < self.plan.pool_bytes:
            raise ArmError(f"the buffer pool is not on pages of {format_bytes(page_bytes)}")
        elif page_bytes is None and memory.total() > memory[BASE_BYTES]:
            raise TrialError("the server on base pages has huge pages")
        return clients

    def _pages(self, page_bytes: int) -> int:
        """Pages of the server by the planner's rule, error margin included."""
        size = str(self.plan.pool_bytes)
        settings = {"innodb_buffer_pool_size": size, "innodb_buffer_pool_chunk_size": size, **self.plan.settings}
        if self.plan.engine == "mysql":
            settings["innodb_buffer_pool_instances"] = "1"
        line = ".".join(self.release.split(".")[:2])
        instance = DatabaseInstance(name="trial", engine=self.plan.engine, version=line, settings=settings)
        try:
            demand = demand_of(instance, page_bytes, DemandContext())
        except PlannerError as problem:
            raise TrialError(f"how many pages this server needs is not known: {problem}") from problem
        return demand.pages + demand.error_pages + 8

    def _pair(self) -> tuple[MariadbServer, MariadbServer]:
        if self._servers is None:
            raise TrialError("the servers were not prepared")
        return self._servers


def _check_larger_pools(page_bytes: int) -> None:
    """ArmError where larger pages are free: MariaDB takes the largest that fits, and those belong to others."""
    for pool in _SYSFS.glob("hugepages/hugepages-*kB"):
        size = int(pool.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        if size > page_bytes and int((pool / "free_hugepages").read_text(encoding="ascii")):
            raise ArmError(f"free pages of {format_bytes(size)} are there, which MariaDB would take first")


def _check_thp() -> None:
    try:
        text = (_SYSFS / "transparent_hugepage" / "enabled").read_text(encoding="ascii")
    except OSError as problem:
        raise ArmError("this kernel has no transparent huge pages") from problem
    if "[always]" not in text:
        raise ArmError("MariaDB gets transparent huge pages only where transparent_hugepage/enabled is always")
