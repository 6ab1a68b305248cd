"""The Helm chart: its schema refuses wrong values, and a real API server accepts what it renders."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rig.binaries import NotAvailableError, folder
from rig.control_plane import ApiError, ControlPlane

CHART = Path(__file__).resolve().parents[1] / "chart" / "hugeplan"
Json = dict[str, Any]

OPENID_PROVIDER: Json = {"ports": [{"port": 443}], "to": [{"ipBlock": {"cidr": "203.0.113.7/32"}}]}

#: Several versions of values: the defaults, a small one, and one with everything that needs no further definitions.
VALUES: dict[str, Json] = {
    "defaults": {},
    "external": {
        "server": {"replicas": 1, "podDisruptionBudget": {"enabled": False}, "env": {"HUGEPLAN_LOG_LEVEL": "info"}},
        "database": {"external": {"existingSecret": "my-database"}},
        "enrolment": {"existingSecret": "my-enrolment"},
        "agent": {"serverUrl": "https://hugeplan.example", "measure": "none"},
        "networkPolicy": {"enabled": False},
    },
    "everything": {
        "imagePullSecrets": [{"name": "registry"}],
        "image": {"server": {"digest": "sha256:" + "0" * 64}},
        "server": {
            "autoscaling": {"enabled": True, "maxReplicas": 4},
            "ingress": {"enabled": True, "className": "nginx", "host": "hugeplan.example", "tlsSecret": "tls"},
            "tolerations": [{"key": "infra", "operator": "Exists"}],
            "nodeSelector": {"pool": "infra"},
        },
        "agent": {"kubernetesApi": True, "hugepages": {"hugepages-2Mi": "64Mi"}, "measure": "full"},
        "networkPolicy": {"clients": [{"namespaceSelector": {"matchLabels": {"team": "db"}}}]},
        "monitoring": {"dashboard": {"enabled": True}},
    },
    "operated": {
        "fullnameOverride": "planning",
        "image": {"registry": "registry.example/hugeplan"},
        "backup": {"enabled": True, "schedule": "@daily", "keep": 3},
        "server": {
            "envFrom": [{"secretRef": {"name": "oidc"}}],
            "podAnnotations": {"team": "db"},
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        },
        "agent": {
            "envFrom": [{"configMapRef": {"name": "agents"}}],
            "podAnnotations": {"team": "db"},
            "countWalks": {"enabled": True},
        },
        "database": {"bundled": {"existingSecret": "database", "nodeSelector": {"pool": "infra"}}},
        "enrolment": {"existingSecret": "enrolment"},
        "networkPolicy": {"egress": [OPENID_PROVIDER]},
    },
    "service only": {"agent": {"enabled": False}, "database": {"bundled": {"storage": {"className": "fast"}}}},
}


def helm(*arguments: str, values: Json | None = None) -> subprocess.CompletedProcess[str]:
    """Run the rig's helm with values on standard input."""
    try:
        program = folder("helm") / "helm"
    except NotAvailableError as error:
        pytest.skip(str(error))
    given = ["--values", "-"] if values is not None else []
    return subprocess.run(
        [str(program), *arguments, *given], input=json.dumps(values or {}), capture_output=True, text=True, check=False
    )


def render(values: Json, namespace: str = "hugeplan") -> str:
    """The chart's objects as YAML."""
    done = helm("template", "demo", str(CHART), "-n", namespace, "--kube-version", "1.34.2", values=values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(values: Json) -> list[Json]:
    """The chart's objects."""
    return [one for one in yaml.safe_load_all(render(values)) if one]


def of_kind(objects: list[Json], kind: str) -> list[Json]:
    """The objects of one kind."""
    return [one for one in objects if one["kind"] == kind]


def test_helm_lint_has_nothing_to_say() -> None:
    done = helm("lint", "--strict", str(CHART), values={})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"server": {"replicas": "two"}}, "/server/replicas"),
        ({"server": {"replicas": 0}}, "/server/replicas"),
        ({"servers": {}}, "servers"),
        ({"agent": {"measure": "always"}}, "/agent/measure"),
        ({"agent": {"hugepages": {"hugepages-2MB": "64Mi"}}}, "/agent/hugepages"),
        ({"agent": {"countWalks": True}}, "/agent/countWalks"),
        ({"agent": {"countWalks": {"enabled": "yes"}}}, "/agent/countWalks/enabled"),
        ({"agent": {"serverUrl": "hugeplan.example"}}, "/agent/serverUrl"),
        ({"database": {"bundled": {"storage": {"size": "20 GB"}}}}, "/database/bundled/storage/size"),
        ({"database": {"bundled": {"enabled": False}}}, "give external.existingSecret"),
        ({"server": {"ingress": {"enabled": True}}}, "server.ingress.host is needed"),
    ],
)
def test_wrong_values_are_refused_by_name(values: Json, words: str) -> None:
    done = helm("template", "demo", str(CHART), "--kube-version", "1.34.2", values=values)
    assert done.returncode != 0
    assert words in done.stderr


