"""The measured cases: pgbench clients that look up random keys, and a nested loop inside the server.

Every connection first touches all of the data itself, so that its own page tables are complete. Then it works in
batches of a known number of lookups, each opened by the measurement, so that two servers can take turns batch by
batch and a drift of the machine meets both alike. A batch gives throughput and CPU time per operation (server and
client). CPU time is what the model predicts: throughput per busy core, without waiting.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from hugeplan.measuring.batches import Batch, clients_per_cpu
from hugeplan.measuring.postgresql_server import BLOCK_BYTES, NARROW_ROW_BYTES, Server, ServerError, kernel_page_bytes
from hugeplan.measuring.user_programs import apart, cpu_ns_of, created, ended, text_of

GATE = 4711
PGBENCH_LOG = "pgbench.log"
EXPECTED_LOOKUP_NS, EXPECTED_NS_PER_ROW_BYTE = 20_000.0, 2.0
"""For the size of a pgbench batch alone."""

DRIVER_LOOKUP_NS = 150_000.0
"""The same for lookups through Python's driver."""

BATCH_SECONDS = 0.1
"""Wanted length of a pgbench batch on a quiet machine; other work on it makes it two to four times as long. Many short
batches in turns tell two page sizes apart where neighbours change an operation's cost from second to second."""

FAULT_AROUND_STRIDE_BYTES = 48 * 1024
"""Kernels map 64 KiB around a read fault (``fault_around_bytes``): a row per 48 KiB completes a page table."""
COMPLETE_SHARE = 0.9
"""Share of the data that a connection on base pages must have mapped before it is measured."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its name, pgbench clients (0: a nested loop inside the server), and the CPUs it may use.

    ``exclusive``: real-time priority, and nobody else on the other CPUs while batches run (a shared machine).
    """

    name: str
    clients: int
    cpus: tuple[int, ...]
    exclusive: bool = False

    @property
    def operation_class(self) -> str:
        """The planner's word for the operation."""
        return "key_lookup" if self.clients else "nested_loop"


