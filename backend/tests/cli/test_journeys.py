"""README's "From plan to proof", followed to the letter beside a server that is not at its defaults, and what breaks.

For PostgreSQL 15 to 18: 1,500 connections, preloaded libraries, a port of its own, settings in an included file and in
postgresql.auto.conf. Nine broken states are told apart by the exit status of ``hugeplan verify``. It needs root, the
server's programs, and free memory for 2M and 1G pages, which are taken under the lock that all of this project's trials
share and are given back on every way out.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from artifacts.samples import here
from cli.test_plan_to_proof import hugetlb_cgroup
from support.postgresql_servers import RealServer, programs

from hugeplan.cli import main
from hugeplan.cli.pool_files import PoolFiles
from hugeplan.planner.model import GIB, MIB

M2 = 2 * MIB
MAJORS = (15, 16, 17, 18)
LIBRARIES = ("pg_stat_statements", "pg_prewarm", "auto_explain")
Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def pools() -> Iterator[PoolFiles]:
    """The node's pools under the common lock; the test wants them empty, and leaves them so."""
    if os.geteuid() != 0:
        pytest.skip("only root may change the node's pools")
    if any(shutil.which(name) is None for name in ("setpriv", "runuser")):
        pytest.skip("setpriv and runuser are not installed")
    reserving = pytest.importorskip("hugeplan_agent.pool_reservation")
    files = PoolFiles(Path("/"))
    for size in (M2, GIB):
        if not os.access(files.folder(0, size) / "nr_hugepages", os.W_OK):
            pytest.skip(f"this kernel has no writable pool of {size} bytes on NUMA node 0")
    try:
        with reserving.reservation(), pytest.MonkeyPatch.context() as ours:
            ours.setattr("hugeplan.cli.apply.pools_held", lambda _: nullcontext())  # this test holds it
            for size in (M2, GIB):
                if files.counts(0, size).pages:
                    pytest.skip(f"pages of {size} bytes are allocated already: the test wants the pools for itself")
            yield files
            for size in (M2, GIB):
                files.write(0, size, 0)
                assert files.counts(0, size).pages == 0
    except reserving.ReservationError as error:
        pytest.skip(str(error))


@pytest.fixture(params=MAJORS)
def server(request: pytest.FixtureRequest, pools: PoolFiles) -> Iterator[RealServer]:  # noqa: ARG001 - its skips first
    """A running server that is not at its defaults, on base pages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = RealServer(programs(request.param), port)
    try:
        libraries = ",".join(name for name in LIBRARIES if any(made.bin.parent.rglob(f"{name}.so")))
        made.configure({"shared_buffers": "64MB", "huge_pages": "off", "shared_preload_libraries": libraries})
        made.configure({"pg_stat_statements.max": str(random.Random(request.param).randrange(6000, 60000))})
        made.configure({"include_dir": "own"})
        (made.data / "own").mkdir()
        (made.data / "own" / "10-busy.conf").write_text("max_connections = 1500\nfsync = off\n")
        assert made.start() == 0, made.log
        made.sql("alter system set max_locks_per_transaction = 128")
        made.sql("alter system set huge_pages = off")
        assert made.control("restart") == 0, made.log
        yield made
    finally:
        made.close()


@pytest.fixture
def hugeplan(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str) -> tuple[int, str]:
        status = main(list(words))
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run


def shell(commands: str, folder: Path) -> None:
    """Commands as a person pastes them into root's shell, in the folder of the files; each must succeed."""
    with (folder / "out").open("w+") as out:
        done = subprocess.run(
            ["/bin/sh", "-ec", here(commands)], check=False, cwd=folder, stdout=out, stderr=out, timeout=120
        )
        out.seek(0)
        assert done.returncode == 0, f"{commands}\n{out.read()}"


def planned(hugeplan: Command, path: Path, flags: str) -> dict[str, Any]:
    status, text = hugeplan("plan", "--node", "this", "--postgresql", flags, "--json")
    assert status in {0, 5}, text
    path.write_text(text)
    document: dict[str, Any] = json.loads(text)
    return document


def file_of(document: dict[str, Any]) -> dict[str, Any]:
    return next(item for item in document["artifacts"] if item["kind"] == "postgresql_conf")


