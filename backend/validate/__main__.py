"""``python -m validate``: curves, prediction, measurement, verdict.

Exit status 0: every case inside its predicted range; 1: not; 77: skipped, with the reason on the last line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from hugeplan.planner.model import HardwareFacts
from validate.compare import Prediction, Verdict, judge, predict
from validate.node_curves import CurvesError, measure_curves, read_curves
from validate.pools import CannotReserveError, memory_available_bytes, reserved
from validate.server import GIB, SOCKET_FOLDER_LENGTH, Server, ServerError, Shape, find_programs, reachable
from validate.workloads import Case, Measurement, cases, measure

SKIPPED = 77
_ROW = "{:<14}{:>12}  {:<16}{:<16}{:>11}  {:<20}{:>12}  {}"
ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the validation; print one line a step and the verdict at the end."""
    options = _options(arguments)
    try:
        return _validate(options)
    except (CannotReserveError, CurvesError, ServerError) as error:
        print(f"SKIP: {error}")
        return SKIPPED


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
    parser.add_argument(
        "--seconds", type=int, default=10, help="measured seconds a case, round and page size (default 10)"
    )
    parser.add_argument("--page-kib", type=int, default=2048, help="huge page size in KiB (default 2048)")
    parser.add_argument("--curves", type=Path, help="a saved tlbbench document instead of measuring first")
    parser.add_argument("--tlbbench", type=Path, default=ROOT / "agent" / "build" / "tlbbench")
    parser.add_argument("--profile", choices=("quick", "full"), default="full", help="tlbbench profile (default full)")
    parser.add_argument("--pg-bin", type=Path, help="folder with initdb, postgres and pgbench")
    parser.add_argument("--work-dir", type=Path, default=ROOT / ".state" / "validate")
    parser.add_argument(
        "--niceness", type=int, default=-10, help="priority of server and clients when root (default -10)"
    )
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def _validate(options: argparse.Namespace) -> int:
    shape = Shape(int(options.data_gib * GIB), options.row_bytes, int(options.pool_gib * GIB))
    page_bytes = options.page_kib * 1024
    needed = int(1.1 * shape.pool_bytes) + shape.data_bytes // 2
    if memory_available_bytes() < needed:
        raise CannotReserveError(
            f"{needed / GIB:.1f} GiB of memory are needed, {memory_available_bytes() / GIB:.1f} GiB are available; "
            "choose smaller --data-gib and --pool-gib"
        )
    options.work_dir.mkdir(parents=True, exist_ok=True)
    server = Server(find_programs(options.pg_bin), _data_folder(options.work_dir, shape), shape, options.niceness)
    chosen = cases([int(n) for n in options.clients.split(",") if n], nested_loop=not options.no_nested_loop)

    hardware = _curves(options, shape)
    _say(
        f"data: {shape.rows} rows of {shape.row_bytes} bytes ({options.data_gib:g} GiB), pool {options.pool_gib:g} GiB"
    )
    server.prepare()
    pages = server.huge_pages_needed(page_bytes)
    with reserved(page_bytes, pages):
        _say(f"{pages} huge pages of {options.page_kib} KiB can be had")

    _say("calibrating the operation's cost with base pages, two server starts")
    starts = [_one_start(server, chosen, "off", options.seconds) for _ in range(2)]
    predictions = _predict(
        server, chosen, page_bytes=page_bytes, hardware=hardware, starts=starts, rounds=options.rounds
    )
    written = options.work_dir / f"prediction-{time.strftime('%Y%m%dT%H%M%S')}.json"
    written.write_text(json.dumps([asdict(p) for p in predictions], indent=1, default=str), encoding="utf-8")
    _say(f"prediction written to {written.name} before any huge page was used:")
    for prediction in predictions:
        _say(f"  {prediction.case.name}: {prediction.gain.statement}")

    off, on = _rounds(server, chosen, page_bytes=page_bytes, pages=pages, options=options)
    verdicts = judge(predictions, off, on)
    _report(verdicts)
    record = [{**asdict(v), "measured": v.measured, "inside": v.inside_expected} for v in verdicts]
    (options.work_dir / written.name.replace("prediction", "verdict")).write_text(
        json.dumps(record, indent=1, default=str), encoding="utf-8"
    )
    return 0 if all(v.inside_expected for v in verdicts) else 1


def _data_folder(work_dir: Path, shape: Shape) -> Path:
    """The data folder: in the work folder, or under /var/tmp where the server's user or a socket's name cannot go."""
    wanted = work_dir.resolve() / shape.label
    if len(str(wanted)) < SOCKET_FOLDER_LENGTH and reachable(work_dir.resolve()):
        return wanted
    return Path("/var/tmp/hugeplan-validate") / shape.label  # noqa: S108 - large, survives a reboot, fixed name wanted


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


def _one_start(server: Server, chosen: Sequence[Case], huge_pages: str, seconds: int) -> dict[str, Measurement]:
    with server.running(huge_pages):
        server.prewarm()
        return {case.name: measure(server, case, seconds) for case in chosen}


def _predict(
    server: Server,
    chosen: Sequence[Case],
    *,
    page_bytes: int,
    hardware: HardwareFacts,
    starts: Sequence[dict[str, Measurement]],
    rounds: int,
) -> list[Prediction]:
    with server.running("off"):
        data_bytes = server.data_bytes()
    return [
        predict(
            case=case,
            shape=server.shape,
            data_bytes=data_bytes,
            page_bytes=page_bytes,
            hardware=hardware,
            calibration=(starts[0][case.name], starts[1][case.name]),
            rounds=rounds,
        )
        for case in chosen
    ]


def _rounds(
    server: Server, chosen: Sequence[Case], *, page_bytes: int, pages: int, options: argparse.Namespace
) -> tuple[dict[str, list[Measurement]], dict[str, list[Measurement]]]:
    results: dict[str, dict[str, list[Measurement]]] = {
        mode: {case.name: [] for case in chosen} for mode in ("off", "on")
    }
    for number in range(options.rounds):
        # The order turns each round, so that a drift of the machine favours neither.
        for mode in ("off", "on") if number % 2 == 0 else ("on", "off"):
            if mode == "on":
                with reserved(page_bytes, pages):
                    measured = _one_start(server, chosen, mode, options.seconds)
            else:
                measured = _one_start(server, chosen, mode, options.seconds)
            for case in chosen:
                result = measured[case.name]
                expected = page_bytes if mode == "on" else os.sysconf("SC_PAGE_SIZE")
                if result.page_bytes != expected:
                    raise ServerError(f"the server runs on {result.page_bytes}-byte pages, {expected} were asked for")
                results[mode][case.name].append(result)
                _say(
                    f"round {number + 1} huge_pages={mode} {case.name}: {result.rate:.0f} operations/s, "
                    f"{result.cpu_ns_per_operation:.0f} ns of CPU each"
                )
    return results["off"], results["on"]


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
                percent(sorted(v.by_throughput)[len(v.by_throughput) // 2]),
                "yes" if v.inside_model else ("within noise" if v.inside_expected else "NO"),
            )
        )


if __name__ == "__main__":
    sys.exit(main())
