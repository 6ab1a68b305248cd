#!/usr/bin/env python3
"""Build the service's deb: the service with all that it imports, for Debian's own Python of this release.

    make wheels && python deploy/packaging/server.py --wheel dist/hugeplan-*.whl --out dist

What it imports comes from the lock with its hashes (deploy/python/production.txt), for the interpreter that --python
names; the package depends on exactly that release of Python, because compiled modules do.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path.insert(0, str(REPOSITORY / "agent/packaging"))

from formats import File, Package, PackagingError, build_deb, run, service_scripts  # noqa: E402 - found beside the agent's

NAME = "hugeplan-server"
STATE = f"/var/lib/{NAME}"
SECRETS = "/etc/hugeplan/server-secrets"
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
DESCRIPTION = """API, user interface and background work of hugeplan, which plans how many huge
pages each node of a fleet reserves. It needs a PostgreSQL 16 or newer, listens
on 127.0.0.1:8000, and belongs behind a reverse proxy that ends TLS."""
COMMAND = """#!/bin/sh
# As the service's user with the service's settings, when root or that user asks; as anybody else for plans.
set -a
if [ -r /etc/hugeplan/server.env ]; then . /etc/hugeplan/server.env; fi
secrets=/etc/hugeplan/server-secrets
if [ -r "$secrets" ]; then HUGEPLAN_SECRETS_DIR=${HUGEPLAN_SECRETS_DIR:-$secrets}; fi
set +a
case "$(id -u):${1:-}" in
0:serve|0:migrate|0:token|0:enrolment|0:doctor|0:export|0:seed|0:reparse|0:roles)
  exec setpriv --reuid hugeplan-server --regid hugeplan-server --init-groups -- \\
    /usr/bin/python3 -sB /usr/lib/hugeplan-server/run "$@" ;;
esac
exec /usr/bin/python3 -sB /usr/lib/hugeplan-server/run "$@"
"""
RUN = """import sys

sys.path.insert(0, "/usr/lib/hugeplan-server/packages")
from hugeplan.cli import main

sys.exit(main())
"""
MIGRATE = """#!/bin/sh
set -e
own=/etc/hugeplan/server-secrets/migrate
if [ -r "$own/hugeplan_database_url" ]; then HUGEPLAN_SECRETS_DIR=$own; export HUGEPLAN_SECRETS_DIR; fi
exec /usr/bin/hugeplan migrate
"""
SETTINGS = """# Settings of hugeplan: https://github.com/hugeplan (docs/settings.md). Secrets are files of their own:
#   install -m 0640 -g hugeplan-server FILE /etc/hugeplan/server-secrets/hugeplan_database_url
#HUGEPLAN_PUBLIC_URL=https://hugeplan.example
#HUGEPLAN_COOKIE_SECURE=true
"""
PREPARE = f"""install -d -m 0750 -o root -g {NAME} {SECRETS}
if [ ! -e {SECRETS}/hugeplan_database_url ]; then
  umask 027
  echo "postgresql:///hugeplan" > {SECRETS}/hugeplan_database_url
  chgrp {NAME} {SECRETS}/hugeplan_database_url
fi
"""


def versions() -> list[str]:
    """The service's version; HUGEPLAN_PACKAGE_VERSION names others, for tests of upgrades."""
    given = os.environ.get("HUGEPLAN_PACKAGE_VERSION")
    text = (REPOSITORY / "backend/hugeplan/__init__.py").read_text(encoding="ascii")
    return given.split(",") if given else [text.partition('__version__ = "')[2].partition('"')[0]]


def packages(python: str, wheel: Path, into: Path) -> None:
    """Install the service and what it imports below ``into``. Raises PackagingError."""
    common = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    lock = REPOSITORY / "deploy/python/production.txt"
    run([*common, "--require-hashes", "--only-binary", ":all:", "--target", str(into), "-r", str(lock)])
    run([*common, "--no-deps", "--no-index", "--target", str(into), str(wheel)])


def collect(folder: Path) -> list[File]:
    """The files of the folder, without tests and compiled files."""
    found = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        parts = set(relative.parts)
        if path.is_file() and not parts & {"__pycache__", "tests", "bin"}:
            found.append(File(f"usr/lib/{NAME}/packages/{relative}", path.read_bytes()))
    return found


def package(files: list[File], release: tuple[int, int], version: str) -> Package:
    """What the deb holds."""
    deb, rpm = service_scripts(NAME, STATE, (f"{NAME}.service",), before=PREPARE, leftovers=(f"-r {SECRETS}",))
    documents = [
        File(f"usr/share/doc/{NAME}/{name}", (HERE / name).read_bytes()) for name in ("nginx.conf", "Caddyfile")
    ]
    unit = File(f"usr/lib/systemd/system/{NAME}.service", (HERE / f"{NAME}.service").read_bytes())
    major, minor = release
    return Package(
        name=NAME,
        version=version,
        debian_architecture=DEBIAN[platform.machine()],
        machine=platform.machine(),
        summary="plan huge pages for a fleet: the service",
        description=DESCRIPTION,
        debian_depends=(
            f"python3 (>= {major}.{minor}), python3 (<< {major}.{minor + 1}), libc6 (>= 2.28), libgomp1, libstdc++6,"
            " passwd"
        ),
        rpm_requires="",
        files=sorted(
            [
                *files,
                *documents,
                unit,
                File("usr/bin/hugeplan", COMMAND.encode(), executable=True),
                File(f"usr/lib/{NAME}/run", RUN.encode()),
                File(f"usr/lib/{NAME}/migrate", MIGRATE.encode(), executable=True),
                File("etc/hugeplan/server.env", SETTINGS.encode()),
            ],
            key=lambda file: file.path,
        ),
        deb_scripts=deb,
        rpm_scripts=rpm,
        lintian_overrides=(
            # Python modules as their authors compiled and tested them, with the libraries that they bring.
            "embedded-library",
            "library-not-linked-against-libc",
            "binary-or-shlib-defines-rpath",
            "custom-library-search-path",
            "unstripped-binary-or-object",
            "arch-dependent-file-not-in-arch-specific-directory",
        ),
    )


def main() -> int:
    """The command; a known error is one sentence and status 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--wheel", type=Path, required=True, help="the service's wheel, with the user interface inside")
    parser.add_argument("--out", type=Path, required=True, help="folder for the package")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the release that it is for")
    given = parser.parse_args()
    try:
        if not given.wheel.is_file():
            raise PackagingError(f"--wheel: {given.wheel} is not there; run: make wheels")
        if platform.machine() not in DEBIAN:
            raise PackagingError(f"this machine is {platform.machine()}; expected one of {', '.join(DEBIAN)}")
        asked = [given.python, "-c", "import sys; print(*sys.version_info[:2])"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
        given.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="hugeplan-server-") as folder:
            packages(given.python, given.wheel, Path(folder))
            files = collect(Path(folder))
            for version in versions():
                made = build_deb(package(files, (int(told[0]), int(told[1])), version), given.out)
                print(f"{made.name}  {made.stat().st_size} bytes")
    except PackagingError as error:
        print(f"server package: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
