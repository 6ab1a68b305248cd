"""The rig itself: what stands behind every other test here must be a real Kubernetes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hugeplan_agent.pool_reservation import ReservationError, reservation
from rig.control_plane import ApiError, ControlPlane

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "only-pages", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"hugepages-2Mi": "4Mi"}}}]},
}


def test_the_server_is_kubernetes_1_34(control_plane: ControlPlane) -> None:
    assert control_plane.get("/version")["gitVersion"] == "v1.34.2"


def test_it_validates_as_production_does(control_plane: ControlPlane) -> None:
    with pytest.raises(ApiError, match="HugePages require cpu or memory") as refused:
        control_plane.create("/api/v1/namespaces/default/pods", POD)
    assert refused.value.status == 422


def test_a_dry_run_stores_nothing_and_refuses_unknown_fields(control_plane: ControlPlane) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dry", "namespace": "default"}}
    assert "serverside-applied (server dry run)" in control_plane.dry_run(json.dumps({**manifest, "data": {"a": "b"}}))
    with pytest.raises(ApiError, match="not found"):
        control_plane.kubectl("get", "configmap", "dry", "-n", "default")
    with pytest.raises(ApiError, match="dataa"):
        control_plane.dry_run(json.dumps({**manifest, "dataa": {}}))


def test_a_service_account_gets_what_its_role_says_and_no_more(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "namespace", "rig-rbac")
    control_plane.kubectl("create", "serviceaccount", "reader", "-n", "rig-rbac")
    control_plane.kubectl("create", "role", "pods", "--verb=list", "--resource=pods", "-n", "rig-rbac")
    control_plane.kubectl(
        "create", "rolebinding", "reader", "--role=pods", "--serviceaccount=rig-rbac:reader", "-n", "rig-rbac"
    )
    token = control_plane.service_account_token("rig-rbac", "reader")
    assert control_plane.get("/api/v1/namespaces/rig-rbac/pods", token=token)["kind"] == "PodList"
    with pytest.raises(ApiError) as refused:
        control_plane.get("/api/v1/nodes", token=token)
    assert refused.value.status == 403


def test_a_killed_api_server_comes_back_with_its_data(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "namespace", "rig-kept")
    assert control_plane.api is not None
    control_plane.api.kill()
    assert not control_plane.ready()
    control_plane.start_api()
    assert control_plane.get("/api/v1/namespaces/rig-kept")["metadata"]["name"] == "rig-kept"


HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from rig import hugetlb
with hugetlb.controller():
    print("mounted", flush=True)
    input()
"""


@pytest.mark.parametrize("end", ["in order", "killed"])
def test_the_hugetlb_controller_is_given_back_however_a_run_ends(end: str) -> None:
    place = Path("/sys/fs/cgroup/hugetlb")
    try:
        with reservation():  # others that mount it hold this
            if Path("/sys/fs/cgroup/cgroup.controllers").exists() or place.is_mount():
                pytest.skip("SKIP: the machine has its hugetlb controller mounted by itself")
            here = str(Path(__file__).resolve().parents[1])
            holder = subprocess.Popen(
                [sys.executable, "-c", HOLDER, here], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert holder.stdout is not None
            if holder.stdout.readline() != "mounted\n":
                pytest.skip("SKIP: the hugetlb controller cannot be mounted here")
            (place / "kubepods-of-a-test/inner").mkdir(parents=True)
            if end == "killed":
                holder.kill()
            holder.communicate("\n" if end == "in order" else None)
            deadline = time.monotonic() + 20
            while place.exists():
                assert time.monotonic() < deadline, "it is still there"
                time.sleep(0.05)
    except ReservationError as error:
        pytest.skip(f"SKIP: {error}")
