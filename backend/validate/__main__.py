"""``python -m validate``: curves, prediction, measurement, verdict.

Exit status 0: every case inside the model's own range; 1: a case outside even with the machine's noise added; 2: a
case outside the model's range by no more than the noise, so that nothing is shown; 77: skipped, with the reason on the
last line.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from hugeplan.measuring.pools import CannotReserveError, reserved
from hugeplan.measuring.postgresql_clients import cases
from hugeplan.measuring.postgresql_server import (
    GIB,
    Server,
    ServerError,
    Shape,
    find_programs,
    server_user,
)
from hugeplan.planner.model import HardwareFacts
from validate.compare import Prediction, Verdict, judge, median_speedup, predict
from validate.data_folder import data_folder
from validate.node_curves import CurvesError, measure_curves, read_curves
from validate.pairs import Bench, Pairs

OUTSIDE, TOO_NOISY, SKIPPED = 1, 2, 77
SOCKET_FOLDER_LENGTH = 90
"""A Unix socket's path has at most 107 bytes, the file name among them."""
_ROW = "{:<14}{:>12}  {:<16}{:<16}{:>11}  {:<20}{:>12}  {}"
ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the validation; print one line a step and the verdict at the end."""
    options = _options(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        return _validate(options)
    except (CannotReserveError, CurvesError, ServerError) as error:
        print(f"SKIP: {error}")
        return SKIPPED


def _end(number: int, _frame: object) -> None:
    """Ends as by an exception: servers are stopped and the pool gets its previous count back."""
    sys.exit(128 + number)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="validate", description="Predict what huge pages save a PostgreSQL here, then measure it."
    )
    parser.add_argument("--data-gib", type=float, default=6.0, help="table and index together (default 6)")
    parser.add_argument("--pool-gib", type=float, default=8.0, help="shared_buffers (default 8)")
    parser.add_argument("--row-bytes", type=int, default=100, help="payload of one row (default 100)")
    parser.add_argument("--clients", default="1,8", help="pgbench clients, one case each (default 1,8)")
    parser.add_argument("--no-nested-loop", action="store_true", help="leave the server-side nested loop out")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (default 3)")
    parser.add_argument("--batches", type=int, default=12, help="batches a case, round and page size (default 12)")
    parser.add_argument("--in-turn", action="store_true", help="one server started twice, even where memory holds two")
    parser.add_argument(
        "--exclusive",
        action="store_true",
        help="real-time priority, other CPUs kept busy: for a machine with neighbours",
    )
    parser.add_argument("--page-kib", type=int, default=2048, help="huge page size in KiB (default 2048)")
    parser.add_argument("--curves", type=Path, help="a saved tlbbench document instead of measuring first")
    parser.add_argument("--tlbbench", type=Path, default=ROOT / "agent" / "build" / "tlbbench")
    parser.add_argument("--profile", choices=("quick", "full"), default="full", help="tlbbench profile (default full)")
    parser.add_argument("--bin-dir", dest="pg_bin", type=Path, help="folder with initdb, postgres and pgbench")
    parser.add_argument("--work-dir", type=Path, default=ROOT / ".state" / "validate")
    parser.add_argument(
        "--niceness", type=int, default=-10, help="priority of server and clients when root (default -10)"
    )
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def _validate(options: argparse.Namespace) -> int:
    shape = Shape(int(options.data_gib * GIB), options.row_bytes, int(options.pool_gib * GIB))
    options.work_dir.mkdir(parents=True, exist_ok=True)
    bench = _bench(options, shape)
    hardware = _curves(options, shape)
    _say("calibrating: base pages against base pages, for the operation's cost and this machine's noise")
    calibration = bench.run("off")
    predictions = _predict(bench, hardware, calibration)
    written = options.work_dir / f"prediction-{time.strftime('%Y%m%dT%H%M%S')}.json"
    written.write_text(json.dumps([asdict(p) for p in predictions], indent=1, default=str), encoding="utf-8")
    _say(f"prediction written to {written.name} before any huge page was used:")
    for prediction in predictions:
        _say(f"  {prediction.case.name}: {prediction.gain.statement}")
    rounds = []
    for number in range(options.rounds):
        rounds.append(bench.run("on", swapped=number % 2 == 1))
        for name, pairs in rounds[-1].items():
            _say(f"round {number + 1} {name}: {100 * (median_speedup(pairs) - 1):+.1f} %, {len(pairs)} pairs")
    verdicts = judge(predictions, rounds)
    _report(verdicts)
    record = [asdict(v) | {"inside_model": v.inside_model, "inside_expected": v.inside_expected} for v in verdicts]
    written.with_name(written.name.replace("prediction", "verdict")).write_text(
        json.dumps(record, indent=1, default=str), encoding="utf-8"
    )
    if all(v.inside_model for v in verdicts):
        return 0
    return TOO_NOISY if all(v.inside_expected for v in verdicts) else OUTSIDE


def _bench(options: argparse.Namespace, shape: Shape) -> Bench:
    """Servers loaded and pages tried; two servers when memory holds both pools at once."""
    page_bytes = options.page_kib * 1024
    one, both = int(1.1 * shape.pool_bytes), int(1.08 * shape.pool_bytes) + int(1.06 * shape.data_bytes)
    available = memory_available_bytes()
    if available < one + GIB // 4:
        raise CannotReserveError(
            f"{one / GIB + 0.25:.1f} GiB of memory are needed, {available / GIB:.1f} GiB are available; "
            "choose smaller --data-gib and --pool-gib"
        )
    programs = find_programs(options.pg_bin)
    folder = _data_folder(options.work_dir, shape)
    first = Server(programs, folder, shape, options.niceness)
    _say(
        f"data: {shape.rows} rows of {shape.row_bytes} bytes ({options.data_gib:g} GiB), pool {options.pool_gib:g} GiB"
    )
    first.prepare()
    servers: tuple[Server, ...] = (first,)
    if available > both + GIB and not options.in_turn:
        second = Server(programs, folder.with_name(folder.name + "-b"), shape, options.niceness)
        second.prepare_copy_of(first)
        servers = (first, second)
    pages = first.huge_pages_needed(page_bytes)
    with reserved(page_bytes, pages, drop_caches=True):
        _say(f"{pages} huge pages of {options.page_kib} KiB can be had")
    how = "side by side" if len(servers) == 2 else "in turn"
    _say(f"both page sizes are measured {how}")
    clients = [int(n) for n in options.clients.split(",") if n]
    chosen = cases(clients, nested_loop=not options.no_nested_loop, exclusive=options.exclusive)
    return Bench(servers, chosen, page_bytes, pages, options.batches)


def _data_folder(work_dir: Path, shape: Shape) -> Path:
    """The data folder: in the work folder, or under /var/tmp where the server's user or a socket's name cannot go."""
    wanted = work_dir.resolve() / shape.label
    if len(str(wanted)) < SOCKET_FOLDER_LENGTH and reachable(work_dir.resolve()):
        return wanted
    return data_folder(shape.label)


def _curves(options: argparse.Namespace, shape: Shape) -> HardwareFacts:
    if options.curves:
        _say(f"curves: {options.curves}")
        return read_curves(options.curves)
    # Page-table entries leave the cache only at large footprints: measure as far as the pool reaches, if memory allows.
    memory = min(shape.pool_bytes, int(0.45 * memory_available_bytes()))
    _say(f"curves: measuring this node up to {memory / GIB:.1f} GiB")
    return measure_curves(
        options.tlbbench, options.work_dir / "curves.json", max_memory_bytes=memory, profile=options.profile
    )


def _predict(bench: Bench, hardware: HardwareFacts, calibration: Pairs) -> list[Prediction]:
    server = bench.servers[0]
    with server.running("off"):
        data_bytes = server.data_bytes()
    return [
        predict(
            case=case,
            shape=server.shape,
            data_bytes=data_bytes,
            page_bytes=bench.page_bytes,
            hardware=hardware,
            calibration=calibration[case.name],
        )
        for case in bench.cases
    ]


def _report(verdicts: Sequence[Verdict]) -> None:
    def percent(value: float) -> str:
        return f"{100 * (value - 1):+.1f}"

    print()
    print("Gain in throughput per busy core, huge pages over base pages:")
    print(_ROW.format("case", "predicted %", "range", "with noise", "measured %", "rounds", "throughput", "contained"))
    for v in verdicts:
        speedup, expected = v.prediction.gain.speedup, v.prediction.expected
        if speedup is None:
            continue
        print(
            _ROW.format(
                v.prediction.case.name,
                percent(speedup.likely),
                f"{percent(speedup.low)} to {percent(speedup.high)}",
                f"{percent(expected.low)} to {percent(expected.high)}",
                percent(v.measured),
                " ".join(percent(value) for value in v.by_round),
                percent(v.throughput_ratio),
                "yes" if v.inside_model else ("too noisy to tell" if v.inside_expected else "NO"),
            )
        )


def memory_available_bytes() -> int:
    """MemAvailable of /proc/meminfo."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise CannotReserveError("/proc/meminfo has no MemAvailable")


def reachable(folder: Path) -> bool:
    """Whether the server's user can enter a folder."""
    user = server_user()
    if not user:
        return os.access(folder, os.X_OK)
    gid = str(pwd.getpwnam(user).pw_gid)
    words = ["setpriv", "--reuid", user, "--regid", gid, "--clear-groups", "test", "-x", str(folder)]
    return subprocess.run(words, check=False).returncode == 0  # noqa: S603 - our own command line


if __name__ == "__main__":
    sys.exit(main())
