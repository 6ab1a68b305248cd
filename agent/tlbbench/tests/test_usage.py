"""Bad input: one line that names the option and the valid range, exit status 2, nothing touched."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import suite

# Each: arguments, what the line must name, what it must say of the valid values.
BAD = [
    ([], "command", "info, geometry, latency, rows, scatter, counters, decode, run"),
    (["measure"], "command", "info, geometry"),
    (["info", "--nonsense"], "--nonsense", "--help"),
    (["info", "--reserve"], "--reserve", "--help"),
    (["info", "extra"], "argument", "options only"),
    (["info", "--json=yes"], "--json", "no value"),
    (["info", "--root"], "--root", "proc and sys"),
    (["info", "--root", "/nonexistent"], "--root", "a directory"),
    (["info", "--root", "/dev"], "--root", "a directory that holds proc and sys"),
    (["decode"], "decode FILE", "dump"),
    (["geometry", "--page-sizes", "3K"], "--page-sizes", "powers of two from 4K to 16G"),
    (["geometry", "--page-sizes", "0"], "--page-sizes", "powers of two"),
    (["geometry", "--page-sizes", ""], "--page-sizes", "powers of two"),
    (["geometry", "--page-sizes", "4K,,2M"], "--page-sizes", "powers of two"),
    (["geometry", "--page-sizes", "99999999999999999999G"], "--page-sizes", "powers of two"),
    (["geometry", "--page-sizes", "8G"], "--page-sizes", "4K"),
    (["geometry", "--max-memory", "0"], "--max-memory", "1M to 64T"),
    (["geometry", "--max-memory", "-1"], "--max-memory", "1M to 64T"),
    (["geometry", "--max-memory", "10X"], "--max-memory", "1M to 64T"),
    (["geometry", "--max-memory", "64T"], "--max-memory", "1M to"),
    (["geometry", "--time-limit", "0"], "--time-limit", "0.1 to 3600"),
    (["geometry", "--time-limit", "1e9"], "--time-limit", "0.1 to 3600"),
    (["geometry", "--time-limit", "nan"], "--time-limit", "0.1 to 3600"),
    (["geometry", "--cpus", "a"], "--cpus", "0-3,8"),
    (["geometry", "--cpus", ""], "--cpus", "0-3,8"),
    (["geometry", "--cpus", "3-1"], "--cpus", "0-3,8"),
    (["geometry", "--cpus", "4000"], "--cpus", "CPUs allowed"),
    (["geometry", "--numa-node", "-1"], "--numa-node", "0 to 1023"),
    (["geometry", "--numa-node", "1023"], "--numa-node", "valid: 0"),
    (["counters"], "counters", "--pid N or --cgroup PATH"),
    (["counters", "--pid", "0"], "--pid", "a running process"),
    (["counters", "--pid", "2147483648"], "--pid", "a running process"),
    (["counters", "--pid", "1", "--cgroup", "/"], "--pid", "one of the two"),
    (["counters", "--pid", "1", "--seconds", "0"], "--seconds", "0.1 to 3600"),
    (["counters", "--pid", "1", "--reserve"], "--reserve", "--help"),
    (["geometry", "--seed", "x"], "--seed", "18446744073709551615"),
    (["geometry", "--profile", "slow"], "--profile", "quick or full"),
    (["geometry", "--progress", "often"], "--progress", "auto, always or never"),
    (["geometry", "--row-bytes", "128"], "--row-bytes", "--help"),
    (["rows", "--row-bytes", "0"], "--row-bytes", "multiples of 8 from 16 to 1M"),
    (["rows", "--row-bytes", "12"], "--row-bytes", "multiples of 8 from 16 to 1M"),
    (["rows", "--row-bytes", "2M"], "--row-bytes", "multiples of 8 from 16 to 1M"),
    (["rows", "--row-bytes", "1M", "--segment", "2M"], "--row-bytes", "16 to 32768"),
    (["rows", "--workers", "0"], "--workers", "1 to 1024"),
    (["rows", "--workers", "1,2,99999"], "--workers", "1 to 1024"),
    (["rows", "--mode", "fibres"], "--mode", "threads, processes"),
    (["rows", "--keys", "normal"], "--keys", "uniform, zipf"),
    (["rows", "--read", "all"], "--read", "header, row, index_then_row"),
    (["rows", "--segment", "0"], "--segment", "1M to 64T"),
    (["rows", "--segment", "60T"], "--segment", "1M to"),
    (["rows", "--footprints", "1M"], "--footprints", "--help"),
    (["latency", "--footprints", "32K"], "--footprints", "multiples of 64K"),
    (["latency", "--footprints", "1000000"], "--footprints", "multiples of 64K"),
    (["latency", "--footprints", "65T"], "--footprints", "up to 64T"),
    (["latency", "--footprints", "1M,"], "--footprints", "multiples of 64K"),
    (["latency", "--footprints", ",".join(f"{64 * n}K" for n in range(1, 18))], "--footprints", "at most 16"),
    (["latency", "--footprints", "64T"], "--footprints", "64K to"),
    (["latency", "--curves", "all"], "--curves", "line_per_page, random_64b, packed, pressure"),
    (["latency", "--curves", ""], "--curves", "line_per_page"),
    (["rows", "--workers", ",".join(map(str, range(1, 18)))], "--workers", "at most 16"),
    (["rows", "--segment", "2G", "--max-memory", "1G"], "--segment", "1M to 1073741824"),
    (["geometry", "--max-memory", "1.5G"], "--max-memory", "a whole number"),
    (["geometry", "--max-memory", "0x40000000"], "--max-memory", "1M to 64T"),
    (["geometry", "--max-memory", "\uff11G"], "--max-memory", "1M to 64T"),
    (["geometry", "--max-memory="], "--max-memory", "1M to 64T"),
    (["geometry", "--seed", "18446744073709551616"], "--seed", "18446744073709551615"),
    (["geometry", "--seed", "1\n2"], "--seed", "18446744073709551615"),
    (["geometry", "--a\nb\x1b[2J"], "--a?b?[2J", "--help"),
    (["geometry", "--seed"], "--seed", "18446744073709551615"),
    # Which of two values is meant is not guessed.
    (["geometry", "--seed", "1", "--seed", "2"], "--seed", "once"),
    (["rows", "--workers", "1,2,1"], "--workers", "none twice"),
    (["rows", "--row-bytes", "128,128"], "--row-bytes", "none twice"),
    (["rows", "--mode", "threads,threads"], "--mode", "none twice"),
    (["geometry", "--page-sizes", "2M,2048K"], "--page-sizes", "none twice"),
    (["geometry", "--page-sizes", "thp,THP"], "--page-sizes", "none twice"),
    (["geometry", "--json", "--text"], "--text", "one of the two"),
    (["info", "--registers", "--processes"], "--registers", "one of the two"),
    (["run", "--root", "/"], "--root", "--help"),
    (["latency", "--curves", "packed,packed"], "--curves", "none twice"),
    (["latency", "--footprints", "1M,1024K"], "--footprints", "none twice"),
]


@cache
def pools_before() -> dict[str, int]:
    return suite.pools_at_rest()


def check_pools_are_untouched() -> None:
    """Suites beside this one hold pages for a while. So counts that differ are read again while nobody does."""
    if suite.pools() != pools_before():
        assert suite.pools_at_rest() == pools_before()


def refuse(arguments: list[str], names: str, valid: str) -> None:
    pools_before()
    done = suite.run(*arguments, timeout=10)
    assert done.returncode == 2, f"exit status {done.returncode}: {done.stderr.strip()[:200]}"
    assert done.stdout == "", "something was printed"
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("tlbbench: "), done.stderr
    assert names in done.stderr, done.stderr
    assert valid in done.stderr, done.stderr
    check_pools_are_untouched()


def help_lists_everything() -> None:
    done = suite.run("--help")
    assert done.returncode == 0
    for command in ("info", "geometry", "latency", "rows", "scatter", "counters", "decode FILE", "run"):
        assert f"\n  {command} " in done.stdout, command
    for option in ("--json", "--page-sizes", "--max-memory", "--reserve", "--row-bytes", "--root", "--version"):
        assert f"\n  {option}" in done.stdout, option


def unwritable_output_is_named() -> None:
    for arguments in (["--help"], ["--version"], ["info"], ["scatter", "--time-limit", "0.1"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*suite.tlbbench(), *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 1, (arguments, done.returncode)
        assert done.stderr == "tlbbench: the output cannot be written: No space left on device\n", done.stderr
        shell = shlex.join([*suite.tlbbench(), *arguments]) + " >&-"
        done = subprocess.run(["sh", "-c", shell], stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), (arguments, done.returncode, done.stderr)


def help_comes_anywhere() -> None:
    for arguments in (["--help"], ["-h"], ["help"], ["run", "--help"], ["info", "--json", "-h"]):
        done = suite.run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def version_is_the_documents() -> None:
    done = suite.run("--version")
    made = json.loads(suite.run("info", "--json").stdout)
    assert done.stdout == f"tlbbench {made['tool']['version']}\n"


CASES: list[tuple[str, Callable[[], None]]] = [
    ("help lists commands and options", help_lists_everything),
    ("help comes at any place", help_comes_anywhere),
    ("output that cannot be written is named", unwritable_output_is_named),
    ("the version is the document's", version_is_the_documents),
    *(
        (f"refuses {' '.join(arguments)[:60]!a}", partial(refuse, arguments, names, valid))
        for arguments, names, valid in BAD
    ),
]

if __name__ == "__main__":
    pools_before()  # before any case could change them
    suite.main("usage", CASES)
