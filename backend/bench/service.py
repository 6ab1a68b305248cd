"""How fast the service takes reports in and answers about a large fleet.

Prints one JSON object per line, as bench/planner.py does, and a table for people on standard error. Ingest is beside a
yardstick on the same machine in the same run (bench/support/yardstick.py stores the same bytes and does nothing else):
rounds of the two alternate, because other work on the machine slows both. Reads are of a synthetic fleet of 10,000
nodes, 1,000,000 samples and 100,000 runs.

``--state DIR`` keeps the fleet: ``--seed-only --state DIR`` makes it once, and later runs begin at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

# Run as a file: the packages bench and tests/support are found from here.
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "tests")]

from bench.support import reads, world
from bench.support.beside_strangers import beside_strangers
from bench.support.figures import Figure, figure, is_missed, resident_bytes, resident_bytes_of_all, table
from bench.support.ingest import CONNECTIONS, ingest
from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.settings import Settings
from tools.seed.writer import SeedOptions

MEMORY_BAR_MIB = 250
PARTS = ("ingest", "reads", "strangers")


def memory(pid: int, after: str) -> Figure:
    """Resident memory of a worker. Its bar is one of MiB, so the times are left empty."""
    mib = resident_bytes(pid) / 2**20
    sizes = {"resident_mib": round(mib), "with_its_processes_mib": round(resident_bytes_of_all(pid) / 2**20)}
    found = figure(f"memory of a worker after {after}", 0.0, 0.0, **sizes, bar_mib=MEMORY_BAR_MIB)
    # A missed bar is one of time to those who read the figures.
    return found | {"cpu_seconds": 0.0 if mib < MEMORY_BAR_MIB else 1.0}


def ingest_figures(postgres: embedded.EmbeddedPostgres, folder: Path) -> Iterator[Figure]:
    """Reports into an empty database."""
    settings = world.fresh(postgres, "ingest")
    postgres.ensure_database("yardstick")
    names: list[str | None] = [uuid.uuid4().hex for _ in range(CONNECTIONS)]
    made = asyncio.run(world.tokens(settings, Role.AGENT, names))
    machines = [(str(name), token) for name, token in zip(names, made, strict=True)]
    with (
        world.service(postgres.url("ingest"), folder) as (port, pid),
        world.yardstick(postgres.url("yardstick")) as yard_port,
    ):
        yield from ingest(port, yard_port, machines, pid)
        yield memory(pid, "ingest")


def read_figures(settings: Settings, port: int, token: str, server_pid: int) -> Iterator[Figure]:
    """Everything that is read of the fleet."""
    url = settings.psycopg_url()
    machine = uuid.uuid4().hex
    (agent,) = asyncio.run(world.tokens(settings, Role.AGENT, [machine]))
    recorded = reads.recorded_node(port, machine, agent, url)
    yield figure("fleet", 0.0, None, **reads.sizes(url))
    yield from reads.lists(port, token)
    yield from reads.node_page(port, token, url)
    yield from reads.previews(port, token, url, recorded)
    yield from reads.fleet_plan(port, token, server_pid)


def figures(arguments: argparse.Namespace, postgres: embedded.EmbeddedPostgres, folder: Path) -> Iterator[Figure]:
    """Every figure that is wanted."""
    wanted = {arguments.only} if arguments.only else set(PARTS)
    if "ingest" in wanted and not arguments.seed_only:
        yield from ingest_figures(postgres, folder)
    if wanted == {"ingest"}:
        return
    options = SeedOptions(
        nodes=arguments.nodes, seed=1, samples=arguments.samples, runs=arguments.runs, most_runs=reads.MOST_RUNS,
        history_days=arguments.history_days, documents=True,
    )  # fmt: skip
    settings, seconds = world.seeded(postgres, "bench", options)
    yield figure(f"seeding {arguments.nodes} nodes (0: it was there)", seconds, None)
    if arguments.seed_only:
        return
    (token,) = asyncio.run(world.tokens(settings, Role.PLANNER, [None]))
    with world.service(postgres.url("bench"), folder) as (port, pid):
        if "reads" in wanted:
            yield from read_figures(settings, port, token, pid)
            yield memory(pid, "reads")
        if "strangers" in wanted:
            yield beside_strangers(port, token)
            yield memory(pid, "strangers")


def main() -> int:
    """Print every figure; 1 when a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=103, help="samples per node that reports (default 103)")
    parser.add_argument("--runs", type=int, default=9, help="runs per measured node; every tenth has 50 (default 9)")
    parser.add_argument("--history-days", type=int, default=365, help="days of roll-ups (default 365)")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--state", type=Path, help="where the fleet stays; without it, it is made anew and removed")
    parser.add_argument("--seed-only", action="store_true", help="make the fleet, and measure nothing")
    arguments = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder, world.postgres_in(arguments.state) as postgres:
        for item in figures(arguments, postgres, Path(folder)):
            found.append(item)
            sys.stdout.write(json.dumps(item) + "\n")
            sys.stdout.flush()
    sys.stderr.write(table(found) + "\n")
    return 1 if any(is_missed(item) for item in found) else 0


if __name__ == "__main__":
    sys.exit(main())