@contextmanager
def kubelet(folder: Path, offered: dict[str, int]) -> Iterator[None]:
    """A process of that name with the memory manager's checkpoint: what it offered when it started, in bytes."""
    table = {name: {"total": count} for name, count in offered.items()}
    state = {"policyName": "Static", "machineState": {"0": {"memoryMap": table}}}
    folder.mkdir(exist_ok=True)
    (folder / "memory_manager_state").write_text(json.dumps(state))
    # The kernel names a process after its file, and a link would be named after its target.
    program = shutil.copy(os.path.realpath("/bin/sh"), folder / "kubelet")
    words = [str(program), "-c", "echo up; read -r end", "kubelet", f"--root-dir={folder}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        yield
        assert child.stdin is not None
        child.stdin.close()


@contextmanager
def holding(pages: int) -> Iterator[int]:
    """Another process that holds pages of 2M; its PID."""
    program = (
        "import mmap,sys\n"
        f"m=mmap.mmap(-1,{pages * M2},mmap.MAP_SHARED|mmap.MAP_ANONYMOUS|0x40000)\n"
        f"[m.__setitem__(i,1) for i in range(0,{pages * M2},{M2})]\n"
        "print('held',flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == b"held"
        yield child.pid
        assert child.stdin is not None
        child.stdin.close()


def verified(hugeplan: Command, path: Path, status: int, *words: str) -> None:
    """``hugeplan verify`` ends with this status and says these words.

    Another test's PostgreSQL that starts or ends has no port yet, and may be the plan's: that moment is waited out.
    """
    deadline = time.monotonic() + 60
    while True:
        got, text = hugeplan("verify", str(path))
        if got == status or "server that it may be" not in text or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    assert got == status, text
    assert [word for word in words if word not in text] == [], text


def test_from_plan_to_proof(server: RealServer, pools: PoolFiles, hugeplan: Command, tmp_path: Path) -> None:
    """The whole way on 2M with a larger buffer pool than now, and every state in which a person may meet it."""
    plan, flags = tmp_path / "plan.json", f"port={server.port},shared_buffers=200MB,page_size=2M"
    document = planned(hugeplan, plan, flags)
    pages = sum(pool["pages"] for pool in document["plan"]["pools"] if pool["page_bytes"] == M2)
    needed = document["plan"]["instances"][0]["demand"]["pages"]
    assert hugeplan("artifacts", str(plan), "--out", str(tmp_path / "files"))[0] == 0
    folder = next((tmp_path / "files").glob("*-postgresql_conf"))
    own, at_port = file_of(document), f"PostgreSQL on port {server.port}"
    try:
        verified(hugeplan, plan, 10, "is not reserved", "hugeplan apply")
        status, text = hugeplan("apply", str(plan), "--yes")
        assert (status, pools.counts(0, M2).pages) == (6, pages), text
        verified(hugeplan, plan, 14, f"{at_port} (PID", "install the plan's file for the database and restart it")
        assert server.control("stop") == 0
        verified(hugeplan, plan, 13, f"{at_port} is not running")
        with holding(pages - needed // 2) as pid:
            server.sql("select 1")
            (server.data / "own" / "20-try.conf").write_text("huge_pages = try\nshared_buffers = 200MB\n")
            (server.data / "postgresql.auto.conf").write_text("max_locks_per_transaction = 128\n")
            assert server.start() == 0, server.log
            verified(hugeplan, plan, 15, f"(PID {pid}", "pages of 2M are left for it")
        (server.data / "own" / "20-try.conf").unlink()
        server.sql("alter system set huge_pages = off")
        # As the plan's README says, word for word; huge_pages = off of ALTER SYSTEM must not win over the file.
        shell(own["install"], folder)
        assert server.sql("show huge_pages") == "on"
        assert int(server.sql("show shared_memory_size_in_huge_pages")) == needed
        verified(hugeplan, plan, 0, f"The plan of {document['plan']['node']} is in force")
        shell(own["verify"], folder)
        # Lowered under it: it goes on, and its next start would fail.
        pools.write(0, M2, needed // 2)
        verified(hugeplan, plan, 12, "was lowered to", f"{at_port} (PID", "raise it again")
        status, text = hugeplan("apply", "--roll-back")
        assert (status, at_port in text, "stop or restart" in text) == (5, True, True), text
        assert server.control("stop") == 0
        pools.write(0, M2, needed - 1)
        assert server.start() != 0, "huge_pages = on refuses a pool that is one page short"
        verified(hugeplan, plan, 11, f"The kernel gave {needed - 1} of {pages} pages")
        pools.write(0, M2, pages)
        with hugetlb_cgroup((needed - 20) * M2) as cgroup:
            assert server.start() == 0, server.log
            (cgroup / "cgroup.procs").write_text((server.data / "postmaster.pid").read_text().split()[0])
            verified(hugeplan, plan, 17, "once its cache is warm", "Raise the usage limit of 2M pages of the cgroup /")
        shell(own["rollback"], folder)
        assert server.sql("show huge_pages") == "off", "what postgresql.conf says"
        assert server.control("stop") == 0
    finally:
        server.control("-m", "immediate", "stop")
        status, text = hugeplan("apply", "--roll-back")
    assert (status, pools.counts(0, M2).pages) == (0, 0), text


@pytest.mark.parametrize("server", [MAJORS[-1]], indirect=True)
def test_a_second_plan_keeps_what_the_first_one_set(
    server: RealServer, pools: PoolFiles, hugeplan: Command, tmp_path: Path
) -> None:
    """Another setting, installed and rolled back: its file took the first one's place without what that one set."""
    said = "max_connections = 1600, its server has 1500 (10-busy.conf)"
    try:
        for name, flag, words in (
            ("one", "shared_buffers=200MB", "shared_buffers"),
            ("two", "max_connections=1600", said),
        ):
            plan, out = tmp_path / f"{name}.json", tmp_path / name
            document = planned(hugeplan, plan, f"port={server.port},{flag},page_size=2M")
            status, text = hugeplan("apply", str(plan), "--yes")
            assert (status, words in text) == (6, True), text
            assert hugeplan("artifacts", str(plan), "--out", str(out))[0] == 0
            files = next(out.glob("*-postgresql_conf"))
            shell(file_of(document)["install"], files)
            verified(hugeplan, plan, 0, "is in force")
        assert (server.sql("show shared_buffers"), server.sql("show max_connections")) == ("200MB", "1600")
        shell(file_of(document)["rollback"], files)
        assert (server.sql("show shared_buffers"), server.sql("show max_connections")) == ("200MB", "1500")
    finally:
        server.control("-m", "immediate", "stop")
        pools.write(0, M2, 0)


def test_on_pages_of_1g(server: RealServer, pools: PoolFiles, hugeplan: Command, tmp_path: Path) -> None:
    """The same way on 1G; a plan for 2M then says that the server runs on another size."""
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    of_small = planned(hugeplan, small, f"pid={(server.data / 'postmaster.pid').read_text().split()[0]},page_size=2M")
    document = planned(hugeplan, large, f"data_directory={server.data},shared_buffers=200MB,page_size=1G")
    pages = sum(pool["pages"] for pool in document["plan"]["pools"] if pool["page_bytes"] == GIB)
    folder = tmp_path / "files"
    assert hugeplan("artifacts", str(large), "--out", str(folder))[0] == 0
    own = file_of(document)
    try:
        status, text = hugeplan("apply", str(large), "--yes")
        if status == 1 and "given" in text:
            pytest.skip(f"SKIP: the kernel has no contiguous memory for {pages} pages of 1G now")
        assert (status, pools.counts(0, GIB).pages) == (6, pages), text
        shell(own["install"], next(folder.glob("*-postgresql_conf")))
        assert (server.sql("show huge_page_size"), server.sql("show shared_buffers")) == ("1GB", "200MB")
        verified(hugeplan, large, 0, "It runs on pages of 1G")
        pools.write(0, M2, sum(pool["pages"] for pool in of_small["plan"]["pools"] if pool["page_bytes"] == M2))
        verified(hugeplan, small, 16, "It runs on pages of 1G, not of 2M", "name the page size")
        shell(own["rollback"], tmp_path)
    finally:
        server.control("-m", "immediate", "stop")
        pools.write(0, M2, 0)
        status, text = hugeplan("apply", "--roll-back")
    assert (status, pools.counts(0, GIB).pages) == (0, 0), text


@pytest.mark.parametrize("server", [MAJORS[-1]], indirect=True)
def test_a_kubelet_that_started_before_the_pool(
    server: RealServer, pools: PoolFiles, hugeplan: Command, tmp_path: Path
) -> None:
    """Everything is right but the kubelet: it read the pools when it started, and offers what was there then."""
    plan, memory = tmp_path / "plan.json", {"memory": 64 * GIB}
    try:
        with kubelet(tmp_path / "old", memory | {"hugepages-2Mi": 0}):
            document = planned(hugeplan, plan, f"port={server.port},shared_buffers=100MB,page_size=2M")
            pages = sum(pool["pages"] for pool in document["plan"]["pools"] if pool["page_bytes"] == M2)
            assert hugeplan("artifacts", str(plan), "--out", str(tmp_path / "files"))[0] == 0
            folder = next((tmp_path / "files").glob("*-postgresql_conf"))
            pools.write(0, M2, pages)
            verified(hugeplan, plan, 14, "install the plan's file", "The kubelet started before the pool was changed")
            shell(file_of(document)["install"], folder)
            verified(hugeplan, plan, 18, "It offers 0 B", "restart the kubelet")
        with kubelet(tmp_path / "new", memory | {"hugepages-2Mi": pages * M2}):
            verified(hugeplan, plan, 0, "The kubelet knows the pool", "is in force")
    finally:
        server.control("-m", "immediate", "stop")
        pools.write(0, M2, 0)
