"""Clients of a private MariaDB: sysbench runs on each CPU, whose threads wait between batches.

A client and its thread of the server stay on one CPU. Where the kernel places them, an answer that wakes another CPU
costs a guest twice the CPU time of the lookup, and batches differ by 15 % (measured 2026-11-27, MariaDB 10.11 on a
Zen 4 guest with 2 cores: 80 us per lookup, 30 us on one CPU).
"""

from __future__ import annotations

import os
import select
import shutil
import struct
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO, Final, Self

from hugeplan.measuring.batches import Batch, clients_per_cpu
from hugeplan.measuring.mariadb_server import MariadbError, MariadbServer, cpu_ns, last_error
from hugeplan.measuring.user_programs import apart, created, ended

_NOTHING, _SCAN = 0, -1
"""Orders to a client; a positive number is how many lookups its batch has."""

_ORDER: Final = struct.Struct("=q")
_DONE: Final = struct.Struct("=dd")
"""What a client says once it is connected and after each batch: when it began and ended, s."""

_ROUNDED: Final = 1e-3
"""Of a moment, s: LuaJIT's double and Python's may differ in the last place."""

_BATCH_SECONDS: Final = 600.0
SCRIPT: Final = """\
local ffi = require("ffi")
ffi.cdef[[
  typedef struct { long seconds; long nanoseconds; } moment;
  long read(int, void *, size_t);
  long write(int, const void *, size_t);
  int clock_gettime(int, moment *);
  void _exit(int);
]]
sysbench.cmdline.options = {
  rows = {"rows", 1000}, even = {"pipe of orders", 0}, odd = {"the other one", 0}, done = {"pipe of answers", 0}
}
local order, said, now = ffi.new("long[1]"), ffi.new("double[2]"), ffi.new("moment[1]")
local left, batches, began = 0, 0, 0
local function clock()
  ffi.C.clock_gettime(1, now)
  return tonumber(now[0].seconds) + tonumber(now[0].nanoseconds) * 1e-9
end
local function answer()
  said[0], said[1] = began, clock()
  ffi.C.write(sysbench.opt.done, said, 16)
end
function thread_init()
  con = sysbench.sql.driver():connect()
  stmt = con:prepare("SELECT payload FROM `rows` WHERE id = ?")
  id = stmt:bind_create(sysbench.sql.type.INT)
  stmt:bind_param(id)
  answer()
end
function event()
  if left == 0 then
    -- Who is quick waits at the other pipe: no client takes two orders of a batch.
    local pipe = batches % 2 == 0 and sysbench.opt.even or sysbench.opt.odd
    if ffi.C.read(pipe, order, 8) ~= 8 then ffi.C._exit(0) end
    batches = batches + 1
    began, left = clock(), tonumber(order[0])
    if left < 0 then con:query("SELECT SUM(LENGTH(payload)) FROM `rows`") end
    if left <= 0 then left = 0 answer() return end
  end
  id:set(sysbench.rand.uniform(1, sysbench.opt.rows))
  stmt:execute()
  left = left - 1
  if left == 0 then answer() end
end
"""


def find_sysbench() -> str:
    """The client. MariadbError where it is not installed."""
    found = shutil.which("sysbench")
    if found is None:
        raise MariadbError("sysbench is not installed; it is in Debian's, Ubuntu's and EPEL's packages")
    return found


