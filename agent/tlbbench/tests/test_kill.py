"""Kills `tlbbench --reserve` at random moments: the node must be as it was before.

After SIGTERM and SIGINT the program must end by itself with a valid document and exit status 0 or 3; after SIGKILL the
next start must give the pools back. In every case no journal, no named shared memory and no child process may be left.
The number of kills is TLBBENCH_KILLS (default 15, so that every signal comes five times), TLBBENCH_KILLS_SEED draws
others. Needs root, a 2M pool, and nobody outside this project who changes it.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import suite

from hugeplan_agent.pool_reservation import reservation

COMMANDS = (["rows"], ["latency"], ["run"], ["scatter"], ["geometry"])
LONGEST_SECONDS = 6.0
# Little memory, so that many runs fit in a short time; pages of 2M only, which a node can nearly always find.
OPTIONS = ["--json", "--reserve", "--max-memory", "256M", "--page-sizes", "4K,2M"]
POOL_2M = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
KILLS = int(os.environ.get("TLBBENCH_KILLS", "15"))


def is_abandoned(journal: Path) -> bool:
    """True when pools stand in the journal and nobody holds it: a run left them."""
    with suppress(FileNotFoundError, BlockingIOError), journal.open("r+") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return journal.exists() and "pool " in handle.read()
    return False


def leftovers() -> list[str]:
    """Journals and named shared memory that a run could have left."""
    folders = [Path("/run/tlbbench"), Path(tempfile.gettempdir()) / f"tlbbench-{os.geteuid()}"]
    if "XDG_RUNTIME_DIR" in os.environ:
        folders.append(Path(os.environ["XDG_RUNTIME_DIR"]) / "tlbbench")
    journals = [folder / "journal" for folder in folders if is_abandoned(folder / "journal")]
    return [str(path) for path in [*journals, *Path("/dev/shm").glob("*tlbbench*")]]


def require_a_machine_for_it() -> None:
    if os.geteuid() != 0:
        raise suite.Skip("taking huge pages needs root")
    if not os.access(POOL_2M / "nr_hugepages", os.W_OK):
        raise suite.Skip("this machine has no 2M pool that can be written")


def group_ends(group: int, seconds: float) -> bool:
    """Waits for the children of a killed run, which the kernel kills in turn."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def restore() -> str:
    """Starts a command that measures, and ends at once for want of memory. Returns what it said."""
    done = suite.run("geometry", "--max-memory", "2M", "--json")
    assert done.returncode == 3, done.stderr
    return done.stderr


def kill_once(draw: random.Random, number: int) -> None:
    """One run and its end."""
    before = suite.pools_at_rest()
    how = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)[number % 3]
    command = [*suite.tlbbench(), *draw.choice(COMMANDS), *OPTIONS, "--seed", str(number + 1)]
    delay = draw.random() ** 2 * LONGEST_SECONDS
    where = f"kill {number} ({how.name} after {delay:.3f} s, {command[1]})"
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, text=True
    )
    try:
        output, _ = process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        output, _ = process.communicate(timeout=60)
    assert group_ends(process.pid, 20), f"{where}: children live on"
    if process.returncode == -signal.SIGKILL:
        restore()
    elif process.returncode < 0:
        assert delay < 0.1, f"{where}: ended by signal {-process.returncode}"  # before the handlers: nothing was taken
    else:
        assert process.returncode in (0, 3), f"{where}: exit status {process.returncode}"
        assert json.loads(output)["exit_status"] == process.returncode, f"{where}: the document says another status"
    assert not leftovers(), f"{where}: left {leftovers()}"  # first: the next look at the pools would mend them
    assert suite.pools_at_rest() == before, f"{where}: pools were {before}, are {suite.pools_at_rest()}"


def random_kills() -> None:
    require_a_machine_for_it()
    draw = random.Random(int(os.environ.get("TLBBENCH_KILLS_SEED", KILLS)))
    for number in range(KILLS):
        kill_once(draw, number)


