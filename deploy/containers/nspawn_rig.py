"""A Debian with systemd as its process 1, by systemd-nspawn in a tree of debootstrap: for packages and units.

Each machine has a layer of its own over the tree, in memory. It shares the network, so that a service of the test on
loopback can be reached; or it has a loopback of its own and reaches the named hosts alone, through connections that
this process forwards: no network interface is made on this machine for it. Commands run by nsenter, as neither dbus nor
machined is needed for that.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from debian_tree import make_tree

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hugeplan/nspawn"


@dataclass(frozen=True)
class Tree:
    """A Debian release with packages. Other contents need the next number."""

    suite: str
    number: int
    packages: str
    # Units that never start: of packages that are only there for tests, and that would listen on the shared network.
    masked: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return CACHE / f"{self.suite}-{self.number}"


# With what tests of packages use beside them.
FURNISHED = Tree(
    "bookworm", 5,
    # debootstrap does not find what provides a virtual package: python3-cffi-backend is for cloud-init.
    "systemd,systemd-sysv,dbus,python3,ca-certificates,passwd,rpm,curl,openssh-server,sudo,python3-apt,cloud-init,"
    "python3-cffi-backend,nginx-light,caddy",
    masked=(
        "ssh.service", "ssh.socket", "nginx.service", "caddy.service", "cloud-init.service", "cloud-init-local.service",
        "cloud-config.service", "cloud-final.service",
    ),
)  # fmt: skip
# What a fresh Debian has and no more: a guide has to name the rest.
CLEAN = Tree("trixie", 1, "systemd,systemd-sysv,dbus,ca-certificates,sudo")
WAIT_SECONDS = 90.0
#: A certificate bundle of this machine, so that clients in the tree trust the package registries that it trusts.
TRUSTED = "/usr/local/share/rig-trusted.crt"
CLONE_NEWNET = 0x40000000
QUIET_UNITS = (
    "systemd-firstboot.service", "systemd-networkd.service", "systemd-networkd-wait-online.service",
    "systemd-resolved.service", "systemd-timesyncd.service", "apt-daily.timer", "apt-daily-upgrade.timer",
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


def made(tree: Tree) -> Path:
    """The folder of a tree, made once (two minutes)."""
    _require()
    if not tree.folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            root = Path(folder) / "root"
            make_tree(tree.suite, root, packages=tree.packages, mirror=mirror())
            for unit in (*QUIET_UNITS, *tree.masked):
                (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
            root.replace(tree.folder)
    return tree.folder


class Machine:
    """A started machine."""

    def __init__(self, root: Path, leader: int, log: Path) -> None:
        self.root, self.leader, self.log = root, leader, log

    def call(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in it as root."""
        return subprocess.run(
            [*self.entering(), *words], input=given, capture_output=True, text=True, check=False, timeout=300
        )

    def entering(self, *variables: str) -> list[str]:
        """The words before a command that run it here as root, with these variables more."""
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd")
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = ("env", "-i", path, "HOME=/root", "DEBIAN_FRONTEND=noninteractive", *variables)
        return ["nsenter", "--target", str(self.leader), *spaces, "--", *environment]

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


