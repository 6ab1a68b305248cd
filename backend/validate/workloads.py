"""The three measured cases: one client, several clients, and a nested loop inside the server.

Every connection first touches all of the data itself, so that its own page tables are complete; all wait at a
barrier and start together. Each second is a slice with its throughput and its CPU time per operation (server and
client). CPU time per operation is what the model predicts: throughput per busy core, without waiting. A neighbour on
the machine can only make a slice worse, so the better quartile of the slices stands for the undisturbed machine.
"""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from validate.server import BLOCK_BYTES, NARROW_ROW_BYTES, Server, kernel_page_bytes

BARRIER = 4711
PROGRESS = re.compile(r"progress: [\d.]+ s, ([\d.]+) tps")


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its name, pgbench clients (0: a nested loop inside the server), and the CPUs it may use."""

    name: str
    clients: int
    cpus: tuple[int, ...]

    @property
    def operation_class(self) -> str:
        """The planner's word for the operation."""
        return "key_lookup" if self.clients else "nested_loop"


@dataclass(frozen=True, slots=True)
class Measurement:
    """Slices of one case in one server start: operations per second, and ns of CPU time per operation."""

    rates: tuple[float, ...]
    cpu_ns: tuple[float, ...]
    page_bytes: int

    @property
    def rate(self) -> float:
        """Upper quartile of the slices' throughput."""
        return _quartile(self.rates, 2)

    @property
    def cpu_ns_per_operation(self) -> float:
        """Lower quartile of the slices' CPU time per operation."""
        return _quartile(self.cpu_ns, 0)


def _quartile(values: Sequence[float], index: int) -> float:
    return statistics.quantiles(values, n=4)[index] if len(values) > 1 else values[0]


def cases(clients: Sequence[int], *, nested_loop: bool) -> tuple[Case, ...]:
    """One client and the nested loop stay on one CPU, so that their rate is the rate of one busy core."""
    online = sorted(os.sched_getaffinity(0))
    alone = (online[-1],)
    made = [Case(f"{n} client{'s' if n > 1 else ''}", n, alone if n == 1 else tuple(online)) for n in clients]
    return (*made, *((Case("nested loop", 0, alone),) if nested_loop else ()))


def measure(server: Server, case: Case, seconds: int) -> Measurement:
    """Run one case on the running server."""
    return _pgbench(server, case, seconds) if case.clients else _nested_loop(server, case, seconds)


def _read(server: Server) -> str:
    """An aggregate that reads the row: out-of-line rows are fetched only when their text is looked at."""
    return "count(r.payload)" if server.shape.row_bytes <= NARROW_ROW_BYTES else "max(right(r.payload, 1))"


def _warm_sql(server: Server) -> str:
    """Look up a row of every heap block and every leaf of the index, in key order."""
    step = max(1, BLOCK_BYTES // (server.shape.row_bytes + 36) // 2)
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


def _cpu_ns(pids: Sequence[int]) -> int:
    """CPU time of processes with all their threads, from the scheduler's own account."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            total += int(task.read_text(encoding="ascii").split()[0])
    return total


def _pin(pids: Sequence[int], cpus: Sequence[int]) -> None:
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cpus)


def _wait(condition: Callable[[], bool], what: str, limit_seconds: float = 600.0) -> None:
    """Poll a condition; running out of time is an error that names it."""
    end = time.monotonic() + limit_seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not happen within {limit_seconds:g} s")
        time.sleep(0.05)


def _pgbench(server: Server, case: Case, seconds: int) -> Measurement:
    rows = server.shape.rows
    script = server.folder / "lookup.sql"
    script.write_text(
        f"\\if :ready\n\\set id random(1, {rows})\nselect payload from rows where id = :id;\n\\else\n"
        f"{_warm_sql(server)};\nselect pg_advisory_lock_shared({BARRIER});\n\\set ready 1\n\\endif\n",
        encoding="utf-8",
    )
    threads = min(case.clients, len(case.cpus))
    command = server.command(
        "pgbench", "-h", str(server.folder), "-U", "postgres", "-n", "-M", "prepared", "-D", "ready=0"
    )
    command += ["-f", str(script), "-c", str(case.clients), "-j", str(threads), "-T", "3600", "-P", "1", "postgres"]
    with server.connect() as control:
        control.execute("select pg_advisory_lock(%s)", (BARRIER,))
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as client:  # noqa: S603
            try:
                waiting = "select pid from pg_locks where locktype = 'advisory' and not granted"
                _wait(
                    lambda: client.poll() is not None or len(control.execute(waiting).fetchall()) == case.clients,
                    "every client waiting at the barrier",
                )
                backends = [int(str(row[0])) for row in control.execute(waiting).fetchall()]
                pids = [*backends, client.pid]
                _pin(pids, case.cpus)
                page_bytes = kernel_page_bytes(backends[0])
                control.execute("select pg_advisory_unlock(%s)", (BARRIER,))
                rates, cpu_ns = _slices(client, pids, seconds)
            finally:
                client.send_signal(signal.SIGTERM)
    return Measurement(rates, cpu_ns, page_bytes)


def _slices(
    client: subprocess.Popen[str], pids: Sequence[int], seconds: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Throughput and CPU time of whole seconds after the barrier opened.

    The first two lines of pgbench span the barrier and the ramp and are passed over.
    """
    rates: list[float] = []
    cpu_ns: list[float] = []
    passed_over, before = 0, 0
    opened = time.monotonic()
    for line in client.stderr or ():
        match = PROGRESS.search(line)
        if match is None or time.monotonic() - opened < 1.0:
            continue
        now = _cpu_ns(pids)
        if passed_over < 2:
            passed_over += 1
        else:
            rates.append(float(match[1]))
            cpu_ns.append((now - before) / max(1.0, float(match[1])))
        before = now
        if len(rates) == seconds:
            return tuple(rates), tuple(cpu_ns)
    raise RuntimeError("pgbench ended before its time; see the server's log")


def _nested_loop(server: Server, case: Case, seconds: int) -> Measurement:
    with server.connect() as connection:
        for name in ("memoize", "hashjoin", "mergejoin"):
            connection.execute(f"set enable_{name} = off")
        connection.execute("set max_parallel_workers_per_gather = 0")
        pid = connection.info.backend_pid
        _pin([pid], case.cpus)
        connection.execute(_warm_sql(server))
        page_bytes = kernel_page_bytes(pid)

        def lookups(count: int, seed: int) -> float:
            begin = time.perf_counter()
            connection.execute(_lookups_sql(server), (count, seed))
            return time.perf_counter() - begin

        lookups(10_000, 1)
        count = max(10_000, int(100_000 / lookups(100_000, 2)))  # about a second's worth
        rates, cpu_ns = [], []
        for turn in range(seconds):
            before = _cpu_ns([pid])
            rates.append(count / lookups(count, 3 + turn))
            cpu_ns.append((_cpu_ns([pid]) - before) / count)
        return Measurement(tuple(rates), tuple(cpu_ns), page_bytes)