class Workers(Protocol):
    """Warm connections of one case on one server; ``pids`` begins with a process of the server."""

    page_bytes: int
    pids: list[int]

    def batch(self) -> Batch:
        """Run one batch and measure it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def cases(clients: Sequence[int], *, nested_loop: bool, exclusive: bool = False) -> tuple[Case, ...]:
    """One client and the nested loop stay on one CPU, so that their rate is the rate of one busy core."""
    online = tuple(sorted(os.sched_getaffinity(0)))
    alone = online[-1:]
    made = [Case(f"{n} client{'s' if n > 1 else ''}", n, alone if n == 1 else online, exclusive) for n in clients]
    return (*made, *((Case("nested loop", 0, alone, exclusive),) if nested_loop else ()))


def _application(cpu: int) -> str:
    return f"hugeplan validate cpu {cpu}"


def workers(server: Server, case: Case) -> Workers:
    """Connections of a case on a running server, warmed when entered."""
    return Pgbench(server, case) if case.clients else NestedLoop(server, case)


def _read(server: Server) -> str:
    """An aggregate that reads the row: out-of-line rows are fetched only when their text is looked at."""
    return "count(r.payload)" if server.shape.row_bytes <= NARROW_ROW_BYTES else "max(right(r.payload, 1))"


def _warm_sql(server: Server, every_bytes: int) -> str:
    """Look up one row per ``every_bytes`` of data, in key order; index leaves lie closer together than that."""
    step = max(1, every_bytes // (server.shape.row_bytes + 36))
    return (
        f"select {_read(server)} from generate_series(1, {server.shape.rows}, {step}) g(id) "  # noqa: S608 - our integers
        "cross join lateral (select payload from rows where rows.id = g.id offset 0) r"
    )


def _lookups_sql(server: Server) -> str:
    """A nested loop of random key lookups; parameters: number of lookups, seed."""
    return (
        f"select {_read(server)} from generate_series(1, %s) g(id) cross join lateral (select payload from rows "  # noqa: S608 - integers
        f"where rows.id = 1 + (hashint8extended(g.id, %s) & 9223372036854775807) %% {server.shape.rows} offset 0) r"
    )


def _is_complete(pid: int, server: Server) -> bool:
    """Whether a connection on base pages has mapped the data. (Huge pages in shared tables are counted to nobody.)"""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("RssShmem:"):
            return int(line.split()[1]) * 1024 >= COMPLETE_SHARE * server.data_bytes()
    return True


def _cpu_ns(pids: Sequence[int]) -> int:
    """CPU time of processes with all their threads. ServerError where one has ended."""
    try:
        return sum(map(cpu_ns_of, pids))
    except OSError as problem:
        raise ServerError("a program ended while it was measured") from problem


def _pin(pids: Sequence[int], cpus: Sequence[int], *, exclusive: bool) -> None:
    """Keep processes on CPUs; exclusive ones also run before everything of ordinary priority."""
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cpus)
            if exclusive:
                os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(10))


def _wait(condition: Callable[[], bool], what: str, limit_seconds: float = 600.0) -> None:
    """Poll a condition; running out of time is an error that names it."""
    end = time.monotonic() + limit_seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not happen within {limit_seconds:g} s")
        time.sleep(0.02)


class Pgbench:
    """pgbench clients that stop at a gate, an advisory lock, after each batch.

    The measurement holds the lock alone. Letting go of it admits every waiting client; asking for it again waits
    until all have passed, and whoever finishes its batch waits behind.

    Every CPU has a pgbench of its own for its share of the clients, and their backends stay there too. Left to the
    scheduler, a client and its backend sit together or apart for seconds at a time, and an operation's CPU time
    differs by a third between the two.
    """

    page_bytes: int
    pids: list[int]
    warm_stride_bytes = FAULT_AROUND_STRIDE_BYTES
    mode = "prepared"

    def __init__(self, server: Server, case: Case) -> None:
        self.server, self.case = server, case
        expected_ns = EXPECTED_LOOKUP_NS + EXPECTED_NS_PER_ROW_BYTE * server.shape.row_bytes
        self.per_client = max(50, int(BATCH_SECONDS * 1e9 / expected_ns * len(case.cpus) / case.clients))
        self.clients: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.control = self.server.connect()
        try:
            self._warm_up()
        except BaseException:
            self._stop()
            self.control.close()
            raise
        return self

    def _warm_up(self) -> None:
        case = self.case
        self.control.execute("select pg_advisory_lock(%s)", (GATE,))
        backends = self._started()
        self.page_bytes = kernel_page_bytes(backends[0])
        if self.page_bytes == os.sysconf("SC_PAGE_SIZE") and not self._is_warm(backends[0]):
            # No fault-around here: every block is read, which takes eight times as long.
            self._stop()
            self.warm_stride_bytes = BLOCK_BYTES // 2
            backends = self._started()
        self.pids = [*backends, *(client.pid for client in self.clients.values())]
        for cpu, client in self.clients.items():
            _pin([*self._backends_of(cpu), client.pid], [cpu], exclusive=case.exclusive)
        self.batch()

    def _started(self) -> list[int]:
        """Every CPU's pgbench with its clients at the gate; process ids of the backends."""
        script = self.server.folder / "lookup.sql"
        with created(self.server.held / script.name) as file:
            file.write(self._script().encode())
        with created(self.server.held / PGBENCH_LOG) as log:
            for cpu, count in clients_per_cpu(self.case.clients, self.case.cpus).items():
                self.clients[cpu] = self._start(script, cpu, count, log)
        return self._wait_for_all()

    def _start(self, script: Path, cpu: int, count: int, log: BinaryIO) -> subprocess.Popen[bytes]:
        arguments = ["-h", str(self.server.folder), "-U", "postgres", "-n", "-M", self.mode, *self._variables()]
        arguments += ["-D", "warm=0", "-D", "left=0", "-f", str(script), "-c", str(count), "-j", "1", "-T", "36000"]
        command = self.server.command("pgbench", *arguments, "postgres")
        how = apart()
        how["env"]["PGAPPNAME"] = _application(cpu)
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, **how)  # noqa: S603 - our own words

    def _variables(self) -> list[str]:
        return []

    def _is_warm(self, backend: int) -> bool:
        return _is_complete(backend, self.server)

    def _backends_of(self, cpu: int) -> list[int]:
        query = "select pid from pg_stat_activity where application_name = %s"
        return [self.server.own(int(pid)) for (pid,) in self.control.numbers(query, (_application(cpu),))]

    def _script(self) -> str:
        return (
            f"\\if :left\n\\set left :left - 1\n\\set id random(1, {self.server.shape.rows})\n"
            "select payload from rows where id = :id;\n"
            f"\\elif :warm\nselect pg_advisory_lock_shared({GATE});\nselect pg_advisory_unlock_shared({GATE});\n"
            f"\\set left {self.per_client}\n\\else\n{_warm_sql(self.server, self.warm_stride_bytes)};\n"
            "\\set warm 1\n\\endif\n"
        )

    def _wait_for_all(self) -> list[int]:
        """Process ids of the clients' backends, once every one of them waits at the gate."""
        return [self.server.own(pid) for pid, _ in self._waiting()]

    def _waiting(self) -> list[tuple[int, float]]:
        """Every client's backend and the moment it came to the gate, in seconds of the server's clock."""
        query = (
            "select a.pid, extract(epoch from a.query_start)::float8 from pg_locks l join pg_stat_activity a"
            " on a.pid = l.pid where l.locktype = 'advisory' and not l.granted"
        )
        found: list[tuple[int, float]] = []

        def all_wait() -> bool:
            if any(client.poll() is not None for client in self.clients.values()):
                log = text_of(self.server.held / PGBENCH_LOG).strip()
                raise ServerError(
                    f"pgbench ended before its time: {log.splitlines()[-1] if log else 'it said nothing'}"
                )
            found[:] = [(int(pid), moment) for pid, moment in self.control.numbers(query, width=2)]
            return len(found) == self.case.clients

        _wait(all_wait, "every client waiting at the gate")
        return found

    def batch(self) -> Batch:
        """One batch, from the gate's opening to the moment the last client was back at it, by the server's clock.

        The moment is the server's own record. The poll that sees it comes up to 20 ms later, a fifth of a batch.
        """
        before = _cpu_ns(self.pids)
        opened = "select extract(epoch from clock_timestamp())::float8, pg_advisory_unlock(%s)::int"
        moments = [moment for moment, _ in self.control.numbers(opened, (GATE,), width=2)]
        self.control.execute("select pg_advisory_lock(%s)", (GATE,))
        ended = max(moment for _, moment in self._waiting())
        operations, seconds = self.per_client * self.case.clients, ended - max(moments, default=ended)
        if not 1e-6 < seconds < 1e6:
            raise ServerError(f"the server's clock says that a batch took {seconds:g} s")
        return Batch(operations / seconds, (_cpu_ns(self.pids) - before) / operations)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self.control.close()

    def _stop(self) -> None:
        for client in self.clients.values():
            client.send_signal(signal.SIGTERM)
        for client in self.clients.values():
            ended(client)
        if self.control.closed:
            return  # the server ends, and its backends with it
        # A backend that waits for the gate does not see that its client is gone.
        names = [_application(cpu) for cpu in self.clients]
        query = "select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = any(%s)"
        self.control.execute(query, (names,))


