"""Debian packages that some test suites need. Installed by `make test` when it runs as root on a machine with apt-get.

HUGEPLAN_INSTALL=no turns this off; the tests that miss something then say SKIP with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APT = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


def find_browser() -> str | None:
    """The path of a Chromium or Chrome on this machine, or None. CHROMIUM names one by hand."""
    named = os.environ.get("CHROMIUM")
    candidates = (named, *BROWSERS) if named else BROWSERS
    return next((path for path in map(shutil.which, candidates) if path), None)


def _has(program: str) -> Callable[[], bool]:
    return lambda: shutil.which(program) is not None


def _has_clang_sanitizers() -> bool:
    """Clang alone does not bring the sanitizers' runtime."""
    if shutil.which("clang") is None:
        return False
    probe = subprocess.run(
        ["clang", "-fsanitize=address", "-x", "c", "-", "-o", "/dev/null"],
        input=b"int main(void) { return 0; }", capture_output=True, check=False,
    )  # fmt: skip
    return probe.returncode == 0


@dataclass(frozen=True)
class Want:
    """A thing some suites need, how to see whether it is here, and the packages that bring it."""

    suites: frozenset[str]
    is_present: Callable[[], bool]
    packages: tuple[str, ...]


CONTAINER_PACKAGES = (
    "podman", "buildah", "crun", "netavark", "aardvark-dns", "iptables", "debootstrap", "ca-certificates",
)  # fmt: skip


def has_docker() -> bool:
    """Docker with a daemon that answers."""
    docker = shutil.which("docker")
    return docker is not None and subprocess.run([docker, "info"], capture_output=True, check=False).returncode == 0


def _has_container_engine() -> bool:
    """Docker, or podman with what its stand-in base images need."""
    programs = ("podman", "buildah", "crun", "debootstrap", "iptables")
    return has_docker() or all(shutil.which(program) for program in programs)


WANTS = (
    Want(frozenset({"images", "containers"}), _has_container_engine, CONTAINER_PACKAGES),
    Want(frozenset({"browser"}), lambda: find_browser() is not None, ("chromium",)),
    Want(frozenset({"browser"}), lambda: Path("/usr/share/fonts/truetype/dejavu").exists(), ("fonts-dejavu-core",)),
    Want(frozenset({"agent"}), _has("rpmbuild"), ("rpm",)),
    Want(frozenset({"backend"}), _has("mariadbd"), ("mariadb-server-core",)),
    Want(frozenset({"backend"}), _has("sysbench"), ("sysbench",)),
    Want(frozenset({"backend"}), lambda: any(Path("/usr/lib").glob("*/faketime/*")), ("libfaketime",)),
    Want(frozenset({"guides"}), _has_container_engine, CONTAINER_PACKAGES),
    Want(frozenset({"guides"}), _has("dockerd"), ("docker.io",)),
    Want(frozenset({"guides"}), Path("/usr/lib/cni/ptp").exists, ("containerd", "runc", "containernetworking-plugins")),
    Want(frozenset({"deploy"}), _has("haproxy"), ("haproxy",)),
    Want(frozenset({"deploy", "guides"}), _has("systemd-nspawn"), ("systemd-container", "debootstrap")),
    Want(frozenset({"deploy"}), _has("lintian"), ("lintian",)),
    Want(frozenset({"deploy"}), _has("rpmbuild"), ("rpm",)),
    Want(frozenset({"deploy"}), _has("ansible-playbook"), ("ansible-core",)),
    Want(frozenset({"deploy"}), _has("nginx"), ("nginx-light",)),
    Want(frozenset({"tlbbench"}), _has_clang_sanitizers, ("clang", "libclang-rt-14-dev")),
    Want(frozenset({"tlbbench"}), _has("qemu-aarch64"), ("qemu-user",)),
    Want(frozenset({"tlbbench"}), _has("aarch64-linux-gnu-gcc"), ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross")),
    Want(
        frozenset({"tlbbench"}), _has("powerpc64le-linux-gnu-gcc"),
        ("gcc-powerpc64le-linux-gnu", "libc6-dev-ppc64el-cross"),
    ),
)  # fmt: skip


def suites_that_miss(suites: Iterable[str]) -> frozenset[str]:
    """Which of these suites have something to be installed for them."""
    chosen = frozenset(suites)
    return frozenset[str]().union(*(want.suites & chosen for want in WANTS if not want.is_present()))


def install_missing(suites: Iterable[str]) -> None:
    """Install what the chosen suites miss. What cannot be installed is left out, and its tests skip."""
    missing = [want for want in WANTS if want.suites & frozenset(suites) and not want.is_present()]
    if not missing:
        return
    packages = [package for want in missing for package in want.packages]
    if os.environ.get("HUGEPLAN_INSTALL") == "no" or os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"==> not installed here, so some tests will skip: {' '.join(packages)}", flush=True)
        return
    print(f"==> installing {' '.join(packages)}", flush=True)
    _apt(["update"])
    if _apt(["install", "-y", "--no-install-recommends", *packages]):
        return
    # One unknown name must not keep the others away.
    for package in packages:
        if not _apt(["install", "-y", "--no-install-recommends", package]):
            print(f"==> {package} could not be installed", flush=True)


def _apt(words: list[str]) -> bool:
    try:
        # Quiet: what goes well is said in one line. Another apt-get of this machine is waited for.
        done = subprocess.run(
            ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0", *words], env=APT,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False, timeout=900,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    install_missing(sys.argv[1:])
