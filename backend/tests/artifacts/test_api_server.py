"""Rendered Kubernetes objects on a real API server, with the operators' published definitions installed there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from artifacts.samples import OBJECTS, in_stateful_set, operated, rendered, request_of
from conftest import REPOSITORY
from rig.binaries import NotAvailableError
from rig.control_plane import ControlPlane

from hugeplan.planner.model import GIB

_SHARED = Path(os.environ.get("HUGEPLAN_SHARED", REPOSITORY.parent / "shared"))

_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
#: An object of each kind that stands there before: what its definition requires and a plan does not hold.
STANDING: dict[str, dict[str, Any]] = {
    "cloudnative_pg": {
        "apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "postgresql"},
        "spec": {"instances": 1, "storage": {"size": "1Gi"}},
    },
    "crunchy_cluster": {
        "apiVersion": "postgres-operator.crunchydata.com/v1beta1", "kind": "PostgresCluster",
        "metadata": {"name": "postgresql"},
        "spec": {
            "postgresVersion": 17,
            "instances": [{"name": "one", "dataVolumeClaimSpec": _CLAIM}],
        },
    },
    "percona_postgresql_cluster": {
        "apiVersion": "pgv2.percona.com/v2", "kind": "PerconaPGCluster", "metadata": {"name": "postgresql"},
        "spec": {
            "crVersion": "2.5.0", "postgresVersion": 17,
            "instances": [{"name": "one", "dataVolumeClaimSpec": _CLAIM}],
            "backups": {"pgbackrest": {"repos": [{"name": "repo1", "volume": {"volumeClaimSpec": _CLAIM}}]}},
            "proxy": {"pgBouncer": {"replicas": 1, "image": "pgbouncer"}},
        },
    },
    "zalando_postgresql": {
        "apiVersion": "acid.zalan.do/v1", "kind": "postgresql", "metadata": {"name": "postgresql"},
        "spec": {"teamId": "acid", "numberOfInstances": 1, "volume": {"size": "1Gi"}, "postgresql": {"version": "17"}},
    },
    "mariadb_operator": {
        "apiVersion": "k8s.mariadb.com/v1alpha1", "kind": "MariaDB", "metadata": {"name": "mariadb"},
        "spec": {"storage": {"size": "1Gi"}},
    },
    "performance_profile": {
        "apiVersion": "performance.openshift.io/v2", "kind": "PerformanceProfile",
        "metadata": {"name": "hugeplan-db-7"},
        "spec": {"cpu": {"isolated": "1-3", "reserved": "0"}, "nodeSelector": {"node-role.kubernetes.io/db": ""}},
    },
}  # fmt: skip
_STATEFUL_SET = {
    "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "postgresql"},
    "spec": {
        "serviceName": "postgresql", "selector": {"matchLabels": {"app": "pg"}},
        "template": {
            "metadata": {"labels": {"app": "pg"}},
            "spec": {"containers": [
                {"name": "exporter", "image": "x"}, {"name": "postgresql", "image": "postgres:17"},
            ]},
        },
    },
}  # fmt: skip
#: What the fields of a patch had before, and what somebody else changes between the install and the way back.
_OLD = {"limits": {"cpu": "1", "memory": "20Gi"}, "requests": {"memory": "1073741824"}}
_NEW = {"limits": {"cpu": "2"}}
BEFORE: dict[str, dict[str, Any]] = {
    "cloudnative_pg": {"resources": _OLD, "postgresql": {"parameters": {"huge_pages": "off", "work_mem": "4MB"}}},
    "crunchy_cluster": {"instances": [{"name": "one", "resources": _OLD, "dataVolumeClaimSpec": _CLAIM}]},
    "percona_postgresql_cluster": {
        "patroni": {
            "dynamicConfiguration": {"postgresql": {"parameters": {"huge_pages": False, "shared_buffers": 2000000}}}
        },
    },
    "mariadb_operator": {"resources": _OLD},
    "performance_profile": {
        "hugepages": {
            "defaultHugepagesSize": "1G",
            "pages": [
                {"size": "1G", "count": 4, "node": 1},
                {"size": "2M", "count": 2000000},
            ],
        }
    },
    "statefulset_patch": {
        "template": {
            "metadata": {"labels": {"app": "pg"}},
            "spec": {
                "containers": [
                    {"name": "exporter", "image": "x"},
                    {"name": "postgresql", "image": "postgres:17", "resources": _OLD},
                ]
            },
        }
    },
}
CHANGED_SINCE: dict[str, dict[str, Any]] = {
    "cloudnative_pg": {"instances": 3, "resources": _NEW, "postgresql": {"parameters": {"work_mem": "8MB"}}},
    "percona_postgresql_cluster": {"postgresVersion": 18},
    "zalando_postgresql": {"numberOfInstances": 3},
    "mariadb_operator": {"replicas": 3, "resources": _NEW},
    "statefulset_patch": {"replicas": 3, "template": {"spec": {
        "containers": [{"name": "postgresql", "image": "postgres:18", "resources": _NEW}],
    }}},
}  # fmt: skip
FROM_NOTHING = ("node_feature_rule", "karpenter_node_overlay", "openshift_tuned", "aks_daemonset")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with the definitions, and the namespace of OpenShift's Tuned objects.

    It ends with this module: idle, it takes a tenth of a core.
    """
    folder = _SHARED / "crds"
    if not folder.is_dir():
        pytest.skip("no ../shared/crds and HUGEPLAN_SHARED is not set: no published definitions")
    try:
        control_plane = ControlPlane(tmp_path_factory.mktemp("control-plane"))
    except NotAvailableError as error:
        pytest.skip(str(error))
    with control_plane:
        for path in sorted(folder.glob("*.yaml")):
            done = kubectl(control_plane, "create", "-f", str(path))
            assert done.returncode == 0, done.stderr
        kubectl(control_plane, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        for namespace in ("openshift-cluster-node-tuning-operator", "hugeplan"):
            assert kubectl(control_plane, "create", "namespace", namespace).returncode == 0
        yield control_plane


def kubectl(cluster: ControlPlane, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(cluster.programs / "kubectl"), "--kubeconfig", str(cluster.kubeconfig), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, input=text)


def dry_run(cluster: ControlPlane, text: str) -> subprocess.CompletedProcess[str]:
    words = ("apply", "--server-side", "--force-conflicts", "--field-manager=hugeplan", "--dry-run=server",
             "--validate=strict", "-n", "hugeplan", "-o", "yaml", "-f", "-")  # fmt: skip
    done = kubectl(cluster, *words, text=text)
    if "namespace" in done.stderr and "does not match" in done.stderr:
        done = kubectl(cluster, *(w for w in words if w not in {"-n", "hugeplan"}), text=text)
    return done


def files() -> dict[str, Any]:
    found = rendered(in_stateful_set(request_of("postgresql", kubernetes=True, kube_reserved_bytes=GIB)))[1]
    return found | {kind: rendered(operated(kind))[1][kind] for kind in OBJECTS}


@pytest.mark.parametrize("kind", FROM_NOTHING)
def test_the_api_server_takes_the_object(cluster: ControlPlane, kind: str) -> None:
    text = files()[kind].content
    done = dry_run(cluster, text)
    if done.returncode and "privileged: Forbidden: disallowed by cluster policy" in done.stderr:
        # This API server runs without --allow-privileged; all else of the object is checked.
        done = dry_run(cluster, text.replace("privileged: true", "privileged: false"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", STANDING)
def test_the_patch_fits_a_standing_object(cluster: ControlPlane, kind: str) -> None:
    created = kubectl(cluster, "create", "-n", "hugeplan", "-f", "-", text=yaml.safe_dump(STANDING[kind]))
    assert created.returncode == 0, created.stderr
    content = files()[kind].content
    done = dry_run(cluster, content)
    assert done.returncode == 0, done.stderr
    merged, wanted = yaml.safe_load(done.stdout), yaml.safe_load(content)
    assert _holds(merged["spec"], wanted["spec"]), (merged["spec"], wanted["spec"])
    assert _holds(
        merged["spec"], {k: v for k, v in STANDING[kind]["spec"].items() if k not in {"instances", "postgresql"}}
    )


def _holds(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and _holds(whole[k], v) for k, v in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(_holds(w, p) for w, p in zip(whole, part, strict=True))
    return whole == part


def test_the_statefulset_patch_is_merged(cluster: ControlPlane) -> None:
    text = yaml.safe_dump(_STATEFUL_SET)
    assert kubectl(cluster, "apply", "-n", "hugeplan", "-f", "-", text=text).returncode == 0
    patch = files()["statefulset_patch"].content
    done = kubectl(cluster, "patch", "statefulset", "postgresql", "-n", "hugeplan", "--type", "strategic",
                   "--dry-run=server", "-o", "yaml", "--patch", patch)  # fmt: skip
    assert done.returncode == 0, done.stderr
    containers = yaml.safe_load(done.stdout)["spec"]["template"]["spec"]["containers"]
    by_name = {c["name"]: c for c in containers}
    assert set(by_name) == {"exporter", "postgresql"}
    assert "hugepages-2Mi" in by_name["postgresql"]["resources"]["limits"]
    assert by_name["postgresql"]["image"] == "postgres:17"


def test_a_pod_with_the_resources_is_valid(cluster: ControlPlane) -> None:
    resources = yaml.safe_load(files()["pod"].content)["resources"]
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db"},
        "spec": {"containers": [{"name": "db", "image": "postgres:17", "resources": resources}]},
    }  # fmt: skip
    done = dry_run(cluster, yaml.safe_dump(pod))
    assert done.returncode == 0, done.stderr
    # The same server refuses what the linter calls wrong, so its yes means something.
    del pod["spec"]["containers"][0]["resources"]["requests"]["memory"]
    assert "HugePages require cpu or memory" in dry_run(cluster, yaml.safe_dump(pod)).stderr


def test_the_node_label_sticks_and_is_verified(cluster: ControlPlane) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "db-7"}}
    assert kubectl(cluster, "create", "-f", "-", text=yaml.safe_dump(node)).returncode == 0
    artifact = files()["node_label"]
    environment = {
        **os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{cluster.programs}:{os.environ['PATH']}",
    }  # fmt: skip

    def shell(text: str) -> int:
        return subprocess.run(["/bin/sh", "-c", text], env=environment, check=False, capture_output=True).returncode

    assert shell(artifact.verify) != 0
    assert shell(artifact.content) == 0
    assert shell(artifact.verify) == 0
    assert shell(artifact.rollback) == 0
    assert shell(artifact.verify) != 0


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_commands_of_a_patch_make_no_object(cluster: ControlPlane, kind: str, tmp_path: Path) -> None:
    """Server-side apply makes what is not there: a second cluster of the name that a plan had guessed."""
    request = operated(kind)
    target = replace(OBJECTS[kind], name="absent")
    request = replace(request, databases=(replace(request.databases[0], operator_object=target),))
    artifact = rendered(request)[1][kind]
    step = tmp_path / "1-step"
    step.mkdir()
    (step / artifact.filename).write_text(artifact.content)
    environment = {
        **os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{cluster.programs}:{os.environ['PATH']}",
    }  # fmt: skip
    words = ["/bin/sh", "-c", artifact.install]
    done = subprocess.run(words, env=environment, cwd=step, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert '"absent" not found' in done.stderr
    left = kubectl(cluster, "get", f"{target.kind}.{target.group}", "-n", "hugeplan", "-o", "name")
    assert "absent" not in left.stdout


def test_the_form_of_an_unknown_owner_is_refused(cluster: ControlPlane) -> None:
    """Its placeholders are no names of Kubernetes, whatever StatefulSet it is tried on."""
    labels = {"app": "form"}
    standing = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "form"},
        "spec": {
            "serviceName": "form", "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "postgres:17"}]},
            },
        },
    }  # fmt: skip
    assert kubectl(cluster, "create", "-n", "hugeplan", "-f", "-", text=yaml.safe_dump(standing)).returncode == 0
    form = rendered(request_of("postgresql", kubernetes=True))[1]["statefulset_snippet"].content
    tried = kubectl(cluster, "patch", "statefulset", "form", "-n", "hugeplan", "--type", "strategic", "--patch", form)
    assert tried.returncode != 0
    assert "CONTAINER_NAME" in tried.stderr
    assert kubectl(cluster, "apply", "--server-side", "-n", "hugeplan", "-f", "-", text=form).returncode != 0


