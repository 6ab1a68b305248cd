"""The process of one job: ``python -m hugeplan.fleet_plans.worker``, with the database in HUGEPLAN_DATABASE_URL.

The job's id comes as a line on standard input, so that the process can be made ready before there is a job.

It reads some hundred nodes at a time and hands them to processes that plan them; no transaction is open meanwhile. The
results are written in one transaction. Whenever it says how far it is it looks for a request to cancel.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from hugeplan.db.engine import create_engine
from hugeplan.db.models import FleetPlanRow
from hugeplan.db.session import Database
from hugeplan.documents.decoding import struct_of
from hugeplan.documents.report import Inventory, Sample
from hugeplan.events.records import Event, write_events
from hugeplan.fleet.selector import NodeSelector
from hugeplan.fleet.stored import AT_ONCE, StoredNode, read_nodes
from hugeplan.fleet_plans import repository
from hugeplan.fleet_plans.lines import GroupPlan, LinePlanner, Lines, summary_of
from hugeplan.hardware import catalogue
from hugeplan.planner.model import MIB
from hugeplan.sandbox.process import limit_memory
from hugeplan.scenario_file import ScenarioDocument
from hugeplan.settings import Settings
from hugeplan.trials import service as trials

PROGRESS_SECONDS: Final = 0.2
NODES_AT_A_TIME: Final = 200
MOST_BYTES: Final = 16 * MIB
"""Of what is stored of them: a report may have megabytes, and those of some nodes are read ahead."""
NODES_OF_THE_LIMIT: Final = 10_000
"""So many nodes, or fewer, have the processor time of the setting; more have it in proportion."""
LESS_URGENT: Final = 5
"""Niceness: requests of the service come first."""
PR_SET_PDEATHSIG: Final = 1
"""prctl(2): no process that plans outlives its job."""
_TOO_LONG: Final = "It takes more than {:g} s of processor time (HUGEPLAN_FLEET_PLAN_CPU_SECONDS)."
_TOO_LARGE: Final = "A process needed more than {} MiB of memory (HUGEPLAN_FLEET_PLAN_MEMORY_BYTES), or was killed."
_LESS: Final = " Select fewer nodes, or plan fewer databases at a time."


class CancelledError(Exception):
    """Somebody asked the job to end."""


class _Planners:
    """The processes that plan, forked from this one, whose modules are read."""

    _own: LinePlanner

    def __init__(self, scenario: ScenarioDocument | None, nodes: int, seconds: float) -> None:
        """``seconds``: of processor time that the job has. A half is for each node's share, a quarter for those that
        take more, and the rest for reading and storing."""
        self.processes = max(1, min(os.cpu_count() or 1, -(-nodes // NODES_AT_A_TIME)))
        shares = seconds / 4 / self.processes, seconds / 2 / max(1, nodes)
        self._pool = ProcessPoolExecutor(
            self.processes, multiprocessing.get_context("fork"), initializer=self._begin, initargs=(scenario, *shares)
        )

    @classmethod
    def _begin(cls, scenario: ScenarioDocument | None, saved_seconds: float, seconds_per_node: float) -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        cls._own = LinePlanner(scenario, saved_seconds=saved_seconds, seconds_per_node=seconds_per_node)

    @classmethod
    def _lines(cls, nodes: list[StoredNode]) -> Lines:
        return cls._own.lines(nodes)

    def start(self, nodes: list[StoredNode]) -> asyncio.Future[Lines]:
        """Plan some nodes."""
        return asyncio.get_running_loop().run_in_executor(self._pool, self._lines, nodes)

    def close(self) -> None:
        """End the processes; what they have begun is lost."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.kill()


