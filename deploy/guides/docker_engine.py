"""A Docker engine of its own for a test: Debian's dockerd with a folder of its own, and Compose 2; both end with it.

The base images are podman's stand-ins. A runtime wrapper drops what a root without CAP_SYS_RESOURCE may not ask for.
Docker makes a bridge and rules of iptables, which are removed afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from container_rig import CACHE, DEBIAN, NODE, POSTGRES, Engine, RigError, find_engine

COMPOSE = "v2.40.2"
WRAPPER = Path(__file__).resolve().parents[1] / "containers/runtime_wrapper.py"
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def compose_plugin() -> Path:
    """Docker Compose 2 as a program, built from its Go modules once (a minute). Raises RigError."""
    target = CACHE / f"docker-compose-{COMPOSE}"
    if not target.exists():
        if shutil.which("go") is None:
            raise RigError("Docker Compose 2 is not there, and no Go compiler builds it (Debian: golang-go)")
        package = "github.com/docker/compose/v2"
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            (Path(folder) / "tools.go").write_text(f'//go:build tools\n\npackage tools\n\nimport _ "{package}/cmd"\n')
            for words in (
                ("mod", "init", "compose.invalid"),
                ("get", f"{package}@{COMPOSE}"),
                ("mod", "tidy", "-e"),
                ("build", "-trimpath", "-ldflags", f"-s -w -X {package}/internal.Version={COMPOSE}", "-o", "made",
                 f"{package}/cmd"),
            ):  # fmt: skip
                done = subprocess.run(
                    ["go", *words], cwd=folder, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True,
                    check=False,
                )  # fmt: skip
                if done.returncode:
                    raise RigError(f"go {words[0]} of Docker Compose failed: {done.stderr.strip().splitlines()[-1:]}")
            (Path(folder) / "made").rename(target)
    return target


@contextlib.contextmanager
def docker_engine(folder: Path) -> Iterator[Engine]:
    """The engine, for as long as the block lasts. Raises RigError with the reason where it cannot run."""
    for program in ("dockerd", "containerd", "runc", "docker", "iptables"):
        if shutil.which(program, path=PATH) is None:
            raise RigError(f"{program} is not installed (Debian package docker.io)")
    podman = find_engine(bridged=False)
    if podman.name != "podman":
        yield podman  # a Docker that is there already
        return
    (folder / "config/cli-plugins").mkdir(parents=True)
    shutil.copy2(compose_plugin(), folder / "config/cli-plugins/docker-compose")
    runtime = folder / "runc-without-limits"
    runtime.write_text(f"#!{sys.executable}\n" + WRAPPER.read_text().replace("crun", "runc"))
    runtime.chmod(0o755)
    socket = f"unix://{folder}/docker.sock"
    words = [
        "dockerd", "--host", socket, "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"),
        "--pidfile", str(folder / "docker.pid"), "--add-runtime", f"rig={runtime}", "--default-runtime", "rig",
    ]  # fmt: skip
    environment = {**podman.environment, "DOCKER_HOST": socket, "DOCKER_CONFIG": str(folder / "config"), "PATH": PATH}
    engine = Engine("docker", ("docker",), ("docker", "compose"), environment, stand_ins=True)
    with (folder / "dockerd.log").open("wb") as log:
        daemon = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while engine.run("info", check=False).returncode != 0:
            if daemon.poll() is not None or time.monotonic() > deadline:
                last = (folder / "dockerd.log").read_text(errors="replace").strip().splitlines()[-1:]
                raise RigError(f"dockerd does not come up here: {last}")
            time.sleep(0.2)
        for image in (DEBIAN, NODE, POSTGRES):
            podman.run("save", "--format", "docker-archive", "--output", str(folder / "base.tar"), image, seconds=300)
            engine.run("load", "--input", str(folder / "base.tar"), seconds=300)
            (folder / "base.tar").unlink()
            engine.run("tag", f"localhost/{image}", image)  # podman's name for what was made here
        yield engine
    finally:
        daemon.terminate()
        daemon.wait(60)
        _remove_network()


def _remove_network() -> None:
    """The bridge, and every rule and chain of Docker's."""
    subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True, check=False)
    for table in ("filter", "nat"):
        rules = subprocess.run(
            ["iptables", "--table", table, "--list-rules"], capture_output=True, text=True, check=False
        ).stdout.splitlines()
        ours = [rule for rule in rules if "DOCKER" in rule or "docker0" in rule or "172.1" in rule]
        chains = [rule.split()[1] for rule in ours if rule.startswith("-N ")]
        for rule in ours:
            if rule.startswith("-A "):
                subprocess.run(f"iptables --table {table} {rule.replace('-A', '-D', 1)}", shell=True, check=False)  # noqa: S602 - iptables' own words
        for chain in chains:
            subprocess.run(["iptables", "--table", table, "--delete-chain", chain], check=False, capture_output=True)
