"""Real servers on this machine, seen by the agent: a PostgreSQL, alone and under a hugetlb controller's limit.

The last class reproduces what a container's limit does to a database (both counters), and checks that the agent reads
from it what the findings need. It needs root, huge pages that can be reserved and a hugetlb controller; else it says
SKIP with the reason.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hugeplan_agent.collectors import collect_all
from hugeplan_agent.host import Host
from hugeplan_agent.pool_reservation import ReservationError, reservation
from tests.real_postgresql import Postgresql, programs, server

MIB = 1024**2
PAGE = 2 * MIB
SETTINGS = {"shared_buffers": "128MB", "max_connections": "20", "huge_pages": "off", "fsync": "off"}
POOL_PAGES = 110
TABLES = 8
"""Each smaller than a quarter of shared_buffers: the server reads a larger one through a small ring of buffers."""


@pytest.fixture(scope="module")
def bin_folder() -> Path:
    found = programs()
    if found is None:
        pytest.skip("SKIP: no PostgreSQL on this machine")
    return found


def observed(postgresql: Postgresql) -> dict[str, Any]:
    """The agent's entry of this server."""
    assert postgresql.process is not None
    databases = collect_all(Host("/")).sample["databases"]
    return next(one for one in databases if one["main_pid"] == postgresql.process.pid)


@pytest.fixture(scope="class")
def postgresql(bin_folder: Path) -> Iterator[Postgresql]:
    with server(bin_folder) as made:
        try:
            with reservation():  # initdb's trial servers take free huge pages, which another test may have reserved
                assert made.initdb().returncode == 0
        except ReservationError as error:
            pytest.skip(f"SKIP: {error}")
        made.configure(SETTINGS | {"work_mem": "7MB"})
        made.start()
        made.sql("alter system set max_wal_senders = 3")
        yield made


