"""``kubectl get -o json | hugeplan plan -`` on a real API server, with objects that operators' definitions accept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.kubernetes_objects import container, node, pod, postgres
from support.operator_samples import SAMPLES, Sample

from rig.control_plane import ApiError, ControlPlane

Json = dict[str, Any]

SHARED = Path(os.environ.get("HUGEPLAN_SHARED") or Path(__file__).parents[4] / "shared") / "crds"
DEFINED = [sample for sample in SAMPLES if sample.definition is not None]
#: What the API server fills in itself.
OF_THE_SERVER = ("creationTimestamp", "uid", "resourceVersion")


def create_node(cluster: ControlPlane, one: Json) -> None:
    """A node with its status, as a kubelet reports it."""
    metadata = {key: value for key, value in one["metadata"].items() if key not in OF_THE_SERVER}
    cluster.create("/api/v1/nodes", {**one, "metadata": metadata, "status": {}})
    cluster.set_status(f"/api/v1/nodes/{metadata['name']}", one["status"])


def create_pod(cluster: ControlPlane, one: Json) -> None:
    """A pod on its node, running. The volume of its token needs no server's help."""
    metadata = {key: value for key, value in one["metadata"].items() if key not in OF_THE_SERVER}
    for owner in metadata.get("ownerReferences", ()):
        owner["uid"] = "00000000-0000-0000-0000-000000000001"
    spec = {key: value for key, value in one["spec"].items() if key not in {"priority", "serviceAccountName"}}
    spec["volumes"] = [volume for volume in spec["volumes"] if "projected" not in volume]
    namespace = metadata["namespace"]
    cluster.create(f"/api/v1/namespaces/{namespace}/pods", {**one, "metadata": metadata, "spec": spec, "status": {}})
    cluster.set_status(f"/api/v1/namespaces/{namespace}/pods/{metadata['name']}", {"phase": "Running"})


def hugeplan_plan(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``hugeplan plan -`` with ``text`` on standard input."""
    return subprocess.run(
        [sys.executable, "-m", "hugeplan.cli", "plan", "-", *arguments],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip


def definition(name: str) -> str:
    """A file of published custom resource definitions."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here: published definitions are not part of the repository")
    return path.read_text()


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> ControlPlane:
    """An API server with the operators' definitions, a node, and the namespace of the samples."""
    for name in sorted({sample.definition for sample in DEFINED if sample.definition}):
        control_plane.install_definitions(definition(name))
    control_plane.kubectl("create", "namespace", "db")
    create_node(control_plane, node("worker-1", pools={"2Mi": "20Gi", "1Gi": "0"}))
    return control_plane


@pytest.mark.parametrize("sample", DEFINED, ids=lambda one: one.operator)
def test_the_resource_is_accepted_and_its_cluster_recognised(cluster: ControlPlane, sample: Sample) -> None:
    kind = sample.resource["kind"].lower()
    group = sample.resource["apiVersion"].partition("/")[0]
    cluster.apply(json.dumps(sample.resource))
    create_pod(cluster, sample.pod)
    try:
        text = cluster.kubectl("get", f"nodes,pods,pvc,configmaps,{kind}s.{group}", "-A", "-o", "json")
        done = hugeplan_plan(text, "--json")
        assert done.stderr == ""
        document = json.loads(done.stdout)
    finally:
        cluster.kubectl("delete", f"{kind}s.{group}", "-n", "db", "--all")
        cluster.kubectl("delete", "pods", "-n", "db", "--all", "--grace-period=0", "--force")
    (worker,) = [one for one in document["nodes"] if one["name"] == "worker-1"]
    (found,) = worker["databases"]
    assert (found["operator"], found["engine"], found["version"]) == (sample.operator, sample.engine, sample.version)
    assert sample.resource["metadata"]["name"] in found["source"]
    taken = found["settings"]
    assert taken
    assert {name: sample.settings[name] for name in taken} == taken
    assert document["notes"] == []


def test_an_operators_resource_with_a_wrong_field_is_refused(cluster: ControlPlane) -> None:
    """Else the tests above would prove nothing."""
    wrong = json.loads(json.dumps(DEFINED[0].resource))
    wrong["spec"]["postgresql"]["parametres"] = {}
    with pytest.raises(ApiError, match="parametres"):
        cluster.dry_run(json.dumps(wrong))


def test_findings_of_a_cluster_as_the_server_stores_it(cluster: ControlPlane) -> None:
    create_node(cluster, node("small", pools={"2Mi": "1Gi", "1Gi": "0"}))
    cluster.kubectl("create", "namespace", "plain")
    limits = {"memory": "4Gi", "hugepages-2Mi": "1Gi"}
    create_pod(cluster, postgres("short-0", "small", {"shared_buffers": "1GB"}, namespace="plain", limits=limits))
    create_pod(cluster, postgres("none-0", "small", {"shared_buffers": "512MB"}, namespace="plain"))
    create_pod(cluster, pod("app", "small", container(limits={"memory": "1Gi"}), namespace="plain"))
    text = cluster.kubectl("get", "nodes,pods,pvc", "-A", "-o", "json")
    done = hugeplan_plan(text)
    assert done.returncode == 5
    nodes = json.loads(hugeplan_plan(text, "--json").stdout)["nodes"]
    said = {
        finding["subject"]: finding["title"]
        for one in nodes
        for finding in one["findings"]
        if (finding["code"], finding["state"]) == ("pod_limit_below_segment", "wrong")
    }
    assert set(said) == {"plain/short-0", "plain/none-0"}
    assert "its limit allows 512" in said["plain/short-0"]
    assert said["plain/none-0"] == "It may use none of the node's huge pages"
    assert "reserved pages of 2M cannot be used by any pod" in done.stdout


def test_raw_lists_of_the_api_say_the_same_as_kubectl(cluster: ControlPlane) -> None:
    raw = "".join(cluster.kubectl("get", "--raw", f"/api/v1/{kind}") for kind in ("nodes", "pods"))
    from_kubectl = json.loads(hugeplan_plan(cluster.kubectl("get", "nodes,pods", "-A", "-o", "json"), "--json").stdout)
    assert json.loads(hugeplan_plan(raw, "--json").stdout)["nodes"] == from_kubectl["nodes"]