def _forward(listener: socket.socket, host: str, port: int) -> None:
    """Carry each connection to the host, until the listener is closed."""

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def serve(near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection((host, port), 30) as far:
            back = threading.Thread(target=carry, args=(far, near), daemon=True)
            back.start()
            carry(near, far)
            back.join()

    with contextlib.suppress(OSError):
        while True:
            near, _ = listener.accept()
            threading.Thread(target=serve, args=(near,), daemon=True).start()


def _listener_in(leader: int, address: tuple[str, int]) -> socket.socket:
    """A socket that listens in the network of another process. A thread that ends changes over to it."""
    found: list[socket.socket] = []

    def listen() -> None:
        with Path(f"/proc/{leader}/ns/net").open("rb") as network:
            if ctypes.CDLL(None).setns(network.fileno(), CLONE_NEWNET) == 0:
                found.append(socket.create_server(address, backlog=64))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    if not found:
        raise NotAvailableError(f"no socket on {address} in the network of process {leader}")
    return found[0]


@contextmanager
def reaching(machine: Machine, hosts: Sequence[str]) -> Iterator[None]:
    """The machine of a network of its own reaches ``host:port`` of each, by name, for as long as the block lasts.

    Its own ports 80 and 443 stay free: a rule of its kernel leads there from an address of its loopback.
    """
    names = [*dict.fromkeys(host.rpartition(":")[0] for host in hosts)]
    addresses = {name: f"127.1.0.{number}" for number, name in enumerate(names, 1)}
    file = machine.root / "etc/hosts"
    before = file.read_text() if file.exists() else "127.0.0.1 localhost\n"
    inside = ["nsenter", f"--net=/proc/{machine.leader}/ns/net", "iptables", "--table", "nat"]
    with contextlib.ExitStack() as stack:
        for number, (name, _, port) in enumerate(host.rpartition(":") for host in hosts):
            near = 20_000 + number
            listener = stack.enter_context(_listener_in(machine.leader, ("127.0.0.1", near)))
            threading.Thread(target=_forward, args=(listener, name, int(port)), daemon=True).start()
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            rule = ["OUTPUT", "--protocol", "tcp", "--destination", addresses[name], "--dport", port]
            rule += ["--jump", "REDIRECT", "--to-ports", str(near)]
            done = subprocess.run([*inside, "--append", *rule], capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotAvailableError(f"no rule of iptables in a network of its own: {done.stderr.strip()}")
            stack.callback(subprocess.run, [*inside, "--delete", *rule], check=False, capture_output=True)
        file.write_text(before + "".join(f"{address} {name}\n" for name, address in addresses.items()))
        try:
            yield
        finally:
            file.write_text(before)


@contextmanager
def machine(
    folder: Path, files: dict[str, Path], *, tree: Tree = FURNISHED, name: str = "", private: bool | Machine = False
) -> Iterator[Machine]:
    """A machine that has booted; ``files`` are copied into it. NotAvailableError.

    Private: with a loopback of its own, or with that of another such machine.
    """
    lower = made(tree)
    top = folder / "top"
    top.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "hugeplan-nspawn", str(top)], check=True)
    merged = top / "merged"
    process: subprocess.Popen[bytes] | None = None
    try:
        for layer in ("upper", "work", "merged"):
            (top / layer).mkdir()
        options = f"lowerdir={lower},upperdir={top}/upper,workdir={top}/work"
        mounted = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", options, str(merged)], capture_output=True, check=False
        )
        if mounted.returncode:
            raise NotAvailableError(f"no overlay file system here: {mounted.stderr.decode().strip()}")
        (merged / "etc/machine-id").write_text(f"{os.urandom(16).hex()}\n")
        if name:
            (merged / "etc/hostname").write_text(f"{name}\n")
            (merged / "etc/hosts").write_text(f"127.0.0.1 localhost {name}\n")
        for target, source in files.items():
            shutil.copy(source, merged / target.lstrip("/"))
        for bundle in filter(Path.is_file, (Path("/etc/ssl/certs/ca-certificates.crt"),)):
            shutil.copy(bundle, merged / TRUSTED.lstrip("/"))
        log = folder / "boot.log"
        words = ["systemd-nspawn", "--quiet", f"--directory={merged}", "--boot", "--register=no", "--keep-unit"]
        # Machines have a capability and a system call that nspawn keeps from its own: for the agent's drop-in.
        words += ["--capability=CAP_PERFMON", "--system-call-filter=perf_event_open"]
        words += ["--console=pipe", f"--machine={name or f'hugeplan{os.getpid()}'}"]
        if isinstance(private, Machine):
            words.append(f"--network-namespace-path=/proc/{private.leader}/ns/net")
        elif private:
            words.append("--private-network")
        with log.open("wb") as out:
            process = subprocess.Popen(
                words,
                # systemd of 2025 and later refuses cgroup v1, which it need not have.
                env={**os.environ, **({"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"} if tree is CLEAN else {})},
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