def _merged(whole: Any, part: Any) -> Any:
    """``whole`` with ``part`` in it; items of lists go by their names."""
    if isinstance(part, dict):
        return {**whole, **{key: _merged(whole.get(key, {}), value) for key, value in part.items()}}
    if isinstance(part, list):
        by_name = {one["name"]: one for one in part}
        return [_merged(one, by_name.get(one["name"], {})) for one in whole]
    return part


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("kind", [*STANDING, "statefulset_patch"])
def test_the_way_back_after_two_installs(cluster: ControlPlane, kind: str, tmp_path: Path, *, prior: bool) -> None:
    """What the fields of the patch had before the first install comes back; all that was changed since stays."""
    artifact, standing = files()[kind], STANDING.get(kind, _STATEFUL_SET)
    if prior:
        standing = {**standing, "spec": {**standing["spec"], **BEFORE.get(kind, {})}}
    steps = [tmp_path / "1-step", tmp_path / "2-the-same-in-the-next-plan"]
    for step in steps:
        step.mkdir()
        (step / artifact.filename).write_text(artifact.content)
    (tmp_path / "oc").symlink_to(cluster.programs / "kubectl")
    path = f"{tmp_path}:{cluster.programs}:{os.environ['PATH']}"
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}
    for word in ("delete", "apply"):
        kubectl(cluster, word, "-n", "hugeplan", "-f", "-", text=yaml.safe_dump(standing))

    def shell(text: str, step: Path = steps[1]) -> None:
        words = ["/bin/sh", "-c", text]
        done = subprocess.run(words, env=environment, cwd=step, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def spec() -> Any:
        found = kubectl(cluster, "get", "-n", "hugeplan", "-o", "yaml", "-f", "-", text=yaml.safe_dump(standing))
        return yaml.safe_load(found.stdout)["items"][0]["spec"]

    before = spec()
    shell(artifact.install, steps[0])
    patched = spec()
    assert patched != before
    shell(artifact.install)
    changed = CHANGED_SINCE.get(kind, {})
    how = "strategic" if kind == "statefulset_patch" else "merge"
    words = ["patch", "-n", "hugeplan", "-f", "-", "--type", how, "--patch", json.dumps({"spec": changed})]
    done = kubectl(cluster, *words, text=yaml.safe_dump(standing))
    assert done.returncode == 0, done.stderr
    shell(artifact.rollback)
    assert spec() == _merged(before, changed)
    assert not list(tmp_path.rglob("*before.yaml"))
    assert kubectl(cluster, "replace", "-n", "hugeplan", "-f", "-", text=yaml.safe_dump(standing)).returncode == 0
    shell(artifact.install)
    assert spec() == patched
