"""Compare the planner with real PostgreSQL servers on random configurations as people write them.

    python backend/tools/postgresql_oracle.py fetch --servers DIR
    python backend/tools/postgresql_random.py --servers DIR [--count 600] [--seed 1]

Sizes have units and fractions (``0.2TB``, ``1.5GB``, ``16384``); extensions, WAL senders, locks, prepared transactions,
workers and autovacuum vary. Prints how many counts are exact, within the stated error, and outside.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from postgresql_oracle import ask, installed, random_settings

from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.model import GIB, KIB, MIB, DatabaseInstance

PAGES = {"2MB": 2 * MIB, "16MB": 16 * MIB, "1GB": GIB}
UNITS = {"TB": 2**40, "GB": GIB, "MB": MIB, "kB": KIB}


def as_written(rng: random.Random, size: int, own_unit: int) -> str:
    """A size as a person writes it: whole or with a fraction, in any unit that makes sense, or bare."""
    unit = rng.choice([name for name, scale in UNITS.items() if size >= 0.05 * scale] or ["kB"])
    scale = UNITS[unit]
    digits = rng.choice((0, 1, 2, 3))
    if rng.random() < 0.15:
        return str(max(16, size // own_unit))
    text = f"{size / scale:.{digits}f}"
    return f"{text}{rng.choice(('', ' '))}{unit}" if float(text) > 0 else f"{max(1, size // MIB)}MB"


def configuration(rng: random.Random, major: int) -> dict[str, str]:
    """One random configuration."""
    settings = random_settings(rng, major)
    # As the model reads them, not as the tool's fit needs them: sizes with units and fractions.
    settings["shared_buffers"] = as_written(rng, round(128 * MIB * (8000 ** rng.random())), 8192)
    if "wal_buffers" in settings:
        settings["wal_buffers"] = as_written(rng, rng.randrange(64 * KIB, 200 * MIB), 8192)
    if "min_dynamic_shared_memory" in settings:
        settings["min_dynamic_shared_memory"] = as_written(rng, rng.randrange(2 * MIB, 4 * GIB), MIB)
    if rng.random() < 0.25:
        settings["shared_preload_libraries"] = rng.choice(
            ("pg_stat_statements", "auto_explain", "pg_stat_statements,auto_explain", "pg_prewarm")
        )
        if "pg_stat_statements" in settings["shared_preload_libraries"] and rng.random() < 0.5:
            settings["pg_stat_statements.max"] = str(rng.choice((1000, 5000, 10000, 50000)))
    if rng.random() < 0.2:
        settings["max_parallel_workers"] = str(rng.randrange(0, 64))
    return settings


def main() -> int:
    """Ask and compare; the status is 1 where a count lies outside its stated error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servers", type=Path, required=True)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)  # noqa: S311 - reproducible, not secret
    exact = within = outside = refused = 0
    with tempfile.TemporaryDirectory() as work:
        Path(work).chmod(0o755)
        servers = list(installed(arguments.servers, Path(work)))
        while exact + within + outside < arguments.count:
            server = rng.choice(servers)
            settings = configuration(rng, int(server.version.split(".")[0]))
            page, size = rng.choice(list(PAGES.items()))
            real = ask(server, settings, page)
            if real is None:
                refused += 1
                continue
            instance = DatabaseInstance(name="db", engine="postgresql", version=server.version, settings=settings)
            context = DemandContext(huge_page_sizes_bytes=(2 * MIB, 16 * MIB, GIB))
            demand = demand_of(instance, size, context)
            off = abs(demand.pages - real)
            exact += off == 0
            within += 0 < off <= demand.error_pages
            outside += off > demand.error_pages
            if off:
                sys.stdout.write(
                    f"{server.version} {page} real {real} said {demand.pages} +-{demand.error_pages} {settings}\n"
                )
    sys.stdout.write(f"seed {arguments.seed}: {exact} exact, {within} within, {outside} outside, {refused} refused\n")
    sys.stdout.write("servers: " + ", ".join(sorted({f"{s.version} ({s.label})" for s in servers})) + "\n")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
