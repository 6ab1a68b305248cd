"""AKS: a privileged DaemonSet that writes the counts and restarts the kubelet, because AKS has no field for them."""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterable
from hashlib import sha256

from hugeplan.artifacts.base import Artifact, Restart, all_of, node_checks, object_name, planned_pools, yaml_text
from hugeplan.artifacts.numa_files import script_text
from hugeplan.planner.model import Plan, PlanRequest

#: Runs on the host through nsenter: /sys of the host is read-only in a container without it.
_WRAPPER = """\
before=$(cat /sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages | tr '\\n' ' ')
{script}
after=$(cat /sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages | tr '\\n' ' ')
if [ "$before" != "$after" ]; then systemctl restart kubelet; fi
exit $failed
"""


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The DaemonSet, and the custom node configuration for THP where a plan's engine is hurt by it."""
    if not request.reservations.kubernetes or request.reservations.provider not in {None, "aks"}:
        return
    if planned_pools(plan):
        yield _daemon_set(plan)
    if request.node.thp_enabled == "always" and any(i.page_bytes for i in plan.instances):
        yield _node_config(plan)


def _daemon_set(plan: Plan) -> Artifact:
    script = _WRAPPER.format(script=script_text(plan).replace("exit $failed\n", "").rstrip())
    name = object_name(plan.node)
    labels = {"app.kubernetes.io/name": "hugeplan-pools", "app.kubernetes.io/instance": name}
    container = {
        "name": "reserve",
        "image": "busybox:1.37",
        "command": ["nsenter", "--target", "1", "--mount", "--uts", "--ipc", "--", "/bin/sh", "-c", script],
        "securityContext": {"privileged": True},
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}},
    }
    pause = {
        "name": "pause",
        "image": "busybox:1.37",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "16Mi"}},
    }
    document = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostPID": True,
                    "nodeSelector": {"kubernetes.io/hostname": plan.node},
                    "tolerations": [{"operator": "Exists"}],
                    "initContainers": [container],
                    "containers": [pause],
                },
            },
        },
    }
    return Artifact(
        kind="aks_daemonset",
        filename="aks-daemonset.yaml",
        media_type="application/yaml",
        content=yaml_text(
            [
                "AKS node pools have no setting for nr_hugepages: a privileged pod writes the counts on the node.",
                "The nodeSelector names the planned node: widen it to nodes that are like it.",
            ],
            document,
        ),
        summary="Writes the counts on each selected node and restarts its kubelet when they changed.",
        install="kubectl apply -f aks-daemonset.yaml\nkubectl -n kube-system rollout status daemonset/" + name,
        verify=all_of(node_checks(plan)),
        rollback=f"kubectl -n kube-system delete daemonset {name}\n"
        "# the counts stay until the node restarts, which sets them to 0",
        restart=Restart.KUBELET,
        avoid_when="Privileged pods are not allowed: build a node image with the command line instead.",
    )


def _node_config(plan: Plan) -> Artifact:
    # AKS takes 12 lower-case letters and digits.
    digest = b32encode(sha256(plan.node.lower().encode()).digest()).decode().lower()
    of_pool = f"--cluster-name $CLUSTER --resource-group $GROUP --name h{digest[:11]}"
    return Artifact(
        kind="aks_node_config",
        filename="aks-linux-os-config.json",
        media_type="application/json",
        content=json.dumps({"transparentHugePageEnabled": "madvise"}, indent=2) + "\n",
        summary="Keeps transparent huge pages to programs that ask for them, on a new AKS node pool.",
        install=f"az aks nodepool add {of_pool} --linux-os-config aks-linux-os-config.json",
        verify="grep -q '\\[madvise\\]' /sys/kernel/mm/transparent_hugepage/enabled  # on the node",
        rollback=f"az aks nodepool delete {of_pool}",
        restart=Restart.NODES,
        avoid_when="The node pool exists: AKS takes this setting when a pool is made.",
    )
