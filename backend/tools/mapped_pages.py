"""Start real servers on a real huge page pool and compare what they map with what the planner says.

    python backend/tools/mapped_pages.py                       # MariaDB and the JVM of this machine, 2M pages
    python backend/tools/mapped_pages.py jvm --json
    python backend/tools/mapped_pages.py mariadb --mariadbd DIR/bin/mariadbd --mariadbd /usr/sbin/mariadbd

Counted are the mappings of huge pages in /proc/PID/smaps, so another program's pages do not matter. Pages are
reserved for each trial and given back afterwards; that needs root. A trial that cannot run says why: it is
``skipped``, which is not ``ok``. Exit status 0: all that ran agree; 1: one differs; 3: none could run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from hugeplan.measuring.pools import CannotReserveError, reserved
from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.model import MIB, DatabaseInstance

PAGE_BYTES = 2 * MIB
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
READY_SECONDS = 60
_NOBODY = 65534
SPARE_PAGES = (8, 400, 400)
#: What servers write when they get no huge page: MariaDB and JVMs 17 and later, whose start-up check maps one page.
SHORTAGE = re.compile(r"Failed to (?:reserve|commit)|HugeTLB|no large pages|UseLargePages disabled", re.IGNORECASE)

JAVA_SOURCE = """
public class Trial {
    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        System.out.flush();
        System.in.read();
    }
}
"""


class CannotRunError(Exception):
    """Why a trial cannot run here."""


@dataclass
class Trial:
    """One engine with settings; ``real_pages`` is what its process had mapped when it was ready."""

    engine: str
    version: str
    settings: dict[str, str]
    program: str
    page_bytes: int = PAGE_BYTES
    predicted_pages: int | None = None
    error_pages: int | None = None
    real_pages: int | None = None
    mappings: list[int] = field(default_factory=list)
    status: str = "skipped"
    reason: str | None = None


# --- pages --------------------------------------------------------------------------------------


def _read(path: Path) -> int:
    return int(path.read_text())


def huge_mappings(pid: int) -> list[int]:
    """Sizes in bytes of a process's huge page mappings (VmFlags ``ht``).

    A part of a file that is mapped more than once, as ZGC maps its heap, counts once.
    """
    sizes: list[int] = []
    seen: set[tuple[str, str]] = set()
    size, key = 0, ("0", "0")
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            key = (words[4], words[2])  # inode and offset
        elif words[0] == "Size:":
            size = int(words[1]) * 1024
        elif words[0] == "VmFlags:" and "ht" in words and key not in seen:
            sizes.append(size)
            if key[0] != "0":
                seen.add(key)
    return sizes


# --- engines ------------------------------------------------------------------------------------


def measure(process: subprocess.Popen[str], ready: Path) -> list[int]:
    """Wait until the program has written ``ready``, then read its huge page mappings."""
    end = time.monotonic() + READY_SECONDS
    while not (ready.exists() and ready.stat().st_size):
        if process.poll() is not None:
            raise CannotRunError(f"the server ended with status {process.returncode} before it was ready")
        if time.monotonic() > end:
            raise CannotRunError(f"the server was not ready after {READY_SECONDS} s")
        time.sleep(0.05)
    return huge_mappings(process.pid)


def run_mariadb(trial: Trial, work: Path) -> list[int]:
    """A server in bootstrap mode on an empty data directory; a statement writes the file that says it is ready."""
    data, ready = work / "data", work / "data" / "ready"
    (data / "mysql").mkdir(parents=True)
    user = _NOBODY if os.geteuid() == 0 else None
    if user is not None:
        for path in (data, data / "mysql"):
            os.chown(path, user, user)
    messages = next(iter(Path(trial.program).resolve().parents[1].glob("share/**/english/errmsg.sys")), None)
    command = [trial.program, "--no-defaults", "--bootstrap", f"--datadir={data}", f"--tmpdir={data}", "--large-pages"]
    command += [f"--lc-messages-dir={messages.parent}"] if messages else []
    command += [f"--{name.replace('_', '-')}={value}" for name, value in trial.settings.items()]
    with (work / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, user=user, group=user, cwd="/"
        )
        try:
            if process.stdin is None:
                raise CannotRunError("no standard input")
            process.stdin.write(f"SELECT 1 INTO OUTFILE '{ready}';\n")
            process.stdin.flush()
            return measure(process, ready)
        finally:
            _stop(process)


def run_jvm(trial: Trial, work: Path) -> list[int]:
    """A JVM that prints one word and waits."""
    ready = work / "ready"
    (work / "Trial.class").write_bytes(_java_class(trial.program))
    with ready.open("w") as out, (work / "log").open("w") as log:
        command = [trial.program, "-XX:+UseLargePages", *_java_options(trial.settings), "-cp", str(work), "Trial"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=log, text=True)
        try:
            return measure(process, ready)
        finally:
            _stop(process)


@cache
def _java_class(java: str) -> bytes:
    """What javac makes of the program, once for all trials."""
    with tempfile.TemporaryDirectory(prefix="hugeplan-trial-") as made:
        source = Path(made) / "Trial.java"
        source.write_text(JAVA_SOURCE)
        subprocess.run([Path(java).with_name("javac"), "-d", made, source], check=True)
        return source.with_suffix(".class").read_bytes()


def _java_options(settings: dict[str, str]) -> list[str]:
    options = []
    for name, value in settings.items():
        if name == "Xmx":
            options += [f"-Xmx{value}", f"-Xms{value}"]
        elif name == "gc":
            options.append(f"-XX:+Use{value}GC")
        else:
            options.append(f"-XX:{name}={value}")
    return options


def _stop(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        try:
            process.stdin.close()
        except OSError:
            process.kill()
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def mariadb_trials(programs: list[str]) -> Iterator[Trial]:
    """A small pool, a pool that is not whole extents, other caches; the same for every program."""
    for program in programs:
        version = _version([program, "--version"], r"Ver ([\d.]+)-MariaDB")
        for settings in (
            {"innodb_buffer_pool_size": "256M"},
            {
                "innodb_buffer_pool_size": "300M",
                "innodb_log_buffer_size": "5M",
                "key_buffer_size": "0",
                "aria_pagecache_buffer_size": "128K",
            },
            {"innodb_buffer_pool_size": "901M", "key_buffer_size": "70M", "aria_pagecache_buffer_size": "33M"},
        ):
            yield Trial("mariadb", version, settings, program)


def jvm_trials(program: str) -> Iterator[Trial]:
    """Every collector, heaps that are whole pages of side tables and heaps that are not."""
    version = _version([program, "-version"], r'version "(\d+)')
    for gc, heap in (
        ("G1", "512m"),
        ("G1", "1000m"),
        ("G1", "1024m"),
        ("Parallel", "512m"),
        ("Parallel", "1024m"),
        ("Serial", "777m"),
        ("Serial", "2300m"),
        ("Z", "512m"),
    ):
        yield Trial("jvm", version, {"Xmx": heap, "gc": gc}, program)
    yield Trial("jvm", version, {"Xmx": "333m", "gc": "G1", "ReservedCodeCacheSize": "40m"}, program)


def _version(command: list[str], pattern: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(pattern, done.stdout + done.stderr)
    if match is None:
        raise CannotRunError(f"{command[0]} does not tell its version")
    return match[1]


def run(trial: Trial) -> None:
    """Predict, run, compare; what goes wrong on this machine becomes the trial's reason.

    A server that complains of a shortage although enough pages were reserved met another program's allocation, and so
    may one that maps less than predicted without a word; a pool that shrank meanwhile was changed by another program.
    Each is tried again with many spare pages, so that only what stays a difference is one.
    """
    instance = DatabaseInstance(name="t", engine=trial.engine, version=trial.version, settings=trial.settings)
    demand = demand_of(instance, PAGE_BYTES, DemandContext())
    trial.predicted_pages, trial.error_pages = demand.pages, demand.error_pages
    try:
        for spare in SPARE_PAGES:
            with reserved(PAGE_BYTES, demand.pages + demand.error_pages + spare) as pool_pages:
                trial.mappings, log = _run_once(trial)
                disturbed = bool(SHORTAGE.search(log)) or _read(POOL / "nr_hugepages") < pool_pages
            short = sum(trial.mappings) // PAGE_BYTES < demand.pages - demand.error_pages
            if not disturbed and not short:
                break
        if disturbed:
            raise CannotRunError("another program took pages of the pool while the trial ran")
    except (CannotRunError, CannotReserveError, OSError, subprocess.CalledProcessError) as error:
        trial.reason = str(error)
        return
    trial.real_pages = sum(trial.mappings) // PAGE_BYTES
    agrees = abs(trial.real_pages - demand.pages) <= demand.error_pages
    trial.status = "ok" if agrees else "differs"


def _run_once(trial: Trial) -> tuple[list[int], str]:
    """One run in a directory of its own: the mappings, and what the server wrote to its log."""
    work = Path(tempfile.mkdtemp(prefix="hugeplan-trial-"))
    work.chmod(0o755)
    try:
        mappings = (run_mariadb if trial.engine == "mariadb" else run_jvm)(trial, work)
        return mappings, (work / "log").read_text(errors="replace")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def trials(engine: str | None, programs: list[str]) -> Iterator[Trial]:
    """All trials asked for; a program that is missing is one skipped trial that says so."""
    if engine in {None, "mariadb"}:
        found = programs or [path for path in (shutil.which("mariadbd", path="/usr/sbin:/usr/bin"),) if path]
        if found:
            yield from mariadb_trials(found)
        else:
            yield Trial("mariadb", "", {}, "", reason="no mariadbd here; install mariadb-server-core")
    if engine in {None, "jvm"}:
        java = shutil.which("java")
        if java and shutil.which("javac"):
            yield from jvm_trials(java)
        else:
            yield Trial("jvm", "", {}, "", reason="no java and javac here; install a JDK")


def _line(trial: Trial) -> str:
    settings = " ".join(f"{name}={value}" for name, value in trial.settings.items())
    return (
        f"{trial.status:8} {trial.engine} {trial.version} {settings}: predicted {trial.predicted_pages}"
        f" +- {trial.error_pages}, mapped {trial.real_pages}{f' ({trial.reason})' if trial.reason else ''}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="?", choices=("mariadb", "jvm"))
    parser.add_argument("--mariadbd", action="append", default=[], help="a server to try; may be repeated")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    done = list(trials(arguments.engine, arguments.mariadbd))
    for trial in done:
        if trial.reason is None:
            run(trial)
        if not arguments.json:
            print(_line(trial), flush=True)
    if arguments.json:
        print(json.dumps([asdict(trial) for trial in done], indent=2))
    states = {trial.status for trial in done}
    return 1 if "differs" in states else 0 if "ok" in states else 3


if __name__ == "__main__":
    sys.exit(main())
