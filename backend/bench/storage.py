"""What a node's reports cost: bytes stored, write-ahead log, sealing, and a history of 30 days.

Prints figures as bench/service.py does. Ten nodes (``--nodes``) are enough: tools/replay.py gives each node's day its
own change, and of fewer each takes much of the pages that empty tables and new indexes have. Bytes have a bar of their
own; a missed one is a processor time above its budget to those who read the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# Run as a file: the packages bench and tools and tests/support are found from here.
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "tests")]

from bench.support import world
from bench.support.figures import Figure, figure, is_missed, table
from bench.support.history import history
from tools import wal_cost
from tools.sealing_cost import measured_here

REPORT: Final = Path(__file__).resolve().parents[2] / "docs" / "report.example.json"
BARS_BYTES: Final = {2: 300_000, 38: 1_000_000}
#: 5 % of one core for 10,000 nodes.
WAL_BYTES: Final = 2000
SEALING_SECONDS: Final = 0.05 * 86_400 / 10_000


def figures(nodes: int = 10) -> Iterator[Figure]:
    """Bytes and processor time per node and day, for each number of processes."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    for processes, bar in BARS_BYTES.items():
        found = measured_here(report, nodes, processes)
        stored = found["sealed_bytes_per_node_day"]
        shown = {name: value for name, value in found.items() if name.endswith("_per_node_day")}
        of_a_day = figure(f"a node's day with {processes} processes, stored", 0.0, 0.0, bar_bytes=bar, **shown)
        yield of_a_day | {"cpu_seconds": 0.0 if stored <= bar else 1.0}
        seconds = found["service_cpu_seconds_per_node_day"]
        yield figure(f"sealing a node's day with {processes} processes", seconds, SEALING_SECONDS)
        wal = wal_cost.measured_here(report, nodes=10, reports=30, processes=processes)
        records, images = wal["wal_record_bytes_per_report"], wal["full_page_image_bytes_per_report"]
        name = f"write-ahead log of a report with {processes} processes"
        of_a_report = figure(name, 0.0, 0.0, bar_bytes=WAL_BYTES, record_bytes=records, full_page_bytes=images)
        yield of_a_report | {"cpu_seconds": 0.0 if records <= WAL_BYTES else 1.0}
    with tempfile.TemporaryDirectory() as folder, world.postgres_in(None) as postgres:
        yield from history(postgres, Path(folder), report)


def main() -> int:
    """Print every figure; 1 when a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10, help="nodes whose day is stored (default 10)")
    arguments = parser.parse_args()
    found = []
    for item in figures(arguments.nodes):
        found.append(item)
        sys.stdout.write(json.dumps(item) + "\n")
        sys.stdout.flush()
    sys.stderr.write(table(found) + "\n")
    return 1 if any(map(is_missed, found)) else 0


if __name__ == "__main__":
    sys.exit(main())
