"""Runs every static check of this repository: `make check`. All run; the exit status is 1 when one found something."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
C_FOLDER = REPOSITORY / "agent/tlbbench"
STRICT_BUILD = ("--werror", "-Dwarning_level=3", "--buildtype=debugoptimized")


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
    """A shell command that builds tlbbench from nothing with warnings as errors."""
    folder = f"agent/build-check-{compiler}"
    setup = " ".join(("meson", "setup", "--wipe" if (REPOSITORY / folder).exists() else "", *STRICT_BUILD))
    script = f"CC={compiler} {setup} {folder} agent/tlbbench >/dev/null && ninja -C {folder} --quiet"
    return ("bash", "-c", script)


def checks() -> list[Check]:
    """The table of checks, quick ones first."""
    python = ("agent", "backend", "deploy")
    project = "{}/pyproject.toml"
    return [
        *(Check(f"ruff check {name}", name, ("ruff", "check", "."), project.format(name)) for name in python),
        *(
            Check(f"ruff format {name}", name, ("ruff", "format", "--check", "."), project.format(name))
            for name in python
        ),
        *(Check(f"mypy {name}", name, ("mypy",), project.format(name)) for name in python),
        Check("import contracts", "backend", ("lint-imports",), "backend/.importlinter"),
        Check("C layers", ".", (sys.executable, "agent/tlbbench/tests/check_layers.py"), "agent/tlbbench/meson.build"),
        Check(
            "clang-format", ".", ("clang-format", "--dry-run", "-Werror", *c_sources()), "agent/tlbbench/.clang-format"
        ),
        Check("build with gcc", ".", strict_build("gcc"), "agent/tlbbench/meson.build", "gcc"),
        Check("build with clang", ".", strict_build("clang"), "agent/tlbbench/meson.build", "clang"),
        Check(
            "clang-tidy",
            ".",
            ("bash", "agent/tlbbench/tests/run.sh", "tidy"),
            "agent/tlbbench/meson.build",
            "clang-tidy",
        ),
        Check("front end's packages", ".", ("make", "frontend"), "frontend/package.json", "npm"),
        Check("front end", "frontend", ("npm", "run", "--silent", "check"), "frontend/package.json", "npm"),
    ]


def run(check: Check, environment: dict[str, str]) -> str:
    """Run one check; answer ok, FAILED or SKIP with a reason. Its output is shown only when it found something."""
    if not (REPOSITORY / check.needs_file).exists():
        return f"FAILED: {check.needs_file} is missing"
    if check.needs_program and shutil.which(check.needs_program, path=environment["PATH"]) is None:
        return f"SKIP: {check.needs_program} is not installed"
    done = subprocess.run(
        check.command, cwd=REPOSITORY / check.folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return "ok"
    print(done.stdout)
    return f"FAILED with status {done.returncode}"


def main() -> int:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    verdicts = []
    for check in checks():
        started = time.monotonic()
        verdict = run(check, environment)
        print(f"{check.name:<22} {time.monotonic() - started:5.1f} s  {verdict}", flush=True)
        verdicts.append(verdict)
    failed = sum(verdict.startswith("FAILED") for verdict in verdicts)
    skipped = sum(verdict.startswith("SKIP") for verdict in verdicts)
    print(f"{len(verdicts) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
