"""Kills `tlbbench --reserve` at random moments: the node must be as it was before.

After SIGTERM and SIGINT the program must end by itself with a valid document and exit status 0 or 3; after SIGKILL the
next start must give the pools back. In every case no journal, no named shared memory and no child process may be left.
The number of kills is TLBBENCH_KILLS (default 15, so that every signal comes five times). Needs root, a 2M pool, and
nobody else who changes it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import suite

COMMANDS = (["rows"], ["latency"], ["run"], ["scatter"], ["geometry"])
LONGEST_SECONDS = 6.0
# Little memory, so that many runs fit in a short time; pages of 2M only, which a node can nearly always find.
OPTIONS = ["--json", "--reserve", "--max-memory", "256M", "--page-sizes", "4K,2M"]
KILLS = int(os.environ.get("TLBBENCH_KILLS", "15"))


def pools() -> dict[str, str]:
    """Count of every pool of the machine and of its nodes."""
    roots = (Path("/sys/kernel/mm/hugepages"), *Path("/sys/devices/system/node").glob("node*/hugepages"))
    return {str(path): path.read_text().strip() for root in roots for path in sorted(root.glob("*/nr_hugepages"))}


def leftovers() -> list[str]:
    """Journals and named shared memory that a run could have left."""
    journals = [Path("/run/tlbbench"), Path(tempfile.gettempdir()) / f"tlbbench-{os.geteuid()}"]
    if "XDG_RUNTIME_DIR" in os.environ:
        journals.append(Path(os.environ["XDG_RUNTIME_DIR"]) / "tlbbench")
    return [str(path) for path in [*journals, *Path("/dev/shm").glob("*tlbbench*")] if path.exists()]


def require_a_machine_for_it() -> None:
    if os.geteuid() != 0:
        raise suite.Skip("taking huge pages needs root")
    if not os.access("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", os.W_OK):
        raise suite.Skip("this machine has no 2M pool that can be written")
    if leftovers():
        raise suite.Skip(f"another tlbbench is at work: {leftovers()}")


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


def kill_once(draw: random.Random, number: int) -> None:
    """One run and its end."""
    before = pools()
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
        subprocess.run([*suite.tlbbench(), "info", "--json"], capture_output=True, check=True)
    elif process.returncode < 0:
        assert delay < 0.1, f"{where}: ended by signal {-process.returncode}"  # before the handlers: nothing was taken
    else:
        assert process.returncode in (0, 3), f"{where}: exit status {process.returncode}"
        assert json.loads(output)["exit_status"] == process.returncode, f"{where}: the document says another status"
    assert pools() == before, f"{where}: pools were {before}, are {pools()}"
    assert not leftovers(), f"{where}: left {leftovers()}"


def random_kills() -> None:
    require_a_machine_for_it()
    draw = random.Random(KILLS)
    for number in range(KILLS):
        kill_once(draw, number)


def reserving_gives_back() -> None:
    require_a_machine_for_it()
    before = pools()
    made = suite.document("scatter", "--reserve", "--page-sizes", "4K,2M", "--max-memory", "256M")
    assert made["reservation"]["status"] == "ok", made["reservation"]
    assert pools() == before, f"pools were {before}, are {pools()}"
    assert not leftovers(), leftovers()


if __name__ == "__main__":
    suite.main("kill", [("reserving gives back", reserving_gives_back), (f"{KILLS} random kills", random_kills)])
