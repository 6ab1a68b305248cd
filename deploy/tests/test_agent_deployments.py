"""The agent's systemd units and DaemonSet: their commands and variables are ones the agent knows."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hugeplan_agent.cli import parser
from hugeplan_agent.config import Config, resolve

DEPLOY = Path(__file__).resolve().parents[2] / "agent/deploy"
SERVICES = ("hugeplan-agent.service", "hugeplan-agent-measure.service")


class Unit(configparser.RawConfigParser):
    """A systemd unit; its keys keep their case."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def read_unit(name: str) -> Unit:
    unit = Unit(strict=False)
    unit.read_string((DEPLOY / name).read_text())
    return unit


def config_of(arguments: list[str], environment: dict[str, str]) -> Config:
    return resolve(vars(parser().parse_args(arguments)), environment)


@pytest.mark.parametrize("name", SERVICES)
def test_the_command_of_a_service_is_valid(name: str) -> None:
    service = read_unit(name)["Service"]
    command = service["ExecStart"]
    command = command.replace("${STATE_DIRECTORY}", "/run/state")
    program, *arguments = shlex.split(command)
    assert program == "/usr/bin/hugeplan-agent"
    config = config_of(arguments, {"HUGEPLAN_AGENT_SERVER": "https://hugeplan.example"})
    assert str(config.token_file) == "/run/state/token", "read before each pass: a credential is a copy made at start"
    assert config.measure == ("none" if name == SERVICES[0] else "quick")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_power_it_does_not_need(name: str) -> None:
    service = read_unit(name)["Service"]
    assert service["User"] == service["Group"] == "hugeplan-agent"
    assert service["CapabilityBoundingSet"] == ""
    assert service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"


def test_a_drop_in_adds_no_more_than_it_says() -> None:
    """They add up, and none is in force as installed."""
    powers = {"count-walks.conf": {"CAP_PERFMON"}, "read-databases.conf": {"CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"}}
    assert {path.name for path in DEPLOY.glob("*.conf")} == set(powers)
    for name, capabilities in powers.items():
        service = read_unit(name)["Service"]
        assert set(service["AmbientCapabilities"].split()) == set(service["CapabilityBoundingSet"].split())
        assert set(service["AmbientCapabilities"].split()) == capabilities
        assert set(service) <= {"AmbientCapabilities", "CapabilityBoundingSet", "PrivateUsers", "SystemCallFilter"}
    assert "CAP_" not in (DEPLOY / "hugeplan-agent.service").read_text()


def test_both_services_share_the_spool() -> None:
    first, second = (read_unit(name)["Service"] for name in SERVICES)
    assert [first[key] for key in ("User", "StateDirectory")] == [second[key] for key in ("User", "StateDirectory")]


def test_the_timer_starts_the_measurement_by_its_name() -> None:
    assert (DEPLOY / "hugeplan-agent-measure.timer").exists()
    timer = read_unit("hugeplan-agent-measure.timer")
    assert "Unit" not in timer["Timer"], "without Unit= a timer starts the service of its own name"
    assert timer["Timer"]["OnUnitInactiveSec"] == "1h"
    assert "--when-due" in read_unit(SERVICES[1])["Service"]["ExecStart"], "else it would measure every hour"


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    folder = tmp_path / "hugeplan-agent.service.d"
    folder.mkdir()
    for path in DEPLOY.glob("*.conf"):
        shutil.copy(path, folder)
    for path in DEPLOY.glob("hugeplan-agent*"):
        # The program is not installed here; everything else is checked as it stands.
        text = path.read_text().replace("/usr/bin/hugeplan-agent", "/bin/true")
        (tmp_path / path.name).write_text(text)
    units = sorted(str(path) for path in tmp_path.iterdir() if path.is_file())
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_the_exposure_of_a_service_is_low(name: str) -> None:
    """systemd's own score: 0 is fully confined, 10 is unconfined. What is left is the network and reading /proc."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    words = ["systemd-analyze", "security", "--offline=yes", "--threshold=15", str(DEPLOY / name)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def manifests() -> dict[str, Any]:
    documents = list(yaml.safe_load_all((DEPLOY / "daemonset.yaml").read_text()))
    assert [document["kind"] for document in documents] == ["Namespace", "ServiceAccount", "DaemonSet"]
    return {document["kind"]: document for document in documents}


def test_the_daemonset_selects_its_own_pods(manifests: dict[str, Any]) -> None:
    spec = manifests["DaemonSet"]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert spec["template"]["spec"]["serviceAccountName"] == manifests["ServiceAccount"]["metadata"]["name"]


def test_the_daemonsets_command_and_variables_are_valid(manifests: dict[str, Any]) -> None:
    (container,) = manifests["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    environment = {variable["name"]: variable.get("value", "x" * 40) for variable in container["env"]}
    config = config_of(container["args"], environment)
    assert config.server == "http://hugeplan.hugeplan.svc:8000"
    assert config.node_name == "x" * 40
    assert str(config.root) == "/host"
    assert str(config.enrolment_token_file) == "/run/secrets/hugeplan/token"
    assert config.enrolment_token is None, "a variable shows in more places than a file"


def test_the_daemonset_is_probed(manifests: dict[str, Any]) -> None:
    (container,) = manifests["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    for probe, what in (("startupProbe", "live"), ("livenessProbe", "live"), ("readinessProbe", "ready")):
        assert container[probe]["exec"]["command"] == ["python3", "-m", "hugeplan_agent.health", what]


def test_the_agents_namespace_says_which_pod_security_it_needs(manifests: dict[str, Any]) -> None:
    assert manifests["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_the_daemonset_mounts_the_host_read_only_and_runs_without_power(manifests: dict[str, Any]) -> None:
    pod = manifests["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for mount in container["volumeMounts"]:
        if "hostPath" in volumes[mount["name"]]:
            assert mount["readOnly"] is True
            assert mount["mountPath"] == f"/host{volumes[mount['name']]['hostPath']['path']}"
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
