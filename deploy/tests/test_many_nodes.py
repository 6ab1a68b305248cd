"""What 500 machines are installed with: the playbook and the cloud-init file, run for real on a Debian with systemd.

Ansible comes by ssh on loopback; cloud-init runs its own modules. The only changes are the three lines that are the
reader's: where the package is, the server, the token.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.server import Server, free_port
from test_agent_packages import NEW, call, new_token, packages, reported, service

from nspawn_rig import Machine, NotAvailableError, machine

__all__ = ["packages", "service"]

NODES = Path(__file__).resolve().parents[1] / "nodes"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Machine]:
    try:
        with machine(tmp_path, {}) as booted:
            yield booted
    except NotAvailableError as error:
        pytest.skip(f"SKIP: {error}")


def reachable(node: Machine, folder: Path) -> int:
    """Start an ssh server on loopback that takes the key ``folder/key``; its port."""
    for program in ("ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            pytest.skip(f"SKIP: {program} is not installed")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    port = free_port()
    node.shell("mkdir -p /run/sshd /root/.ssh; chmod 700 /root/.ssh")
    node.shell(f"echo '{(folder / 'key.pub').read_text().strip()}' > /root/.ssh/authorized_keys")
    node.run("systemd-run", "/usr/sbin/sshd", "-D", "-p", str(port), "-o", "ListenAddress=127.0.0.1")
    node.until(lambda: node.call("sh", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}").returncode is not None, "sshd")
    return port


def test_the_playbook_installs_enrols_and_changes_nothing_the_second_time(
    node: Machine, service: Server, packages: Path, tmp_path: Path
) -> None:
    if shutil.which("ansible-playbook") is None:
        pytest.skip("SKIP: ansible-playbook is not installed (Debian: ansible-core)")
    port = reachable(node, tmp_path)
    dist = tmp_path / "dist"
    dist.mkdir()
    shutil.copy(packages / f"hugeplan-agent_{NEW}_amd64.deb", dist)
    inventory = tmp_path / "nodes.ini"
    inventory.write_text(f"db-1 ansible_host=127.0.0.1 ansible_port={port} ansible_user=root\n")
    words = [
        "ansible-playbook", "--inventory", str(inventory), "--private-key", str(tmp_path / "key"),
        str(NODES / "agents.yml"), "--extra-vars", f"hugeplan_server={service.url}",
        "--extra-vars", f"hugeplan_packages={dist}",
        "--extra-vars", '{"hugeplan_settings": {"node_name": "db-1", "interval": "1s"}}',
    ]  # fmt: skip
    token = call(
        service, "POST", "/tokens",
        {"name": "n", "role": "enrolment", "limits": {"max_enrolments": 1, "name_pattern": "db-*"}},
    )["token"]  # fmt: skip
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "ANSIBLE_HOST_KEY_CHECKING": "False",
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "ansible"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(tmp_path / "cp"),
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=no",
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
        "HUGEPLAN_ENROLMENT_TOKEN": token,
    }
    for is_first in (True, False):
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=400)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        assert token not in done.stdout
        assert ("changed=0" in done.stdout) is not is_first, done.stdout[-500:]
    assert reported(service, "db-1") is not None
    assert node.call("ls", "/etc/hugeplan/enrolment-token").returncode != 0
    # Without the server's address it says what to give, before it changes anything.
    lost = [word for word in words if not word.startswith("hugeplan_server=")]
    lost.remove("--extra-vars")
    done = subprocess.run(lost, env=environment, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode != 0
    assert "give --extra-vars hugeplan_server=https://HOST" in done.stdout


def test_the_cloud_init_file_installs_and_enrols(node: Machine, service: Server, packages: Path) -> None:
    if node.call("sh", "-c", "command -v cloud-init").returncode:
        pytest.skip("SKIP: the tree has no cloud-init")
    text = (NODES / "cloud-init.yaml").read_text()
    shutil.copy(packages / f"hugeplan-agent_{NEW}_amd64.deb", node.root / "root/agent.deb")
    mine = {
        "https://packages.example/hugeplan-agent_0.1.0_amd64.deb": "file:///root/agent.deb",
        "HUGEPLAN_AGENT_SERVER=https://hugeplan.example": (
            f"HUGEPLAN_AGENT_SERVER={service.url}\n      HUGEPLAN_AGENT_NODE_NAME=cloud-1"
        ),
        "ENROLMENT-TOKEN": new_token(service),
    }
    for theirs, ours in mine.items():
        assert text.count(theirs) == 1, theirs
        text = text.replace(theirs, ours)
    assert text.startswith("#cloud-config\n")
    assert set(yaml.safe_load(text)) == {"write_files", "runcmd"}
    seed = node.root / "var/lib/cloud/seed/nocloud"
    seed.mkdir(parents=True)
    (seed / "user-data").write_text(text)
    (seed / "meta-data").write_text("instance-id: i-1\nlocal-hostname: cloud-1\n")
    node.shell("printf 'datasource_list: [NoCloud]\\n' > /etc/cloud/cloud.cfg.d/99-test.cfg")
    node.run("cloud-init", "schema", "--config-file", "/var/lib/cloud/seed/nocloud/user-data")
    node.run("cloud-init", "init", "--local")
    node.run("cloud-init", "init")
    node.run("cloud-init", "single", "--name", "write_files", "--frequency", "always")
    node.run("cloud-init", "single", "--name", "runcmd", "--frequency", "always")
    node.run("cloud-init", "single", "--name", "scripts_user", "--frequency", "always")
    node.until(lambda: reported(service, "cloud-1"), "a report")
    assert node.call("ls", "/etc/hugeplan/enrolment-token").returncode != 0