@pytest.mark.parametrize("name", VALUES)
def test_a_real_api_server_accepts_it(control_plane: ControlPlane, name: str) -> None:
    namespace = f"chart-{name.replace(' ', '-')}"
    control_plane.kubectl("create", "namespace", namespace)
    text = render(VALUES[name], namespace)
    for _ in range(2):  # a second install changes nothing that cannot be changed
        out = control_plane.kubectl(
            "apply", "--server-side", "--validate=strict", "-n", namespace, "-f", "-", text=text
        )
    assert out.count("serverside-applied") == len([one for one in yaml.safe_load_all(text) if one])
    pods = control_plane.get(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
    assert [one["metadata"]["name"] for one in pods] == [f"{VALUES[name].get('fullnameOverride', 'demo')}-server"]


def test_a_restricted_namespace_takes_the_service_and_its_database(control_plane: ControlPlane) -> None:
    """Pod Security "restricted" is enforced by the API server itself; the agent mounts the host's /proc and /sys."""
    control_plane.kubectl("create", "namespace", "restricted")
    control_plane.kubectl("label", "namespace", "restricted", "pod-security.kubernetes.io/enforce=restricted")
    for one in rendered({}):
        if one["kind"] not in {"Deployment", "StatefulSet", "DaemonSet"}:
            continue
        spec = one["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec["spec"],
               "metadata": {"name": one["metadata"]["name"], "namespace": "restricted"}}  # fmt: skip
        for volume in (*spec["spec"].get("volumes", ()), *one["spec"].get("volumeClaimTemplates", ())):
            if "metadata" in volume:
                spec["spec"]["volumes"].append({"name": volume["metadata"]["name"], "emptyDir": {}})
        if one["kind"] == "DaemonSet":
            with pytest.raises(ApiError, match="hostPath"):
                control_plane.dry_run(json.dumps(pod))
        else:
            assert "dry run" in control_plane.dry_run(json.dumps(pod))


@pytest.mark.parametrize(("level", "is_taken"), [("baseline", False), ("privileged", True)])
def test_the_agent_needs_the_namespace_that_the_guide_labels(
    control_plane: ControlPlane, level: str, is_taken: bool
) -> None:
    """Its host paths alone: with them allowed nothing else of it is refused."""
    guide = (CHART.parents[3] / "docs/install-kubernetes.md").read_text()
    assert "kubectl label namespace hugeplan pod-security.kubernetes.io/enforce=privileged" in guide
    namespace = f"agents-{level}"
    control_plane.kubectl("create", "namespace", namespace)
    control_plane.kubectl("label", "namespace", namespace, f"pod-security.kubernetes.io/enforce={level}")
    (agent,) = of_kind(rendered({}), "DaemonSet")
    metadata = {"name": "agent", "namespace": namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": agent["spec"]["template"]["spec"], "metadata": metadata}
    if is_taken:
        assert "dry run" in control_plane.dry_run(json.dumps(pod))
        return
    with pytest.raises(ApiError) as refused:
        control_plane.dry_run(json.dumps(pod))
    assert re.search(r'"baseline:latest": hostPath volumes \([^)]*\)$', str(refused.value)), refused.value


def test_no_container_has_a_power_it_does_not_need() -> None:
    objects = rendered(VALUES["everything"])
    for one in objects:
        pod = one.get("spec", {}).get("template", {}).get("spec")
        if pod is None:
            continue
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
            }  # fmt: skip
            assert container["resources"]["limits"]["memory"]
        for volume in pod.get("volumes", ()):
            mounts = [m for c in pod["containers"] for m in c["volumeMounts"] if m["name"] == volume["name"]]
            assert "hostPath" not in volume or all(mount["readOnly"] for mount in mounts)


def test_counting_page_walks_takes_one_capability_and_only_where_it_is_wanted() -> None:
    (agent,) = of_kind(rendered({}), "DaemonSet")
    assert "PERFMON" not in str(agent)
    mine = {"type": "Localhost", "localhostProfile": "counting.json"}
    (agent,) = of_kind(rendered({"agent": {"countWalks": {"enabled": True, "seccompProfile": mine}}}), "DaemonSet")
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"] == {
        "runAsUser": 0, "runAsNonRoot": False, "seccompProfile": mine, "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        # What root needs to become the agent's user, which it does before anything else.
        "capabilities": {"drop": ["ALL"], "add": ["PERFMON", "SETGID", "SETPCAP", "SETUID"]},
    }  # fmt: skip
    probes = [container[f"{name}Probe"]["exec"]["command"] for name in ("startup", "liveness", "readiness")]
    for command in (container["command"], *probes):
        assert command[:3] == ["setpriv", "--reuid=10002", "--regid=10002"]
        assert command[command.index("--") + 1 :][:2] == ["python3", "-m"]
    # By this machine's own setpriv: what is left of root.
    given = ["setpriv", "--reuid=0", "--bounding-set=-all,+perfmon,+setgid,+setpcap,+setuid"]
    if os.geteuid() == 0 and shutil.which("setpriv"):
        prefix = container["command"][: container["command"].index("--") + 1]
        status = subprocess.run(
            [*given, "--", *prefix, "cat", "/proc/self/status"], capture_output=True, text=True, check=True
        ).stdout
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert f"{name}:\t0000004000000000\n" in status, status
        assert "Uid:\t10002\t10002\t10002\t10002\nGid:\t10002\t10002\t10002\t10002\n" in status


