#!/usr/bin/env python3
"""Build the service's deb: the service with all that it imports, for the Python that builds it.

    python deploy/packaging/server.py --wheel dist/hugeplan-*.whl --out dist      (`make release` does it)

What it imports is copied from the environment that `make setup` installs from the lock, with hashes, in the releases
that deploy/python/production.txt names. The package depends on exactly this release of Python, because compiled modules
do. The same sources and the same lock give the same bytes.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path.insert(0, str(REPOSITORY / "agent/packaging"))

from formats import File, Package, PackagingError, build_deb, service_scripts  # noqa: E402 - found beside the agent's

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
own=$secrets/migrate
case "${1:-}" in
# As the role that owns the tables, where it has a file of its own: the service's changes rows alone.
migrate|backup|restore)
  if [ -r "$own/hugeplan_database_url" ]; then HUGEPLAN_SECRETS_DIR=${HUGEPLAN_SECRETS_DIR:-$own}; fi ;;
esac
if [ -r "$secrets" ]; then HUGEPLAN_SECRETS_DIR=${HUGEPLAN_SECRETS_DIR:-$secrets}; fi
set +a
case "${1:-}" in
serve|migrate|token|enrolment|doctor|export|reparse|backup|restore)
  if [ ! -r "$secrets" ] && [ -z "${HUGEPLAN_DATABASE_URL:-}" ]; then
    echo "hugeplan $1: only root and the user hugeplan-server read $secrets; run it as root: sudo hugeplan $*" >&2
    exit 2
  fi ;;
esac
case "$(id -u):${1:-}" in
0:serve|0:migrate|0:token|0:enrolment|0:doctor|0:export|0:reparse|0:wait)
  # libpq looks for certificates in the home folder, and may not look into root's.
  HOME=/var/lib/hugeplan-server
  export HOME
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


def locked() -> dict[str, str]:
    """What the service imports, by its normal name, with its release: production.txt, as it holds for this Python."""
    found = {}
    for line in (REPOSITORY / "deploy/python/production.txt").read_text().splitlines():
        if line[:1].isalnum():
            wanted = Requirement(line.rstrip(" \\"))
            if wanted.marker is None or wanted.marker.evaluate():
                (release,) = wanted.specifier
                found[wanted.name] = release.version
    return found


def imported() -> list[File]:
    """The files of everything locked, from this environment. Raises PackagingError where it has another release."""
    found = []
    for name, wanted in sorted(locked().items()):
        try:
            one = distribution(name)
        except PackageNotFoundError:
            raise PackagingError(f"{name} {wanted} is not installed here; run: make setup") from None
        if one.version != wanted:
            raise PackagingError(f"{name} is {one.version} here and {wanted} in the lock; run: make setup")
        found += [_file(str(part), Path(str(one.locate_file(part))).read_bytes()) for part in one.files or ()]
    return [file for file in found if file is not None]


def unpacked(wheel: Path) -> list[File]:
    """The files of the service's own wheel."""
    with zipfile.ZipFile(wheel) as archive:
        found = [_file(name, archive.read(name)) for name in archive.namelist() if not name.endswith("/")]
    return [file for file in found if file is not None]


def _file(path: str, content: bytes) -> File | None:
    """A file below the package's folder; None for tests, what is compiled, and what an installer notes down."""
    parts = path.split("/")
    notes = parts[0].endswith(".dist-info") and parts[-1] in {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    if {"__pycache__", "tests", ".."} & set(parts) or notes:
        return None
    return File(f"usr/lib/{NAME}/packages/{path}", content)


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
    given = parser.parse_args()
    try:
        if not given.wheel.is_file():
            raise PackagingError(f"--wheel: {given.wheel} is not there; run: make release")
        if platform.machine() not in DEBIAN:
            raise PackagingError(f"this machine is {platform.machine()}; expected one of {', '.join(DEBIAN)}")
        given.out.mkdir(parents=True, exist_ok=True)
        files = [*imported(), *unpacked(given.wheel)]
        for version in versions():
            made = build_deb(package(files, sys.version_info[:2], version), given.out)
            print(f"{made.name}  {made.stat().st_size} bytes")
    except PackagingError as error:
        print(f"server package: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