def reserving_gives_back() -> None:
    require_a_machine_for_it()
    before = suite.pools_at_rest()
    made = suite.reserving(
        partial(suite.document, "scatter", "--reserve", "--page-sizes", "4K,2M", "--max-memory", "256M")
    )
    assert made["reservation"]["status"] == "ok", made["reservation"]
    if "ok" in {curve["status"] for curve in made["scatter"]["curves"] if curve["backing"] == "2M"}:
        assert made["scatter"]["peak_mapped_bytes"] >= 2 << 20, "the huge page of the window is not counted"
    assert not leftovers(), leftovers()
    assert suite.pools_at_rest() == before, f"pools were {before}, are {suite.pools_at_rest()}"


def one_writer_at_a_time() -> None:
    """While a trial of this project holds pages, tlbbench measures without, leaves them alone and says so."""
    require_a_machine_for_it()
    before = suite.pools_at_rest()
    with reservation() as held:
        grown = held.grow(2 << 20, 3)
        made = suite.document("scatter", "--reserve", "--page-sizes", "4K,2M", "--max-memory", "256M")
        assert made["reservation"]["status"] == "skipped", made["reservation"]
        assert "another program holds huge pages" in made["reservation"]["reason"], made["reservation"]
        assert made["exit_status"] == 3
        assert suite.pages_that_stay(POOL_2M) == before[str(POOL_2M)] + grown
    assert suite.pools_at_rest() == before


HOLDER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from hugeplan_agent.pool_reservation import reservation
with reservation() as held:
    print(held.grow(2 << 20, 3), flush=True)
    time.sleep(60)
"""


def a_killed_trial_is_mended() -> None:
    """Pages that a trial left when it was killed come back at the next start of a command that measures."""
    require_a_machine_for_it()
    before = suite.pools_at_rest()
    agent = str(suite.REPOSITORY / "agent")
    with subprocess.Popen([sys.executable, "-c", HOLDER, agent], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        grown = int(holder.stdout.readline())
        holder.kill()
    if grown == 0:
        raise suite.Skip("the kernel found no 2M page")
    assert leftovers(), "the trial left no journal"
    assert suite.pages_that_stay(POOL_2M) == before[str(POOL_2M)] + grown
    done = suite.run("info", "--json")
    assert "left huge page pools raised" in done.stderr, done.stderr
    assert suite.pages_that_stay(POOL_2M) == before[str(POOL_2M)] + grown, (
        "info, which promises to change nothing, wrote a pool"
    )
    assert "restored the huge page pools" in restore()
    assert not leftovers(), leftovers()
    assert suite.pools_at_rest() == before


def a_mount_of_a_user_is_not_asked() -> None:
    """A mount of FUSE in the place of a journal's folder: its owner is what its server says, and this one is silent."""
    place, libc = Path(tempfile.gettempdir()) / f"tlbbench-{os.geteuid()}", ctypes.CDLL(None)
    if os.geteuid() != 0 or place.exists() or not Path("/dev/fuse").exists():
        raise suite.Skip("mounting FUSE needs root and /dev/fuse")
    place.mkdir()
    served = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={served},rootmode=40000,user_id=65534,group_id=65534,allow_other".encode()
    try:
        if libc.mount(b"x", os.fsencode(place), b"fuse", 6, options):
            raise suite.Skip("no right to mount FUSE")
        with subprocess.Popen([*suite.tlbbench(), "info", "--json"], stdout=subprocess.DEVNULL) as asking:
            try:
                assert asking.wait(timeout=20) == 0
            finally:
                libc.umount2(os.fsencode(place), 2)
                os.close(served)  # who waits for it goes on
                served = -1
    finally:
        if served >= 0:
            os.close(served)
        place.rmdir()


CASES = [
    ("a mount of a user is not asked", a_mount_of_a_user_is_not_asked),
    ("reserving gives back", reserving_gives_back),
    ("one writer at a time", one_writer_at_a_time),
    ("a killed trial is mended", a_killed_trial_is_mended),
    (f"{KILLS} random kills", random_kills),
]

if __name__ == "__main__":
    suite.main("kill", CASES)
