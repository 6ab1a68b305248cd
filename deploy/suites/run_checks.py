"""Runs every static check of this repository: `make check`. All run; the exit status is 1 when one found something.

As many checks run side by side as there are CPUs. The last line has the processor time of all: unlike the seconds, it
hardly depends on what else the machine does.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
C_FOLDER = REPOSITORY / "agent/tlbbench"
# gcc sees uninitialised variables only when it optimises; clang's warnings do not depend on it.
STRICT_BUILDS = {"gcc": "-Doptimization=2", "clang": "-Doptimization=0"}


@dataclass(frozen=True)
class Check:
    """One command, the folder it runs in, the file without which it has nothing to check, and a program it needs."""

    name: str
    folder: str
    command: tuple[str, ...]
    needs_file: str
    needs_program: str | None = None


def c_sources() -> tuple[str, ...]:
    """The C files that clang-format keeps in shape."""
    return tuple(str(path.relative_to(REPOSITORY)) for path in sorted(C_FOLDER.rglob("*.[ch]")))


def strict_build(compiler: str) -> tuple[str, ...]:
    """A shell command that builds tlbbench with warnings as errors; what compiled before and has not changed stays."""
    folder = f"agent/build-check-{compiler}"
    again = "--reconfigure" if (REPOSITORY / folder / "build.ninja").exists() else ""
    setup = f"meson setup {again} --werror -Dwarning_level=3 -Ddebug=false {STRICT_BUILDS[compiler]}"
    script = f"CC={compiler} {setup} {folder} agent/tlbbench >/dev/null && ninja -C {folder} --quiet"
    return ("bash", "-c", script)


def checks() -> list[Check]:
    """The table of checks, long ones first: they are what the others run beside."""
    python = ("backend", "deploy", "agent")
    project = "{}/pyproject.toml"
    c_project = "agent/tlbbench/meson.build"
    tidy = ("bash", "agent/tlbbench/tests/run.sh", "tidy")
    installed = "frontend/node_modules/.installed"
    front_end = ("bash", "-c", f"make --silent {installed} && cd frontend && npm run --silent check")
    return [
        Check("front end", ".", front_end, "frontend/package.json", "npm"),
        Check("clang-tidy", ".", tidy, c_project, "clang-tidy"),
        *(Check(f"mypy {name}", name, ("mypy",), project.format(name)) for name in python),
        *(Check(f"build with {name}", ".", strict_build(name), c_project, name) for name in STRICT_BUILDS),
        *(Check(f"ruff check {name}", name, ("ruff", "check", "."), project.format(name)) for name in python),
        *(
            Check(f"ruff format {name}", name, ("ruff", "format", "--check", "."), project.format(name))
            for name in python
        ),
        Check("import contracts", "backend", ("lint-imports",), "backend/.importlinter"),
        Check("C layers", ".", (sys.executable, "agent/tlbbench/tests/check_layers.py"), c_project),
        Check(
            "clang-format", ".", ("clang-format", "--dry-run", "-Werror", *c_sources()), "agent/tlbbench/.clang-format"
        ),
    ]


def verdict_of(check: Check, environment: dict[str, str]) -> tuple[str, str]:
    """Run one check; answer ok, FAILED or SKIP with a reason, and its output where it found something."""
    if not (REPOSITORY / check.needs_file).exists():
        return f"FAILED: {check.needs_file} is missing", ""
    if check.needs_program and shutil.which(check.needs_program, path=environment["PATH"]) is None:
        return f"SKIP: {check.needs_program} is not installed", ""
    done = subprocess.run(
        check.command, cwd=REPOSITORY / check.folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return ("ok", "") if done.returncode == 0 else (f"FAILED with status {done.returncode}", done.stdout)


def timed(check: Check, environment: dict[str, str]) -> tuple[Check, float, str, str]:
    """The check, its seconds, its verdict and its output."""
    started = time.monotonic()
    verdict, output = verdict_of(check, environment)
    return check, time.monotonic() - started, verdict, output


def main() -> int:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    verdicts = []
    started = time.monotonic()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as lanes:
        for done in as_completed([lanes.submit(timed, check, environment) for check in checks()]):
            check, seconds, verdict, output = done.result()
            print(f"{output}{check.name:<22} {seconds:5.1f} s  {verdict}", flush=True)
            verdicts.append(verdict)
    failed = sum(verdict.startswith("FAILED") for verdict in verdicts)
    skipped = sum(verdict.startswith("SKIP") for verdict in verdicts)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{len(verdicts) - failed - skipped} passed, {failed} failed, {skipped} skipped"
        f" in {time.monotonic() - started:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
