"""From plan to proof for real: plan for a PostgreSQL, apply, start it on huge pages, verify, roll back.

It needs root, a kernel with 2M pages, and free memory for about 150 of them. The pages are taken under the lock that
all of this project's trials share, and the counts are as before on every way out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from hugeplan.cli import main
from hugeplan.cli.pool_files import PoolFiles
from hugeplan.cli.this_node import observe
from hugeplan.embedded import EmbeddedPostgresError, programs_dir
from hugeplan.planner.model import MIB, DatabaseInstance, Plan, PlanRequest, Policy
from hugeplan.planner.plan import plan

M2 = 2 * MIB
#: A size that no other server on the machine has, so that it is told apart by its segment.
SHARED_BUFFERS = "233MB"
NAME = "proof"


@pytest.fixture(scope="module")
def files() -> Iterator[PoolFiles]:
    """The node's pools under the common lock, with the counts as before at the end."""
    if os.geteuid() != 0:
        pytest.skip("only root may change the node's pools")
    pool_reservation = pytest.importorskip("hugeplan_agent.pool_reservation")
    pools = PoolFiles(Path("/"))
    if not pools.folder(0, M2).is_dir() or not os.access(pools.folder(0, M2) / "nr_hugepages", os.W_OK):
        pytest.skip("this kernel has no writable pool of 2M pages on NUMA node 0")
    try:
        with pool_reservation.reservation(), pytest.MonkeyPatch.context() as ours:
            ours.setattr("hugeplan.cli.apply.pools_held", lambda _: nullcontext())  # this test holds it
            before = pools.counts(0, M2).pages
            if before:
                pytest.skip(f"{before} pages of 2M stand already: the test wants the pool for itself")
            yield pools
            pools.write(0, M2, before)
            assert pools.counts(0, M2).pages == before
    except pool_reservation.ReservationError as error:
        pytest.skip(str(error))


class Server:
    """A PostgreSQL of the embedded wheel, run by an ordinary user."""

    def __init__(self, folder: Path) -> None:
        try:
            self.programs = programs_dir()
        except EmbeddedPostgresError as error:
            pytest.skip(str(error))
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        self.folder = folder
        self.data = folder / "data"
        folder.chmod(0o755)
        self.data.mkdir(mode=0o700)
        shutil.chown(self.data, "daemon")
        self.run("initdb", "-D", str(self.data), "-A", "trust", "-U", "postgres", "--no-sync")

    def run(self, program: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        command = ["setpriv", "--reuid=daemon", "--clear-groups", str(self.programs / program), *words]
        return subprocess.run(command, check=check, capture_output=True, cwd="/", timeout=120)

    @contextmanager
    def started(self, huge_pages: str, cgroup: Path | None = None) -> Iterator[bool]:
        """Whether it started; it is stopped at the end."""
        options = f"-c shared_buffers={SHARED_BUFFERS} -c huge_pages={huge_pages} -c listen_addresses= -k {self.data}"
        command = [
            "pg_ctl",
            "-D",
            str(self.data),
            "-w",
            "-t",
            "60",
            "-l",
            str(self.data / "log"),
            "-o",
            options,
            "start",
        ]
        full = ["setpriv", "--reuid=daemon", "--clear-groups", str(self.programs / command[0]), *command[1:]]

        def enter() -> None:
            if cgroup is not None:
                (cgroup / "cgroup.procs").write_text(str(os.getpid()))

        # pg_ctl's children keep its output open: a file, not a pipe, or nobody would ever see its end.
        with (self.folder / "start.out").open("wb") as out:
            done = subprocess.run(full, check=False, stdout=out, stderr=out, cwd="/", timeout=120, preexec_fn=enter)
        try:
            yield done.returncode == 0
        finally:
            self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop", check=False)


@pytest.fixture(scope="module")
def server(files: PoolFiles) -> Iterator[Server]:  # noqa: ARG001 - skips come first
    # Not below pytest's own folder: each pytest that starts closes it to other users, the server's among them.
    with tempfile.TemporaryDirectory(prefix="hugeplan-proof-") as folder:
        yield Server(Path(folder))


@pytest.fixture
def plan_file(tmp_path: Path, server: Server) -> tuple[Path, Plan]:
    """A plan of exactly the server's pages, without slack, told apart from other servers of this machine."""
    database = DatabaseInstance(
        name=NAME,
        engine="postgresql",
        version="18",
        page_bytes=M2,
        settings={"shared_buffers": SHARED_BUFFERS, "data_directory": str(server.data)},
        numa_node=0,
    )
    request = PlanRequest(
        node=observe()[0],
        databases=(database,),
        policy=Policy(slack_fraction=0.0, slack_min_pages=0, reserve_at="runtime"),
    )
    found = plan(request)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"plan": asdict(found), "request": asdict(request)}))
    return path, found


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def hugeplan(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str) -> tuple[int, str]:
        status = main(list(words))
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run


