"""What the measuring commands print: documents valid by the schema, reports, progress, and partial results."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import suite

# Small budgets: these cases test what is printed, not the numbers.
SMALL = ("--max-memory", "64M", "--time-limit", "4")
# Geometry ends by itself in a few seconds; on a loaded machine it may need longer; what these cases test comes last.
ENOUGH = ("--max-memory", "64M", "--time-limit", "30")
TERMINAL_SECONDS = 60
LARGEST_SEED = 18446744073709551615


@cache
def on_a_pipe() -> subprocess.CompletedProcess[str]:
    """One run of geometry for the cases that look at its document: none of them depends on a run of its own."""
    return suite.run("geometry", *ENOUGH, "--seed", str(LARGEST_SEED))


@cache
def measured(command: str, *arguments: str) -> dict[str, Any]:
    """The document of a run, the same for every case that asks for it."""
    return checked(command, suite.document(command, *SMALL, *arguments))


def checked(command: str, made: dict[str, Any]) -> dict[str, Any]:
    assert made["command"] == command
    assert made["profile"] == "quick"
    assert [section["name"] for section in made["sections"]] == [command]
    return made


def geometry_document() -> None:
    done = on_a_pipe()
    made = checked("geometry", suite.parse(done.stdout))
    assert done.returncode == made["exit_status"], done.returncode
    geometry = made["geometry"]
    sources = {level["source"] for level in geometry["levels"]}
    if geometry["status"] == "ok":
        assert "measured" in sources, sources
    for level in geometry["levels"]:
        if level["entries"] is not None:
            assert level["entries_min"] <= level["entries"] <= level["entries_max"], level
    backings = [granule["backing"] for granule in geometry["effective_granule"]]
    assert len(backings) == len(set(backings)), backings


def latency_document() -> None:
    latency = measured("latency")["latency"]
    for curve in latency["curves"]:
        xs = [point["x"] for point in curve["points"]]
        assert xs == sorted(set(xs)), f"{curve['name']}: {xs}"
        assert curve["points"] or curve["status"] != "ok", f"{curve['name']} is ok and empty"
        for point in curve["points"]:
            if point["ns_p50"] is not None:
                assert point["ns_min"] <= point["ns_p10"] <= point["ns_p50"] <= point["ns_p90"], point


def pressure_document() -> None:
    """What cannot be measured leaves a status and a reason, and no points."""
    small = measured("latency")["latency"]["pressure"]
    assert small["lines_per_page"] == 16, small
    assert small["points"] or small["status"] != "ok", "ok and empty"
    assert (small["region_bytes"] == 0) == (small["region_backing"] is None), small
    alone = measured("latency", "--page-sizes", "4K")
    assert alone["latency"]["pressure"]["status"] == "skipped", alone["latency"]["pressure"]
    assert alone["latency"]["pressure"]["reason"], "skipped without a reason"
    assert alone["latency"]["pressure"]["points"] == []
    assert alone["latency"]["status"] != "ok" or alone["exit_status"] == 0, "a size that was not asked for is missing"


def latency_of_what_is_asked_for() -> None:
    asked = ("--footprints", "40M,1M", "--curves", "packed,random_64b")
    latency = measured("latency", "--page-sizes", "4K,thp", *asked)["latency"]
    assert {curve["layout"] for curve in latency["curves"]} == {"packed", "random_64b"}, latency["curves"]
    for curve in latency["curves"]:
        assert {point["x"] for point in curve["points"]} <= {1 << 20, 40 << 20}, curve
    assert latency["pressure"]["status"] == "skipped", latency["pressure"]
    assert "--curves" in latency["pressure"]["reason"], latency["pressure"]
    only = measured("latency", "--page-sizes", "4K,thp", "--curves", "pressure")["latency"]
    assert only["curves"] == [], only["curves"]
    assert only["paired_deltas"] == [], only["paired_deltas"]
    made = suite.document("latency", "--page-sizes", "4K", "--footprints", "1M," + most_memory(), "--time-limit", "4")
    assert made["exit_status"] == 3, made["exit_status"]
    assert made["latency"]["status"] == "memory_limit", made["latency"]
    assert made["latency"]["curves"][0]["points"], "a footprint that fits was lost with one that does not"


def most_memory() -> str:
    """All of this machine's memory, which is never free: a footprint that may be asked for and is not available."""
    total_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return f"{total_kib // 64 * 64}K"


def rows_document() -> None:
    rows = measured("rows", "--row-bytes", "128,16K", "--workers", "1,4", "--page-sizes", "4K,thp")["rows"]
    done = [item for item in rows["measurements"] if item["status"] == "ok"]
    assert done, "nothing was measured in the time"
    for item in done:
        assert item["rows_per_second"] > 0, item
        assert item["ns_p50"] <= item["ns_p90"] <= item["ns_p99"], item
        assert item["row_bytes"] in (128, 16384), item
        assert item["workers"] in (1, 4), item
        assert item["backing"] in ("4K", "THP"), item


