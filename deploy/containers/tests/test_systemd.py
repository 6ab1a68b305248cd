"""The agent's deb on a Debian with systemd as its process 1: installed, started by the unit, killed, stopped, removed.

The hardening of the unit is systemd's own work here. Podman only: its --systemd starts a container with an init.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from container_rig import CACHE, PYTHON, REPOSITORY, Engine, RigError, find_engine

IMAGE = "hugeplan-test-systemd:2"
CONTAINERFILE = f"""
FROM {PYTHON}
RUN apt-get update && apt-get install -y --no-install-recommends systemd && rm -rf /var/lib/apt/lists/*
# A privileged container would set these of the machine itself.
RUN cd /etc/systemd/system && for unit in systemd-binfmt.service systemd-sysctl.service systemd-modules-load.service \\
    proc-sys-fs-binfmt_misc.automount proc-sys-fs-binfmt_misc.mount; do ln -s /dev/null $unit; done
CMD ["/lib/systemd/systemd"]
"""  # noqa: S608 - a Containerfile is no SQL


class Machine:
    """A container that started systemd."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine, self.name = engine, name

    def run(self, *words: str, check: bool = True) -> str:
        """What a command in it prints."""
        return self.engine.run("exec", self.name, *words, check=check).stdout.strip()

    def state(self, unit: str = "hugeplan-agent.service") -> str:
        """active, inactive, failed, ..."""
        return self.run("systemctl", "is-active", unit, check=False)

    def main_pid(self) -> int:
        """The agent's process in the container, 0 without one."""
        return int(self.run("systemctl", "show", "--property=MainPID", "--value", "hugeplan-agent.service"))

    def until(self, is_true: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait for something; what the journal says where it does not come."""
        deadline = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > deadline:
                said = self.run("journalctl", "--no-pager", "-n", "40", check=False)
                raise AssertionError(f"{what} did not come about within {seconds:g} s:\n{said}")
            time.sleep(0.2)


@pytest.fixture(scope="module")
def deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("deb")
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "agent/packaging/build.py"), "--out", str(out), "--kinds", "deb"],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode and "is not installed" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    (found,) = out.glob("*.deb")
    return found


@pytest.fixture(scope="module")
def machine(deb: Path) -> Iterator[Machine]:
    try:
        engine = find_engine()
    except (RigError, subprocess.SubprocessError) as error:
        pytest.skip(str(error))
    if engine.name != "podman":
        pytest.skip("systemd as process 1 of a container is podman's --systemd; this engine has no such option")
    if engine.run("image", "exists", IMAGE, check=False).returncode != 0:
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            (Path(folder) / "Containerfile").write_text(CONTAINERFILE)
            built = engine.run("build", "--pull=never", "--tag", IMAGE, folder, seconds=600, check=False)
        if built.returncode:
            pytest.skip(f"no Debian with systemd can be built here: {built.stderr.splitlines()[-1:]}")
    name = f"hugeplantest-systemd-{deb.stat().st_ino}"
    started = engine.run(
        "run", "--detach", "--name", name, "--systemd=always", "--privileged", "--network=none",
        "--volume", f"{deb}:/root/agent.deb:ro", IMAGE, check=False,
    )  # fmt: skip
    try:
        if started.returncode:
            pytest.skip(f"podman starts no container with systemd here: {started.stderr.splitlines()[-1:]}")
        found = Machine(engine, name)
        deadline = time.monotonic() + 60
        while found.run("systemctl", "is-system-running", check=False) not in {"running", "degraded"}:
            if time.monotonic() > deadline:
                pytest.skip(f"systemd does not come up in a container here: {engine.run('logs', name).stdout[-500:]}")
            time.sleep(0.2)
        yield found
    finally:
        engine.run("rm", "--force", "--time", "2", name, check=False)


def test_the_deb_starts_by_systemd_comes_back_and_goes(machine: Machine) -> None:
    machine.run("dpkg", "-i", "/root/agent.deb")
    # As docs/install-bare-metal.md has it; nobody answers there, so that what is observed stays in the spool.
    settings = "HUGEPLAN_AGENT_SERVER=http://127.0.0.1:9\\nHUGEPLAN_AGENT_INTERVAL=2s"
    machine.run("sh", "-c", f"printf '{settings}\\n' >> /etc/hugeplan/agent.env")
    machine.run("sh", "-c", "umask 077; echo of-no-account > /etc/hugeplan/agent-token")
    machine.run("systemctl", "enable", "--now", "hugeplan-agent.service")
    machine.until(lambda: machine.state() == "active", "the service")
    # systemd in a container cannot always hand over a credential; what was observed waits in the spool either way.
    spool = ("find", "/var/lib/private/hugeplan-agent/pending", "-name", "*-sample.json")
    machine.until(lambda: ".json" in machine.run(*spool, check=False), "a report in the spool")

    first = machine.main_pid()
    status = machine.run("cat", f"/proc/{first}/status")
    assert "NoNewPrivs:\t1" in status
    assert "Uid:\t0\t" not in status
    machine.run("systemctl", "kill", "--signal=KILL", "hugeplan-agent.service")
    machine.until(lambda: machine.main_pid() not in {0, first} and machine.state() == "active", "a new process")

    machine.run("systemctl", "stop", "hugeplan-agent.service")
    assert machine.state() == "inactive"
    machine.run("dpkg", "-r", "hugeplan-agent")
    assert machine.run("sh", "-c", "ls /usr/bin/hugeplan-agent", check=False) == ""
