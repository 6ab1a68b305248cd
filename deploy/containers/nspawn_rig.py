"""A Debian with systemd as its process 1, by systemd-nspawn in a tree of debootstrap: for packages and units.

Each machine has a layer of its own over the tree, in memory, and shares the network, so that a service of the test on
loopback can be reached. Commands run by nsenter, as neither dbus nor machined is needed for that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hugeplan/nspawn"
SUITE = "bookworm"
TREE = CACHE / f"{SUITE}-3"
PACKAGES = (
    "systemd,systemd-sysv,dbus,python3,ca-certificates,passwd,rpm,curl,openssh-server,sudo,python3-apt,cloud-init,"
    "nginx-light"
)
WAIT_SECONDS = 90.0
QUIET_UNITS = (
    "systemd-firstboot.service", "systemd-networkd.service", "systemd-networkd-wait-online.service",
    "systemd-resolved.service", "systemd-timesyncd.service", "apt-daily.timer", "apt-daily-upgrade.timer",
    # Of packages that are only there for tests, and that would listen on the shared network.
    "ssh.service", "ssh.socket", "nginx.service", "cloud-init.service", "cloud-init-local.service",
    "cloud-config.service", "cloud-final.service",
)  # fmt: skip


class NotAvailableError(Exception):
    """No such machine can be had here; the text says why."""


def _require() -> None:
    if os.geteuid() != 0:
        raise NotAvailableError("systemd-nspawn needs root")
    for program in ("systemd-nspawn", "debootstrap", "nsenter"):
        if shutil.which(program) is None:
            raise NotAvailableError(f"{program} is not installed (Debian: systemd-container, debootstrap, util-linux)")


def mirror() -> str:
    """Where apt already takes Debian's packages from: the main archive, not another program's."""
    lines = [
        line
        for path in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*")))
        if path.is_file()
        for line in path.read_text().splitlines()
    ]
    addresses = [word for line in lines if not line.startswith("#") for word in line.split() if "://" in word]
    found = next((address for address in addresses if address.rstrip("/").endswith("/debian")), None)
    if found is None:
        raise NotAvailableError("apt has no Debian archive here, so no tree can be made")
    return found


def tree() -> Path:
    """The tree, made once (two minutes)."""
    _require()
    if not TREE.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            root = Path(folder) / "root"
            words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), mirror()]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotAvailableError(f"debootstrap failed: {done.stdout.splitlines()[-1:]}")
            for unit in QUIET_UNITS:
                (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
            root.replace(TREE)
    return TREE


class Machine:
    """A started machine."""

    def __init__(self, root: Path, leader: int, log: Path) -> None:
        self.root, self.leader, self.log = root, leader, log

    def call(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in it as root."""
        enter = ["nsenter", "--target", str(self.leader), "--mount", "--uts", "--ipc", "--pid", "--root", "--wd"]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = ["env", "-i", path, "HOME=/root", "DEBIAN_FRONTEND=noninteractive"]
        return subprocess.run(
            [*enter, "--", *environment, *words], input=given, capture_output=True, text=True, check=False, timeout=300
        )

    def run(self, *words: str) -> str:
        """What a command prints; it must end well."""
        done = self.call(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def shell(self, line: str) -> str:
        """What a line of a guide prints; it must end well."""
        return self.run("sh", "-ec", line)

    def journal(self, unit: str = "hugeplan-agent") -> str:
        """What a unit said."""
        return self.call("journalctl", "--no-pager", "--output=cat", "--unit", unit).stdout

    def until(self, is_true: Callable[[], object], what: str) -> None:
        """Wait for something."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_true():
            assert time.monotonic() < deadline, f"{what} did not come about: {self.journal()[-2000:]}"
            time.sleep(0.2)


def _leader(process: subprocess.Popen[bytes]) -> int | None:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    found = children.read_text().split() if children.exists() else []
    return int(found[0]) if found else None


@contextmanager
def machine(folder: Path, files: dict[str, Path]) -> Iterator[Machine]:
    """A machine that has booted; ``files`` are copied into it. NotAvailableError."""
    lower = tree()
    top = folder / "top"
    top.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "hugeplan-nspawn", str(top)], check=True)
    merged = top / "merged"
    process: subprocess.Popen[bytes] | None = None
    try:
        for name in ("upper", "work", "merged"):
            (top / name).mkdir()
        options = f"lowerdir={lower},upperdir={top}/upper,workdir={top}/work"
        mounted = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", options, str(merged)], capture_output=True, check=False
        )
        if mounted.returncode:
            raise NotAvailableError(f"no overlay file system here: {mounted.stderr.decode().strip()}")
        (merged / "etc/machine-id").write_text(f"{os.urandom(16).hex()}\n")
        for target, source in files.items():
            shutil.copy(source, merged / target.lstrip("/"))
        log = folder / "boot.log"
        words = ["systemd-nspawn", "--quiet", f"--directory={merged}", "--boot", "--register=no", "--keep-unit"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*words, "--console=pipe", f"--machine=hugeplan{os.getpid()}"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        yield _booted(process, merged, log)
    finally:
        if process is not None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        subprocess.run(["umount", str(merged)], check=False, capture_output=True)
        subprocess.run(["umount", "--lazy", str(top)], check=False)


def _booted(process: subprocess.Popen[bytes], merged: Path, log: Path) -> Machine:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise NotAvailableError(f"systemd-nspawn ends here: {log.read_text(errors='replace')[-300:]}")
        leader = _leader(process)
        if leader is not None:
            made = Machine(merged, leader, log)
            if made.call("systemctl", "is-system-running").stdout.strip() in {"running", "degraded"}:
                return made
        time.sleep(0.2)
    raise NotAvailableError(f"systemd does not come up here: {log.read_text(errors='replace')[-300:]}")