def scatter_document() -> None:
    scatter = measured("scatter")["scatter"]
    crossing = scatter["crossing"]
    assert crossing["hot_lines"] is None or crossing["status"] == "ok", crossing
    for curve in scatter["curves"]:
        assert curve["x_name"] == "hot_lines", curve["name"]


def run_document() -> None:
    """All sections in one document, in order; those that the time limit left out say so."""
    made = suite.document("run", "--max-memory", "64M", "--time-limit", "3")
    assert [section["name"] for section in made["sections"]] == ["geometry", "latency", "rows", "scatter"]
    assert made["exit_status"] == 3
    assert {"stopped"} & {section["status"] for section in made["sections"]}
    for section in made["sections"]:
        assert section["status"] == "ok" or section["reason"], section


def seed_is_kept() -> None:
    assert suite.parse(on_a_pipe().stdout)["seed"] == LARGEST_SEED


def only_what_was_asked_for() -> None:
    """--page-sizes 4K: nothing else is measured."""
    made = measured("latency", "--page-sizes", "4K")
    assert {curve["backing"] for curve in made["latency"]["curves"]} == {"4K"}


def report_has_everything() -> None:
    done = suite.run("geometry", "--text", *ENOUGH)
    assert done.returncode in (0, 3), done.stderr
    for heading in ("processor ", "hypervisor ", "huge pages ", "\nTLBs (", "\nverdict\n"):
        assert heading in done.stdout, f"no {heading!r}"
    assert "  - 4K pages" in done.stdout
    assert "nan" not in done.stdout
    assert "(null)" not in done.stdout


def on_a_terminal(*arguments: str) -> tuple[int, str]:
    """Run with standard output and standard error on one terminal; the exit status and what was shown."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([*suite.tlbbench(), *arguments], stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    end = time.monotonic() + TERMINAL_SECONDS
    while time.monotonic() < end:
        if not select.select([leader], [], [], 1)[0]:
            continue
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    return process.wait(timeout=10), shown.decode()


def terminal_gets_report_and_progress() -> None:
    status, shown = on_a_terminal("geometry", *ENOUGH)
    assert status in (0, 3), shown
    assert "TLBs" in shown
    assert '"schema_version"' not in shown
    assert re.search(r"geometry +\d+ %.* left", shown), "no progress with percent and time left"
    assert "\r" in shown.replace("\r\n", "\n"), "the progress line does not overwrite itself"


def pipe_gets_document_and_silence() -> None:
    done = on_a_pipe()
    assert done.returncode in (0, 3)
    suite.validate(suite.parse(done.stdout))
    assert done.stderr == "", done.stderr


def interrupted(number: int) -> dict[str, Any]:
    """Send the signal while it measures; the document must be whole."""
    process = subprocess.Popen(
        [*suite.tlbbench(), "latency", "--json", "--max-memory", "64M", "--progress", "always"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.read(1)  # the first sign of progress: it is measuring now
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    made: dict[str, Any] = json.loads(out)
    suite.validate(made)
    assert process.returncode == made["exit_status"] == 3, process.returncode
    return made


def signals_leave_a_partial_document() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        made = interrupted(number)
        statuses = {section["status"] for section in made["sections"]}
        assert "stopped" in statuses, statuses


def time_limit_is_kept() -> None:
    """A tenth of a second is too little for any plan; half a second is enough where few page sizes are free."""
    start = time.monotonic()
    made = suite.document("latency", "--max-memory", "64M", "--time-limit", "0.1")
    seconds = time.monotonic() - start
    assert made["exit_status"] == 3
    assert seconds < 3, f"{seconds:.1f} s for a limit of 0.1 s"


def nothing_is_left() -> None:
    """No shared memory and no named file stays behind."""

    def files() -> set[Path]:
        return {*Path("/dev", "shm").glob("*"), *Path.cwd().glob("*")}

    before = files()
    suite.document("latency", *SMALL, "--footprints", "1M,4M")
    left = {path for path in files() - before if "tlbbench" in path.name}
    assert not left, left


CASES: list[tuple[str, Callable[[], None]]] = [
    ("geometry's document", geometry_document),
    ("latency's document", latency_document),
    ("latency of what is asked for", latency_of_what_is_asked_for),
    ("the pressure's part of the document", pressure_document),
    ("rows' document", rows_document),
    ("scatter's document", scatter_document),
    ("run's document", run_document),
    ("the seed is kept to the last bit", seed_is_kept),
    ("only the page sizes that were asked for", only_what_was_asked_for),
    ("the report has everything", report_has_everything),
    ("a terminal gets the report and progress", terminal_gets_report_and_progress),
    ("a pipe gets the document and silence", pipe_gets_document_and_silence),
    ("signals leave a partial document", signals_leave_a_partial_document),
    ("the time limit is kept", time_limit_is_kept),
    ("nothing is left behind", nothing_is_left),
]

if __name__ == "__main__":
    suite.main("documents", CASES, measures=True)