def test_the_agent_has_no_token_unless_it_reads_the_api() -> None:
    (agent,) = of_kind(rendered({}), "DaemonSet")
    assert agent["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    assert of_kind(rendered({}), "ClusterRole") == []


def test_the_right_to_nodes_proxy_is_given_only_where_it_is_accepted() -> None:
    (role,) = of_kind(rendered({"agent": {"kubernetesApi": True}}), "ClusterRole")
    assert "nodes/proxy" not in str(role)
    (role,) = of_kind(rendered({"agent": {"kubernetesApi": True, "kubeletConfiguration": True}}), "ClusterRole")
    assert {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]} in role["rules"]


def test_the_service_reaches_its_database_names_and_what_the_values_open() -> None:
    def egress(values: Json) -> list[Json]:
        policies = of_kind(rendered(values), "NetworkPolicy")
        (server,) = [one for one in policies if one["metadata"]["name"] == "demo-server"]
        assert server["spec"]["policyTypes"] == ["Ingress", "Egress"]
        found: list[Json] = server["spec"]["egress"]
        return found

    database, names = egress({})
    assert database["ports"] == [{"port": 5432}]
    (postgres,) = database["to"]
    assert postgres["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "postgres"
    assert names == {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
    assert egress({"networkPolicy": {"egress": [OPENID_PROVIDER]}}) == [database, names, OPENID_PROVIDER]


def test_the_password_differs_from_install_to_install() -> None:
    first, second = (
        next(one for one in of_kind(rendered({}), "Secret") if one["metadata"]["name"] == "demo-postgres")
        for _ in range(2)
    )
    assert first["stringData"]["password"] != second["stringData"]["password"]
    assert first["stringData"]["password"] in first["stringData"]["url"]


def test_a_render_without_a_cluster_changes_nothing_where_the_secrets_are_named() -> None:
    """GitOps renders again and again; `lookup` finds nothing there."""
    assert render(VALUES["operated"]) == render(VALUES["operated"])
    assert of_kind(rendered(VALUES["operated"]), "Secret") == []


def test_every_image_of_ours_comes_from_the_registry_that_is_named_once() -> None:
    text = render(VALUES["operated"])
    ours = {line.split()[-1] for line in text.splitlines() if "image:" in line and "postgres" not in line}
    assert ours == {f"registry.example/hugeplan/hugeplan-{name}:0.1.0" for name in ("server", "agent")}
    assert "demo-" not in text.replace("app.kubernetes.io/instance: demo", "")


def test_only_what_changes_tables_has_the_owners_credentials() -> None:
    """Migrations, backup and restore: the service's containers have a secret of another role."""
    objects = rendered({"backup": {"enabled": True}})
    urls = {
        one["metadata"]["name"]: one["stringData"]["url"] for one in of_kind(objects, "Secret")
        if "url" in one["stringData"]
    }  # fmt: skip
    assert set(urls) == {"demo-postgres", "demo-service"}
    assert urls["demo-postgres"].startswith("postgresql://hugeplan:")
    assert urls["demo-service"].startswith("postgresql://hugeplan_service:")

    def named(volume: Json) -> str:
        return str(volume["projected"]["sources"][0]["secret"]["name"])

    (server,) = of_kind(objects, "Deployment")
    pod = server["spec"]["template"]["spec"]
    volumes = {one["name"]: named(one) for one in pod["volumes"] if "projected" in one}
    assert volumes == {"owner": "demo-postgres", "secrets": "demo-service"}
    (migrate,), (serve,) = pod["initContainers"], pod["containers"]
    assert migrate["args"] == ["wait", "--role", "hugeplan_service", "migrate"]
    assert {one["name"] for one in migrate["volumeMounts"]} == {"tmp", "owner"}
    assert {one["name"] for one in serve["volumeMounts"]} == {"tmp", "secrets"}
    for job in of_kind(objects, "CronJob"):
        pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        assert [named(one) for one in pod["volumes"] if "projected" in one] == ["demo-postgres"]


@pytest.mark.parametrize(
    ("database", "service", "owner"),
    [
        # Secrets of the release before, by hand: the service acts as the owner, as it did.
        ({"bundled": {"existingSecret": "mine"}}, "mine", "mine"),
        ({"bundled": {"existingSecret": "mine", "existingServiceSecret": "less"}}, "less", "mine"),
        ({"external": {"existingSecret": "theirs"}}, "theirs", "theirs"),
        ({"external": {"existingSecret": "theirs", "ownerSecret": "more"}}, "theirs", "more"),
    ],
)
def test_secrets_of_ones_own_name_one_role_or_two(database: Json, service: str, owner: str) -> None:
    objects = rendered({"database": database})
    (server,) = of_kind(objects, "Deployment")
    pod = server["spec"]["template"]["spec"]
    sources = {
        one["name"]: one["projected"]["sources"][0]["secret"]["name"] for one in pod["volumes"] if "projected" in one
    }
    assert sources == {"owner": owner, "secrets": service}
    is_waiting = "--role" in pod["initContainers"][0]["args"]
    assert is_waiting == ("bundled" in database and owner != service)
    assert "demo-service" not in str(objects)


def test_a_backup_dumps_as_the_owner_and_keeps_the_newest() -> None:
    job, back = of_kind(rendered(VALUES["operated"]), "CronJob")
    assert (job["spec"]["suspend"], back["spec"]["suspend"]) == (False, True)
    (restored,) = back["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "hugeplan wait restore --replace " in restored
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (script,) = pod["containers"][0]["args"]
    assert "hugeplan wait backup" in script
    assert "head -n -3 " in script
    assert {"name": "owner", "mountPath": "/run/secrets/hugeplan", "readOnly": True} in pod["containers"][0][
        "volumeMounts"
    ]
    (claim,) = of_kind(rendered(VALUES["operated"]), "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    policies = of_kind(rendered({"backup": {"enabled": True}}), "NetworkPolicy")
    (postgres,) = [one for one in policies if one["metadata"]["name"] == "demo-postgres"]
    assert "'app.kubernetes.io/component': 'backup'" in str(postgres["spec"]["ingress"])


def test_alert_rules_are_ones_that_prometheus_takes(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    enabled = {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}
    (rule,) = of_kind(rendered({"monitoring": enabled}), "PrometheusRule")
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule["spec"]))
    done = subprocess.run(
        [promtool, "check", "rules", str(tmp_path / "rules.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rules = sum(len(group["rules"]) for group in rule["spec"]["groups"])
    assert f"SUCCESS: {rules} rules found" in done.stdout


@pytest.mark.parametrize("base", ["", "https://docs.example/hugeplan/"])
def test_every_alert_leads_to_its_runbook(base: str) -> None:
    enabled = {"prometheusRule": {"enabled": True, "runbookBaseUrl": base}}
    (rule,) = of_kind(rendered({"monitoring": enabled}), "PrometheusRule")
    page = (CHART.parents[3] / "docs/runbooks.md").read_text()
    headings = {line.removeprefix("## ").lower() for line in page.splitlines() if line.startswith("## ")}
    alerts = [one for group in rule["spec"]["groups"] for one in group["rules"]]
    assert {one["alert"].lower() for one in alerts} == headings
    for one in alerts:
        name, start = ("runbook_url", "https://docs.example/hugeplan/") if base else ("runbook", "docs/")
        assert one["annotations"][name] == f"{start}runbooks.md#{one['alert'].lower()}"


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    from hugeplan.api.metrics import Metrics  # noqa: PLC0415 - the service's own registry

    (config,) = (
        one for one in of_kind(rendered(VALUES["everything"]), "ConfigMap") if "dashboard" in one["metadata"]["name"]
    )
    dashboard = json.loads(config["data"]["hugeplan.json"])
    text = Metrics().render().decode()
    asked = {
        word.strip("()[]{}")
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for word in target["expr"].replace("(", " ").replace("[", " ").replace("{", " ").split()
        if word.startswith("hugeplan_")
    }
    assert asked
    for name in asked:
        assert f"\n# TYPE {name.removesuffix('_bucket').removesuffix('_total')} " in text.replace("_total ", " "), name
