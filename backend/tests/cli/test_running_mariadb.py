"""A MariaDB that runs is the default for what no flag names: version and settings, as the server itself says them."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hugeplan.cli.plan_scenario import parse_database
from hugeplan.cli.running_server import Basis, over_running
from hugeplan.cli.this_node import observe
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import DatabaseInstance
from hugeplan.planner.units import parse_mysql_bytes

BYTES = ("innodb_buffer_pool_size", "innodb_log_buffer_size", "key_buffer_size", "aria_pagecache_buffer_size")
SECONDS = 120.0


class MariaDb:
    """A server in a folder, with the options that name its files first, as it wants them."""

    def __init__(self, folder: Path, text: str, first: list[str], rest: list[str], variables: dict[str, str]) -> None:
        program = shutil.which("mariadbd")
        if program is None:
            pytest.skip("SKIP: mariadbd is not installed")
        (folder / "data").mkdir()
        (folder / "my.cnf").write_text(text)
        self.folder = folder
        own = ["--skip-grant-tables", "--user=root", "--skip-networking", f"--datadir={folder}/data"]
        words = [*first, *own, f"--socket={folder}/s", *rest]
        self.command = [program, *(word.replace("@", str(folder)) for word in words)]
        self.environment = {"PATH": "/usr/bin:/bin", "PWD": str(folder), "HOME": "/nonexistent"}
        self.environment |= {name: value.replace("@", str(folder)) for name, value in variables.items()}

    def says(self) -> dict[str, str]:
        """Its own list of variables and values, and its version."""
        done = subprocess.run(
            [*self.command, "--verbose", "--help"],
            capture_output=True, text=True, timeout=SECONDS, env=self.environment, cwd=self.folder, check=True,
        )  # fmt: skip
        version = re.search(r"Ver (\d+\.\d+\.\d+)-MariaDB", done.stdout)
        assert version is not None, done.stdout[:200]
        pairs = (re.fullmatch(r"([a-z-]+)\s+(\S+)", line) for line in done.stdout.splitlines())
        return {pair[1].replace("-", "_"): pair[2] for pair in pairs if pair} | {"version": version[1]}

    @contextmanager
    def running(self) -> Iterator[int]:
        """Its PID, once it says that it is ready."""
        log = self.folder / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(self.command, stdout=out, stderr=out, env=self.environment, cwd=self.folder)
        try:
            end = time.monotonic() + SECONDS
            while b"ready for connections" not in log.read_bytes():
                assert process.poll() is None, log.read_text(errors="replace")
                assert time.monotonic() < end, "it did not start in time"
                time.sleep(0.05)
            yield process.pid
        finally:
            process.kill()
            process.wait()


def planned(pid: int) -> tuple[DatabaseInstance, Basis]:
    _, sample = observe()
    assert sample is not None
    instances, basis = over_running([parse_database("mariadb", f"pid={pid}")], sample, DemandContext())
    return instances[0], basis[instances[0].name]


BASE = "[mysqld]\ninnodb_buffer_pool_size = 24M\nkey-buffer-size='9M' # comment\n"


@pytest.mark.parametrize(
    ("text", "first", "rest", "variables"),
    [
        (BASE + "[mariadb-10.6]\nkey_buffer_size=90M\n[mysqld-@]\nmax_connections=222\n[mysqld-5.7]\nmax_connections=9",
         ["--defaults-file=@/my.cnf"], [], {}),
        (BASE + "[mysqld.two]\nmax_connections=42\n[mariadb.two]\naria_pagecache_buffer_size=11M\n",
         ["--defaults-file=@/my.cnf", "--defaults-group-suffix=.two"], [], {}),
        (BASE + "[server-x]\nmax_connections=43\n", ["--defaults-file=@/my.cnf"], [], {"MYSQL_GROUP_SUFFIX": "-x"}),
        (BASE, ["--defaults-file=my.cnf"], ["--key_buffer_size", "7M", "--max-conn=51"], {}),
        (BASE + "[ mysqld ]\nmax_connections=44\n[galera]\ninnodb_log_buffer_size=20M\n",
         ["--defaults-extra-file=@/my.cnf"], [], {}),
        (BASE, [], [], {"MYSQL_HOME": "@"}),
        (BASE, ["--no-defaults"], ["--loose-innodb-buffer-pool-size=26M"], {}),
    ],
)  # fmt: skip
def test_version_and_settings_are_what_the_server_says(
    tmp_path: Path, text: str, first: list[str], rest: list[str], variables: dict[str, str]
) -> None:
    series = MariaDb(_below(tmp_path, "probe"), "", ["--no-defaults"], [], {}).says()["version"].rpartition(".")[0]
    server = MariaDb(_below(tmp_path, "own"), text.replace("mysqld-@", f"mysqld-{series}"), first, rest, variables)
    truth = server.says()
    with server.running() as pid:
        instance, basis = planned(pid)
    assert (instance.version, basis.read["version"]) == (truth["version"], (truth["version"], "executable"))
    assert basis.complete is True
    for name in BYTES:
        if name in instance.settings:
            assert parse_mysql_bytes(instance.settings[name], name) == int(truth[name]), name
        else:
            assert int(truth[name]) in {128 << 20, 16 << 20}, f"{name} is not at its default"
    assert instance.settings.get("max_connections", "151") == truth["max_connections"]


def _below(folder: Path, name: str) -> Path:
    place = folder / name
    place.mkdir()
    return place
