"""Two page sizes in turns: side by side on two servers where memory allows, else one server started twice."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from hugeplan.measuring.batches import Batch, Pair, alternate
from hugeplan.measuring.pools import reserved
from hugeplan.measuring.postgresql_clients import Case, Workers, workers
from hugeplan.measuring.postgresql_server import Server, ServerError

Pairs = Mapping[str, Sequence[Pair]]


@dataclass(frozen=True, slots=True)
class Bench:
    """The servers (one or two), the cases and the huge pages the second start of a round may use."""

    servers: tuple[Server, ...]
    cases: tuple[Case, ...]
    page_bytes: int
    pages: int
    batches: int

    def run(self, second: str, *, swapped: bool = False) -> Pairs:
        """One round: ``huge_pages = off`` against ``off`` or ``on``, pairs by case.

        ``swapped`` gives the other server the huge pages, so that no difference between the two favours a page size.
        """
        return self._side_by_side(second, swapped) if len(self.servers) == 2 else self._in_turn(second)

    def _side_by_side(self, second: str, swapped: bool) -> Pairs:
        base, other = reversed(self.servers) if swapped else self.servers
        with ExitStack() as stack:
            self._start(stack, base, "off")
            self._start(stack, other, second)
            return {case.name: self._alternate(case, base, other, second) for case in self.cases}

    def _alternate(self, case: Case, base: Server, other: Server, second: str) -> list[Pair]:
        with workers(base, case) as first_workers, workers(other, case) as second_workers, ExitStack() as stack:
            self._check(first_workers, "off")
            self._check(second_workers, second)
            stack.enter_context(others_kept_away(case))
            return alternate(first_workers, second_workers, self.batches)

    def _in_turn(self, second: str) -> Pairs:
        runs = []
        for mode in ("off", second):
            with ExitStack() as stack:
                self._start(stack, self.servers[0], mode)
                runs.append({case.name: self._batches(case, mode) for case in self.cases})
        return {
            case.name: [Pair(a, b) for a, b in zip(runs[0][case.name], runs[1][case.name], strict=True)]
            for case in self.cases
        }

    def _batches(self, case: Case, mode: str) -> list[Batch]:
        with workers(self.servers[0], case) as made:
            self._check(made, mode)
            with others_kept_away(case):
                return [made.batch() for _ in range(self.batches)]

    def _start(self, stack: ExitStack, server: Server, mode: str) -> None:
        if mode == "on":
            stack.enter_context(reserved(self.page_bytes, self.pages, drop_caches=True))
        stack.enter_context(server.running(mode))
        server.prewarm()

    def _check(self, made: Workers, mode: str) -> None:
        expected = self.page_bytes if mode == "on" else os.sysconf("SC_PAGE_SIZE")
        if made.page_bytes != expected:
            raise ServerError(f"the server runs on {made.page_bytes}-byte pages, {expected} were asked for")


@contextmanager
def others_kept_away(case: Case) -> Iterator[None]:
    """For an exclusive case, occupy the CPUs it does not use, so that nobody shares its caches meanwhile."""
    idle = sorted(os.sched_getaffinity(0) - set(case.cpus)) if case.exclusive else []
    spinners = []
    try:
        for cpu in idle:
            words = ["chrt", "-f", "5", "taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]
            spinners.append(subprocess.Popen(words))  # noqa: S603 - our own command line
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