class ScriptedPgbench(Pgbench):
    """Clients that run a user's pgbench script, ``per_client`` times in each batch."""

    mode = "simple"

    def __init__(self, server: Server, case: Case, script: str, per_client: int, scale: int | None) -> None:
        super().__init__(server, case)
        self.script, self.per_client, self.scale = script, per_client, scale

    def _script(self) -> str:
        return (
            f"\\if :left\n\\set left :left - 1\n{self.script}\n"
            f"\\elif :warm\nselect pg_advisory_lock_shared({GATE});\nselect pg_advisory_unlock_shared({GATE});\n"
            f"\\set left {self.per_client}\n\\else\n\\set warm 1\n\\endif\n"
        )

    def _variables(self) -> list[str]:
        return [] if self.scale is None else ["-D", f"scale={self.scale}"]

    def _is_warm(self, backend: int) -> bool:  # noqa: ARG002 - what the script touches is its own affair
        return True


class DriverClients:
    """Clients without pgbench: prepared lookups of random keys by psycopg, a thread of a process per connection.

    CPU time is the server's alone, since Python's own would hide it.
    """

    page_bytes: int

    def __init__(self, server: Server, case: Case) -> None:
        self.server, self.case = server, case
        self.per_client = max(50, int(BATCH_SECONDS * 1e9 / DRIVER_LOOKUP_NS * len(case.cpus) / case.clients))

    def __enter__(self) -> Self:
        self.connections = self.server.connect(count=self.case.clients)
        try:
            self.pids = [self.server.own(pid) for pid in self.connections.backend_pids]
            self.connections.execute_each(_warm_sql(self.server, BLOCK_BYTES // 2), [[None]] * self.case.clients)
            self.page_bytes = kernel_page_bytes(self.pids[0])
            for number, pid in enumerate(self.pids):
                _pin([pid], [self.case.cpus[number % len(self.case.cpus)]], exclusive=self.case.exclusive)
            self.draws = random.Random(1)  # noqa: S311 - keys, no secret
            self.batch()
        except BaseException:
            self.connections.close()
            raise
        return self

    def batch(self) -> Batch:
        every = range(1, self.server.shape.rows + 1)
        keys = [[[key] for key in self.draws.choices(every, k=self.per_client)] for _ in self.pids]
        before = _cpu_ns(self.pids)
        seconds = self.connections.execute_each("select payload from rows where id = %s", keys)
        operations = self.per_client * self.case.clients
        return Batch(operations / seconds, (_cpu_ns(self.pids) - before) / operations)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connections.close()


class NestedLoop:
    """One connection whose query is a nested loop of random key lookups inside the server."""

    page_bytes: int

    def __init__(self, server: Server, case: Case) -> None:
        self.server, self.case, self.seed = server, case, 0

    def __enter__(self) -> Self:
        self.connection = self.server.connect()
        for name in ("memoize", "hashjoin", "mergejoin"):
            self.connection.execute(f"set enable_{name} = off")
        self.connection.execute("set max_parallel_workers_per_gather = 0")
        self.pid = self.server.own(self.connection.backend_pids[0])
        self.pids = [self.pid]
        self.connection.execute(_warm_sql(self.server, BLOCK_BYTES // 2))
        _pin([self.pid], self.case.cpus, exclusive=self.case.exclusive)
        self.page_bytes = kernel_page_bytes(self.pid)
        self.count = 20_000
        self.count = max(10_000, int(self.batch().rate))  # about a second's worth
        return self

    def batch(self) -> Batch:
        self.seed += 1
        before, begin = _cpu_ns([self.pid]), time.perf_counter()
        self.connection.execute(_lookups_sql(self.server), (self.count, self.seed))
        seconds = time.perf_counter() - begin
        return Batch(self.count / seconds, (_cpu_ns([self.pid]) - before) / self.count)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()
