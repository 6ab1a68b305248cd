"""A tiny test suite for tlbbench's command line: cases print PASS, FAIL or SKIP with its reason, then the totals.

Standard library only, so that the suites run with any Python 3.11 before anything else is installed. The programs and
places come from the environment: TLBBENCH (the program), TLBBENCH_RUNNER (a prefix such as qemu-aarch64, optional).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
HOME = TESTS.parent
REPOSITORY = HOME.parents[1]
FIXTURES = TESTS / "fixtures"
GOLDEN = TESTS / "golden"

sys.path.insert(0, str(REPOSITORY / "agent"))  # the standard library only, too
# Suites side by side take turns with the machine's pools; a benchmark or a server has them for a minute or two.
os.environ.setdefault("HUGEPLAN_HUGE_PAGES_LOCK_SECONDS", "600")

from hugeplan_agent import pool_reservation  # noqa: E402 - not installed where these suites run first


class Skip(Exception):
    """Raised by a case that cannot run here; its text is the reason."""


_held: list[pool_reservation.Reservation] = []


@contextmanager
def reservation() -> Iterator[pool_reservation.Reservation]:
    """The machine's pools, for this process alone until the end of the block. In another such block: that one's."""
    if _held:
        yield _held[-1]
        return
    with pool_reservation.reservation() as held:
        _held.append(held)
        try:
            yield held
        finally:
            _held.remove(held)


def pools() -> dict[str, int]:
    """Pages that stay in every pool: surplus ones go with the process that maps them."""
    roots = (Path("/sys/kernel/mm/hugepages"), *Path("/sys/devices/system/node").glob("node*/hugepages"))
    return {str(pool): pages_that_stay(pool) for root in roots if root.exists() for pool in sorted(root.iterdir())}


def pages_that_stay(pool: Path) -> int:
    return int((pool / "nr_hugepages").read_text()) - int((pool / "surplus_hugepages").read_text())


def pools_at_rest() -> dict[str, int]:
    """The pools while no other program of this project holds pages. Waits for those that do."""
    with reservation():
        return pools()


def tlbbench() -> list[str]:
    program = os.environ.get("TLBBENCH", str(REPOSITORY / "agent" / "build" / "tlbbench"))
    return [*shlex.split(os.environ.get("TLBBENCH_RUNNER", "")), program]


def run(*arguments: str, timeout: float = 120, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*tlbbench(), *arguments], capture_output=True, text=True, timeout=timeout, input=text, check=False
    )


def document(*arguments: str, timeout: float = 120) -> dict[str, Any]:
    """Run with --json; the document must be valid JSON and valid by the schema."""
    done = run(*arguments, "--json", timeout=timeout)
    assert done.returncode in (0, 3), f"exit status {done.returncode}: {done.stderr.strip()}"
    made = parse(done.stdout)
    assert made["exit_status"] == done.returncode, f"exit_status {made['exit_status']}, really {done.returncode}"
    validate(made)
    return made


def parse(text: str) -> Any:
    """JSON as the standard has it: Python would take NaN and infinities, which no other reader does."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def validate(made: Any) -> None:
    problems = schema_problems(made)
    assert not problems, "the document breaks the schema: " + "; ".join(problems[:5])


@cache
def validator() -> Any:
    try:
        import jsonschema
    except ImportError as missing:
        raise Skip("the Python package jsonschema is not installed") from missing
    schema = json.loads((HOME / "tlbbench.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def schema_problems(made: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(made)]


def is_valid(made: Any) -> bool:
    """The same answer, at the first problem."""
    return bool(validator().is_valid(made))


def statuses(made: Any) -> set[str]:
    """Every status anywhere in the document."""
    if isinstance(made, dict):
        found = {made["status"]} if isinstance(made.get("status"), str) else set()
        return found.union(*(statuses(value) for value in made.values()))
    return set().union(*(statuses(value) for value in made)) if isinstance(made, list) else set()


def check_named(made: dict[str, Any], status: str) -> None:
    """The status stands somewhere in the document. A section that ran out of time may not have come to it."""
    found = statuses(made)
    if status not in found and "stopped" in found:
        raise Skip(f"the machine is busy: {made['command']} was stopped before it came to {status}")
    assert status in found, (made["command"], found)


def section(made: dict[str, Any], name: str) -> dict[str, Any]:
    return next(item for item in made["sections"] if item["name"] == name)


def limited(limit: Callable[[], None], *arguments: str) -> dict[str, Any]:
    """Runs below a limit that the child sets on itself."""
    done = subprocess.run(
        [*tlbbench(), *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=200,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 3, f"exit status {done.returncode}: {done.stderr.strip()}"
    made: dict[str, Any] = json.loads(done.stdout)
    validate(made)
    return made


def reserving(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The document of a run with --reserve, once no other program of this project holds pages."""
    for _ in range(3):
        with reservation():
            pass
        made = measure()
        if made["reservation"]["status"] != "skipped":
            return made
    raise Skip(made["reservation"]["reason"])


def shared() -> Path:
    """The folder of facts beside the repository, if this machine has it."""
    place = Path(os.environ.get("HUGEPLAN_SHARED", REPOSITORY.parent / "shared"))
    if not place.is_dir():
        raise Skip("no ../shared and HUGEPLAN_SHARED is not set")
    return place


def unpack(name: str, directory: str) -> str:
    """Make the captured tree of a fixture; returns the path for --root."""
    place = Path(directory) / name
    done = subprocess.run(
        ["sh", str(HOME / "capture.sh"), "--unpack", str(FIXTURES / f"{name}.tree"), str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(place)


def temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tlbbench-")


def reserves(case: Callable[[], None]) -> Callable[[], None]:
    """Marks a case in which tlbbench itself reserves pages: it takes the lock of the pools, so the case must not."""
    case.reserves = True  # type: ignore[attr-defined]
    return case


def main(suite: str, cases: list[tuple[str, Callable[[], None]]], *, measures: bool = False) -> None:
    """Run every case; exits 1 when one failed.

    What measures takes free pages of any pool. Each case of such a suite therefore waits until no other test, of this
    repository or another copy, has pages reserved, and lets none reserve meanwhile.
    """
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, case in cases:
        begun = time.monotonic()
        try:
            with reservation() if measures and not hasattr(case, "reserves") else nullcontext():
                case()
        except Skip as reason:
            counts["skipped"] += 1
            print(f"SKIP {suite} {name}: {reason}")
        except Exception as problem:
            counts["failed"] += 1
            line = traceback.extract_tb(problem.__traceback__)[-1]
            print(f"  {Path(line.filename).name}:{line.lineno}: {type(problem).__name__}: {problem}")
            print(f"FAIL {suite} {name}")
        else:
            counts["passed"] += 1
            seconds = time.monotonic() - begun
            print(f"PASS {suite} {name}" + (f" ({seconds:.0f} s)" if seconds >= 3 else ""))
        sys.stdout.flush()
        if measures:
            time.sleep(0.2)  # another program that waits for the pools looks for them twenty times per second
    print(f"{suite}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.exit(1 if counts["failed"] else 0)
