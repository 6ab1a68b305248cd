"""``python -m validate.matrix``: the matrix of row sizes and client counts, measured in parts that can be resumed.

A part is ``curves`` (this node's tlbbench document) or one round of one cell: base pages alone, for what
an operation costs; in the first round the prediction is then written down; then base pages beside huge pages, in turns.
Every finished part is saved, so that a run that was stopped goes on where it ended. ``--parts 1`` does one part and
returns, which keeps each of them short on a machine that others use. ``--report`` prints what there is.

A cell is a row size and a number of clients, once as CPU time per operation and once as plain throughput. Exit status
0: all parts are measured, nine of ten cells lie inside their range, and no range is wider than 20 points; 1: measured,
and not so; 3: parts are missing; 77: skipped, with the reason on the last line.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hugeplan.measuring.batches import Batch, Pair, alternate
from hugeplan.measuring.pools import CannotReserveError, reserved
from hugeplan.measuring.postgresql_clients import Case, cases, workers
from hugeplan.measuring.postgresql_server import GIB, Server, ServerError, Shape, find_programs, release_of
from hugeplan.measuring.workplace import remove
from hugeplan.planner.model import Range
from validate.compare import median_speedup, noise_of, predict
from validate.data_folder import data_folder
from validate.node_curves import CurvesError, measure_pressure, read_curves

CURVES = "curves"
BAR_SHARE, BAR_WIDTH_POINTS = 0.9, 20.0
MISSED, MISSING, SKIPPED = 1, 3, 77
HUGE_PAGE_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class Cell:
    """One case of the matrix with its prediction and what was measured: speed-ups (1.05: five per cent faster)."""

    row_bytes: int
    case: str
    predicted: Range
    noise: float
    cpu: float
    throughput: float
    pairs: int

    @property
    def width_points(self) -> float:
        """Width of the predicted range in points of throughput."""
        return 100.0 * (self.predicted.high - self.predicted.low)

    def holds(self, measured: float) -> bool:
        """Whether a measured speed-up lies in the predicted range, without any allowance for noise."""
        return self.predicted.low <= measured <= self.predicted.high


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts that are missing and print the cells."""
    options = _options(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    options.work_dir.mkdir(parents=True, exist_ok=True)
    try:
        missing = [] if options.report else _measure(options)
    except (CannotReserveError, CurvesError, ServerError) as error:
        print(f"SKIP: {error}")
        return SKIPPED
    state = _State(options.work_dir / "matrix.json")
    found = cells(state.parts)
    print(table(found))
    if missing or not found:
        return MISSING
    return 0 if meets_bar(found) else MISSED


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="validate.matrix", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", default="128,8192,16384", help="row sizes in bytes (default 128,8192,16384)")
    parser.add_argument("--clients", default="1,8,32,64", help="pgbench clients (default 1,8,32,64)")
    parser.add_argument("--data-gib", type=float, default=2.0, help="table and index together (default 2)")
    parser.add_argument("--pool-gib", type=float, default=2.5, help="shared_buffers (default 2.5)")
    parser.add_argument("--rounds", type=int, default=2, help="rounds; servers swap roles from one to the next")
    parser.add_argument("--batches", type=int, default=40, help="pairs of batches per cell and round (default 40)")
    parser.add_argument("--parts", type=int, default=1000, help="measure at most this many missing parts")
    parser.add_argument("--report", action="store_true", help="measure nothing; print what there is")
    parser.add_argument("--niceness", type=int, default=-10, help="priority of server and clients when root")
    parser.add_argument(
        "--exclusive",
        action="store_true",
        help="real-time priority for the batches, the highest for tlbbench: for a machine on which other work runs",
    )
    parser.add_argument("--bin-dir", dest="pg_bin", type=Path, help="folder with initdb, postgres and pgbench")
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--tlbbench", type=Path, default=root / "agent" / "build" / "tlbbench")
    parser.add_argument("--work-dir", type=Path, default=root / ".state" / "validate")
    return parser.parse_args(arguments)


class _State:
    """Finished parts by name, in one JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def save(self, name: str, content: object) -> None:
        self.parts[name] = content
        written = self.path.with_suffix(".new")
        written.write_text(json.dumps(self.parts, indent=1), encoding="utf-8")
        written.replace(self.path)


def _measure(options: argparse.Namespace) -> list[str]:
    """Measures missing parts, at most ``--parts``; names of those still missing."""
    state = _State(options.work_dir / "matrix.json")
    wanted: list[tuple[str, Callable[[], object]]] = []
    by_row = [_RowSize(options, int(word), state) for word in options.rows.split(",")]
    wanted.append((CURVES, partial(_curves, options)))
    for rows in by_row:
        for number in range(1, options.rounds + 1):
            for case in rows.cases:
                wanted.append((f"{rows.row_bytes} round {number} {case.name}", partial(rows.round, case, number)))
        wanted.append((f"{rows.row_bytes} removed", rows.remove))
    todo = [(name, step) for name, step in wanted if name not in state.parts]
    for name, step in todo[: options.parts]:
        print(f"[{time.strftime('%H:%M:%S')}] {name}", flush=True)
        state.save(name, step())
    return [name for name, _ in todo[options.parts :]]


def _curves(options: argparse.Namespace) -> object:
    """This node's geometry and its accesses under cache pressure, right before they are needed."""
    path = options.work_dir / "curves.json"
    memory = int(options.pool_gib * GIB)
    measure_pressure(options.tlbbench, path, max_memory_bytes=memory, exclusive=options.exclusive)
    return path.name


class _RowSize:
    """The parts of one row size."""

    def __init__(self, options: argparse.Namespace, row_bytes: int, state: _State) -> None:
        self.options, self.state, self.row_bytes = options, state, row_bytes
        self.shape = Shape(int(options.data_gib * GIB), row_bytes, int(options.pool_gib * GIB))
        clients = [int(word) for word in options.clients.split(",")]
        self.cases = cases(clients, nested_loop=False, exclusive=options.exclusive)

    def round(self, case: Case, number: int) -> object:
        """One cell: cost and prediction at base pages, then batch by batch beside huge pages.

        Servers change roles from round to round, so that no difference between the two favours a page size.
        """
        base, other = self._servers() if number % 2 else self._servers()[::-1]
        pages = base.huge_pages_needed(HUGE_PAGE_BYTES)
        batches = self.options.batches
        with base.running("off"):
            base.prewarm()
            with workers(base, case) as on_base:
                alone = [on_base.batch() for _ in range(batches)]
                if number == 1:
                    self._predict(case, base, [Pair(*two) for two in zip(alone[::2], alone[1::2], strict=False)])
                with reserved(HUGE_PAGE_BYTES, pages, drop_caches=True), other.running("on"):
                    other.prewarm()
                    with workers(other, case) as on_huge:
                        if on_huge.page_bytes != HUGE_PAGE_BYTES:
                            raise ServerError(f"the server runs on {on_huge.page_bytes}-byte pages")
                        return [asdict(pair) for pair in alternate(on_base, on_huge, batches)]

    def _predict(self, case: Case, server: Server, calibration: Sequence[Pair]) -> None:
        prediction = predict(
            case=case,
            shape=self.shape,
            data_bytes=server.data_bytes(),
            page_bytes=HUGE_PAGE_BYTES,
            hardware=read_curves(self.options.work_dir / self.state.parts[CURVES]),
            calibration=calibration,
        )
        speedup = prediction.gain.speedup
        written = {
            "row_bytes": self.row_bytes,
            "case": case.name,
            "speedup": asdict(speedup) if speedup else None,
            "base_cpu_ns": prediction.base_cpu_ns,
            "data_bytes": server.data_bytes(),
            "noise": noise_of(calibration),
            "statement": prediction.gain.statement,
        }
        self.state.save(f"{self.row_bytes} prediction {case.name}", written)
        print(f"  predicted: {prediction.gain.statement}", flush=True)

    def _folder(self, programs: Path) -> Path:
        return data_folder(f"{release_of(programs)}-{self.shape.label}")

    def remove(self) -> bool:
        """Give the disk back what both servers' data took."""
        folder = self._folder(find_programs(self.options.pg_bin))
        for each in (folder, folder.with_name(folder.name + "-b")):
            remove(each)
        return True

    def _servers(self) -> tuple[Server, Server]:
        programs = find_programs(self.options.pg_bin)
        folder = self._folder(programs)
        first = Server(programs, folder, self.shape, self.options.niceness)
        first.prepare()
        second = Server(programs, folder.with_name(folder.name + "-b"), self.shape, self.options.niceness)
        second.prepare_copy_of(first)
        return first, second


def cells(parts: dict[str, Any]) -> list[Cell]:
    """The cells of which a prediction and at least one round exist."""
    found = []
    for name, made in parts.items():
        if " prediction " not in name or made["speedup"] is None:
            continue
        row_bytes, case = made["row_bytes"], made["case"]
        pairs = [pair for one in rounds_of(parts, row_bytes, case) for pair in one]
        if pairs:
            throughput = statistics.median(pair.throughput_ratio for pair in pairs)
            predicted, cpu = Range(**made["speedup"]), median_speedup(pairs)
            found.append(Cell(row_bytes, case, predicted, made["noise"], cpu, throughput, len(pairs)))
    return found


def rounds_of(parts: dict[str, Any], row_bytes: int, case: str) -> list[list[Pair]]:
    """The pairs of each finished round of a cell."""
    head, tail = f"{row_bytes} round ", f" {case}"
    return [[_pair(item) for item in parts[name]] for name in parts if name.startswith(head) and name.endswith(tail)]


def _pair(item: dict[str, dict[str, float]]) -> Pair:
    return Pair(Batch(**item["first"]), Batch(**item["second"]))


def meets_bar(found: Sequence[Cell]) -> bool:
    """Nine of ten measured values inside their range, and no range wider than 20 points."""
    inside = [cell.holds(value) for cell in found for value in (cell.cpu, cell.throughput)]
    narrow = all(cell.width_points <= BAR_WIDTH_POINTS for cell in found)
    return bool(inside) and sum(inside) >= BAR_SHARE * len(inside) and narrow


def table(found: Sequence[Cell]) -> str:
    """The cells for people: gains in per cent, huge pages over base pages."""

    def percent(value: float) -> str:
        return f"{100 * (value - 1):+.1f}"

    line = "{:>9}  {:<11}{:>11}  {:<16}{:>7}{:>8}  {:>9} {:<5}{:>11} {:<5}{:>6}"
    rows = [
        line.format(
            "row bytes", "case", "predicted %", "range", "points", "noise", "CPU/op %", "", "throughput", "", "pairs"
        )
    ]
    for cell in found:
        rows.append(
            line.format(
                cell.row_bytes,
                cell.case,
                percent(cell.predicted.likely),
                f"{percent(cell.predicted.low)} to {percent(cell.predicted.high)}",
                f"{cell.width_points:.1f}",
                f"{100 * cell.noise:.1f}",
                percent(cell.cpu),
                "in" if cell.holds(cell.cpu) else "OUT",
                percent(cell.throughput),
                "in" if cell.holds(cell.throughput) else "OUT",
                cell.pairs,
            )
        )
    cpu, throughput = sum(c.holds(c.cpu) for c in found), sum(c.holds(c.throughput) for c in found)
    wide = sum(cell.width_points > BAR_WIDTH_POINTS for cell in found)
    rows.append(
        f"inside: {cpu} of {len(found)} as CPU per operation, {throughput} of {len(found)} as throughput; "
        f"{wide} ranges wider than {BAR_WIDTH_POINTS:g} points"
    )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
