"""The agent's deb and rpm on a Debian with systemd: installed, enrolled, renewed, upgraded, downgraded, purged.

A real service answers on loopback. The machine is systemd-nspawn's (deploy/containers/nspawn_rig.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.server import Server, serving

from hugeplan.db import migrate
from hugeplan.embedded import TEST_SETTINGS, running
from hugeplan.settings import Settings
from nspawn_rig import Machine, NotAvailableError, machine
from printed import blocks

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDE = REPOSITORY / "docs/install-bare-metal.md"
STATE = "/var/lib/hugeplan-agent"
DROP_INS = "/etc/systemd/system/hugeplan-agent.service.d"
CAP_PERFMON = 1 << 38
OLD, NEW = "0.0.9", "0.1.0"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of the deb and of the rpm."""
    out = tmp_path_factory.mktemp("packages")
    kinds = "deb,rpm" if shutil.which("rpmbuild") else "deb"
    for version in (OLD, NEW):
        done = subprocess.run(
            [sys.executable, str(REPOSITORY / "agent/packaging/build.py"), "--out", str(out), "--kinds", kinds],
            env={
                **os.environ,
                "HUGEPLAN_PACKAGE_VERSION": version,
                "SOURCE_DATE_EPOCH": "1700000000",
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and "is not installed" in done.stderr:
            pytest.skip(f"SKIP: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("service")
    with running(folder / "data", TEST_SETTINGS) as postgres:
        postgres.ensure_database("packages")
        url = postgres.url("packages")
        migrate.upgrade(Settings(database_url=url).sqlalchemy_url(), REPOSITORY / "migrations")  # type: ignore[arg-type]
        with serving(url, folder, HUGEPLAN_REENROLMENT_SILENCE_SECONDS="1") as server:
            yield server


def call(server: Server, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"{server.url}/api/v1{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {server.admin_token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def reported(server: Server, name: str) -> str | None:
    found = [node for node in call(server, "GET", "/nodes?limit=200")["items"] if node["name"] == name]
    return found[0]["last_report_at"] if found else None


@pytest.fixture
def node(tmp_path: Path, packages: Path) -> Iterator[Machine]:
    try:
        with machine(tmp_path, {f"/root/{path.name}": path for path in packages.iterdir()}) as booted:
            yield booted
    except NotAvailableError as error:
        pytest.skip(f"SKIP: {error}")


def goes_on(node: Machine, service: Server, name: str) -> None:
    before = reported(service, name)
    node.until(lambda: reported(service, name) not in {None, before}, "a new report")


def pid(node: Machine) -> str:
    return node.run("systemctl", "show", "--property=MainPID", "--value", "hugeplan-agent.service")


def owners(node: Machine) -> set[str]:
    return set(node.run("find", STATE, "-printf", "%u:%g\n").splitlines())


def settings(service: Server, name: str) -> str:
    lines = {"SERVER": service.url, "INTERVAL": "1s", "NODE_NAME": name}
    text = "".join(f"HUGEPLAN_AGENT_{key}={value}\\n" for key, value in lines.items())
    return f"printf '{text}' > /etc/hugeplan/agent.env"


def new_token(service: Server) -> str:
    token: str = call(service, "POST", "/tokens", {"name": "nodes", "role": "enrolment"})["token"]
    return token


def lines_of_the_page() -> list[str]:
    """The blocks that turn the counting of page walks on and off, without the doctor."""
    found = [one.text for one in blocks("docs/counters.md") if one.section == "The right to count"]
    assert len(found) == 2
    return [text.replace("hugeplan-agent doctor\n", "") for text in found]


def capabilities(node: Machine) -> dict[str, int]:
    """The daemon's, as the kernel has them."""
    status = node.run("cat", f"/proc/{pid(node)}/status")
    return {name: int(value, 16) for name, value in re.findall(r"^(CapEff|CapBnd):\s+(\w+)$", status, re.MULTILINE)}


def the_doctor_reads_what_the_daemon_reads(node: Machine) -> None:
    node.shell("cp -p /root/enrolment /etc/hugeplan/enrolment-token")
    doctor = node.call("hugeplan-agent", "doctor")
    assert doctor.returncode == 1, "the daemon cannot read it, and root could"
    assert "chgrp hugeplan-agent /etc/hugeplan/enrolment-token" in doctor.stdout, doctor.stdout
    node.shell("rm /etc/hugeplan/enrolment-token")


def the_drop_ins_give_and_the_doctor_says_what(node: Machine) -> None:
    # Counting what others run is off; the page's own lines turn it on, and off again.
    doctor = node.run("hugeplan-agent", "doctor")
    assert "page walks       the running agent cannot count them: run as root or with CAP_PERFMON" in doctor, doctor
    assert "off unless you turn it on" in doctor, doctor
    turn_on, turn_off = lines_of_the_page()
    node.shell(turn_on)
    node.until(lambda: "run as root or with CAP_PERFMON" not in node.run("hugeplan-agent", "doctor"), "the right")
    assert capabilities(node) == {"CapEff": CAP_PERFMON, "CapBnd": CAP_PERFMON}
    node.shell(turn_off)
    node.until(lambda: "run as root or with CAP_PERFMON" in node.run("hugeplan-agent", "doctor"), "its end")
    assert capabilities(node) == {"CapEff": 0, "CapBnd": 0}

    # So with the other drop-in: root's doctor judges with what it gives the daemon. A misspelt setting is said.
    node.shell(f"cp /usr/share/hugeplan-agent/read-databases.conf {DROP_INS}; systemctl daemon-reload")
    node.shell("echo HUGEPLAN_AGENT_INTERVALL=9s >> /etc/hugeplan/agent.env; systemctl restart hugeplan-agent")
    doctor = node.run("hugeplan-agent", "doctor")
    assert "gives hugeplan-agent with CAP_DAC_READ_SEARCH CAP_SYS_PTRACE" in doctor, doctor
    assert "other users' processes cannot be read" not in doctor, doctor
    assert "Is HUGEPLAN_AGENT_INTERVAL meant?" in doctor, doctor
    assert "warning: 'HUGEPLAN_AGENT_INTERVALL' is no setting" in node.journal()
    assert owners(node) == {"hugeplan-agent:hugeplan-agent"}


def test_the_deb_from_its_installation_to_its_purge(node: Machine, service: Server) -> None:
    name = "deb-node"
    node.run("dpkg", "-i", f"/root/hugeplan-agent_{OLD}_amd64.deb")
    assert node.run("tlbbench", "--version").startswith("tlbbench")
    node.shell(settings(service, name))

    # Enabled before it is enrolled, it waits and says so; what it sees meanwhile is kept.
    node.run("systemctl", "enable", "--now", "hugeplan-agent.service", "hugeplan-agent-measure.timer")
    node.until(lambda: "this node is not enrolled" in node.journal(), "the sentence")
    assert "not enrolled" in node.run("systemctl", "status", "--no-pager", "hugeplan-agent")
    first = pid(node)

    # An administrator enrols and asks the doctor, as root: the service goes on without a restart.
    node.shell(f"umask 077; echo {new_token(service)} > /root/enrolment")
    the_doctor_reads_what_the_daemon_reads(node)
    node.run("hugeplan-agent", "enrol", "--enrolment-token-file", "/root/enrolment")
    goes_on(node, service, name)
    doctor = node.run("hugeplan-agent", "doctor")
    said = "checked as hugeplan-agent, which the service runs as: hugeplan-agent.service gives hugeplan-agent without"
    assert said in doctor, doctor
    assert "other users' processes cannot be read" in doctor
    assert "answers and takes this token" in doctor
    assert node.run("hugeplan-agent", "health").startswith("reports reach the server")
    assert owners(node) == {"hugeplan-agent:hugeplan-agent"}
    assert pid(node) == first

    # A token that somebody renewed is seen without a restart.
    machine_id = node.run("cat", "/etc/machine-id")
    (token,) = [one for one in call(service, "GET", "/tokens?limit=200")["items"] if one["machine_id"] == machine_id]
    fresh = call(service, "POST", f"/tokens/{token['id']}/rotate", {"overlap_seconds": 0})["token"]
    node.shell(
        f"cd {STATE}; umask 077; echo {fresh} > token.new; chown hugeplan-agent:hugeplan-agent token.new;"
        " mv token.new token"
    )
    goes_on(node, service, name)
    assert pid(node) == first

    the_drop_ins_give_and_the_doctor_says_what(node)

    # An upgrade starts the daemon again; a downgrade too. Settings and token stay.
    for version in (NEW, OLD, NEW):
        before = pid(node)
        node.run("dpkg", "--force-confold", "-i", f"/root/hugeplan-agent_{version}_amd64.deb")
        node.until(lambda before=before: pid(node) not in {"0", before}, "the restart")  # type: ignore[misc]
        goes_on(node, service, name)
    assert node.run("hugeplan-agent", "--version") == f"hugeplan-agent {NEW}"
    assert node.run("find", "/usr/lib/hugeplan-agent", "-name", "*.pyc") == ""

    # Killed, it comes back.
    before = pid(node)
    node.shell(f"kill -KILL {before}")
    node.until(lambda: pid(node) not in {"0", before}, "a new process")

    node.run("dpkg", "--remove", "hugeplan-agent")
    assert node.call("systemctl", "is-active", "hugeplan-agent").stdout.strip() == "inactive"
    assert node.run("ls", STATE), "removing keeps the token and what waits"
    node.run("dpkg", "--purge", "hugeplan-agent")
    for left in (
        STATE,
        "/var/lib/private/hugeplan-agent",
        "/etc/hugeplan",
        "/usr/lib/hugeplan-agent",
        "/usr/bin/tlbbench",
        DROP_INS,
    ):
        assert node.call("ls", "-d", left).returncode != 0, left


def test_an_enrolment_token_beside_the_settings_is_enough(node: Machine, service: Server) -> None:
    """What cloud-init and Ansible write; and what a release before wrote is adopted."""
    name = "cloud-node"
    node.shell("mkdir -p /etc/hugeplan")
    node.shell(f"umask 077; echo {new_token(service)} > /etc/hugeplan/enrolment-token")
    node.shell(settings(service, name))
    node.run("dpkg", "--force-confold", "-i", f"/root/hugeplan-agent_{NEW}_amd64.deb")
    node.run("systemctl", "enable", "--now", "hugeplan-agent.service")
    goes_on(node, service, name)
    assert owners(node) == {"hugeplan-agent:hugeplan-agent"}

    # The release before kept the token in /etc and ran as a dynamic user.
    node.shell(f"systemctl stop hugeplan-agent; cp -p {STATE}/token /etc/hugeplan/agent-token; rm -rf {STATE}")
    node.shell(f"mkdir -p /var/lib/private/hugeplan-agent/pending; ln -s private/hugeplan-agent {STATE}")
    node.shell("chown -R 61184:61184 /var/lib/private/hugeplan-agent; chmod 700 /var/lib/private")
    node.shell("rm /etc/hugeplan/enrolment-token")
    node.run("dpkg", "--force-confold", "-i", f"/root/hugeplan-agent_{OLD}_amd64.deb")
    node.run("systemctl", "start", "hugeplan-agent.service")
    goes_on(node, service, name)
    assert owners(node) == {"hugeplan-agent:hugeplan-agent"}
    assert node.call("ls", "/etc/hugeplan/agent-token").returncode != 0


def test_the_rpm_from_its_installation_to_its_end(node: Machine, service: Server) -> None:
    name = "rpm-node"
    if node.call("ls", f"/root/hugeplan-agent-{NEW}-1.x86_64.rpm").returncode:
        pytest.skip("SKIP: rpmbuild is not installed")
    rpm = ("rpm", "--nodeps")  # this tree's Python is Debian's and not in RPM's database
    node.run(*rpm, "-i", f"/root/hugeplan-agent-{OLD}-1.x86_64.rpm")
    node.shell(settings(service, name))
    node.shell(f"umask 077; echo {new_token(service)} > /root/enrolment")
    node.run("hugeplan-agent", "enrol", "--enrolment-token-file", "/root/enrolment")
    node.run("systemctl", "enable", "--now", "hugeplan-agent.service")
    goes_on(node, service, name)
    for words in (("-U",), ("-U", "--oldpackage")):
        before = pid(node)
        version = NEW if len(words) == 1 else OLD
        node.run(*rpm, *words, f"/root/hugeplan-agent-{version}-1.x86_64.rpm")
        node.until(lambda before=before: pid(node) not in {"0", before}, "the restart")  # type: ignore[misc]
        goes_on(node, service, name)
    kept = "/etc/hugeplan/server-secrets/hugeplan_database_url"
    node.shell(f"install -D /dev/null {kept}; install -D -t {DROP_INS} /usr/share/hugeplan-agent/count-walks.conf")
    (printed,) = re.findall(r"On RPM systems `([^`]+)`, then\s+`([^`]+)`", GUIDE.read_text())
    for line in printed:
        node.run("bash", "-ec", line)
    assert node.call("find", "/etc/hugeplan", STATE, DROP_INS, "-type", "f").stdout.split() == [kept]
    assert node.call("systemctl", "is-active", "hugeplan-agent").stdout.strip() == "inactive"
    assert node.call("ls", "/usr/bin/hugeplan-agent").returncode != 0


def test_lintian_finds_no_error(packages: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("SKIP: lintian is not installed")
    (deb,) = packages.glob(f"*_{NEW}_*.deb")
    words = ["lintian", "--fail-on", "error", "--allow-root", str(deb)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_child_that_no_signal_ends_holds_up_neither_a_stop_nor_a_start(node: Machine) -> None:
    """What a user makes of it is one process more, up to the number that a node has of them."""
    if not Path("/dev/fuse").exists():
        pytest.skip("SKIP: /dev/fuse is missing")
    shutil.copy(REPOSITORY / "agent/tests/serves_nothing.py", node.root / "opt")
    node.shell(
        f"dpkg --install /root/hugeplan-agent_{NEW}*.deb; mkdir {DROP_INS};"
        f" cp /usr/share/hugeplan-agent/read-databases.conf {DROP_INS}; mknod --mode 666 /opt/fuse c 10 229;"
        " printf 'HUGEPLAN_AGENT_SERVER=http://127.0.0.1:9\\nHUGEPLAN_AGENT_INTERVAL=1s\\n' > /etc/hugeplan/agent.env;"
        f" install --mode 600 --owner hugeplan-agent /dev/null {STATE}/token; echo token > {STATE}/token"
    )
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "--map-root-user", "--mount")
    words = [*node.entering(), *user, "python3", "/opt/serves_nothing.py", "files", "/opt/fuse", "120"]
    left = (
        """awk '/^Name:/ { name = $2 } /^ShdPnd:.*1..$/ && name == "hugeplan-look"' /proc/[0-9]*/status | wc --lines"""
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as held:
        assert held.stdout is not None
        try:
            if not held.stdout.readline():
                pytest.skip("SKIP: no such process can be made here")
            for number in ("1", "2"):
                node.run("systemctl", "start", "hugeplan-agent")
                node.until(lambda number=number: node.call("sh", "-c", left).stdout.strip() == number, "a child left")  # type: ignore[misc]
                began = time.monotonic()
                node.run("systemctl", "stop", "hugeplan-agent")
                assert time.monotonic() - began < 15
                shown = node.run("systemctl", "show", "--property=Result,ActiveState", "hugeplan-agent")
                assert set(shown.split()) == {"Result=success", "ActiveState=inactive"}
        finally:
            os.killpg(held.pid, signal.SIGKILL)
