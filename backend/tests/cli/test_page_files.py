"""Pages that no process holds are named: a file that was left on hugetlbfs, a SysV segment that was left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hugeplan_agent.host import Host

from hugeplan.cli import page_files
from hugeplan.cli.page_files import without_process
from hugeplan.cli.pool_files import PoolFiles
from hugeplan.planner.model import MIB
from hugeplan.proof import Observation
from hugeplan.proof.holders import holders

M2 = 2 * MIB
POOL_PAGES, FILE_PAGES, SEGMENT_PAGES = 12, 4, 3
_SEGMENT = """
import ctypes
c = ctypes.CDLL(None, use_errno=True)
c.shmat.restype = ctypes.c_void_p
size = {size}
segment = c.shmget(0, size, 0o1600 | 0o4000)
assert segment >= 0, ctypes.get_errno()
ctypes.memset(c.shmat(segment, None, 0), 1, size)
print(segment)
"""
_FILE = """
import mmap, sys
with open(sys.argv[1], "w+b") as file:
    file.truncate({size})
    held = mmap.mmap(file.fileno(), {size})
    for at in range(0, {size}, 2097152):
        held[at] = 1
    print("mapped", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Path]:
    """A mount of hugetlbfs beside a pool of this machine; both are gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("only root may change the node's pools")
    pool_reservation = pytest.importorskip("hugeplan_agent.pool_reservation")
    pools = PoolFiles(Path("/"))
    if not pools.folder(0, M2).is_dir() or not os.access(pools.folder(0, M2) / "nr_hugepages", os.W_OK):
        pytest.skip("this kernel has no writable pool of 2M pages on NUMA node 0")
    mount = tmp_path / "huge pages"
    mount.mkdir()
    try:
        with pool_reservation.reservation():
            before = pools.counts(0, M2).pages
            if pools.write(0, M2, before + POOL_PAGES) != before + POOL_PAGES:
                pools.write(0, M2, before)
                pytest.skip(f"the kernel does not find {POOL_PAGES} free pages of 2M")
            command = ["mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "none", str(mount)]
            if subprocess.run(command, check=False, capture_output=True).returncode:
                pools.write(0, M2, before)
                pytest.skip("hugetlbfs cannot be mounted here")
            try:
                yield mount
            finally:
                subprocess.run(["/bin/umount", str(mount)], check=True)
                pools.write(0, M2, before)
    except pool_reservation.ReservationError as error:
        pytest.skip(str(error))


def named(mount: Path) -> list[dict[str, Any]]:
    files = without_process(Host())["huge_page_files"]
    assert files is not None
    return [one for one in files if one["path"].startswith(str(mount))]


def test_a_file_is_named_when_no_process_maps_it(pool: Path) -> None:
    path = pool / "left behind"
    with subprocess.Popen(
        [sys.executable, "-c", _FILE.format(size=FILE_PAGES * M2), str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mapped\n"
        assert named(pool) == []  # its process has them
        holder.communicate("")
    assert named(pool) == [{"path": str(path), "page_bytes": M2, "pages": FILE_PAGES}]
    path.unlink()
    assert named(pool) == []


def test_a_segment_without_a_process_is_listed(pool: Path) -> None:
    assert pool.is_dir()
    made = subprocess.run(
        [sys.executable, "-c", _SEGMENT.format(size=SEGMENT_PAGES * M2)], check=True, capture_output=True, text=True
    )
    segment = int(made.stdout)
    try:
        seen = without_process(Host())["sysv_segments"]
        assert segment in {one["id"] for one in seen}
        pools = [{"page_bytes": M2, "nr_hugepages": SEGMENT_PAGES, "free_hugepages": 0}]
        sample = {"global_pools": pools, "sysv_segments": [one for one in seen if one["id"] == segment]}
        (holder,) = holders(Observation({"base_page_bytes": os.sysconf("SC_PAGE_SIZE")}, sample), M2).everyone
        assert (holder.pages, str(segment) in holder.name) == (SEGMENT_PAGES, True)
    finally:
        subprocess.run(["/usr/bin/ipcrm", "-m", str(segment)], check=True)
    assert segment not in {one["id"] for one in without_process(Host())["sysv_segments"]}


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    assert without_process(Host(tmp_path)) == {"huge_page_files": None, "sysv_segments": None}
    assert json.dumps(without_process(Host()))  # plain data, as a report is


def test_mappings_of_all_processes_have_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any user has thousands of processes that share 60,000 mappings: then it is not known which file is mapped."""
    line = "7f0000000000-7f0000001000 rw-s 00000000 00:2a {} /x\n"
    for pid in range(1, 41):
        folder = tmp_path / f"proc/{pid}"
        folder.mkdir(parents=True)
        (folder / "maps").write_text(line.format(pid) * 5000)
    host, others = Host(tmp_path), {b"00:2a 90000"}
    assert page_files._not_mapped(host, {b"00:2a 7", *others}) == others
    begun = time.thread_time()
    assert page_files._not_mapped(host, {b"00:2a 7"}) == set()
    assert page_files._not_mapped(host, others) == others
    monkeypatch.setattr(page_files, "_MOST_SECONDS", (time.thread_time() - begun) / 10)
    begun = time.thread_time()
    assert page_files._not_mapped(host, others) is None
    assert time.thread_time() - begun < 5 * page_files._MOST_SECONDS