class TestPostgresql:
    def test_it_is_recognised_with_its_settings(self, postgresql: Postgresql) -> None:
        found = observed(postgresql)
        assert found["engine"] == "postgresql"
        mapped = Path("/proc/self/uid_map").read_text().split()
        owner = postgresql.folder.stat().st_uid if mapped == ["0", "0", "4294967295"] else None
        assert found["owner_uid"] == owner
        assert postgresql.sql("show server_version").stdout.startswith(found["version"])
        assert found["settings"]["shared_buffers"] == {"value": "128MB", "source": "postgresql.conf"}
        assert found["settings"]["work_mem"]["value"] == "7MB"
        assert found["settings"]["max_wal_senders"] == {"value": "3", "source": "postgresql.auto.conf"}
        assert found["settings_complete"] is True

    def test_the_segment_is_the_servers_own_size_on_base_pages(self, postgresql: Postgresql) -> None:
        found = observed(postgresql)
        assert (found["huge_pages_status"], found["huge_pages_status_source"]) == ("off", "maps")
        segment = found["segments"][0]
        assert (segment["backing"], segment["kind"]) == ("base_pages", "anonymous_shared")
        told = postgresql.sql("show shared_memory_size").stdout.strip()
        assert told.endswith("MB")
        assert abs(segment["bytes"] - int(told[:-2]) * MIB) <= MIB, "the server rounds to whole MB"

    def test_a_client_is_counted_while_it_is_there(self, postgresql: Postgresql) -> None:
        before = observed(postgresql)["client_count"]
        words = [str(postgresql.bin / "psql"), "-h", str(postgresql.folder), "-U", "test", "-d", "postgres", "-Xqt"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.write(b"select 'ready';\n")
            client.stdin.flush()
            assert b"ready" in client.stdout.readline()
            assert observed(postgresql)["client_count"] == before + 1
            client.stdin.close()
        assert before == 0

    def test_its_memory_is_that_of_its_processes(self, postgresql: Postgresql) -> None:
        found = observed(postgresql)
        assert found["memory"]["hugetlb_bytes"] == 0
        assert 0 < found["memory"]["private_bytes"] < 200 * MIB
        assert 0 < found["memory"]["shared_bytes"] <= found["segments"][0]["bytes"]


@contextmanager
def hugetlb_cgroup(usage_limit: int | None, rsvd_limit: int | None) -> Iterator[Path]:
    """A cgroup with limits of 2 MiB pages (None: unlimited). Skips where there is no controller."""
    root, version, was_mounted = _controller()
    folder = root / f"hugeplan-test-{os.getpid()}"
    folder.mkdir()
    try:
        for prefix, limit in (("", usage_limit), ("rsvd.", rsvd_limit)):
            if limit is not None:
                name = "limit_in_bytes" if version == 1 else "max"
                (folder / f"hugetlb.2MB.{prefix}{name}").write_text(str(limit))
        yield folder
    finally:
        for _ in range(100):
            with suppress(OSError):
                folder.rmdir()
                break
            subprocess.run(["sleep", "0.05"], check=True)  # a child that has just been reaped leaves its cgroup late
        if not was_mounted:
            subprocess.run(["umount", str(root)], check=False)
            with suppress(OSError):
                root.rmdir()


def _controller() -> tuple[Path, int, bool]:
    """The controller's root, its version, and whether it was mounted before."""
    if os.geteuid() != 0:
        pytest.skip("SKIP: a hugetlb limit needs root")
    base = Path("/sys/fs/cgroup")
    controllers = base / "cgroup.controllers"
    if controllers.exists():
        if "hugetlb" not in controllers.read_text().split():
            pytest.skip("SKIP: this kernel has no hugetlb controller")
        (base / "cgroup.subtree_control").write_text("+hugetlb")
        return base, 2, True
    if (base / "hugetlb").is_mount():
        return base / "hugetlb", 1, True
    with suppress(OSError):
        (base / "hugetlb").mkdir(exist_ok=True)
        mounted = subprocess.run(
            ["mount", "-t", "cgroup", "-o", "hugetlb", "cgroup", str(base / "hugetlb")],
            capture_output=True,
            check=False,
        )
        if mounted.returncode == 0:
            return base / "hugetlb", 1, False
        (base / "hugetlb").rmdir()
    pytest.skip("SKIP: the hugetlb controller cannot be mounted")


@pytest.fixture(scope="class")
def pool() -> Iterator[None]:
    """Free pages enough for the server, given back at the end."""
    if os.geteuid() != 0:
        pytest.skip("SKIP: reserving huge pages needs root")
    try:
        with reservation() as held:
            got = held.grow(PAGE, POOL_PAGES)
            if got < POOL_PAGES:
                pytest.skip(f"SKIP: the kernel found {got} of {POOL_PAGES} huge pages")
            yield
    except ReservationError as error:
        pytest.skip(f"SKIP: {error}")


@pytest.fixture(scope="class")
def data(bin_folder: Path) -> Iterator[Postgresql]:
    """A server's data made without any limit: more of it than the buffer pool holds."""
    with server(bin_folder) as made:
        assert made.initdb().returncode == 0
        made.configure(SETTINGS)
        made.start()
        for number in range(TABLES):
            rows = "select g, repeat('x', 1000) from generate_series(1, 20000) g"
            assert made.sql(f"create table t{number} as {rows}").returncode == 0, made.log
        made.sql("checkpoint")
        made.stop()
        yield made


@pytest.mark.usefixtures("pool")
class TestUnderALimit:
    def _start(self, data: Postgresql, cgroup: Path, huge_pages: str) -> Postgresql:
        data.cgroup = cgroup
        data.configure({"huge_pages": huge_pages})
        data.start()
        return data

    def _read_all(self, data: Postgresql) -> str:
        """Fill the buffer pool; the errors that came."""
        return "".join(data.sql(f"select sum(length(repeat)) from t{number}").stderr for number in range(TABLES))  # noqa: S608 - a number of this file

    def _segment_pages(self, data: Postgresql) -> int:
        with suppress(ValueError):
            return int(data.sql("show shared_memory_size_in_huge_pages").stdout)
        pytest.skip("SKIP: this PostgreSQL does not tell its huge pages (before 15)")

    def test_a_usage_limit_below_the_segment_is_a_time_bomb(self, data: Postgresql) -> None:
        with hugetlb_cgroup(60 * PAGE, None) as cgroup:
            try:
                self._start(data, cgroup, "try")
                pages = self._segment_pages(data)
                assert pages > 60, "the limit is short"
                found = observed(data)
                assert found["huge_pages_status"] == "on", "it started and looks healthy"
                (limit,) = [one for one in found["hugetlb_limits"] if one["page_bytes"] == PAGE]
                assert (limit["counter"], limit["limit_bytes"]) == ("usage", 60 * PAGE)
                assert 0 < limit["usage_bytes"] < 60 * PAGE
                assert found["segments"][0]["bytes"] > limit["limit_bytes"]
                assert "Bad address" in self._read_all(data)
                (after,) = [one for one in observed(data)["hugetlb_limits"] if one["page_bytes"] == PAGE]
                assert after["usage_bytes"] == after["limit_bytes"], "no room is left"
            finally:
                data.stop()

    def test_a_reservation_limit_below_the_segment_is_a_silent_fallback(self, data: Postgresql) -> None:
        with hugetlb_cgroup(None, 60 * PAGE) as cgroup:
            try:
                self._start(data, cgroup, "try")
                found = observed(data)
                assert found["huge_pages_status"] == "off"
                assert found["settings"]["huge_pages"]["value"] == "try"
                (limit,) = [one for one in found["hugetlb_limits"] if one["page_bytes"] == PAGE]
                assert (limit["counter"], limit["limit_bytes"], limit["usage_bytes"]) == ("reservation", 60 * PAGE, 0)
                assert self._read_all(data) == "", "slower, but sound"
            finally:
                data.stop()

    def test_a_usage_limit_of_nothing_kills_initdb(self, bin_folder: Path) -> None:
        """The node has pages and mapping them succeeds; the first touch is refused with SIGBUS."""
        with hugetlb_cgroup(0, None) as cgroup, server(bin_folder, cgroup) as made:
            made_db = made.initdb()
            assert made_db.returncode != 0
            assert "Bus error" in made_db.stdout + made_db.stderr

    def test_a_limit_of_both_counters_of_nothing_lets_initdb_pass(self, bin_folder: Path) -> None:
        """What a kubelet of 1.34 sets on a pod without huge pages."""
        with hugetlb_cgroup(0, 0) as cgroup, server(bin_folder, cgroup) as made:
            assert made.initdb().returncode == 0

    def test_a_sufficient_limit_is_silent(self, data: Postgresql) -> None:
        with hugetlb_cgroup(POOL_PAGES * PAGE, POOL_PAGES * PAGE) as cgroup:
            try:
                self._start(data, cgroup, "on")
                assert self._read_all(data) == ""
                found = observed(data)
                assert found["huge_pages_status"] == "on"
                own = data.sql("show huge_pages_status").stdout.strip()
                assert own in ("on", ""), "PostgreSQL 17 tells the same; older ones do not tell"
                assert found["segments"][0]["bytes"] == self._segment_pages(data) * PAGE
            finally:
                data.stop()