class Sysbench:
    """Lookups of random keys, ``events`` by each client per batch. Connected while it is entered."""

    def __init__(self, server: MariadbServer, clients: int, sysbench: str) -> None:
        self.server, self.clients, self.sysbench = server, clients, sysbench
        self.events = 0
        self._runs: list[tuple[subprocess.Popen[bytes], BinaryIO]] = []
        self._batches = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Connect all clients. MariadbError."""
        with ExitStack() as stack:
            stack.callback(self._end)
            pipes = [pipe.fileno() for pipe in self._made(stack)]
            cpus = sorted(os.sched_getaffinity(0))
            for cpu, count in clients_per_cpu(self.clients, cpus).items():
                # A thread of the server starts on the CPUs of the one that accepts connections.
                os.sched_setaffinity(self.server.pid, {cpu})
                self._runs.append(self._start(cpu, count, pipes))
                self._answers(count, 0.0)
            os.sched_setaffinity(self.server.pid, cpus)
            self._stack = stack.pop_all()
        return self

    def _made(self, stack: ExitStack) -> tuple[BinaryIO, BinaryIO, BinaryIO]:
        """The clients' ends of the pipes."""
        even, self._even = _pipe(stack)
        odd, self._odd = _pipe(stack)
        self._done, done = _pipe(stack)
        for orders in (self._even, self._odd):
            os.set_blocking(orders.fileno(), False)  # who does not read them holds nobody up
        return even, odd, done

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def read_all(self) -> None:
        """Read the whole table into the buffer pool."""
        self._order([_SCAN] + [_NOTHING] * (self.clients - 1))

    def batch(self) -> Batch:
        before = self._cpu_ns()
        answers = self._order([self.events] * self.clients)
        used, events = self._cpu_ns() - before, self.events * self.clients
        seconds = max(end for _, end in answers) - min(begin for begin, _ in answers)
        return Batch(events / max(seconds, 1e-6), used / events)

    def _cpu_ns(self) -> int:
        return cpu_ns([self.server.pid, *(process.pid for process, _ in self._runs)])

    def _order(self, orders: Sequence[int]) -> list[tuple[float, float]]:
        pipe = self._odd if self._batches % 2 else self._even
        self._batches += 1
        words, began = b"".join(map(_ORDER.pack, orders)), time.monotonic()
        if pipe.write(words) != len(words):
            raise MariadbError("sysbench: its clients do not take what they are told")
        return self._answers(len(orders), began)

    def _answers(self, count: int, since: float) -> list[tuple[float, float]]:
        """What so many clients say. MariadbError: a run of theirs has ended, or they say nothing for long, or a time
        that is none since ``since`` (of the same clock, s): any program of the server's user may say it."""
        said, until = b"", time.monotonic() + _BATCH_SECONDS
        while len(said) < count * _DONE.size:
            if select.select([self._done], [], [], 0.1)[0]:
                said += self._done.read(count * _DONE.size - len(said))
                continue
            for process, output in self._runs:
                if process.poll() is not None or time.monotonic() > until:
                    output.seek(0)
                    raise MariadbError(f"sysbench: {last_error(output.read(1 << 20).decode('utf-8', 'replace'))}")
        now = time.monotonic()
        if not all(since - _ROUNDED <= begin <= end <= now + _ROUNDED for begin, end in _DONE.iter_unpack(said)):
            raise MariadbError("sysbench: its clients say times at which they cannot have worked")
        return [(begin, end) for begin, end in _DONE.iter_unpack(said)]

    def _start(self, cpu: int, count: int, pipes: list[int]) -> tuple[subprocess.Popen[bytes], BinaryIO]:
        script = self.server.folder / f"lookups-{cpu}.lua"
        with created(self.server.held / script.name) as file:
            file.write(SCRIPT.encode())
        words = [
            *("taskset", "-c", str(cpu), self.sysbench, str(script)),
            "--db-driver=mysql",
            f"--mysql-socket={self.server.socket}",
            "--mysql-user=root",
            "--mysql-db=trial",
            f"--threads={count}",
            "--events=0",
            "--time=0",
            f"--rows={self.server.rows}",
            *(f"--{name}={pipe}" for name, pipe in zip(("even", "odd", "done"), pipes, strict=True)),
            "run",
        ]
        output = created(self.server.held / f"sysbench-{cpu}.log")
        process = subprocess.Popen(  # noqa: S603 - our own command line, as the owner of the script
            self.server.command(*words), stdout=output, stderr=output, pass_fds=pipes, **apart()
        )
        return process, output

    def _end(self) -> None:
        for process, output in self._runs:
            process.kill()
            ended(process)
            output.close()
        self._runs.clear()


def _pipe(stack: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """The end that is read and the one that is written, without buffers."""
    reading, writing = os.pipe()
    return stack.enter_context(os.fdopen(reading, "rb", 0)), stack.enter_context(os.fdopen(writing, "wb", 0))