class Job:
    """One job."""

    def __init__(self, database: Database, settings: Settings, job_id: UUID) -> None:
        self._database = database
        self._settings = settings
        self._job_id = job_id
        self._last_said = 0.0
        self._started = time.monotonic()
        self._had_seconds = _cpu_seconds()
        self._most_seconds = settings.fleet_plan_cpu_seconds
        self._rows: list[dict[str, Any]] = []
        self._numbers: dict[Hashable, int] = {}
        self._plans: list[GroupPlan] = []
        self._cut_nodes = 0

    async def run(self, limit: Callable[[float], None] = lambda _: None) -> None:
        """Plan, and store the results or why there are none. ``limit`` learns how much processor time there is."""
        async with self._database.write() as session:
            row = await repository.begin_job(session, self._job_id, datetime.now(UTC))
        if row is None:  # cancelled before its turn
            return
        self._most_seconds *= max(1.0, row.nodes_total / NODES_OF_THE_LIMIT)
        limit(self._most_seconds)
        try:
            await self._plan(row)
        except CancelledError:
            await self._end("cancelled", None)
        except ValueError as error:
            await self._end("failed", str(error)[:2000])
        except (MemoryError, BrokenProcessPool):
            self._rows, self._numbers, self._plans = [], {}, []
            await self._end("failed", _TOO_LARGE.format(self._settings.fleet_plan_memory_bytes // MIB) + _LESS)

    async def _end(self, status: str, error: str | None) -> None:
        async with self._database.write() as session:
            await repository.end_job(session, self._job_id, datetime.now(UTC), status=status, error=error)

    async def _say(self, *, now: bool = False) -> None:
        """Tell how far it is, a few times per second. CancelledError when somebody asked to end it."""
        if not now and time.monotonic() - self._last_said < PROGRESS_SECONDS:
            return
        self._last_said = time.monotonic()
        if _cpu_seconds() - self._had_seconds > self._most_seconds:
            raise ValueError(_TOO_LONG.format(self._most_seconds) + _LESS)
        done, planned = len(self._rows), sum(row["group_number"] is not None for row in self._rows)
        async with self._database.write() as session:
            goes_on = await repository.say_progress(
                session, self._job_id, datetime.now(UTC), nodes_done=done, plans_computed=planned
            )
        if not goes_on:
            raise CancelledError

    async def _plan(self, row: FleetPlanRow) -> None:
        scenario = None if row.scenario is None else ScenarioDocument.model_validate(row.scenario)
        planners = _Planners(scenario, row.nodes_total, self._most_seconds)
        try:
            await self._add_lines(planners, NodeSelector.model_validate(row.selector))
        finally:
            planners.close()
        planned = sum(row["group_number"] is not None for row in self._rows)
        if scenario is not None and self._cut_nodes > planned:  # what takes long is what was asked for
            raise ValueError(_TOO_LONG.format(self._most_seconds) + _LESS)
        await self._say(now=True)
        await self._store(row.name)

    async def _add_lines(self, planners: _Planners, selector: NodeSelector) -> None:
        """The lines in the order of names; one chunk more than there are processes is read ahead."""
        waiting: list[asyncio.Future[Lines]] = []
        async for nodes in self._nodes(selector):
            waiting.append(planners.start(nodes))
            while len(waiting) > planners.processes:
                self._add(await self._heard(waiting.pop(0)))
        for lines in waiting:
            self._add(await self._heard(lines))

    async def _heard(self, lines: asyncio.Future[Lines]) -> Lines:
        """The lines when they are there, with a word now and then while they are not."""
        while not lines.done():
            await asyncio.wait([lines], timeout=PROGRESS_SECONDS)
            await self._say()
        return lines.result()

    async def _nodes(self, selector: NodeSelector) -> AsyncIterator[list[StoredNode]]:
        after: tuple[str, UUID] | None = None
        while True:
            async with self._database.read() as session:
                nodes = await read_nodes(session, selector, after=after, limit=NODES_AT_A_TIME, most_bytes=MOST_BYTES)
                nodes = await trials.with_trials_of_each(session, nodes)
            if nodes:
                yield nodes
            if not nodes or len(nodes) % AT_ONCE:
                return
            after = (nodes[-1].name, nodes[-1].id)

    def _add(self, lines: Lines) -> None:
        self._cut_nodes += lines.cut_nodes
        for group, plan in lines.plans.items():
            number = self._numbers.setdefault(group, len(self._plans))
            if number == len(self._plans):
                self._plans.append(plan)
            else:
                before = self._plans[number]
                first = plan if plan.order < before.order else before
                self._plans[number] = replace(first, figures=before.figures + plan.figures)
        self._rows += (row | {"group_number": self._numbers.get(row["group_number"])} for row in lines.rows)

    async def _store(self, name: str) -> None:
        sizes = Counter(row["group_number"] for row in self._rows)
        rows = sorted(self._rows, key=lambda row: (-row["severity"], row["name"], str(row["node_id"])))
        groups = [
            {
                "number": number,
                "nodes": sizes[number],
                "machine_type": plan.machine_type,
                "headline": plan.headline,
                "pools": plan.pools,
                "plan": plan.plan,
                "files_key": plan.files_key,
                "figures": plan.figures.as_stored(),
            }
            for number, plan in enumerate(self._plans)
        ]
        summary = summary_of(rows, len(groups), time.monotonic() - self._started)
        text = f"The fleet plan {name} is done: {len(rows):,} nodes, {summary['nodes_wrong']:,} wrong."
        now = datetime.now(UTC)
        async with self._database.write() as session:
            await repository.add_results(session, self._job_id, groups, rows)
            await repository.end_job(session, self._job_id, now, status="done", summary=summary)
            await repository.measure_job(session, self._job_id)
            write_events(session, [Event(at=now, kind="fleet_plan_finished", text=text)])


def _cpu_seconds() -> float:
    """Processor time so far of this process and of those that plan for it."""
    found = time.process_time()
    for process in multiprocessing.active_children():
        with suppress(OSError):  # it has ended; the kernel's number of the clock is that of clock_getcpuclockid(3)
            found += time.clock_gettime(~(process.pid or 0) << 3 | 2)
    return found


async def _run(job_id: UUID) -> None:
    settings = Settings()
    # Those that it forks have these limits, too. A job finds its processor time itself while others plan for it.
    limit_memory(settings.fleet_plan_memory_bytes)
    database = Database(create_engine(settings))
    try:
        await Job(database, settings, job_id).run(_limit_seconds)
    finally:
        await database.dispose()


def _limit_seconds(seconds: float) -> None:
    """The kernel's end of what does not end itself; of those that it forks, too."""
    most = int(seconds) + 10
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def main() -> int:
    """Run the job that is named on standard input; nothing where that ends without one."""
    os.nice(LESS_URGENT)
    struct_of(Inventory)
    struct_of(Sample)
    catalogue.catalogue()
    # What was made so far stays, and facts of nodes have no cycles: looking for some took a tenth of a large job.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    named = sys.stdin.readline().strip()
    if named:
        asyncio.run(_run(UUID(named)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