def pool_pages(found: Plan) -> int:
    return sum(pool.pages for pool in found.pools if pool.page_bytes == M2 and pool.numa_node == 0)


def test_plan_apply_start_verify_and_roll_back(
    files: PoolFiles, server: Server, plan_file: tuple[Path, Plan], hugeplan: Command
) -> None:
    path, found = plan_file
    pages = pool_pages(found)
    before = files.counts(0, M2).pages
    status, text = hugeplan("apply", str(path), "--dry-run")
    assert (status, files.counts(0, M2).pages) == (0, before), text
    status, text = hugeplan("apply", str(path), "--yes")
    assert status in {3, 6}, text  # the server does not run yet; another that runs here may be it
    assert files.counts(0, M2).pages == pages
    try:
        with server.started("on") as runs:
            assert runs, (server.data / "log").read_text()
            status, text = hugeplan("verify", str(path), "--json")
            findings = json.loads(text)["findings"]
            by_code = {f["code"]: f for f in findings if f["subject"] in {NAME, "2M on NUMA node 0", "2M"}}
            assert by_code["verify_pool"]["state"] == "ok", text
            assert by_code["verify_engine"]["state"] == "ok", text
            assert by_code["verify_pool_idle"]["state"] == "ok", text
            assert status == 0, text
            # Exactly the planned pages: all are mapped or reserved by the server.
            counts = files.counts(0, M2)
            assert counts.pages - counts.free + files.reserved(M2) == pages
            # The plan in force is kept: no file differs.
            assert hugeplan("artifacts", str(path), "--diff", "in-force") == (0, "")
            # Pages that the server uses are not taken from it.
            status, text = hugeplan("apply", "--roll-back")
            assert (status, "in use by PostgreSQL" in text, "stop or restart" in text) == (5, True, True), text
            assert files.counts(0, M2).pages == pages
        # One page too few: the server falls back, and verify says so.
        files.write(0, M2, pages - 1)
        with server.started("on") as runs:
            assert not runs
        with server.started("try") as runs:
            assert runs
            status, text = hugeplan("verify", str(path))
            assert status == 11, text
            assert f"The kernel gave {pages - 1} of {pages} pages" in text
            assert "runs on base pages, not on 2M" in text
    finally:
        status, text = hugeplan("apply", "--roll-back")
    assert status == 0, text
    assert files.counts(0, M2).pages == before
    assert hugeplan("apply", "--status")[1].startswith("old: the previous counts were restored")
    status, text = hugeplan("artifacts", str(path), "--diff", "in-force")
    assert (status, "applied no plan on this node" in text) == (2, True), text


HIERARCHY = Path("/sys/fs/cgroup/hugetlb")


@contextmanager
def hugetlb_cgroup(limit_bytes: int) -> Iterator[Path]:
    """A cgroup with a usage limit in the hugetlb controller's hierarchy, version 1, mounted where it is expected."""
    is_mine = not HIERARCHY.is_mount()
    if is_mine:
        try:
            HIERARCHY.mkdir(exist_ok=True)
        except OSError as error:
            pytest.skip(f"{HIERARCHY} cannot be made: {error.strerror}")
        mount = ["/bin/mount", "-t", "cgroup", "-o", "hugetlb", "cgroup", str(HIERARCHY)]
        mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
        if mounted.returncode:
            HIERARCHY.rmdir()
            pytest.skip(f"the hugetlb controller cannot be mounted here: {mounted.stderr.strip()}")
    own = HIERARCHY / f"hugeplan-proof-{os.getpid()}"
    try:
        own.mkdir()
        (own / "hugetlb.2MB.limit_in_bytes").write_text(str(limit_bytes))
        yield own
    finally:
        with suppress(OSError):
            for pid in (own / "cgroup.procs").read_text().split():
                (HIERARCHY / "cgroup.procs").write_text(pid)
        with suppress(OSError):
            own.rmdir()
        if is_mine:
            subprocess.run(["/bin/umount", str(HIERARCHY)], check=False, capture_output=True)
            with suppress(OSError):
                HIERARCHY.rmdir()


def test_a_limit_below_the_segment_is_found(
    files: PoolFiles, server: Server, plan_file: tuple[Path, Plan], hugeplan: Command
) -> None:
    path, found = plan_file
    pages = pool_pages(found)
    with hugetlb_cgroup((pages - 20) * M2) as cgroup:
        try:
            assert hugeplan("apply", str(path), "--yes")[0] in {3, 6}
            with server.started("on", cgroup) as runs:
                assert runs, (server.data / "log").read_text()
                status, text = hugeplan("verify", str(path))
                assert status == 17, text
                assert "could not read blocks: Bad address" in text
        finally:
            hugeplan("apply", "--roll-back")
    assert files.counts(0, M2).pages == 0
